package faults

import (
	"net"
	"sync"
	"time"
)

// link is a connection through a proxy.
type link struct {
	proxy  *Proxy
	client net.Conn
	over   chan struct{} // closed when the client's side is to end

	mu        sync.Mutex
	server    net.Conn // nil until it is connected
	ended     bool
	abandoned bool
}

// run passes on what comes until a side ends.
func (l *link) run() {
	defer l.reset()
	if !l.passes() {
		return
	}
	server, err := l.connect()
	if err != nil {
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(server, l.client) })
	pumps.Go(func() { l.pump(l.client, server) })
	pumps.Wait()
}

func (l *link) connect() (net.Conn, error) {
	server, err := net.DialTimeout(l.proxy.network, l.proxy.target, 5*time.Second)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		_ = server.Close()
		return nil, net.ErrClosed
	}
	l.server = server
	return server, nil
}

// pump copies one way. A piece that was read while the proxy was silent waits
// for the end of the silence.
func (l *link) pump(to, from net.Conn) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if !l.passes() {
				return
			}
			if _, err := to.Write(piece[:n]); err != nil {
				l.lost()
				return
			}
		}
		if err != nil {
			if l.passes() { // an end is not seen through a silence either
				l.lost()
			}
			return
		}
	}
}

// lost ends both sides, unless the server's was taken away: then the client
// waits.
func (l *link) lost() {
	l.mu.Lock()
	abandoned := l.abandoned
	l.mu.Unlock()
	if abandoned {
		<-l.over
	}
	l.reset()
}

// passes waits while the proxy is silent, and for its latency, and says whether
// the connection is still there.
func (l *link) passes() bool {
	for {
		now, latency, changed := l.proxy.state()
		wait := time.After(latency)
		switch now {
		case refuse:
			return false
		case silence:
			wait = nil
		case pass:
			changed = nil
		}
		select {
		case <-changed:
		case <-wait:
			return true
		case <-l.over:
			return false
		}
	}
}

// abandon takes the server's side away.
func (l *link) abandon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		l.abandoned = true
		_ = l.server.Close()
	}
}

// reset ends the connection on both sides, the client's with a reset.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.over)
	if tcp, ok := l.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}
