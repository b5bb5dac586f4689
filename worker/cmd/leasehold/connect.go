package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// connectWithin bounds the wait for a database or server that does not answer.
const connectWithin = 5 * time.Second

// store opens the database and checks that its schema is the right one. The
// caller closes it with the function returned.
func (c *cli) store(ctx context.Context) (*leasestore.Store, func(), error) {
	pool, err := c.openPool(ctx)
	if err != nil {
		return nil, nil, err
	}
	store := leasestore.New(pool)
	if err := store.CheckSchema(ctx); err != nil {
		pool.Close()
		if _, refused := errors.AsType[*pgconn.PgError](err); refused {
			err = databaseError(pool.Config().ConnConfig.Config, err)
		}
		return nil, nil, err
	}
	return store, pool.Close, nil
}

func (c *cli) databaseURL() (string, error) {
	url, ok := c.environment().Lookup("DATABASE_URL")
	if !ok || url == "" {
		return "", &refusedError{Err: errors.New("DATABASE_URL is not set: set it to the database, such as " +
			"postgres://user@host:5432/leasehold, or start leasehold dev")}
	}
	return url, nil
}

func (c *cli) openPool(ctx context.Context) (*pgxpool.Pool, error) {
	url, err := c.databaseURL()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &refusedError{Err: fmt.Errorf("DATABASE_URL cannot be read: %s", parseProblem(err))}
	}
	config.MaxConns = 4
	if !strings.Contains(url, "default_query_exec_mode") {
		// It needs no prepared statement on the server, which a pooler in
		// transaction mode would lose.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	config.ConnConfig.ConnectTimeout = connectWithin
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, databaseError(config.ConnConfig.Config, err)
	}
	return pool, nil
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
	if errors.Is(err, context.Canceled) {
		return err
	}
	where := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pgErr.Code {
		case "3D000":
			return &refusedError{Err: fmt.Errorf("PostgreSQL at %s has no database %q: create it, or correct DATABASE_URL",
				where, config.Database)}
		case "28P01", "28000":
			return &refusedError{Err: fmt.Errorf("PostgreSQL at %s does not let user %q in (%s): correct DATABASE_URL",
				where, config.User, pgErr.Message)}
		case "42501":
			return &refusedError{Err: fmt.Errorf("user %q may not use the leasehold schema (%s): grant it a role of leasehold migrate roles, "+
				"or correct DATABASE_URL", config.User, pgErr.Message)}
		}
		return &refusedError{Err: fmt.Errorf("PostgreSQL at %s refuses the connection: %s", where, pgErr.Message)}
	}
	return &refusedError{Err: fmt.Errorf("PostgreSQL at %s does not answer (%s): start it, or correct DATABASE_URL",
		where, rootCause(err))}
}

// rootCause is the innermost error, the first one where several were tried:
// what happened, without who did it.
func rootCause(err error) string {
	for {
		if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
			err = many.Unwrap()[0]
			continue
		}
		next := errors.Unwrap(err)
		if next == nil {
			break
		}
		err = next
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + connectWithin.String()
	}
	return err.Error()
}
