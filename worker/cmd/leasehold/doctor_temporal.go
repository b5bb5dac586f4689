package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/leasehold/leasehold/activities"
)

// checkTemporal checks the server and its namespace: there is no answer
// without one.
func (d *doctor) checkTemporal(ctx context.Context) (string, error) {
	temporal, _, err := d.c.temporal(ctx)
	if err != nil {
		return "", err
	}
	d.temporal = temporal
	info, err := temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return "", err
	}
	address, _ := d.c.environment().Lookup("TEMPORAL_ADDRESS")
	namespace, _ := d.c.environment().Lookup("TEMPORAL_NAMESPACE")
	return fmt.Sprintf("server %s at %s, namespace %s", info.GetServerVersion(),
		or(address, "the default address"), or(namespace, "default")), nil
}

// checkSearchAttributes asks for each as a list in the Web UI would.
func (d *doctor) checkSearchAttributes(ctx context.Context) (string, error) {
	names := []string{
		activities.JobAttributeName, activities.DefinitionAttributeName,
		activities.StatusAttributeName, activities.NodeAttributeName,
	}
	var missing []string
	for _, name := range names {
		_, err := d.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: name + " = 'x'"})
		if _, unknown := errors.AsType[*serviceerror.InvalidArgument](err); unknown {
			missing = append(missing, name)
		} else if err != nil {
			return "", fmt.Errorf("they cannot be asked for: %w", err)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("%s missing, so jobs cannot be found by it: start a worker that may make them, "+
			"or temporal operator search-attribute create --type Keyword --name %s", strings.Join(missing, ", "),
			strings.Join(missing, " --type Keyword --name "))
	}
	return strings.Join(names, ", "), nil
}

// checkSchedule checks that a schedule is there and not paused, and that it
// goes.
func (d *doctor) checkSchedule(id string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		found, err := d.temporal.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
		if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
			return "", fmt.Errorf("there is no schedule %s: leasehold recovery ensure makes it", id)
		}
		if err != nil {
			return "", err
		}
		if found.Schedule.State.Paused {
			return "", fmt.Errorf("%s is paused (%s): temporal schedule toggle --unpause --schedule-id %[1]s, or the Web UI, lets it go on",
				id, or(found.Schedule.State.Note, "no reason given"))
		}
		detail := id
		if spec := found.Schedule.Spec; spec != nil && len(spec.Intervals) > 0 {
			detail += " every " + plain(spec.Intervals[0].Every)
		}
		if recent := found.Info.RecentActions; len(recent) > 0 {
			detail += ", last run " + d.c.ago(recent[len(recent)-1].ActualTime)
		}
		return detail, nil
	}
}

// checkWorkers asks Temporal who takes jobs from the task queue.
func (d *doctor) checkWorkers(ctx context.Context) (string, error) {
	queue, err := d.temporal.DescribeTaskQueue(ctx, d.config.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return "", err
	}
	identities := map[string]bool{}
	for _, poller := range queue.GetPollers() {
		identities[poller.GetIdentity()] = true
	}
	if len(identities) == 0 {
		return "", fmt.Errorf("none has polled task queue %s in the last minutes: start leasehold worker", d.config.TaskQueue)
	}
	return fmt.Sprintf("%d that polled task queue %s in the last minutes", len(identities), d.config.TaskQueue), nil
}
