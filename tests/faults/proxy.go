package faults

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// mode is what a proxy does with connections.
type mode int

const (
	pass mode = iota
	refuse
	silence
)

// Proxy passes bytes on between clients and a server, until it is told to
// break that. Its methods may be called from several goroutines.
type Proxy struct {
	listener        net.Listener
	network, target string
	done            sync.WaitGroup

	mu      sync.Mutex
	mode    mode
	latency time.Duration
	changed chan struct{} // closed when mode changes
	links   map[*link]struct{}
	closed  chan struct{}
}

// Listen opens a proxy on a free port of the loopback interface in front of a
// server: host:port, tcp://host:port, or unix:///path. Close it in the end.
func Listen(ctx context.Context, target string) (*Proxy, error) {
	network, address := "tcp", strings.TrimPrefix(target, "tcp://")
	if path, ok := strings.CutPrefix(target, "unix://"); ok {
		network, address = "unix", path
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a proxy before %s: %w", target, err)
	}
	p := &Proxy{
		listener: listener, network: network, target: address,
		changed: make(chan struct{}), closed: make(chan struct{}), links: map[*link]struct{}{},
	}
	p.done.Go(p.accept)
	return p, nil
}

// Address is where clients connect to, host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Heal lets everything pass. What a silent connection has held back arrives
// now, as after a partition of the network.
func (p *Proxy) Heal() { p.set(pass) }

// Refuse resets all connections, and every new one at once.
func (p *Proxy) Refuse() {
	p.set(refuse)
	for _, l := range p.open() {
		l.reset()
	}
}

// Silence stops all bytes and tells nobody: connections stay open, new ones are
// accepted, and nothing arrives.
func (p *Proxy) Silence() { p.set(silence) }

// HalfOpen takes the server's side of the connections away without telling the
// clients, as after the crash of a machine: they wait for ever. New connections
// pass.
func (p *Proxy) HalfOpen() {
	for _, l := range p.open() {
		l.abandon()
	}
}

// Latency delays each piece of data, both ways; 0 ends that.
func (p *Proxy) Latency(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = delay
}

// Connections is how many clients are connected.
func (p *Proxy) Connections() int { return len(p.open()) }

// Close ends all connections and returns when nothing of the proxy runs.
func (p *Proxy) Close() error {
	p.mu.Lock()
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	p.mu.Unlock()
	err := p.listener.Close()
	for _, l := range p.open() {
		l.reset()
	}
	p.done.Wait()
	return err
}

func (p *Proxy) set(to mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = to
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) open() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// state is the mode, the latency, and what tells of a change.
func (p *Proxy) state() (mode, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.latency, p.changed
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		l := &link{proxy: p, client: client, over: make(chan struct{})}
		p.mu.Lock()
		p.links[l] = struct{}{}
		p.mu.Unlock()
		p.done.Go(func() {
			l.run()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.links, l)
		})
	}
}
