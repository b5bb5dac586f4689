package proof

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, testenv.NoLeaks())) }

const (
	ttl         = 100 * time.Millisecond // the shortest that the store takes
	long        = time.Hour              // outlasts every test
	maxAttempts = 60
)

// scene is a store with a definition "job" whose jobs run on a node "one".
type scene struct {
	*leasestore.Store
	t    *testing.T
	pool *pgxpool.Pool
}

func newScene(t *testing.T, limit int64) scene {
	t.Helper()
	s := scene{t: t, pool: testenv.Pool(t)}
	s.Store = leasestore.New(s.pool)
	try(s.RegisterNode(t.Context(), leasestore.Node{ID: "one", Endpoint: "unix:///one", Capacity: 50})).or(t)
	try(s.ReportNode(t.Context(), "one", leasestore.NodeReport{Healthy: true, DaemonID: "one", Version: "20.10"})).or(t)
	try(s.Apply(t.Context(), leasestore.Definition{
		Name: "job", Kind: leasestore.Container, Spec: json.RawMessage(`{"image": "busybox:1"}`), MaxRunning: limit,
		Retry: leasestore.Retry{MaxAttempts: maxAttempts, Backoff: time.Millisecond},
	})).or(t)
	return s
}

func (s scene) queued() leasestore.Job {
	s.t.Helper()
	job := try(s.Enqueue(s.t.Context(), leasestore.EnqueueRequest{JobID: uuid.New(), Definition: "job", WorkflowID: "run"})).or(s.t)
	return s.dispatched(job)
}

// dispatched offers a job as soon as it is due.
func (s scene) dispatched(job leasestore.Job) leasestore.Job {
	s.t.Helper()
	s.waitFor(`select next_attempt_at <= clock_timestamp() from leasehold.job where id = $1`, job.ID)
	return try(s.Dispatch(s.t.Context(), job.ID, job.DispatchAttempt)).or(s.t)
}

func newHolder(worker string) leasestore.Holder {
	return leasestore.Holder{Worker: worker, Process: uuid.New()}
}

func claimOf(job leasestore.Job, holder leasestore.Holder, turn int64) leasestore.ClaimRequest {
	return leasestore.ClaimRequest{
		JobID: job.ID, Generation: job.Generation, DispatchAttempt: job.DispatchAttempt, Holder: holder, Turn: turn,
		TTL: ttl, RequestID: uuid.New(), NodeTTL: time.Hour,
	}
}

// lasting is the claim of a lease that outlasts the test.
func lasting(claim leasestore.ClaimRequest) leasestore.ClaimRequest {
	claim.TTL = long
	return claim
}

func recoveryBy(holder leasestore.Holder, turn int64) leasestore.RecoverRequest {
	return leasestore.RecoverRequest{Limit: 2, Holder: holder, Turn: turn, TTL: ttl, RequestID: uuid.New()}
}

func (s scene) exec(sql string, args ...any) {
	s.t.Helper()
	try(s.pool.Exec(s.t.Context(), sql, args...)).or(s.t)
}

// waitFor asks again until the answer is true.
func (s scene) waitFor(sql string, args ...any) {
	s.t.Helper()
	for done := false; !done; {
		if err := s.pool.QueryRow(s.t.Context(), sql, args...).Scan(&done); err != nil {
			s.t.Fatal(err)
		}
	}
}

// checked is what Check finds.
func (s scene) checked(refusals ...Refusal) []Violation {
	s.t.Helper()
	return try(Check(s.t.Context(), s.pool, refusals...)).or(s.t)
}

// try(store.Verb(…)).or(t) is the verb's answer, or the end of the test.
func try[T any](value T, err error) attempt[T] { return attempt[T]{value, err} }

type attempt[T any] struct {
	value T
	err   error
}

func (a attempt[T]) or(t *testing.T) T {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.value
}
