package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/worker/dev"
)

// Database returns the URL of a new database with the schema of the store. It
// is a copy of a template, made in some 30 ms, and is dropped when the test
// ends, whoever is still connected.
func Database(t testing.TB) string {
	t.Helper()
	server := sharedPostgres(t)
	template := server.template.get(t, server.migrated)
	return server.create(t, template)
}

// EmptyDatabase returns the URL of a new database without a schema, which is
// dropped when the test ends.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return sharedPostgres(t).create(t, "template0")
}

// Pool returns a pool of up to 16 connections to a new [Database]. It is closed
// when the test ends.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return PoolOf(t, Database(t))
}

// PoolOf returns a pool of up to 16 connections to a database, closed when the
// test ends.
func PoolOf(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 16
	return PoolWith(t, config)
}

// PoolWith returns a pool that is closed when the test ends.
func PoolWith(t testing.TB, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Postgres returns a PostgreSQL of the test's own, to stop, kill and restart,
// with an empty database. Settings are like "fsync=on", for what must be
// measured with a disk; by default nothing is forced to disk.
func Postgres(t testing.TB, settings ...string) *dev.Postgres {
	t.Helper()
	values := maps.Clone(fast)
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok {
			t.Fatalf("setting %q has no =", setting)
		}
		values[name] = value
	}
	dir := newDir(t, "postgres")
	ctx, cancel := starting(t)
	defer cancel()
	server, err := dev.StartPostgres(ctx, dev.PostgresOptions{Dir: dir, Database: "leasehold", Settings: values})
	need(t, err)
	stopAfter(t, server.Stop)
	return server
}

// fast is for tests: what they write need not outlive the machine.
var fast = map[string]string{
	"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
	"max_connections": "400", "shared_buffers": "64MB",
	"autovacuum_naptime": "10s", "log_min_messages": "warning", "log_min_error_statement": "panic",
}

// database is the shared PostgreSQL.
type database struct {
	url      string // of an account that may create databases
	admin    *pgxpool.Pool
	template shared[string]
}

func sharedPostgres(t testing.TB) *database {
	t.Helper()
	return process.postgres.get(t, startPostgres)
}

func startPostgres(ctx context.Context) (*database, error) {
	address := os.Getenv("LEASEHOLD_TEST_DATABASE_URL")
	if address == "" {
		server, err := dev.StartPostgres(ctx, dev.PostgresOptions{Dir: filepath.Join(process.dir, "postgres"), Settings: fast})
		if err != nil {
			return nil, err
		}
		process.atEnd(server.Stop)
		address = server.URL()
	}
	if at, err := url.Parse(address); err != nil || at.Scheme != "postgres" && at.Scheme != "postgresql" {
		return nil, errors.New("LEASEHOLD_TEST_DATABASE_URL does not begin with postgres://")
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 4 // as many databases are made at a time
	admin, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	process.atEnd(func(context.Context) error { admin.Close(); return nil })
	if err := admin.Ping(ctx); err != nil {
		return nil, fmt.Errorf("the PostgreSQL for tests: %w", err)
	}
	return &database{url: address, admin: admin}, nil
}

// migrated makes the template that every Database is copied from.
func (d *database) migrated(ctx context.Context) (string, error) {
	name := "leasehold_template_" + strings.ToLower(rand.Text())
	if err := d.copy(ctx, name, "template0"); err != nil {
		return "", err
	}
	process.atEnd(func(ctx context.Context) error { return d.drop(ctx, name) })
	if err := migrate(ctx, d.urlOf(name)); err != nil {
		return "", fmt.Errorf("prepare the template database: %w", err)
	}
	return name, nil
}

// create returns the URL of a new copy of the template.
func (d *database) create(t testing.TB, template string) string {
	t.Helper()
	name := "leasehold_test_" + strings.ToLower(rand.Text())
	ctx, cancel := starting(t)
	defer cancel()
	if err := d.copy(ctx, name, template); err != nil {
		t.Fatal(err)
	}
	stopAfter(t, func(ctx context.Context) error { return d.drop(ctx, name) })
	return d.urlOf(name)
}

func (d *database) copy(ctx context.Context, name, template string) error {
	_, err := d.admin.Exec(ctx, fmt.Sprintf("create database %s template %s",
		pgx.Identifier{name}.Sanitize(), pgx.Identifier{template}.Sanitize()))
	if err != nil {
		return fmt.Errorf("create a database: %w", err)
	}
	return nil
}

func (d *database) drop(ctx context.Context, name string) error {
	_, err := d.admin.Exec(ctx, fmt.Sprintf("drop database if exists %s with (force)", pgx.Identifier{name}.Sanitize()))
	if err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func (d *database) urlOf(name string) string {
	at, err := url.Parse(d.url)
	if err != nil {
		return "" // startPostgres has parsed it
	}
	at.Path = "/" + name
	return at.String()
}
