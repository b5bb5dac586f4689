package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

func (c *cli) jobsCommand() *cobra.Command {
	return group("jobs", "List, show, explain, cancel and prune jobs",
		"List, show, explain, cancel and prune jobs. A job is named by its ID or by its\nTemporal workflow ID.",
		c.jobsListCommand(), c.jobsShowCommand(), c.jobsExplainCommand(), c.jobsCancelCommand(), c.jobsPruneCommand())
}

func (c *cli) jobsListCommand() *cobra.Command {
	var filter leasestore.JobFilter
	var status string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List jobs, newest first",
		Example: "  leasehold jobs list --status running\n  leasehold jobs list --definition nightly-report --limit 5 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if filter.Status, err = statusNamed(status); err != nil {
				return err
			}
			if filter.Limit < 1 || filter.Limit > 1000 {
				return &refusedError{Err: fmt.Errorf("--limit is %d: it must be between 1 and 1000", filter.Limit)}
			}
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			jobs, err := store.Jobs(cmd.Context(), filter)
			if err != nil {
				return err
			}
			return c.print(shownJobs(jobs), func() [][]string { return c.jobRows(jobs) })
		},
	}
	cmd.Flags().StringVar(&filter.Definition, "definition", "", "only jobs of the definition of this `NAME`")
	cmd.Flags().StringVar(&status, "status", "", "only jobs in this `STATUS`, such as running")
	cmd.Flags().StringVar(&filter.WorkflowID, "workflow", "", "only jobs of this Temporal workflow `ID`")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "at most `N` of them, up to 1000")
	return cmd
}

func statusNamed(name string) (leasestore.Status, error) {
	known := []string{"pending", "queued", "running", "completed", "failed", "canceled"}
	status := leasestore.Status(strings.ToUpper(name))
	switch status {
	case "", leasestore.Pending, leasestore.Queued, leasestore.Running, leasestore.Completed, leasestore.Failed, leasestore.Canceled:
		return status, nil
	}
	if strings.EqualFold(name, "cancelled") {
		return leasestore.Canceled, nil
	}
	return "", &refusedError{Err: fmt.Errorf("--status is %q: it must be one of %s%s",
		name, strings.Join(known, ", "), didYouMean(name, known))}
}

func (c *cli) jobRows(jobs []leasestore.Job) [][]string {
	rows := [][]string{{"JOB", "WORKFLOW", "DEFINITION", "STATUS", "ATTEMPT", "EPOCH", "NODE", "EXIT", "CREATED", "TOOK"}}
	for _, job := range jobs {
		rows = append(rows, []string{
			job.ID.String(), job.WorkflowID, job.Definition, string(job.Status),
			fmt.Sprintf("%d/%d", job.Attempt, job.MaxAttempts), strconv.FormatInt(job.Epoch, 10),
			or(job.NodeID, "-"), exitText(job.ExitCode), c.ago(job.CreatedAt), c.took(job),
		})
	}
	return rows
}

func exitText(code *int) string {
	if code == nil {
		return "-"
	}
	return strconv.Itoa(*code)
}

// took is the time from a job's first claim to its end, or until now.
func (c *cli) took(job leasestore.Job) string {
	switch {
	case job.StartedAt == nil:
		return "-"
	case job.EndedAt == nil:
		return span(max(0, c.now().Sub(*job.StartedAt)))
	}
	return span(job.EndedAt.Sub(*job.StartedAt))
}

func (c *cli) jobsCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel JOB",
		Short: "Cancel a job: its container is stopped, under its lease",
		Long: `Cancel a job: its workflow is asked to, and stops the container under the job's
lease. It returns at once; leasehold jobs show tells when the job has ended. A job
whose workflow is gone is withdrawn if nobody owns it.`,
		Example: "  leasehold jobs cancel 0b6f7f0e-3f0a-5d0e-8f3e-0d4f5d1c2b3a",
		Args:    oneArg("a job, by its ID or its workflow ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			job, err := findJob(cmd.Context(), store, args[0])
			if err != nil {
				return err
			}
			if job.Status.Ended() {
				return fmt.Errorf("job %s has ended already, as %s", job.ID, job.Status)
			}
			return c.cancelJob(cmd.Context(), store, job)
		},
	}
}

// cancelJob asks the job's workflow. A job whose workflow is gone is withdrawn
// if nobody owns it.
func (c *cli) cancelJob(ctx context.Context, store *leasestore.Store, job leasestore.Job) error {
	temporal, _, err := c.temporal(ctx)
	if err != nil {
		return err
	}
	defer temporal.Close()
	text := "Asked for the cancellation of job " + job.ID.String() + "."
	err = temporal.CancelWorkflow(ctx, job.WorkflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		job, err = store.Withdraw(ctx, job.ID, leasestore.Failure{
			Kind: leasestore.UserFailure, Reason: activities.ReasonCanceled, Message: "cancelled on request; its workflow had ended before",
		})
		text = "Cancelled job " + job.ID.String() + ", which waited and had no workflow any more."
		if err == nil && job.Status == leasestore.Running {
			return fmt.Errorf("job %s runs and its workflow has ended: when its lease runs out, recovery settles it", job.ID)
		}
	}
	if err != nil {
		return fmt.Errorf("cancel job %s: %w", job.ID, err)
	}
	if c.output == "json" {
		return c.printJSON(map[string]string{"job_id": job.ID.String(), "workflow_id": job.WorkflowID, "status": string(job.Status)})
	}
	_, err = fmt.Fprintln(c.out, text)
	return err
}

// findJob finds a job by its ID, or the newest one of a Temporal workflow ID.
func findJob(ctx context.Context, store *leasestore.Store, name string) (leasestore.Job, error) {
	if id, err := uuid.Parse(name); err == nil {
		return store.Job(ctx, id)
	}
	jobs, err := store.Jobs(ctx, leasestore.JobFilter{WorkflowID: name, Limit: 1})
	if err != nil {
		return leasestore.Job{}, err
	}
	if len(jobs) == 0 {
		return leasestore.Job{}, fmt.Errorf("there is no job with the ID or workflow ID %q: see leasehold jobs list", name)
	}
	return jobs[0], nil
}

// orEmpty makes an empty list print as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
