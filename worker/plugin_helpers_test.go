package worker

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/leasehold/leasehold/tests/testenv"
	"github.com/leasehold/leasehold/workflows"
)

// team is a client of a team that has added the plugin to it.
func team(t *testing.T, ns testenv.Namespace, plugin *Plugin) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: ns.Address, Namespace: ns.Name, Plugins: []client.Plugin{plugin},
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newPlugin(t *testing.T, config Config) *Plugin {
	t.Helper()
	plugin, err := NewPlugin(PluginOptions{Config: config, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return plugin
}

// healthy is an endpoint for HEARTBEAT jobs that answers when it is let.
func healthy(t *testing.T) (job map[string]any, asked <-chan struct{}, answer func()) {
	t.Helper()
	requests, let := make(chan struct{}, 100), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- struct{}{}
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	job = map[string]any{"kind": "HEARTBEAT", "heartbeat": map[string]any{"endpoint": server.URL, "timeout": "1m"}}
	return job, requests, func() { close(let) }
}

func runJob(t *testing.T, c client.Client, queue, id string, job map[string]any) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, workflows.RunJobName, job)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func mustComplete(t *testing.T, run client.WorkflowRun) workflows.JobResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var result workflows.JobResult
	if err := run.Get(ctx, &result); err != nil {
		t.Fatalf("workflow %s: %v", run.GetID(), err)
	}
	return result
}

// connections is how many connections a database has but this one.
func connections(t *testing.T, url string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var n int
	if err := conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func gone(t *testing.T, url string) {
	t.Helper()
	until(t, "all connections to the database are closed", func() bool { return connections(t, url) == 0 })
}

// running runs a worker until the function that it returns is called, at the
// end of the test at the latest.
func running(t *testing.T, config Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("worker %s: %v", config.WorkerID, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func collect(t *testing.T, events client.HistoryEventIterator) *historypb.History {
	t.Helper()
	var history historypb.History
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		history.Events = append(history.Events, event)
	}
	return &history
}

func testPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited 30 s for: %s", what)
		}
	}
}
