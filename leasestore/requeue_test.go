package leasestore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// The head of a line whose workflow is gone would block all behind it. Seeded
// faults: the dispatch attempt not compared; the status not compared.
func TestARequeuedJobStandsInNobodysWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 1))
	head, next := f.queued("probe"), f.queued("probe")
	_, err := f.Claim(t.Context(), request(next, bob))
	if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.BehindAnother || refused.Blocker != "job "+head.ID.String() {
		t.Fatalf("refused as %v", refused)
	}
	for range 2 {
		job := try(f.Requeue(t.Context(), head.ID, head.DispatchAttempt, time.Hour)).or(t)
		if job.Status != leasestore.Pending || job.Wait < 59*time.Minute || job.DispatchAttempt != 1 {
			t.Errorf("the job is %+v", job)
		}
	}
	_, err = f.Claim(t.Context(), request(head, alice))
	if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.NotQueued {
		t.Errorf("refused as %v", refused)
	}
	lease := f.claim(next, bob)
	_, err = f.Requeue(t.Context(), next.ID, next.DispatchAttempt, 0)
	if refused := wants[*leasestore.NotDueError](t, err); refused.Status != leasestore.Running {
		t.Errorf("refused as %v", refused)
	}
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
	f.exec(`update leasehold.job set next_attempt_at = clock_timestamp() where id = $1`, head.ID)
	again := try(f.Dispatch(t.Context(), head.ID, head.DispatchAttempt)).or(t)
	_, err = f.Requeue(t.Context(), head.ID, head.DispatchAttempt, 0)
	if refused := wants[*leasestore.NotDueError](t, err); refused.DispatchAttempt != again.DispatchAttempt {
		t.Errorf("an old offer was taken back: %v", refused)
	}
	_, err = f.Requeue(t.Context(), uuid.New(), 1, 0)
	wants[*leasestore.NotFoundError](t, err)
}

// At the limit of attempts a release ends the job with the failure of its last
// attempt: SYSTEM, unless that one failed by the user's own doing.
func TestL15_AtTheLimitTheLastFailureIsTheJobs(t *testing.T) {
	t.Parallel()
	for _, last := range []leasestore.Outcome{lost, boom} {
		f := newFixture(t)
		def := heartbeats("probe", 0)
		def.MaxAttempts, def.RetryUserFailures = 1, true
		f.apply(def)
		job := try(f.Release(t.Context(), f.claim(f.queued("probe"), alice).Authority, last, false)).or(t)
		if job.Status != leasestore.Failed || job.Failure != last.Failure {
			t.Errorf("the job is %+v", job)
		}
	}
}
