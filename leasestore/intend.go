package leasestore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const intendSQL = held + `, intended as (
    update leasehold.job j
       set intent = case when j.intent = '' then @intent else j.intent end
      from good g
     where j.id = g.job_id
), bound as (
    update leasehold.lease l
       set worker = g.acting_worker, process = g.acting_process, turn = g.acting_turn,
           expires_at = greatest(l.expires_at, g.decided_at + @ttl::interval)
      from good g
     where l.job_id = g.job_id
    returning l.*
)` + bound

// Intend records, before the container is stopped, that it is to end as
// cancelled or timed out, and renews the lease. The first intent stands.
func (s *Store) Intend(ctx context.Context, auth Authority, intent Intent, ttl time.Duration) (Lease, error) {
	if intent != CancelIntent && intent != TimeoutIntent {
		return Lease{}, &InvalidError{Field: "intent", Problem: "must be CANCEL or TIMEOUT"}
	}
	if err := validateTTL(ttl); err != nil {
		return Lease{}, err
	}
	return s.acts(ctx, "intend", auth, intendSQL, pgx.StrictNamedArgs{"intent": intent, "ttl": ttl})
}
