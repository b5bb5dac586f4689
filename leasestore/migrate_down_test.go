package leasestore_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMigratingGoesDownAndUpAgainAndSaysWhereItStands(t *testing.T) {
	t.Parallel()
	url := testenv.EmptyDatabase(t)
	newest := leasestore.SchemaVersion()
	f := fixture{t: t, pool: testenv.PoolOf(t, url)}
	f.Store = leasestore.New(f.pool)
	stands := func(at int64) {
		t.Helper()
		status := try(f.MigrationStatus(t.Context())).or(t)
		if int64(len(status)) != newest {
			t.Fatalf("the status is %+v", status)
		}
		for _, m := range status {
			if (m.AppliedAt != nil) != (m.Version <= at) || !strings.Contains(m.Name, "_") {
				t.Errorf("at version %d, migration %d is %+v", at, m.Version, m)
			}
		}
	}
	stands(0)
	for range 2 {
		try(leasestore.Migrate(t.Context(), url)).or(t)
		stands(newest)
		check(t, f.CheckSchema(t.Context()))
		for to := newest - 1; to >= 0; to-- {
			if got := try(leasestore.MigrateDown(t.Context(), url, to)).or(t); got != to {
				t.Errorf("it went down to %d, want %d", got, to)
			}
			stands(to)
			if old := wants[*leasestore.SchemaError](t, f.CheckSchema(t.Context())); old.Have != to {
				t.Errorf("at version %d it is refused as %v", to, old)
			}
		}
		if left := read[int](f, `select count(*) from pg_class where relnamespace = 'leasehold'::regnamespace and relname !~ '^goose'`); left != 0 {
			t.Errorf("%d relations are left", left)
		}
		if left := read[int](f, `select count(*) from pg_proc where pronamespace = 'leasehold'::regnamespace`); left != 0 {
			t.Errorf("%d functions are left", left)
		}
	}
	for _, to := range []int64{-1, 1} {
		_, err := leasestore.MigrateDown(t.Context(), url, to)
		wants[*leasestore.InvalidError](t, err)
	}
}

func TestASchemaUnderWhichSomebodyWorksIsNotDropped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	_, err := leasestore.MigrateDown(t.Context(), f.pool.Config().ConnString(), 0)
	wants[*leasestore.ConflictError](t, err)
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
}

func TestPrintedMigrationsMakeTheSchema(t *testing.T) {
	t.Parallel()
	var printed strings.Builder
	check(t, leasestore.PrintMigrations(&printed))
	up := ""
	for part := range strings.SplitSeq(printed.String(), "-- +goose Up") {
		body, _, _ := strings.Cut(part, "-- +goose Down")
		up += body
	}
	f := fixture{t: t, pool: testenv.PoolOf(t, testenv.EmptyDatabase(t))}
	f.Store = leasestore.New(f.pool)
	f.exec(`create schema leasehold`)
	for statement := range strings.SplitSeq(strings.ReplaceAll(up, "-- +goose StatementEnd", ""), "-- +goose StatementBegin") {
		f.exec(statement)
	}
	lease := f.placed()
	try(f.Complete(t.Context(), lease.Authority, leasestore.Outcome{})).or(t)
}

// A migration that needs the table of leases waits for a transaction that reads
// it. Renewals go on meanwhile, although each comes after the migration. Seeded
// fault: no lock_timeout; the first renewal then waits until the reader ends.
func TestAMigrationThatWaitsHoldsUpNoRenewal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.claimed()
	reader := f.begin()
	try(reader.Exec(t.Context(), `select from leasehold.lease`)).or(t)
	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := leasestore.MigrateFiles(bounded, f.pool.Config().ConnString(), nextMigration(), leasestore.SchemaVersion()+1)
		done <- err
	}()
	var longest time.Duration
	for waits := 0; waits < 3; {
		if f.migrationWaits() {
			waits++
		}
		began := time.Now()
		try(f.Renew(bounded, lease.Authority, ttl)).or(t)
		longest = max(longest, time.Since(began))
		select {
		case err := <-done:
			t.Fatalf("the migration did not wait: %v", err)
		default:
		}
	}
	check(t, reader.Commit(t.Context()))
	check(t, <-done)
	t.Logf("the longest renewal took %s while the migration waited", longest)
	if longest > 500*time.Millisecond { // 100 ms and the noise of a shared machine
		t.Errorf("a renewal took %s", longest)
	}
	try(f.Renew(t.Context(), lease.Authority, ttl)).or(t)
	if !read[bool](f, `select bool_and(note = '') from leasehold.lease`) {
		t.Error("the migration was not made")
	}
}

func (f fixture) migrationWaits() bool {
	f.t.Helper()
	return read[bool](f, `select exists (select from pg_stat_activity where datname = current_database()
	                                      and wait_event_type = 'Lock' and query ilike 'alter table%')`)
}

// nextMigration is the embedded files and one more that changes the hottest table.
func nextMigration() fs.FS {
	files := fstest.MapFS{"migrations/9999_next.sql": {Data: []byte("-- +goose Up\nalter table leasehold.lease add column note text not null default '';\n")}}
	var printed strings.Builder
	_ = leasestore.PrintMigrations(&printed)
	for file := range strings.SplitSeq(strings.TrimPrefix(printed.String(), "-- 0"), "\n-- 0") {
		name, body, _ := strings.Cut(file, "\n")
		files["migrations/0"+name] = &fstest.MapFile{Data: []byte(body)}
	}
	return files
}
