package tests

import (
	"github.com/docker/docker/api/types/container"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// What an operator clicks, through the API that the Web UI uses.

const identity = "an operator"

func (f *fleet) service() workflowservice.WorkflowServiceClient {
	return f.temporal.Client.WorkflowService()
}

// must fails the test on an error of a click.
func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) cancel(id string) {
	f.t.Helper()
	f.must(f.temporal.Client.CancelWorkflow(f.t.Context(), id, ""))
}

func (f *fleet) terminate(id string) {
	f.t.Helper()
	f.must(f.temporal.Client.TerminateWorkflow(f.t.Context(), id, "", "by the test"))
}

func (f *fleet) delete(id string) {
	f.t.Helper()
	_, err := f.service().DeleteWorkflowExecution(f.t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: f.temporal.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
	f.must(err)
}

// history is a workflow's, in the current or last run.
func (f *fleet) history(id string) []*historypb.HistoryEvent {
	f.t.Helper()
	var events []*historypb.HistoryEvent
	for found := f.temporal.Client.GetWorkflowHistory(f.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); found.HasNext(); {
		event, err := found.Next()
		f.must(err)
		events = append(events, event)
	}
	return events
}

// afterEvent is the first completed workflow task after an event that fits.
func (f *fleet) afterEvent(id string, fits func(*historypb.HistoryEvent) bool) int64 {
	f.t.Helper()
	seen := false
	for _, event := range f.history(id) {
		seen = seen || fits(event)
		if seen && event.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return event.EventId
		}
	}
	f.t.Fatalf("the history of %s has no such event", id)
	return 0
}

func anyEvent(*historypb.HistoryEvent) bool { return true }

func activityCompleted(event *historypb.HistoryEvent) bool {
	return event.EventType == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
}

// scheduled says that an activity of this type was scheduled.
func scheduled(name string) func(*historypb.HistoryEvent) bool {
	return func(event *historypb.HistoryEvent) bool {
		return event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == name
	}
}

// reset resets a workflow to a completed workflow task; its signals are applied
// again.
func (f *fleet) reset(id string, taskCompleted int64) {
	f.t.Helper()
	_, err := f.service().ResetWorkflowExecution(f.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: f.temporal.Name, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id}, Reason: "by the test",
		WorkflowTaskFinishEventId: taskCompleted, RequestId: id + "-reset",
		ResetReapplyType: enumspb.RESET_REAPPLY_TYPE_SIGNAL, //nolint:staticcheck // the Web UI sends it
	})
	f.must(err)
}

// pending is a workflow's pending activity of this type; nil if there is none.
func (f *fleet) pending(id, name string) *workflowpb.PendingActivityInfo {
	f.t.Helper()
	described, err := f.temporal.Client.DescribeWorkflow(f.t.Context(), id, "")
	f.must(err)
	for _, activity := range described.RawResponse.GetPendingActivities() {
		if activity.GetActivityType().GetName() == name {
			return activity
		}
	}
	return nil
}

// at waits until an activity of a workflow runs.
func (f *fleet) at(id, name string) *workflowpb.PendingActivityInfo {
	f.t.Helper()
	var found *workflowpb.PendingActivityInfo
	f.until(id+" is at "+name, func() bool {
		found = f.pending(id, name)
		return found.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED
	})
	return found
}

func (f *fleet) execution(id string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: id}
}

func (f *fleet) pauseActivity(id, name string) {
	f.t.Helper()
	_, err := f.service().PauseActivity(f.t.Context(), &workflowservice.PauseActivityRequest{
		Namespace: f.temporal.Name, Execution: f.execution(id), Identity: identity,
		Activity: &workflowservice.PauseActivityRequest_Type{Type: name},
	})
	f.must(err)
}

func (f *fleet) unpauseActivity(id, name string) {
	f.t.Helper()
	_, err := f.service().UnpauseActivity(f.t.Context(), &workflowservice.UnpauseActivityRequest{
		Namespace: f.temporal.Name, Execution: f.execution(id), Identity: identity,
		Activity: &workflowservice.UnpauseActivityRequest_Type{Type: name},
	})
	f.must(err)
}

func (f *fleet) resetActivity(id, name string) {
	f.t.Helper()
	_, err := f.service().ResetActivity(f.t.Context(), &workflowservice.ResetActivityRequest{
		Namespace: f.temporal.Name, Execution: f.execution(id), Identity: identity,
		Activity: &workflowservice.ResetActivityRequest_Type{Type: name},
	})
	f.must(err)
}

// patient is a container that ends when the test finishes it.
func patient() map[string]any {
	return shell(`echo epoch $LEASEHOLD_EPOCH; trap "echo finished; exit 0" USR1; while :; do sleep 0.1; done`)
}

// stubborn runs for ever in its first attempt and ends at once in the next.
func stubborn() map[string]any {
	return shell(`[ $LEASEHOLD_ATTEMPT -gt 1 ] || sleep 3000; echo finished`)
}

// finish ends a patient container.
func (f *fleet) finish(job leasestore.Job) {
	f.t.Helper()
	f.must(f.daemon().ContainerKill(f.t.Context(), job.ContainerID, "USR1"))
}

// supervised waits until a job's container runs and is supervised.
func (f *fleet) supervised(id string) leasestore.Job {
	f.t.Helper()
	job := f.running(id)
	f.at(id, activities.SuperviseContainerName)
	return job
}

// allContainers are the containers of all jobs of this installation.
func (f *fleet) allContainers() []string {
	f.t.Helper()
	jobs, err := f.store.Jobs(f.t.Context(), leasestore.JobFilter{Limit: 1000})
	f.must(err)
	ours := map[string]bool{}
	for _, job := range jobs {
		ours[job.ID.String()] = true
	}
	list, err := f.daemon().ContainerList(f.t.Context(), container.ListOptions{All: true})
	f.must(err)
	var found []string
	for _, c := range list {
		if ours[c.Labels["leasehold.job_id"]] {
			found = append(found, c.ID)
		}
	}
	return found
}
