package leasestore

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// EnqueueRequest asks for one run of a stored definition.
type EnqueueRequest struct {
	// JobID makes a repeated request the same job.
	JobID      uuid.UUID
	Definition string
	Generation int64 // must be the definition's; 0 takes the current one
	// IdempotencyKey makes every request with it, of one definition, one job.
	IdempotencyKey string
	WorkflowID     string    // the Temporal workflow that drives it
	ScheduledAt    time.Time // its place in the order of its definition; zero is now
	// Dispatch offers the job in the same statement if it is due: it is stored
	// as QUEUED, at dispatch attempt 1.
	Dispatch bool
}

const enqueueSQL = `
insert into leasehold.job as j
       (id, definition, generation, kind, spec, max_attempts, backoff, retry_user_failures, on_expiry, node_selector,
        idempotency_key, workflow_id, scheduled_at, next_attempt_at, status, dispatch_attempt)
select @job_id, d.name, d.generation, d.kind, d.spec, d.max_attempts, d.backoff, d.retry_user_failures, d.on_expiry,
       d.node_selector, nullif(@idempotency_key, ''), @workflow_id,
       coalesce(@scheduled_at, clock_timestamp()), coalesce(@scheduled_at, clock_timestamp()),
       case when offered then 'QUEUED' else 'PENDING' end, case when offered then 1 else 0 end
  from leasehold.definition d
 cross join (select @dispatch::boolean and coalesce(@scheduled_at <= clock_timestamp(), true)) due (offered)
 where d.name = @definition and (@generation = 0::bigint or d.generation = @generation)
on conflict do nothing
returning` + jobColumns

const enqueuedSQL = `
select` + jobColumns + `
  from leasehold.job j
 where j.id = @job_id
    or (j.definition = @definition and j.idempotency_key = nullif(@idempotency_key, ''))
 order by j.id = @job_id desc
 limit 1`

// Enqueue stores a job with the definition as it is now, as PENDING unless it is
// dispatched at once, or finds the one that the same request, or the same
// idempotency key, made before.
//
// An unknown definition is a [*NotFoundError]; another generation than the
// current one is a [*ConflictError].
func (s *Store) Enqueue(ctx context.Context, r EnqueueRequest) (Job, error) {
	if err := r.validate(); err != nil {
		return Job{}, err
	}
	var scheduledAt *time.Time
	if !r.ScheduledAt.IsZero() {
		scheduledAt = &r.ScheduledAt
	}
	job, found, err := one[Job](ctx, s.db, enqueueSQL, pgx.StrictNamedArgs{
		"job_id": r.JobID, "definition": r.Definition, "generation": r.Generation,
		"idempotency_key": r.IdempotencyKey, "workflow_id": r.WorkflowID, "scheduled_at": scheduledAt,
		"dispatch": r.Dispatch,
	})
	if err != nil {
		return Job{}, wrap(err, "enqueue job of", r.Definition)
	}
	if found {
		return job, nil
	}
	job, found, err = one[Job](ctx, s.db, enqueuedSQL, pgx.StrictNamedArgs{
		"job_id": r.JobID, "definition": r.Definition, "idempotency_key": r.IdempotencyKey,
	})
	switch {
	case err != nil:
		return Job{}, wrapRead(err, "enqueue job of", r.Definition)
	case found && job.Definition != r.Definition:
		return Job{}, &ConflictError{What: "definition of job " + r.JobID.String(), Recorded: job.Definition, Presented: r.Definition}
	case found:
		return job, nil
	}
	def, err := s.Definition(ctx, r.Definition)
	if err != nil {
		return Job{}, err
	}
	return Job{}, &ConflictError{
		What:     "generation of definition " + r.Definition,
		Recorded: fmt.Sprint(def.Generation), Presented: fmt.Sprint(r.Generation),
	}
}
