package faults_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/tests/faults"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestALostCompletionRunsTheActivityAgainOnlyIfItWasLostBeforeItWasSent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		when faults.When
		runs int32
	}{
		"before it was sent": {faults.BeforeSent, 2},
		"after it was sent":  {faults.AfterSent, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns, completions := testenv.Temporal(t), &faults.Completions{}
			c, err := client.Dial(client.Options{HostPort: ns.Address, Namespace: ns.Name, ConnectionOptions: client.ConnectionOptions{
				DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(completions.Intercept)},
			}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			var runs atomic.Int32
			completions.Lose(tt.when)
			w := sdkworker.New(c, "queue", sdkworker.Options{WorkerStopTimeout: time.Minute})
			w.RegisterActivityWithOptions(func(context.Context) error {
				if runs.Add(1) > 1 {
					completions.Lose(faults.Never)
				}
				return nil
			}, activityNamed("act"))
			w.RegisterWorkflowWithOptions(one, workflow.RegisterOptions{Name: "one"})
			if err := w.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(w.Stop)
			run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "queue"}, "one")
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Get(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			completions.Lose(faults.Never) // the worker stops without delay
			if runs.Load() != tt.runs || completions.Lost() == 0 {
				t.Errorf("the activity ran %d times, want %d; %d completions were lost", runs.Load(), tt.runs, completions.Lost())
			}
		})
	}
}

func one(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Second, RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond},
	})
	return workflow.ExecuteActivity(ctx, "act").Get(ctx, nil)
}

func activityNamed(name string) activity.RegisterOptions { return activity.RegisterOptions{Name: name} }
