package leasestore

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const releaseSQL = held + `, ended as (
    update leasehold.job j
       set status = case when j.attempt < j.max_attempts or @free::boolean then 'PENDING' else 'FAILED' end,
           ended_at = case when j.attempt < j.max_attempts or @free then null else g.decided_at end,
           attempt = case when @free then j.attempt - 1 else j.attempt end,
           next_attempt_at = g.decided_at + case when @free then interval '0' else
               j.backoff * power(2, least(j.attempt - 1, 3)) * (0.9 + 0.2 * random()) end,
           node_id = coalesce(g.node_id, ''), container_id = coalesce(g.container_id, ''), exit_code = @exit_code,
           failure_kind = @failure_kind, failure_reason = @failure_reason, failure_message = @failure_message,
           warnings = @warnings, log_tail = @log_tail
      from good g
     where j.id = g.job_id
    returning j.*
), over as (
    delete from leasehold.lease l using good g where l.job_id = g.job_id
), journal as (
    insert into leasehold.ledger
           (job_id, epoch, event, at, until, worker, process, turn, token, outcome, node_id, container_id)
    select g.job_id, g.epoch, case when e.status = 'PENDING' then 'RELEASED' else 'FAILED' end, g.decided_at, g.decided_at,
           acting_worker, acting_process, acting_turn, token, @outcome, coalesce(g.node_id, ''), coalesce(g.container_id, '')
      from good g, ended e
)
select` + jobColumns + `
  from ended j`

// Release gives a job back for another attempt after its definition's
// backoff, and returns it as PENDING; at the limit of attempts it ends as
// FAILED, with the failure that was presented: SYSTEM, unless the last attempt
// failed by the user's own doing. The outcome must carry a failure. A free release costs no attempt
// and no wait: for work that never began.
//
// Release only when nothing of the old attempt can still run. It answers as
// Complete does.
func (s *Store) Release(ctx context.Context, auth Authority, outcome Outcome, free bool) (Job, error) {
	if err := outcome.Failure.validate(); err != nil {
		return Job{}, err
	}
	return s.ends(ctx, "release", auth, outcome.key("RELEASED"), releaseSQL, outcome.args(pgx.StrictNamedArgs{"free": free}))
}
