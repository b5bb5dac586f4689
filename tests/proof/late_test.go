package proof

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// pausing puts a clock in front of PostgreSQL's own that waits for a lock: it
// holds the scan of a recovery between its snapshot and its first row lock, as
// a stopped backend or a slow disk would.
const pausing = `
create schema paused;
create function paused.statement_timestamp() returns timestamptz language plpgsql volatile as $$
begin
    if current_query() like '%skip locked%' and current_query() like '%rotated%' then
        perform pg_advisory_xact_lock_shared(42);
    end if;
    return pg_catalog.statement_timestamp();
end $$`

// A recovery's snapshot is from before another recovery committed, and its row
// lock from after the lease that this one made had run out again: the explorer's
// trace of "epoch from an old snapshot", played on PostgreSQL. The second must
// count on from the epoch of the first. Seeded fault: next_epoch from the job's
// row as the statement's snapshot has it.
func TestL17_ARecoveryWithAnOldSnapshotGrantsANewEpoch(t *testing.T) {
	t.Parallel()
	s := newScene(t, 0)
	s.exec(pausing)
	job := s.queued()
	try(s.Claim(t.Context(), claimOf(job, newHolder("alice"), 1))).or(t)
	s.waitFor(`select expires_at <= clock_timestamp() from leasehold.lease`)

	first := try(s.pool.Begin(t.Context())).or(t)
	defer first.Rollback(t.Context())
	one := try(leasestore.New(first).Recover(t.Context(), recoveryBy(newHolder("bob"), 2))).or(t)
	s.waitFor(`select $1 <= clock_timestamp()`, one[0].ExpiresAt)

	gate := try(s.pool.Begin(t.Context())).or(t)
	defer gate.Rollback(t.Context())
	try(gate.Exec(t.Context(), `select pg_advisory_xact_lock(42)`)).or(t)
	late := try(pgxpool.New(t.Context(), s.pool.Config().ConnString()+"&search_path=paused,pg_catalog")).or(t)
	defer late.Close()
	answered := make(chan attempt[[]leasestore.Recovered], 1)
	go func() {
		answered <- try(leasestore.New(late).Recover(t.Context(), recoveryBy(newHolder("carol"), 3)))
	}()
	s.waitFor(`select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`)
	try(0, first.Commit(t.Context())).or(t)
	try(0, gate.Rollback(t.Context())).or(t)

	for _, two := range (<-answered).or(t) {
		if two.Epoch <= one[0].Epoch {
			t.Errorf("epoch %d was granted to bob, and epoch %d to carol after him", one[0].Epoch, two.Epoch)
		}
	}
	for _, violation := range s.checked() {
		t.Error(violation)
	}
}
