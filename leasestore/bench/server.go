package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// server is the PostgreSQL that is measured, seen from the given database.
type server struct {
	url  string
	conn *pgx.Conn
}

func connect(ctx context.Context, databaseURL string) (*server, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil { // its text may hold a password
		return nil, &leasestore.InvalidError{Field: "database URL", Problem: "cannot be read: it must look like postgres://user@host:5432/database"}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return &server{url: databaseURL, conn: conn}, nil
}

func (s *server) close(ctx context.Context) error { return s.conn.Close(ctx) }

// create makes a temporary database and returns its name.
func (s *server) create(ctx context.Context) (string, error) {
	name := "leasehold_bench_" + strings.ToLower(rand.Text()[:10])
	_, err := s.conn.Exec(ctx, "create database "+name+" template template0")
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == "42501" {
		return "", &leasestore.InvalidError{
			Field: "database account", Problem: fmt.Sprintf("%s may not create databases, and the measurement needs one of its own: "+
				"alter role %[1]s createdb, or use another account", pgx.Identifier{s.conn.Config().User}.Sanitize()),
		}
	}
	if err != nil {
		return "", fmt.Errorf("bench: create a database: %w", err)
	}
	return name, nil
}

// dropWithin bounds the clean-up, which an interruption does not stop.
const dropWithin = time.Minute

func (s *server) drop(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url) // its own: an interruption closes the other
	if err == nil {
		_, err = conn.Exec(ctx, "drop database if exists "+name+" with (force)")
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		return fmt.Errorf("bench: drop database %s, which is left behind: %w", name, err)
	}
	return nil
}

// urlOf is the given URL with another database.
func (s *server) urlOf(name string) (string, error) {
	if !strings.HasPrefix(s.url, "postgres://") && !strings.HasPrefix(s.url, "postgresql://") {
		return s.url + " dbname=" + name, nil // the last one counts
	}
	address, err := url.Parse(s.url)
	if err != nil {
		return "", &leasestore.InvalidError{Field: "database URL", Problem: "cannot be read"}
	}
	query := address.Query()
	query.Del("dbname")
	query.Del("database")
	address.Path, address.RawQuery = "/"+name, query.Encode()
	return address.String(), nil
}

// pool opens as many connections to a database as are used at once.
func (s *server) pool(ctx context.Context, databaseURL string, connections int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, &leasestore.InvalidError{Field: "database URL", Problem: "cannot be read"}
	}
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return pool, nil
}

const serverSQL = `
select current_setting('server_version') as version, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as synchronous_commit, current_setting('shared_buffers') as shared_buffers`

// Server is what was measured on.
type Server struct {
	Version           string `json:"version"`
	Fsync             string `json:"fsync"`
	SynchronousCommit string `json:"synchronous_commit"`
	SharedBuffers     string `json:"shared_buffers"`
}

func (s *server) describe(ctx context.Context) (Server, error) {
	rows, err := s.conn.Query(ctx, serverSQL)
	if err != nil {
		return Server{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Server])
}
