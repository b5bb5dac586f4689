package docker_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A proxy stands between the engine and a daemon, and spoils what it is told.
type proxy struct {
	t        *testing.T
	target   string
	socket   string
	listener net.Listener
	// meddle sees each request. It may answer itself by returning true; then
	// the connection is closed after what it wrote.
	meddle func(req *http.Request, forward func() *http.Response, client net.Conn) bool

	mu    sync.Mutex
	conns map[net.Conn]bool
	down  bool
	work  sync.WaitGroup
}

func newProxy(t *testing.T, endpoint string) *proxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "lh") //nolint:usetesting // a socket path must be short
	check(t, err)
	p := &proxy{t: t, target: strings.TrimPrefix(endpoint, "unix://"), socket: filepath.Join(dir, "p.sock"), conns: map[net.Conn]bool{}}
	p.up()
	t.Cleanup(func() {
		p.cut()
		p.work.Wait()
		_ = os.RemoveAll(dir)
	})
	return p
}

func (p *proxy) endpoint() string { return "unix://" + p.socket }

// cut closes all connections and takes no more.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	_ = p.listener.Close()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// up takes connections (again).
func (p *proxy) up() {
	p.t.Helper()
	listener, err := net.Listen("unix", p.socket)
	check(p.t, err)
	p.mu.Lock()
	p.listener, p.down = listener, false
	p.mu.Unlock()
	p.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if p.track(conn) {
				p.work.Go(func() { p.serve(conn) })
			}
		}
	})
}

func (p *proxy) track(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *proxy) untrack(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	_ = conn.Close()
}

func (p *proxy) serve(conn net.Conn) {
	defer p.untrack(conn)
	requests := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(requests)
		if err != nil {
			return
		}
		daemon, err := net.Dial("unix", p.target)
		if err != nil || !p.track(daemon) {
			return
		}
		forward := func() *http.Response {
			req.Close = true
			if req.Write(daemon) != nil {
				return nil
			}
			resp, err := http.ReadResponse(bufio.NewReader(daemon), req)
			if err != nil {
				return nil
			}
			return resp
		}
		ok := p.answer(conn, req, forward)
		p.untrack(daemon)
		if !ok {
			return
		}
	}
}

func (p *proxy) answer(conn net.Conn, req *http.Request, forward func() *http.Response) bool {
	if p.meddle != nil && p.meddle(req, forward, conn) {
		return false
	}
	resp := forward()
	if resp == nil {
		return false
	}
	defer resp.Body.Close()
	if resp.ContentLength < 0 && req.Method != http.MethodHead {
		return stream(conn, resp, resp.Body)
	}
	return resp.Write(conn) == nil && !resp.Close
}

// stream passes on an answer of unknown length as it comes.
func stream(conn net.Conn, resp *http.Response, body io.Reader) bool {
	_, err := io.WriteString(conn, "HTTP/1.1 "+resp.Status+"\r\nContent-Type: "+resp.Header.Get("Content-Type")+
		"\r\nTransfer-Encoding: chunked\r\n\r\n")
	if err != nil {
		return false
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if !writeChunk(conn, buf[:n]) {
				return false
			}
		}
		if err == io.EOF {
			return writeChunk(conn, nil)
		}
		if err != nil {
			return false
		}
	}
}

func writeChunk(w io.Writer, data []byte) bool {
	const hex = "0123456789abcdef"
	var size []byte
	for n := len(data); ; n >>= 4 {
		size = append([]byte{hex[n&15]}, size...)
		if n < 16 {
			break
		}
	}
	_, err := w.Write(append(append(append(size, '\r', '\n'), data...), '\r', '\n'))
	return err == nil
}

func discard(resp *http.Response) {
	if resp != nil {
		_ = resp.Body.Close()
	}
}
