package leasestore_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// era is the first epoch of era 1, less one.
const era = int64(1) << 40

// promoted makes the database look like a standby that was just promoted: its
// era began on another timeline. tests/store does it with a real one.
func (f fixture) promoted() {
	f.t.Helper()
	f.exec(`update leasehold.setting set timeline = '0000FFFF'`)
}

// settled makes a lease duration pass after the era was raised.
func (f fixture) settled() {
	f.t.Helper()
	f.exec(`update leasehold.setting set raised_at = raised_at - interval '1 h'`)
}

// Many processes notice a promotion at once. Seeded faults: enter_era does not
// look again after it has waited for the row; it does not lock the row.
func TestL26_AnEraIsRaisedOncePerPromotionHoweverManyNotice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	f.claimed()
	for want := int64(1); want <= 10; want++ {
		f.promoted()
		var calls []func()
		for range 3 {
			job := f.queued("probe")
			calls = append(calls,
				func() {
					_, err := f.Claim(t.Context(), request(job, alice))
					if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.NewEra {
						t.Errorf("refused as %s", refused.Reason)
					}
				},
				func() { try(f.Recover(t.Context(), recovery(bob, 10))).or(t) },
				func() {
					if got := try(f.EnterEra(t.Context())).or(t); got != want {
						t.Errorf("entered era %d, want %d", got, want)
					}
				})
		}
		race(calls...)
		if got := read[int64](f, `select era from leasehold.setting`); got != want {
			t.Fatalf("after %d promotions the era is %d", want, got)
		}
		f.settled()
	}
}

// The first claim, the first recovery or a call enters the era. Seeded faults:
// entersEra left out of the claim; out of the recovery; the epoch without its
// era; the wait left out of either.
func TestL26_OnANewTimelineNothingIsIssuedUntilLostLeasesHaveRunOut(t *testing.T) {
	t.Parallel()
	notices := map[string]func(fixture, leasestore.Job) error{
		"a claim": func(f fixture, job leasestore.Job) error {
			_, err := f.Claim(f.t.Context(), request(job, bob))
			refused := wants[*leasestore.NotEligibleError](f.t, err)
			if refused.Reason != leasestore.NewEra || refused.Retry <= ttl-5*time.Second || refused.Retry > ttl {
				f.t.Errorf("refused as %v, retry in %s", refused, refused.Retry)
			}
			return nil
		},
		"a recovery": func(f fixture, _ leasestore.Job) error {
			got, err := f.Recover(f.t.Context(), recovery(bob, 10))
			if len(got) != 0 {
				f.t.Errorf("recovered %+v", got)
			}
			return err
		},
		"a failover hook": func(f fixture, _ leasestore.Job) error { _, err := f.EnterEra(f.t.Context()); return err },
	}
	for name, notice := range notices {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			old := f.claimed()
			waiting, renewed := f.queued("probe"), f.claim(f.queued("probe"), alice)
			try(f.Renew(t.Context(), renewed.Authority, time.Hour)).or(t)
			f.promoted()
			check(t, notice(f, waiting))
			_, err := f.Complete(t.Context(), old.Authority, leasestore.Outcome{})
			wantsLost(t, err, leasestore.Expired)
			_, err = f.Renew(t.Context(), old.Authority, ttl)
			wantsLost(t, err, leasestore.Expired)
			_, err = f.Claim(t.Context(), request(waiting, bob))
			if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.NewEra {
				t.Errorf("refused as %v", refused)
			}
			f.exec(`update leasehold.lease set next_check = statement_timestamp() where job_id = $1`, old.JobID)
			if got := try(f.Recover(t.Context(), recovery(bob, 10))).or(t); len(got) != 0 {
				t.Error("a lease was recovered while one that the failover lost may be live")
			}
			f.settled()
			if epoch := f.claim(waiting, bob).Epoch; epoch != era+1 {
				t.Errorf("claimed at epoch %d", epoch)
			}
			got := try(f.Recover(t.Context(), recovery(bob, 10))).or(t)
			if len(got) != 1 || got[0].Job.ID != old.JobID || got[0].Lease.Epoch != era+1 {
				t.Errorf("recovered %+v, want only the lease whose holder cannot believe in it any more", got)
			}
			if found := try(f.Verify(t.Context())).or(t); len(found.Violations) != 0 {
				t.Errorf("the ledger says %+v", found.Violations)
			}
		})
	}
}

// Seeded fault: enter_era ends the leases whatever the operator vouches for.
func TestL26_WithQuorumCommitLeasesLiveThroughAPromotion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	check(t, f.SetQuorum(t.Context(), true))
	lease := f.claimed()
	f.promoted()
	if epoch := f.claim(f.queued("probe"), bob).Epoch; epoch != era+1 {
		t.Errorf("claimed at epoch %d, want the first of era 1", epoch)
	}
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
	if epoch := f.recovered(lease.JobID).Epoch; epoch != era+1 {
		t.Errorf("recovered at epoch %d", epoch)
	}
	if got := try(f.RaiseEra(t.Context())).or(t); got != 2 {
		t.Errorf("raised to %d", got)
	}
	_, err := f.Claim(t.Context(), request(f.queued("probe"), bob))
	if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.NewEra {
		t.Errorf("the operator's own word did not count: %v", refused)
	}
}

// A backup that is restored into another cluster has its own timeline 1. New
// connections see that.
func TestL26_ANewConnectionEntersTheEraOfItsCluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	f.exec(`update leasehold.setting set cluster = cluster - 1`)
	fresh := f.pool.Config().Copy()
	leasestore.Configure(fresh.ConnConfig)
	conn := connect(t, fresh.ConnConfig)
	check(t, conn.Ping(t.Context()))
	_, err := f.Renew(t.Context(), lease.Authority, ttl)
	wantsLost(t, err, leasestore.Expired)
	if got := try(f.EnterEra(t.Context())).or(t); got != 1 {
		t.Errorf("the era is %d", got)
	}
	empty := fresh.ConnConfig.Copy()
	empty.Database = "postgres"
	check(t, connect(t, empty).Ping(t.Context())) // no schema there
}

// Numbers around the limits of narrower types go in and come back, through SQL
// and JSON alike.
func TestIDsAndEpochsAreNotCutShort(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<53 - 1, 1 << 53, 4194303*era + era/2} {
		f := newFixture(t)
		f.apply(heartbeats("probe", 0))
		f.exec(`update leasehold.definition set generation = $1`, n)
		f.exec(`alter table leasehold.ledger alter column id restart with ` + strconv.FormatInt(n, 10))
		job := f.pending("probe")
		f.exec(`update leasehold.job set epoch = $1::bigint, dispatch_attempt = $1::bigint, attempt = $1::bigint, max_attempts = $1::bigint + 2`, n)
		job.DispatchAttempt = n
		r := request(f.dispatched(job), alice)
		r.Turn = n
		lease := try(f.Claim(t.Context(), r)).or(t)
		lease = try(f.Prove(t.Context(), lease.Authority, ttl)).or(t)
		var travelled leasestore.Authority
		check(t, json.Unmarshal(try(json.Marshal(lease.Authority)).or(t), &travelled))
		if answer := try(f.RenewAll(t.Context(), []leasestore.Authority{travelled}, ttl)).or(t); !answer[0].Renewed {
			t.Errorf("%d: not renewed", n)
		}
		second := f.recovered(lease.JobID)
		if lease.Epoch != n+1 || second.Epoch != n+2 || lease.Turn != n || lease.Generation != n {
			t.Errorf("%d: the leases are %+v and %+v", n, lease, second)
		}
		ended := try(f.Release(t.Context(), second.Authority, lost, false)).or(t)
		entries := try(f.Ledger(t.Context(), ended.ID)).or(t)
		if ended.Attempt != n+1 || ended.DispatchAttempt != n+1 || entries[0].ID != n || entries[0].Turn != n {
			t.Errorf("%d: the job is %+v, the ledger %+v", n, ended, entries)
		}
	}
	_, err := newFixture(t).Job(t.Context(), uuid.Max)
	wants[*leasestore.NotFoundError](t, err)
}
