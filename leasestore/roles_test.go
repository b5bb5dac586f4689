package leasestore_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// as is a store whose connections have the rights of a role and no others.
func (f fixture) as(role string) fixture {
	f.t.Helper()
	config := f.pool.Config().Copy()
	config.ConnConfig.RuntimeParams["role"] = role
	return fixture{leasestore.New(testenv.PoolWith(f.t, config)), f.t, f.pool}
}

// withRoles is a database with the roles. They belong to the whole server, and
// other tests make them at the same time.
func withRoles(t *testing.T) fixture {
	t.Helper()
	f := newFixture(t)
	f.exec(leasestore.Roles())
	f.exec(leasestore.Roles())
	return f
}

func (f fixture) may(role, sql string, args ...any) error {
	f.t.Helper()
	return pgx.BeginFunc(f.t.Context(), f.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(f.t.Context(), "set local role "+role); err != nil {
			return err
		}
		_, err := tx.Exec(f.t.Context(), sql, args...)
		return err
	})
}

// Seeded faults: any one grant to the worker dropped.
func TestL23_TheWorkersRoleCanDoEveryVerb(t *testing.T) {
	t.Parallel()
	owner := withRoles(t)
	f := owner.as("leasehold_worker")
	check(t, f.CheckSchema(t.Context()))
	f.everyVerb()
	owner.promoted()
	if got := try(f.EnterEra(t.Context())).or(t); got != 1 {
		t.Errorf("entered era %d", got)
	}
}

// Seeded faults: update or delete on the ledger granted; execute left to public.
func TestL23_NoRoleCanDoMoreThanItsPart(t *testing.T) {
	t.Parallel()
	f := withRoles(t)
	lease := f.claimed()
	refused := map[string][]string{
		"leasehold_worker": {
			`update leasehold.ledger set epoch = epoch + 1`, `delete from leasehold.ledger`, `truncate leasehold.ledger`,
			`create table leasehold.mine (n int)`, `create function leasehold.mine() returns int language sql as 'select 1'`,
			`alter table leasehold.lease add column mine int`, `drop table leasehold.lease`, `delete from leasehold.job`,
			`update leasehold.setting set quorum = true`, `update leasehold.setting set kept_for = '0'`,
			`delete from leasehold.definition`, `insert into leasehold.goose_db_version (version_id, is_applied) values (9, true)`,
		},
		"leasehold_workload": {
			`select token from leasehold.lease`, `select from leasehold.lease`, `select from leasehold.job`, `select from leasehold.ledger`,
			`select from leasehold.setting`, `select leasehold.forget('0', 1)`, `select leasehold.enter_era(true)`,
			`update leasehold.lease set expires_at = 'infinity'`,
		},
		"leasehold_reader": {
			`select token from leasehold.lease`, `select * from leasehold.lease`, `select token from leasehold.ledger`,
			`update leasehold.job set status = 'CANCELED'`, `select leasehold.enter_era(true)`, `select leasehold.forget('0', 1)`,
			`select leasehold.guard('` + lease.JobID.String() + `', 1)`,
		},
	}
	for role, statements := range refused {
		for _, sql := range statements {
			if err := f.may(role, sql); err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s may %s: %v", role, sql, err)
			}
		}
	}
	check(t, f.may("leasehold_workload", `select leasehold.guard($1, $2)`, lease.JobID, lease.Epoch))
	if err := f.may("leasehold_workload", `select leasehold.guard($1, $2)`, lease.JobID, lease.Epoch+1); err == nil || !strings.Contains(err.Error(), "LH001") {
		t.Errorf("a dead epoch: %v", err)
	}
	check(t, f.may("leasehold_owner", `alter table leasehold.lease add column note text; create index on leasehold.ledger (at)`))
}

func TestL23_AReaderSeesEverythingButTokens(t *testing.T) {
	t.Parallel()
	f := withRoles(t)
	lease := f.placed()
	try(f.Complete(t.Context(), f.claim(f.queued("report"), alice).Authority, leasestore.Outcome{})).or(t)
	reader := f.as("leasehold_reader")
	check(t, reader.CheckSchema(t.Context()))
	if got := try(reader.Lease(t.Context(), lease.JobID)).or(t); got.Epoch != 1 || got.NodeID != "one" || got.Token != (leasestore.Token{}) {
		t.Errorf("it sees %+v", got)
	}
	try(reader.Job(t.Context(), lease.JobID)).or(t)
	try(reader.Ledger(t.Context(), lease.JobID)).or(t)
	try(reader.NextInLine(t.Context(), "report", 1)).or(t)
	try(reader.MigrationStatus(t.Context())).or(t)
	if n := len(try(reader.Jobs(t.Context(), leasestore.JobFilter{})).or(t)) + len(try(reader.Nodes(t.Context())).or(t)) +
		len(try(reader.Definitions(t.Context(), 10)).or(t)); n != 4 {
		t.Errorf("it sees %d rows", n)
	}
	if v := try(reader.Verify(t.Context())).or(t); v.Ownerships != 2 {
		t.Errorf("it verifies %+v", v)
	}
}

// Everything lives in one schema, and each of its parts belongs to the owner and
// was thought of when rights were given.
func TestL23_EveryObjectIsInOneSchemaAndHasItsRights(t *testing.T) {
	t.Parallel()
	f := withRoles(t)
	if got := read[string](f, `select coalesce(string_agg(distinct table_schema, ','), '') from information_schema.tables
	      where table_schema not in ('pg_catalog', 'information_schema')`); got != "leasehold" {
		t.Errorf("tables are in the schemas %s", got)
	}
	if got := read[int](f, `select count(*) from pg_class where relnamespace = 'leasehold'::regnamespace and relowner <> 'leasehold_owner'::regrole`); got != 0 {
		t.Errorf("%d relations do not belong to the owner", got)
	}
	rows := try(f.pool.Query(t.Context(), `select relname::text from pg_class where relnamespace = 'leasehold'::regnamespace and relkind = 'r'
	      union all select proname::text from pg_proc where pronamespace = 'leasehold'::regnamespace`)).or(t)
	for _, name := range try(pgx.CollectRows(rows, pgx.RowTo[string])).or(t) {
		if !strings.Contains(leasestore.Roles(), "leasehold."+name) {
			t.Errorf("roles.sql does not name %s", name)
		}
	}
}

// everyVerb does each verb once, all of them as the fixture's store. Where the
// test must look or change behind the store's back it does so as superuser.
func (f fixture) everyVerb() {
	f.t.Helper()
	ctx := f.t.Context()
	lease := f.placed()
	for _, verb := range slices.Sorted(maps.Keys(holding)) {
		if err := holding[verb](f, f.claim(f.queued("report"), alice).Authority); err != nil {
			f.t.Errorf("%s: %v", verb, err)
		}
		f.exec(`with gone as (delete from leasehold.lease where job_id <> $1)
		        update leasehold.job set status = 'CANCELED', ended_at = clock_timestamp() where id <> $1 and ended_at is null`, lease.JobID)
	}
	auths := []leasestore.Authority{lease.Authority}
	if got := try(f.RenewAll(ctx, auths, ttl)).or(f.t); !got[0].Renewed {
		f.t.Error("not renewed")
	}
	if got := try(f.Reconcile(ctx, auths)).or(f.t); got[0].State != leasestore.ClaimLive {
		f.t.Errorf("reconciled as %s", got[0].State)
	}
	_, err := f.Complete(ctx, f.recovered(lease.JobID).By(alice, turn1), leasestore.Outcome{})
	wantsLost(f.t, err, leasestore.Superseded)
	limited := f.apply(heartbeats("probe", 1))
	job := f.queued(limited.Name)
	try(f.SetPaused(ctx, limited.Name, true)).or(f.t)
	try(f.Requeue(ctx, job.ID, job.DispatchAttempt, 0)).or(f.t)
	try(f.Withdraw(ctx, job.ID, boom.Failure)).or(f.t)
	try(f.DrainNode(ctx, "one")).or(f.t)
	f.node("two", 1, nil)
	try(f.RemoveNode(ctx, "two")).or(f.t)
	f.exec(`update leasehold.job set ended_at = ended_at - interval '2 h'`)
	if gone := try(f.Prune(ctx, 0, 1000)).or(f.t); len(gone) < len(holding) {
		f.t.Errorf("pruned %d jobs", len(gone))
	}
	if v := try(f.Verify(ctx)).or(f.t); len(v.Violations) != 0 || v.Ownerships != 2 {
		f.t.Errorf("verified as %+v", v)
	}
	try(f.NextInLine(ctx, limited.Name, 1)).or(f.t)
	try(f.Jobs(ctx, leasestore.JobFilter{Limit: 1})).or(f.t)
	try(f.Lease(ctx, lease.JobID)).or(f.t)
	try(f.Ledger(ctx, lease.JobID)).or(f.t)
	try(f.MigrationStatus(ctx)).or(f.t)
	_, err = f.Job(ctx, uuid.New())
	wants[*leasestore.NotFoundError](f.t, err)
}
