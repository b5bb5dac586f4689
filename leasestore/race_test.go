package leasestore_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// Three jobs of a definition that may run two are claimed at once, round after
// round. Seeded faults: the lock moved into the deciding statement; the shared
// lock taken instead.
func TestCase11_RacedClaimsNeverBreakTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	f.apply(heartbeats("probe", 2))
	jobs := []leasestore.Job{f.queued("probe"), f.queued("probe"), f.queued("probe")}
	violations := 0
	for range rounds {
		var errs [3]error
		race(func() { _, errs[0] = f.Claim(t.Context(), request(jobs[0], alice)) },
			func() { _, errs[1] = f.Claim(t.Context(), request(jobs[1], bob)) },
			func() { _, errs[2] = f.Claim(t.Context(), request(jobs[2], alice)) })
		granted := 0
		for _, err := range errs {
			if err == nil {
				granted++
			} else if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.LimitReached {
				t.Fatalf("refused as %s", refused.Reason)
			}
		}
		if granted > 2 {
			violations++
		} else if granted < 2 {
			t.Fatalf("%d of 2 runs were granted", granted)
		}
		f.exec(`with ended as (delete from leasehold.lease) update leasehold.job set status = 'QUEUED'`)
	}
	if violations > 0 {
		t.Errorf("the limit was broken in %d of %d rounds", violations, rounds)
	}
}

// The belt: where one may run, the database itself refuses a second lease.
func TestL5_TheIndexRefusesASecondLeaseWhereOneMayRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 1))
	first := f.queued("d")
	f.claim(first, alice)
	f.exec(`update leasehold.job set status = 'CANCELED', ended_at = clock_timestamp()`) // somebody's hand: the lease is still there
	_, err := f.Claim(t.Context(), request(f.queued("d"), bob))
	if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.Contended {
		t.Errorf("refused as %s", refused.Reason)
	}
	if got := read[int](f, `select count(*) from leasehold.lease`); got != 1 {
		t.Errorf("%d leases", got)
	}
}

// One job, many claimants: one lease.
func TestL5_OneOfManyClaimsOfAJobIsGranted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	for range 20 {
		job := f.queued("probe")
		var errs [6]error
		claims := make([]func(), len(errs))
		for i := range claims {
			claims[i] = func() {
				_, errs[i] = f.Claim(t.Context(), request(job, leasestore.Holder{Worker: "w", Process: uuid.New()}))
			}
		}
		race(claims...)
		granted := 0
		for _, err := range errs {
			if err == nil {
				granted++
			} else {
				wants[*leasestore.NotEligibleError](t, err)
			}
		}
		if granted != 1 {
			t.Fatalf("%d of 6 claims were granted", granted)
		}
	}
}

// A claim that waits for another one is decided when that has rolled back.
func TestCase12_AClaimBehindOneThatRollsBackIsGranted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 1))
	job := f.queued("d")
	tx := f.begin()
	try(leasestore.New(tx).Claim(t.Context(), request(job, alice))).or(t)
	done := make(chan attempt[leasestore.Lease], 1)
	go func() { done <- try(f.Claim(t.Context(), request(job, bob))) }()
	f.waitForWaiters(1)
	check(t, tx.Rollback(t.Context()))
	if lease := (<-done).or(t); lease.Holder != bob || lease.Epoch != 1 {
		t.Errorf("the lease is %+v", lease)
	}
}

// Renewals of many in any order, single ones, recoveries and endings of the
// same leases: nothing deadlocks. Seeded fault: order by and skip locked dropped
// from the batch renewal, unnest joined in the order asked.
func TestCase24_RenewalsAndRecoveriesNeverDeadlock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	rounds := 150
	if testing.Short() {
		rounds = 30
	}
	auths := make([]leasestore.Authority, 40)
	for i := range auths {
		auths[i] = f.claim(f.queued("probe"), alice).Authority
	}
	batch := func(seed uint64) func() {
		random, mine := rand.New(rand.NewPCG(seed, 1)), append([]leasestore.Authority{}, auths...)
		return func() {
			for range rounds {
				random.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
				if _, err := f.RenewAll(t.Context(), mine, ttl); err != nil {
					t.Error(err)
				}
			}
		}
	}
	single := func() {
		for i := range rounds {
			_, err := f.Prove(t.Context(), auths[i*7%len(auths)], ttl)
			if _, lost := errors.AsType[*leasestore.LostError](err); err != nil && !lost {
				t.Error(err)
			}
		}
	}
	recoverer := func() {
		for i := range rounds {
			if _, err := f.pool.Exec(t.Context(), `update leasehold.lease set next_check = statement_timestamp(),
			         expires_at = case when $2 then statement_timestamp() else expires_at end where job_id = $1`,
				auths[i*3%len(auths)].JobID, i%10 == 0); err != nil {
				t.Error(err)
			}
			if _, err := f.Recover(t.Context(), recovery(bob, 10)); err != nil {
				t.Error(err)
			}
		}
	}
	race(batch(1), batch(2), batch(3), single, recoverer, recoverer)
}
