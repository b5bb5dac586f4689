package leasestore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ClaimRequest names the job as it was offered and who wants it.
type ClaimRequest struct {
	JobID           uuid.UUID
	Generation      int64 // as dispatched
	DispatchAttempt int64 // as dispatched
	Holder          Holder
	Turn            int64
	TTL             time.Duration // of the lease
	// RequestID makes a repeated claim the same claim: keep it when the answer
	// was lost, make a new one for a new claim.
	RequestID uuid.UUID
	// NodeTTL is how old a node's last heartbeat may be. Only CONTAINER jobs
	// need a node.
	NodeTTL time.Duration
}

// Claims of one definition are decided one after another: an advisory lock is
// taken in a statement of its own, so that the next one's snapshot sees all
// earlier decisions. In one statement the lock would come after the snapshot
// (measured: 99 % of raced claims broke the limit). Claims of a definition
// without a limit share the lock, so they wait only for a change of the
// definition; if it changed between the two statements, its generation did too.
//
// An epoch belongs to an era, so the first claim or recovery on a new timeline
// enters the next one.
const claimLockSQL = `
select leasehold.require_read_committed(),` + entersEra + `,
       case when d.max_running is null
            then pg_advisory_xact_lock_shared(hashtextextended('leasehold definition ' || d.name, 0))
            else pg_advisory_xact_lock(hashtextextended('leasehold definition ' || d.name, 0)) end
  from leasehold.job j
  join leasehold.definition d on d.name = j.definition
 where j.id = @job_id`

// Where there is no limit nothing is counted: null and x would still compute x.
const claimSQL = `
with wanted as materialized (
    select * from leasehold.job where id = @job_id for update
), judged as materialized (
    select w.*, d.max_running, clock_timestamp() as decided_at,
           e.era * 1099511627776 as first_epoch,
           case when w.status <> 'QUEUED' then 'NOT_QUEUED'
                when w.dispatch_attempt <> @dispatch_attempt then 'STALE_DISPATCH'
                when w.generation <> @generation or d.generation <> @generation then 'STALE_DEFINITION'
                when e.raised_at + @ttl::interval > clock_timestamp() then 'NEW_ERA'
                when d.paused then 'PAUSED'
                when d.max_running is not null and d.max_running <= (select count(*) from leasehold.job r
                                        where r.definition = w.definition and r.status = 'RUNNING') then 'LIMIT_REACHED'
                when d.max_running is not null and d.max_running = 1 and exists
                     (select from leasehold.job f
                       where f.definition = w.definition and f.status = 'QUEUED' and f.generation = d.generation
                         and (f.scheduled_at, f.created_at, f.id) < (w.scheduled_at, w.created_at, w.id)) then 'BEHIND_ANOTHER'
                else '' end as refusal
      from wanted w
      join leasehold.definition d on d.name = w.definition
     cross join leasehold.setting e
), load as (
    select n.id as node_id, n.endpoint, n.capacity
      from leasehold.runtime_node n, judged j
     where j.refusal = '' and j.kind = 'CONTAINER' and n.state = 'READY'
       and n.heartbeat_at > j.decided_at - @node_ttl::interval and n.labels @> j.node_selector
     order by (select count(*) from leasehold.runtime_slot s
                where s.node_id = n.id and s.job_id is not null)::float / n.capacity, n.id
), slot as materialized (
    select load.node_id, free.slot, load.endpoint
      from load
     cross join lateral
           (select s.slot from leasehold.runtime_slot s
             where s.node_id = load.node_id and s.slot <= load.capacity and s.job_id is null
             order by s.slot
             limit 1
               for update skip locked) free
     limit 1
), granted as (
    insert into leasehold.lease as l
           (job_id, token, generation, epoch, worker, process, turn, request_id, definition, exclusive, node_id,
            granted_at, expires_at, next_check)
    select j.id, @token, j.generation,
           greatest(j.epoch, j.first_epoch) + 1,
           @worker, @process, @turn, @request_id, j.definition, j.max_running is not distinct from 1, slot.node_id,
           j.decided_at, j.decided_at + @ttl::interval, j.decided_at + @ttl::interval
      from judged j
      left join slot on true
     where j.refusal = '' and (j.kind = 'HEARTBEAT' or slot.node_id is not null)
    returning l.*
), started as (
    update leasehold.job j
       set status = 'RUNNING', epoch = g.epoch, attempt = j.attempt + 1, recoveries = 0, intent = '',
           started_at = coalesce(j.started_at, g.granted_at), node_id = coalesce(g.node_id, ''), container_id = ''
      from granted g
     where j.id = g.job_id
), taken as (
    update leasehold.runtime_slot s
       set job_id = g.job_id
      from granted g, slot
     where s.node_id = slot.node_id and s.slot = slot.slot
), journal as (
    insert into leasehold.ledger (job_id, epoch, event, at, until, worker, process, turn, request_id, node_id)
    select job_id, epoch, 'CLAIMED', granted_at, expires_at, worker, process, turn, request_id, coalesce(node_id, '')
      from granted
)
select` + leaseColumns + `
  from granted l
  left join slot n on true`

// Claim takes a QUEUED job and returns its new lease. A claim sent again with
// the same request ID returns the same lease while it is live.
//
// A job that cannot be claimed now is a [*NotEligibleError], an unknown one a
// [*NotFoundError]. An [*UnknownError] may be a lease: claim again with the
// same request ID.
func (s *Store) Claim(ctx context.Context, r ClaimRequest) (Lease, error) {
	if err := r.validate(); err != nil {
		return Lease{}, err
	}
	batch := &pgx.Batch{}
	batch.Queue(claimLockSQL, pgx.StrictNamedArgs{"job_id": r.JobID})
	batch.Queue(claimSQL, pgx.StrictNamedArgs{
		"job_id": r.JobID, "generation": r.Generation, "dispatch_attempt": r.DispatchAttempt, "token": NewToken(),
		"worker": r.Holder.Worker, "process": r.Holder.Process, "turn": r.Turn,
		"request_id": r.RequestID, "ttl": r.TTL, "node_ttl": r.NodeTTL,
	})
	sent := time.Now()
	lease, err := lastOfBatch[Lease](ctx, s.db, batch)
	switch {
	case err == nil:
		return lease.since(sent), nil
	case errors.Is(err, pgx.ErrNoRows), exclusive(err):
		return s.claimRefusal(ctx, r)
	}
	return Lease{}, wrap(err, "claim job", r.JobID.String())
}

// exclusive says that the belt held: the partial unique index found another
// running job of a definition whose limit is 1.
func exclusive(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.ConstraintName == "lease_is_alone_in_its_definition"
}
