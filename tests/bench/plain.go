package main

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The floor: a workflow with as many steps as a HEARTBEAT job has, a local
// activity and three activities, none of which does anything.
const (
	plainQueue  = "plain"
	plainLocals = 1
	plainSteps  = 3
)

func plainJob(ctx workflow.Context) error {
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: 5 * time.Second})
	for range plainLocals {
		if err := workflow.ExecuteLocalActivity(local, "Nothing").Get(ctx, nil); err != nil {
			return err
		}
	}
	step := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 5 * time.Second})
	for range plainSteps {
		if err := workflow.ExecuteActivity(step, "Nothing").Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func startPlain(c client.Client) (sdkworker.Worker, error) {
	// Leasehold's activities are on queues of their own, never eager; the
	// floor is measured under the same terms.
	w := sdkworker.New(c, plainQueue, sdkworker.Options{DisableEagerActivities: true})
	w.RegisterWorkflowWithOptions(plainJob, workflow.RegisterOptions{Name: "PlainJob"})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "Nothing"})
	return w, w.Start()
}
