package leasestore

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Renewal is the answer to one authority of a batch.
type Renewal struct {
	Authority Authority
	// Remaining and Deadline are set if the lease was renewed; see [Lease].
	Remaining time.Duration
	Deadline  time.Time
	// Renewed says that it was. If not, Busy says that its row was locked by
	// another statement and nothing is known: try again. Neither means that
	// the authority is lost.
	Renewed, Busy bool
}

// LogValue leaves the token out.
func (r Renewal) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("authority", r.Authority), slog.Bool("renewed", r.Renewed), slog.Bool("busy", r.Busy),
		slog.Duration("remaining", r.Remaining))
}

// The batch locks in one order and waits for no row, so it can neither
// deadlock with another nor be held up by one lease.
const renewAllSQL = `
with asked as materialized (
    select * from unnest(@jobs::uuid[], @tokens::uuid[], @generations::bigint[], @epochs::bigint[],
                         @workers::text[], @processes::uuid[], @turns::bigint[])
         with ordinality as a (job_id, token, generation, epoch, worker, process, turn, place)
), held as materialized (
    select l.*
      from leasehold.lease l
     where l.job_id = any(@jobs::uuid[])
     order by l.job_id
       for update skip locked
), judged as materialized (
    select a.place, a.job_id, clock_timestamp() as decided_at, h.expires_at,
           (h.token, h.generation, h.epoch, h.worker, h.process, h.turn) =
           (a.token, a.generation, a.epoch, a.worker, a.process, a.turn) as same
      from asked a
      join held h on h.job_id = a.job_id
), renewed as (
    update leasehold.lease l
       set expires_at = greatest(l.expires_at, j.decided_at + @ttl::interval)
      from judged j
     where l.job_id = j.job_id and j.same and j.expires_at > j.decided_at
    returning l.job_id, l.expires_at - clock_timestamp() as remaining
)
select a.place, coalesce(r.remaining, interval '0') as remaining, r.job_id is not null as renewed,
       j.place is null and exists (select from leasehold.lease l where l.job_id = a.job_id and l.token = a.token) as busy
  from asked a
  left join judged j on j.place = a.place
  left join renewed r on r.job_id = j.job_id and j.same
 order by a.place`

type renewalRow struct {
	Place     int64
	Remaining time.Duration
	Renewed   bool
	Busy      bool
}

// RenewAll renews many proven leases in one statement and answers each by its
// full identity, in the order asked. At most 1000 at once. A bad one spoils
// nothing but itself; the error is for the statement as a whole.
func (s *Store) RenewAll(ctx context.Context, auths []Authority, ttl time.Duration) ([]Renewal, error) {
	if err := validateBatch(auths, ttl); err != nil || len(auths) == 0 {
		return nil, err
	}
	args := batchArgs(auths)
	args["ttl"] = ttl
	sent := time.Now()
	rows, err := all[renewalRow](ctx, s.db, renewAllSQL, args)
	if err != nil {
		return nil, wrap(err, "renew", "batch")
	}
	answers := make([]Renewal, len(auths))
	for i, row := range rows {
		answers[i] = Renewal{Authority: auths[i], Renewed: row.Renewed, Busy: row.Busy}
		if row.Renewed {
			answers[i].Remaining, answers[i].Deadline = row.Remaining, sent.Add(row.Remaining)
		}
	}
	return answers, nil
}

// batchArgs spreads authorities over one array per column.
func batchArgs(auths []Authority) pgx.StrictNamedArgs {
	n := len(auths)
	jobs, tokens, processes := make([]uuid.UUID, n), make([]Token, n), make([]uuid.UUID, n)
	generations, epochs, turns, workers := make([]int64, n), make([]int64, n), make([]int64, n), make([]string, n)
	for i, a := range auths {
		jobs[i], tokens[i], workers[i], processes[i] = a.JobID, a.Token, a.Worker, a.Process
		generations[i], epochs[i], turns[i] = a.Generation, a.Epoch, a.Turn
	}
	return pgx.StrictNamedArgs{
		"jobs": jobs, "tokens": tokens, "generations": generations, "epochs": epochs,
		"workers": workers, "processes": processes, "turns": turns,
	}
}
