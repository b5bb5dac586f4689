package worker

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// fakeStore is the database as a keeper sees it, with its own faults.
type fakeStore struct {
	mu    sync.Mutex
	rows  map[uuid.UUID]row
	down  error         // every call fails with it
	hangs bool          // calls wait for their context's end
	took  time.Duration // how long each call takes
	busy  map[uuid.UUID]bool
	calls int
	asked [][]leasestore.Authority
	until []time.Time // the deadline of each renewal's context
}

type row struct {
	auth    leasestore.Authority
	expires time.Time
	status  leasestore.Status
}

func newFakeStore() *fakeStore {
	return &fakeStore{rows: map[uuid.UUID]row{}, busy: map[uuid.UUID]bool{}}
}

var me = leasestore.Holder{Worker: "me", Process: uuid.New()}

// lease makes a live lease of this process.
func (f *fakeStore) lease(turn int64) leasestore.Lease {
	auth := leasestore.Authority{
		JobID: uuid.New(), Token: leasestore.NewToken(), Generation: 1, Epoch: 1, Holder: me, Turn: turn,
	}
	return f.prove(auth)
}

// prove is what an activity does before it keeps a lease.
func (f *fakeStore) prove(auth leasestore.Authority) leasestore.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[auth.JobID] = row{auth, time.Now().Add(testLease), leasestore.Running}
	return leasestore.Lease{Authority: auth, Remaining: testLease, Deadline: time.Now().Add(testLease)}
}

func (f *fakeStore) end(auth leasestore.Authority) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[auth.JobID] = row{status: leasestore.Completed}
}

func (f *fakeStore) set(change func(*fakeStore)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeStore) reach(ctx context.Context) error {
	f.mu.Lock()
	f.calls++
	down, hangs, took := f.down, f.hangs, f.took
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(took):
		return down
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeStore) RenewAll(ctx context.Context, auths []leasestore.Authority, ttl time.Duration) ([]leasestore.Renewal, error) {
	sent := time.Now()
	until, _ := ctx.Deadline()
	f.set(func(f *fakeStore) { f.asked, f.until = append(f.asked, auths), append(f.until, until) })
	if err := f.reach(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	answers := make([]leasestore.Renewal, len(auths))
	for i, auth := range auths {
		answers[i].Authority = auth
		stored := f.rows[auth.JobID]
		switch {
		case f.busy[auth.JobID]:
			answers[i].Busy = true
		case stored.auth == auth && stored.expires.After(time.Now()):
			stored.expires = time.Now().Add(ttl)
			f.rows[auth.JobID] = stored
			answers[i].Renewed, answers[i].Remaining, answers[i].Deadline = true, ttl, sent.Add(ttl)
		}
	}
	return answers, nil
}

func (f *fakeStore) Reconcile(ctx context.Context, auths []leasestore.Authority) ([]leasestore.ClaimReport, error) {
	if err := f.reach(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	reports := make([]leasestore.ClaimReport, len(auths))
	for i, auth := range auths {
		stored := f.rows[auth.JobID]
		same := stored.auth.Token == auth.Token && stored.auth.Holder == auth.Holder
		reports[i] = leasestore.ClaimReport{
			Authority: auth, Status: stored.status, Epoch: stored.auth.Epoch, Holder: stored.auth.Holder,
		}
		switch {
		case same && stored.expires.After(time.Now()):
			reports[i].State = leasestore.ClaimLive
		case same:
			reports[i].State = leasestore.ClaimExpired
		case stored.status.Ended():
			reports[i].State = leasestore.ClaimEnded
		default:
			reports[i].State = leasestore.ClaimChanged
		}
	}
	return reports, nil
}
