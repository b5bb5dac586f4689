package worker

import (
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/leasehold/leasehold/tests/testenv"
	"github.com/leasehold/leasehold/workflows"
)

func describe(t *testing.T, c client.Client, id string) *client.ScheduleDescription {
	t.Helper()
	found, err := c.ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestT8_SchedulesAreMadeOnceByAnyNumberOfWorkers(t *testing.T) {
	t.Parallel()
	ns := testenv.Temporal(t)
	config := settings(t, testDatabase, ns)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			if err := EnsureSchedules(t.Context(), ns.Client, config); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	for id, want := range map[string]struct {
		workflow string
		every    time.Duration
	}{
		RecoveryScheduleID: {workflows.RecoverExpiredLeasesName, 2 * time.Second},
		ProbeScheduleID:    {workflows.ProbeRuntimeNodesName, 10 * time.Second},
	} {
		found := describe(t, ns.Client, id)
		action := found.Schedule.Action.(*client.ScheduleWorkflowAction)
		if action.Workflow != want.workflow || action.TaskQueue != "leasehold" || action.WorkflowExecutionTimeout == 0 ||
			found.Schedule.Spec.Intervals[0].Every != want.every {
			t.Errorf("%s: %+v %+v", id, action, found.Schedule.Spec)
		}
		if policy := found.Schedule.Policy; policy.Overlap.String() != "Skip" || policy.CatchupWindow != time.Minute {
			t.Errorf("%s: policy %+v", id, policy)
		}
	}
}

func TestT8_ASchedulesChangesByHandStayAndTheConfigurationsAreMade(t *testing.T) {
	t.Parallel()
	ns := testenv.Temporal(t)
	config := settings(t, testDatabase, ns)
	ensure := func() {
		t.Helper()
		if err := EnsureSchedules(t.Context(), ns.Client, config); err != nil {
			t.Fatal(err)
		}
	}
	ensure()
	handle := ns.Client.ScheduleClient().GetHandle(t.Context(), RecoveryScheduleID)
	if err := handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "maintenance"}); err != nil {
		t.Fatal(err)
	}
	if err := handle.Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		schedule := in.Description.Schedule
		spec := every(time.Hour)
		schedule.Spec = &spec
		return &client.ScheduleUpdate{Schedule: &schedule}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	ensure() // a worker starts again
	if found := describe(t, ns.Client, RecoveryScheduleID); found.Schedule.Spec.Intervals[0].Every != time.Hour {
		t.Error("a change by hand was undone")
	}
	config.RecoveryInterval = 7 * time.Second
	ensure()
	found := describe(t, ns.Client, RecoveryScheduleID)
	if found.Schedule.Spec.Intervals[0].Every != 7*time.Second {
		t.Errorf("the schedule does not follow the configuration: %+v", found.Schedule.Spec)
	}
	if !found.Schedule.State.Paused || found.Schedule.State.Note != "maintenance" {
		t.Errorf("the schedule is no longer paused: %+v", found.Schedule.State)
	}
}

func TestT8_AScheduleThatAnOperatorMadeIsLeftAlone(t *testing.T) {
	t.Parallel()
	ns := testenv.Temporal(t)
	_, err := ns.Client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: RecoveryScheduleID, Spec: every(time.Hour),
		Action: &client.ScheduleWorkflowAction{ID: "mine", Workflow: workflows.RecoverExpiredLeasesName, TaskQueue: "leasehold"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := EnsureSchedules(t.Context(), ns.Client, settings(t, testDatabase, ns)); err != nil {
		t.Fatal(err)
	}
	if action := describe(t, ns.Client, RecoveryScheduleID).Schedule.Action.(*client.ScheduleWorkflowAction); action.ID != "mine" {
		t.Errorf("it was changed: %+v", action)
	}
}

func TestRecoveryIsTriggeredWhilePausedAndItsStatusSaysWhatItDid(t *testing.T) {
	t.Parallel()
	ns, url := testenv.Temporal(t), testenv.Database(t)
	if err := TriggerRecovery(t.Context(), ns.Client); err == nil ||
		err.Error() != "there is no schedule leasehold-recovery: make it with leasehold recovery ensure" {
		t.Errorf("without a schedule: %v", err)
	}
	config := settings(t, url, ns, "EXECUTION_WORKER_RECOVERY_INTERVAL=1h")
	c := team(t, ns, newPlugin(t, config))
	w := sdkworker.New(c, "leasehold", sdkworker.Options{})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	handle := c.ScheduleClient().GetHandle(t.Context(), RecoveryScheduleID)
	if err := handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "maintenance"}); err != nil {
		t.Fatal(err)
	}
	// The server (1.29) loses a pause that is followed by a trigger at once.
	until(t, "the schedule is paused", func() bool { return describe(t, c, RecoveryScheduleID).Schedule.State.Paused })
	if err := TriggerRecovery(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var status Schedule
	until(t, "the run has ended", func() bool {
		var err error
		if status, err = RecoveryStatus(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return len(status.Recent) > 0 && status.Recent[0].Result != nil
	})
	if !status.Paused || status.Note != "maintenance" || status.Runs != 1 || status.Interval != "1h0m0s" || status.Recent[0].Error != "" {
		t.Errorf("status: %+v", status)
	}
}

func TestSearchAttributesAreMadeOnceAndCanBeUsed(t *testing.T) {
	t.Parallel()
	ns := testenv.Temporal(t)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			if err := EnsureSearchAttributes(t.Context(), ns.Client, ns.Name); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	if err := usable(t.Context(), ns.Client); err != nil {
		t.Error(err)
	}
}
