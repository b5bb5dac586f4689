package leasestore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// RecoverRequest says who takes over expired leases, and how many at most.
type RecoverRequest struct {
	Limit  int // 1 to 1000
	Holder Holder
	Turn   int64
	TTL    time.Duration
	// RequestID makes a repeated call the same call, as for a claim.
	RequestID uuid.UUID
}

// Recovered is a lease that was taken over.
type Recovered struct {
	Lease
	Job Job
	// GivenUp says that the job lost its lease maxRecoveries times within one
	// attempt and was ended as FAILED instead: there is no lease.
	GivenUp bool
}

// maxRecoveries bounds how often one attempt may be recovered: each time, the
// process that was settling it died too.
const maxRecoveries = 10

const recoverLockSQL = `
select leasehold.require_read_committed(),` + entersEra + `,
       pg_advisory_xact_lock(hashtextextended('leasehold recovery ' || @request_id::text, 0))`

// Recovery scans next_check, which renewals leave alone; this moves it on for
// leases that were renewed since, so that the scan stays short.
const rearmSQL = `
with stale as materialized (
    select job_id from leasehold.lease
     where next_check <= statement_timestamp() and expires_at > statement_timestamp()
     order by next_check
     limit 1000
       for update skip locked
)
update leasehold.lease l
   set next_check = l.expires_at
  from stale
 where l.job_id = stale.job_id`

// The scan judges by statement_timestamp, which an index can use and which
// only errs towards waiting; the decision is by clock_timestamp, after the
// lock. A job whose guard is held (see the guard function) is passed over and
// looked at again a second later, so that it does not fill the next batch.
const recoverSQL = `
with replayed as materialized (
    select g.job_id, g.epoch, g.event from leasehold.ledger g
     where g.request_id = @request_id and g.event in ('RECOVERED', 'FAILED')` + durably + `
), unsettled as materialized (
    select from leasehold.setting where raised_at + @ttl::interval > statement_timestamp()
), due as materialized (
    select l.* from leasehold.lease l
     where l.next_check <= statement_timestamp() and l.expires_at <= statement_timestamp()
       and not exists (select from replayed) and not exists (select from unsettled)
     order by l.next_check
     limit @limit
       for update skip locked
), judged as materialized (
    select due.*, clock_timestamp() as decided_at,
           pg_try_advisory_xact_lock(hashtextextended('leasehold guard ' || due.job_id::text, 0)) as unguarded
      from due
), counted as materialized (
    select judged.*, j.recoveries >= @max_recoveries as spent,
           greatest(j.epoch, (select era * 1099511627776 from leasehold.setting)) + 1 as next_epoch
      from judged
      join leasehold.job j on j.id = judged.job_id
     where judged.unguarded and judged.expires_at <= judged.decided_at
       for update of j -- its newest version: epochs count on from there
), put_off as (
    update leasehold.lease l
       set next_check = j.decided_at + interval '1 second'
      from judged j
     where l.job_id = j.job_id and not j.unguarded
), rotated as (
    update leasehold.lease l
       set token = gen_random_uuid(), epoch = c.next_epoch, worker = @worker, process = @process, turn = @turn,
           request_id = @request_id, granted_at = c.decided_at, expires_at = c.decided_at + @ttl::interval,
           next_check = c.decided_at + @ttl::interval
      from counted c
     where l.job_id = c.job_id and not c.spent
    returning l.*
), moved as (
    update leasehold.job j
       set epoch = c.next_epoch, recoveries = j.recoveries + 1,
           status = case when c.spent then 'FAILED' else j.status end,
           ended_at = case when c.spent then c.decided_at end,
           failure_kind = case when c.spent then 'SYSTEM' else j.failure_kind end,
           failure_reason = case when c.spent then 'LEASE_LOST' else j.failure_reason end,
           failure_message = case when c.spent
               then 'its lease ran out ' || j.recoveries + 1 || ' times and whoever took it over stopped too'
               else j.failure_message end
      from counted c
     where j.id = c.job_id
    returning j.id
), over as (
    delete from leasehold.lease l using counted c where l.job_id = c.job_id and c.spent
), journal as (
    insert into leasehold.ledger
           (job_id, epoch, event, at, until, ran_out_at, worker, process, turn, request_id, outcome, node_id, container_id)
    select c.job_id, c.next_epoch, case when c.spent then 'FAILED' else 'RECOVERED' end, c.decided_at,
           c.decided_at + case when c.spent then interval '0' else @ttl::interval end, c.expires_at, @worker, @process, @turn,
           @request_id, case when c.spent then 'FAILED/SYSTEM/LEASE_LOST' else '' end,
           coalesce(c.node_id, ''), coalesce(c.container_id, '')
      from counted c
)
select l.job_id, false as given_up from rotated l
union all
select c.job_id, true from counted c where c.spent
union all
select g.job_id, true from replayed g where g.event = 'FAILED'
union all
select l.job_id, false
  from replayed g
  join leasehold.lease l on l.job_id = g.job_id and l.epoch = g.epoch and l.request_id = @request_id
 where l.worker = @worker and l.process = @process and l.expires_at > clock_timestamp()`

type recoveredRow struct {
	JobID   uuid.UUID
	GivenUp bool
}

// Recover takes over the oldest expired leases, at most the limit: each gets a
// new token, the next epoch and the caller as its holder, and from then on the
// old token is dead. Rows that others lock and jobs whose guard is held are
// left for a later call. Sent again with the same request ID it takes nothing
// more and returns those leases of the first answer that are still live.
//
// Within a lease duration after an era was raised it takes nothing: leases that
// the failover lost, which nobody can see here, must run out first.
//
// Prove each lease before acting on it.
func (s *Store) Recover(ctx context.Context, r RecoverRequest) ([]Recovered, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	batch := &pgx.Batch{}
	batch.Queue(recoverLockSQL, pgx.StrictNamedArgs{"request_id": r.RequestID})
	batch.Queue(rearmSQL)
	batch.Queue(recoverSQL, pgx.StrictNamedArgs{
		"limit": r.Limit, "request_id": r.RequestID, "worker": r.Holder.Worker, "process": r.Holder.Process,
		"turn": r.Turn, "ttl": r.TTL, "max_recoveries": maxRecoveries,
	})
	sent := time.Now()
	rows, err := rowsOfBatch[recoveredRow](ctx, s.db, batch)
	if err != nil {
		return nil, wrap(err, "recover", "batch")
	}
	return s.recovered(ctx, rows, r, sent)
}
