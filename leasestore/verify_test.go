package leasestore_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// Each case puts one lie into a ledger that proves what it should.
func TestL21_TheLedgerProvesThatNoTwoOwnershipsOverlap(t *testing.T) {
	t.Parallel()
	const lie = `insert into leasehold.ledger (job_id, epoch, event, at, ran_out_at)
	             select job_id, epoch + $1, $2, at + $3::interval, at + $4::interval
	               from leasehold.ledger where event = 'RECOVERED'`
	tests := map[string]struct {
		epoch               int64
		event, at, ranOut   string
		previous            string
		want                string
		removeTheEndOfItAll bool
	}{
		"nothing":                          {},
		"a claim of an owned job":          {1, "CLAIMED", "1 s", "", "RECOVERED", "the job was claimed while it was owned", true},
		"an epoch issued twice":            {0, "RECOVERED", "1 s", "0 s", "RECOVERED", "an epoch was issued again", true},
		"a recovery of a live lease":       {1, "RECOVERED", "1 s", "2 s", "RECOVERED", "a lease was recovered before it had run out", true},
		"a recovery of a job that is free": {1, "RECOVERED", "1 h", "0 s", "COMPLETED", "a job that nobody owned was recovered", false},
		"an end by another":                {3, "FAILED", "1 h", "", "COMPLETED", "an ownership was ended by another", false},
		"something before its predecessor": {0, "FAILED", "-1 h", "", "COMPLETED", "it happened before its predecessor", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			lease := f.claimed()
			try(f.Prove(t.Context(), lease.Authority.By(bob, turn2), ttl)).or(t)
			second := f.recovered(lease.JobID)
			_, err := f.Complete(t.Context(), lease.Authority, leasestore.Outcome{})
			wantsLost(t, err, leasestore.OwnerChanged)
			try(f.Complete(t.Context(), second.Authority, leasestore.Outcome{})).or(t)
			try(f.Withdraw(t.Context(), f.pending("probe").ID, boom.Failure)).or(t)
			other := f.claim(f.queued("probe"), alice)
			try(f.Release(t.Context(), other.Authority, lost, true)).or(t)
			if tt.removeTheEndOfItAll {
				f.exec(`delete from leasehold.ledger where event = 'COMPLETED'`)
			}
			if tt.event != "" {
				var ranOut *string
				if tt.ranOut != "" {
					ranOut = &tt.ranOut
				}
				f.exec(lie, tt.epoch, tt.event, tt.at, ranOut)
			}
			got := try(f.Verify(t.Context())).or(t)
			switch {
			case tt.want == "" && (len(got.Violations) != 0 || got.Jobs != 2 || got.Ownerships != 3):
				t.Errorf("an honest ledger is verified as %+v", got)
			case tt.want != "" && (len(got.Violations) != 1 || got.Violations[0].Rule != tt.want || got.Violations[0].Previous != tt.previous):
				t.Errorf("verified as %+v, want %q after %s", got, tt.want, tt.previous)
			}
		})
	}
}

// Seeded faults: the ledger's entries stay; setting.kept_for is not looked at.
func TestPruneForgetsOldEndedJobsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	lease := f.claim(f.queued("probe"), alice)
	old, second, young := f.queued("probe"), f.queued("probe"), f.queued("probe")
	for i, job := range []leasestore.Job{old, second, young} {
		try(f.Withdraw(t.Context(), job.ID, boom.Failure)).or(t)
		f.exec(`update leasehold.job set ended_at = ended_at - $2 * interval '1 h' where id = $1`, job.ID, 4-2*i)
	}
	f.exec(`update leasehold.job set ended_at = ended_at - interval '50 min' where id = $1`, young.ID)
	for _, want := range []leasestore.Job{old, second} {
		if gone := try(f.Prune(t.Context(), time.Hour, 1)).or(t); len(gone) != 1 || gone[0] != want.ID {
			t.Errorf("pruned %v, want %s", gone, want.ID)
		}
		_, err := f.Job(t.Context(), want.ID)
		wants[*leasestore.NotFoundError](t, err)
		if entries := try(f.Ledger(t.Context(), want.ID)).or(t); len(entries) != 0 {
			t.Errorf("the ledger still has %v", entries)
		}
	}
	for _, age := range []time.Duration{time.Hour, 0} { // nothing goes in the first hour, whoever asks
		if gone := try(f.Prune(t.Context(), age, 1000)).or(t); len(gone) != 0 {
			t.Errorf("pruned %v", gone)
		}
	}
	try(f.Job(t.Context(), young.ID)).or(t)
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
}
