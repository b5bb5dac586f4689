package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/leasestore"
)

// follower tells what becomes of a job, until its workflow has ended.
type follower struct {
	c        *cli
	store    *leasestore.Store
	temporal client.Client
	run      client.WorkflowRun
	queue    string
	jobID    uuid.UUID
	told     string    // the state told last
	since    time.Time // when it was told
	hinted   bool
	log      logFollower
}

const (
	lookEvery = 300 * time.Millisecond
	// hintAfter is how long a job may wait before the wait is explained.
	hintAfter = 3 * time.Second
)

// follow returns when the job has ended. When ctx ends it asks for the job's
// cancellation, once, and goes on until that has come about.
func (f *follower) follow(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := f.await(work, f.run)
	defer func() {
		stop()
		f.log.stop()
		for range ended {
		}
	}()
	f.since = f.c.now()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	interrupted := ctx.Done()
	for {
		select {
		case <-interrupted:
			interrupted = nil
			if err := f.cancel(work); err != nil {
				return err
			}
		case <-ticker.C:
			f.look(work)
		case err := <-ended:
			again := f.successor(work)
			if again == nil {
				return f.conclude(work, err)
			}
			ended = f.await(work, again)
		}
	}
}

// await sends the workflow's end, once, and closes.
func (f *follower) await(ctx context.Context, run client.WorkflowRun) <-chan error {
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- run.Get(ctx, nil)
	}()
	return ended
}

func (f *follower) cancel(ctx context.Context) error {
	fmt.Fprintln(f.c.errOut, "Cancelling the job and waiting for its end. Ctrl-C again leaves at once.")
	ctx, stop := context.WithTimeout(ctx, connectWithin)
	defer stop()
	err := f.temporal.CancelWorkflow(ctx, f.run.GetID(), "")
	if _, over := errors.AsType[*serviceerror.NotFound](err); over {
		return nil // it ends at this moment
	}
	if err != nil {
		return fmt.Errorf("cancel the job: %w", err)
	}
	return nil
}

// successor returns the run that a reset has put in the place of the one that
// ended, if there is one and the job goes on.
func (f *follower) successor(ctx context.Context) client.WorkflowRun {
	ctx, stop := context.WithTimeout(ctx, connectWithin)
	defer stop()
	job, err := f.store.Job(ctx, f.jobID)
	if err != nil || job.Status.Ended() {
		return nil
	}
	now, err := f.temporal.DescribeWorkflow(ctx, f.run.GetID(), "")
	if err != nil || now.WorkflowCloseTime != nil {
		return nil
	}
	return f.temporal.GetWorkflow(ctx, f.run.GetID(), now.WorkflowExecution.RunID)
}

// look reads the job and tells what is new. What cannot be read now is read
// the next time: the job's end is told by Temporal.
func (f *follower) look(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, connectWithin)
	defer stop()
	job, err := f.store.Job(ctx, f.jobID)
	if err == nil {
		f.tell(job)
		if job.Status == leasestore.Running && job.ContainerID != "" {
			f.log.follow(ctx, f.c, f.store, job)
		}
	}
	if !f.hinted && f.c.now().Sub(f.since) > hintAfter {
		f.hint(ctx, job, err)
	}
}

func (f *follower) tell(job leasestore.Job) {
	state := stateOf(job)
	if state == f.told || job.Status.Ended() {
		return
	}
	f.told, f.since, f.hinted = state, f.c.now(), false
	fmt.Fprintln(f.c.errOut, state)
}

func stateOf(job leasestore.Job) string {
	switch {
	case job.Status == leasestore.Running && job.Kind == leasestore.Heartbeat:
		return fmt.Sprintf("Running: attempt %d, epoch %d.", job.Attempt, job.Epoch)
	case job.Status == leasestore.Running:
		return fmt.Sprintf("Running on node %s: attempt %d, epoch %d.", job.NodeID, job.Attempt, job.Epoch)
	case job.Status == leasestore.Pending && job.Attempt > 0:
		return fmt.Sprintf("Attempt %d failed (%s): the next one is at %s.",
			job.Attempt, job.Failure.Message, job.NextAttemptAt.Local().Format(time.TimeOnly))
	case job.Status == leasestore.Queued:
		return "Queued."
	}
	return "Pending."
}

// hint explains a wait, once for each state.
func (f *follower) hint(ctx context.Context, job leasestore.Job, err error) {
	f.hinted = true
	if _, missing := errors.AsType[*leasestore.NotFoundError](err); missing {
		fmt.Fprintf(f.c.errOut, "No worker has taken it yet: does leasehold worker run on task queue %s?\n", f.queue)
		return
	}
	if err != nil || job.Status != leasestore.Queued {
		return
	}
	rules, err := explain(ctx, f.store, job, f.c.now())
	if err != nil {
		return
	}
	for _, rule := range rules {
		if !rule.Met {
			fmt.Fprintf(f.c.errOut, "It waits: %s.\n", rule.Why)
			return
		}
	}
}
