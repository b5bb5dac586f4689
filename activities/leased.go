package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/leasehold/leasehold/leasestore"
)

// Work is the input of the activities of a lease.
type Work struct {
	Authority leasestore.Authority `json:"authority"`
}

// Progress is what an activity reports to Temporal while it works.
type Progress struct {
	Phase     string    `json:"phase"`
	Epoch     int64     `json:"epoch"`
	Worker    string    `json:"worker"`
	Node      string    `json:"node,omitempty"`
	Container string    `json:"container,omitempty"`
	LastLine  string    `json:"last_line,omitempty"`
	At        time.Time `json:"at"`
}

// leased runs work under a lease: it proves the authority with the attempt's
// own turn, keeps the lease while the work runs, tells Temporal that it is
// alive, and words the error. The work's context ends when the lease is lost,
// when the activity is cancelled, and when the worker begins to stop.
func (a *Activities) leased(ctx context.Context, in Work, phase *Progress, work func(context.Context, leasestore.Lease, leasestore.Job) error) error {
	info := activity.GetInfo(ctx)
	auth := in.Authority.By(a.Holder, turn(info))
	lease, job, err := a.prove(ctx, auth)
	if err != nil {
		return applicationError(err)
	}
	held, done := a.Keeper.Keep(ctx, lease)
	defer done()
	held, cancel := context.WithCancelCause(held)
	defer cancel(nil)
	phase.Epoch, phase.Worker, phase.Node, phase.Container = lease.Epoch, a.Holder.Worker, lease.NodeID, lease.ContainerID
	beats := a.beat(ctx, held, cancel, phase)
	err = work(held, lease, job)
	lost := context.Cause(held)
	cancel(nil)
	<-beats
	if err == nil {
		return nil
	}
	if lost != nil { // the work was stopped: say why, not what it made of that
		return stoppedBy(lost)
	}
	return applicationError(err)
}

// prove tries until the authority is proven, refused, or out of time: an
// unreachable database is no reason to fail the step while the lease may live.
func (a *Activities) prove(ctx context.Context, auth leasestore.Authority) (leasestore.Lease, leasestore.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(a.Timing.Heartbeat)*3/4)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		attempt, done := context.WithTimeout(ctx, min(prompt, time.Duration(a.Timing.Heartbeat)/4))
		lease, job, err := a.Store.ProveJob(attempt, auth, time.Duration(a.Timing.Lease))
		done()
		if err == nil || isType[*leasestore.LostError](err) || isType[*leasestore.NotFoundError](err) ||
			isType[*leasestore.InvalidError](err) {
			return lease, job, err
		}
		select {
		case <-ctx.Done():
			return lease, job, err
		case <-time.After(wait):
		}
	}
}

// beat sends heartbeats until held ends, and cancels held when the worker
// begins to stop. It goes on while the activity drains after a cancellation:
// the server would time it out otherwise.
func (a *Activities) beat(ctx, held context.Context, cancel context.CancelCauseFunc, phase *Progress) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		ticker := time.NewTicker(time.Duration(a.Timing.Heartbeat) / 3)
		defer ticker.Stop()
		for {
			activity.RecordHeartbeat(ctx, phase.now())
			select {
			case <-held.Done():
				return
			case <-workerStopping(ctx):
				cancel(errWorkerStopping)
				return
			case <-ticker.C:
			}
		}
	}()
	return over
}

var errWorkerStopping = errors.New("the worker stops: another carries on")

func (p *Progress) now() Progress {
	copied := *p
	copied.At = time.Now().UTC()
	return copied
}

// stoppedBy words the cause that ended a held context.
func stoppedBy(cause error) error {
	switch {
	case errors.Is(cause, errWorkerStopping):
		return temporal.NewApplicationError(cause.Error(), WorkerStoppingError)
	case errors.Is(cause, activity.ErrActivityPaused):
		return temporal.NewNonRetryableApplicationError("the activity was paused: another carries on", PausedError, nil)
	case isType[*temporal.CanceledError](cause), errors.Is(cause, context.Canceled):
		return temporal.NewCanceledError()
	}
	return applicationError(cause)
}
