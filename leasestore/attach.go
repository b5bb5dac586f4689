package leasestore

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const attachSQL = held + `, bound as (
    update leasehold.lease l
       set container_id = @container_id, worker = g.acting_worker, process = g.acting_process, turn = g.acting_turn,
           expires_at = greatest(l.expires_at, g.decided_at + @ttl::interval)
      from good g
     where l.job_id = g.job_id and l.node_id = @node_id
       and coalesce(l.container_id, @container_id) = @container_id
    returning l.*
), known as (
    update leasehold.job j
       set container_id = @container_id
      from bound b
     where j.id = b.job_id and j.container_id <> @container_id
)` + bound

// Attach records the container of a lease before it is started, and renews
// the lease. The same container again is confirmed; another container, or
// another node than the lease's, is a [*ConflictError].
func (s *Store) Attach(ctx context.Context, auth Authority, nodeID, containerID string, ttl time.Duration) (Lease, error) {
	if err := cmp.Or(validateName("container ID", containerID), validateName("node ID", nodeID), validateTTL(ttl)); err != nil {
		return Lease{}, err
	}
	lease, err := s.acts(ctx, "attach", auth, attachSQL,
		pgx.StrictNamedArgs{"node_id": nodeID, "container_id": containerID, "ttl": ttl})
	if _, lost := errors.AsType[*LostError](err); !lost {
		return lease, err
	}
	return lease, s.attachRefusal(ctx, auth, nodeID, containerID, err)
}

const attachedSQL = `
select coalesce(node_id, '') as node_id, coalesce(container_id, '') as container_id
  from leasehold.lease
 where job_id = @job_id and token = @token and epoch = @epoch and expires_at > clock_timestamp()
   and turn <= @turn`

// attachRefusal tells a conflict from a lost lease.
func (s *Store) attachRefusal(ctx context.Context, auth Authority, nodeID, containerID string, lost error) error {
	type place struct{ NodeID, ContainerID string }
	now, found, err := one[place](ctx, s.db, attachedSQL, pgx.StrictNamedArgs{
		"job_id": auth.JobID, "token": auth.Token, "epoch": auth.Epoch, "turn": auth.Turn,
	})
	switch {
	case err != nil:
		return wrapRead(err, "read lease of job", auth.JobID.String())
	case !found:
		return s.refusal(ctx, auth)
	case now.NodeID != nodeID:
		return &ConflictError{What: "node of the lease", Recorded: now.NodeID, Presented: nodeID}
	case now.ContainerID != "" && now.ContainerID != containerID:
		return &ConflictError{What: "container of the lease", Recorded: now.ContainerID, Presented: containerID}
	}
	return lost
}
