package leasestore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const requeueSQL = `
with offered as materialized (
    select id from leasehold.job
     where id = @job_id and status = 'QUEUED' and dispatch_attempt = @dispatch_attempt
       for update
)
update leasehold.job j
   set status = 'PENDING', next_attempt_at = clock_timestamp() + @wait::interval
  from offered
 where j.id = offered.id
returning` + jobColumns

// Requeue takes back the offer of a QUEUED job: it becomes PENDING, due after
// wait (0 to 24 h), and stands in no other job's way until it is dispatched
// again. It is for a job at the head of its definition's line that nobody is
// about to claim. The same call again is confirmed.
//
// A job that was offered anew since, or is neither QUEUED nor PENDING, is a
// [*NotDueError].
func (s *Store) Requeue(ctx context.Context, jobID uuid.UUID, dispatchAttempt int64, wait time.Duration) (Job, error) {
	if wait < 0 || wait > maxTTL {
		return Job{}, &InvalidError{Field: "wait", Problem: "must be between 0s and 24h"}
	}
	job, found, err := one[Job](ctx, s.db, requeueSQL, pgx.StrictNamedArgs{
		"job_id": jobID, "dispatch_attempt": dispatchAttempt, "wait": wait,
	})
	if err != nil {
		return Job{}, wrap(err, "requeue job", jobID.String())
	}
	if found {
		return job, nil
	}
	job, err = s.Job(ctx, jobID)
	if err != nil {
		return Job{}, err
	}
	if job.Status == Pending && job.DispatchAttempt == dispatchAttempt {
		return job, nil
	}
	return Job{}, &NotDueError{JobID: jobID, Status: job.Status, DispatchAttempt: job.DispatchAttempt, Wait: job.Wait}
}
