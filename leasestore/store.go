package leasestore

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// DB is where a [Store] runs its statements: a pgxpool.Pool, a pgx.Conn, or a
// pgx.Tx to make the store's changes part of the caller's transaction. Then an
// answer holds only if that transaction commits, and it must be READ COMMITTED:
// claims, recoveries and changes of definitions refuse any other.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Store is the lease protocol on one database. It holds no state of its own
// and is as safe for concurrent use as its DB.
type Store struct{ db DB }

// New returns a store on db. It does no I/O.
func New(db DB) *Store { return &Store{db: db} }

// held begins every statement that acts on an authority. It locks the lease
// before judging it: one that runs out while we wait for the lock has run out.
// A single UPDATE would judge first and miss that, because PostgreSQL looks at
// WHERE again only if the row got a new version (seen on PostgreSQL 15).
//
// A later turn may act, an equal one only in the process that it is bound to.
const held = `
with held as materialized (
    select * from leasehold.lease
     where job_id = @job_id and token = @token
       for update
), judged as materialized (
    select held.*, clock_timestamp() as decided_at,
           @worker::text as acting_worker, @process::uuid as acting_process, @turn::bigint as acting_turn
      from held
), good as materialized (
    select * from judged
     where generation = @generation and epoch = @epoch
       and (turn < acting_turn or (turn, worker, process) = (acting_turn, acting_worker, acting_process))
       and expires_at > decided_at
)`

// entersEra raises the era on a new timeline. It costs a look at one row.
const entersEra = `
       case when (select timeline from leasehold.setting) <> leasehold.timeline() then leasehold.enter_era(false) end`

// bound ends every statement that changes a lease and keeps it, after a CTE of
// that name: it records a move to another process and answers the lease.
const bound = `, journal as (
    insert into leasehold.ledger (job_id, epoch, event, at, until, worker, process, turn, node_id, container_id)
    select l.job_id, l.epoch, 'TAKEN_OVER', g.decided_at, l.expires_at, l.worker, l.process, l.turn,
           coalesce(l.node_id, ''), coalesce(l.container_id, '')
      from bound l
      join good g on g.job_id = l.job_id
     where (g.worker, g.process) <> (l.worker, l.process)
)
select` + leaseColumns + `
  from bound l
  left join leasehold.runtime_node n on n.id = l.node_id`

// acts runs one statement that changes an authority's lease and returns it. No
// row means that the authority is no longer good: why is the error.
func (s *Store) acts(ctx context.Context, verb string, auth Authority, sql string, more pgx.StrictNamedArgs) (Lease, error) {
	if err := auth.validate(); err != nil {
		return Lease{}, err
	}
	sent := time.Now()
	lease, found, err := one[Lease](ctx, s.db, sql, auth.args(more))
	if err != nil {
		return Lease{}, wrap(err, verb+" job", auth.JobID.String())
	}
	if !found {
		return Lease{}, s.refusal(ctx, auth)
	}
	return lease.since(sent), nil
}

// one returns the only row of a query, and whether there was one. The row is
// good only once the implicit transaction is known to be committed, so the
// rows are read to their end first.
func one[T any](ctx context.Context, db DB, sql string, args pgx.StrictNamedArgs) (T, bool, error) {
	rows, err := all[T](ctx, db, sql, args)
	if err != nil || len(rows) == 0 {
		var none T
		return none, false, err
	}
	return rows[0], true, nil
}

func all[T any](ctx context.Context, db DB, sql string, args pgx.StrictNamedArgs) ([]T, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	doubted := doubt(rows)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[T])
	if err == nil {
		err = doubted()
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// lastOfBatch runs a batch as one transaction, in one round trip, and returns
// the row of its last statement. The outcome is known only from Close, so
// nothing is handed out before it.
func lastOfBatch[T any](ctx context.Context, db DB, batch *pgx.Batch) (T, error) {
	var none T
	rows, err := rowsOfBatch[T](ctx, db, batch)
	if err != nil {
		return none, err
	}
	if len(rows) == 0 {
		return none, pgx.ErrNoRows
	}
	return rows[0], nil
}

func rowsOfBatch[T any](ctx context.Context, db DB, batch *pgx.Batch) (found []T, err error) {
	results := db.SendBatch(ctx, batch)
	doubted := func() error { return nil }
	defer func() {
		closed := results.Close()
		if err == nil {
			err = cmp.Or(closed, doubted())
		}
		if err != nil {
			found = nil
		}
	}()
	for range batch.Len() - 1 {
		if _, err = results.Exec(); err != nil {
			return nil, err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	doubted = doubt(rows)
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}
