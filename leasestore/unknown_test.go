package leasestore_test

import (
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// call is a change, made by a store that may lose the answer. It can be sent
// again as the same call; it returns what it was answered.
type call struct {
	name string
	send func(*leasestore.Store) (any, error)
}

// calls are the verbs that change something, on jobs of their own.
func (f fixture) calls() []call {
	f.t.Helper()
	ctx := f.t.Context()
	claim := request(f.queued("report"), alice)
	auth := func() leasestore.Authority { return f.claim(f.queued("report"), alice).Authority }
	renewed, attached, completed, released := auth(), auth(), auth(), auth()
	expired := auth()
	f.expire(expired.JobID)
	r := recovery(bob, 1)
	return []call{
		{"recover", func(s *leasestore.Store) (any, error) { got, err := s.Recover(ctx, r); return got, err }},
		{"claim", func(s *leasestore.Store) (any, error) { return s.Claim(ctx, claim) }},
		{"renew", func(s *leasestore.Store) (any, error) { return s.Renew(ctx, renewed, 2*ttl) }},
		{"attach", func(s *leasestore.Store) (any, error) { return s.Attach(ctx, attached, "one", "c1", 2*ttl) }},
		{"complete", func(s *leasestore.Store) (any, error) { return s.Complete(ctx, completed, leasestore.Outcome{}) }},
		{"release", func(s *leasestore.Store) (any, error) { return s.Release(ctx, released, lost, false) }},
	}
}

// effects is all that the calls can change, without what a repeated renewal may
// move.
func (f fixture) effects() string {
	f.t.Helper()
	return read[string](f, `select (select string_agg(g.event || g.epoch || g.job_id, ' ' order by id) from leasehold.ledger g)
	    || (select string_agg(j.status || j.epoch || j.attempt || j.container_id || j.id, ' ' order by id) from leasehold.job j)
	    || (select string_agg(l.token || l.worker || coalesce(l.container_id, '') || l.job_id, ' ' order by job_id) from leasehold.lease l)`)
}

// unanswered fails the test unless the answer is empty and the error says that
// the outcome is unknown.
func (f fixture) unanswered(name string, answer any, err error) {
	f.t.Helper()
	if _, ok := errors.AsType[*leasestore.UnknownError](err); !ok {
		f.t.Errorf("%s: got %v, want an UnknownError", name, err)
	}
	if value := reflect.ValueOf(answer); value.IsValid() && !value.IsZero() {
		f.t.Errorf("%s: an unknown outcome returned %+v", name, answer)
	}
}

func TestL25_ACommitWhoseReplyIsLostIsUnknownAndSentAgainHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("one", 40, nil)
	f.apply(containers("report"))
	proxy := newProxy(t, f.pool)
	warm := f.calls()
	for i, c := range f.calls() {
		try(warm[i].send(proxy.store)).or(t) // so that the connection knows the statements
		before := f.effects()
		proxy.swallow.Store(true)
		answer, err := c.send(proxy.store)
		proxy.swallow.Store(false)
		f.unanswered(c.name, answer, err)
		after := f.effects()
		if c.name != "renew" && after == before {
			t.Errorf("%s: the call had no effect to be lost", c.name)
		}
		if answer, err := c.send(f.Store); err != nil || reflect.ValueOf(answer).IsZero() {
			t.Errorf("%s, sent again: %v", c.name, err)
		}
		if f.effects() != after {
			t.Errorf("%s, sent again, had a second effect\n%s\n%s", c.name, after, f.effects())
		}
	}
}

// The server dies within the commit: nothing was done, and nobody can know. And
// a commit that the server refuses is no unknown one. In both, RETURNING rows
// came before. Seeded fault: lastOfBatch and one return the row without waiting
// for the end.
func TestL25_NoTokenIsHandedOutBeforeTheCommitIsKnown(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"killed":  `perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(20);`,
		"refused": `raise exception 'refused at commit';`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.node("one", 40, nil)
			f.apply(containers("report"))
			calls := f.calls()
			f.exec(`create function die() returns trigger language plpgsql as $$ begin ` + body + ` return null; end $$`)
			f.exec(`create constraint trigger die after insert or update or delete on leasehold.lease deferrable initially deferred
			        for each row execute function die()`)
			before := f.effects()
			for _, c := range calls {
				answer, err := c.send(f.Store)
				if name == "killed" {
					f.unanswered(c.name, answer, err)
					continue
				}
				if _, unknown := errors.AsType[*leasestore.UnknownError](err); unknown || err == nil || !strings.Contains(err.Error(), "refused at commit") {
					t.Errorf("%s: %v", c.name, err)
				}
				if value := reflect.ValueOf(answer); value.IsValid() && !value.IsZero() {
					t.Errorf("%s returned %+v", c.name, answer)
				}
			}
			if after := f.effects(); after != before {
				t.Errorf("something was done\n%s\n%s", before, after)
			}
			f.exec(`drop trigger die on leasehold.lease`)
			for _, c := range calls {
				if _, err := c.send(f.Store); err != nil {
					t.Errorf("%s, sent again: %v", c.name, err)
				}
			}
		})
	}
}

// proxy stands between a store of one connection and PostgreSQL.
type proxy struct {
	store *leasestore.Store
	// swallow makes it drop the next answer and cut the connection, once the
	// server has said that it is ready again: so the commit is done.
	swallow atomic.Bool
}

func newProxy(t *testing.T, pool *pgxpool.Pool) *proxy {
	t.Helper()
	listener := try(net.Listen("tcp", "127.0.0.1:0")).or(t)
	config := pool.Config().Copy()
	network, address := pgconn.NetworkAddress(config.ConnConfig.Host, config.ConnConfig.Port)
	p := &proxy{}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil {
				client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); server.Close() }()
			go p.answer(client, server)
		}
	}()
	config.MaxConns = 1
	config.ConnConfig.Host, config.ConnConfig.Port = "127.0.0.1", uint16(listener.Addr().(*net.TCPAddr).Port)
	config.ConnConfig.Fallbacks = nil
	through := try(pgxpool.NewWithConfig(t.Context(), config)).or(t)
	p.store = leasestore.New(through)
	t.Cleanup(func() { through.Close(); listener.Close(); <-served })
	return p
}

func (p *proxy) answer(client, server net.Conn) {
	defer client.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if !p.swallow.Load() {
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
			continue
		}
		if n >= 6 && string(buffer[n-6:n-1]) == "Z\x00\x00\x00\x05" {
			return
		}
	}
}
