package leasestore_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

func TestL20_ReconcileSaysWhatHasBecomeOfEachClaim(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	live := f.claim(f.queued("probe"), alice).Authority
	expired := f.claim(f.queued("probe"), alice).Authority
	recovered := f.claim(f.queued("probe"), alice).Authority
	completed := f.claim(f.queued("probe"), alice).Authority
	released := f.claim(f.queued("probe"), alice).Authority
	ended := f.claim(f.queued("probe"), alice).Authority
	taken := f.claim(f.queued("probe"), alice).Authority
	f.recovered(recovered.JobID)
	f.expire(expired.JobID)
	try(f.Complete(t.Context(), completed, leasestore.Outcome{})).or(t)
	try(f.Release(t.Context(), released, lost, true)).or(t)
	second := f.claim(f.dispatched(try(f.Release(t.Context(), ended, lost, true)).or(t)), bob)
	try(f.Fail(t.Context(), second.Authority, boom)).or(t)
	try(f.Prove(t.Context(), taken.By(bob, turn2), ttl)).or(t)
	forged, unknown := live, live
	forged.Token, unknown.JobID = leasestore.NewToken(), uuid.New()

	tests := []struct {
		name     string
		auth     leasestore.Authority
		state    leasestore.ClaimState
		status   leasestore.Status
		holder   leasestore.Holder
		epoch    int64
		recorded string
	}{
		{"live", live, leasestore.ClaimLive, leasestore.Running, alice, 1, ""},
		{"expired", expired, leasestore.ClaimExpired, leasestore.Running, alice, 1, ""},
		{"recovered", recovered, leasestore.ClaimChanged, leasestore.Running, bob, 2, ""},
		{"completed by this token", completed, leasestore.ClaimEnded, leasestore.Completed, leasestore.Holder{}, 1, "COMPLETED"},
		{"released by this token", released, leasestore.ClaimChanged, leasestore.Pending, leasestore.Holder{}, 1, "RELEASED/SYSTEM/LEASE_LOST"},
		{"failed by a later token", ended, leasestore.ClaimEnded, leasestore.Failed, leasestore.Holder{}, 2, "RELEASED/SYSTEM/LEASE_LOST"},
		{"taken over by another process", taken, leasestore.ClaimChanged, leasestore.Running, bob, 1, ""},
		{"another token", forged, leasestore.ClaimChanged, leasestore.Running, alice, 1, ""},
		{"an unknown job", unknown, leasestore.ClaimChanged, "", leasestore.Holder{}, 0, ""},
	}
	auths := make([]leasestore.Authority, len(tests))
	for i, tt := range tests {
		auths[i] = tt.auth
	}
	before := read[string](f, `select string_agg(l::text, ',' order by job_id) from leasehold.lease l`)
	reports := try(f.Reconcile(t.Context(), auths)).or(t)
	for i, tt := range tests {
		r := reports[i]
		if r.Authority != tt.auth || r.State != tt.state || r.Status != tt.status || r.Holder != tt.holder ||
			r.Epoch != tt.epoch || r.Recorded != tt.recorded || r.Ours != (tt.recorded != "") ||
			(r.Remaining > 0) != (tt.state == leasestore.ClaimLive) {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
	if after := read[string](f, `select string_agg(l::text, ',' order by job_id) from leasehold.lease l`); after != before {
		t.Error("reconciling changed a lease")
	}
	err := pgx.BeginTxFunc(t.Context(), f.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := leasestore.New(tx).Reconcile(t.Context(), auths)
		return err
	})
	if err != nil {
		t.Errorf("it is not read-only: %v", err)
	}
}
