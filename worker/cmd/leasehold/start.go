package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/workflows"
)

// startedJob is what leasehold run --detach prints.
type startedJob struct {
	JobID      string `json:"job_id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

func (c *cli) startAndFollow(ctx context.Context, input activities.JobInput, flags runFlags) error {
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	if input.Kind == "" && input.JobID == "" {
		if _, err := store.Definition(ctx, input.Definition); err != nil {
			return &refusedError{Err: err}
		}
	}
	temporal, config, err := c.temporal(ctx)
	if err != nil {
		return err
	}
	defer temporal.Close()
	run, err := temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       or(flags.name, workflowID(input)),
		TaskQueue:                config.TaskQueue,
		StaticSummary:            summary(input),
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,

		WorkflowExecutionErrorWhenAlreadyStarted: true,
	}, workflows.RunJobName, input)
	if _, taken := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); taken {
		return &refusedError{Err: fmt.Errorf("a workflow %q is running already: follow it with leasehold jobs show %s, or choose another --name",
			flags.name, flags.name)}
	}
	if err != nil {
		return fmt.Errorf("start the job: %w", err)
	}
	started := startedJob{
		JobID:      activities.JobIDOf(run.GetID(), run.GetRunID()).String(),
		WorkflowID: run.GetID(), RunID: run.GetRunID(),
	}
	if flags.detach {
		return c.printStarted(started)
	}
	fmt.Fprintf(c.errOut, "Started job %s (workflow %s).\n", started.JobID, started.WorkflowID)
	f := &follower{c: c, store: store, temporal: temporal, run: run, queue: config.TaskQueue}
	f.jobID = uuid.MustParse(started.JobID)
	return f.follow(ctx)
}

func (c *cli) printStarted(started startedJob) error {
	if c.output == "json" {
		return c.printJSON(started)
	}
	_, err := fmt.Fprintln(c.out, started.JobID)
	return err
}

// workflowID makes up a name that a person recognises in a list.
func workflowID(input activities.JobInput) string {
	name := input.Definition
	switch {
	case name != "":
	case input.Container != nil:
		name, _, _ = strings.Cut(path.Base(input.Container.Image), ":")
		name, _, _ = strings.Cut(name, "@")
	default:
		name = "heartbeat"
	}
	return name + "-" + uuid.NewString()[:8]
}

func summary(input activities.JobInput) string {
	text := "run " + input.Definition
	switch {
	case input.Container != nil && input.Container.Command != nil:
		text = input.Container.Image + " " + strings.Join(*input.Container.Command, " ")
	case input.Container != nil:
		text = input.Container.Image
	case input.Heartbeat != nil:
		text = "GET " + input.Heartbeat.Endpoint
	}
	return brief(text)
}
