package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// RecoverInput is RecoverExpiredLeases' input.
type RecoverInput = activities.RecoverExpiredInput

// RecoverResult is what one run of RecoverExpiredLeases did.
type RecoverResult struct {
	Batches   int                       `json:"batches"`
	Recovered int                       `json:"recovered"`
	Released  int                       `json:"released"`
	Completed int                       `json:"completed"`
	Failed    int                       `json:"failed"`
	Canceled  int                       `json:"canceled"`
	Adopted   int                       `json:"adopted"`
	Restarted int                       `json:"restarted"`      // RunJobs of waiting jobs
	Jobs      []activities.RecoveredJob `json:"jobs,omitempty"` // the first 100
}

// A worker that hangs may be given an activity of a schedule, which then blocks
// all later runs: these bound for how long.
const (
	silence        = 10 * time.Second // of an activity that sends heartbeats
	restartTimeout = 15 * time.Second
)

// RecoverExpiredLeases takes over leases that have run out, in bounded
// batches, until a batch is not full or all batches are used. Then it starts
// RunJob again for waiting jobs that have lost theirs. A Temporal Schedule
// starts it; any number of runs may overlap.
func RecoverExpiredLeases(ctx workflow.Context, input json.RawMessage) (RecoverResult, error) {
	var result RecoverResult
	in, err := activities.ParseRecoverInput(input)
	if err != nil {
		return result, temporal.NewNonRetryableApplicationError(err.Error(), activities.InvalidInputError, nil)
	}
	if err := result.recover(ctx, in); err != nil {
		return result, surface(err)
	}
	if err := result.restart(ctx); err != nil {
		return result, surface(err)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d leases recovered: %d released, %d completed, %d failed, %d adopted; %d workflows started again",
		result.Recovered, result.Released, result.Completed, result.Failed, result.Adopted, result.Restarted))
	return result, nil
}

func (r *RecoverResult) recover(ctx workflow.Context, in RecoverInput) error {
	for range in.Batches {
		ctx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: 2 * time.Minute, HeartbeatTimeout: silence, ScheduleToStartTimeout: time.Minute,
			RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
			Summary:     fmt.Sprintf("recover up to %d expired leases", in.BatchSize),
		})
		var batch activities.RecoverBatchResult
		err := workflow.ExecuteActivity(ctx, activities.RecoverBatchName,
			activities.RecoverInput{BatchSize: in.BatchSize}).Get(ctx, &batch)
		if err != nil {
			return err
		}
		r.add(batch)
		if len(batch.Jobs) < in.BatchSize {
			break
		}
	}
	return nil
}

func (r *RecoverResult) restart(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: restartTimeout, ScheduleToStartTimeout: time.Minute,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:     "start RunJob again for waiting jobs that have lost theirs",
	})
	var restarted activities.RestartResult
	if err := workflow.ExecuteActivity(ctx, activities.RestartRunJobsName).Get(ctx, &restarted); err != nil {
		return err
	}
	r.Restarted = len(restarted.Restarted)
	return nil
}

func (r *RecoverResult) add(batch activities.RecoverBatchResult) {
	r.Batches++
	for _, job := range batch.Jobs {
		r.Recovered++
		switch job.Status {
		case leasestore.Pending:
			r.Released++
		case leasestore.Completed:
			r.Completed++
		case leasestore.Failed:
			r.Failed++
		case leasestore.Canceled:
			r.Canceled++
		case leasestore.Running:
			r.Adopted++
		case leasestore.Queued:
		}
		if len(r.Jobs) < 100 {
			r.Jobs = append(r.Jobs, job)
		}
	}
}

// ProbeRuntimeNodes pings every runtime node once and removes containers whose
// epoch is over. A Temporal Schedule starts it.
func ProbeRuntimeNodes(ctx workflow.Context) (activities.ProbeNodesResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: silence, ScheduleToStartTimeout: time.Minute, Summary: "probe the runtime nodes",
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	var result activities.ProbeNodesResult
	err := workflow.ExecuteActivity(ctx, activities.ProbeNodesName).Get(ctx, &result)
	return result, surface(err)
}
