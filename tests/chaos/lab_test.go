//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/faults"
	"github.com/leasehold/leasehold/tests/testenv"
	"github.com/leasehold/leasehold/worker/dev"
)

const (
	workers   = 3
	nodes     = 2
	taskQueue = "leasehold"
)

// lab is one installation, which all runs of a test use.
type lab struct {
	t        *testing.T
	logs     string
	postgres *dev.Postgres
	temporal *dev.Temporal
	pool     *pgxpool.Pool
	store    *leasestore.Store
	client   client.Client
	endpoint *httptest.Server // what HEARTBEAT jobs ask
	nodes    []*node
	workers  []*worker
}

// node is a Docker daemon, and the way to it.
type node struct {
	id      string
	daemon  *dev.Docker
	proxy   *faults.Proxy
	witness *witness
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, logs: os.Getenv("LOGS")}
	if l.logs == "" {
		l.logs = t.TempDir()
	}
	// A commit must outlive the server's death, if not the machine's.
	l.postgres = testenv.Postgres(t, "synchronous_commit=on")
	l.temporal = testenv.TemporalServer(t)
	l.endpoint = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(l.endpoint.Close)
	_, err := leasestore.Migrate(t.Context(), l.postgres.URL())
	l.must(err)
	l.pool, err = pgxpool.New(t.Context(), l.postgres.URL())
	l.must(err)
	t.Cleanup(l.pool.Close)
	l.store = leasestore.New(l.pool)
	l.client, err = client.Dial(client.Options{
		HostPort: l.temporal.Address(), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	l.must(err)
	t.Cleanup(l.client.Close)
	for i := range nodes {
		l.nodes = append(l.nodes, l.newNode(fmt.Sprintf("node-%d", i+1)))
	}
	binary := build(t)
	for i := range workers {
		l.workers = append(l.workers, l.newWorker(fmt.Sprintf("worker-%d", i+1), binary))
	}
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) newNode(id string) *node {
	l.t.Helper()
	n := &node{id: id, daemon: testenv.DockerNode(l.t)}
	n.proxy = l.proxy(n.daemon.Endpoint())
	n.witness = watch(l.t, n.daemon.Endpoint())
	_, err := l.store.RegisterNode(l.t.Context(), leasestore.Node{ID: id, Endpoint: "tcp://" + n.proxy.Address(), Capacity: 20})
	l.must(err)
	return n
}

func (l *lab) proxy(target string) *faults.Proxy {
	l.t.Helper()
	proxy, err := faults.Listen(l.t.Context(), target)
	l.must(err)
	l.t.Cleanup(func() { _ = proxy.Close() })
	return proxy
}

// heal ends all faults of connections and has every process run.
func (l *lab) heal(ctx context.Context) error {
	for _, n := range l.nodes {
		n.proxy.Heal()
		n.proxy.Latency(0)
		if err := up(ctx, n.daemon.Process, n.daemon.Restart); err != nil {
			return err
		}
	}
	if err := up(ctx, l.postgres.Process, l.postgres.Restart); err != nil {
		return err
	}
	if err := up(ctx, l.temporal.Process, l.temporal.Restart); err != nil {
		return err
	}
	for _, w := range l.workers {
		if err := w.heal(ctx); err != nil {
			return err
		}
	}
	return nil
}

// up starts a process that has ended.
func up(ctx context.Context, p *dev.Process, restart func(context.Context) error) error {
	select {
	case <-p.Done():
		return restart(ctx)
	default:
		return nil
	}
}

// build builds the command.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leasehold")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/leasehold/leasehold/worker/cmd/leasehold").CombinedOutput()
	if err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	return path
}

// through is a database URL with another server.
func through(databaseURL string, proxy *faults.Proxy) string {
	at, err := url.Parse(databaseURL)
	if err != nil {
		return ""
	}
	at.Host = proxy.Address()
	return at.String()
}
