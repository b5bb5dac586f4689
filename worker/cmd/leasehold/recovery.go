package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/worker"
)

func (c *cli) recoveryCommand() *cobra.Command {
	return group("recovery", "Make, trigger and show the schedules that recover expired leases",
		`Make, trigger and show the Temporal Schedules that take over expired leases
(leasehold-recovery) and probe the runtime nodes. A worker makes them when it
starts; in the Web UI they can be paused, triggered and changed.`,
		c.recoverySubcommand("ensure", "Make the schedules that are missing; what was changed by hand stays", c.ensureSchedules),
		c.recoverySubcommand("trigger", "Recover expired leases now, without waiting for the schedule", c.triggerRecovery),
		c.recoverySubcommand("status", "Show when recovery ran, when it runs next, and whether it is paused", c.recoveryStatus))
}

func (c *cli) recoverySubcommand(use, short string,
	do func(context.Context, client.Client, worker.Config) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  leasehold recovery " + use, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			temporal, config, err := c.temporal(cmd.Context())
			if err != nil {
				return err
			}
			defer temporal.Close()
			return do(cmd.Context(), temporal, config)
		},
	}
}

func (c *cli) ensureSchedules(ctx context.Context, temporal client.Client, config worker.Config) error {
	if err := worker.EnsureSchedules(ctx, temporal, config); err != nil {
		return err
	}
	if c.output == "json" {
		return c.printJSON(map[string]bool{"ensured": true})
	}
	_, err := fmt.Fprintln(c.out, "The schedules are there.")
	return err
}

func (c *cli) triggerRecovery(ctx context.Context, temporal client.Client, _ worker.Config) error {
	if err := worker.TriggerRecovery(ctx, temporal); err != nil {
		return err
	}
	if c.output == "json" {
		return c.printJSON(map[string]bool{"triggered": true})
	}
	_, err := fmt.Fprintln(c.out, "Recovery is triggered: leasehold recovery status shows what it did.")
	return err
}

func (c *cli) recoveryStatus(ctx context.Context, temporal client.Client, _ worker.Config) error {
	status, err := worker.RecoveryStatus(ctx, temporal)
	if err != nil {
		return err
	}
	if c.output == "json" {
		return c.printJSON(status)
	}
	state := "runs every " + or(status.Interval, "now and then") + ", next " + c.ago(status.Next)
	if status.Paused {
		state = "is PAUSED: jobs of dead workers stand still (" + or(status.Note, "no reason given") + ")"
	}
	fmt.Fprintf(c.out, "Schedule %s %s.\nRuns: %d started, %d skipped because one still ran, %d missed while Temporal was down.\n\n",
		status.ID, state, status.Runs, status.Skipped, status.Missed)
	rows := [][]string{{"STARTED", "RECOVERED", "RELEASED", "COMPLETED", "FAILED", "CANCELED", "ADOPTED", "NOTE"}}
	for _, run := range status.Recent {
		row := []string{c.ago(run.At), "-", "-", "-", "-", "-", "-", or(run.Error, "runs, or is not kept")}
		if r := run.Result; r != nil {
			for i, n := range []int{r.Recovered, r.Released, r.Completed, r.Failed, r.Canceled, r.Adopted} {
				row[i+1] = strconv.Itoa(n)
			}
			row[len(row)-1] = ""
		}
		rows = append(rows, row)
	}
	return c.printTable(rows)
}
