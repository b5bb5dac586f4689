package leasestore

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// standingSQL reads what has become of an authority. Its columns are facts, so
// a refusal is explained in one place, standing.lost.
const standingSQL = `
select j.status, j.epoch, coalesce(l.worker, '') as worker, l.process, coalesce(l.turn, 0) as turn,
       coalesce(l.token = @token, false) as owns, coalesce(l.generation = @generation, false) as generation_matches,
       coalesce(l.expires_at <= clock_timestamp(), false) as expired,
       coalesce((select g.outcome from leasehold.ledger g
                  where g.job_id = j.id and g.epoch = @epoch and g.token = @token and g.event <> 'REFUSED'
                  order by g.id desc limit 1), '') as recorded
  from leasehold.job j
  left join leasehold.lease l on l.job_id = j.id
 where j.id = @job_id`

type standing struct {
	Status            Status
	Epoch             int64
	Worker            string
	Process           *uuid.UUID
	Turn              int64
	Owns              bool
	GenerationMatches bool
	Expired           bool
	Recorded          string // the outcome that this authority itself recorded
}

func (s *Store) standing(ctx context.Context, auth Authority) (standing, error) {
	now, found, err := one[standing](ctx, s.db, standingSQL, pgx.StrictNamedArgs{
		"job_id": auth.JobID, "token": auth.Token, "generation": auth.Generation, "epoch": auth.Epoch,
	})
	if err == nil && !found {
		err = &NotFoundError{What: "job", ID: auth.JobID.String()}
	}
	return now, wrapRead(err, "read job", auth.JobID.String())
}

func (n standing) lost(auth Authority) *LostError {
	lost := &LostError{Authority: auth.shown(), Status: n.Status, Epoch: n.Epoch, Turn: n.Turn, Holder: Holder{Worker: n.Worker}}
	if n.Process != nil {
		lost.Holder.Process = *n.Process
	}
	switch {
	case !n.Owns:
		lost.Reason = OwnerChanged
	case !n.GenerationMatches:
		lost.Reason = StaleGeneration
	case n.Expired:
		lost.Reason = Expired
	case n.Epoch != auth.Epoch:
		lost.Reason = OwnerChanged
	default:
		lost.Reason = Superseded
	}
	return lost
}

// refusal explains why an authority was not good.
func (s *Store) refusal(ctx context.Context, auth Authority) error {
	now, err := s.standing(ctx, auth)
	if err != nil {
		return err
	}
	return now.lost(auth)
}

const refusedSQL = `
insert into leasehold.ledger (job_id, epoch, event, at, worker, process, turn, outcome)
values (@job_id, @epoch, 'REFUSED', clock_timestamp(), @worker, @process, @turn, @outcome)
returning id`

const confirmedSQL = jobSQL + durably

// confirm answers an ending that found no live lease: the same ending made
// before is confirmed, any other is refused, and the refusal is kept.
func (s *Store) confirm(ctx context.Context, auth Authority, outcome string) (Job, error) {
	now, err := s.standing(ctx, auth)
	if err != nil {
		return Job{}, err
	}
	if now.Recorded == outcome {
		job, _, err := one[Job](ctx, s.db, confirmedSQL, pgx.StrictNamedArgs{"job_id": auth.JobID})
		return job, wrap(err, "confirm job", auth.JobID.String())
	}
	if _, err := all[int64Row](ctx, s.db, refusedSQL, pgx.StrictNamedArgs{
		"job_id": auth.JobID, "epoch": auth.Epoch, "worker": auth.Worker, "process": auth.Process,
		"turn": auth.Turn, "outcome": outcome,
	}); err != nil {
		return Job{}, wrap(err, "record the refusal of job", auth.JobID.String())
	}
	if now.Recorded != "" {
		return Job{}, &EndedError{Authority: auth.shown(), Recorded: now.Recorded, Presented: outcome}
	}
	return Job{}, now.lost(auth)
}

type int64Row struct{ ID int64 }
