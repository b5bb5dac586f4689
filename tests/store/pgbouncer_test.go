package store

import (
	"cmp"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// Every verb works through PgBouncer in transaction mode, where each statement
// may run in another session, in the mode that a worker chooses. The session
// that a worker's statement used last is another worker's next.
func TestL22_EveryVerbWorksThroughPgBouncer(t *testing.T) {
	t.Parallel()
	direct := testenv.Database(t)
	through := testenv.PgBouncer(t, direct, 2)
	prepare := func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe }
	f, other := at(t, through, prepare), at(t, through, prepare)
	f.node("one", 40)
	f.apply("report", leasestore.Container)
	var wg sync.WaitGroup
	for _, store := range []fixture{f, other, f} {
		wg.Go(store.everyVerb)
	}
	wg.Wait()
	watch := at(t, direct)
	if left := read[int](watch, `select count(*) from pg_locks l join pg_database d on d.oid = l.database
	      where l.locktype = 'advisory' and d.datname = current_database()`); left != 0 {
		t.Errorf("%d advisory locks are left", left)
	}
	if v := must(watch.Verify(t.Context())).or(t); len(v.Violations) != 0 {
		t.Errorf("the ledger says %+v", v.Violations)
	}
}

// Why a worker must choose that mode: pgx's default prepares statements by name
// in one session and expects them in the next (PgBouncer 1.21 and later can
// carry them over), describe_exec expects its unnamed statement there, and exec
// does not ask for the types that the verbs' arguments need. Wherever a mode does
// not work, the verb says so and has done nothing.
func TestL22_OtherModesOfPgxDoNotSurviveAPooler(t *testing.T) {
	t.Parallel()
	through := testenv.PgBouncer(t, testenv.Database(t), 1)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec} {
		prepare := func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode }
		first, second := at(t, through, prepare), at(t, through, prepare)
		var refused error
		for range 3 {
			for _, f := range []fixture{first, second} {
				_, err := f.RegisterNode(t.Context(), leasestore.Node{ID: mode.String(), Endpoint: "e", Capacity: 1})
				refused = cmp.Or(refused, err)
				_, err = f.Reconcile(t.Context(), []leasestore.Authority{{}})
				refused = cmp.Or(refused, err)
			}
		}
		t.Logf("%s: %v", mode, refused)
	}
}

// everyVerb does each verb once. Other stores may do the same beside it.
func (f fixture) everyVerb() {
	f.t.Helper()
	ctx := f.t.Context()
	for _, c := range f.calls() {
		if _, err := c.send(f.Store); err != nil {
			f.t.Errorf("%s: %v", c.name, err)
		}
	}
	lease := f.claim(f.queued("report"), alice)
	auths := []leasestore.Authority{must(f.Prove(ctx, lease.Authority.By(bob, turn2), ttl)).or(f.t).Authority}
	must(f.Intend(ctx, auths[0], leasestore.CancelIntent, ttl)).or(f.t)
	if got := must(f.RenewAll(ctx, auths, ttl)).or(f.t); !got[0].Renewed && !got[0].Busy {
		f.t.Error("not renewed")
	}
	if got := must(f.Reconcile(ctx, auths)).or(f.t); got[0].State != leasestore.ClaimLive {
		f.t.Errorf("reconciled as %s", got[0].State)
	}
	_, err := f.Fail(ctx, lease.Authority, gone)
	wants[*leasestore.LostError](f.t, err)
	must(f.Cancel(ctx, auths[0], leasestore.Outcome{ExitCode: new(1), Warnings: []string{"a", "b"}, LogTail: "ä"})).or(f.t)
	failed := f.claim(f.queued("report"), bob)
	must(f.Fail(ctx, failed.Authority, gone)).or(f.t)
	job := f.queued("report")
	must(f.Requeue(ctx, job.ID, job.DispatchAttempt, time.Hour)).or(f.t)
	must(f.Withdraw(ctx, job.ID, gone.Failure)).or(f.t)
	must(f.SetPaused(ctx, "report", false)).or(f.t)
	must(f.RegisterNode(ctx, leasestore.Node{ID: job.ID.String(), Endpoint: "e", Capacity: 1, Labels: map[string]string{"a": "b"}})).or(f.t)
	must(f.DrainNode(ctx, job.ID.String())).or(f.t)
	must(f.RemoveNode(ctx, job.ID.String())).or(f.t)
	must(f.Job(ctx, job.ID)).or(f.t)
	must(f.Jobs(ctx, leasestore.JobFilter{Definition: "report", Limit: 3})).or(f.t)
	must(f.NextInLine(ctx, "report", 3)).or(f.t)
	must(f.Ledger(ctx, lease.JobID)).or(f.t)
	must(f.Definitions(ctx, 3)).or(f.t)
	must(f.Nodes(ctx)).or(f.t)
	must(f.EnterEra(ctx)).or(f.t)
	must(f.Prune(ctx, time.Hour, 10)).or(f.t)
	must(f.MigrationStatus(ctx)).or(f.t)
	if err := f.CheckSchema(ctx); err != nil {
		f.t.Error(err)
	}
}
