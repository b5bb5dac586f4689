package leasestore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const proveSQL = held + `, bound as (
    update leasehold.lease l
       set worker = g.acting_worker, process = g.acting_process, turn = g.acting_turn,
           expires_at = greatest(l.expires_at, g.decided_at + @ttl::interval)
      from good g
     where l.job_id = g.job_id
    returning l.*
)` + bound

// Prove shows that an authority is live, binds the lease to its process and
// turn, and extends it to ttl from now. It comes before any work. A later turn
// takes the lease over from an earlier one; an earlier turn, an expired lease
// and a changed owner are a [*LostError].
func (s *Store) Prove(ctx context.Context, auth Authority, ttl time.Duration) (Lease, error) {
	if err := validateTTL(ttl); err != nil {
		return Lease{}, err
	}
	return s.acts(ctx, "prove", auth, proveSQL, pgx.StrictNamedArgs{"ttl": ttl})
}

const renewSQL = held + `, bound as (
    update leasehold.lease l
       set expires_at = greatest(l.expires_at, g.decided_at + @ttl::interval)
      from good g
     where l.job_id = g.job_id and g.turn = g.acting_turn
    returning l.*
)` + bound

// Renew extends a proven lease to ttl from now and never shortens it. A lease
// that has run out stays out, even if nobody has taken the job since: it
// returns a [*LostError]. A turn that was not proven is an [*InvalidError].
func (s *Store) Renew(ctx context.Context, auth Authority, ttl time.Duration) (Lease, error) {
	if err := validateTTL(ttl); err != nil {
		return Lease{}, err
	}
	lease, err := s.acts(ctx, "renew", auth, renewSQL, pgx.StrictNamedArgs{"ttl": ttl})
	if lost, ok := errors.AsType[*LostError](err); ok && lost.Reason == Superseded && auth.Turn > lost.Turn {
		return Lease{}, &InvalidError{Field: "authority's turn", Problem: "is not proven: Prove comes first"}
	}
	return lease, err
}
