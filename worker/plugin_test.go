package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
	"github.com/leasehold/leasehold/workflows"
)

func TestT15_ATeamsWorkerRunsJobsBesideItsOwnWorkflows(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	c := team(t, ns, newPlugin(t, settings(t, url, ns, "EXECUTION_WORKER_TASK_QUEUE=orders")))
	job, _, answer := healthy(t)
	answer()
	var workers []sdkworker.Worker
	for _, queue := range []string{"orders", "invoices"} { // one client, several workers
		w := sdkworker.New(c, queue, sdkworker.Options{})
		w.RegisterWorkflowWithOptions(func(workflow.Context) (string, error) { return queue, nil }, workflow.RegisterOptions{Name: "own"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		workers = append(workers, w)
	}
	for _, queue := range []string{"orders", "invoices"} {
		own, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "own")
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := own.Get(t.Context(), &got); err != nil || got != queue {
			t.Errorf("the team's workflow: %q, %v", got, err)
		}
		if result := mustComplete(t, runJob(t, c, queue, "job-"+queue, job)); result.Status != leasestore.Completed {
			t.Errorf("the job: %+v", result)
		}
	}
	status, err := RecoveryStatus(t.Context(), c)
	if err != nil || status.Interval != "2s" {
		t.Errorf("the recovery schedule: %+v, %v", status, err)
	}
	for _, w := range workers {
		w.Stop()
	}
	gone(t, url)
}

func TestAStartThatFailsLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	plugin := newPlugin(t, settings(t, url, ns))
	broken := errors.New("another plugin refuses")
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: ns.Address, Namespace: ns.Name, Plugins: []client.Plugin{plugin},
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := sdkworker.New(c, "leasehold", sdkworker.Options{Plugins: []sdkworker.Plugin{refusing{err: broken}}})
	if err := w.Start(); !errors.Is(err, broken) {
		t.Errorf("error: %v", err)
	}
	gone(t, url) // and TestMain finds goroutines
	w.Stop()
	taken := sdkworker.New(c, "leasehold", sdkworker.Options{})
	taken.RegisterWorkflowWithOptions(workflows.RunJob, workflow.RegisterOptions{Name: workflows.RunJobName})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a workflow of the same name was accepted")
			}
		}()
		_ = taken.Start()
	}()
	gone(t, url)
	taken.Stop()
	second := sdkworker.New(c, "leasehold", sdkworker.Options{})
	if err := second.Start(); err != nil {
		t.Errorf("the plugin does not start again: %v", err)
	}
	second.Stop()
	gone(t, url)
}

type refusing struct {
	sdkworker.PluginBase
	err error
}

func (refusing) Name() string { return "refusing" }

func (r refusing) StartWorker(context.Context, sdkworker.PluginStartWorkerOptions,
	func(context.Context, sdkworker.PluginStartWorkerOptions) error,
) error {
	return r.err
}

func TestAPluginInTheWrongPlaceIsRefused(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	plugin := newPlugin(t, settings(t, url, ns))
	w := sdkworker.New(ns.Client, "leasehold", sdkworker.Options{Plugins: []sdkworker.Plugin{plugin}})
	if err := w.Start(); err == nil || !strings.Contains(err.Error(), "belongs into client.Options.Plugins") {
		t.Errorf("in a worker's options: %v", err)
	}
	w.Stop()
	c := team(t, ns, plugin)
	if _, err := client.NewClientFromExisting(c, client.Options{Namespace: ns.Name, Plugins: []client.Plugin{plugin}}); err == nil ||
		!strings.Contains(err.Error(), "make a new one with NewPlugin") {
		t.Errorf("in a second client: %v", err)
	}
	twice := sdkworker.New(c, "leasehold", sdkworker.Options{Plugins: []sdkworker.Plugin{plugin}})
	if err := twice.Start(); err == nil || !strings.Contains(err.Error(), "listed twice") {
		t.Errorf("listed twice: %v", err)
	}
	twice.Stop()
	gone(t, url)
}

func TestAClientFromAnExistingOneServesToo(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	c, err := client.NewClientFromExisting(ns.Client, client.Options{
		Namespace: ns.Name, Plugins: []client.Plugin{newPlugin(t, settings(t, url, ns))},
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := sdkworker.New(c, "leasehold", sdkworker.Options{})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	job, _, answer := healthy(t)
	answer()
	mustComplete(t, runJob(t, c, "leasehold", "job", job))
}

// The fault it catches: a claims queue that is polled whether or not a permit
// is free.
func TestT7_AWorkerNeverRunsMoreJobsThanItHasPermits(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	c := team(t, ns, newPlugin(t, settings(t, url, ns)))
	w := sdkworker.New(c, "leasehold", sdkworker.Options{})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	job, asked, answer := healthy(t)
	var runs []client.WorkflowRun
	for i := range 6 {
		runs = append(runs, runJob(t, c, "leasehold", fmt.Sprintf("job-%d", i), job))
	}
	<-asked
	<-asked
	store := leasestore.New(testPool(t, url))
	for _, run := range runs { // each had its chance: it waits in the queue
		until(t, "job "+run.GetID()+" is queued or runs", func() bool {
			jobs, err := store.Jobs(t.Context(), leasestore.JobFilter{WorkflowID: run.GetID()})
			return err == nil && len(jobs) == 1 && (jobs[0].Status == leasestore.Queued || jobs[0].Status == leasestore.Running)
		})
	}
	running, err := store.Jobs(t.Context(), leasestore.JobFilter{Status: leasestore.Running})
	if err != nil || len(running) != 2 || len(asked) != 0 {
		t.Errorf("%d jobs run with 2 permits (%v)", len(running), err)
	}
	answer()
	for _, run := range runs {
		mustComplete(t, run)
	}
}

// A worker that is stopped hands its work to another, which carries on under
// the same lease.
func TestT3_AStoppedWorkerHandsItsWorkOver(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	stopAlice := running(t, settings(t, url, ns))
	job, asked, answer := healthy(t)
	run := runJob(t, ns.Client, "leasehold", "job", job)
	<-asked
	stopBob := running(t, settings(t, url, ns, "EXECUTION_WORKER_ID=bob"))
	stopAlice()
	answer()
	if result := mustComplete(t, run); result.Attempts != 1 || result.Epoch != 1 {
		t.Errorf("the hand-over cost an attempt: %+v", result)
	}
	stopBob()
	gone(t, url)
}

func TestAReplayerKnowsTheWorkflows(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	c := team(t, ns, newPlugin(t, settings(t, url, ns)))
	w := sdkworker.New(c, "leasehold", sdkworker.Options{})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	job, _, answer := healthy(t)
	answer()
	mustComplete(t, runJob(t, c, "leasehold", "job", job))
	plugin, err := NewPlugin(PluginOptions{}) // a replayer needs no configuration
	if err != nil {
		t.Fatal(err)
	}
	replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{Plugins: []sdkworker.Plugin{plugin}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is called for each history
		history := c.GetWorkflowHistory(t.Context(), "job", "", false, 0)
		if err := replayer.ReplayWorkflowHistory(nil, collect(t, history)); err != nil {
			t.Error(err)
		}
	}
}
