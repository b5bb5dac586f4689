package cli

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

type finding struct{ Check, Result, Detail string }

func TestDoctorFindsADevWell(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for _, found := range read[[]finding](t, h, "doctor") {
		if found.Result != "ok" || found.Detail == "" {
			t.Errorf("%s: %s, %s", found.Check, found.Result, found.Detail)
		}
	}
	contains(t, h.ok(t, "doctor"), "CHECK", "read committed, on a direct connection", "leasehold-recovery every 15s", "1 that polled task queue leasehold")
}

func TestDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := shared(t)
	empty := h.database(t, "doctor-empty")
	strict := h.database(t, "doctor-strict")
	execute(t, strict, `alter database "doctor-strict" set default_transaction_isolation = 'serializable'`)
	execute(t, strict, `alter database "doctor-strict" set synchronous_commit = off`)
	tests := map[string]struct {
		vars map[string]string
		want []string
	}{
		"nothing is set": {map[string]string{"XDG_DATA_HOME": t.TempDir()}, []string{
			"configuration FAIL DATABASE_URL is not set",
			"database FAIL DATABASE_URL is not set",
			"schema - not checked", "Temporal - not checked",
		}},
		"nobody answers": {map[string]string{"DATABASE_URL": "postgres://u@127.0.0.1:1/d", "TEMPORAL_ADDRESS": "127.0.0.1:1"}, []string{
			"configuration ok ", "database FAIL PostgreSQL at 127.0.0.1:1 does not answer",
			"Temporal FAIL the Temporal server at 127.0.0.1:1 does not answer", "workers - not checked",
		}},
		"the schema is missing": {map[string]string{"DATABASE_URL": empty, "TEMPORAL_ADDRESS": "127.0.0.1:1"}, []string{
			"database ok ", "schema FAIL ", "leasehold migrate",
		}},
		"the database is set up badly": {map[string]string{"DATABASE_URL": strict, "TEMPORAL_ADDRESS": "127.0.0.1:1"}, []string{
			"transactions FAIL transactions are serializable by default", "durability FAIL synchronous_commit is off",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := h.with(tt.vars).run(t, "doctor")
			if got.code != 1 || !strings.Contains(got.err, " checks failed\n") {
				t.Errorf("exit code %d, and it said:\n%s", got.code, got.err)
			}
			contains(t, strings.Join(strings.Fields(got.out), " "), tt.want...)
		})
	}
}

func execute(t *testing.T, address, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestTheSchemaGoesUpAndDown(t *testing.T) {
	t.Parallel()
	h := shared(t)
	h = h.with(map[string]string{"DATABASE_URL": h.database(t, "steps")})
	got := h.run(t, "migrate", "status")
	if got.code != 2 || !strings.Contains(got.out, "missing: leasehold migrate applies it") {
		t.Errorf("before: exit code %d\n%s%s", got.code, got.out, got.err)
	}
	contains(t, h.ok(t, "migrate", "up"), "The schema is at version ")
	if out := h.ok(t, "migrate", "status"); strings.Contains(out, "missing") {
		t.Errorf("after: \n%s", out)
	}
	for _, args := range [][]string{{"migrate", "down", "--to", "0"}, {"migrate", "down", "--yes"}} {
		if got := h.run(t, args...); got.code != 2 {
			t.Errorf("%v: exit code %d\n%s", args, got.code, got.err)
		}
	}
	contains(t, h.ok(t, "migrate", "down", "--to", "0", "--yes"), "The schema is at version 0.")
	if got := h.run(t, "jobs", "list"); got.code != 2 {
		t.Errorf("a list without a schema: exit code %d\n%s%s", got.code, got.out, got.err)
	}
	contains(t, h.ok(t, "migrate", "print"), "create table leasehold.job")
	contains(t, h.ok(t, "migrate", "roles"), "leasehold_worker")
}

func TestVerifyAndPruneWorkOnTheLedger(t *testing.T) {
	t.Parallel()
	h := shared(t)
	address := h.database(t, "ledger")
	h = h.with(map[string]string{"DATABASE_URL": address})
	h.ok(t, "migrate")
	contains(t, h.ok(t, "verify"), "0 ownerships of 0 jobs: no two of a job overlapped.")
	withdrawn(t, address)
	contains(t, h.ok(t, "jobs", "prune", "--older-than", "30d"), "Forgot 0 jobs that ended more than 30d0h ago.")
	execute(t, address, `update leasehold.setting set kept_for = '0'`)
	if got := read[struct{ Forgotten int }](t, h, "jobs", "prune", "--older-than", "0s"); got.Forgotten != 1 {
		t.Errorf("%d jobs were forgotten, want 1", got.Forgotten)
	}
	id := withdrawn(t, address)
	execute(t, address, `insert into leasehold.ledger (job_id, epoch, event, at)
		select '`+id.String()+`', epoch, 'CLAIMED', clock_timestamp() from generate_series(1, 2) epoch`)
	got := h.run(t, "verify")
	if got.code != 1 || !strings.Contains(got.err, "breaks its rules once") {
		t.Errorf("exit code %d\n%s", got.code, got.err)
	}
	contains(t, got.out, id.String(), "the job was claimed while it was owned")
	if got := h.run(t, "jobs", "prune", "--older-than", "soon"); got.code != 2 {
		t.Errorf("a bad age: exit code %d\n%s", got.code, got.err)
	}
}

// withdrawn makes a job that has ended.
func withdrawn(t *testing.T, address string) uuid.UUID {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	store := leasestore.New(conn)
	id := uuid.New()
	_, err = store.Apply(t.Context(), leasestore.Definition{Name: "d", Kind: leasestore.Heartbeat, Spec: []byte(`{}`)})
	if err == nil {
		_, err = store.Enqueue(t.Context(), leasestore.EnqueueRequest{JobID: id, Definition: "d", WorkflowID: "w"})
	}
	if err == nil {
		_, err = store.Withdraw(t.Context(), id, leasestore.Failure{Kind: leasestore.UserFailure, Reason: "TEST", Message: "not needed"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestBenchMeasuresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	h := shared(t)
	report := read[struct{ Figures []any }](t, h, "bench", "--jobs", "1000", "--leases", "200", "--slices", "1", "--slice", "10ms",
		"--connections", "1", "--recover", "50", "--renew-every", "100ms", "--renew-for", "300ms")
	if len(report.Figures) == 0 {
		t.Error("it has no figures")
	}
	if got := h.run(t, "bench", "--jobs", "1"); got.code != 2 || !strings.Contains(got.err, "number of jobs") {
		t.Errorf("a bad number: exit code %d\n%s", got.code, got.err)
	}
	conn, err := pgx.Connect(t.Context(), h.parts(t)["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var left int
	if err := conn.QueryRow(t.Context(), `select count(*) from pg_database where datname like 'leasehold_bench_%'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases are left, %v", left, err)
	}
}
