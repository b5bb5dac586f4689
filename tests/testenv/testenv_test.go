package testenv_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/jackc/pgx/v5"
	enumspb "go.temporal.io/api/enums/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, testenv.NoLeaks())) }

func TestEveryDatabaseIsNew(t *testing.T) {
	t.Parallel()
	first, second := testenv.Database(t), testenv.Database(t)
	scan[int](t, first, "create table mine (n int)", "select count(*) from mine")
	if got := scan[int](t, second, "", "select count(*) from pg_class where relname = 'mine'"); got != 0 {
		t.Error("a table of one database is in the other")
	}
	if got := scan[int](t, first, "", "select count(*) from pg_namespace where nspname = 'leasehold'"); got != 1 {
		t.Error("the schema of the store is missing")
	}
}

func TestAnEmptyDatabaseHasNoSchema(t *testing.T) {
	t.Parallel()
	if got := scan[int](t, testenv.EmptyDatabase(t), "", "select count(*) from pg_namespace where nspname = 'leasehold'"); got != 0 {
		t.Error("the schema of the store is there")
	}
}

func TestADatabaseIsDroppedUnderItsConnections(t *testing.T) {
	t.Parallel()
	server := testenv.EmptyDatabase(t)
	var name string
	t.Run("a test that leaves a connection open", func(t *testing.T) {
		url := testenv.Database(t)
		conn, err := pgx.Connect(t.Context(), url)
		check(t, err)
		name = conn.Config().Database
		t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
		testenv.Pool(t)
	})
	if got := scan[int](t, server, "", "select count(*) from pg_database where datname = '"+name+"'"); got != 0 {
		t.Errorf("database %s is still there", name)
	}
}

func TestAPostgresOfItsOwnTakesSettings(t *testing.T) {
	t.Parallel()
	server := testenv.Postgres(t, "fsync=on")
	if got := scan[string](t, server.URL(), "", "show fsync"); got != "on" {
		t.Errorf("fsync is %s", got)
	}
}

func TestANamespaceIsReadyAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := testenv.Temporal(t, testenv.SearchAttributes{"JobId": enumspb.INDEXED_VALUE_TYPE_KEYWORD})
			w := sdkworker.New(ns.Client, "queue", sdkworker.Options{})
			w.RegisterWorkflowWithOptions(hello, workflow.RegisterOptions{Name: "hello"})
			check(t, w.Start())
			defer w.Stop()
			run, err := ns.Client.ExecuteWorkflow(t.Context(), temporalclient.StartWorkflowOptions{
				TaskQueue:             "queue",
				TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword("JobId").ValueSet(name)),
			}, "hello")
			check(t, err)
			var got string
			check(t, run.Get(t.Context(), &got))
			if got != "hello" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func hello(workflow.Context) (string, error) { return "hello", nil }

func TestATemporalServerOfItsOwnRestarts(t *testing.T) {
	t.Parallel()
	server := testenv.TemporalServer(t)
	check(t, server.Kill())
	check(t, server.Restart(t.Context()))
}

func TestDockerHasBusybox(t *testing.T) {
	t.Parallel()
	runTrue(t, testenv.Docker(t))
}

func TestADockerOfItsOwnRestarts(t *testing.T) {
	t.Parallel()
	node := testenv.DockerNode(t)
	check(t, node.Kill())
	check(t, node.Restart(t.Context()))
	if node.Endpoint() == testenv.Docker(t) {
		t.Error("it is the shared daemon")
	}
	runTrue(t, node.Endpoint())
}

func runTrue(t *testing.T, endpoint string) {
	t.Helper()
	daemon, err := client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	check(t, err)
	defer daemon.Close()
	created, err := daemon.ContainerCreate(t.Context(), &container.Config{Image: testenv.Image, Cmd: []string{"true"}},
		&container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	check(t, err)
	ended, failed := daemon.ContainerWait(t.Context(), created.ID, container.WaitConditionNextExit)
	check(t, daemon.ContainerStart(t.Context(), created.ID, container.StartOptions{}))
	select {
	case end := <-ended:
		if end.StatusCode != 0 {
			t.Errorf("true ended with %d", end.StatusCode)
		}
	case err := <-failed:
		t.Error(err)
	}
	check(t, daemon.ContainerRemove(t.Context(), created.ID, container.RemoveOptions{Force: true}))
}

func scan[T any](t *testing.T, url, first, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer conn.Close(t.Context())
	if strings.TrimSpace(first) != "" {
		_, err := conn.Exec(t.Context(), first)
		check(t, err)
	}
	var value T
	check(t, conn.QueryRow(t.Context(), sql).Scan(&value))
	return value
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkDatabase(b *testing.B) {
	for b.Loop() {
		testenv.Database(b)
	}
}

func BenchmarkTemporal(b *testing.B) {
	for b.Loop() {
		testenv.Temporal(b, testenv.SearchAttributes{"JobId": enumspb.INDEXED_VALUE_TYPE_KEYWORD})
	}
}
