package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

// The statements write the tables directly: a million jobs by the verbs would
// take longer than the measurement.
//
// All jobs but the last are of two definitions without a limit, HEARTBEAT and
// CONTAINER by turns: the most that can come together in one definition.
const definitionsSQL = `
insert into leasehold.definition
       (name, kind, spec, max_attempts, backoff, retry_user_failures, on_expiry, node_selector)
values ('heartbeats', 'HEARTBEAT', '{}', 3, '30s', false, 'restart', '{}'),
       ('containers', 'CONTAINER', '{}', 3, '30s', false, 'restart', '{}')`

// The first jobs run, the next wait to be claimed, the rest have ended.
const jobsSQL = `
insert into leasehold.job
       (id, definition, generation, kind, spec, max_attempts, backoff, retry_user_failures, on_expiry, node_selector,
        workflow_id, status, dispatch_attempt, attempt, epoch, scheduled_at, created_at, next_attempt_at, started_at, ended_at)
select gen_random_uuid(), d.name, 1, d.kind, d.spec, d.max_attempts, d.backoff, d.retry_user_failures, d.on_expiry,
       d.node_selector, 'bench/' || n, s.status, 1, s.attempt, s.attempt, t.at, t.at, t.at,
       case when s.attempt = 1 then t.at end, case when s.status = 'COMPLETED' then t.at end
  from generate_series(1, @jobs::bigint) n
  join leasehold.definition d on d.name = case when n % 2 = 0 then 'heartbeats' else 'containers' end,
       lateral (select case when n <= @leases then 'RUNNING' when n <= @leases + @queued then 'QUEUED' else 'COMPLETED' end as status,
                       case when n > @leases and n <= @leases + @queued then 0 else 1 end as attempt) s,
       lateral (select clock_timestamp() - (@jobs - n) * interval '1 ms' as at) t`

const leasesSQL = `
insert into leasehold.lease
       (job_id, token, generation, epoch, worker, process, turn, request_id, definition, exclusive, node_id,
        granted_at, expires_at, next_check)
select id, gen_random_uuid(), 1, 1, @worker, @process, 1, gen_random_uuid(), definition, false,
       case when kind = 'CONTAINER' then 'node-' || (row_number() over (partition by kind) - 1) % @nodes end,
       clock_timestamp(), clock_timestamp() + interval '1 day', clock_timestamp() + interval '1 day'
  from leasehold.job
 where status = 'RUNNING'`

const nodesSQL = `
insert into leasehold.runtime_node (id, endpoint, state, capacity, heartbeat_at)
select 'node-' || n, 'unix:///run/' || n, 'READY', @capacity, clock_timestamp() + interval '1 day'
  from generate_series(0, @nodes - 1) n`

const slotsSQL = `
insert into leasehold.runtime_slot (node_id, slot, job_id)
select n.id, s.slot, l.job_id
  from leasehold.runtime_node n
  cross join generate_series(1, n.capacity) s(slot)
  left join (select job_id, node_id, row_number() over (partition by node_id) as slot from leasehold.lease) l
    on l.node_id = n.id and l.slot = s.slot`

const floorSQL = `
create table public.floor (id bigint primary key, n bigint not null, filler text not null) with (fillfactor = 50)`

const floorRowsSQL = `
insert into public.floor select n, 0, repeat('x', 84) from generate_series(1, @rows::bigint) n`

// capacity is how many containers a node of the measurement runs at once.
const capacity = 100

// fill loads a migrated database to its size.
func (l *lane) fill(ctx context.Context) error {
	l.queuedOfKind = min(l.Jobs/8, 5_000)
	l.floorRows = min(l.Jobs, 100_000)
	nodes := (l.Leases/2+l.queuedOfKind)/capacity + 1
	_, err := l.pool.Exec(ctx, floorSQL) // no arguments, so no preparation
	if err != nil {
		return fmt.Errorf("bench: load: %w", err)
	}
	for _, step := range []struct {
		sql  string
		args pgx.StrictNamedArgs
	}{
		{floorRowsSQL, pgx.StrictNamedArgs{"rows": l.floorRows}},
		{definitionsSQL, nil},
		{jobsSQL, pgx.StrictNamedArgs{"jobs": l.Jobs, "leases": l.Leases, "queued": 2 * l.queuedOfKind}},
		{nodesSQL, pgx.StrictNamedArgs{"nodes": nodes, "capacity": capacity}},
		{leasesSQL, pgx.StrictNamedArgs{"worker": holder.Worker, "process": holder.Process, "nodes": nodes}},
		{slotsSQL, nil},
		{`vacuum analyze`, nil},
	} {
		if _, err := l.pool.Exec(ctx, step.sql, step.args); err != nil {
			return fmt.Errorf("bench: load: %w", err)
		}
	}
	return l.readLeases(ctx)
}

// holder holds every lease of the measurement.
var holder = leasestore.Holder{Worker: "bench", Process: uuid.MustParse("6e6f7468-696e-4720-8000-6861707065e5")}

// Renewals are of leases that cannot run out meanwhile.
const (
	turn = 1
	ttl  = 24 * time.Hour
)

const authoritiesSQL = `
select job_id, token, generation, epoch, worker, process, turn
  from leasehold.lease
 order by md5(job_id::text)`

// readLeases reads the authorities of all leases, in an order that has nothing
// to do with where they are stored.
func (l *lane) readLeases(ctx context.Context) error {
	rows, err := l.pool.Query(ctx, authoritiesSQL)
	if err != nil {
		return fmt.Errorf("bench: read leases: %w", err)
	}
	l.live, err = pgx.CollectRows(rows, pgx.RowToStructByName[leasestore.Authority])
	if err != nil {
		return fmt.Errorf("bench: read leases: %w", err)
	}
	return nil
}
