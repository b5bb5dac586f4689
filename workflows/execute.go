package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/activities"
)

// How long the short steps may take.
const (
	quickTimeout  = 2 * time.Second  // the try as a local activity
	stepTimeout   = 15 * time.Second // one attempt as an activity
	claimTimeout  = 15 * time.Second
	reportTimeout = 45 * time.Second
	leasedTimeout = 31 * 24 * time.Hour // of activities that heartbeat
)

// quick runs a short step on the store. It is tried as a local activity first,
// which costs one event; if that does not work at once it becomes an activity,
// whose retries and their reason people can see.
func (r *run) quick(name, summary string, in, out any) error {
	local := workflow.WithLocalActivityOptions(r.work, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: quickTimeout, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	err := workflow.ExecuteLocalActivity(local, name, in).Get(local, out)
	if err == nil || final(err) {
		return err
	}
	visible := workflow.WithActivityOptions(r.work, workflow.ActivityOptions{
		StartToCloseTimeout: stepTimeout, Summary: summary,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 10 * time.Second},
	})
	return workflow.ExecuteActivity(visible, name, in).Get(visible, out)
}

// final says that trying again cannot help.
func final(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && app.NonRetryable()
}

// claimJob waits on the claims queue until a process with a free permit takes
// it up. A cancellation waits for the claim's answer, which may be a lease.
func (r *run) claimJob(out *activities.Claim) error {
	ctx := workflow.WithActivityOptions(r.ctx, workflow.ActivityOptions{
		TaskQueue:           activities.ClaimsQueue(workflow.GetInfo(r.ctx).TaskQueueName),
		StartToCloseTimeout: claimTimeout, WaitForCancellation: true, Summary: "claim " + r.job.Result.Definition,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 10 * time.Second},
	})
	return workflow.ExecuteActivity(ctx, activities.ClaimJobName, activities.ClaimInput{
		JobID: r.id, Generation: r.job.Generation, DispatchAttempt: r.job.DispatchAttempt,
	}).Get(ctx, out)
}

// maxTakeovers bounds how often one step may change its process.
const maxTakeovers = 100

// leased runs an activity of a lease in the process that holds it. If that
// process does not take it up, goes silent or stops, the step goes to any
// process with a free permit, which takes the lease over in a newer turn.
func (r *run) leased(ctx workflow.Context, name, summary string, in, out any) error {
	queue, wait := r.queue, time.Duration(r.job.Timing.StartDelay)
	for range maxTakeovers {
		if queue == "" {
			queue = activities.ClaimsQueue(workflow.GetInfo(r.ctx).TaskQueueName)
			wait = time.Duration(r.job.Timing.Lease)
		}
		err := workflow.ExecuteActivity(r.leasedOptions(ctx, name, queue, summary, wait), name, in).Get(ctx, out)
		if err == nil {
			if step, ok := out.(*activities.Step); ok {
				r.queue = step.Queue
			}
			return nil
		}
		if !handOver(err) || queue != r.queue && scheduleToStart(err) {
			return err
		}
		queue = ""
		summary = "take over: " + summary
	}
	return temporal.NewApplicationError("no process could carry on with the lease", activities.LeaseLostError)
}

func (r *run) leasedOptions(ctx workflow.Context, name, queue, summary string, wait time.Duration) workflow.Context {
	options := workflow.ActivityOptions{
		TaskQueue: queue, Summary: summary, ScheduleToStartTimeout: wait, WaitForCancellation: true,
		StartToCloseTimeout: leasedTimeout, HeartbeatTimeout: time.Duration(r.job.Timing.Heartbeat),
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}
	if name == activities.ReportOutcomeName {
		options.StartToCloseTimeout, options.HeartbeatTimeout = reportTimeout, 0
	}
	return workflow.WithActivityOptions(ctx, options)
}

// handOver says that another process should carry on.
func handOver(err error) bool {
	if _, timeout := errors.AsType[*temporal.TimeoutError](err); timeout {
		return true
	}
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return ok && (app.Type() == activities.PausedError || !app.NonRetryable() && app.Type() != activities.LeaseLostError)
}

func scheduleToStart(err error) bool {
	timeout, ok := errors.AsType[*temporal.TimeoutError](err)
	return ok && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}
