package leasestore_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

func TestL6_AClaimSentAgainIsTheSameLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 1))
	r := request(f.queued("d"), alice)
	first := try(f.Claim(t.Context(), r)).or(t)
	again := try(f.Claim(t.Context(), r)).or(t)
	if again.Authority != first.Authority || !again.ExpiresAt.Equal(first.ExpiresAt) {
		t.Error("the same claim made another lease")
	}
	if got := read[int](f, `select count(*) from leasehold.ledger where event = 'CLAIMED'`); got != 1 {
		t.Errorf("the ledger has %d claims, want 1", got)
	}
}

func TestL6_AClaimWhoseLeaseIsNoLongerLiveIsOver(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(fixture, leasestore.Lease, *leasestore.ClaimRequest){
		"it expired":           func(f fixture, l leasestore.Lease, _ *leasestore.ClaimRequest) { f.expire(l.JobID) },
		"another recovered it": func(f fixture, l leasestore.Lease, _ *leasestore.ClaimRequest) { f.recovered(l.JobID) },
		"it was completed": func(f fixture, l leasestore.Lease, _ *leasestore.ClaimRequest) {
			try(f.Complete(f.t.Context(), l.Authority, leasestore.Outcome{})).or(f.t)
		},
		"it was released and offered again": func(f fixture, l leasestore.Lease, _ *leasestore.ClaimRequest) {
			f.dispatched(try(f.Release(f.t.Context(), l.Authority, lost, true)).or(f.t))
		},
		"the process is another": func(_ fixture, _ leasestore.Lease, r *leasestore.ClaimRequest) { r.Holder.Process = uuid.New() },
		"the worker is another":  func(_ fixture, _ leasestore.Lease, r *leasestore.ClaimRequest) { r.Holder.Worker = "carol" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.apply(heartbeats("d", 0))
			r := request(f.queued("d"), alice)
			since(f, try(f.Claim(t.Context(), r)).or(t), &r)
			_, err := f.Claim(t.Context(), r)
			if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.ClaimOver {
				t.Errorf("refused as %s, want CLAIM_OVER", refused.Reason)
			}
		})
	}
}
