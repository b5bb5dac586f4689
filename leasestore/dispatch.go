package leasestore

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const dispatchSQL = `
with due as materialized (
    select id from leasehold.job
     where id = @job_id and status = 'PENDING' and dispatch_attempt = @dispatch_attempt
       for update
)
update leasehold.job j
   set status = 'QUEUED', dispatch_attempt = j.dispatch_attempt + 1
  from due
 where j.id = due.id and j.status = 'PENDING' and j.next_attempt_at <= clock_timestamp()
returning` + jobColumns

// Dispatch offers a PENDING job for execution: it becomes QUEUED and its
// dispatch attempt rises by one. after is the dispatch attempt that the caller
// knows; the same dispatch again is confirmed.
//
// A job that is not due yet, or not waiting for this dispatch, is a
// [*NotDueError] with the status and how long to wait.
func (s *Store) Dispatch(ctx context.Context, jobID uuid.UUID, after int64) (Job, error) {
	job, found, err := one[Job](ctx, s.db, dispatchSQL, pgx.StrictNamedArgs{"job_id": jobID, "dispatch_attempt": after})
	if err != nil {
		return Job{}, wrap(err, "dispatch job", jobID.String())
	}
	if found {
		return job, nil
	}
	job, err = s.Job(ctx, jobID)
	if err != nil {
		return Job{}, err
	}
	if job.Status == Queued && job.DispatchAttempt == after+1 {
		return job, nil
	}
	return Job{}, &NotDueError{JobID: jobID, Status: job.Status, DispatchAttempt: job.DispatchAttempt, Wait: job.Wait}
}

const withdrawSQL = `
with waiting as materialized (
    select id, status from leasehold.job where id = @job_id for update
), withdrawn as (
    update leasehold.job j
       set status = 'CANCELED', ended_at = clock_timestamp(), failure_kind = @failure_kind,
           failure_reason = @failure_reason, failure_message = @failure_message
      from waiting w
     where j.id = w.id and w.status in ('PENDING', 'QUEUED')
    returning j.*
), journal as (
    insert into leasehold.ledger (job_id, epoch, event, at, outcome)
    select id, epoch, 'CANCELED', ended_at, @outcome from withdrawn
)
select` + jobColumns + `
  from withdrawn j`

// Withdraw cancels a job that nobody owns: one that is PENDING or QUEUED. It
// returns the job as it then is; a job that is RUNNING is returned as that,
// untouched, and so is one that has ended.
func (s *Store) Withdraw(ctx context.Context, jobID uuid.UUID, why Failure) (Job, error) {
	if err := why.validate(); err != nil {
		return Job{}, err
	}
	job, found, err := one[Job](ctx, s.db, withdrawSQL, pgx.StrictNamedArgs{
		"job_id": jobID, "failure_kind": why.Kind, "failure_reason": why.Reason,
		"failure_message": cleanText(why.Message, maxMessage), "outcome": Outcome{Failure: why}.key(Canceled),
	})
	if err != nil {
		return Job{}, wrap(err, "withdraw job", jobID.String())
	}
	if found {
		return job, nil
	}
	return s.Job(ctx, jobID)
}
