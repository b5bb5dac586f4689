package leasestore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

func TestL27_AChangeOfADefinitionRaisesItsGenerationAndTouchesNoRunningJob(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if first, again := f.apply(heartbeats("d", 2)), f.apply(heartbeats("d", 2)); first.Generation != 1 || again.Generation != 1 {
		t.Errorf("an unchanged definition is at generation %d, then %d", first.Generation, again.Generation)
	}
	running, waiting, pending := f.claim(f.queued("d"), alice), f.queued("d"), f.pending("d")
	before := f.row(running.JobID)
	changed := heartbeats("d", 3)
	changed.Retry = leasestore.Retry{MaxAttempts: 7, Backoff: time.Minute, RetryUserFailures: true}
	changed.OnExpiry, changed.NodeSelector = leasestore.Adopt, map[string]string{"a": "b"}
	if got := f.apply(changed); got.Generation != 2 || got.MaxRunning != 3 || got.Retry != changed.Retry || got.OnExpiry != leasestore.Adopt || got.NodeSelector["a"] != "b" {
		t.Errorf("the definition is %+v", got)
	}
	if f.row(running.JobID) != before {
		t.Error("a change touched a running job")
	}
	try(f.Renew(t.Context(), running.Authority, ttl)).or(t)
	for _, job := range []leasestore.Job{waiting, f.dispatched(pending)} {
		_, err := f.Claim(t.Context(), request(job, bob))
		if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.StaleDefinition {
			t.Errorf("refused as %s", refused.Reason)
		}
	}
	f.claim(f.queued("d"), bob)
}

func TestAPausedDefinitionRunsOnWhenItIsResumed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 0))
	job := f.queued("d")
	if got := try(f.SetPaused(t.Context(), "d", true)).or(t); !got.Paused || got.Generation != 1 {
		t.Errorf("the definition is %+v", got)
	}
	if got := try(f.SetPaused(t.Context(), "d", false)).or(t); got.Paused {
		t.Errorf("the definition is %+v", got)
	}
	f.claim(job, alice)
	_, err := f.SetPaused(t.Context(), "other", true)
	wants[*leasestore.NotFoundError](t, err)
}

// Seeded fault: SetPaused without the lock of the definition.
func TestOnceAPauseHasReturnedNoClaimIsGranted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 0))
	job := f.queued("d")
	tx := f.begin()
	try(leasestore.New(tx).Claim(t.Context(), request(job, alice))).or(t)
	paused := make(chan error, 1)
	go func() { _, err := f.SetPaused(t.Context(), "d", true); paused <- err }()
	f.waitForWaiters(1)
	check(t, tx.Commit(t.Context()))
	check(t, <-paused)
}

func TestAnEnqueuedJobIsFoundAgainByItsIDAndByItsKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 0))
	f.apply(heartbeats("e", 0))
	r := leasestore.EnqueueRequest{JobID: uuid.New(), Definition: "d", Generation: 1, IdempotencyKey: "monday", WorkflowID: "w", ScheduledAt: time.Now().Add(time.Hour)}
	first := try(f.Enqueue(t.Context(), r)).or(t)
	if first.Status != leasestore.Pending || first.Wait < 59*time.Minute || first.IdempotencyKey != "monday" {
		t.Errorf("the job is %+v", first)
	}
	sameKey := r
	sameKey.JobID = uuid.New()
	for _, again := range []leasestore.EnqueueRequest{r, sameKey} {
		if job := try(f.Enqueue(t.Context(), again)).or(t); job.ID != first.ID {
			t.Error("the same request made another job")
		}
	}
	otherDefinition := r
	otherDefinition.Definition = "e"
	_, err := f.Enqueue(t.Context(), otherDefinition)
	wants[*leasestore.ConflictError](t, err)
	otherGeneration := r
	otherGeneration.JobID, otherGeneration.IdempotencyKey, otherGeneration.Generation = uuid.New(), "", 2
	_, err = f.Enqueue(t.Context(), otherGeneration)
	wants[*leasestore.ConflictError](t, err)
	_, err = f.Enqueue(t.Context(), leasestore.EnqueueRequest{JobID: uuid.New(), Definition: "none"})
	wants[*leasestore.NotFoundError](t, err)
}

func TestJobsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 1))
	f.apply(heartbeats("e", 0))
	first, second, other := f.queued("d"), f.queued("d"), f.pending("e")
	if jobs := try(f.Jobs(t.Context(), leasestore.JobFilter{})).or(t); len(jobs) != 3 || jobs[0].ID != other.ID || jobs[2].ID != first.ID {
		t.Errorf("all jobs are %v", jobs)
	}
	if jobs := try(f.Jobs(t.Context(), leasestore.JobFilter{Definition: "d", Status: leasestore.Queued, WorkflowID: "run d", Limit: 1})).or(t); len(jobs) != 1 || jobs[0].ID != second.ID {
		t.Errorf("the filtered jobs are %v", jobs)
	}
	if line := try(f.NextInLine(t.Context(), "d", 5)).or(t); len(line) != 2 || line[0].ID != first.ID {
		t.Errorf("next in line are %v", line)
	}
	if line := try(f.NextInLine(t.Context(), "e", 5)).or(t); len(line) != 0 {
		t.Errorf("next in line without a limit are %v", line)
	}
	if defs := try(f.Definitions(t.Context(), 10)).or(t); len(defs) != 2 || defs[0].Name != "d" {
		t.Errorf("the definitions are %v", defs)
	}
	_, err := f.Lease(t.Context(), first.ID)
	wants[*leasestore.NotFoundError](t, err)
	if lease := try(f.Lease(t.Context(), f.claim(first, alice).JobID)).or(t); lease.Token != (leasestore.Token{}) || lease.Holder != alice {
		t.Errorf("the lease to show is %+v", lease)
	}
}
