package leasestore

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// NotFoundError reports that a job, definition or node is not stored.
type NotFoundError struct {
	What string // job, definition or node
	ID   string
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %q does not exist", e.What, e.ID) }

// InvalidError reports a value that can never be accepted. Nothing was written.
type InvalidError struct {
	Field   string
	Problem string
}

func (e *InvalidError) Error() string { return e.Field + " " + e.Problem }

// LostReason says why an authority is no longer good.
type LostReason string

// The reasons of a [LostError].
const (
	Expired         LostReason = "EXPIRED"          // its time ran out
	Superseded      LostReason = "SUPERSEDED"       // a later turn acts for the same ownership
	OwnerChanged    LostReason = "OWNER_CHANGED"    // another token owns the job, or nobody does
	StaleGeneration LostReason = "STALE_GENERATION" // the authority names another generation
)

// LostError reports that an authority is no longer good. Its bearer must stop
// acting for the job and must not retry: no later call can succeed.
type LostError struct {
	Authority Authority // what was presented, without its token
	Reason    LostReason
	Status    Status // of the job now
	Epoch     int64  // of the job now
	Holder    Holder // who owns it now; zero if nobody does
	Turn      int64  // of the current holder
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("lease of job %s at epoch %d, turn %d is lost (%s): the job is %s at epoch %d",
		e.Authority.JobID, e.Authority.Epoch, e.Authority.Turn, e.Reason, e.Status, e.Epoch)
	if e.Holder.Worker != "" {
		text += fmt.Sprintf(", held by worker %q, turn %d", e.Holder.Worker, e.Turn)
	}
	return text
}

// EndedError reports that this very ownership has ended already, with another
// outcome than the one presented.
type EndedError struct {
	Authority Authority // what was presented, without its token
	Recorded  string    // what was recorded, FAILED/USER/EXIT_CODE/3
	Presented string
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("job %s already ended at epoch %d as %s, so %s is refused",
		e.Authority.JobID, e.Authority.Epoch, e.Recorded, e.Presented)
}

// ConflictError reports that something else is recorded where only one value
// may stand: another container of a lease, another job under an ID.
type ConflictError struct {
	What      string
	Recorded  string
	Presented string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s is %q, so %q is refused", e.What, e.Recorded, e.Presented)
}

// Ineligibility says why a job cannot be claimed now.
type Ineligibility string

// The reasons of a [NotEligibleError].
const (
	NotQueued       Ineligibility = "NOT_QUEUED"       // it is not waiting for a claim
	StaleDispatch   Ineligibility = "STALE_DISPATCH"   // it was offered again since
	StaleDefinition Ineligibility = "STALE_DEFINITION" // its definition has changed since
	NewEra          Ineligibility = "NEW_ERA"          // leases that a failover lost may not have run out yet
	Paused          Ineligibility = "PAUSED"           // its definition is paused
	LimitReached    Ineligibility = "LIMIT_REACHED"    // as many of its definition run as may
	BehindAnother   Ineligibility = "BEHIND_ANOTHER"   // an earlier job of its definition waits in front
	NoReadyNode     Ineligibility = "NO_READY_NODE"    // no fresh READY node has the labels
	NoFreeSlot      Ineligibility = "NO_FREE_SLOT"     // the nodes that could run it are full
	Contended       Ineligibility = "CONTENDED"        // what was in the way a moment ago has gone: claim again
	ClaimOver       Ineligibility = "CLAIM_OVER"       // this very claim was granted, and its lease is no longer live
)

// NotEligibleError reports a claim that was refused. The job is untouched.
type NotEligibleError struct {
	JobID   uuid.UUID
	Reason  Ineligibility
	Status  Status // of the job
	Blocker string // the job, node or definition in the way, if one can be named
	// Retry is when to try again; 0 if nobody can know.
	Retry time.Duration
}

func (e *NotEligibleError) Error() string {
	text := fmt.Sprintf("job %s cannot be claimed now (%s): it is %s", e.JobID, e.Reason, e.Status)
	if e.Blocker != "" {
		text += ", behind " + e.Blocker
	}
	return text
}

// NotDueError reports a dispatch before the job's next attempt is due, or of a
// job that is not waiting for one.
type NotDueError struct {
	JobID           uuid.UUID
	Status          Status
	DispatchAttempt int64
	Wait            time.Duration // until it is due; 0 if it is not pending
}

func (e *NotDueError) Error() string {
	return fmt.Sprintf("job %s is not due for dispatch: it is %s, dispatch attempt %d, due in %s",
		e.JobID, e.Status, e.DispatchAttempt, e.Wait)
}

// UnknownError reports a change whose answer was lost: it may or may not have
// been made. Repeat it with the same request ID or authority, or read.
type UnknownError struct{ Err error }

func (e *UnknownError) Error() string { return "the outcome is unknown: " + e.Err.Error() }

// Unwrap returns what broke.
func (e *UnknownError) Unwrap() error { return e.Err }

// ReadOnlyError reports a change that the database refuses because it is a
// standby, or was made read-only. Nothing was written. It may be the primary
// soon: try again.
type ReadOnlyError struct{ Err error }

func (e *ReadOnlyError) Error() string {
	return "the database takes no changes: connect to the primary (target_session_attrs=read-write): " + e.Err.Error()
}

// Unwrap returns what the database said.
func (e *ReadOnlyError) Unwrap() error { return e.Err }

// SchemaError reports a database schema that this program cannot work with.
type SchemaError struct {
	Have, Want int64
}

func (e *SchemaError) Error() string {
	switch {
	case e.Have == 0:
		return "the database has no leasehold schema: run leasehold migrate up"
	case e.Have < e.Want:
		return fmt.Sprintf("the leasehold schema is at version %d and this program needs %d: run leasehold migrate up",
			e.Have, e.Want)
	}
	return fmt.Sprintf("the leasehold schema is at version %d, newer than the %d of this program: update the program",
		e.Have, e.Want)
}
