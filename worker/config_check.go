package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// ConfigError lists what is wrong with a configuration.
type ConfigError struct{ Faults []error }

func (e *ConfigError) Error() string {
	if len(e.Faults) == 1 {
		return e.Faults[0].Error()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "the configuration has %d faults:", len(e.Faults))
	for _, fault := range e.Faults {
		text.WriteString("\n  " + fault.Error())
	}
	return text.String()
}

// Unwrap returns the faults.
func (e *ConfigError) Unwrap() []error { return e.Faults }

func configError(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return &ConfigError{Faults: faults}
}

// Validate checks the values and how they go together. It returns a
// [*ConfigError]: a combination that lets a lease expire under a healthy
// worker, or leaves no time for a take-over, is refused with the arithmetic.
func (c Config) Validate() error { return configError(c.faults(nil)) }

// timerSlack is how late Temporal's timers fire.
const timerSlack = time.Second

// stickyTimeout is how long a workflow task may wait for the process that had
// the workflow's last one before any process may have it. A process that was
// killed had them: the SDK's default of 5 s would be added to each take-over.
const stickyTimeout = time.Second

// rule is a demand on the values of some variables.
type rule struct {
	of    []string
	holds bool
	fault string
}

// faults are the rules that do not hold, but for those on variables that could
// not be read: their fault is known already.
func (c Config) faults(unread map[string]error) []error {
	var faults []error
rules:
	for _, rule := range append(c.bounds(), c.relations()...) {
		for _, name := range rule.of {
			if _, known := unread[name]; known {
				continue rules
			}
		}
		if !rule.holds {
			faults = append(faults, fmt.Errorf("%s", rule.fault))
		}
	}
	return faults
}

// bounds are the rules on single values.
func (c Config) bounds() []rule {
	number := func(name string, value, most int) rule {
		fault := fmt.Sprintf("%s is %d: it must be between 1 and %d", name, value, most)
		return rule{[]string{name}, value >= 1 && value <= most, fault}
	}
	atLeast := func(name string, value, least time.Duration) rule {
		fault := fmt.Sprintf("%s is %s: it must be between %s and 24h", name, value, least)
		return rule{[]string{name}, value >= least && value <= 24*time.Hour, fault}
	}
	text := func(name, value, cure string) rule {
		return rule{[]string{name}, value != "", name + " " + cure}
	}
	return []rule{
		text("DATABASE_URL", c.DatabaseURL, "is not set: set it to the database, such as postgres://user@host:5432/leasehold"),
		text("EXECUTION_WORKER_ID", c.WorkerID, "is not set, and this machine has no host name: give the worker a name"),
		text("EXECUTION_WORKER_TASK_QUEUE", c.TaskQueue, "is empty: name a task queue"),
		number("EXECUTION_WORKER_CONCURRENCY", c.Concurrency, 10_000),
		number("EXECUTION_WORKER_SYSTEM_RETRY_LIMIT", c.RetryLimit, 100),
		number("EXECUTION_WORKER_RECOVERY_BATCH_SIZE", c.RecoveryBatch, 1000),
		number("EXECUTION_WORKER_AWAITING_RECONCILIATION_LIMIT", c.AwaitingLimit, 10_000),
		atLeast("EXECUTION_WORKER_LEASE_RENEW_INTERVAL", c.Renew, 100*time.Millisecond),
		atLeast("EXECUTION_WORKER_LEASE_DURATION", c.Lease, time.Second),
		atLeast("EXECUTION_WORKER_HEARTBEAT_TIMEOUT", c.Heartbeat, time.Second),
		atLeast("EXECUTION_WORKER_SCHEDULE_TO_START", c.ScheduleToStart, time.Second),
		atLeast("EXECUTION_WORKER_SYSTEM_RETRY_BACKOFF", c.RetryBackoff, time.Millisecond),
		atLeast("EXECUTION_WORKER_RECOVERY_INTERVAL", c.RecoveryInterval, time.Second),
		atLeast("RUNTIME_HEARTBEAT_TTL", c.NodeTTL, time.Second),
		atLeast("RUNTIME_PROBE_INTERVAL", c.ProbeInterval, time.Second),
		{
			[]string{"RUNTIME_DEFAULT_NETWORK"},
			slices.Contains([]string{"", "bridge", "none"}, c.DefaultNetwork),
			fmt.Sprintf("RUNTIME_DEFAULT_NETWORK is %q: it must be bridge or none", c.DefaultNetwork),
		},
	}
}

// relations are the rules on how values go together.
func (c Config) relations() []rule {
	const (
		lease = "EXECUTION_WORKER_LEASE_DURATION"
		renew = "EXECUTION_WORKER_LEASE_RENEW_INTERVAL"
		beat  = "EXECUTION_WORKER_HEARTBEAT_TIMEOUT"
		start = "EXECUTION_WORKER_SCHEDULE_TO_START"
		ttl   = "RUNTIME_HEARTBEAT_TTL"
		probe = "RUNTIME_PROBE_INTERVAL"
		gone  = "RUNTIME_LOST_AFTER"
	)
	takeover := c.Heartbeat + timerSlack + stickyTimeout + c.ScheduleToStart + c.Renew
	return []rule{
		{[]string{lease, renew}, c.Lease >= 3*c.Renew, fmt.Sprintf(
			"%s is %s, less than 3 × %s (3 × %s = %s), so that two lost renewals would lose the lease: set it to at least %s, or renew more often",
			lease, c.Lease, renew, c.Renew, 3*c.Renew, 3*c.Renew)},
		{[]string{lease, renew, beat, start}, takeover < c.Lease, fmt.Sprintf(
			"a take-over does not fit into a lease: %s %s + timers %s + sticky queue %s + %s %s + %s %s = %s, not less than %s %s: "+
				"set %s to more than %s, or shorten the others",
			beat, c.Heartbeat, timerSlack, stickyTimeout, start, c.ScheduleToStart, renew, c.Renew, takeover, lease, c.Lease, lease, takeover)},
		{[]string{ttl, probe}, c.NodeTTL >= 2*c.ProbeInterval, fmt.Sprintf(
			"%s is %s, less than 2 × %s (2 × %s = %s), so that one late probe would take every node out of service: set it to at least %s, or probe more often",
			ttl, c.NodeTTL, probe, c.ProbeInterval, 2*c.ProbeInterval, 2*c.ProbeInterval)},
		{[]string{ttl, gone}, c.NodeLost >= c.NodeTTL, fmt.Sprintf(
			"%s is %s, less than %s %s, so that jobs would be given up on nodes that still get new ones: set it to at least %s",
			gone, c.NodeLost, ttl, c.NodeTTL, c.NodeTTL)},
	}
}
