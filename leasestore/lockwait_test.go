package leasestore_test

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/leasestore"
)

// blockers make another statement wait for the lease's row, and let it go
// without having changed what it judges.
var blockers = map[string]struct{ take, release string }{
	"that only locks":                   {`select from leasehold.lease for update`, `commit`},
	"whose update is rolled back":       {`update leasehold.lease set expires_at = expires_at + interval '1 h'`, `rollback`},
	"whose update is of something else": {`update leasehold.lease set next_check = next_check + interval '1 h'`, `commit`},
}

// A lease that runs out while a verb waits for its row has run out, whatever
// the other transaction did. Each cell steps two connections. Seeded faults:
// `for update` dropped from held; the same with `expires_at > clock_timestamp()`
// in the update; `clock_timestamp() as decided_at` as statement_timestamp().
func TestCase10_AVerbThatWaitsForTheRowJudgesAfterTheWait(t *testing.T) {
	t.Parallel()
	for verb, act := range holding {
		for name, blocker := range blockers {
			t.Run(verb+" behind a transaction "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				lease := f.placed()
				for !f.outlivedBehind(lease, blocker.take, blocker.release, act) {
					t.Log("the lease ran out before the verb had begun: again")
				}
			})
		}
	}
}

// outlivedBehind runs a verb behind a blocker until its lease has run out, and
// checks that it is refused. It returns false if the lease was too short for
// this machine: the verb must begin while it is live.
func (f fixture) outlivedBehind(lease leasestore.Lease, take, release string, act func(fixture, leasestore.Authority) error) bool {
	f.t.Helper()
	f.exec(`update leasehold.lease set expires_at = clock_timestamp() + interval '400 ms'`)
	conn := try(f.pool.Acquire(f.t.Context())).or(f.t)
	defer conn.Release()
	try(conn.Exec(f.t.Context(), "begin")).or(f.t)
	try(conn.Exec(f.t.Context(), take)).or(f.t)

	answered := make(chan error, 1)
	go func() { answered <- act(f, lease.Authority) }()
	f.waitForWaiters(1)
	inTime := read[bool](f, `select bool_and(a.query_start < l.expires_at) from pg_stat_activity a, leasehold.lease l
	                          where a.datname = current_database() and a.wait_event_type = 'Lock'`)
	for !read[bool](f, `select clock_timestamp() > expires_at from leasehold.lease`) {
	}
	try(conn.Exec(f.t.Context(), release)).or(f.t)
	before := f.row(lease.JobID)
	err := <-answered
	if !inTime {
		_, lost := errors.AsType[*leasestore.LostError](err)
		return !lost
	}
	wantsLost(f.t, err, leasestore.Expired)
	if after := f.row(lease.JobID); after != before {
		f.t.Errorf("the refused verb changed the row\n%s\n%s", before, after)
	}
	return true
}
