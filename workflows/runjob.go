package workflows

import (
	"encoding/json"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// The workflow types.
const (
	RunJobName               = activities.RunJobName
	RecoverExpiredLeasesName = "RecoverExpiredLeases"
	ProbeRuntimeNodesName    = "ProbeRuntimeNodes"
)

// JobQuery asks a RunJob for its job, as an [activities.JobState].
const JobQuery = "job"

type (
	// JobInput is RunJob's input.
	JobInput = activities.JobInput
	// JobResult is RunJob's result, and the details of its failure.
	JobResult = activities.JobResult
)

// RunJob drives one job from its enqueueing to its end and returns its result.
// The input is the JSON of a [JobInput]. A failed job fails the workflow with
// a JobFailed error whose details are the [JobResult]; a canceled one cancels
// it. Canceling the workflow cancels the job: its container is stopped first.
//
// The workflow decides nothing about ownership: it carries an authority from
// activity to activity, and PostgreSQL accepts or refuses it.
func RunJob(ctx workflow.Context, input json.RawMessage) (JobResult, error) {
	r := newRun(ctx)
	if err := r.enqueue(input); err != nil {
		return JobResult{}, surface(err)
	}
	for !r.job.Result.Status.Ended() {
		r.show()
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return JobResult{}, workflow.NewContinueAsNewError(ctx, RunJobName, JobInput{JobID: r.job.Result.JobID})
		}
		if err := r.step(); err != nil {
			return JobResult{}, surface(err)
		}
	}
	r.show()
	return r.outcome()
}

// run is the state of one RunJob.
type run struct {
	// ctx ends when the workflow is canceled; work does not, so that a job can
	// be brought to its end after it.
	ctx, work workflow.Context
	job       activities.JobState
	id        uuid.UUID
	wakes     workflow.ReceiveChannel
	recovered workflow.ReceiveChannel
	waiting   waiting
	// queue and node are where the current lease is held; empty without one.
	queue, node string
	tagged      tagged // the search attributes as they are set
	summary     string // what it waits for
}

func newRun(ctx workflow.Context) *run {
	work, _ := workflow.NewDisconnectedContext(ctx)
	return &run{
		ctx: ctx, work: work,
		wakes:     workflow.GetSignalChannel(ctx, activities.WakeSignal),
		recovered: workflow.GetSignalChannel(ctx, activities.RecoveredSignal),
	}
}

func (r *run) canceled() bool { return r.ctx.Err() != nil }

func (r *run) enqueue(input json.RawMessage) error {
	info := workflow.GetInfo(r.ctx)
	err := r.quick(activities.EnqueueJobName, "enqueue", activities.EnqueueInput{
		Input: input, WorkflowID: info.WorkflowExecution.ID, RunID: info.OriginalRunID,
	}, &r.job)
	if err != nil {
		return err
	}
	r.id, err = uuid.Parse(r.job.Result.JobID)
	if err != nil {
		return err
	}
	return workflow.SetQueryHandlerWithOptions(r.ctx, JobQuery,
		func() (activities.JobState, error) { return r.job, nil },
		workflow.QueryHandlerOptions{Description: "the job as this workflow knows it"})
}

// step takes the job one status further.
func (r *run) step() error {
	switch r.job.Result.Status {
	case leasestore.Pending:
		return r.dispatch()
	case leasestore.Queued:
		return r.claim()
	case leasestore.Running:
		return r.awaitRecovery()
	case leasestore.Completed, leasestore.Failed, leasestore.Canceled:
	}
	return nil
}

// dispatch waits until the next attempt is due and offers the job.
func (r *run) dispatch() error {
	if wait := r.job.Wait; wait > 0 && !r.canceled() {
		r.summary = "waits for its next attempt"
		r.show()
		r.sleep(wait, "next attempt")
	}
	if r.canceled() {
		return r.withdraw(activities.CanceledOnRequest())
	}
	return r.quick(activities.DispatchJobName, "dispatch",
		activities.DispatchInput{JobID: r.id, After: r.job.DispatchAttempt}, &r.job)
}

// claim asks for a lease until there is one, and runs the job under it.
func (r *run) claim() error {
	if r.canceled() {
		return r.withdraw(activities.CanceledOnRequest())
	}
	var claim activities.Claim
	if err := r.claimJob(&claim); err != nil {
		if r.canceled() {
			return r.read()
		}
		return err
	}
	if claim.Authority != nil {
		r.waiting = waiting{}
		r.queue, r.node = claim.Queue, claim.Node
		return r.attempt(*claim.Authority)
	}
	refused := claim.Refused
	switch refused.Reason {
	case leasestore.StaleDefinition:
		return r.withdraw(leasestore.Failure{
			Kind: leasestore.UserFailure, Reason: activities.ReasonStale,
			Message: "its definition was changed before it could run",
		})
	case leasestore.NotQueued, leasestore.StaleDispatch, leasestore.ClaimOver:
		return r.read()
	case leasestore.Paused, leasestore.LimitReached, leasestore.BehindAnother, leasestore.NoReadyNode,
		leasestore.NoFreeSlot, leasestore.Contended, leasestore.NewEra:
		r.summary = "waits: " + string(refused.Reason)
		if refused.Blocker != "" {
			r.summary += " (" + refused.Blocker + ")"
		}
		r.show()
		r.tag()
		r.sleep(r.waiting.next(refused.Retry), r.summary)
	}
	return nil
}

func (r *run) withdraw(why leasestore.Failure) error {
	return r.quick(activities.WithdrawJobName, "withdraw", activities.WithdrawInput{JobID: r.id, Why: why}, &r.job)
}

func (r *run) read() error {
	return r.quick(activities.ReadJobName, "read", r.id, &r.job)
}

// awaitRecovery waits for a job that runs under a lease which is not ours:
// another workflow's, or one that ran out and is being settled. Recovery tells
// us; the timer is for a signal that was lost.
func (r *run) awaitRecovery() error {
	r.queue = ""
	r.summary = "runs under a lease that this workflow does not hold; waits for its end or its recovery"
	r.show()
	var settled activities.Settled
	told := r.receive(r.recovered, &settled, r.job.Timing.Lease/2+r.job.Timing.Recovery, "recovery")
	if told && settled.Authority != nil && settled.Authority.JobID == r.id {
		r.node = settled.Node
		return r.resume(*settled.Authority)
	}
	return r.read()
}
