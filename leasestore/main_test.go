package leasestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the tests wait for the database more than they compute
	os.Exit(testenv.Main(m, testenv.NoLeaks()))
}

const ttl = 30 * time.Second

// Two worker processes, and the turns of four activity attempts.
var (
	alice = leasestore.Holder{Worker: "alice", Process: uuid.New()}
	bob   = leasestore.Holder{Worker: "bob", Process: uuid.New()}
)

const (
	turn1 int64 = 1_700_000_000_000_000 + iota
	turn2
	turn3
)

// boom is a failure of the program, and lateBoom another.
var (
	boom     = leasestore.Outcome{ExitCode: new(3), Failure: leasestore.Failure{Kind: leasestore.UserFailure, Reason: "EXIT_CODE", Message: "exit 3"}}
	lateBoom = leasestore.Outcome{ExitCode: new(4), Failure: leasestore.Failure{Kind: leasestore.UserFailure, Reason: "EXIT_CODE", Message: "exit 4"}}
	lost     = leasestore.Outcome{Failure: leasestore.Failure{Kind: leasestore.SystemFailure, Reason: "LEASE_LOST", Message: "its worker is gone"}}
)

// fixture is a store on a database of the test's own. Its methods fail the test
// where the store does not do what the test needs as its beginning.
type fixture struct {
	*leasestore.Store
	t    *testing.T
	pool *pgxpool.Pool
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{t: t, pool: testenv.Pool(t)}
	f.Store = leasestore.New(f.pool)
	t.Cleanup(f.leavesNothingBehind)
	return f
}

// leavesNothingBehind holds for every test: case 6, no verb leaves a lock or a
// transaction in the session that it used.
func (f fixture) leavesNothingBehind() {
	var locks, open int
	err := f.pool.QueryRow(context.WithoutCancel(f.t.Context()), `
		select (select count(*) from pg_locks l join pg_database d on d.oid = l.database
		         where l.locktype = 'advisory' and d.datname = current_database()),
		       (select count(*) from pg_stat_activity
		         where datname = current_database() and state like 'idle in transaction%')`).Scan(&locks, &open)
	if err != nil || locks+open != 0 {
		f.t.Errorf("TestCase6: left behind %d advisory locks and %d open transactions: %v", locks, open, err)
	}
}

// heartbeats is a definition without a node; limit 0 is no limit.
func heartbeats(name string, limit int64) leasestore.Definition {
	return leasestore.Definition{Name: name, Kind: leasestore.Heartbeat, Spec: json.RawMessage(`{"endpoint": "http://localhost"}`), MaxRunning: limit}
}

func containers(name string) leasestore.Definition {
	return leasestore.Definition{Name: name, Kind: leasestore.Container, Spec: json.RawMessage(`{"image": "busybox:1"}`)}
}

func (f fixture) apply(def leasestore.Definition) leasestore.Definition {
	f.t.Helper()
	return try(f.Apply(f.t.Context(), def)).or(f.t)
}

// node registers a READY node.
func (f fixture) node(id string, capacity int64, labels map[string]string) {
	f.t.Helper()
	try(f.RegisterNode(f.t.Context(), leasestore.Node{ID: id, Endpoint: "unix:///" + id, Capacity: capacity, Labels: labels})).or(f.t)
	try(f.ReportNode(f.t.Context(), id, leasestore.NodeReport{Healthy: true, DaemonID: "daemon " + id, Version: "20.10"})).or(f.t)
}

// pending stores a job; queued offers it as well.
func (f fixture) pending(definition string) leasestore.Job {
	f.t.Helper()
	return try(f.Enqueue(f.t.Context(), leasestore.EnqueueRequest{JobID: uuid.New(), Definition: definition, WorkflowID: "run " + definition})).or(f.t)
}

func (f fixture) queued(definition string) leasestore.Job {
	f.t.Helper()
	return f.dispatched(f.pending(definition))
}

func (f fixture) dispatched(job leasestore.Job) leasestore.Job {
	f.t.Helper()
	return try(f.Dispatch(f.t.Context(), job.ID, job.DispatchAttempt)).or(f.t)
}

// request asks for a job as it was offered.
func request(job leasestore.Job, holder leasestore.Holder) leasestore.ClaimRequest {
	return leasestore.ClaimRequest{
		JobID: job.ID, Generation: job.Generation, DispatchAttempt: job.DispatchAttempt, Holder: holder,
		Turn: turn1, TTL: ttl, RequestID: uuid.New(), NodeTTL: ttl,
	}
}

func (f fixture) claim(job leasestore.Job, holder leasestore.Holder) leasestore.Lease {
	f.t.Helper()
	return try(f.Claim(f.t.Context(), request(job, holder))).or(f.t)
}

// claimed is alice's lease of a new job without a node.
func (f fixture) claimed() leasestore.Lease {
	f.t.Helper()
	f.apply(heartbeats("probe", 0))
	return f.claim(f.queued("probe"), alice)
}

// placed is alice's lease of a new job on the node "one".
func (f fixture) placed() leasestore.Lease {
	f.t.Helper()
	f.node("one", 4, nil)
	f.apply(containers("report"))
	return f.claim(f.queued("report"), alice)
}

func recovery(holder leasestore.Holder, limit int) leasestore.RecoverRequest {
	return leasestore.RecoverRequest{Limit: limit, Holder: holder, Turn: turn2, TTL: ttl, RequestID: uuid.New()}
}

// recovered is bob's lease of a job whose lease has run out.
func (f fixture) recovered(jobID uuid.UUID) leasestore.Lease {
	f.t.Helper()
	f.expire(jobID)
	got := try(f.Recover(f.t.Context(), recovery(bob, 1))).or(f.t)
	if len(got) != 1 || got[0].Lease.JobID != jobID {
		f.t.Fatalf("recovered %d leases, want that of job %s", len(got), jobID)
	}
	return got[0].Lease
}

// expire makes a lease run out; with no job, all of them.
func (f fixture) expire(jobs ...uuid.UUID) {
	f.t.Helper()
	f.exec(`update leasehold.lease
	           set expires_at = clock_timestamp() - interval '1 second', next_check = clock_timestamp() - interval '1 second'
	         where job_id = any($1) or $1 is null`, jobs)
}

func (f fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.pool.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

// connect is a connection of the test's own.
func connect(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	conn := try(pgx.ConnectConfig(t.Context(), config)).or(t)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// begin begins a transaction, which is rolled back when the test ends if it is
// still open.
func (f fixture) begin() pgx.Tx {
	f.t.Helper()
	tx := try(f.pool.Begin(f.t.Context())).or(f.t)
	f.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(f.t.Context())) })
	return tx
}

// read returns one value of one row.
func read[T any](f fixture, sql string, args ...any) (value T) {
	f.t.Helper()
	if err := f.pool.QueryRow(f.t.Context(), sql, args...).Scan(&value); err != nil {
		f.t.Fatal(err)
	}
	return value
}

// row is all that is stored of a job and its lease, to see whether it changed.
func (f fixture) row(jobID uuid.UUID) string {
	f.t.Helper()
	return read[string](f, `select j::text || coalesce(l::text, '') from leasehold.job j
	                          left join leasehold.lease l on l.job_id = j.id where j.id = $1`, jobID)
}

// waitForWaiters waits until this many statements of the database wait for a lock.
func (f fixture) waitForWaiters(n int) {
	f.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if read[int](f, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) >= n {
			return
		}
	}
	f.t.Fatalf("%d statements never waited for a lock", n)
}

// try(store.Verb(…)).or(t) is the verb's answer, or the end of the test.
func try[T any](value T, err error) attempt[T] { return attempt[T]{value, err} }

type attempt[T any] struct {
	value T
	err   error
}

func (a attempt[T]) or(t *testing.T) T {
	t.Helper()
	check(t, a.err)
	return a.value
}

// wants fails the test unless the error is one of this type, and returns it.
func wants[E error](t *testing.T, err error) E {
	t.Helper()
	want, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("got error %v (%T), want a %T", err, err, want)
	}
	return want
}

// wantsLost fails the test unless the error says that the authority is lost for
// this reason.
func wantsLost(t *testing.T, err error, reason leasestore.LostReason) *leasestore.LostError {
	t.Helper()
	lost := wants[*leasestore.LostError](t, err)
	if lost.Reason != reason {
		t.Fatalf("lost as %s, want %s: %v", lost.Reason, reason, lost)
	}
	return lost
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
