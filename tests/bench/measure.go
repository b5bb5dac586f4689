package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/workflows"
)

// jobsPerSlice is how many workflows run one after another in a slice.
const jobsPerSlice = 20

func run(ctx context.Context, runs int) (err error) {
	in, err := install(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.stop(context.WithoutCancel(ctx))) }()
	plain, err := startPlain(in.client)
	if err != nil {
		return err
	}
	defer plain.Stop()
	ratios, events, err := in.latency(ctx, runs)
	if err != nil {
		return err
	}
	out := os.Stdout
	fmt.Fprintf(out, "HEARTBEAT job / plain workflow with as many steps, one after another: %s\n", ratios)
	fmt.Fprintf(out, "history events: HEARTBEAT job %d, plain workflow %d\n", events.job, events.plain)
	idle, held, err := in.memory(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "worker's resident memory: %d MiB idle, %d MiB with %d leases\n", idle, held, leasesHeld)
	return nil
}

type eventCounts struct{ job, plain int64 }

// latency measures slices of jobs and of plain workflows in turn.
func (in *installation) latency(ctx context.Context, runs int) (spread, eventCounts, error) {
	server := endpoint(func(http.ResponseWriter, *http.Request) {})
	defer server.Close()
	var ratios spread
	var events eventCounts
	for i := range runs + 1 {
		plain, err := timed(func() error { return in.plain(ctx) })
		if err != nil {
			return nil, events, err
		}
		job, err := timed(func() error { return in.heartbeat(ctx, server.URL) })
		if err != nil {
			return nil, events, err
		}
		if i > 0 { // the first pair warms up
			ratios = append(ratios, float64(job)/float64(plain))
		}
	}
	var err error
	if events.job, err = in.events(ctx, func(ctx context.Context) (client.WorkflowRun, error) {
		return in.startHeartbeat(ctx, server.URL)
	}); err != nil {
		return nil, events, err
	}
	events.plain, err = in.events(ctx, in.startPlain)
	return ratios, events, err
}

func timed(once func() error) (time.Duration, error) {
	began := time.Now()
	for range jobsPerSlice {
		if err := once(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func (in *installation) startPlain(ctx context.Context) (client.WorkflowRun, error) {
	return in.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: plainQueue}, "PlainJob")
}

func (in *installation) plain(ctx context.Context) error {
	run, err := in.startPlain(ctx)
	if err != nil {
		return err
	}
	return run.Get(ctx, nil)
}

func (in *installation) startHeartbeat(ctx context.Context, url string) (client.WorkflowRun, error) {
	return in.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: "leasehold"}, workflows.RunJobName,
		map[string]any{
			"definition": "bench", "kind": "HEARTBEAT",
			"heartbeat": map[string]any{"endpoint": url, "timeout": "5m"},
		})
}

func (in *installation) heartbeat(ctx context.Context, url string) error {
	run, err := in.startHeartbeat(ctx, url)
	if err != nil {
		return err
	}
	return run.Get(ctx, nil)
}

func (in *installation) events(ctx context.Context, start func(context.Context) (client.WorkflowRun, error)) (int64, error) {
	run, err := start(ctx)
	if err != nil {
		return 0, err
	}
	if err := run.Get(ctx, nil); err != nil {
		return 0, err
	}
	described, err := in.client.DescribeWorkflow(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return 0, err
	}
	return described.RawResponse.GetWorkflowExecutionInfo().GetHistoryLength(), nil
}

// leasesHeld is how many leases the worker holds at once for the memory figure.
const leasesHeld = 100

// memory is the worker's resident memory in MiB, idle and with jobs whose
// endpoint lets them wait.
func (in *installation) memory(ctx context.Context) (idle, held int, err error) {
	if idle, err = resident(in.worker.PID()); err != nil {
		return 0, 0, err
	}
	arrived, release := make(chan struct{}, leasesHeld), make(chan struct{})
	server := endpoint(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	})
	defer server.Close()
	runs := make([]client.WorkflowRun, leasesHeld)
	for i := range runs {
		if runs[i], err = in.startHeartbeat(ctx, server.URL); err != nil {
			close(release)
			return 0, 0, err
		}
	}
	for range runs {
		select {
		case <-arrived:
		case <-ctx.Done():
			close(release)
			return 0, 0, ctx.Err()
		case <-time.After(time.Minute):
			close(release)
			return 0, 0, fmt.Errorf("the jobs did not all run within a minute")
		}
	}
	held, err = resident(in.worker.PID())
	close(release)
	for _, run := range runs {
		err = errors.Join(err, run.Get(ctx, nil))
	}
	return idle, held, err
}

func endpoint(handler http.HandlerFunc) *httptest.Server { return httptest.NewServer(handler) }

// resident reads VmRSS from Linux's /proc.
func resident(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		var kib int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib >> 10, nil
		}
	}
	return 0, fmt.Errorf("process %d has no VmRSS", pid)
}
