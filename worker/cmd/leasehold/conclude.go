package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// conclude tells the job's end and returns it as an exit code.
func (f *follower) conclude(ctx context.Context, end error) error {
	ctx, stop := context.WithTimeout(ctx, connectWithin)
	defer stop()
	job, err := f.finalJob(ctx)
	if err != nil {
		return errors.Join(workflowError(end), err)
	}
	f.log.finish(f.c.out, job.LogTail, f.c.output == "json")
	if f.c.output == "json" {
		if err := f.c.printJSON(activities.ResultOf(job)); err != nil {
			return err
		}
	}
	fmt.Fprintln(f.c.errOut, f.c.ending(job))
	switch job.Status {
	case leasestore.Completed:
		return nil
	case leasestore.Canceled:
		return &endedError{code: exitInterrupted}
	case leasestore.Failed:
		return &endedError{code: exitFailed}
	case leasestore.Pending, leasestore.Queued, leasestore.Running:
	}
	return fmt.Errorf("the workflow has ended and job %s is still %s: %w", job.ID, job.Status, workflowError(end))
}

// finalJob returns the job of the workflow: another one than ours if an
// idempotency key led to an earlier one.
func (f *follower) finalJob(ctx context.Context) (leasestore.Job, error) {
	job, err := f.store.Job(ctx, f.jobID)
	if _, missing := errors.AsType[*leasestore.NotFoundError](err); !missing {
		return job, err
	}
	var result activities.JobResult
	if err := f.run.Get(ctx, &result); err != nil {
		return job, err
	}
	id, err := uuid.Parse(result.JobID)
	if err != nil {
		return job, err
	}
	return f.store.Job(ctx, id)
}

// ending is a job's end in one sentence.
func (c *cli) ending(job leasestore.Job) string {
	var text string
	switch job.Status {
	case leasestore.Completed:
		text = "Completed in " + c.took(job)
	case leasestore.Failed:
		text = "Failed: " + job.Failure.Message
	case leasestore.Canceled:
		text = "Cancelled"
		if job.Failure.Reason != activities.ReasonCanceled {
			text += ": " + job.Failure.Message
		}
	case leasestore.Pending, leasestore.Queued, leasestore.Running:
		return fmt.Sprintf("The job is still %s.", job.Status)
	}
	detail := fmt.Sprintf("attempts %d, epoch %d", job.Attempt, job.Epoch)
	if job.NodeID != "" {
		detail += ", node " + job.NodeID
	}
	if job.ExitCode != nil {
		detail += ", exit code " + strconv.Itoa(*job.ExitCode)
	}
	return fmt.Sprintf("%s (%s).", strings.TrimRight(text, ".\n"), detail)
}
