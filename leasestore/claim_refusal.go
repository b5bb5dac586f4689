package leasestore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// claimRefusalSQL reads why a claim was refused. It runs after the decision and
// judges the state of then: what was in the way may have gone, see [Contended].
const claimRefusalSQL = `
select j.status, j.dispatch_attempt, j.generation, d.generation as current_generation, d.paused,
       coalesce(d.max_running, 0) as max_running, d.name as definition,
       greatest(j.next_attempt_at - clock_timestamp(), interval '0') as wait,
       coalesce(e.raised_at + @ttl::interval - clock_timestamp(), interval '0') as settling,
       coalesce((select f.id::text from leasehold.job f
                  where f.definition = j.definition and f.status = 'RUNNING'
                  order by f.started_at limit 1), '') as running,
       (select count(*) from leasehold.job r where r.definition = j.definition and r.status = 'RUNNING') as running_count,
       coalesce((select f.id::text from leasehold.job f
                  where f.definition = j.definition and f.status = 'QUEUED' and f.generation = d.generation
                    and (f.scheduled_at, f.created_at, f.id) < (j.scheduled_at, j.created_at, j.id)
                  order by f.scheduled_at, f.created_at, f.id limit 1), '') as front,
       coalesce(node.id, '') as ready_node, coalesce(node.free, 0) > 0 or j.kind = 'HEARTBEAT' as placeable,
       exists (select from leasehold.ledger g
                where g.job_id = j.id and g.event = 'CLAIMED' and g.request_id = @request_id) as granted_before
  from leasehold.job j
  join leasehold.definition d on d.name = j.definition
 cross join leasehold.setting e
  left join lateral
       (select n.id, (select count(*) from leasehold.runtime_slot s
                       where s.node_id = n.id and s.slot <= n.capacity and s.job_id is null) as free
          from leasehold.runtime_node n
         where n.state = 'READY' and n.heartbeat_at > clock_timestamp() - @node_ttl::interval
           and n.labels @> j.node_selector
         order by free desc, n.id
         limit 1) node on true
 where j.id = @job_id`

type claimState struct {
	Status            Status
	DispatchAttempt   int64
	Generation        int64
	CurrentGeneration int64
	Paused            bool
	MaxRunning        int64
	Definition        string
	Wait              time.Duration
	Settling          time.Duration // until leases that a failover lost have run out
	Running           string
	RunningCount      int64
	Front             string
	ReadyNode         string // the freest
	Placeable         bool   // it has a free slot, or none is needed
	GrantedBefore     bool
}

// durably makes a statement that finds what was written before as durable as
// that: an empty message in the log makes the commit wait for all before it, here
// and on synchronous standbys. A transaction ID alone would not (seen on 15).
const durably = `
   and pg_logical_emit_message(true, 'leasehold', '') is not null`

const replaySQL = `
select` + leaseColumns + `
  from leasehold.lease l
  left join leasehold.runtime_node n on n.id = l.node_id
 where l.job_id = @job_id and l.request_id = @request_id and l.worker = @worker and l.process = @process
   and l.expires_at > clock_timestamp()` + durably

// claimRefusal returns the lease that the same claim made before, or why
// there is none.
func (s *Store) claimRefusal(ctx context.Context, r ClaimRequest) (Lease, error) {
	sent := time.Now()
	lease, found, err := one[Lease](ctx, s.db, replaySQL, pgx.StrictNamedArgs{
		"job_id": r.JobID, "request_id": r.RequestID, "worker": r.Holder.Worker, "process": r.Holder.Process,
	})
	if found {
		return lease.since(sent), nil
	}
	if err != nil {
		return Lease{}, wrap(err, "claim job", r.JobID.String())
	}
	state, found, err := one[claimState](ctx, s.db, claimRefusalSQL, pgx.StrictNamedArgs{
		"job_id": r.JobID, "request_id": r.RequestID, "ttl": r.TTL, "node_ttl": r.NodeTTL,
	})
	switch {
	case err != nil:
		return Lease{}, wrap(err, "claim job", r.JobID.String())
	case !found:
		return Lease{}, &NotFoundError{What: "job", ID: r.JobID.String()}
	}
	return Lease{}, state.refusal(r)
}

// retrySoon is the wait that a refused claim suggests where only another job's
// end or a node's heartbeat can change the answer.
const retrySoon = 5 * time.Second

// retryNow is that wait where nothing is in the way any more.
const retryNow = 100 * time.Millisecond

func (c claimState) refusal(r ClaimRequest) *NotEligibleError {
	refused := &NotEligibleError{JobID: r.JobID, Status: c.Status, Retry: retrySoon}
	switch {
	case c.GrantedBefore:
		refused.Reason, refused.Retry = ClaimOver, 0
	case c.Status != Queued:
		refused.Reason, refused.Retry = NotQueued, c.Wait
	case c.DispatchAttempt != r.DispatchAttempt:
		refused.Reason, refused.Retry = StaleDispatch, 0
	case c.Generation != r.Generation, c.CurrentGeneration != r.Generation:
		refused.Reason, refused.Retry, refused.Blocker = StaleDefinition, 0, "definition "+c.Definition
	case c.Settling > 0:
		refused.Reason, refused.Retry = NewEra, c.Settling
	case c.Paused:
		refused.Reason, refused.Blocker = Paused, "definition "+c.Definition
	case c.MaxRunning > 0 && c.RunningCount >= c.MaxRunning:
		refused.Reason, refused.Blocker = LimitReached, "job "+c.Running
	case c.MaxRunning == 1 && c.Front != "":
		refused.Reason, refused.Blocker = BehindAnother, "job "+c.Front
	case c.Placeable:
		refused.Reason, refused.Retry = Contended, retryNow
	case c.ReadyNode == "":
		refused.Reason = NoReadyNode
	default:
		refused.Reason, refused.Blocker = NoFreeSlot, "node "+c.ReadyNode
	}
	return refused
}
