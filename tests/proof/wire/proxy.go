// Package wire is a proxy in front of PostgreSQL that knows its messages, and
// cuts a connection at exactly the one that a test chooses. So a test decides
// what has happened when a client loses its answer: in the extended protocol a
// statement runs at Execute, its implicit transaction commits at Sync, and the
// client hears of it from CommandComplete and ReadyForQuery.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Side is an end of a connection.
type Side string

// The sides.
const (
	Client Side = "client"
	Server Side = "server"
)

// Point is a place in the stream of one side: before a message is passed on, or
// after it.
type Point struct {
	From    Side
	Message string // the name in pgproto3: Execute, Sync, CommandComplete
	After   bool
}

// The points that matter to a statement in an implicit transaction.
var (
	BeforeExecute         = Point{Client, "Execute", false}         // it never ran
	BeforeSync            = Point{Client, "Sync", false}            // it ran, and was rolled back
	BeforeCommandComplete = Point{Server, "CommandComplete", false} // it was committed, and nobody was told
	AfterCommandComplete  = Point{Server, "CommandComplete", true}
	BeforeReadyForQuery   = Point{Server, "ReadyForQuery", false} // the rows came; that they are good did not
	AfterReadyForQuery    = Point{Server, "ReadyForQuery", true}  // all is known
)

func (p Point) String() string {
	when := "before"
	if p.After {
		when = "after"
	}
	return fmt.Sprintf("%s the %s's %s", when, p.From, p.Message)
}

// Proxy passes messages on between clients and a server.
type Proxy struct {
	listener net.Listener
	target   *url.URL
	cut      func(Point) bool
	done     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil once it is closed
}

// Listen opens a proxy in front of the server of a postgres:// URL. It asks cut
// at every point of every connection, from many goroutines, once that is set up;
// true ends the connection there, on both sides. Close the proxy in the end.
func Listen(ctx context.Context, databaseURL string, cut func(Point) bool) (*Proxy, error) {
	target, err := url.Parse(databaseURL)
	if err != nil || target.Host == "" {
		return nil, errors.New("the database URL must look like postgres://user@host:5432/database")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, cut: cut, conns: map[net.Conn]struct{}{}}
	p.done.Go(p.accept)
	return p, nil
}

// URL is the database as seen through the proxy.
func (p *Proxy) URL() string {
	through := *p.target
	through.Host = p.listener.Addr().String()
	query := through.Query()
	query.Set("sslmode", "disable")
	through.RawQuery = query.Encode()
	return through.String()
}

// Close ends all connections and returns when nothing of the proxy runs.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for conn := range p.conns {
		err = errors.Join(err, conn.Close())
	}
	p.conns = nil
	p.mu.Unlock()
	p.done.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.serve(conn) })
	}
}

// keep remembers a connection so that Close ends it, and says whether it may
// begin at all. The caller ends it with drop.
func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *Proxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.conns[conn]; open {
		delete(p.conns, conn)
		_ = conn.Close()
	}
}

func name(message any) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", message), "*pgproto3.")
}

// session is one client with its connection to the server.
type session struct {
	proxy          *Proxy
	client, server net.Conn
	back           *pgproto3.Backend  // speaks with the client
	front          *pgproto3.Frontend // speaks with the server
}
