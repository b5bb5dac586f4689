package proof

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// forgetful renews whenever it is asked, expired or not.
type forgetful struct {
	*leasestore.Store
	pool *pgxpool.Pool
}

func (f forgetful) Renew(ctx context.Context, auth leasestore.Authority, ttl time.Duration) (leasestore.Lease, error) {
	return f.renewed(ctx, f.pool, auth, `
		update leasehold.lease set expires_at = clock_timestamp() + $3::interval
		 where job_id = $1 and token = $2 and (turn, process) = ($4, $5)
		returning epoch, expires_at`, auth.JobID, auth.Token, ttl, auth.Turn, auth.Process)
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// renewed leaves what the faulty statement refuses to the store.
func (f forgetful) renewed(ctx context.Context, db querier, auth leasestore.Authority, sql string, args ...any) (leasestore.Lease, error) {
	lease := leasestore.Lease{Authority: auth}
	err := db.QueryRow(ctx, sql, args...).Scan(&lease.Epoch, &lease.ExpiresAt)
	if err != nil {
		return f.Store.Renew(ctx, auth, ttl)
	}
	return lease, nil
}

// blind completes whatever runs under the job's ID.
type blind struct {
	*leasestore.Store
	pool *pgxpool.Pool
}

func (b blind) Complete(ctx context.Context, auth leasestore.Authority, outcome leasestore.Outcome) (leasestore.Job, error) {
	rows, err := b.pool.Query(ctx, `
		with gone as (delete from leasehold.lease where job_id = $1)
		update leasehold.job set status = 'COMPLETED', ended_at = clock_timestamp()
		 where id = $1 and status = 'RUNNING'
		returning id, ended_at`, auth.JobID)
	if err == nil {
		type ended struct {
			ID      uuid.UUID
			EndedAt *time.Time
		}
		if row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[ended]); err == nil {
			return leasestore.Job{ID: row.ID, EndedAt: row.EndedAt, Status: leasestore.Completed}, nil
		}
	}
	return b.Store.Complete(ctx, auth, outcome)
}

// slow judges by now(), in a transaction that began a while before: it looks at
// the lease until that has ended, and then renews it.
type slow struct{ forgetful }

func (s slow) Renew(ctx context.Context, auth leasestore.Authority, ttl time.Duration) (lease leasestore.Lease, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		for live := true; live; {
			if err := tx.QueryRow(ctx, `select exists (select from leasehold.lease where job_id = $1 and token = $2
				and expires_at > clock_timestamp() and expires_at > now())`, auth.JobID, auth.Token).Scan(&live); err != nil {
				return err
			}
		}
		lease = leasestore.Lease{Authority: auth}
		return tx.QueryRow(ctx, `
			update leasehold.lease set expires_at = clock_timestamp() + $3::interval
			 where job_id = $1 and token = $2 and expires_at > now() and (turn, process) = ($4, $5)
			returning epoch, expires_at`, auth.JobID, auth.Token, ttl, auth.Turn, auth.Process).Scan(&lease.Epoch, &lease.ExpiresAt)
	})
	if err != nil {
		return s.Store.Renew(ctx, auth, ttl)
	}
	return lease, nil
}

// tries is how many histories a fault may hide in.
const tries = 10

// A checker that finds everything legal proves nothing: SQL with the mistakes
// that others have made is found out.
func TestHistoriesOfFaultySQLAreIllegal(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*pgxpool.Pool, *leasestore.Store) verbs{
		"renew ignores expiry":        func(p *pgxpool.Pool, s *leasestore.Store) verbs { return forgetful{s, p} },
		"complete without token":      func(p *pgxpool.Pool, s *leasestore.Store) verbs { return blind{s, p} },
		"now() in a slow transaction": func(p *pgxpool.Pool, s *leasestore.Store) verbs { return slow{forgetful{s, p}} },
	}
	for name, faulty := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for try := range tries {
				h := play(t, seedOf(t), calm, faulty)
				if text, illegal := h.illegal(t); illegal {
					t.Logf("found in history %d:\n%s", try, text)
					return
				}
			}
			t.Errorf("%d histories were all found legal", tries)
		})
	}
}
