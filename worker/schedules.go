package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/leasehold/leasehold/workflows"
)

// The schedules. Their names are promised to operators.
const (
	RecoveryScheduleID = "leasehold-recovery"
	ProbeScheduleID    = "leasehold-probe"
)

const (
	// catchUp is how long after an outage of Temporal a missed run is still
	// made up for. The default of Temporal is a year.
	catchUp = time.Minute
	// recoveryBatches is how many batches one run takes at most.
	recoveryBatches = 10
	// A run that hangs blocks all later ones, so it has an end.
	recoveryTimeout = 5 * time.Minute
	probeTimeout    = 2 * time.Minute
)

// madeFrom is the memo of a schedule's runs that says from which configuration
// Leasehold made the schedule.
const madeFrom = "leasehold"

// EnsureSchedules makes the schedules that recover expired leases and probe
// the runtime nodes. One that Leasehold made from another configuration is
// brought up to this one, and stays paused if it is; what an operator has
// changed by hand, or made, is left alone. It may run in any number of workers
// at once.
func EnsureSchedules(ctx context.Context, c client.Client, config Config) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	recovery := client.ScheduleOptions{
		ID: RecoveryScheduleID, Spec: every(config.RecoveryInterval),
		Action: &client.ScheduleWorkflowAction{
			ID: RecoveryScheduleID + "-run", Workflow: workflows.RecoverExpiredLeasesName, TaskQueue: config.TaskQueue,
			Args:                     []any{workflows.RecoverInput{BatchSize: config.RecoveryBatch, Batches: recoveryBatches}},
			WorkflowExecutionTimeout: recoveryTimeout, StaticSummary: "recover expired leases",
		},
		Note: "Takes over jobs whose worker has stopped renewing their lease. While it is paused, such jobs stand still.",
	}
	probe := client.ScheduleOptions{
		ID: ProbeScheduleID, Spec: every(config.ProbeInterval),
		Action: &client.ScheduleWorkflowAction{
			ID: ProbeScheduleID + "-run", Workflow: workflows.ProbeRuntimeNodesName, TaskQueue: config.TaskQueue,
			WorkflowExecutionTimeout: probeTimeout, StaticSummary: "probe the runtime nodes",
		},
		Note: fmt.Sprintf("Finds out which runtime nodes answer. While it is paused, nodes get no new jobs after %s.", config.NodeTTL),
	}
	for _, options := range []client.ScheduleOptions{recovery, probe} {
		if err := ensureSchedule(ctx, c, options); err != nil {
			return fmt.Errorf("make the schedule %s: %w", options.ID, err)
		}
	}
	return nil
}

func every(interval time.Duration) client.ScheduleSpec {
	return client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: interval}}}
}

func ensureSchedule(ctx context.Context, c client.Client, options client.ScheduleOptions) error {
	action := options.Action.(*client.ScheduleWorkflowAction)
	mark := fmt.Sprintf("%s %s %v %s", options.Spec.Intervals[0].Every, action.TaskQueue, action.Args, action.WorkflowExecutionTimeout)
	action.Memo = map[string]any{madeFrom: mark}
	options.Overlap, options.CatchupWindow = enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, catchUp
	_, err := c.ScheduleClient().Create(ctx, options)
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return c.ScheduleClient().GetHandle(ctx, options.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := in.Description.Schedule
			if found := markOf(schedule.Action); found == "" || found == mark {
				return nil, temporal.ErrSkipScheduleUpdate
			}
			schedule.Spec, schedule.Action = &options.Spec, action
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
}

// markOf is from which configuration a schedule was made; empty if Leasehold
// did not make it, or if the client's own codec keeps it from being read.
func markOf(action client.ScheduleAction) string {
	run, ok := action.(*client.ScheduleWorkflowAction)
	if !ok {
		return ""
	}
	payload, ok := run.Memo[madeFrom].(*commonpb.Payload)
	var mark string
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &mark) != nil {
		return ""
	}
	return mark
}

// TriggerRecovery starts a run of the recovery schedule now, paused or not. A
// run that is under way already is not doubled.
func TriggerRecovery(ctx context.Context, c client.Client) error {
	err := c.ScheduleClient().GetHandle(ctx, RecoveryScheduleID).Trigger(ctx, client.ScheduleTriggerOptions{
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	})
	return scheduleError(err)
}

// Schedule is the state of a schedule, for people and scripts.
type Schedule struct {
	ID       string    `json:"id"`
	Paused   bool      `json:"paused"`
	Note     string    `json:"note,omitempty"`
	Interval string    `json:"interval,omitempty"`
	Next     time.Time `json:"next,omitzero"`
	Running  []string  `json:"running,omitempty"` // workflow IDs
	// Runs counts all that were started, Skipped those that were not because
	// the one before still ran, Missed those of an outage of Temporal.
	Runs    int           `json:"runs"`
	Skipped int           `json:"skipped"`
	Missed  int           `json:"missed"`
	Recent  []ScheduleRun `json:"recent,omitempty"` // newest first
}

// ScheduleRun is a run of a schedule.
type ScheduleRun struct {
	At         time.Time `json:"at"`
	WorkflowID string    `json:"workflow_id"`
	RunID      string    `json:"run_id"`
	// Result is what the run did; nil while it runs, or if it is not kept any longer.
	Result *workflows.RecoverResult `json:"result,omitempty"`
	Error  string                   `json:"error,omitempty"`
}

func scheduleError(err error) error {
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return fmt.Errorf("there is no schedule %s: make it with leasehold recovery ensure", RecoveryScheduleID)
	}
	return err
}

// denied says that this account may not, or the server cannot.
func denied(err error) bool {
	_, permission := errors.AsType[*serviceerror.PermissionDenied](err)
	_, unimplemented := errors.AsType[*serviceerror.Unimplemented](err)
	return permission || unimplemented
}
