package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/worker"
)

func (c *cli) workerCommand() *cobra.Command {
	var logFormat string
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker: it claims jobs, runs them and keeps their leases",
		Long: `Run a worker until it is interrupted. It claims jobs, runs them on the runtime
nodes and keeps their leases. When it stops, other workers carry on; containers
run on meanwhile. A second Ctrl-C leaves at once, which is safe too.

Configuration, from the environment:

` + worker.ConfigHelp(),
		Example: "  DATABASE_URL=postgres://worker@db.example/leasehold TEMPORAL_ADDRESS=temporal.example:7233 leasehold worker",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var handler slog.Handler
			switch logFormat {
			case "text":
				handler = slog.NewTextHandler(c.errOut, nil)
			case "json":
				handler = slog.NewJSONHandler(c.errOut, nil)
			default:
				return &refusedError{Err: fmt.Errorf("--log-format is %q: it must be text or json", logFormat)}
			}
			return c.work(cmd.Context(), slog.New(handler))
		},
	}
	cmd.Flags().StringVar(&logFormat, "log-format", "text", "`FORMAT` of the log: text or json")
	return cmd
}

// gcPercent makes a worker smaller: it waits far more than it computes, and
// often shares a small machine with what it supervises. GOGC overrides it.
const gcPercent = 40

// work checks all it can before the worker starts, so that a mistake is one
// sentence and not a log.
func (c *cli) work(ctx context.Context, log *slog.Logger) error {
	config, err := c.config(ctx)
	if err != nil {
		return err
	}
	_, closeStore, err := c.store(ctx)
	if err != nil {
		return err
	}
	closeStore()
	temporal, _, err := c.temporal(ctx)
	if err != nil {
		return err
	}
	temporal.Close()
	if _, chosen := c.env.Lookup("GOGC"); !chosen {
		debug.SetGCPercent(gcPercent)
	}
	if err := worker.Run(ctx, config, log); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
