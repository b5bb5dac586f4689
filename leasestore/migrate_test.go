package leasestore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMigratingAtOnceInManyProcessesMakesOneSchema(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyDatabase(t)
	conn := try(pgx.Connect(t.Context(), url)).or(t)
	defer conn.Close(t.Context())
	store := leasestore.New(conn)
	if missing := wants[*leasestore.SchemaError](t, store.CheckSchema(t.Context())); missing.Have != 0 {
		t.Errorf("an empty database has version %d", missing.Have)
	}
	migrate := func() {
		if version, err := leasestore.Migrate(t.Context(), url); err != nil || version != leasestore.SchemaVersion() {
			t.Errorf("migrated to %d: %v", version, err)
		}
	}
	race(slices.Repeat([]func(){migrate}, 10)...)
	check(t, store.CheckSchema(t.Context()))
	migrate()
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`insert into leasehold.goose_db_version (version_id, is_applied) values (9999, true)`)
	newer := wants[*leasestore.SchemaError](t, f.CheckSchema(t.Context()))
	if newer.Have != 9999 || newer.Want != leasestore.SchemaVersion() {
		t.Errorf("refused as %v", newer)
	}
	_, err := leasestore.Migrate(t.Context(), f.pool.Config().ConnString())
	wants[*leasestore.SchemaError](t, err)
}

func TestAWrongDatabaseURLIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://me:secret@host:port/db", "nonsense secret", "postgres://me:secret@%zz/db"} {
		_, err := leasestore.Migrate(t.Context(), url)
		wants[*leasestore.InvalidError](t, err)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the refusal shows the password: %v", err)
		}
	}
}

// What a transaction pooler needs: no prepared statements that outlive their
// transaction. Every verb works in every mode of pgx that gives that.
func TestL22_TheVerbsWorkWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			direct := newFixture(t)
			config := direct.pool.Config().Copy()
			config.ConnConfig.DefaultQueryExecMode = mode
			pool := try(pgxpool.NewWithConfig(t.Context(), config)).or(t)
			defer pool.Close()
			f := fixture{leasestore.New(pool), t, pool}
			lease := f.placed()
			for verb, act := range holding {
				job := f.claim(f.queued("report"), alice)
				if err := act(f, job.Authority); err != nil {
					t.Errorf("%s: %v", verb, err)
				}
				try(f.Withdraw(t.Context(), job.JobID, boom.Failure)).or(t)
				f.exec(`delete from leasehold.lease where job_id = $1`, job.JobID)
			}
			auths := []leasestore.Authority{lease.Authority}
			if got := try(f.RenewAll(t.Context(), auths, ttl)).or(t); !got[0].Renewed {
				t.Error("not renewed")
			}
			if got := try(f.Reconcile(t.Context(), auths)).or(t); got[0].State != leasestore.ClaimLive {
				t.Errorf("reconciled as %s", got[0].State)
			}
			f.recovered(lease.JobID)
			if got := read[int](f, `select count(*) from pg_prepared_statements`); got != 0 {
				t.Errorf("%d prepared statements", got)
			}
		})
	}
}
