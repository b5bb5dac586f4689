package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"github.com/leasehold/leasehold/leasestore"
)

// ClaimInput names a job as it was dispatched.
type ClaimInput struct {
	JobID           uuid.UUID `json:"job_id"`
	Generation      int64     `json:"generation"`
	DispatchAttempt int64     `json:"dispatch_attempt"`
}

// Claim is the answer to ClaimJob: a lease, or why there is none.
type Claim struct {
	Authority *leasestore.Authority `json:"authority,omitempty"`
	Node      string                `json:"node,omitempty"`
	// Queue is where the lease's further activities run.
	Queue   string   `json:"queue,omitempty"`
	Refused *Refusal `json:"refused,omitempty"`
}

// Refusal is why a job cannot be claimed now.
type Refusal struct {
	Reason  leasestore.Ineligibility `json:"reason"`
	Status  leasestore.Status        `json:"status"`
	Blocker string                   `json:"blocker,omitempty"`
	Retry   Duration                 `json:"retry"`
}

// ClaimJob claims a job for this process, which has a permit free: the claims
// queue is polled only then. A job that is not eligible is an answer, not an
// error. Its request ID is the same for every attempt of this activity, so a
// claim whose answer was lost is found again.
func (a *Activities) ClaimJob(ctx context.Context, in ClaimInput) (Claim, error) {
	info := activity.GetInfo(ctx)
	request := leasestore.ClaimRequest{
		JobID: in.JobID, Generation: in.Generation, DispatchAttempt: in.DispatchAttempt,
		Holder: a.Holder, Turn: turn(info), TTL: time.Duration(a.Timing.Lease), NodeTTL: time.Duration(a.Timing.NodeTTL),
		RequestID: uuid.NewSHA1(in.JobID, []byte(info.WorkflowExecution.RunID+"/"+info.ActivityID)),
	}
	// The claim is decided whatever becomes of the activity: a lease that was
	// made must reach the workflow, or its answer is lost.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bounded)
	defer cancel()
	lease, err := sure(ctx, func(ctx context.Context) (leasestore.Lease, error) { return a.Store.Claim(ctx, request) })
	if refused, ok := errors.AsType[*leasestore.NotEligibleError](err); ok {
		return Claim{Refused: &Refusal{
			Reason: refused.Reason, Status: refused.Status, Blocker: refused.Blocker, Retry: Duration(refused.Retry),
		}}, nil
	}
	if err != nil {
		return Claim{}, applicationError(err)
	}
	_, done := a.Keeper.Keep(ctx, lease)
	done()
	return Claim{Authority: &lease.Authority, Node: lease.NodeID, Queue: a.Queue}, nil
}

// turn orders the activity attempts that act for one lease: the server's time
// of the attempt's start. The attempt number does not: a reset repeats it.
func turn(info activity.Info) int64 { return info.StartedTime.UnixMicro() }

// prompt is how long one call to the store may take before it is asked again, on
// another connection: one whose server is gone without a word answers never.
const prompt = 4 * time.Second

// sure repeats a call while its outcome is unknown. Only calls that are safe
// to repeat, by their request ID or their authority, may be given to it.
func sure[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		answer, err := promptly(ctx, call)
		if !isType[*leasestore.UnknownError](err) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(wait):
		}
	}
}

// promptly bounds one call.
func promptly[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, prompt)
	defer cancel()
	return call(ctx)
}
