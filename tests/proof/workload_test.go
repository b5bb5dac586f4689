package proof

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof/model"
)

// verbs are the store, or a faulty one.
type verbs interface {
	Claim(context.Context, leasestore.ClaimRequest) (leasestore.Lease, error)
	Recover(context.Context, leasestore.RecoverRequest) ([]leasestore.Recovered, error)
	Prove(context.Context, leasestore.Authority, time.Duration) (leasestore.Lease, error)
	Renew(context.Context, leasestore.Authority, time.Duration) (leasestore.Lease, error)
	Attach(ctx context.Context, auth leasestore.Authority, node, container string, ttl time.Duration) (leasestore.Lease, error)
	Complete(context.Context, leasestore.Authority, leasestore.Outcome) (leasestore.Job, error)
	Fail(context.Context, leasestore.Authority, leasestore.Outcome) (leasestore.Job, error)
	Cancel(context.Context, leasestore.Authority, leasestore.Outcome) (leasestore.Job, error)
	Release(context.Context, leasestore.Authority, leasestore.Outcome, bool) (leasestore.Job, error)
}

// board is what Temporal would know: the jobs, and every authority that
// anybody was given.
type board struct {
	mu    sync.Mutex
	jobs  []known
	turns atomic.Int64
	start time.Time // by the database's clock
}

type known struct {
	job     leasestore.Job
	auths   []leasestore.Authority
	expires time.Time // of the latest
}

func (b *board) look(i int) known {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.jobs[i]
}

func (b *board) learn(lease leasestore.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.jobs {
		if k := &b.jobs[i]; k.job.ID == lease.JobID && lease.ExpiresAt.After(k.expires) {
			k.auths, k.expires = append(k.auths, lease.Authority), lease.ExpiresAt
		}
	}
}

func (b *board) offered(job leasestore.Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.jobs {
		if b.jobs[i].job.ID == job.ID && b.jobs[i].job.DispatchAttempt < job.DispatchAttempt {
			b.jobs[i].job = job
		}
	}
}

// client is a process that does whatever comes to its mind.
type client struct {
	id     int
	holder leasestore.Holder
	verbs  verbs
	store  *leasestore.Store // without cuts
	clock  *pgxpool.Pool
	board  *board
	random *rand.Rand
	// What was not answered is sent again as it was.
	claim    *leasestore.ClaimRequest
	recovery *leasestore.RecoverRequest
	records  []record
}

// run makes calls until the database's clock says that it is over.
func (c *client) run(t *testing.T, length time.Duration) {
	t.Helper()
	for {
		now := c.now(t)
		if now.Sub(c.board.start) > length {
			return
		}
		i := c.random.IntN(len(c.board.jobs))
		k := c.board.look(i)
		// A job is left alone for a third of the time, so that its lease runs out.
		quiet := (int(now.Sub(c.board.start)/(ttl*4/3))+i)%3 == 0
		switch {
		case c.claim != nil && c.random.IntN(2) == 0:
			c.take(t, k)
		case c.recovery != nil, quiet && k.expires.After(now), c.random.IntN(10) == 0:
			c.recover(t)
		case len(k.auths) == 0, k.expires.Before(now) && c.random.IntN(3) > 0:
			c.take(t, k)
		default:
			c.act(t, k)
		}
	}
}

func (c *client) now(t *testing.T) (now time.Time) {
	t.Helper()
	if err := c.clock.QueryRow(t.Context(), "select clock_timestamp()").Scan(&now); err != nil {
		t.Error(err)
		runtime.Goexit() // this is not the test's own goroutine
	}
	return now
}

// call times a call by both clocks.
func (c *client) call(t *testing.T, r record, do func(*record)) record {
	t.Helper()
	r.client, r.before = c.id, c.now(t)
	r.call = time.Since(began).Nanoseconds()
	do(&r)
	r.ret = time.Since(began).Nanoseconds()
	r.after = c.now(t)
	return r
}

// began is the beginning of the test process's monotonic time.
var began = time.Now()

// take offers a job again if it is pending, and claims it.
func (c *client) take(t *testing.T, k known) {
	t.Helper()
	if c.claim == nil {
		r := c.call(t, record{job: k.job.ID}, func(r *record) {
			job, err := c.store.Dispatch(t.Context(), k.job.ID, k.job.DispatchAttempt)
			r.dispatch, r.err = job.DispatchAttempt, err
			if err == nil {
				c.board.offered(job)
				k.job = job
			}
		})
		if r.err == nil {
			c.records = append(c.records, r)
		}
		claim := claimOf(k.job, c.holder, c.board.turns.Add(1))
		c.claim = &claim
	}
	auth := leasestore.Authority{Holder: c.holder, Turn: c.claim.Turn}
	r := record{verb: model.Claim, job: c.claim.JobID, auth: auth, request: c.claim.RequestID, dispatch: c.claim.DispatchAttempt}
	r = c.call(t, r, func(r *record) { r.lease, r.err = c.verbs.Claim(t.Context(), *c.claim) })
	c.learned(r)
	if !isUnknown(r.err) {
		c.claim = nil
	}
}

func (c *client) learned(r record) {
	c.records = append(c.records, r)
	if r.err == nil && r.lease.JobID != uuid.Nil {
		c.board.learn(r.lease)
	}
}

func (c *client) recover(t *testing.T) {
	t.Helper()
	if c.recovery == nil {
		request := recoveryBy(c.holder, c.board.turns.Add(1))
		c.recovery = &request
	}
	auth := leasestore.Authority{Holder: c.holder, Turn: c.recovery.Turn}
	var taken []leasestore.Recovered
	r := c.call(t, record{verb: model.Recover, auth: auth, request: c.recovery.RequestID}, func(r *record) {
		taken, r.err = c.verbs.Recover(t.Context(), *c.recovery)
	})
	for _, one := range taken {
		r.job, r.lease, r.ended, r.gone = one.Job.ID, one.Lease, one.Job, one.GivenUp
		c.learned(r)
	}
	if isUnknown(r.err) {
		for _, k := range c.board.jobs { // any of them, as the ledger will tell
			r.job = k.job.ID
			c.records = append(c.records, r)
		}
		return
	}
	c.recovery = nil
}
