package leasestore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versionTable is goose's own record of what it has applied.
const versionTable = "leasehold.goose_db_version"

// A migration that waits for a table makes everybody who comes later wait
// behind it. So it waits briefly, gives way, and tries again: lockWait is what
// a renewal may lose each time. Too short and a busy table is never got.
const (
	lockWait     = "50ms"
	lockPause    = 200 * time.Millisecond
	lockAttempts = 300
)

// Migrate brings the schema of the database at url up to this program's
// version and returns that version. It may run in many processes at once: one
// works, the others wait. It runs beside live workers and holds up none of
// their statements for longer than 100 ms. A schema that is newer is a
// [*SchemaError]; a table that others kept locked for a minute is an error
// after which it can be run again.
//
// It needs a session of its own (no transaction pooler), and the right to
// create the schema leasehold or to change it.
func Migrate(ctx context.Context, url string) (int64, error) {
	return migrate(ctx, url, migrations, SchemaVersion())
}

func migrate(ctx context.Context, url string, files fs.FS, want int64) (int64, error) {
	err := migrating(ctx, url, files, func(provider *goose.Provider) error {
		have, err := provider.GetDBVersion(ctx)
		if err != nil {
			return err
		}
		if have > want {
			return &SchemaError{Have: have, Want: want}
		}
		return givingWay(ctx, func() error { _, err := provider.Up(ctx); return err })
	})
	if err != nil {
		return 0, err
	}
	return want, nil
}

// MigrateDown takes the schema of the database at url back to a version, 0
// being none, and returns that version. All that later versions stored is lost.
// While anybody owns a job, going back to 0 is a [*ConflictError].
func MigrateDown(ctx context.Context, url string, to int64) (int64, error) {
	err := migrating(ctx, url, migrations, func(provider *goose.Provider) error {
		have, err := provider.GetDBVersion(ctx)
		switch {
		case err != nil:
			return err
		case have > SchemaVersion():
			return &SchemaError{Have: have, Want: SchemaVersion()}
		case to < 0 || to > have:
			return &InvalidError{Field: "version", Problem: fmt.Sprintf("must be between 0 and %d, the schema's", have)}
		case to == 0 && have > 0:
			if err := unowned(ctx, url); err != nil {
				return err
			}
		}
		return givingWay(ctx, func() error { _, err := provider.DownTo(ctx, to); return err })
	})
	if err != nil {
		return 0, err
	}
	return to, nil
}

// unowned refuses to drop the leases that somebody works under.
func unowned(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	row, _, err := one[struct{ N int64 }](ctx, conn, `select count(*) as n from leasehold.lease`, nil)
	if err == nil && row.N > 0 {
		return &ConflictError{What: "leases", Recorded: fmt.Sprint(row.N), Presented: "dropping them"}
	}
	return err
}

// givingWay tries again while a table is in use.
func givingWay(ctx context.Context, step func() error) error {
	for attempt := 1; ; attempt++ {
		err := step()
		pgErr, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pgErr.Code != "55P03" || attempt == lockAttempts {
			return err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// migrating runs some migrating with a session of its own.
func migrating(ctx context.Context, url string, files fs.FS, work func(*goose.Provider) error) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return &InvalidError{Field: "database URL", Problem: "cannot be read: " + parseProblem(err)}
	}
	config.RuntimeParams["lock_timeout"] = lockWait
	db := stdlib.OpenDB(*config)
	defer db.Close()
	// Without the question, an owner of the schema who may not create schemas
	// would be refused although there is nothing to create.
	var there bool
	err = db.QueryRowContext(ctx, `select to_regnamespace('leasehold') is not null`).Scan(&there)
	if err == nil && !there {
		_, err = db.ExecContext(ctx, `create schema if not exists leasehold`)
	}
	if err != nil && !raced(err) {
		return wrapRead(err, "migrate schema", "leasehold")
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)) // asks each second for 5 minutes
	if err != nil {
		return wrapRead(err, "migrate schema", "leasehold")
	}
	files, err = fs.Sub(files, "migrations")
	if err != nil {
		return wrapRead(err, "migrate schema", "leasehold")
	}
	store, err := database.NewStore(database.DialectPostgres, versionTable)
	if err != nil {
		return wrapRead(err, "migrate schema", "leasehold")
	}
	provider, err := goose.NewProvider("", db, files, goose.WithStore(store), goose.WithSessionLocker(locker))
	if err != nil {
		return wrapRead(err, "migrate schema", "leasehold")
	}
	return wrapRead(work(provider), "migrate schema", "leasehold")
}
