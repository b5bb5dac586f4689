package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
	"github.com/leasehold/leasehold/workflows"
)

// fleet is one installation of Leasehold: a database, a namespace, a Docker
// daemon, and workers that a test starts and kills.
type fleet struct {
	t           *testing.T
	databaseURL string
	pool        *pgxpool.Pool
	store       *leasestore.Store
	temporal    testenv.Namespace
	docker      string
}

const taskQueue = "leasehold"

// timing makes a lease short, so that a test sees it run out in seconds.
var timing = map[string]string{
	"EXECUTION_WORKER_LEASE_DURATION":       "7s",
	"EXECUTION_WORKER_LEASE_RENEW_INTERVAL": "1s",
	"EXECUTION_WORKER_HEARTBEAT_TIMEOUT":    "2s",
	"EXECUTION_WORKER_SCHEDULE_TO_START":    "1s",
	"EXECUTION_WORKER_RECOVERY_INTERVAL":    "2s",
	"EXECUTION_WORKER_SYSTEM_RETRY_BACKOFF": "1s",
	"RUNTIME_PROBE_INTERVAL":                "1s",
	"RUNTIME_DEFAULT_NETWORK":               "none",
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, databaseURL: testenv.Database(t), temporal: testenv.Temporal(t), docker: testenv.Docker(t)}
	var err error
	if f.pool, err = pgxpool.New(t.Context(), f.databaseURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	f.store = leasestore.New(f.pool)
	return f
}

// node registers the Docker daemon as a runtime node that was just probed.
func (f *fleet) node(id string) {
	f.t.Helper()
	_, err := f.store.RegisterNode(f.t.Context(), leasestore.Node{ID: id, Endpoint: f.docker, Capacity: 8})
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := f.store.ReportNode(f.t.Context(), id, leasestore.NodeReport{Healthy: true}); err != nil {
		f.t.Fatal(err)
	}
}

// worker starts a worker process and returns it once it polls; it is stopped
// with the test. Settings are environment variables beside, or instead of, the
// usual ones.
func (f *fleet) worker(name string, settings ...map[string]string) *exec.Cmd {
	f.t.Helper()
	cmd := exec.Command(command(f.t), "worker")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+f.databaseURL, "TEMPORAL_ADDRESS="+f.temporal.Address,
		"TEMPORAL_NAMESPACE="+f.temporal.Name, "EXECUTION_WORKER_ID="+name)
	for _, set := range append([]map[string]string{timing}, settings...) {
		for key, value := range set {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	log := &logged{t: f.t, name: name, polls: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		gone := make(chan struct{})
		go func() { _ = cmd.Wait(); close(gone) }()
		select {
		case <-gone:
		case <-time.After(30 * time.Second):
			f.t.Errorf("worker %s did not stop within 30 s of SIGTERM", name)
			_ = cmd.Process.Kill()
			<-gone
		}
		log.close()
	})
	select {
	case <-log.polls:
	case <-time.After(60 * time.Second):
		f.t.Fatalf("worker %s did not come up within 60 s", name)
	}
	return cmd
}

// start starts a RunJob as any Temporal client would.
func (f *fleet) start(id string, input map[string]any) client.WorkflowRun {
	f.t.Helper()
	run, err := f.temporal.Client.ExecuteWorkflow(f.t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: taskQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, workflows.RunJobName, input)
	if err != nil {
		f.t.Fatal(err)
	}
	return run
}

// result waits for a RunJob's end.
func (f *fleet) result(run client.WorkflowRun) (workflows.JobResult, error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 90*time.Second)
	defer cancel()
	var result workflows.JobResult
	err := run.Get(ctx, &result)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.t.Fatalf("workflow %s did not end within 90 s", run.GetID())
	}
	f.record(run.GetID(), run.GetRunID())
	return result, err
}

// job is the stored job of a workflow.
func (f *fleet) job(workflowID string) leasestore.Job {
	f.t.Helper()
	jobs, err := f.store.Jobs(f.t.Context(), leasestore.JobFilter{WorkflowID: workflowID})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(jobs) == 0 {
		return leasestore.Job{}
	}
	return jobs[0]
}

// until waits for a fact in the database or on a daemon.
func (f *fleet) until(what string, holds func() bool) {
	f.t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			f.t.Fatalf("waited 60 s for: %s", what)
		case <-tick.C:
		}
	}
}

// running waits until a workflow's job runs in a container that was started.
func (f *fleet) running(workflowID string) leasestore.Job {
	f.t.Helper()
	f.until("the job of "+workflowID+" runs", func() bool {
		job := f.job(workflowID)
		return job.Status == leasestore.Running && job.ContainerID != "" && f.containerState(job.ContainerID) == "running"
	})
	return f.job(workflowID)
}

func (f *fleet) ledger(job uuid.UUID) []leasestore.Entry {
	f.t.Helper()
	entries, err := f.store.Ledger(f.t.Context(), job)
	if err != nil {
		f.t.Fatal(err)
	}
	return entries
}

// logged passes a worker's output to the test's log, for as long as the test
// may log.
type logged struct {
	mu   sync.Mutex
	t    *testing.T
	name string
	over bool
	// polls is closed when the worker says that it polls its last queue.
	polls chan struct{}
	up    bool
}

const pollsLine = "TaskQueue=" + taskQueue + " "

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.up && strings.Contains(string(p), pollsLine) {
		l.up = true
		close(l.polls)
	}
	if !l.over {
		l.t.Logf("%s: %s", l.name, strings.TrimRight(string(p), "\n"))
	}
	return len(p), nil
}

func (l *logged) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// command builds the leasehold command once.
func command(t *testing.T) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "leasehold-command-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "leasehold")
	out, err := exec.Command("go", "build", "-race", "-o", path, "github.com/leasehold/leasehold/worker/cmd/leasehold").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return path, nil
})
