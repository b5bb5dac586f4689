package worker

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"

	"github.com/leasehold/leasehold/activities"
)

// Config is everything that a worker can be told. [LoadConfig] reads it once.
//
// The tag help is what --help prints, and computed says what a default is that
// no constant can be.
type Config struct {
	// DatabaseURL names the PostgreSQL database. It may hold a password, so it
	// is never printed. Required.
	DatabaseURL string `env:"DATABASE_URL" computed:"nothing: it must be set" help:"PostgreSQL database, such as postgres://user@host:5432/leasehold"`

	// WorkerID is the stable name of this worker in leases and in the ledger.
	// Defaults to the host name.
	WorkerID string `env:"EXECUTION_WORKER_ID" computed:"the host name" help:"stable name of this worker"`
	// Concurrency is how many leases this worker holds at once: the number of
	// its permits. Too many starve the machine that renews them. Defaults to
	// the number of CPUs × 4.
	Concurrency int `env:"EXECUTION_WORKER_CONCURRENCY" computed:"the number of CPUs × 4" help:"how many jobs it runs at once"`
	// Lease is how long a lease lives without renewal, and so how long a job
	// of a dead worker waits for its recovery. Short ones expire under a slow
	// database. Defaults to 30s.
	Lease time.Duration `env:"EXECUTION_WORKER_LEASE_DURATION,default=30s" help:"how long a lease lives without renewal; at least 3 renew intervals"`
	// Renew is the time between two renewals. Defaults to 10s.
	Renew time.Duration `env:"EXECUTION_WORKER_LEASE_RENEW_INTERVAL,default=10s" help:"time between two renewals of a lease"`
	// Heartbeat is how long a supervising activity may be silent before
	// Temporal gives it to another worker. Defaults to 10s.
	Heartbeat time.Duration `env:"EXECUTION_WORKER_HEARTBEAT_TIMEOUT,default=10s" help:"how long a supervising worker may be silent before another takes over"`
	// ScheduleToStart is how long the next activity of a lease waits for the
	// process that holds it before another takes over. Defaults to 5s.
	ScheduleToStart time.Duration `env:"EXECUTION_WORKER_SCHEDULE_TO_START,default=5s" help:"how long a worker may take to pick up the next step of a job that it holds"`
	// RetryLimit is how often a job is tried that fails by fault of the
	// system, unless its definition says otherwise. Defaults to 3.
	RetryLimit int `env:"EXECUTION_WORKER_SYSTEM_RETRY_LIMIT,default=3" help:"how often a job is tried, unless its definition says otherwise"`
	// RetryBackoff is the wait before the second try; it doubles with each, up
	// to 8 times itself. Defaults to 30s.
	RetryBackoff time.Duration `env:"EXECUTION_WORKER_SYSTEM_RETRY_BACKOFF,default=30s" help:"wait before the second try, doubled with each further one"`
	// RecoveryInterval is the time between two runs of recovery. Defaults to 15s.
	RecoveryInterval time.Duration `env:"EXECUTION_WORKER_RECOVERY_INTERVAL,default=15s" help:"time between two searches for expired leases"`
	// RecoveryBatch is how many expired leases one batch takes over. Defaults to 100.
	RecoveryBatch int `env:"EXECUTION_WORKER_RECOVERY_BATCH_SIZE,default=100" help:"how many expired leases are taken over at a time"`
	// AwaitingLimit is how many ends may be unconfirmed before no new job is
	// claimed. Defaults to the concurrency.
	AwaitingLimit int `env:"EXECUTION_WORKER_AWAITING_RECONCILIATION_LIMIT" computed:"EXECUTION_WORKER_CONCURRENCY" help:"how many jobs with an unconfirmed end it bears before it claims no more"`
	// TaskQueue is the Temporal task queue. Defaults to leasehold.
	TaskQueue string `env:"EXECUTION_WORKER_TASK_QUEUE,default=leasehold" help:"Temporal task queue of RunJob"`

	// NodeTTL is how old a runtime node's heartbeat may be for a claim to
	// choose it. Defaults to 30s.
	NodeTTL time.Duration `env:"RUNTIME_HEARTBEAT_TTL,default=30s" help:"how old a runtime node's last good probe may be for new jobs"`
	// NodeLost is how long a node may be out of reach before its jobs are
	// given up. Defaults to 5m.
	NodeLost time.Duration `env:"RUNTIME_LOST_AFTER,default=5m" help:"how long a runtime node may be out of reach before its jobs are given up"`
	// ProbeInterval is the time between two probes of all nodes. Defaults to 10s.
	ProbeInterval time.Duration `env:"RUNTIME_PROBE_INTERVAL,default=10s" help:"time between two probes of the runtime nodes"`
	// DefaultNetwork is the network of containers whose spec names none: bridge
	// or none. Defaults to bridge, or none on a node without a bridge network.
	DefaultNetwork string `env:"RUNTIME_DEFAULT_NETWORK" computed:"bridge, or none on a node without a bridge network" help:"network of containers that name none: bridge or none"`

	// Instance tells the containers of installations apart that share a Docker
	// daemon. All workers of a database must have the same. Defaults to a name
	// derived from the database, which a restore from a dump changes.
	Instance string `env:"LEASEHOLD_INSTANCE" computed:"a name derived from the database" help:"label of the containers of this installation"`

	// lookup is where the TEMPORAL_* and OTEL_* variables are read from.
	lookup envconfig.Lookuper
}

// LoadConfig reads the configuration from env and checks it. The error is a
// [*ConfigError] that lists all faults, each with its variable; a variable that
// is set to nothing is one.
func LoadConfig(ctx context.Context, env envconfig.Lookuper) (Config, error) {
	config, unread := read(ctx, env)
	faults := make([]error, 0, len(unread))
	for _, field := range variables() { // in their order
		if fault, ok := unread[variable(field)]; ok {
			faults = append(faults, fault)
		}
	}
	return config, configError(append(faults, config.faults(unread)...))
}

// read reads each field by itself, so that one fault hides no other. It returns
// the faults by variable.
func read(ctx context.Context, env envconfig.Lookuper) (Config, map[string]error) {
	config, unread := Config{lookup: env}, map[string]error{}
	target := reflect.ValueOf(&config).Elem()
	for i, field := range variables() {
		name := variable(field)
		one := reflect.New(reflect.StructOf([]reflect.StructField{field}))
		value, set := env.Lookup(name)
		err := envconfig.ProcessWith(ctx, &envconfig.Config{Target: one.Interface(), Lookuper: env})
		switch {
		case set && value == "":
			unread[name] = fmt.Errorf("%s is set to nothing: give it a value, or unset it", name)
		case err != nil:
			unread[name] = fmt.Errorf("%s is %q: it must be %s", name, value, kindOf(field.Type))
		default:
			target.Field(i).Set(one.Elem().Field(0))
		}
	}
	config.compute()
	return config, unread
}

// compute fills in the defaults that are no constants.
func (c *Config) compute() {
	if c.WorkerID == "" {
		c.WorkerID, _ = os.Hostname() // an empty name is refused later
	}
	if c.Concurrency == 0 && !isSet(c.lookup, "EXECUTION_WORKER_CONCURRENCY") {
		c.Concurrency = 4 * runtime.NumCPU()
	}
	if c.AwaitingLimit == 0 && !isSet(c.lookup, "EXECUTION_WORKER_AWAITING_RECONCILIATION_LIMIT") {
		c.AwaitingLimit = max(1, c.Concurrency)
	}
}

// Timing is what workflows and activities need to know of the configuration.
func (c Config) Timing() activities.Timing {
	return activities.Timing{
		Lease: activities.Duration(c.Lease), Renew: activities.Duration(c.Renew),
		Heartbeat: activities.Duration(c.Heartbeat), StartDelay: activities.Duration(c.ScheduleToStart),
		Recovery: activities.Duration(c.RecoveryInterval),
		NodeTTL:  activities.Duration(c.NodeTTL), NodeLost: activities.Duration(c.NodeLost),
	}
}

// variables are the fields that have a variable: they come first.
func variables() []reflect.StructField {
	var fields []reflect.StructField
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if field.IsExported() {
			fields = append(fields, field)
		}
	}
	return fields
}

func variable(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("env"), ",")
	return name
}

func kindOf(t reflect.Type) string {
	if t == reflect.TypeFor[time.Duration]() {
		return "a duration such as 30s or 5m"
	}
	return "a whole number"
}

func isSet(env envconfig.Lookuper, name string) bool {
	if env == nil {
		return false
	}
	_, set := env.Lookup(name)
	return set
}
