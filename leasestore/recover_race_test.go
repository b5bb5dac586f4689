package leasestore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// A batch of leases that cannot be recovered now does not hide those behind it.
func TestCase2_GuardedJobsDoNotFillEveryBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	tx := f.begin()
	for i := range 12 {
		lease := f.claim(f.queued("probe"), alice)
		if i < 4 {
			try(tx.Exec(t.Context(), `select leasehold.guard($1, $2)`, lease.JobID, lease.Epoch)).or(t)
		}
		f.exec(`update leasehold.lease set expires_at = clock_timestamp() - interval '1 min', next_check = clock_timestamp() - interval '1 min' + $2 * interval '1 s'
		         where job_id = $1`, lease.JobID, i)
	}
	recovered := 0
	for range 3 {
		recovered += len(try(f.Recover(t.Context(), recovery(bob, 4))).or(t))
	}
	if recovered != 8 {
		t.Errorf("three calls recovered %d of 8", recovered)
	}
}

// Two recoverers with other lease durations judge alike. More leases are due for
// a look than one call moves on, so the decision itself is seen. Seeded fault:
// recovery goes by next_check and its own duration.
func TestCase16_OnlyTheStoredExpiryCounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	f.seedExpired(1100)
	f.exec(`update leasehold.lease set granted_at = clock_timestamp() - interval '1 h', next_check = clock_timestamp() - interval '1 h',
	               expires_at = clock_timestamp() + interval '1 h'`)
	for _, ttl := range []time.Duration{time.Second, time.Hour} {
		r := recovery(bob, 1000)
		r.TTL = ttl
		if got := try(f.Recover(t.Context(), r)).or(t); len(got) != 0 {
			t.Errorf("a recoverer with %s took %d live leases", ttl, len(got))
		}
	}
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
}

// A recovery that was held up between its scan and its decision takes nothing
// that was renewed meanwhile. Seeded fault: it waits between choosing without a
// lock and rotating by job id.
func TestCase18_ARecoveryThatStalledJudgesAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	f.exec(`update leasehold.lease set expires_at = clock_timestamp() - interval '1 s', next_check = clock_timestamp() - interval '1 s'`)
	gate := f.begin()
	r := recovery(bob, 10)
	// Recovery takes the lock of its request first; holding it stalls the call.
	try(gate.Exec(t.Context(), `select pg_advisory_xact_lock(hashtextextended('leasehold recovery ' || $1::text, 0))`, r.RequestID)).or(t)
	done := make(chan attempt[[]leasestore.Recovered], 1)
	go func() { done <- try(f.Recover(t.Context(), r)) }()
	f.waitForWaiters(1)
	f.exec(`update leasehold.lease set expires_at = clock_timestamp() + interval '1 h'`)
	check(t, gate.Commit(t.Context()))
	if got := (<-done).or(t); len(got) != 0 {
		t.Error("it recovered a lease that was renewed")
	}
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
}

// The same one step later: a renewal that is not committed when the scan runs.
// Seeded fault: candidates chosen without a lock, rotated by job id.
func TestCase1_ARenewalInFlightIsNotRecovered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	f.expire(lease.JobID)
	tx := f.begin()
	try(tx.Exec(t.Context(), `update leasehold.lease set expires_at = clock_timestamp() + interval '1 h'`)).or(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if got, err := f.Recover(ctx, recovery(bob, 10)); err != nil || len(got) != 0 {
		t.Errorf("it waited for a row that was locked, or recovered it: %d, %v", len(got), err)
	}
	check(t, tx.Commit(t.Context()))
	if got := try(f.Recover(t.Context(), recovery(bob, 10))).or(t); len(got) != 0 {
		t.Error("it recovered a lease that was renewed")
	}
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
}

// Seeded fault: candidates chosen without a lock, rotated by job id.
func TestCase26_ManyRecoverersTakeEachExpiredLeaseOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	expired := 10_000
	if testing.Short() {
		expired = 1_000
	}
	f.apply(heartbeats("probe", 0))
	f.seedExpired(expired)
	var mu sync.Mutex
	epochs := map[uuid.UUID]int64{}
	recoverer := func() {
		empty := 0
		for empty < 2 {
			got, err := f.Recover(t.Context(), recovery(leasestore.Holder{Worker: "r", Process: uuid.New()}, 100))
			if err != nil || len(got) > 100 {
				t.Errorf("recovered %d: %v", len(got), err)
				return
			}
			if len(got) == 0 {
				empty++
			}
			mu.Lock()
			for _, r := range got {
				if epochs[r.Lease.JobID] != 0 {
					t.Errorf("job %s was recovered twice", r.Lease.JobID)
				}
				epochs[r.Lease.JobID] = r.Lease.Epoch
			}
			mu.Unlock()
		}
	}
	race(recoverer, recoverer, recoverer, recoverer, recoverer, recoverer, recoverer, recoverer)
	for job, epoch := range epochs {
		if epoch != 2 {
			t.Fatalf("job %s is at epoch %d, want 2", job, epoch)
		}
	}
	if len(epochs) != expired || read[int](f, `select count(*) from leasehold.lease where epoch = 2`) != expired ||
		read[int](f, `select count(*) from leasehold.ledger where event = 'RECOVERED'`) != expired {
		t.Errorf("recovered %d of %d", len(epochs), expired)
	}
}

// seedExpired stores running jobs whose leases have run out, by SQL.
func (f fixture) seedExpired(n int) {
	f.t.Helper()
	f.exec(`insert into leasehold.job (id, definition, generation, kind, spec, max_attempts, backoff, retry_user_failures, on_expiry,
	               node_selector, workflow_id, status, attempt, epoch, scheduled_at, next_attempt_at)
	        select gen_random_uuid(), 'probe', 1, 'HEARTBEAT', '{}', 3, '30s', false, 'restart', '{}', '', 'RUNNING', 1, 1, now(), now()
	          from generate_series(1, $1::int)`, n)
	f.exec(`insert into leasehold.lease (job_id, token, generation, epoch, worker, process, turn, request_id, definition, exclusive,
	               granted_at, expires_at, next_check)
	        select id, gen_random_uuid(), 1, 1, 'gone', gen_random_uuid(), 1, gen_random_uuid(), definition, false,
	               now() - interval '2 min', now() - interval '1 min', now() - interval '1 min'
	          from leasehold.job where status = 'RUNNING'
	        on conflict do nothing`)
}
