package leasestore

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Status is where a job stands.
type Status string

// The statuses: PENDING → QUEUED → RUNNING → COMPLETED, FAILED or CANCELED;
// RUNNING → PENDING on release for retry.
const (
	Pending   Status = "PENDING"
	Queued    Status = "QUEUED"
	Running   Status = "RUNNING"
	Completed Status = "COMPLETED"
	Failed    Status = "FAILED"
	Canceled  Status = "CANCELED"
)

// Ended says whether the status is final.
func (s Status) Ended() bool { return s == Completed || s == Failed || s == Canceled }

// Kind is what a job is made of.
type Kind string

// The kinds of job.
const (
	Container Kind = "CONTAINER" // an image on a runtime node
	Heartbeat Kind = "HEARTBEAT" // one HTTP request, no node
)

// FailureKind says whose fault a failure is, and so whether it is retried.
type FailureKind string

// The failure kinds.
const (
	UserFailure   FailureKind = "USER"   // the spec or the program: no automatic retry unless the definition asks
	SystemFailure FailureKind = "SYSTEM" // node, daemon, network, our own code: retried up to the limit
)

// Failure is why a job failed, was released or was cancelled.
type Failure struct {
	Kind    FailureKind `db:"failure_kind"    json:"kind"`
	Reason  string      `db:"failure_reason"  json:"reason"` // a code, EXIT_CODE
	Message string      `db:"failure_message" json:"message"`
}

// Job is one run of a definition.
type Job struct {
	ID         uuid.UUID       `db:"id"         json:"id"`
	Definition string          `db:"definition" json:"definition"`
	Generation int64           `db:"generation" json:"generation"`
	Kind       Kind            `db:"kind"       json:"kind"`
	Spec       json.RawMessage `db:"spec"       json:"spec"`
	Retry
	OnExpiry       OnExpiry          `db:"on_expiry"       json:"on_expiry"`
	NodeSelector   map[string]string `db:"node_selector"   json:"node_selector,omitempty"`
	IdempotencyKey string            `db:"idempotency_key" json:"idempotency_key,omitempty"`
	// WorkflowID is the Temporal workflow that drives the job.
	WorkflowID      string `db:"workflow_id"      json:"workflow_id"`
	Status          Status `db:"status"           json:"status"`
	DispatchAttempt int64  `db:"dispatch_attempt" json:"dispatch_attempt"` // times it was offered
	Attempt         int64  `db:"attempt"          json:"attempt"`          // times it was claimed
	Recoveries      int64  `db:"recoveries"       json:"recoveries"`       // times its lease ran out and was taken over
	Epoch           int64  `db:"epoch"            json:"epoch"`
	// Intent is the end that was decided before the container's own end was
	// seen: CANCEL, TIMEOUT or empty.
	Intent        Intent     `db:"intent"          json:"intent,omitempty"`
	ScheduledAt   time.Time  `db:"scheduled_at"    json:"scheduled_at"`
	CreatedAt     time.Time  `db:"created_at"      json:"created_at"`
	NextAttemptAt time.Time  `db:"next_attempt_at" json:"next_attempt_at"`
	StartedAt     *time.Time `db:"started_at"      json:"started_at,omitempty"` // first claim
	EndedAt       *time.Time `db:"ended_at"        json:"ended_at,omitempty"`
	NodeID        string     `db:"node_id"         json:"node_id,omitempty"`
	ContainerID   string     `db:"container_id"    json:"container_id,omitempty"`
	ExitCode      *int       `db:"exit_code"       json:"exit_code,omitempty"`
	Failure       `json:"failure"`
	Warnings      []string `db:"warnings" json:"warnings,omitempty"`
	LogTail       string   `db:"log_tail" json:"log_tail,omitempty"`
	// Limited says that its definition limits how many of its jobs run at once,
	// so that its end may let another one run.
	Limited bool `db:"limited" json:"-"`
	// Wait is how long until the next attempt is due; 0 if it is due or the
	// job is not pending.
	Wait time.Duration `db:"wait" json:"-"`
}

// Intent is an end decided from outside.
type Intent string

// The intents.
const (
	CancelIntent  Intent = "CANCEL"
	TimeoutIntent Intent = "TIMEOUT"
)

// jobColumns are a Job's columns, from job j. Node and container are those of
// the last lease: of the live one while there is one.
const jobColumns = `
       j.id, j.definition, j.generation, j.kind, j.spec, j.max_attempts, j.backoff, j.retry_user_failures,
       j.on_expiry, j.node_selector, coalesce(j.idempotency_key, '') as idempotency_key, j.workflow_id,
       j.status, j.dispatch_attempt, j.attempt, j.recoveries, j.epoch, j.intent,
       j.scheduled_at, j.created_at, j.next_attempt_at, j.started_at, j.ended_at,
       j.node_id, j.container_id, j.exit_code, j.failure_kind, j.failure_reason, j.failure_message,
       j.warnings, j.log_tail,
       (select d.max_running is not null from leasehold.definition d where d.name = j.definition) as limited,
       case when j.status = 'PENDING'
            then greatest(j.next_attempt_at - clock_timestamp(), interval '0')
            else interval '0' end as wait`
