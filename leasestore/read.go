package leasestore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const jobSQL = `
select` + jobColumns + `
  from leasehold.job j
 where j.id = @job_id`

// Job returns a job, or a [*NotFoundError].
func (s *Store) Job(ctx context.Context, id uuid.UUID) (Job, error) {
	job, found, err := one[Job](ctx, s.db, jobSQL, pgx.StrictNamedArgs{"job_id": id})
	if err == nil && !found {
		return Job{}, &NotFoundError{What: "job", ID: id.String()}
	}
	return job, wrapRead(err, "read job", id.String())
}

// JobFilter narrows a list of jobs; zero fields match all.
type JobFilter struct {
	Definition string
	Status     Status
	WorkflowID string
	Limit      int // at most 1000; defaults to 100
}

const jobsSQL = `
select` + jobColumns + `
  from leasehold.job j
 where (@definition = '' or j.definition = @definition)
   and (@status = '' or j.status = @status)
   and (@workflow_id = '' or j.workflow_id = @workflow_id)
 order by j.created_at desc, j.id desc
 limit @limit`

// Jobs lists jobs, newest first.
func (s *Store) Jobs(ctx context.Context, f JobFilter) ([]Job, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	f.Limit = min(f.Limit, maxBatch)
	jobs, err := all[Job](ctx, s.db, jobsSQL, pgx.StrictNamedArgs{
		"definition": f.Definition, "status": string(f.Status), "workflow_id": f.WorkflowID, "limit": f.Limit,
	})
	return jobs, wrapRead(err, "list", "jobs")
}

// NextInLine lists the waiting jobs that the end of a job of this definition
// may let run: the first ones in order where the definition has a limit, none
// where it has not.
func (s *Store) NextInLine(ctx context.Context, definition string, limit int) ([]Job, error) {
	jobs, err := all[Job](ctx, s.db, nextInLineSQL, pgx.StrictNamedArgs{"definition": definition, "limit": limit})
	return jobs, wrapRead(err, "read the line of definition", definition)
}

const nextInLineSQL = `
select` + jobColumns + `
  from leasehold.job j
  join leasehold.definition d on d.name = j.definition
 where j.definition = @definition and d.max_running is not null and j.status = 'QUEUED'
 order by j.scheduled_at, j.created_at, j.id
 limit @limit`

const leaseSQL = `
select` + shownColumns + `
  from leasehold.lease l
  left join leasehold.runtime_node n on n.id = l.node_id
 where l.job_id = @job_id`

// Lease returns the lease of a job as it is, live or expired, with a zero
// token: to show, not to act. A job without one is a [*NotFoundError].
func (s *Store) Lease(ctx context.Context, jobID uuid.UUID) (Lease, error) {
	lease, found, err := one[Lease](ctx, s.db, leaseSQL, pgx.StrictNamedArgs{"job_id": jobID})
	if err == nil && !found {
		return Lease{}, &NotFoundError{What: "lease of job", ID: jobID.String()}
	}
	return lease, wrapRead(err, "read lease of job", jobID.String())
}

// Entry is a row of the ledger.
type Entry struct {
	ID          int64      `db:"id"           json:"id"`
	JobID       uuid.UUID  `db:"job_id"       json:"job_id"`
	Epoch       int64      `db:"epoch"        json:"epoch"`
	Event       string     `db:"event"        json:"event"`
	At          time.Time  `db:"at"           json:"at"`
	Until       *time.Time `db:"until"        json:"until,omitempty"` // the authority's end at the latest, as known then
	Worker      string     `db:"worker"       json:"worker,omitempty"`
	Process     *uuid.UUID `db:"process"      json:"process,omitempty"`
	Turn        int64      `db:"turn"         json:"turn,omitempty"`
	Outcome     string     `db:"outcome"      json:"outcome,omitempty"`
	NodeID      string     `db:"node_id"      json:"node_id,omitempty"`
	ContainerID string     `db:"container_id" json:"container_id,omitempty"`
}

const ledgerSQL = `
select id, job_id, epoch, event, at, until, worker, process, turn, outcome, node_id, container_id
  from leasehold.ledger
 where job_id = @job_id
 order by id
 limit 10000`

// Ledger returns what happened to a job's ownership, oldest first.
func (s *Store) Ledger(ctx context.Context, jobID uuid.UUID) ([]Entry, error) {
	entries, err := all[Entry](ctx, s.db, ledgerSQL, pgx.StrictNamedArgs{"job_id": jobID})
	return entries, wrapRead(err, "read the ledger of job", jobID.String())
}
