package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/activities"
)

// waiting spaces out the claims of a job that is not eligible: each refusal
// waits half as long again, up to a minute. A wake-up signal cuts it short.
type waiting struct{ last time.Duration }

func (w *waiting) next(hint activities.Duration) activities.Duration {
	const least, most = time.Second, time.Minute
	w.last = min(max(w.last*3/2, time.Duration(hint), least), most)
	return activities.Duration(w.last)
}

// sleep waits durably until the time is over, a wake-up comes, or the workflow
// is canceled.
func (r *run) sleep(wait activities.Duration, summary string) {
	var nothing any
	if r.receive(r.wakes, &nothing, wait, summary) {
		r.waiting = waiting{}
	}
}

// receive waits for a signal and says whether one came before the time was
// over. A canceled workflow is not kept waiting, except for a recovery.
func (r *run) receive(signals workflow.ReceiveChannel, into any, wait activities.Duration, summary string) bool {
	timing, stop := workflow.WithCancel(r.work)
	defer stop()
	timer := workflow.NewTimerWithOptions(timing, time.Duration(wait), workflow.TimerOptions{Summary: summary})
	received := false
	selector := workflow.NewSelector(r.work)
	selector.AddReceive(signals, func(c workflow.ReceiveChannel, _ bool) { received = c.ReceiveAsync(into) })
	selector.AddFuture(timer, func(workflow.Future) {})
	if !r.canceled() {
		selector.AddReceive(r.ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	}
	selector.Select(r.work)
	return received
}

// surface puts the words that matter at the top of a workflow's failure: the
// Web UI shows only "activity error" there otherwise.
func surface(err error) error {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return temporal.NewApplicationErrorWithOptions(app.Message(), app.Type(), temporal.ApplicationErrorOptions{
			NonRetryable: app.NonRetryable(), Cause: err,
		})
	}
	return err
}
