package activities

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// EnqueueInput is RunJob's input as it came, and the workflow that it came to.
type EnqueueInput struct {
	Input json.RawMessage `json:"input"`
	// WorkflowID and RunID make a repeated enqueue the same job. RunID is the
	// first one before any reset.
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// EnqueueJob stores the job that the input describes, and offers it if it is
// due, or finds the one that
// this workflow, or its idempotency key, made before. A bad input is an
// InvalidInput error that names the field.
func (a *Activities) EnqueueJob(ctx context.Context, in EnqueueInput) (JobState, error) {
	job, err := a.enqueue(ctx, in)
	if err != nil {
		return JobState{}, applicationError(err)
	}
	return a.stateOf(job), nil
}

func (a *Activities) enqueue(ctx context.Context, in EnqueueInput) (leasestore.Job, error) {
	input, err := ParseJobInput(in.Input)
	if err != nil {
		return leasestore.Job{}, err
	}
	if input.JobID != "" {
		id, err := uuid.Parse(input.JobID)
		if err != nil {
			return leasestore.Job{}, &InputError{"job_id: is not a UUID"}
		}
		return a.Store.Job(ctx, id)
	}
	name := input.Definition
	if name == "" {
		name = in.WorkflowID
	}
	generation := input.Generation
	if input.Kind != "" {
		def, err := input.Stored(name)
		if err != nil {
			return leasestore.Job{}, err
		}
		if def.MaxAttempts == 0 {
			def.MaxAttempts = a.Retry.MaxAttempts
		}
		if def.Backoff == 0 {
			def.Backoff = a.Retry.Backoff
		}
		if def, err = a.Store.Apply(ctx, def); err != nil {
			return leasestore.Job{}, err
		}
		if generation == 0 {
			generation = def.Generation
		}
	}
	request := leasestore.EnqueueRequest{
		JobID: JobIDOf(in.WorkflowID, in.RunID), Definition: name, Generation: generation,
		IdempotencyKey: input.IdempotencyKey, WorkflowID: in.WorkflowID, Dispatch: true,
	}
	if input.ScheduledAt != nil {
		request.ScheduledAt = *input.ScheduledAt
	}
	return a.Store.Enqueue(ctx, request)
}

// JobIDOf is the ID of the job that one run of RunJob makes.
func JobIDOf(workflowID, runID string) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Join([]string{"leasehold", workflowID, runID}, "\x00")))
}

// DispatchInput names a job and the dispatch attempt that its driver knows.
type DispatchInput struct {
	JobID uuid.UUID `json:"job_id"`
	After int64     `json:"after"`
}

// DispatchJob offers a job for execution and returns it; one that is not due,
// or no longer waiting, comes back as it is.
func (a *Activities) DispatchJob(ctx context.Context, in DispatchInput) (JobState, error) {
	job, err := a.Store.Dispatch(ctx, in.JobID, in.After)
	if _, notDue := errors.AsType[*leasestore.NotDueError](err); notDue {
		job, err = a.Store.Job(ctx, in.JobID)
	}
	if err != nil {
		return JobState{}, applicationError(err)
	}
	return a.stateOf(job), nil
}

// WithdrawInput names a job that nobody owns and why it is not to run.
type WithdrawInput struct {
	JobID uuid.UUID          `json:"job_id"`
	Why   leasestore.Failure `json:"why"`
}

// WithdrawJob cancels a job that waits. One that runs or has ended comes back
// as it is, untouched.
func (a *Activities) WithdrawJob(ctx context.Context, in WithdrawInput) (JobState, error) {
	job, err := a.Store.Withdraw(ctx, in.JobID, in.Why)
	if err != nil {
		return JobState{}, applicationError(err)
	}
	a.wakeNext(ctx, job)
	return a.stateOf(job), nil
}

// ReadJob returns a job as it is.
func (a *Activities) ReadJob(ctx context.Context, id uuid.UUID) (JobState, error) {
	job, err := a.Store.Job(ctx, id)
	if err != nil {
		return JobState{}, applicationError(err)
	}
	return a.stateOf(job), nil
}
