package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/leasehold/leasehold/leasestore"
)

// ErrDeadline is the cause of a held context that ended because its lease ran
// out by the local clock, with no answer from PostgreSQL.
var ErrDeadline = errors.New("the lease ran out before PostgreSQL confirmed a renewal")

// InputError reports an input that can never be accepted.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

// Types of the application errors that activities return. They are part of
// what users see in the Web UI and may match in retry policies.
const (
	InvalidInputError   = "InvalidInput"   // not retryable: the input is at fault
	LeaseLostError      = "LeaseLost"      // not retryable: the authority is no longer good
	WorkerStoppingError = "WorkerStopping" // another process carries on
	PausedError         = "Paused"         // not retryable, or it would stand still while its lease runs out: another activity carries on
	JobFailedError      = "JobFailed"      // what a failed job's RunJob returns
)

// applicationError words an error for Temporal, once and here: which type, and
// whether trying again can help.
func applicationError(err error) error {
	if err == nil {
		return nil
	}
	if isType[*temporal.ApplicationError](err) || isType[*temporal.CanceledError](err) {
		return err
	}
	typ, retry := "Unavailable", true
	switch {
	case isType[*InputError](err), isType[*leasestore.InvalidError](err), isType[*leasestore.ConflictError](err):
		typ, retry = InvalidInputError, false
	case isType[*leasestore.NotFoundError](err):
		typ, retry = "NotFound", false
	case isType[*leasestore.LostError](err), isType[*leasestore.EndedError](err), errors.Is(err, ErrDeadline):
		typ, retry = LeaseLostError, false
	case isType[*leasestore.SchemaError](err):
		typ = "Schema"
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), typ, temporal.ApplicationErrorOptions{NonRetryable: !retry})
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// workerStopping is closed when the worker begins to stop.
func workerStopping(ctx context.Context) <-chan struct{} { return activity.GetWorkerStopChannel(ctx) }
