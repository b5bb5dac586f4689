// Command river compares Leasehold with River, the job queue on PostgreSQL, on
// one private PostgreSQL that it starts and stops:
//
//	cd tests/bench/river && go run . [-rounds N] [-jobs N]
//
// It is a module of its own, so that River is no dependency of Leasehold.
//
// Both do the same no-op jobs, on as many connections, interleaved round by
// round: each round, each side puts the same number of jobs in and then owns
// and completes each. River is called through its own driver, by the statements
// that its client sends: one job in a call, and a hundred in a call, which is
// nearer to what its client does. Its client itself is left out: it polls, and
// completes in the background.
//
// They do not do the same for a job:
//
//   - River writes the job's row: inserted, locked (a state and who), completed
//     (a state). A job that is locked belongs to its client until a rescuer
//     finds it an hour later. Whoever completes it needs no proof; a job that
//     is worked on twice is completed twice.
//   - Leasehold writes the job's row four times (stored, offered, owned, ended),
//     a lease with token, epoch and expiry that is made and deleted, and two
//     rows of the ledger; it takes an advisory lock, checks limits, and judges
//     each ending by its token, after locking, by the clock.
//
// So the ratio is what fencing costs, not who is faster at the same thing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/worker/dev"
)

func main() {
	rounds := flag.Int("rounds", 12, "rounds to measure, after one to warm up")
	jobs := flag.Int("jobs", 1000, "jobs of each side in a round")
	connections := flag.Int("connections", 4, "connections of each side")
	flag.Parse()
	if *rounds < 1 || *jobs < 1 || *connections < 1 {
		fmt.Fprintln(os.Stderr, "river: rounds, jobs and connections must be positive")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *rounds, *jobs, *connections)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds, jobs, connections int) (err error) {
	dir, err := os.MkdirTemp("", "leasehold-river-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // PostgreSQL passes through under its own account
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := dev.StartPostgres(ctx, dev.PostgresOptions{Dir: dir + "/postgres", Database: "leasehold"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	if _, err := leasestore.Migrate(ctx, server.URL()); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(server.URL())
	if err != nil {
		return err
	}
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	sides, err := sides(ctx, pool, jobs)
	if err != nil {
		return err
	}
	all, err := measure(ctx, sides, rounds, jobs, connections)
	if err != nil {
		return err
	}
	return show(os.Stdout, sides, all, jobs, connections)
}

// sides prepares the schemas of both. The first is what the others are
// compared with.
func sides(ctx context.Context, pool *pgxpool.Pool, jobs int) ([]side, error) {
	driver, err := openRiver(ctx, pool)
	if err != nil {
		return nil, err
	}
	leasehold, err := openLeasehold(ctx, pool, jobs)
	if err != nil {
		return nil, err
	}
	return []side{inCallsOf(1, driver), leasehold, inCallsOf(100, driver)}, nil
}
