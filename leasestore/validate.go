package leasestore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Limits of what is stored.
const (
	maxName    = 200       // characters of a definition, node or worker name
	maxSpec    = 256 << 10 // bytes of a spec
	maxLogTail = 16 << 10  // bytes of the last log lines
	maxMessage = 4 << 10   // bytes of a message
	maxBatch   = 1000      // leases of one batch
	maxLabels  = 100       // labels of a node, or of a selector
	maxTTL     = 24 * time.Hour
	minTTL     = 100 * time.Millisecond
)

func (a Authority) validate() error {
	switch {
	case a.JobID == uuid.Nil:
		return &InvalidError{Field: "authority's job ID", Problem: "must not be empty"}
	case a.Token == Token{}:
		return &InvalidError{Field: "authority's token", Problem: "must not be empty"}
	case a.Turn <= 0:
		return &InvalidError{Field: "authority's turn", Problem: "must be a time in microseconds"}
	}
	return a.Holder.validate()
}

func (h Holder) validate() error {
	if h.Process == uuid.Nil {
		return &InvalidError{Field: "holder's process ID", Problem: "must not be empty"}
	}
	return validateName("holder's worker ID", h.Worker)
}

func (r ClaimRequest) validate() error {
	switch {
	case r.JobID == uuid.Nil:
		return &InvalidError{Field: "job ID", Problem: "must not be empty"}
	case r.RequestID == uuid.Nil:
		return &InvalidError{Field: "request ID", Problem: "must not be empty"}
	case r.Turn <= 0:
		return &InvalidError{Field: "turn", Problem: "must be a time in microseconds"}
	case r.NodeTTL < 0 || r.NodeTTL > maxTTL:
		return &InvalidError{Field: "node TTL", Problem: "must be between 0 and 24h"}
	}
	if err := validateTTL(r.TTL); err != nil {
		return err
	}
	return r.Holder.validate()
}

func (r RecoverRequest) validate() error {
	switch {
	case r.Limit < 1 || r.Limit > maxBatch:
		return &InvalidError{Field: "limit", Problem: fmt.Sprintf("must be between 1 and %d", maxBatch)}
	case r.RequestID == uuid.Nil:
		return &InvalidError{Field: "request ID", Problem: "must not be empty"}
	case r.Turn <= 0:
		return &InvalidError{Field: "turn", Problem: "must be a time in microseconds"}
	}
	if err := validateTTL(r.TTL); err != nil {
		return err
	}
	return r.Holder.validate()
}

func (r EnqueueRequest) validate() error {
	switch {
	case r.JobID == uuid.Nil:
		return &InvalidError{Field: "job ID", Problem: "must not be empty"}
	case r.Generation < 0:
		return &InvalidError{Field: "generation", Problem: "must be positive, or 0 for the current one"}
	}
	if err := validateText("idempotency key", r.IdempotencyKey, maxName); err != nil {
		return err
	}
	if err := validateText("workflow ID", r.WorkflowID, 1000); err != nil {
		return err
	}
	return validateName("definition", r.Definition)
}

func (d Definition) validate() error {
	if err := validateName("definition", d.Name); err != nil {
		return err
	}
	switch {
	case d.Kind != Container && d.Kind != Heartbeat:
		return &InvalidError{Field: "kind", Problem: "must be CONTAINER or HEARTBEAT"}
	case !json.Valid(d.Spec) || len(d.Spec) > maxSpec:
		return &InvalidError{Field: "spec", Problem: fmt.Sprintf("must be JSON of at most %d bytes", maxSpec)}
	case d.MaxAttempts < 1 || d.MaxAttempts > 100:
		return &InvalidError{Field: "retry.max_attempts", Problem: "must be between 1 and 100"}
	case d.Backoff < 0 || d.Backoff > maxTTL:
		return &InvalidError{Field: "retry.backoff", Problem: "must be between 0s and 24h"}
	case d.OnExpiry != Restart && d.OnExpiry != Adopt:
		return &InvalidError{Field: "on_expiry", Problem: "must be restart or adopt"}
	case d.MaxRunning < 0:
		return &InvalidError{Field: "max_running", Problem: "must be positive, or 0 for no limit"}
	case strings.Contains(string(d.Spec), `\u0000`):
		return &InvalidError{Field: "spec", Problem: "must not contain NUL characters"}
	}
	return validatePairs("node_selector", d.NodeSelector)
}

func (n Node) validate() error {
	if err := validateName("node ID", n.ID); err != nil {
		return err
	}
	if n.Capacity < 1 || n.Capacity > 10000 {
		return &InvalidError{Field: "capacity", Problem: "must be between 1 and 10000"}
	}
	return cmp.Or(validateName("endpoint", n.Endpoint), validatePairs("label", n.Labels))
}

// validatePairs checks labels and selectors.
func validatePairs(field string, pairs map[string]string) error {
	if len(pairs) > maxLabels {
		return &InvalidError{Field: field + "s", Problem: fmt.Sprintf("must be at most %d", maxLabels)}
	}
	for key, value := range pairs {
		if err := cmp.Or(validateName(field, key), validateText(field+" "+key, value, maxName)); err != nil {
			return err
		}
	}
	return nil
}

func (f Failure) validate() error {
	if f.Kind != UserFailure && f.Kind != SystemFailure {
		return &InvalidError{Field: "failure kind", Problem: "must be USER or SYSTEM"}
	}
	return validateName("failure reason", f.Reason)
}

func validateName(field, value string) error {
	if value == "" {
		return &InvalidError{Field: field, Problem: "must not be empty"}
	}
	return validateText(field, value, maxName)
}

func validateText(field, value string, limit int) error {
	switch {
	case utf8.RuneCountInString(value) > limit:
		return &InvalidError{Field: field, Problem: fmt.Sprintf("must have at most %d characters", limit)}
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return &InvalidError{Field: field, Problem: "must be UTF-8 without NUL"}
	}
	return nil
}

func validateTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > maxTTL {
		return &InvalidError{Field: "lease duration", Problem: fmt.Sprintf("must be between %s and 24h", minTTL)}
	}
	return nil
}

func validateBatch(auths []Authority, ttl time.Duration) error {
	if len(auths) > maxBatch {
		return &InvalidError{Field: "batch", Problem: fmt.Sprintf("must have at most %d leases", maxBatch)}
	}
	return validateTTL(ttl)
}

// cleanText makes text from outside storable: valid UTF-8, no NUL, its last
// limit bytes.
func cleanText(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
