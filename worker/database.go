package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// connectWithin bounds the wait for a database or server that does not answer.
const connectWithin = 5 * time.Second

// database is the two pools of a worker. Renewals have connections of their
// own: work that takes all others must not cost a lease.
type database struct {
	work, renewals *pgxpool.Pool
}

// openDatabase connects and checks that the schema is the right one. The error
// is one sentence with the cure, and never has the URL in it.
func openDatabase(ctx context.Context, url string, telemetry Telemetry) (*database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL cannot be read: %s", parseProblem(err))
	}
	if !strings.Contains(url, "default_query_exec_mode") {
		// It needs no prepared statement on the server, which a pooler in
		// transaction mode would lose.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	config.ConnConfig.Tracer = otelpgx.NewTracer(
		otelpgx.WithTracerProvider(telemetry.TracerProvider), otelpgx.WithMeterProvider(telemetry.MeterProvider))
	config.ConnConfig.ConnectTimeout = connectWithin
	db := &database{}
	if db.work, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	apart := config.Copy()
	apart.MaxConns, apart.MinConns = 2, 0
	if db.renewals, err = pgxpool.NewWithConfig(ctx, apart); err != nil {
		db.close()
		return nil, err
	}
	if err := db.check(ctx); err != nil {
		db.close()
		return nil, databaseError(config.ConnConfig.Config, err)
	}
	return db, nil
}

func (db *database) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return leasestore.New(db.work).CheckSchema(ctx)
}

// close waits for the statements that still run.
func (db *database) close() {
	db.work.Close()
	if db.renewals != nil {
		db.renewals.Close()
	}
}

const instanceSQL = `
select d.oid::text || '/' || to_char(min(v.tstamp), 'YYYYMMDDHH24MISSUS') as name
  from pg_database d, leasehold.goose_db_version v
 where d.datname = current_database()
 group by d.oid`

// instance is a name that all workers of a database agree on, whatever they
// call it, and that a copy of the database does not share: a copy that removed
// the containers of the original would be worse than one that knows none.
func (db *database) instance(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	var name string
	if err := db.work.QueryRow(ctx, instanceSQL).Scan(&name); err != nil {
		return "", fmt.Errorf("name this installation: %w", err)
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:6]), nil
}

// parseProblem leaves the URL out: it may hold a password.
func parseProblem(err error) string {
	if parse, ok := errors.AsType[*pgconn.ParseConfigError](err); ok && parse.Unwrap() != nil {
		return parse.Unwrap().Error()
	}
	return "it must look like postgres://user@host:5432/database"
}

// databaseError says what keeps us from the database and what to do about it.
func databaseError(config pgconn.Config, err error) error {
	if _, ok := errors.AsType[*leasestore.SchemaError](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	where := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	pgErr, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return fmt.Errorf("PostgreSQL at %s does not answer (%s): start it, or correct DATABASE_URL", where, rootCause(err))
	}
	switch pgErr.Code {
	case "3D000":
		return fmt.Errorf("PostgreSQL at %s has no database %q: create it, or correct DATABASE_URL", where, config.Database)
	case "28P01", "28000":
		return fmt.Errorf("PostgreSQL at %s does not let user %q in (%s): correct DATABASE_URL", where, config.User, pgErr.Message)
	case "42501":
		return fmt.Errorf("user %q may not read the leasehold schema (%s): grant it usage and select, insert, update and delete there",
			config.User, pgErr.Message)
	}
	return fmt.Errorf("PostgreSQL at %s refuses the connection: %s", where, pgErr.Message)
}

// rootCause is the innermost error: what happened, without who tried. Of
// several, such as one for each address of a host, it is the last.
func rootCause(err error) string {
	for next := err; next != nil; {
		err = next
		next = errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			if errs := several.Unwrap(); len(errs) > 0 {
				next = errs[len(errs)-1]
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + connectWithin.String()
	}
	return err.Error()
}
