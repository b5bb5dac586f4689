package leasestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

func TestL17_RecoveryGivesEachLeaseANewTokenAndTheNextEpoch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.placed()
	try(f.Attach(t.Context(), old.Authority, "one", "c1", ttl)).or(t)
	f.expire(old.JobID)
	got := try(f.Recover(t.Context(), recovery(bob, 10))).or(t)
	if len(got) != 1 || got[0].GivenUp {
		t.Fatalf("recovered %+v", got)
	}
	lease, job := got[0].Lease, got[0].Job
	if lease.Token == old.Token || lease.Token == (leasestore.Token{}) || lease.Epoch != old.Epoch+1 || lease.Holder != bob || lease.Turn != turn2 {
		t.Errorf("the lease is %+v", lease)
	}
	if lease.NodeID != "one" || lease.Endpoint != "unix:///one" || lease.ContainerID != "c1" || lease.Generation != old.Generation {
		t.Errorf("the lease lost its place: %+v", lease)
	}
	if lease.Remaining > ttl || lease.Remaining < ttl-5*time.Second || job.Status != leasestore.Running || job.Epoch != 2 || job.Recoveries != 1 {
		t.Errorf("%s remain, the job is %+v", lease.Remaining, job)
	}
	try(f.Prove(t.Context(), lease.Authority, ttl)).or(t)
	if used := try(f.Nodes(t.Context())).or(t)[0].Used; used != 1 {
		t.Errorf("[L7] the recovered job uses %d slots", used)
	}
}

func TestL17_RecoveryTakesTheOldestFirstAndLeavesTheLive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	var jobs [5]uuid.UUID
	for i := range jobs {
		jobs[i] = f.claim(f.queued("probe"), alice).JobID
		f.exec(`update leasehold.lease set expires_at = clock_timestamp() - $2 * interval '1 s', next_check = clock_timestamp() - $2 * interval '1 s'
		         where job_id = $1`, jobs[i], i)
	}
	f.exec(`update leasehold.lease set expires_at = clock_timestamp() + interval '1 h', next_check = clock_timestamp() - interval '1 h' where job_id = $1`, jobs[0])
	var order []uuid.UUID
	for range 3 {
		for _, r := range try(f.Recover(t.Context(), recovery(bob, 2))).or(t) {
			order = append(order, r.Lease.JobID)
		}
	}
	if fmt.Sprint(order[:2]) != fmt.Sprint([]uuid.UUID{jobs[4], jobs[3]}) && fmt.Sprint(order[:2]) != fmt.Sprint([]uuid.UUID{jobs[3], jobs[4]}) || len(order) != 4 {
		t.Errorf("recovered %v of %v", order, jobs)
	}
	if !read[bool](f, `select next_check = expires_at from leasehold.lease where job_id = $1`, jobs[0]) {
		t.Error("the scan will look at a renewed lease each time")
	}
}

func TestL17_RecoverySentAgainTakesNothingMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	leases := map[uuid.UUID]leasestore.Lease{}
	for range 5 {
		leases[f.claim(f.queued("probe"), alice).JobID] = leasestore.Lease{}
	}
	f.exec(`update leasehold.job set recoveries = 10 where id = (select min(job_id::text)::uuid from leasehold.lease)`)
	f.expire()
	r := recovery(bob, 4)
	first := try(f.Recover(t.Context(), r)).or(t)
	if len(first) != 4 {
		t.Fatalf("recovered %d", len(first))
	}
	f.expire() // the fifth, and those that were just recovered
	f.exec(`update leasehold.lease set expires_at = clock_timestamp() + interval '1 h' where request_id = $1`, r.RequestID)
	again := try(f.Recover(t.Context(), r)).or(t)
	if len(again) != 4 {
		t.Fatalf("the same call returned %d, want 4", len(again))
	}
	for _, was := range first {
		for _, is := range again {
			if was.Job.ID == is.Job.ID && (was.GivenUp != is.GivenUp || was.Lease.Token != is.Lease.Token || was.Lease.Epoch != is.Lease.Epoch) {
				t.Error("the same call returned another ownership")
			}
		}
	}
	other := r
	other.Holder.Process = uuid.New()
	for _, is := range try(f.Recover(t.Context(), other)).or(t) {
		if !is.GivenUp {
			t.Error("[case 21] a new process of the same worker got the leases of the old one")
		}
	}
	for i, was := range first { // one has changed hands, one has ended, one is out of time
		switch {
		case was.GivenUp:
		case i%2 == 0:
			try(f.Complete(t.Context(), was.Lease.Authority, leasestore.Outcome{})).or(t)
		default:
			f.expire(was.Lease.JobID)
		}
	}
	for _, is := range try(f.Recover(t.Context(), r)).or(t) {
		if !is.GivenUp {
			t.Errorf("the same call returned a lease that is not live: %+v", is.Lease)
		}
	}
}

func TestL17_ACallThatOnlyGaveUpTakesNothingMoreEither(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	spent := f.claim(f.queued("probe"), alice)
	f.exec(`update leasehold.job set recoveries = 10`)
	f.expire(spent.JobID)
	r := recovery(bob, 10)
	try(f.Recover(t.Context(), r)).or(t)
	f.expire(f.claim(f.queued("probe"), alice).JobID)
	got := try(f.Recover(t.Context(), r)).or(t)
	if len(got) != 1 || !got[0].GivenUp || got[0].Job.ID != spent.JobID {
		t.Errorf("the same call returned %+v", got)
	}
}

// Case 25, one half: whoever recovers the job dies too. The other half, where
// settling releases it, ends by the limit of attempts: see release_test.go.
func TestL16_AJobThatKeepsLosingItsLeaseEndsAsFailed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.placed()
	other := f.claim(f.queued("report"), alice)
	for range 10 {
		lease = f.recovered(lease.JobID)
	}
	f.expire(lease.JobID)
	got := try(f.Recover(t.Context(), recovery(bob, 10))).or(t)
	if len(got) != 1 || !got[0].GivenUp || got[0].Lease != (leasestore.Lease{}) {
		t.Fatalf("recovered %+v", got)
	}
	job := got[0].Job
	if job.Status != leasestore.Failed || job.Failure.Kind != leasestore.SystemFailure || job.Failure.Reason != "LEASE_LOST" || job.EndedAt == nil {
		t.Errorf("the job is %+v", job)
	}
	_, err := f.Complete(t.Context(), lease.Authority, leasestore.Outcome{})
	wantsLost(t, err, leasestore.OwnerChanged)
	if used := try(f.Nodes(t.Context())).or(t)[0].Used; used != 1 {
		t.Errorf("%d slots are used, want that of the other job", used)
	}
	try(f.Renew(t.Context(), other.Authority, ttl)).or(t)
}

// After a failover that lost commits, the era keeps epochs from being issued twice.
func TestL26_ARaisedEraPrefixesAllLaterEpochs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	f.exec(`update leasehold.setting set era = era + 1`)
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
	if epoch := f.recovered(lease.JobID).Epoch; epoch != era+1 {
		t.Errorf("recovered at epoch %d, want %d", epoch, era+1)
	}
	if epoch := f.recovered(lease.JobID).Epoch; epoch != era+2 {
		t.Errorf("recovered at epoch %d, want %d", epoch, era+2)
	}
	if epoch := f.claim(f.queued("probe"), alice).Epoch; epoch != era+1 {
		t.Errorf("claimed at epoch %d, want %d", epoch, era+1)
	}
	f.exec(`update leasehold.setting set era = 4194303`)
	if epoch := f.recovered(lease.JobID).Epoch; epoch != 4194303*era+1 {
		t.Errorf("recovered at epoch %d in the last era", epoch)
	}
}

func TestARecoveryInAnotherIsolationIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	job := f.claimed()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		for name, verb := range map[string]func(*leasestore.Store) error{
			"recover": func(s *leasestore.Store) error { _, err := s.Recover(t.Context(), recovery(bob, 1)); return err },
			"claim": func(s *leasestore.Store) error {
				_, err := s.Claim(t.Context(), request(leasestore.Job{ID: job.JobID, Generation: 1, DispatchAttempt: 1}, bob))
				return err
			},
			"apply": func(s *leasestore.Store) error { _, err := s.Apply(t.Context(), heartbeats("probe", 9)); return err },
		} {
			err := pgx.BeginTxFunc(t.Context(), f.pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
				return verb(leasestore.New(tx))
			})
			if wants[*leasestore.InvalidError](t, err).Field != "transaction isolation" {
				t.Errorf("%s in %s: %v", name, level, err)
			}
		}
	}
}
