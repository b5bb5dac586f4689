package leasestore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// ProveJob is [Store.Prove] and then [Store.Job], in one round trip: what every
// step of a job begins with.
func (s *Store) ProveJob(ctx context.Context, auth Authority, ttl time.Duration) (Lease, Job, error) {
	if err := validateTTL(ttl); err != nil {
		return Lease{}, Job{}, err
	}
	if err := auth.validate(); err != nil {
		return Lease{}, Job{}, err
	}
	var proven []Lease
	var jobs []Job
	batch := &pgx.Batch{}
	batch.Queue(proveSQL, auth.args(pgx.StrictNamedArgs{"ttl": ttl})).Query(collect(&proven))
	batch.Queue(jobSQL, pgx.StrictNamedArgs{"job_id": auth.JobID}).Query(collect(&jobs))
	sent := time.Now()
	if err := s.db.SendBatch(ctx, batch).Close(); err != nil {
		return Lease{}, Job{}, wrap(err, "prove job", auth.JobID.String())
	}
	if len(proven) == 0 || len(jobs) == 0 {
		return Lease{}, Job{}, s.refusal(ctx, auth)
	}
	return proven[0].since(sent), jobs[0], nil
}

// collect gathers the rows of one statement of a batch; they are good only
// once the batch is closed without an error.
func collect[T any](into *[]T) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*into, err = pgx.CollectRows(rows, pgx.RowToStructByName[T])
		return err
	}
}
