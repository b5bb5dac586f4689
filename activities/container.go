package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// Step is the answer of an activity of a lease.
type Step struct {
	// Queue is where the lease is now held, and its next activity runs.
	Queue string `json:"queue"`
	Node  string `json:"node,omitempty"`
	// Container is its container.
	Container string `json:"container,omitempty"`
	// Ending is how the run ended; nil while it goes on.
	Ending *Ending `json:"ending,omitempty"`
	// TimedOut says that the container's time is up; it still runs.
	TimedOut bool `json:"timed_out,omitempty"`
}

// StartContainer creates the container of a lease, records it and starts it,
// in this order, so that it can die after any step and be called again. A
// start that cannot work is an Ending, not an error.
func (a *Activities) StartContainer(ctx context.Context, in Work) (Step, error) {
	step := Step{Queue: a.Queue}
	progress := &Progress{Phase: "start"}
	err := a.leased(ctx, in, progress, func(held context.Context, lease leasestore.Lease, job leasestore.Job) error {
		step.Node = lease.NodeID
		var err error
		step.Container, err = a.start(held, job, lease)
		if trouble, ok := errors.AsType[*RuntimeError](err); ok {
			if context.Cause(held) != nil {
				return err
			}
			a.removeAll(held, lease.Endpoint, job.ID, lease.Epoch)
			step.Ending, err = endingOf(trouble), nil
		}
		return err
	})
	return step, err
}

func (a *Activities) start(ctx context.Context, job leasestore.Job, lease leasestore.Lease) (string, error) {
	spec, err := containerSpec(job)
	if err != nil {
		return "", &RuntimeError{Reason: ReasonInvalidSpec, Message: err.Error(), Err: err}
	}
	container, err := a.Runtime.Create(ctx, lease.Endpoint, ContainerRun{
		JobID: job.ID.String(), Definition: job.Definition, NodeID: lease.NodeID,
		Attempt: int(job.Attempt), Epoch: lease.Epoch, Spec: spec,
	})
	if err != nil {
		return "", err
	}
	// Attaching renews, so it is also the last look at the lease before the start.
	auth, ttl := lease.Authority, time.Duration(a.Timing.Lease)
	_, err = sure(ctx, func(ctx context.Context) (leasestore.Lease, error) {
		return a.Store.Attach(ctx, auth, lease.NodeID, container.ID, ttl)
	})
	if err != nil {
		return "", err
	}
	return container.ID, a.Runtime.Start(ctx, lease.Endpoint, container.ID)
}

// SuperviseContainer watches the container of a lease until it ends, its time
// is up, or the watching is to stop: a lost lease, a cancelled workflow and a
// stopping worker end the watching, never the container.
func (a *Activities) SuperviseContainer(ctx context.Context, in Work) (Step, error) {
	step := Step{Queue: a.Queue}
	progress := &Progress{Phase: "supervise"}
	err := a.leased(ctx, in, progress, func(held context.Context, lease leasestore.Lease, job leasestore.Job) error {
		step.Node, step.Container = lease.NodeID, lease.ContainerID
		return a.supervise(held, job, lease, &step)
	})
	return step, err
}

var errTimeIsUp = errors.New("the container's time is up")

func (a *Activities) supervise(held context.Context, job leasestore.Job, lease leasestore.Lease, step *Step) error {
	spec, err := containerSpec(job)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancelCause(held)
	var node sync.WaitGroup
	node.Go(func() { a.watchNode(watching, lease.Endpoint, stop) })
	defer node.Wait()
	defer stop(nil)
	tail, exit, err := a.watch(watching, lease, time.Duration(spec.Timeout))
	switch {
	case err == nil:
		step.Ending = &Ending{Exit: &exit, LogTail: tail, Started: true}
	case errors.Is(err, errTimeIsUp):
		step.TimedOut = true
	case errors.Is(err, errNodeLost):
		step.Ending = a.nodeLost(lease)
	default:
		return a.watched(held, err, step)
	}
	return nil
}

// watch waits for the end of a container, or until it has run for its timeout.
func (a *Activities) watch(ctx context.Context, lease leasestore.Lease, timeout time.Duration) (string, Exit, error) {
	container, err := a.inspect(ctx, lease)
	if err != nil {
		return "", Exit{}, err
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout-container.Elapsed, errTimeIsUp)
	defer stop()
	var tail Tail
	exit, err := a.Runtime.Wait(ctx, lease.Endpoint, lease.ContainerID, tail.Add)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return tail.String(), exit, err
}

// watched turns trouble of the runtime into an ending, unless the watching was
// stopped.
func (a *Activities) watched(held context.Context, err error, step *Step) error {
	trouble, ok := errors.AsType[*RuntimeError](err)
	if !ok || context.Cause(held) != nil {
		return err
	}
	step.Ending = endingOf(trouble)
	step.Ending.Started = true
	return nil
}

// Stop is the input of StopContainer.
type Stop struct {
	Work
	Intent leasestore.Intent `json:"intent"`
}

// StopContainer records that the job is to end as cancelled or timed out, and
// then stops its container: the stop signal, the grace, the kill.
func (a *Activities) StopContainer(ctx context.Context, in Stop) (Step, error) {
	step := Step{Queue: a.Queue}
	err := a.leased(ctx, in.Work, &Progress{Phase: "stop"}, func(held context.Context, lease leasestore.Lease, job leasestore.Job) error {
		step.Node, step.Container = lease.NodeID, lease.ContainerID
		_, err := sure(held, func(ctx context.Context) (leasestore.Lease, error) {
			return a.Store.Intend(ctx, lease.Authority, in.Intent, time.Duration(a.Timing.Lease))
		})
		if err != nil {
			return err
		}
		spec, err := containerSpec(job)
		if err != nil {
			return err
		}
		step.Ending, err = a.stopAll(held, lease.Endpoint, job.ID, time.Duration(spec.StopGrace))
		if trouble, ok := errors.AsType[*RuntimeError](err); ok && context.Cause(held) == nil {
			step.Ending, err = endingOf(trouble), nil
		}
		return err
	})
	return step, err
}

// stopAll stops every container of a job and returns how the newest ended.
func (a *Activities) stopAll(ctx context.Context, endpoint string, job uuid.UUID, grace time.Duration) (*Ending, error) {
	found, err := a.Runtime.Find(ctx, endpoint, job.String())
	if err != nil {
		return nil, err
	}
	ending := &Ending{}
	for i, container := range found {
		if container.State == ContainerCreated {
			continue
		}
		exit, err := a.Runtime.Stop(ctx, endpoint, container.ID, grace)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			ending = a.exited(ctx, endpoint, container.ID, exit)
		}
	}
	return ending, nil
}

// exited adds the last log lines to the exit of a container.
func (a *Activities) exited(ctx context.Context, endpoint, containerID string, exit Exit) *Ending {
	var tail Tail
	if again, err := a.Runtime.Wait(ctx, endpoint, containerID, tail.Add); err == nil {
		exit = again
	} else {
		exit.LogsIncomplete = true
	}
	return &Ending{Exit: &exit, LogTail: tail.String(), Started: true}
}

// removeAll removes the containers of a job up to an epoch. What it cannot
// remove now the sweep of the node finds later.
func (a *Activities) removeAll(ctx context.Context, endpoint string, job uuid.UUID, epoch int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bounded)
	defer cancel()
	found, err := a.Runtime.Find(ctx, endpoint, job.String())
	for _, container := range found {
		if container.Epoch <= epoch {
			err = errors.Join(err, a.Runtime.Remove(ctx, endpoint, container.ID))
		}
	}
	if err != nil {
		a.Log.WarnContext(ctx, "containers are left for the sweep", "job", job, "error", fmt.Sprint(err))
	}
}
