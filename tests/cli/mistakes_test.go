package cli

import (
	"errors"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/leasestore"
)

// database makes an empty database in the dev's PostgreSQL.
func (h home) database(t *testing.T, name string) string {
	t.Helper()
	parts := h.parts(t)
	conn, err := pgx.Connect(t.Context(), parts["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	return databaseNamed(t, parts["DATABASE_URL"], name)
}

func databaseNamed(t *testing.T, address, name string) string {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	at.Path = "/" + name
	return at.String()
}

// mistake is bad input: arguments and variables, and what is said of them.
type mistake struct {
	args string
	vars map[string]string
	want string
}

func TestMistakesChangeNothing(t *testing.T) {
	t.Parallel()
	h := shared(t)
	// What is not set is that of the dev: each mistake is the only one.
	here := h.parts(t)
	empty, old := h.database(t, "empty"), h.database(t, "old")
	if _, err := leasestore.Migrate(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := leasestore.MigrateDown(t.Context(), old, 1); err != nil {
		t.Fatal(err)
	}
	ours := h.database(t, "mistakes")
	h.with(map[string]string{"DATABASE_URL": ours}).ok(t, "migrate")
	here["DATABASE_URL"] = ours
	execute(t, ours, "create role stranger login")
	before := rows(t, ours)

	tests := mistakes(t, here, empty, old)
	for name, tt := range tests {
		vars := maps.Clone(here)
		maps.Copy(vars, tt.vars)
		got := h.with(vars).run(t, strings.Fields(tt.args)...)
		if got.code != 2 || got.out != "" {
			t.Errorf("%s: exit code %d and output %q, want 2 and none", name, got.code, got.out)
		}
		if !strings.HasPrefix(got.err, "leasehold: ") || !strings.Contains(got.err, tt.want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: it said:\n%s\nwant one line with:\n%s", name, got.err, tt.want)
		}
	}
	if after := rows(t, ours); after != before {
		t.Errorf("the database had %s, and now it has %s", before, after)
	}
	if got := rows(t, old); got == "" {
		t.Error("the old schema is gone")
	}
	notStarted(t, here["TEMPORAL_ADDRESS"], "mistake")
}

func mistakes(t *testing.T, here map[string]string, empty, old string) map[string]mistake {
	t.Helper()
	file := func(text string) string { return "run --name mistake -f " + write(t, "job.yaml", text) }
	set := func(name, value string) map[string]string { return map[string]string{name: value} }
	const run = "run --name mistake --image busybox:1"
	nowhere := databaseNamed(t, here["DATABASE_URL"], "nowhere")
	near := set("EXECUTION_WORKER_LEASE_DURATION", "29s")
	return map[string]mistake{
		"an unknown field":   {file("kind: CONTAINER\ncontainer: {imge: busybox:1}\n"), nil, "container.imge: there is no such field; did you mean image?"},
		"a missing field":    {file("kind: CONTAINER\ncontainer: {command: [echo]}\n"), nil, "container.image"},
		"a missing spec":     {file("kind: HEARTBEAT\n"), nil, "heartbeat"},
		"a bad image name":   {"run --name mistake --image Busy:Box:1", nil, "container.image: must be a lower-case image reference, such as busybox:1"},
		"a bad definition":   {"definitions apply -f " + write(t, "def.yaml", "definition: d\nkind: CONTAINER\n"), nil, "container"},
		"no such definition": {"run --name mistake --definition nowhere", nil, `"nowhere"`},

		"no rights":                         {run, set("DATABASE_URL", strings.Replace(here["DATABASE_URL"], "//postgres@", "//stranger@", 1)), `user "stranger" may not use the leasehold schema`},
		"a missing database":                {run, set("DATABASE_URL", nowhere), `has no database "nowhere": create it, or correct DATABASE_URL`},
		"a missing database for a list":     {"jobs list", set("DATABASE_URL", nowhere), `has no database "nowhere"`},
		"a missing database for a worker":   {"worker", set("DATABASE_URL", nowhere), `has no database "nowhere"`},
		"a missing database for migrate":    {"migrate", set("DATABASE_URL", nowhere), `has no database "nowhere"`},
		"no schema":                         {run, set("DATABASE_URL", empty), "leasehold migrate"},
		"an old schema":                     {run, set("DATABASE_URL", old), "leasehold migrate"},
		"an old schema for a worker":        {"worker", set("DATABASE_URL", old), "leasehold migrate"},
		"an unreachable database":           {run, set("DATABASE_URL", "postgres://u@127.0.0.1:1/d"), "PostgreSQL at 127.0.0.1:1 does not answer (connection refused)"},
		"an unreachable Temporal":           {run, set("TEMPORAL_ADDRESS", "127.0.0.1:1"), "the Temporal server at 127.0.0.1:1 does not answer ("},
		"an unreachable Temporal, worker":   {"worker", set("TEMPORAL_ADDRESS", "127.0.0.1:1"), "the Temporal server at 127.0.0.1:1 does not answer ("},
		"a namespace that is not there":     {run, set("TEMPORAL_NAMESPACE", "nowhere"), `has no namespace "nowhere": create it with temporal operator`},
		"a worker's missing namespace":      {"worker", set("TEMPORAL_NAMESPACE", "nowhere"), `has no namespace "nowhere"`},
		"a lease too near its renewal":      {"worker", near, "EXECUTION_WORKER_LEASE_DURATION is 29s, less than 3 × EXECUTION_WORKER_LEASE_RENEW_INTERVAL"},
		"a lease too near, in a dev":        {"dev --dir " + t.TempDir() + "/new", near, "EXECUTION_WORKER_LEASE_DURATION is 29s, less than 3 × "},
		"a lease that is no duration":       {"worker", set("EXECUTION_WORKER_LEASE_DURATION", "soon"), `EXECUTION_WORKER_LEASE_DURATION is "soon": it must be a duration`},
		"a variable that is set to nothing": {"worker", set("EXECUTION_WORKER_TASK_QUEUE", ""), "EXECUTION_WORKER_TASK_QUEUE is set to nothing"},
	}
}

// rows counts what a database holds, as text.
func rows(t *testing.T, address string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var counts string
	err = conn.QueryRow(t.Context(), `select format('%s definitions, %s jobs, %s ledger entries, %s nodes',
		(select count(*) from leasehold.definition), (select count(*) from leasehold.job),
		(select count(*) from leasehold.ledger), (select count(*) from leasehold.runtime_node))`).Scan(&counts)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// notStarted fails the test if there is a workflow of this ID.
func notStarted(t *testing.T, address, id string) {
	t.Helper()
	temporal, err := client.DialContext(t.Context(), client.Options{HostPort: address})
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	_, err = temporal.DescribeWorkflow(t.Context(), id, "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); !missing {
		t.Errorf("the workflow %s: %v, want that it was never started", id, err)
	}
}
