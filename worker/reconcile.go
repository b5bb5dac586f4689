package worker

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// explainWithin is how long a refused lease may wait for the words of its
// refusal before its work is stopped without them.
const explainWithin = 200 * time.Millisecond

// refused stops the work of leases whose renewal was refused. The permit is
// free unless the lease is still this process's: then a later turn has proven
// it and is about to keep it.
func (k *keeper) refused(ctx context.Context, auths []leasestore.Authority) {
	if len(auths) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, explainWithin)
	defer cancel()
	reports, err := k.store.Reconcile(ctx, auths)
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, auth := range auths {
		id := owned(auth)
		e := k.kept[id]
		if e == nil || e.auth != auth {
			continue
		}
		report := leasestore.ClaimReport{Status: "UNKNOWN", Epoch: auth.Epoch}
		if err == nil {
			report = reports[i]
		}
		lost := lostBy(auth, report)
		if e.users > 0 {
			k.log.Warn("a lease is lost: its work is stopped", "error", lost)
		}
		k.remove(id, lost)
		if err != nil || report.State == leasestore.ClaimLive {
			k.await(auth)
		}
	}
	k.wake()
}

// lostBy words a refusal by what has become of the claim.
func lostBy(auth leasestore.Authority, report leasestore.ClaimReport) *leasestore.LostError {
	lost := &leasestore.LostError{
		Authority: auth, Reason: leasestore.OwnerChanged,
		Status: report.Status, Epoch: report.Epoch, Holder: report.Holder,
	}
	lost.Authority.Token = leasestore.Token{}
	switch report.State {
	case leasestore.ClaimExpired:
		lost.Reason = leasestore.Expired
	case leasestore.ClaimLive:
		lost.Reason = leasestore.Superseded
	case leasestore.ClaimChanged:
		if report.Epoch == auth.Epoch && report.Holder != (leasestore.Holder{}) {
			lost.Reason = leasestore.Superseded
		}
	case leasestore.ClaimEnded:
	}
	return lost
}

// reconcile frees the permits of leases that are no longer live.
func (k *keeper) reconcile(ctx context.Context) {
	k.mu.Lock()
	auths := make([]leasestore.Authority, 0, len(k.awaiting))
	for _, auth := range k.awaiting {
		auths = append(auths, auth)
	}
	k.mu.Unlock()
	for batch := range slices.Chunk(auths, inBatch) {
		k.reconcileBatch(ctx, batch)
	}
}

func (k *keeper) reconcileBatch(ctx context.Context, batch []leasestore.Authority) {
	ctx, cancel := context.WithTimeout(ctx, max(k.renew/2, min(time.Second, k.renew)))
	defer cancel()
	reports, err := k.store.Reconcile(ctx, batch)
	if err != nil {
		k.log.Warn("claims could not be reconciled, to be tried again", "claims", len(batch), "error", err)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, auth := range batch {
		if k.awaiting[owned(auth)] != auth || reports[i].State == leasestore.ClaimLive {
			continue
		}
		delete(k.awaiting, owned(auth))
		k.log.Info("a permit is free again", "lease", auth, "state", reports[i].State, "recorded", reports[i].Recorded)
	}
	k.wake()
}
