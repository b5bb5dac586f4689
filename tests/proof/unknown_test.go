package proof

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof/wire"
)

// breaker cuts a connection at a point of the n-th statement that is executed
// after it was armed, and only once.
type breaker struct {
	mu       sync.Mutex
	at       wire.Point
	nth      int // 0 if it is not armed
	executed int
}

func (b *breaker) arm(at wire.Point, nth int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at, b.nth, b.executed = at, nth, 0
}

func (b *breaker) cut(at wire.Point) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at == wire.BeforeExecute {
		b.executed++
	}
	if b.nth == 0 || at != b.at || b.executed < b.nth {
		return false
	}
	b.nth = 0
	return true
}

// broken is a store on one connection that can be cut.
func (s scene) broken() (*leasestore.Store, *breaker) {
	s.t.Helper()
	b := &breaker{}
	proxy := try(wire.Listen(s.t.Context(), s.pool.Config().ConnString(), b.cut)).or(s.t)
	s.t.Cleanup(func() { _ = proxy.Close() })
	pool := try(pgxpool.New(s.t.Context(), proxy.URL()+"&application_name=client&pool_max_conns=1")).or(s.t)
	s.t.Cleanup(pool.Close)
	return leasestore.New(pool), b
}

// doing is one verb that is sent twice: the same claim, authority or outcome.
type doing func(context.Context, *leasestore.Store) error

// verbsOf prepares a job for each verb and returns what to send.
var verbsOf = map[string]func(scene) (leasestore.Job, doing){
	"claim": func(s scene) (leasestore.Job, doing) {
		job := s.queued()
		claim := lasting(claimOf(job, newHolder("alice"), 1))
		return job, func(ctx context.Context, store *leasestore.Store) error {
			_, err := store.Claim(ctx, claim)
			return err
		}
	},
	"recover": func(s scene) (leasestore.Job, doing) {
		job := s.queued()
		try(s.Claim(s.t.Context(), claimOf(job, newHolder("alice"), 1))).or(s.t)
		s.waitFor(`select expires_at <= clock_timestamp() from leasehold.lease where job_id = $1`, job.ID)
		recovery := recoveryBy(newHolder("bob"), 2)
		recovery.TTL = long
		return job, func(ctx context.Context, store *leasestore.Store) error {
			taken, err := store.Recover(ctx, recovery)
			if err == nil && (len(taken) != 1 || taken[0].Lease.JobID != job.ID) {
				return errors.New("the lease is not there")
			}
			return err
		}
	},
	"prove": holding(func(ctx context.Context, s *leasestore.Store, a leasestore.Authority) error {
		return only(s.Prove(ctx, a, long+1))
	}),
	"renew": holding(func(ctx context.Context, s *leasestore.Store, a leasestore.Authority) error {
		return only(s.Renew(ctx, a, long+1))
	}),
	"attach": holding(func(ctx context.Context, s *leasestore.Store, a leasestore.Authority) error {
		return only(s.Attach(ctx, a, "one", "c", long))
	}),
	"complete": holding(func(ctx context.Context, s *leasestore.Store, a leasestore.Authority) error {
		return only(s.Complete(ctx, a, leasestore.Outcome{}))
	}),
	"fail": holding(func(ctx context.Context, s *leasestore.Store, a leasestore.Authority) error {
		return only(s.Fail(ctx, a, again))
	}),
	"cancel": holding(func(ctx context.Context, s *leasestore.Store, a leasestore.Authority) error {
		return only(s.Cancel(ctx, a, leasestore.Outcome{}))
	}),
	"release": holding(func(ctx context.Context, s *leasestore.Store, a leasestore.Authority) error {
		return only(s.Release(ctx, a, again, false))
	}),
}

// only is the error of an answer.
func only[T any](_ T, err error) error { return err }

func holding(do func(context.Context, *leasestore.Store, leasestore.Authority) error) func(scene) (leasestore.Job, doing) {
	return func(s scene) (leasestore.Job, doing) {
		job := s.queued()
		claim := lasting(claimOf(job, newHolder("alice"), 1))
		auth := try(s.Claim(s.t.Context(), claim)).or(s.t).Authority
		return job, func(ctx context.Context, store *leasestore.Store) error { return do(ctx, store, auth) }
	}
}

// Wherever the connection of a verb breaks, its caller is told that the outcome
// is unknown; what has happened is what the point of the cut says; and the same
// call again makes it done, once.
func TestCase23_ALostAnswerIsUnknownAndTheSameCallAgainIsSafe(t *testing.T) {
	t.Parallel()
	s := newScene(t, 0)
	store, breaker := s.broken()
	cuts := map[wire.Point]bool{wire.BeforeExecute: false, wire.BeforeSync: false, wire.BeforeCommandComplete: true, wire.BeforeReadyForQuery: true}
	for verb, prepare := range verbsOf {
		for point, done := range cuts {
			t.Run(verb+" cut "+point.String(), func(t *testing.T) {
				job, do := prepare(s)
				before := s.state(job)
				breaker.arm(point, 1)
				if err := do(t.Context(), store); !isUnknown(err) {
					t.Errorf("it is told %v", err)
				}
				s.waitFor(`select not exists (select from pg_stat_activity where application_name = 'client' and datname = current_database())`)
				if changed := s.state(job) != before; changed != done {
					t.Errorf("changed is %t", changed)
				}
				try(0, do(t.Context(), store)).or(t)
				after := s.state(job)
				try(0, do(t.Context(), store)).or(t)
				if entries := s.entries(job); entries > 2 || verb != "prove" && verb != "renew" && verb != "attach" && s.state(job) != after {
					t.Errorf("it was done again: %d entries", entries)
				}
			})
		}
	}
	for _, violation := range s.checked() {
		t.Error(violation)
	}
}

// state is all that is stored of a job.
func (s scene) state(job leasestore.Job) (text string) {
	s.t.Helper()
	const sql = `select j::text || coalesce(l::text, '') from leasehold.job j left join leasehold.lease l on l.job_id = j.id where j.id = $1`
	if err := s.pool.QueryRow(s.t.Context(), sql, job.ID).Scan(&text); err != nil {
		s.t.Fatal(err)
	}
	return text
}

func (s scene) entries(job leasestore.Job) int {
	s.t.Helper()
	return len(try(s.Ledger(s.t.Context(), job.ID)).or(s.t))
}

// A refusal that cannot be explained, because the connection breaks while the
// store reads why, is no loss of the lease. Seeded fault: the error of that read
// dropped.
func TestL12_AConflictIsNoLossEvenIfItsExplanationIsCut(t *testing.T) {
	t.Parallel()
	s := newScene(t, 0)
	store, breaker := s.broken()
	claim := lasting(claimOf(s.queued(), newHolder("alice"), 1))
	auth := try(s.Claim(t.Context(), claim)).or(t).Authority
	try(s.Attach(t.Context(), auth, "one", "first", long)).or(t)
	for nth := 1; nth <= 3; nth++ {
		breaker.arm(wire.BeforeCommandComplete, nth)
		_, err := store.Attach(t.Context(), auth, "one", "second", long)
		if lost, ok := errors.AsType[*leasestore.LostError](err); ok {
			t.Errorf("statement %d was cut, and its bearer is told to stop: %v", nth, lost)
		}
		if err == nil {
			t.Errorf("statement %d was cut, and another container was attached", nth)
		}
	}
	try(s.Renew(t.Context(), auth, long)).or(t)
}
