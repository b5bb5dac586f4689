package store

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, testenv.NoLeaks())) }

const ttl = 30 * time.Second

var (
	alice = leasestore.Holder{Worker: "alice", Process: uuid.New()}
	bob   = leasestore.Holder{Worker: "bob", Process: uuid.New()}
	gone  = leasestore.Outcome{Failure: leasestore.Failure{Kind: leasestore.SystemFailure, Reason: "GONE", Message: "its worker is gone"}}
)

const turn1, turn2 int64 = 1_700_000_000_000_000, 1_700_000_000_000_001

// fixture is a store on a database of the test's own.
type fixture struct {
	*leasestore.Store
	t    *testing.T
	pool *pgxpool.Pool
}

// at is a store on a database, with connections as a worker prepares them.
func at(t *testing.T, databaseURL string, prepare ...func(*pgx.ConnConfig)) fixture {
	t.Helper()
	config := must(pgxpool.ParseConfig(databaseURL)).or(t)
	config.MaxConns = 8
	leasestore.Configure(config.ConnConfig)
	for _, p := range prepare {
		p(config.ConnConfig)
	}
	pool := testenv.PoolWith(t, config)
	return fixture{leasestore.New(pool), t, pool}
}

func (f fixture) apply(name string, kind leasestore.Kind) {
	f.t.Helper()
	must(f.Apply(f.t.Context(), leasestore.Definition{Name: name, Kind: kind, Spec: json.RawMessage(`{}`)})).or(f.t)
}

func (f fixture) node(id string, capacity int64) {
	f.t.Helper()
	must(f.RegisterNode(f.t.Context(), leasestore.Node{ID: id, Endpoint: "unix:///" + id, Capacity: capacity})).or(f.t)
	must(f.ReportNode(f.t.Context(), id, leasestore.NodeReport{Healthy: true})).or(f.t)
}

func (f fixture) queued(definition string) leasestore.Job {
	f.t.Helper()
	job := must(f.Enqueue(f.t.Context(), leasestore.EnqueueRequest{JobID: uuid.New(), Definition: definition})).or(f.t)
	return must(f.Dispatch(f.t.Context(), job.ID, 0)).or(f.t)
}

func request(job leasestore.Job, holder leasestore.Holder) leasestore.ClaimRequest {
	return leasestore.ClaimRequest{
		JobID: job.ID, Generation: job.Generation, DispatchAttempt: job.DispatchAttempt, Holder: holder,
		Turn: turn1, TTL: ttl, RequestID: uuid.New(), NodeTTL: ttl,
	}
}

func recovery(holder leasestore.Holder) leasestore.RecoverRequest {
	return leasestore.RecoverRequest{Limit: 10, Holder: holder, Turn: turn2, TTL: ttl, RequestID: uuid.New()}
}

func (f fixture) claim(job leasestore.Job, holder leasestore.Holder) leasestore.Lease {
	f.t.Helper()
	return must(f.Claim(f.t.Context(), request(job, holder))).or(f.t)
}

func (f fixture) exec(sql string, args ...any) {
	f.t.Helper()
	must(f.pool.Exec(f.t.Context(), sql, args...)).or(f.t)
}

func read[T any](f fixture, sql string, args ...any) (value T) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), sql, args...).Scan(&value); err != nil {
		f.t.Fatal(err)
	}
	return value
}

// until waits until a question is answered with yes.
func (f fixture) until(question string, args ...any) {
	f.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !read[bool](f, question, args...); {
		if time.Now().After(deadline) {
			f.t.Fatalf("it never became true that %s", question)
		}
	}
}

func wants[E error](t *testing.T, err error) E {
	t.Helper()
	want, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("got error %v (%T), want a %T", err, err, want)
	}
	return want
}

type attempt[T any] struct {
	value T
	err   error
}

// must(store.Verb(…)).or(t) is the verb's answer, or the end of the test.
func must[T any](value T, err error) attempt[T] { return attempt[T]{value, err} }

func (a attempt[T]) or(t *testing.T) T {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.value
}
