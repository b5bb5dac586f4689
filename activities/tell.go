package activities

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/leasehold/leasehold/leasestore"
)

// RunJobName is the workflow type that drives one job.
const RunJobName = "RunJob"

// tell signals the RunJob that drives a job. If the job is to go on and its
// RunJob no longer runs, it is started again.
func (a *Activities) tell(ctx context.Context, job leasestore.Job, settled Settled) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bounded)
	defer cancel()
	driver, err := a.driver(ctx, job)
	switch {
	case err != nil:
	case job.Status.Ended():
		err = a.Client.SignalWorkflow(ctx, driver, "", RecoveredSignal, settled)
	default:
		err = a.signalOrStart(ctx, job, driver, RecoveredSignal, settled)
	}
	if err != nil && !notRunning(err) {
		a.Log.WarnContext(ctx, "a job's workflow was not told of its recovery",
			"job", job.ID, "workflow", job.WorkflowID, "error", fmt.Sprint(err))
	}
}

// driver is the workflow that drives a job: the one that enqueued it. But if a
// workflow was terminated and its ID then used for another job, that one has
// the ID, and the job before it gets a driver of its own.
func (a *Activities) driver(ctx context.Context, job leasestore.Job) (string, error) {
	newest, err := a.Store.Jobs(ctx, leasestore.JobFilter{WorkflowID: job.WorkflowID, Limit: 1})
	if err != nil {
		return "", err
	}
	if len(newest) == 0 || newest[0].ID == job.ID {
		return job.WorkflowID, nil
	}
	return job.WorkflowID + "-" + job.ID.String(), nil
}

// signalOrStart signals a job's RunJob and starts it if it does not run.
func (a *Activities) signalOrStart(ctx context.Context, job leasestore.Job, driver, signal string, payload any) error {
	_, err := a.Client.SignalWithStartWorkflow(ctx, driver, signal, payload, client.StartWorkflowOptions{
		ID: driver, TaskQueue: a.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         "job " + job.Definition + " (started again by recovery)",
	}, RunJobName, JobInput{JobID: job.ID.String()})
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil
	}
	return err
}
