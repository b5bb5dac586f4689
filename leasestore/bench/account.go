package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const countersSQL = `
select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint as wal,
       coalesce(sum(n_tup_upd), 0)::bigint as updates, coalesce(sum(n_tup_hot_upd), 0)::bigint as hot
  from pg_stat_user_tables`

type counters struct{ WAL, Updates, Hot int64 }

// accountRows is how many rows are changed, again and again, while the log is
// counted. After the first time their pages are in it as a whole, which
// PostgreSQL does once after each checkpoint, and is no part of the figure.
const accountRows = 200

// accounts counts the write-ahead log and the heap-only updates of each
// operation, and of the floor.
func (b *bench) accounts(ctx context.Context) error {
	b.say("counting write-ahead log and heap-only updates")
	for _, l := range b.lanes {
		l.most = accountRows
		accounts := map[string]Account{}
		for range 2 { // the second counts
			for _, op := range append(operations(), operation{name: "floor", call: floor}) {
				account, err := b.account(ctx, l, op)
				if err != nil {
					return err
				}
				accounts[op.name] = account
			}
		}
		l.most = 0
		b.report.FloorAccounts = append(b.report.FloorAccounts, accounts["floor"])
		for i := range b.report.Figures {
			if figure := &b.report.Figures[i]; figure.Size == l.Size {
				figure.Account = accounts[figure.Operation]
			}
		}
	}
	return nil
}

// account runs one slice of an operation on connections of its own.
func (b *bench) account(ctx context.Context, l *lane, op operation) (Account, error) {
	if op.before != nil {
		if err := op.before(ctx, l); err != nil {
			return Account{}, fmt.Errorf("bench: before %s: %w", op.name, err)
		}
	}
	before, err := b.count(ctx, l) // what came before is in it
	if err != nil {
		return Account{}, err
	}
	done, err := b.apart(ctx, l, op)
	if err != nil {
		return Account{}, err
	}
	after, err := b.count(ctx, l)
	if err != nil {
		return Account{}, err
	}
	if op.after != nil {
		if err := op.after(ctx, l); err != nil {
			return Account{}, fmt.Errorf("bench: after %s: %w", op.name, err)
		}
	}
	account := Account{WAL: float64(after.WAL-before.WAL) / float64(done.rows)}
	if changed := after.Updates - before.Updates; changed > 0 {
		hot := float64(after.Hot-before.Hot) / float64(changed)
		account.HOT = &hot
	}
	return account, nil
}

// apart runs a slice on connections that it closes.
func (b *bench) apart(ctx context.Context, l *lane, op operation) (slice, error) {
	on, err := b.openSession(ctx, l, b.Connections)
	if err != nil {
		return slice{}, err
	}
	defer on.pool.Close()
	return b.slice(ctx, l, on, op)
}

// count reads the counters when all connections have reported to them.
func (b *bench) count(ctx context.Context, l *lane) (counters, error) {
	if err := b.settled(ctx, l); err != nil {
		return counters{}, err
	}
	rows, err := l.pool.Query(ctx, countersSQL)
	if err != nil {
		return counters{}, fmt.Errorf("bench: count: %w", err)
	}
	counted, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[counters])
	if err != nil {
		return counters{}, fmt.Errorf("bench: count: %w", err)
	}
	return counted, nil
}

const othersSQL = `
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`

// settledWithin bounds the wait for closed connections to end.
const settledWithin = 30 * time.Second

// settled closes the lane's connections and waits until they are gone, and so
// have reported what they did.
func (b *bench) settled(ctx context.Context, l *lane) error {
	ctx, cancel := context.WithTimeout(ctx, settledWithin)
	defer cancel()
	l.pool.Reset()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var others int
		if err := l.pool.QueryRow(ctx, othersSQL).Scan(&others); err != nil {
			return fmt.Errorf("bench: wait for connections to end: %w", err)
		}
		if others == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: %d connections did not end within %s", others, settledWithin)
		}
	}
}
