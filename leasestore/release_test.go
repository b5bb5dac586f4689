package leasestore_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// reclaimed offers and claims a released job, which is made due by SQL.
func (f fixture) reclaimed(job leasestore.Job) leasestore.Lease {
	f.t.Helper()
	f.exec(`update leasehold.job set next_attempt_at = clock_timestamp() where id = $1`, job.ID)
	return f.claim(f.dispatched(job), alice)
}

func TestL15_AReleasedJobWaitsByTheRetryPolicyAndEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	def := heartbeats("probe", 0)
	def.MaxAttempts, def.Backoff = 6, time.Minute
	f.apply(def)
	lease := f.claim(f.queued("probe"), alice)
	for attempt, want := range []time.Duration{1, 2, 4, 8, 8} {
		job := try(f.Release(t.Context(), lease.Authority, lost, false)).or(t)
		if job.Status != leasestore.Pending || job.Attempt != int64(attempt+1) || job.EndedAt != nil {
			t.Fatalf("the job is %+v", job)
		}
		if low, high := want*time.Minute*88/100, want*time.Minute*111/100; job.Wait < low || job.Wait > high {
			t.Errorf("after attempt %d it waits %s, want about %s", attempt+1, job.Wait, want*time.Minute)
		}
		_, err := f.Dispatch(t.Context(), job.ID, job.DispatchAttempt)
		if early := wants[*leasestore.NotDueError](t, err); early.Wait <= 0 || early.Status != leasestore.Pending {
			t.Errorf("refused as %v", early)
		}
		again := f.reclaimed(job)
		if again.Epoch != lease.Epoch+1 || again.Token == lease.Token {
			t.Fatalf("the next lease is %+v", again)
		}
		lease = again
	}
	job := try(f.Release(t.Context(), lease.Authority, lost, false)).or(t)
	if job.Status != leasestore.Failed || job.Attempt != 6 || job.EndedAt == nil || job.Failure != lost.Failure {
		t.Errorf("at the limit the job is %+v", job)
	}
	try(f.Release(t.Context(), lease.Authority, lost, false)).or(t)
}

// Case 25, the other half: every run dies, recovery settles by release.
func TestCase25_AJobWhoseEveryRunDiesEndsAndOthersGoOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 1))
	lease := f.claim(f.queued("probe"), alice)
	job := leasestore.Job{}
	for !job.Status.Ended() {
		job = try(f.Release(t.Context(), f.recovered(lease.JobID).Authority, lost, false)).or(t)
		if !job.Status.Ended() {
			lease = f.reclaimed(job)
		}
		if job.Attempt > 3 {
			t.Fatal("it went on after the limit of attempts")
		}
	}
	if job.Status != leasestore.Failed || job.Attempt != 3 || job.Epoch != 6 {
		t.Errorf("the job is %+v", job)
	}
	f.claim(f.queued("probe"), alice)
}

func TestAFreeReleaseCostsNoAttemptAndNoWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	def := heartbeats("probe", 0)
	def.MaxAttempts = 1
	f.apply(def)
	lease := f.claim(f.queued("probe"), alice)
	job := try(f.Release(t.Context(), lease.Authority, lost, true)).or(t)
	if job.Status != leasestore.Pending || job.Attempt != 0 || job.Wait != 0 {
		t.Errorf("the job is %+v", job)
	}
	f.claim(f.dispatched(job), alice)
}

func TestADispatchSentAgainIsConfirmed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	job := f.pending("probe")
	first, again := f.dispatched(job), f.dispatched(job)
	if first.Status != leasestore.Queued || first.DispatchAttempt != 1 || again.DispatchAttempt != 1 {
		t.Errorf("dispatched as %+v, then %+v", first, again)
	}
	f.claim(first, alice)
	_, err := f.Dispatch(t.Context(), job.ID, 0)
	if refused := wants[*leasestore.NotDueError](t, err); refused.Status != leasestore.Running {
		t.Errorf("refused as %v", refused)
	}
}

func TestWithdrawingEndsOnlyWhatNobodyOwns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	for _, job := range []leasestore.Job{f.pending("probe"), f.queued("probe")} {
		if got := try(f.Withdraw(t.Context(), job.ID, boom.Failure)).or(t); got.Status != leasestore.Canceled || got.Failure != boom.Failure {
			t.Errorf("the job is %+v", got)
		}
		if got := try(f.Withdraw(t.Context(), job.ID, lost.Failure)).or(t); got.Failure != boom.Failure {
			t.Errorf("withdrawn again, the job is %+v", got)
		}
	}
	lease := f.claim(f.queued("probe"), alice)
	if got := try(f.Withdraw(t.Context(), lease.JobID, boom.Failure)).or(t); got.Status != leasestore.Running {
		t.Errorf("a running job is %s", got.Status)
	}
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
}
