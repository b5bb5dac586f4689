package leasestore_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leasehold/leasehold/leasestore"
)

const guardSQL = `select leasehold.guard($1, $2)`

// Seeded fault: the try-lock of the guard replaced by true in recover.
func TestL19_RecoveryPassesOverAJobWhileItsGuardIsHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	guarded, other := f.claim(f.queued("probe"), alice), f.claim(f.queued("probe"), alice)
	tx := f.begin()
	try(tx.Exec(t.Context(), guardSQL, guarded.JobID, guarded.Epoch)).or(t)
	f.expire()
	got := try(f.Recover(t.Context(), recovery(bob, 10))).or(t)
	if len(got) != 1 || got[0].Lease.JobID != other.JobID {
		t.Fatalf("recovered %+v", got)
	}
	check(t, tx.Commit(t.Context()))
	f.expire(guarded.JobID)
	if got := try(f.Recover(t.Context(), recovery(bob, 10))).or(t); len(got) != 1 {
		t.Errorf("recovered %d after the guarded transaction", len(got))
	}
}

func TestG1_AGuardRaisesUnlessItsEpochIsLive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	try(f.pool.Exec(t.Context(), guardSQL, lease.JobID, lease.Epoch)).or(t)
	refused := func(when string, jobID uuid.UUID, epoch int64) {
		t.Helper()
		_, err := f.pool.Exec(t.Context(), guardSQL, jobID, epoch)
		if raised, ok := errors.AsType[*pgconn.PgError](err); !ok || raised.Code != "LH001" {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("another job", uuid.New(), lease.Epoch)
	refused("a later epoch", lease.JobID, lease.Epoch+1)
	refused("no epoch", lease.JobID, 0)
	f.expire(lease.JobID)
	refused("an expired lease", lease.JobID, lease.Epoch)
	second := f.recovered(lease.JobID)
	refused("a recovered lease", lease.JobID, lease.Epoch)
	try(f.pool.Exec(t.Context(), guardSQL, lease.JobID, second.Epoch)).or(t)
	try(f.Complete(t.Context(), second.Authority, leasestore.Outcome{})).or(t)
	refused("a job that has ended", lease.JobID, second.Epoch)
}

// Seeded fault: guard judges before it takes the lock.
func TestG1_AGuardThatWaitsForARecoveryJudgesAfterIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	tx := f.begin()
	try(tx.Exec(t.Context(), `select pg_advisory_xact_lock(hashtextextended('leasehold guard ' || $1::text, 0))`, lease.JobID)).or(t)
	answered := make(chan error, 1)
	go func() {
		_, err := f.pool.Exec(t.Context(), guardSQL, lease.JobID, lease.Epoch)
		answered <- err
	}()
	f.waitForWaiters(1) // the lease is live still
	f.expire(lease.JobID)
	if got := try(leasestore.New(tx).Recover(t.Context(), recovery(bob, 1))).or(t); len(got) != 1 {
		t.Fatalf("recovered %d", len(got))
	}
	check(t, tx.Commit(t.Context()))
	if raised, ok := errors.AsType[*pgconn.PgError](<-answered); !ok || raised.Code != "LH001" {
		t.Error("a guard of the old epoch passed after the recovery")
	}
}

func TestG1_AGuardNeedsReadCommittedAndNoRightOnTheTables(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	err := pgx.BeginTxFunc(t.Context(), f.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), guardSQL, lease.JobID, lease.Epoch)
		return err
	})
	if raised, ok := errors.AsType[*pgconn.PgError](err); !ok || raised.Code != "LH002" {
		t.Errorf("in REPEATABLE READ: %v", err)
	}
	role := pgx.Identifier{"workload_" + lease.JobID.String()}.Sanitize()
	f.exec(`create role ` + role)
	f.exec(`grant usage on schema leasehold to ` + role)
	err = pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		try(tx.Exec(t.Context(), `set local role `+role)).or(t)
		try(tx.Exec(t.Context(), guardSQL, lease.JobID, lease.Epoch)).or(t)
		_, err := tx.Exec(t.Context(), `select token from leasehold.lease`)
		return err
	})
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "42501" {
		t.Errorf("a workload may read tokens: %v", err)
	}
	f.exec(`drop owned by ` + role)
	f.exec(`drop role ` + role)
}
