package leasestore_test

import (
	"sync"
	"testing"

	"github.com/leasehold/leasehold/leasestore"
)

// endings are the endings of an ownership, each with two outcomes.
var endings = map[string]struct {
	end         func(fixture, leasestore.Authority, leasestore.Outcome) (leasestore.Job, error)
	this, other leasestore.Outcome
	status      leasestore.Status
}{
	"complete": {func(f fixture, a leasestore.Authority, o leasestore.Outcome) (leasestore.Job, error) {
		return f.Complete(f.t.Context(), a, o)
	}, leasestore.Outcome{ExitCode: new(0)}, leasestore.Outcome{ExitCode: new(1)}, leasestore.Completed},
	"fail": {func(f fixture, a leasestore.Authority, o leasestore.Outcome) (leasestore.Job, error) {
		return f.Fail(f.t.Context(), a, o)
	}, boom, lateBoom, leasestore.Failed},
	"cancel": {func(f fixture, a leasestore.Authority, o leasestore.Outcome) (leasestore.Job, error) {
		return f.Cancel(f.t.Context(), a, o)
	}, leasestore.Outcome{}, boom, leasestore.Canceled},
	"release": {func(f fixture, a leasestore.Authority, o leasestore.Outcome) (leasestore.Job, error) {
		return f.Release(f.t.Context(), a, o, false)
	}, lost, boom, leasestore.Pending},
}

func TestL13_AnEndingIsConfirmedAgainAndNeverChanged(t *testing.T) {
	t.Parallel()
	for name, e := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			auth := f.claimed().Authority
			job := try(e.end(f, auth, e.this)).or(t)
			if job.Status != e.status || (job.EndedAt != nil) != e.status.Ended() {
				t.Fatalf("the job is %s, want %s", job.Status, e.status)
			}
			before := f.row(job.ID)
			if again := try(e.end(f, auth, e.this)).or(t); again.Status != e.status {
				t.Errorf("confirmed as %s", again.Status)
			}
			_, err := e.end(f, auth, e.other)
			ended := wants[*leasestore.EndedError](t, err)
			if ended.Recorded == "" || ended.Presented == ended.Recorded {
				t.Errorf("the refusal says %v", ended)
			}
			forged := auth
			forged.Token = leasestore.NewToken()
			_, err = e.end(f, forged, e.this)
			wantsLost(t, err, leasestore.OwnerChanged)
			if f.row(job.ID) != before {
				t.Error("a repeated ending changed the job")
			}
			for other, o := range endings {
				if other != name {
					_, err := o.end(f, auth, o.this)
					wants[*leasestore.EndedError](t, err)
				}
			}
			if got := read[int](f, `select count(*) from leasehold.ledger where event = 'REFUSED'`); got != 5 {
				t.Errorf("[L21] the ledger has %d refused endings, want 5", got)
			}
		})
	}
}

func TestL13_AnEndingOfAnEarlierOwnershipIsStillConfirmed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	auth := f.claimed().Authority
	job := try(f.Release(t.Context(), auth, lost, true)).or(t)
	second := f.claim(f.dispatched(job), bob)
	try(f.Release(t.Context(), auth, lost, true)).or(t)
	try(f.Renew(t.Context(), second.Authority, ttl)).or(t)
}

func TestACompletedJobHasNoFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.Complete(t.Context(), f.claimed().Authority, boom)
	wants[*leasestore.InvalidError](t, err)
}

func TestWhatAnOutcomeSaysIsStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outcome := boom
	outcome.Warnings, outcome.LogTail = []string{"slow\x00", "\xff"}, "last \x00 line"
	job := try(f.Fail(t.Context(), f.claimed().Authority, outcome)).or(t)
	if *job.ExitCode != 3 || job.Failure != boom.Failure || job.LogTail != "last \uFFFD line" ||
		len(job.Warnings) != 2 || job.Warnings[0] != "slow\uFFFD" || job.Warnings[1] != "\uFFFD" {
		t.Errorf("the job is %+v", job)
	}
}

// Seeded fault: token and epoch dropped from held.
func TestCase14_AnOwnerThatWasReplacedCannotEndItsSuccessorsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	auth := f.claimed().Authority
	f.recovered(auth.JobID)
	before := f.row(auth.JobID)
	for _, e := range endings {
		_, err := e.end(f, auth, e.this)
		if lost := wantsLost(t, err, leasestore.OwnerChanged); lost.Holder != bob || lost.Epoch != 2 {
			t.Errorf("the refusal names %+v at epoch %d", lost.Holder, lost.Epoch)
		}
	}
	if f.row(auth.JobID) != before {
		t.Error("the successor's row changed")
	}
}

// A lease runs out within the milliseconds in which its holder ends the job and
// another recovers it: at most one of them wins, and both do at times. Seeded
// fault: recovery chooses without a lock and rotates by job id.
func TestCase13_AnEndingAndARecoveryNeverBothWin(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	rounds, ends, recoveries := 300, 0, 0
	if testing.Short() {
		rounds = 40
	}
	for round := range rounds {
		lease := f.claim(f.queued("probe"), alice)
		f.exec(`update leasehold.lease set next_check = clock_timestamp(), expires_at = clock_timestamp() + $2 * interval '1 ms'
		         where job_id = $1`, lease.JobID, round%4)
		var ended error
		var taken []leasestore.Recovered
		race(func() { _, ended = f.Complete(t.Context(), lease.Authority, leasestore.Outcome{}) },
			func() { taken = try(f.Recover(t.Context(), recovery(bob, 10))).or(t) })
		if ended == nil {
			ends++
		} else {
			wants[*leasestore.LostError](t, ended)
		}
		recoveries += len(taken)
		events := read[int](f, `select count(*) from leasehold.ledger where job_id = $1 and event in ('COMPLETED', 'RECOVERED')`, lease.JobID)
		if ended == nil && len(taken) > 0 || events > 1 {
			t.Fatalf("round %d: ended with %v, recovered %d, %d events", round, ended, len(taken), events)
		}
		if ended != nil && len(taken) == 0 { // recovery passed over the locked row
			f.recovered(lease.JobID)
		}
	}
	if !testing.Short() && (ends == 0 || recoveries == 0) {
		t.Errorf("the race was no race: %d ends, %d recoveries", ends, recoveries)
	}
}

// race runs all at once and waits for all.
func race(all ...func()) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for _, one := range all {
		wg.Go(func() { <-gate; one() })
	}
	close(gate)
	wg.Wait()
}
