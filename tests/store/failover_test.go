package store

import (
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// A primary changes a job's owner and dies; the standby that is promoted has
// not heard of it. Without synchronous replication the old token lives again
// there: that gap is documented. It ends when the first worker connects, claims
// or recovers: from then on the old token is dead and no epoch is issued twice.
//
// Seeded faults: the era left out of the epochs; enter_era without its end of
// all leases; entersEra out of the claim (with a connection from before the
// promotion).
func TestL26_AfterAFailoverThatLostCommitsNoEpochIsIssuedTwice(t *testing.T) {
	t.Parallel()
	primary := testenv.Postgres(t, "synchronous_commit=on")
	must(leasestore.Migrate(t.Context(), primary.URL())).or(t)
	before := at(t, primary.URL())
	before.apply("probe", leasestore.Heartbeat)
	job, waiting := before.queued("probe"), before.queued("probe")
	old := before.claim(job, alice)

	standby := testenv.Standby(t, primary)
	after := at(t, standby.URL()) // its connections are older than the promotion
	after.until(`select count(*) = 1 from leasehold.lease`)
	after.refuses(waiting, old)
	after.exec(`alter system set primary_conninfo = ''`)
	after.exec(`select pg_reload_conf()`)
	after.until(`select count(*) = 0 from pg_stat_wal_receiver`)

	released := must(before.Release(t.Context(), old.Authority, gone, true)).or(t)
	lost := before.claim(must(before.Dispatch(t.Context(), job.ID, released.DispatchAttempt)).or(t), bob)
	if lost.Epoch != old.Epoch+1 {
		t.Fatalf("the epochs are %d and %d", old.Epoch, lost.Epoch)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	after.exec(`select pg_promote()`)
	after.until(`select not pg_is_in_recovery()`)
	if state := must(after.Reconcile(t.Context(), []leasestore.Authority{old.Authority, lost.Authority})).or(t); state[0].State != leasestore.ClaimLive ||
		state[1].State != leasestore.ClaimChanged {
		t.Errorf("the documented gap is gone: the standby says %s and %s", state[0].State, state[1].State)
	}

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, err := after.Claim(t.Context(), request(waiting, bob))
			if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.NewEra || refused.Retry > ttl {
				t.Errorf("refused as %v", refused)
			}
		})
	}
	wg.Wait()
	if got := must(at(t, standby.URL()).EnterEra(t.Context())).or(t); got != 1 {
		t.Errorf("the era is %d", got)
	}
	for _, auth := range []leasestore.Authority{old.Authority, lost.Authority} {
		_, err := after.Complete(t.Context(), auth, leasestore.Outcome{})
		wants[*leasestore.LostError](t, err)
	}
	after.exec(`update leasehold.setting set raised_at = raised_at - interval '1 min'`) // a lease duration passes
	after.exec(`update leasehold.lease set next_check = clock_timestamp()`)
	got := must(after.Recover(t.Context(), recovery(bob))).or(t)
	if len(got) != 1 || got[0].Lease.Epoch != 1<<40+1 {
		t.Errorf("recovered %+v, want epoch 2^40 + 1", got)
	}
	if epoch := after.claim(waiting, alice).Epoch; epoch != 1<<40+1 {
		t.Errorf("claimed at epoch %d", epoch)
	}
	if v := must(after.Verify(t.Context())).or(t); len(v.Violations) != 0 {
		t.Errorf("the ledger says %+v", v.Violations)
	}
}

// refuses wants every change refused by a standby, by a type of its own.
func (f fixture) refuses(job leasestore.Job, lease leasestore.Lease) {
	f.t.Helper()
	ctx := f.t.Context()
	for verb, call := range map[string]func() error{
		"claim":    func() error { _, err := f.Claim(ctx, request(job, bob)); return err },
		"recover":  func() error { _, err := f.Recover(ctx, recovery(bob)); return err },
		"renew":    func() error { _, err := f.Renew(ctx, lease.Authority, time.Minute); return err },
		"complete": func() error { _, err := f.Complete(ctx, lease.Authority, leasestore.Outcome{}); return err },
		"enter":    func() error { _, err := f.EnterEra(ctx); return err },
		"apply":    func() error { f := f; _, err := f.SetPaused(ctx, "probe", true); return err },
	} {
		err := call()
		if _, ok := err.(interface{ Unwrap() error }); !ok {
			f.t.Errorf("%s on a standby: %v", verb, err)
		}
		wants[*leasestore.ReadOnlyError](f.t, err)
	}
}
