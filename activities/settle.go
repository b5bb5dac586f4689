package activities

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// settle decides one recovered job's fate and tells its RunJob.
func (a *Activities) settle(ctx context.Context, taken leasestore.Recovered) RecoveredJob {
	answer := RecoveredJob{JobID: taken.Job.ID.String(), Epoch: taken.Job.Epoch, Status: taken.Job.Status}
	if taken.GivenUp {
		answer.Message = taken.Job.Failure.Message
		a.tell(ctx, taken.Job, Settled{})
		return answer
	}
	lease, err := sure(ctx, func(ctx context.Context) (leasestore.Lease, error) {
		return a.Store.Prove(ctx, taken.Authority, time.Duration(a.Timing.Lease))
	})
	if err != nil {
		answer.Message = err.Error()
		return answer
	}
	ending, adopted, err := a.findEnding(ctx, taken.Job, lease)
	switch {
	case err != nil:
		answer.Message = "not settled, to be tried again: " + err.Error()
		return answer
	case adopted:
		answer.Message = "its container still runs and was adopted"
		a.tell(ctx, taken.Job, Settled{Authority: &lease.Authority, Node: lease.NodeID})
		return answer
	}
	job, err := a.record(ctx, lease.Authority, taken.Job, *ending)
	if err != nil {
		answer.Message = "not settled, to be tried again: " + err.Error()
		return answer
	}
	a.Recovering.Ended(job.ID, lease.Epoch)
	if lease.Endpoint != "" {
		a.removeAll(ctx, lease.Endpoint, job.ID, lease.Epoch)
	}
	a.tell(ctx, job, Settled{})
	a.wakeNext(ctx, job)
	answer.Status, answer.Message = job.Status, job.Failure.Message
	return answer
}

// findEnding looks, on the node that made it, at what became of the container.
func (a *Activities) findEnding(ctx context.Context, job leasestore.Job, lease leasestore.Lease) (*Ending, bool, error) {
	if job.Kind == leasestore.Heartbeat {
		return lost("its worker stopped answering"), false, nil
	}
	found, err := a.Runtime.Find(ctx, lease.Endpoint, job.ID.String())
	if trouble, ok := errors.AsType[*RuntimeError](err); ok && context.Cause(ctx) == nil {
		return endingOf(trouble), false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if len(found) == 0 {
		return lost("its worker stopped answering, and no container of it is left on node " + lease.NodeID), false, nil
	}
	newest := found[0]
	switch newest.State {
	case ContainerExited:
		if newest.Exit == nil {
			return lost("its worker stopped answering before the container ran"), false, nil
		}
		return a.exited(ctx, lease.Endpoint, newest.ID, *newest.Exit), false, nil
	case ContainerCreated, ContainerOther:
		return lost("its worker stopped answering before the container ran"), false, nil
	case ContainerRunning, ContainerPaused:
		if job.OnExpiry == leasestore.Adopt && newest.ID == lease.ContainerID {
			return nil, true, nil
		}
	}
	return a.stopForRetry(ctx, job, lease)
}

// stopForRetry stops what still runs, so that the next attempt is alone.
func (a *Activities) stopForRetry(ctx context.Context, job leasestore.Job, lease leasestore.Lease) (*Ending, bool, error) {
	spec, err := containerSpec(job)
	if err != nil {
		return nil, false, err
	}
	stopped, err := a.stopAll(ctx, lease.Endpoint, job.ID, time.Duration(spec.StopGrace))
	if err != nil {
		return nil, false, err
	}
	found, err := a.Runtime.Find(ctx, lease.Endpoint, job.ID.String())
	for _, container := range found {
		err = errors.Join(err, a.Runtime.Remove(ctx, lease.Endpoint, container.ID))
	}
	if err != nil {
		return nil, false, err
	}
	ending := lost("its worker stopped answering; the container was stopped so that the next attempt is alone")
	ending.LogTail = stopped.LogTail
	return ending, false, nil
}

func lost(message string) *Ending {
	return &Ending{Failure: &leasestore.Failure{Kind: leasestore.SystemFailure, Reason: ReasonLeaseLost, Message: message}}
}
