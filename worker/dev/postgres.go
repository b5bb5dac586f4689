package dev

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresOptions says how to run a private PostgreSQL.
type PostgresOptions struct {
	// Dir keeps the data and the log. It is made if it is not there; data of an
	// earlier run is found again. Required. As root, PostgreSQL runs as the
	// account postgres (or nobody), which must be able to reach it.
	Dir string

	// Port to listen on, on 127.0.0.1. Defaults to a free one.
	Port int

	// Database is created if it is not there. Defaults to postgres.
	Database string

	// Settings for postgresql.conf, such as fsync: off.
	Settings map[string]string
}

// Postgres is a running private PostgreSQL. Stop ends its sessions and writes
// its data (a fast shutdown).
type Postgres struct {
	*Process
	url string
	dir string // of the data
}

// URL returns the address of the database, for pgx and psql. Everybody on this
// machine may connect as superuser without a password.
func (p *Postgres) URL() string { return p.url }

// StartPostgres starts PostgreSQL and waits until it answers. Where Dir has no
// data it makes a new cluster, which takes about a second. It returns a
// [*MissingError] if PostgreSQL 14 or later is not installed, and an error if
// another PostgreSQL runs on the same data. ctx bounds the start only.
func StartPostgres(ctx context.Context, opts PostgresOptions) (*Postgres, error) {
	dir, err := filepath.Abs(opts.Dir)
	if err != nil || opts.Dir == "" {
		return nil, errors.Join(errors.New("start PostgreSQL: it needs a folder"), err)
	}
	cluster := cluster{dir: filepath.Join(dir, "data"), log: filepath.Join(dir, "postgres.log")}
	if cluster.account, err = unprivileged(); err != nil {
		return nil, err
	}
	if err := cluster.account.adopt(dir); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := cluster.prepare(ctx); err != nil {
		return nil, err
	}
	const attempts = 3
	for attempt := 1; ; attempt++ {
		started, err := cluster.start(ctx, opts)
		if err == nil || attempt == attempts || opts.Port != 0 || !portTaken(err) {
			return started, err
		}
	}
}

func (c cluster) start(ctx context.Context, opts PostgresOptions) (*Postgres, error) {
	port := opts.Port
	if err := choosePorts(&port); err != nil {
		return nil, err
	}
	args := []string{
		"-D", c.dir, "-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(port),
		"-c", "unix_socket_directories=", "-c", "logging_collector=off",
	}
	for name, value := range opts.Settings {
		args = append(args, "-c", name+"="+value)
	}
	process, err := Start(ctx, Command{
		Name:    "PostgreSQL",
		Path:    filepath.Join(c.bin, "postgres"),
		Args:    args,
		Dir:     c.dir,
		LogFile: c.log,
		Account: c.account,
		Ready:   func(ctx context.Context) error { return c.answers(ctx, port) },
		// SIGINT is the fast shutdown; SIGTERM would wait for clients to leave.
		StopSignal: syscall.SIGINT,
		Grace:      20 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	database := opts.Database
	if database == "" {
		database = "postgres"
	}
	if err := createDatabase(ctx, port, database); err != nil {
		return nil, errors.Join(err, process.Stop(ctx))
	}
	return &Postgres{Process: process, url: postgresURL(port, database), dir: c.dir}, nil
}

// Kill ends PostgreSQL by SIGKILL, as a crash would. It returns when the
// processes of its sessions are gone too, because PostgreSQL refuses to start
// again before that. It waits for up to five seconds.
func (p *Postgres) Kill() error {
	if err := p.Process.Kill(); err != nil {
		return err
	}
	return awaitGone(processesIn(p.dir))
}

// answers tells whether it is this PostgreSQL that answers at the port.
func (c cluster) answers(ctx context.Context, port int) error {
	conn, err := pgx.Connect(ctx, postgresURL(port, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var dir string
	if err := conn.QueryRow(ctx, "show data_directory").Scan(&dir); err != nil {
		return err
	}
	if dir != c.dir {
		return fmt.Errorf("port %d belongs to the PostgreSQL in %s", port, dir)
	}
	return nil
}

func createDatabase(ctx context.Context, port int, name string) error {
	if name == "postgres" {
		return nil
	}
	conn, err := pgx.Connect(ctx, postgresURL(port, "postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer conn.Close(ctx)
	var names []string
	if err := conn.QueryRow(ctx, "select array_agg(datname::text) from pg_database").Scan(&names); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	if slices.Contains(names, name) {
		return nil
	}
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

func postgresURL(port int, database string) string {
	address := url.URL{
		Scheme: "postgres", User: url.User("postgres"),
		Host: "127.0.0.1:" + strconv.Itoa(port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return address.String()
}

// A cluster is what PostgreSQL calls its data folder.
type cluster struct {
	dir, log string
	bin      string
	account  *Account
}

// prepare finds the programs for the data, makes the data where there is none,
// and removes the mark of a PostgreSQL that is gone.
func (c *cluster) prepare(ctx context.Context) error {
	version, err := os.ReadFile(filepath.Join(c.dir, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		if c.bin, err = findPostgres(ctx, 0); err != nil {
			return err
		}
		return c.initialise(ctx)
	}
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(version)))
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %s does not name a version: %w", filepath.Join(c.dir, "PG_VERSION"), err)
	}
	if c.bin, err = findPostgres(ctx, major); err != nil {
		return err
	}
	return c.removeStaleMark()
}
