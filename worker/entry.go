package worker

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// entry is a kept lease. The keeper's lock guards it.
type entry struct {
	auth     leasestore.Authority
	deadline time.Time // local
	timer    *time.Timer
	holds    []*hold
	users    int       // holds that are not done
	idle     time.Time // since when there is no user
	covers   int       // holds that have a permit of their own
	again    bool      // the last renewal is unknown: try before the next round
}

// hold is one caller's use of a lease.
type hold struct {
	entry  *entry // nil once it is detached
	cancel context.CancelCauseFunc
	covers bool
	done   bool
}

// extend moves the deadline, never back: a lease is never shortened, so each
// answer holds that was ever true.
func (e *entry) extend(deadline time.Time) {
	if deadline.After(e.deadline) {
		e.deadline = deadline
		e.timer.Reset(time.Until(deadline))
	}
}

// attach adds a use of a lease.
func (k *keeper) attach(e *entry, h *hold) {
	h.entry = e
	e.holds = append(e.holds, h)
	e.users++
	if h.covers {
		k.cover(e, 1)
	}
}

// done ends a use. Its context lives on with the lease, until another use, a
// refusal or its end.
func (k *keeper) done(h *hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.done {
		return
	}
	h.done = true
	e := h.entry
	if e == nil {
		h.cancel(nil)
		return
	}
	if h.covers {
		k.cover(e, -1)
	}
	e.users--
	if e.users == 0 {
		e.idle = time.Now()
	}
}

// detach ends all uses of a lease with a cause. Without one, contexts that are
// in use go on until their user is done.
func (k *keeper) detach(e *entry, cause error) {
	for _, h := range e.holds {
		h.entry = nil
		if h.covers && !h.done {
			k.cover(e, -1)
		}
		if cause != nil || h.done {
			h.cancel(cause)
		}
	}
	e.holds, e.users, e.idle = nil, 0, time.Now()
}

// remove ends the keeping of a lease. It has no effect on its permit if the
// lease then awaits reconciliation.
func (k *keeper) remove(id ownership, cause error) {
	e, ok := k.kept[id]
	if !ok {
		return
	}
	delete(k.kept, id)
	e.timer.Stop()
	k.detach(e, cause)
}

// cover counts the permits that a lease's own activities have reserved: with
// one or more, the lease itself takes none.
func (k *keeper) cover(e *entry, change int) {
	before := e.covers
	e.covers += change
	switch {
	case before == 0 && e.covers > 0:
		k.covered++
	case before > 0 && e.covers == 0:
		k.covered--
	}
}

// idleFor says that nobody has used the lease for so long.
func (e *entry) idleFor(long time.Duration) bool {
	return e.users == 0 && time.Since(e.idle) >= long
}

// sorted are the leases to renew, those that end first in front.
func sorted(entries []*entry) []*entry {
	slices.SortFunc(entries, func(a, b *entry) int { return a.deadline.Compare(b.deadline) })
	return entries
}

// superseded is the end of an authority that a later turn took over from.
func superseded(old, by leasestore.Authority) *leasestore.LostError {
	old.Token = leasestore.Token{}
	return &leasestore.LostError{
		Authority: old, Reason: leasestore.Superseded,
		Status: leasestore.Running, Epoch: by.Epoch, Holder: by.Holder, Turn: by.Turn,
	}
}
