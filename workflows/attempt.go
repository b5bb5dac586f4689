package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// attempt runs the job under a fresh lease and reports how it ended. Whatever
// goes wrong with the lease ends the attempt, not the job: the job's status in
// the database says what comes next.
func (r *run) attempt(auth leasestore.Authority) error {
	r.job.Result.Status, r.job.Result.Epoch, r.job.Result.Node = leasestore.Running, auth.Epoch, r.node
	r.job.Result.Attempts++
	r.summary = "runs"
	r.show()
	if r.job.Kind == leasestore.Container { // a heartbeat is over before anybody looks
		r.tag()
	}
	ending, err := r.first(auth)
	return r.end(auth, ending, err)
}

// resume carries on with a container that recovery has adopted.
func (r *run) resume(auth leasestore.Authority) error {
	r.job.Result.Status, r.job.Result.Epoch, r.job.Result.Node = leasestore.Running, auth.Epoch, r.node
	r.summary = "runs, adopted by recovery"
	r.show()
	ending, err := r.supervise(auth)
	return r.end(auth, ending, err)
}

func (r *run) first(auth leasestore.Authority) (*activities.Ending, error) {
	if r.canceled() {
		why := activities.CanceledOnRequest()
		return &activities.Ending{Failure: &why}, nil
	}
	work := activities.Work{Authority: auth}
	var step activities.Step
	if r.job.Kind == leasestore.Heartbeat {
		err := r.leased(r.ctx, activities.ProbeEndpointName, "probe the endpoint", work, &step)
		if r.canceled() && canceled(err) {
			why := activities.CanceledOnRequest()
			return &activities.Ending{Failure: &why}, nil
		}
		return step.Ending, err
	}
	err := r.leased(r.ctx, activities.StartContainerName, "start a container on "+r.node, work, &step)
	if r.canceled() && (err == nil || canceled(err)) {
		return r.stop(auth, leasestore.CancelIntent)
	}
	if err != nil || step.Ending != nil {
		return step.Ending, err
	}
	return r.supervise(auth)
}

// supervise watches the container to its end, and stops it when the job is
// canceled or its time is up.
func (r *run) supervise(auth leasestore.Authority) (*activities.Ending, error) {
	if r.canceled() {
		return r.stop(auth, leasestore.CancelIntent)
	}
	var step activities.Step
	err := r.leased(r.ctx, activities.SuperviseContainerName, "supervise the container on "+r.node,
		activities.Work{Authority: auth}, &step)
	r.job.Result.Container = step.Container
	switch {
	case err == nil && step.TimedOut:
		return r.stop(auth, leasestore.TimeoutIntent)
	case r.canceled() && canceled(err):
		return r.stop(auth, leasestore.CancelIntent)
	}
	return step.Ending, err
}

func (r *run) stop(auth leasestore.Authority, intent leasestore.Intent) (*activities.Ending, error) {
	var step activities.Step
	err := r.leased(r.work, activities.StopContainerName, "stop the container: "+string(intent),
		activities.Stop{Work: activities.Work{Authority: auth}, Intent: intent}, &step)
	return step.Ending, err
}

// end reports how the run ended. An attempt that lost its lease, or that no
// process could carry on with, has nothing to report: recovery will.
func (r *run) end(auth leasestore.Authority, ending *activities.Ending, err error) error {
	defer func() { r.queue = "" }()
	if err == nil {
		err = r.leased(r.work, activities.ReportOutcomeName, "report the outcome",
			activities.Report{Authority: auth, Ending: *ending}, &r.job)
		if err == nil {
			r.tag()
			return nil
		}
	}
	if abandoned(err) {
		return r.read()
	}
	return err
}

// abandoned says that the lease is lost, or that nobody was there in time to
// carry on with it.
func abandoned(err error) bool {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return app.Type() == activities.LeaseLostError || !app.NonRetryable()
	}
	_, timeout := errors.AsType[*temporal.TimeoutError](err)
	return timeout || canceled(err)
}

func canceled(err error) bool {
	_, ok := errors.AsType[*temporal.CanceledError](err)
	return ok
}
