package activities

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// JobInput is RunJob's input: a stored definition by name, a kind and spec to
// run once, or both, which stores them under the name first.
type JobInput struct {
	// Definition defaults to the Temporal workflow ID, for a job with a kind
	// and spec of its own.
	Definition string `json:"definition,omitempty"`
	// Generation, where given, must be the definition's.
	Generation int64 `json:"generation,omitempty"`
	// IdempotencyKey makes every start with it, of one definition, one job.
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	Kind           leasestore.Kind `json:"kind,omitempty"`
	Container      *ContainerSpec  `json:"container,omitempty"`
	Heartbeat      *HeartbeatSpec  `json:"heartbeat,omitempty"`
	Retry          *RetryInput     `json:"retry,omitempty"`
	// OnExpiry is restart or adopt. Defaults to restart.
	OnExpiry leasestore.OnExpiry `json:"on_expiry,omitempty"`
	// MaxRunning is how many jobs of the definition may run at once; 0 is no limit.
	MaxRunning   int64             `json:"max_running,omitempty"`
	NodeSelector map[string]string `json:"node_selector,omitempty"`
	// ScheduledAt is the job's place in the order of its definition, and the
	// earliest time to run it. Defaults to now.
	ScheduledAt *time.Time `json:"scheduled_at,omitempty"`
	// JobID drives a job that exists already, whatever else is given: recovery
	// starts RunJob with it, and RunJob itself when it continues as new.
	JobID string `json:"job_id,omitempty"`
}

// RetryInput is the retry policy in RunJob's input.
type RetryInput struct {
	MaxAttempts  int64    `json:"max_attempts,omitempty"` // defaults to 3
	Backoff      Duration `json:"backoff,omitempty"`      // before attempt 2; defaults to 30s
	UserFailures bool     `json:"user_failures,omitempty"`
}

// ParseJobInput reads RunJob's input. Unknown fields, wrong types and bad
// values are an [*InputError] that names the field.
func ParseJobInput(raw []byte) (JobInput, error) {
	var in JobInput
	if err := decodeStrict(raw, &in); err != nil {
		return JobInput{}, err
	}
	if in.JobID != "" {
		return in, nil
	}
	return in, in.check()
}

func (in JobInput) check() error {
	switch {
	case in.Kind == "" && in.Definition == "":
		return &InputError{"give definition (a stored one by name), or kind with its spec"}
	case in.Kind == "" && (in.Container != nil || in.Heartbeat != nil):
		return &InputError{"kind: give CONTAINER or HEARTBEAT with the spec"}
	case in.Kind == "":
		return in.checkStored()
	case in.Kind == leasestore.Container && in.Container == nil:
		return &InputError{"container: a CONTAINER job needs it"}
	case in.Kind == leasestore.Heartbeat && in.Heartbeat == nil:
		return &InputError{"heartbeat: a HEARTBEAT job needs it"}
	case in.Kind == leasestore.Container && in.Heartbeat != nil:
		return &InputError{"heartbeat: a CONTAINER job has none"}
	case in.Kind == leasestore.Heartbeat && in.Container != nil:
		return &InputError{"container: a HEARTBEAT job has none"}
	case in.Kind == leasestore.Container:
		return asInputError(in.Container.Validate())
	case in.Kind == leasestore.Heartbeat:
		return asInputError(in.Heartbeat.Validate())
	}
	return &InputError{fmt.Sprintf("kind: %q is not CONTAINER or HEARTBEAT", in.Kind)}
}

// checkStored refuses what only makes sense together with a spec: it would be
// ignored, and nobody should believe otherwise.
func (in JobInput) checkStored() error {
	switch {
	case in.Retry != nil:
		return &InputError{"retry: belongs to the definition; change it there, or give kind and spec too"}
	case in.OnExpiry != "":
		return &InputError{"on_expiry: belongs to the definition; change it there, or give kind and spec too"}
	case in.MaxRunning != 0:
		return &InputError{"max_running: belongs to the definition; change it there, or give kind and spec too"}
	case in.NodeSelector != nil:
		return &InputError{"node_selector: belongs to the definition; change it there, or give kind and spec too"}
	}
	return nil
}

// Stored returns the definition that the input describes, named name; only for
// an input with a kind.
func (in JobInput) Stored(name string) (leasestore.Definition, error) {
	var spec any = in.Heartbeat
	if in.Kind == leasestore.Container {
		spec = in.Container
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return leasestore.Definition{}, fmt.Errorf("encode the spec: %w", err)
	}
	def := leasestore.Definition{
		Name: name, Kind: in.Kind, Spec: encoded, OnExpiry: in.OnExpiry,
		MaxRunning: in.MaxRunning, NodeSelector: in.NodeSelector,
	}
	if in.Retry != nil {
		def.Retry = leasestore.Retry{
			MaxAttempts: in.Retry.MaxAttempts, Backoff: time.Duration(in.Retry.Backoff),
			RetryUserFailures: in.Retry.UserFailures,
		}
	}
	return def, nil
}

// decodeStrict decodes one JSON object and nothing else.
func decodeStrict(raw []byte, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 || bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
		return &InputError{"the workflow needs one JSON object as its input"}
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return asInputError(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return &InputError{"the input must be one JSON object and nothing after it"}
	}
	return nil
}

// asInputError words a decoding or validation error for whoever wrote the input.
func asInputError(err error) error {
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return &InputError{fmt.Sprintf("%s: a %s is not what belongs there (%s)", wrong.Field, wrong.Value, wrong.Type)}
	}
	return &InputError{strings.TrimPrefix(err.Error(), "json: ")}
}
