package worker

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/workflows"
)

// RecoveryStatus says when recovery ran, what its last runs did, when it runs
// next, and whether it is paused.
func RecoveryStatus(ctx context.Context, c client.Client) (Schedule, error) {
	found, err := c.ScheduleClient().GetHandle(ctx, RecoveryScheduleID).Describe(ctx)
	if err != nil {
		return Schedule{}, scheduleError(err)
	}
	status := Schedule{
		ID: RecoveryScheduleID, Paused: found.Schedule.State.Paused, Note: found.Schedule.State.Note,
		Runs: found.Info.NumActions, Skipped: found.Info.NumActionsSkippedOverlap, Missed: found.Info.NumActionsMissedCatchupWindow,
	}
	if spec := found.Schedule.Spec; spec != nil && len(spec.Intervals) > 0 {
		status.Interval = spec.Intervals[0].Every.String()
	}
	if len(found.Info.NextActionTimes) > 0 {
		status.Next = found.Info.NextActionTimes[0]
	}
	for _, running := range found.Info.RunningWorkflows {
		status.Running = append(status.Running, running.WorkflowID)
	}
	for _, action := range slices.Backward(found.Info.RecentActions) {
		if started := action.StartWorkflowResult; started != nil {
			run := ScheduleRun{At: action.ActualTime, WorkflowID: started.WorkflowID, RunID: started.FirstExecutionRunID}
			run.read(ctx, c, slices.Contains(status.Running, run.WorkflowID))
			status.Recent = append(status.Recent, run)
		}
	}
	return status, nil
}

// read adds what a run that has ended did.
func (r *ScheduleRun) read(ctx context.Context, c client.Client, running bool) {
	if running {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var result workflows.RecoverResult
	if err := c.GetWorkflow(ctx, r.WorkflowID, r.RunID).Get(ctx, &result); err != nil {
		r.Error = rootCause(err)
		return
	}
	r.Result = &result
}
