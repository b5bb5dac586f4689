package leasestore

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// SchemaVersion is the version of the schema that this program works with.
func SchemaVersion() int64 {
	var newest int64
	for _, m := range migrationFiles() {
		newest = max(newest, m.Version)
	}
	return newest
}

const schemaTableSQL = `
select to_regclass('` + versionTable + `') is not null as found`

const appliedSQL = `
select distinct on (version_id) version_id as version, is_applied, tstamp at time zone current_setting('TimeZone') as applied_at
  from ` + versionTable + `
 where version_id > 0
 order by version_id, id desc`

type appliedRow struct {
	Version   int64
	IsApplied bool
	AppliedAt time.Time
}

func (s *Store) applied(ctx context.Context) ([]appliedRow, error) {
	table, _, err := one[struct{ Found bool }](ctx, s.db, schemaTableSQL, nil)
	if err != nil || !table.Found {
		return nil, wrapRead(err, "read", "schema version")
	}
	rows, err := all[appliedRow](ctx, s.db, appliedSQL, nil)
	return rows, wrapRead(err, "read", "schema version")
}

// CheckSchema returns a [*SchemaError] unless the database has exactly this
// program's schema.
func (s *Store) CheckSchema(ctx context.Context) error {
	applied, err := s.applied(ctx)
	if err != nil {
		return err
	}
	var have int64
	for _, row := range applied {
		if row.IsApplied {
			have = row.Version
		}
	}
	if want := SchemaVersion(); have != want {
		return &SchemaError{Have: have, Want: want}
	}
	return nil
}

// Migration is one step of the schema.
type Migration struct {
	Version int64  `json:"version"`
	Name    string `json:"name"` // of its file; empty if this program does not know it
	// AppliedAt is nil if the database does not have it.
	AppliedAt *time.Time `json:"applied_at,omitempty"`
}

// MigrationStatus lists the migrations that this program or the database knows,
// oldest first.
func (s *Store) MigrationStatus(ctx context.Context) ([]Migration, error) {
	applied, err := s.applied(ctx)
	if err != nil {
		return nil, err
	}
	found := migrationFiles()
	for _, row := range applied {
		if !row.IsApplied {
			continue
		}
		if row.Version > int64(len(found)) { // they are numbered without a gap
			found = append(found, Migration{Version: row.Version, AppliedAt: &row.AppliedAt})
			continue
		}
		found[row.Version-1].AppliedAt = &row.AppliedAt
	}
	return found, nil
}

// PrintMigrations writes the SQL of all migrations, for whoever applies them by
// other means or wants to read them first. They are made for goose, which reads
// the comments; they need a schema named leasehold.
func PrintMigrations(w io.Writer) error {
	for _, m := range migrationFiles() {
		text, err := fs.ReadFile(migrations, "migrations/"+m.Name)
		if err != nil {
			panic(err) // embedded at build time
		}
		if _, err := fmt.Fprintf(w, "-- %s\n%s\n", m.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// migrationFiles are what this program knows, in the order of their numbers.
func migrationFiles() []Migration {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		panic(err) // embedded at build time
	}
	found := make([]Migration, 0, len(files))
	for _, file := range files {
		version, err := goose.NumericComponent(file.Name())
		if err != nil {
			panic(err) // embedded at build time
		}
		found = append(found, Migration{Version: version, Name: file.Name()})
	}
	return found
}
