package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// renewer is what a keeper needs of a [leasestore.Store].
type renewer interface {
	RenewAll(ctx context.Context, auths []leasestore.Authority, ttl time.Duration) ([]leasestore.Renewal, error)
	Reconcile(ctx context.Context, auths []leasestore.Authority) ([]leasestore.ClaimReport, error)
}

// keeperOptions say how a keeper keeps.
type keeperOptions struct {
	store renewer
	lease time.Duration // what a renewal extends to
	renew time.Duration // between two renewals
	// permits is how many leases it may hold; 0 keeps without permits, and then
	// nothing is reconciled.
	permits int
	// unconfirmed is how many leases may await reconciliation before no permit
	// is given.
	unconfirmed int
	log         *slog.Logger
}

// keeper implements [activities.Keeper] for one worker process. A lease in it
// is in one of two states:
//
//	kept      renewed; its contexts end with it
//	awaiting  not renewed and not known to be over: only its permit is left
//
// Both take a permit. The goroutine of [keeper.start] renews and reconciles;
// the deadline of each lease has a timer of its own, so that a database that
// does not answer cannot delay it.
type keeper struct {
	keeperOptions

	mu       sync.Mutex
	kept     map[ownership]*entry
	awaiting map[ownership]leasestore.Authority
	reserved int           // permits taken by polls and activities of the claims queue
	covered  int           // kept leases whose permit is such a reserved one
	freed    chan struct{} // closed when a permit may have become free
	stopped  bool

	stop context.CancelFunc
	over chan struct{} // closed when the goroutine has ended
}

// ownership is what a permit is held for: a job's epoch.
type ownership struct {
	job   uuid.UUID
	epoch int64
}

func owned(auth leasestore.Authority) ownership { return ownership{auth.JobID, auth.Epoch} }

func newKeeper(options keeperOptions) *keeper {
	return &keeper{
		keeperOptions: options,
		kept:          map[ownership]*entry{}, awaiting: map[ownership]leasestore.Authority{},
		freed: make(chan struct{}),
	}
}

// errKeeperStopped ends the contexts of leases that nobody renews any longer.
// Another process may carry on with them.
var errKeeperStopped = errors.New("the worker has stopped: another carries on")

// Keep keeps a lease for work that needs no reserved permit.
func (k *keeper) Keep(ctx context.Context, lease leasestore.Lease) (held context.Context, done func()) {
	return k.keep(ctx, lease, false)
}

// claiming is the keeper as activities of the claims queue use it: each has
// reserved a permit, which covers the lease while the activity runs.
type claiming struct{ *keeper }

func (c claiming) Keep(ctx context.Context, lease leasestore.Lease) (held context.Context, done func()) {
	return c.keep(ctx, lease, true)
}

var (
	_ activities.Keeper = (*keeper)(nil)
	_ activities.Keeper = claiming{}
)

func (k *keeper) keep(ctx context.Context, lease leasestore.Lease, covers bool) (context.Context, func()) {
	held, cancel := context.WithCancelCause(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	id := owned(lease.Authority)
	if k.stopped {
		cancel(errKeeperStopped)
		return held, func() {}
	}
	if newest, known := k.newest(id); known && newest.Turn > lease.Turn {
		cancel(superseded(lease.Authority, newest))
		return held, func() {}
	}
	delete(k.awaiting, id)
	e := k.kept[id]
	switch {
	case e == nil:
		e = &entry{auth: lease.Authority}
		e.timer = time.AfterFunc(time.Until(k.local(lease.Deadline)), func() { k.ranOut(id, e) })
		k.kept[id] = e
	case e.auth.Turn < lease.Turn:
		k.detach(e, superseded(e.auth, lease.Authority))
		e.auth, e.again = lease.Authority, false
	}
	e.extend(k.local(lease.Deadline))
	h := &hold{cancel: cancel, covers: covers}
	k.attach(e, h)
	return held, func() { k.done(h) }
}

// newest is the authority that is known for an ownership.
func (k *keeper) newest(id ownership) (leasestore.Authority, bool) {
	if e, ok := k.kept[id]; ok {
		return e.auth, true
	}
	auth, ok := k.awaiting[id]
	return auth, ok
}

// local is when work must stop by this process's clock: somewhat before the
// lease ends.
func (k *keeper) local(deadline time.Time) time.Time {
	return deadline.Add(-min(k.lease/10, time.Second))
}

// Ended implements [activities.Keeper]. Contexts that are still in use go on:
// work that is done stays done.
func (k *keeper) Ended(jobID uuid.UUID, epoch int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := ownership{jobID, epoch}
	delete(k.awaiting, id)
	k.remove(id, nil)
	k.wake()
}

// Unconfirmed implements [activities.Keeper].
func (k *keeper) Unconfirmed(auth leasestore.Authority) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := owned(auth)
	newest, known := k.newest(id)
	if k.stopped || known && newest.Turn > auth.Turn {
		return
	}
	k.remove(id, superseded(newest, auth))
	k.await(auth)
}

// await keeps the permit of a lease that may still be live.
func (k *keeper) await(auth leasestore.Authority) {
	if k.permits > 0 {
		k.awaiting[owned(auth)] = auth
	}
	k.wake()
}

// ranOut is called by the timer of a lease.
func (k *keeper) ranOut(id ownership, e *entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept[id] != e {
		return
	}
	if left := time.Until(e.deadline); left > 0 { // renewed while the timer fired
		e.timer.Reset(left)
		return
	}
	if e.users > 0 {
		k.log.Warn("a lease ran out unconfirmed: its work is stopped", "lease", e.auth)
	}
	k.remove(id, activities.ErrDeadline)
	k.await(e.auth) // a renewal may have been made without our knowing
}
