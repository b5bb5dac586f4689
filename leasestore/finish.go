package leasestore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Outcome is how a job's run ended.
type Outcome struct {
	ExitCode *int
	Failure  // empty for a completed job
	Warnings []string
	LogTail  string
}

// key is what must be the same for a repeated ending to be the same ending.
func (o Outcome) key(verb Status) string {
	key := string(verb)
	if o.Failure.Kind != "" {
		key += "/" + string(o.Failure.Kind) + "/" + o.Failure.Reason
	}
	if o.ExitCode != nil {
		key += fmt.Sprintf("/%d", *o.ExitCode)
	}
	return key
}

const finishSQL = held + `, ended as (
    update leasehold.job j
       set status = @status, ended_at = g.decided_at, node_id = coalesce(g.node_id, ''),
           container_id = coalesce(g.container_id, ''), exit_code = @exit_code, failure_kind = @failure_kind,
           failure_reason = @failure_reason, failure_message = @failure_message,
           warnings = @warnings, log_tail = @log_tail
      from good g
     where j.id = g.job_id
    returning j.*
), over as (
    delete from leasehold.lease l using good g where l.job_id = g.job_id
), journal as (
    insert into leasehold.ledger
           (job_id, epoch, event, at, until, worker, process, turn, token, outcome, node_id, container_id)
    select job_id, epoch, @status, decided_at, decided_at, acting_worker, acting_process, acting_turn, token, @outcome,
           coalesce(node_id, ''), coalesce(container_id, '')
      from good
)
select` + jobColumns + `
  from ended j`

// Complete ends a job as COMPLETED. Repeated with the same authority and
// outcome it is confirmed; with another outcome it is an [*EndedError]. An
// authority that is no longer good is a [*LostError] and changes nothing.
func (s *Store) Complete(ctx context.Context, auth Authority, outcome Outcome) (Job, error) {
	if outcome.Failure != (Failure{}) {
		return Job{}, &InvalidError{Field: "failure", Problem: "must be empty for a completed job"}
	}
	return s.finish(ctx, "complete", auth, Completed, outcome)
}

// Fail ends a job as FAILED, for good: see [Store.Release] for another attempt.
// It answers as Complete does.
func (s *Store) Fail(ctx context.Context, auth Authority, outcome Outcome) (Job, error) {
	if err := outcome.Failure.validate(); err != nil {
		return Job{}, err
	}
	return s.finish(ctx, "fail", auth, Failed, outcome)
}

// Cancel ends a job as CANCELED; the outcome may carry a failure. It answers as
// Complete does.
func (s *Store) Cancel(ctx context.Context, auth Authority, outcome Outcome) (Job, error) {
	if outcome.Failure != (Failure{}) {
		if err := outcome.Failure.validate(); err != nil {
			return Job{}, err
		}
	}
	return s.finish(ctx, "cancel", auth, Canceled, outcome)
}

func (s *Store) finish(ctx context.Context, verb string, auth Authority, status Status, outcome Outcome) (Job, error) {
	return s.ends(ctx, verb, auth, outcome.key(status), finishSQL, outcome.args(pgx.StrictNamedArgs{"status": status}))
}

// ends runs a statement that ends an ownership. No row means that the
// authority is no longer good, unless it was this very ending that ended it.
func (s *Store) ends(ctx context.Context, verb string, auth Authority, outcome, sql string, more pgx.StrictNamedArgs) (Job, error) {
	if err := auth.validate(); err != nil {
		return Job{}, err
	}
	more["outcome"] = outcome
	job, found, err := one[Job](ctx, s.db, sql, auth.args(more))
	if err != nil {
		return Job{}, wrap(err, verb+" job", auth.JobID.String())
	}
	if found {
		return job, nil
	}
	return s.confirm(ctx, auth, outcome)
}

func (o Outcome) args(more pgx.StrictNamedArgs) pgx.StrictNamedArgs {
	more["exit_code"], more["log_tail"] = o.ExitCode, cleanText(o.LogTail, maxLogTail)
	more["failure_kind"], more["failure_reason"] = o.Failure.Kind, o.Failure.Reason
	more["failure_message"] = cleanText(o.Failure.Message, maxMessage)
	more["warnings"] = make([]string, 0, len(o.Warnings))
	for _, warning := range o.Warnings {
		more["warnings"] = append(more["warnings"].([]string), cleanText(warning, maxMessage))
	}
	return more
}
