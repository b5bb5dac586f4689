package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"github.com/leasehold/leasehold/leasestore"
)

// Report is the input of ReportOutcome: a lease and how its run ended.
type Report struct {
	Authority leasestore.Authority `json:"authority"`
	Ending    Ending               `json:"ending"`
}

// ReportOutcome ends a lease: it decides the outcome of the run, records it,
// and then removes the container. The same report sent again is confirmed, so
// it needs no proof before: recording is the proof.
func (a *Activities) ReportOutcome(ctx context.Context, in Report) (JobState, error) {
	auth := in.Authority.By(a.Holder, turn(activity.GetInfo(ctx)))
	before, err := promptly(ctx, func(ctx context.Context) (leasestore.Job, error) { return a.Store.Job(ctx, auth.JobID) })
	if err != nil {
		return JobState{}, applicationError(err)
	}
	endpoint, err := a.endpointOf(ctx, auth, before)
	if err != nil {
		return JobState{}, applicationError(err)
	}
	job, err := a.record(ctx, auth, before, in.Ending)
	if err != nil {
		if isType[*leasestore.UnknownError](err) {
			a.Keeper.Unconfirmed(auth)
		}
		return JobState{}, applicationError(err)
	}
	a.Keeper.Ended(auth.JobID, auth.Epoch)
	if endpoint != "" {
		a.removeAll(ctx, endpoint, job.ID, auth.Epoch)
	}
	a.wakeNext(ctx, job)
	return a.stateOf(job), nil
}

// endpointOf is where the containers of a lease are; empty for a HEARTBEAT job
// and for an ownership that has ended: this is then a repetition.
func (a *Activities) endpointOf(ctx context.Context, auth leasestore.Authority, job leasestore.Job) (string, error) {
	if job.Kind == leasestore.Heartbeat {
		return "", nil
	}
	lease, err := promptly(ctx, func(ctx context.Context) (leasestore.Lease, error) { return a.Store.Lease(ctx, auth.JobID) })
	switch {
	case isType[*leasestore.NotFoundError](err):
		return "", nil
	case err != nil:
		return "", err
	case lease.Epoch != auth.Epoch:
		return "", nil
	}
	return lease.Endpoint, nil
}

// record writes the outcome that the evidence leads to.
func (a *Activities) record(ctx context.Context, auth leasestore.Authority, job leasestore.Job, seen Ending) (leasestore.Job, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bounded)
	defer cancel()
	verdict, outcome := Decide(job, seen)
	return sure(ctx, func(ctx context.Context) (leasestore.Job, error) {
		switch verdict {
		case VerdictComplete:
			return a.Store.Complete(ctx, auth, outcome)
		case VerdictCancel:
			return a.Store.Cancel(ctx, auth, outcome)
		case VerdictFail:
			return a.Store.Fail(ctx, auth, outcome)
		case VerdictRelease:
			return a.Store.Release(ctx, auth, outcome, false)
		}
		return job, fmt.Errorf("no verb for verdict %q", verdict)
	})
}

// WakeSignal tells a waiting RunJob to look again at once.
const WakeSignal = "leasehold-wake"

// wakeNext wakes the jobs that wait for one of this definition to end. If it
// cannot, they find out by their own timer.
func (a *Activities) wakeNext(ctx context.Context, ended leasestore.Job) {
	if !ended.Limited {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	next, err := a.Store.NextInLine(ctx, ended.Definition, 1)
	for _, job := range next {
		driver, unread := a.driver(ctx, job)
		if unread == nil {
			unread = a.Client.SignalWorkflow(ctx, driver, "", WakeSignal, nil)
		}
		err = errors.Join(err, unread)
	}
	if err != nil && !notRunning(err) {
		a.Log.WarnContext(ctx, "a waiting job was not woken", "definition", ended.Definition, "error", fmt.Sprint(err))
	}
}

func notRunning(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}
