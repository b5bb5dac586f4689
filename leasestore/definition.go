package leasestore

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// OnExpiry says what recovery does with a container that still runs when its
// lease has run out.
type OnExpiry string

// The choices for a container that outlived its lease.
const (
	Restart OnExpiry = "restart" // stop it, remove it, release the job for retry: the default
	Adopt   OnExpiry = "adopt"   // take it over and go on watching it
)

// Retry is a retry policy.
type Retry struct {
	// MaxAttempts counts claims, the first included. 1 means no retry; at most
	// 100. Defaults to 3.
	MaxAttempts int64 `db:"max_attempts" json:"max_attempts"`
	// Backoff is the wait before attempt 2; it doubles up to 8 times itself,
	// give or take a tenth. Defaults to 30 s.
	Backoff time.Duration `db:"backoff" json:"backoff"`
	// RetryUserFailures retries failures of the program too.
	RetryUserFailures bool `db:"retry_user_failures" json:"retry_user_failures,omitempty"`
}

// Definition is what to run. Every change of it raises its generation.
type Definition struct {
	Name       string          `db:"name"       json:"name"`
	Generation int64           `db:"generation" json:"generation"`
	Kind       Kind            `db:"kind"       json:"kind"`
	Spec       json.RawMessage `db:"spec"       json:"spec"`
	Retry
	OnExpiry     OnExpiry          `db:"on_expiry"     json:"on_expiry"`
	NodeSelector map[string]string `db:"node_selector" json:"node_selector,omitempty"`
	// MaxRunning is how many of its jobs may run at once; 0 is no limit. With
	// 1 they also run in the order of their scheduled time.
	MaxRunning int64     `db:"max_running" json:"max_running,omitempty"`
	Paused     bool      `db:"paused"      json:"paused"`
	CreatedAt  time.Time `db:"created_at"  json:"created_at"`
	ChangedAt  time.Time `db:"changed_at"  json:"changed_at"`
}

const definitionColumns = `
       d.name, d.generation, d.kind, d.spec, d.max_attempts, d.backoff, d.retry_user_failures,
       d.on_expiry, d.node_selector, coalesce(d.max_running, 0) as max_running, d.paused,
       d.created_at, d.changed_at`

// lockDefinitionSQL makes a change of a definition wait for the claims of it
// that are being decided, and the other way round: see claim.go.
const lockDefinitionSQL = `
select leasehold.require_read_committed(),
       pg_advisory_xact_lock(hashtextextended('leasehold definition ' || @name, 0))`

const applySQL = `
insert into leasehold.definition as d
       (name, kind, spec, max_attempts, backoff, retry_user_failures, on_expiry, node_selector, max_running)
values (@name, @kind, @spec, @max_attempts, @backoff, @retry_user_failures, @on_expiry, @node_selector,
        nullif(@max_running::bigint, 0))
on conflict (name) do update
   set generation = d.generation + 1, changed_at = clock_timestamp(),
       kind = excluded.kind, spec = excluded.spec, max_attempts = excluded.max_attempts,
       backoff = excluded.backoff, retry_user_failures = excluded.retry_user_failures,
       on_expiry = excluded.on_expiry, node_selector = excluded.node_selector, max_running = excluded.max_running
 where (d.kind, d.spec, d.max_attempts, d.backoff, d.retry_user_failures, d.on_expiry, d.node_selector, d.max_running)
       is distinct from
       (excluded.kind, excluded.spec, excluded.max_attempts, excluded.backoff, excluded.retry_user_failures,
        excluded.on_expiry, excluded.node_selector, excluded.max_running)`

// unchangedSQL finds a definition that is what it is to become. Most jobs that
// bring their definition bring it unchanged: those take no lock and write nothing.
const unchangedSQL = `
select` + definitionColumns + `
  from leasehold.definition d
 where name = @name
   and (d.kind, d.spec, d.max_attempts, d.backoff, d.retry_user_failures, d.on_expiry, d.node_selector, d.max_running)
       is not distinct from
       (@kind::text, @spec::jsonb, @max_attempts::bigint, @backoff::interval, @retry_user_failures::boolean,
        @on_expiry::text, @node_selector::jsonb, nullif(@max_running::bigint, 0))`

// Apply stores a definition. An unchanged one keeps its generation; a change
// raises it, touches no running job and makes jobs that are not yet claimed
// stale. Zero fields take their defaults. Bad fields are an [*InvalidError].
func (s *Store) Apply(ctx context.Context, def Definition) (Definition, error) {
	def = def.withDefaults()
	if err := def.validate(); err != nil {
		return Definition{}, err
	}
	args := pgx.StrictNamedArgs{
		"name": def.Name, "kind": def.Kind, "spec": def.Spec, "max_attempts": def.MaxAttempts,
		"backoff": def.Backoff, "retry_user_failures": def.RetryUserFailures, "on_expiry": def.OnExpiry,
		"node_selector": def.NodeSelector, "max_running": def.MaxRunning,
	}
	same, found, err := one[Definition](ctx, s.db, unchangedSQL, args)
	if found || err != nil {
		return same, wrapRead(err, "apply definition", def.Name)
	}
	batch := &pgx.Batch{}
	batch.Queue(lockDefinitionSQL, pgx.StrictNamedArgs{"name": def.Name})
	batch.Queue(applySQL, args)
	batch.Queue(definitionSQL, pgx.StrictNamedArgs{"name": def.Name})
	stored, err := lastOfBatch[Definition](ctx, s.db, batch)
	return stored, wrap(err, "apply definition", def.Name)
}

const definitionSQL = `
select` + definitionColumns + `
  from leasehold.definition d
 where name = @name`

// Definition returns a stored definition, or a [*NotFoundError].
func (s *Store) Definition(ctx context.Context, name string) (Definition, error) {
	def, found, err := one[Definition](ctx, s.db, definitionSQL, pgx.StrictNamedArgs{"name": name})
	if err == nil && !found {
		return Definition{}, &NotFoundError{What: "definition", ID: name}
	}
	return def, wrapRead(err, "read definition", name)
}

const definitionsSQL = `
select` + definitionColumns + `
  from leasehold.definition d
 order by name
 limit @limit`

// Definitions lists stored definitions by name, at most limit.
func (s *Store) Definitions(ctx context.Context, limit int) ([]Definition, error) {
	defs, err := all[Definition](ctx, s.db, definitionsSQL, pgx.StrictNamedArgs{"limit": limit})
	return defs, wrapRead(err, "list", "definitions")
}

const pauseSQL = `
update leasehold.definition d
   set paused = @paused
 where name = @name
returning` + definitionColumns

// SetPaused pauses or resumes a definition: once it has returned, none of a
// paused definition's jobs is claimed. Running jobs go on, and the generation
// stays. An unknown definition is a [*NotFoundError].
func (s *Store) SetPaused(ctx context.Context, name string, paused bool) (Definition, error) {
	batch := &pgx.Batch{}
	batch.Queue(lockDefinitionSQL, pgx.StrictNamedArgs{"name": name})
	batch.Queue(pauseSQL, pgx.StrictNamedArgs{"name": name, "paused": paused})
	def, err := lastOfBatch[Definition](ctx, s.db, batch)
	if errors.Is(err, pgx.ErrNoRows) {
		return Definition{}, &NotFoundError{What: "definition", ID: name}
	}
	return def, wrap(err, "pause definition", name)
}

func (d Definition) withDefaults() Definition {
	d.Retry = d.Retry.withDefaults()
	if d.OnExpiry == "" {
		d.OnExpiry = Restart
	}
	if d.NodeSelector == nil {
		d.NodeSelector = map[string]string{}
	}
	return d
}

func (r Retry) withDefaults() Retry {
	if r.MaxAttempts == 0 {
		r.MaxAttempts = 3
	}
	if r.Backoff == 0 {
		r.Backoff = 30 * time.Second
	}
	return r
}
