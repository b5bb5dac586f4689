package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore"
)

// shownJob is what jobs show prints.
type shownJob struct {
	Job    jobView            `json:"job"`
	Lease  *shownLease        `json:"lease,omitempty"`
	Ledger []leasestore.Entry `json:"ledger"`
}

// shownLease is a lease without its token, which is nobody's business here.
type shownLease struct {
	leasestore.Holder
	Epoch     int64   `json:"epoch"`
	Turn      int64   `json:"turn"`
	Node      string  `json:"node,omitempty"`
	Container string  `json:"container,omitempty"`
	Remaining float64 `json:"remaining_seconds"`
}

func (c *cli) jobsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show JOB",
		Short: "Show a job, its lease, and who owned it when",
		Long: `Show a job, its lease while it has one, and its ledger: every change of its
ownership and every refused ending, oldest first.`,
		Example: "  leasehold jobs show 0b6f7f0e-3f0a-5d0e-8f3e-0d4f5d1c2b3a",
		Args:    oneArg("a job, by its ID or its workflow ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			var shown shownJob
			job, err := findJob(cmd.Context(), store, args[0])
			if err != nil {
				return err
			}
			shown.Job = viewOf(job)
			lease, err := store.Lease(cmd.Context(), job.ID)
			if err == nil {
				shown.Lease = &shownLease{
					Holder: lease.Holder, Epoch: lease.Epoch, Turn: lease.Turn,
					Node: lease.NodeID, Container: lease.ContainerID, Remaining: lease.Remaining.Seconds(),
				}
			} else if _, none := errors.AsType[*leasestore.NotFoundError](err); !none {
				return err
			}
			if shown.Ledger, err = store.Ledger(cmd.Context(), job.ID); err != nil {
				return err
			}
			shown.Ledger = orEmpty(shown.Ledger)
			if c.output == "json" {
				return c.printJSON(shown)
			}
			return c.showJob(shown, lease)
		},
	}
}

func (c *cli) showJob(shown shownJob, lease leasestore.Lease) error {
	job := shown.Job.Job
	rows := [][]string{
		{"Job", job.ID.String()},
		{"Definition", fmt.Sprintf("%s, generation %d (%s)", job.Definition, job.Generation, job.Kind)},
		{"Runs", runs(job.Spec)},
		{"Workflow", job.WorkflowID},
		{"Status", string(job.Status)},
		{"Attempt", fmt.Sprintf("%d of %d, epoch %d, recovered %d times", job.Attempt, job.MaxAttempts, job.Epoch, job.Recoveries)},
		{"Created", c.ago(job.CreatedAt)},
		{"Started", c.agoPtr(job.StartedAt)},
		{"Ended", c.agoPtr(job.EndedAt)},
		{"Took", c.took(job)},
	}
	optional := [][2]string{
		{"Node", job.NodeID},
		{"Container", shortID(job.ContainerID)},
		{"Intent", string(job.Intent)},
		{"Failure", failureText(job.Failure)},
		{"Warnings", strings.Join(job.Warnings, "; ")},
	}
	if job.ExitCode != nil {
		optional = append(optional, [2]string{"Exit code", strconv.Itoa(*job.ExitCode)})
	}
	if job.Wait > 0 {
		optional = append(optional, [2]string{"Next attempt", "in " + span(job.Wait)})
	}
	if shown.Lease != nil {
		optional = append(optional, [2]string{"Lease", leaseText(lease)})
	}
	for _, row := range optional {
		if row[1] != "" {
			rows = append(rows, row[:])
		}
	}
	if err := c.printTable(rows); err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	if err := c.printTable(c.ledgerRows(shown.Ledger)); err != nil {
		return err
	}
	if job.LogTail != "" {
		fmt.Fprintf(c.out, "\nThe last lines of its log:\n%s\n", strings.TrimRight(job.LogTail, "\n"))
	}
	return nil
}

func leaseText(lease leasestore.Lease) string {
	left := "ends in " + span(lease.Remaining)
	if lease.Remaining <= 0 {
		left = "ran out " + span(-lease.Remaining) + " ago, not yet recovered"
	}
	return fmt.Sprintf("held by %s (process %s) at epoch %d, turn %s; %s",
		lease.Worker, lease.Process.String()[:8], lease.Epoch, turnText(lease.Turn), left)
}

// turnText writes a turn as what it is: when Temporal started the activity
// that acts for the lease. The later one counts.
func turnText(turn int64) string { return time.UnixMicro(turn).Local().Format("15:04:05.000000") }

func failureText(f leasestore.Failure) string {
	if f.Kind == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s, %s)", f.Message, f.Kind, f.Reason)
}

func (c *cli) ledgerRows(ledger []leasestore.Entry) [][]string {
	rows := [][]string{{"WHEN", "EPOCH", "EVENT", "WORKER", "PROCESS", "TURN", "NODE", "CONTAINER", "OUTCOME"}}
	for _, entry := range ledger {
		process, turn := "-", "-"
		if entry.Process != nil {
			process = entry.Process.String()[:8]
		}
		if entry.Turn != 0 {
			turn = turnText(entry.Turn)
		}
		rows = append(rows, []string{
			c.ago(entry.At), strconv.FormatInt(entry.Epoch, 10), entry.Event, or(entry.Worker, "-"), process, turn,
			or(entry.NodeID, "-"), or(shortID(entry.ContainerID), "-"), or(entry.Outcome, "-"),
		})
	}
	return rows
}
