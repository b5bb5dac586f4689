//go:build chaos

package chaos

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/tests/faults"
	"github.com/leasehold/leasehold/worker/dev"
)

// worker is a worker process, and its ways to PostgreSQL and Temporal.
type worker struct {
	name               string
	command            dev.Command
	postgres, temporal *faults.Proxy

	mu      sync.Mutex
	process *dev.Process // nil before its first start
}

// stopsIn is how long a worker may take to stop.
const stopsIn = 38 * time.Second

// timing makes a lease short, so that it runs out within a run.
var timing = []string{
	"EXECUTION_WORKER_LEASE_DURATION=7s", "EXECUTION_WORKER_LEASE_RENEW_INTERVAL=1s",
	"EXECUTION_WORKER_HEARTBEAT_TIMEOUT=2s", "EXECUTION_WORKER_SCHEDULE_TO_START=1s",
	"EXECUTION_WORKER_RECOVERY_INTERVAL=2s", "EXECUTION_WORKER_SYSTEM_RETRY_BACKOFF=1s",
	"EXECUTION_WORKER_SYSTEM_RETRY_LIMIT=20",
	"RUNTIME_PROBE_INTERVAL=1s", "RUNTIME_HEARTBEAT_TTL=10s", "RUNTIME_DEFAULT_NETWORK=none",
}

func (l *lab) newWorker(name, binary string) *worker {
	l.t.Helper()
	w := &worker{name: name, postgres: l.proxy(l.postgresAddress()), temporal: l.proxy(l.temporal.Address())}
	logFile := filepath.Join(l.logs, name+".log")
	w.command = dev.Command{
		Name: name, Path: binary, Args: []string{"worker"}, LogFile: logFile, Grace: 45 * time.Second,
		Env: append(append(os.Environ(), timing...), "DATABASE_URL="+through(l.postgres.URL(), w.postgres),
			"TEMPORAL_ADDRESS="+w.temporal.Address(), "EXECUTION_WORKER_ID="+name, "EXECUTION_WORKER_CONCURRENCY=8"),
		Ready: polls(logFile),
	}
	l.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), time.Minute)
		defer cancel()
		_ = w.stop(ctx)
	})
	return w
}

func (l *lab) postgresAddress() string {
	config := l.pool.Config().ConnConfig
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}

// polls is ready when the log says so once more than before.
func polls(logFile string) func(context.Context) error {
	seen := 0
	return func(context.Context) error {
		text, err := os.ReadFile(logFile)
		if err != nil {
			return err
		}
		now := strings.Count(string(text), "TaskQueue="+taskQueue+" ")
		if now <= seen {
			return errors.New("it does not poll yet")
		}
		seen = now
		return nil
	}
}

// up starts the process if it does not run.
func (w *worker) up(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		return up(ctx, w.process, w.process.Restart)
	}
	started, err := dev.Start(ctx, w.command)
	if err == nil {
		w.process = started
	}
	return err
}

func (w *worker) kill() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return nil
	}
	return w.process.Kill()
}

// stop stops it gracefully. One that does not end in time writes into its log
// where it hangs.
func (w *worker) stop(ctx context.Context) error {
	w.signal(syscall.SIGCONT)
	hangs := time.AfterFunc(stopsIn, func() {
		if w.process != nil {
			_ = w.process.Signal(syscall.SIGQUIT)
		}
	})
	defer hangs.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return nil
	}
	return w.process.Stop(ctx)
}

// signal signals it, if it runs.
func (w *worker) signal(sig syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process != nil {
		_ = w.process.Signal(sig) // an error says that it has ended
	}
}

func (w *worker) heal(ctx context.Context) error {
	for _, proxy := range []*faults.Proxy{w.postgres, w.temporal} {
		proxy.Heal()
		proxy.Latency(0)
	}
	w.signal(syscall.SIGCONT)
	return w.up(ctx)
}
