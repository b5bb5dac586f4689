package tests

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	activitypb "go.temporal.io/api/activity/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/workflows"
)

// nowhere is a job that waits for a node that the test may register.
func nowhere(id string) map[string]any {
	return with(shell("echo finished"), "node_selector", map[string]string{"only": id})
}

func adopted(input map[string]any) map[string]any { return with(input, "on_expiry", "adopt") }

func waiting(f *fleet, id string) {
	f.t.Helper()
	f.until(id+" waits", func() bool { return f.job(id).Status == leasestore.Queued })
}

// opened registers the node that a job of nowhere waits for.
func opened(f *fleet, id string) {
	f.t.Helper()
	f.bigNode("node-of-"+id, map[string]string{"only": id})
	f.wake(id)
}

// wake spares a waiting job the rest of its wait, if its workflow runs.
func (f *fleet) wake(id string) {
	f.t.Helper()
	_ = f.temporal.Client.SignalWorkflow(f.t.Context(), id, "", activities.WakeSignal, nil)
}

// after is a click at a moment.
func after(moment, click func(*fleet, string)) func(*fleet, string) {
	return func(f *fleet, id string) {
		f.t.Helper()
		moment(f, id)
		click(f, id)
	}
}

func supervised(f *fleet, id string) { f.t.Helper(); f.supervised(id) }

func cancels() map[string]*click {
	return map[string]*click{
		"cancel while it waits": {
			input: nowhere("cancel while it waits"), click: after(waiting, (*fleet).cancel), want: leasestore.Canceled,
		},
		"cancel while it claims": {
			input: nowhere("cancel while it claims"), click: whileClaiming((*fleet).cancel),
			want: leasestore.Canceled, attempts: 1, epoch: 1,
		},
		"cancel while it starts": {
			input: nowhere("cancel while it starts"), click: whileStarting((*fleet).cancel, activities.StopContainerName),
			want: leasestore.Canceled, attempts: 1, epoch: 1,
		},
		"cancel while it runs": {
			input: patient(), click: after(supervised, (*fleet).cancel),
			want: leasestore.Canceled, attempts: 1, epoch: 1, kept: true,
		},
	}
}

func terminations() map[string]*click {
	return map[string]*click{
		"terminate while it waits": {
			input: nowhere("terminate while it waits"), click: after(waiting, (*fleet).terminate), then: opened,
			want: leasestore.Completed, attempts: 1, epoch: 1,
		},
		"terminate while it claims": {
			input: nowhere("terminate while it claims"), click: whileClaiming((*fleet).terminate),
			want: leasestore.Completed, attempts: 2, epoch: 3,
		},
		"terminate while it starts": {
			input: with(stubborn(), "node_selector", map[string]string{"only": "terminate while it starts"}),
			click: whileStarting((*fleet).terminate, ""),
			want:  leasestore.Completed, attempts: 2, epoch: 3,
		},
		"terminate while it runs": {
			input: stubborn(), click: after(supervised, (*fleet).terminate),
			want: leasestore.Completed, attempts: 2, epoch: 3,
		},
		"terminate while it runs, and adopt": {
			input: adopted(patient()), click: after(supervised, (*fleet).terminate), then: recovered,
			want: leasestore.Completed, attempts: 1, epoch: 2, kept: true,
		},
		"delete the workflow while it waits": {
			input: nowhere("delete the workflow while it waits"), click: after(waiting, (*fleet).delete), then: opened,
			want: leasestore.Completed, attempts: 1, epoch: 1,
		},
		"delete the workflow while it runs": {
			input: stubborn(), click: after(supervised, (*fleet).delete),
			want: leasestore.Completed, attempts: 2, epoch: 3,
		},
	}
}

// recovered waits until recovery has adopted the container, and ends it.
func recovered(f *fleet, id string) {
	f.t.Helper()
	f.until("a new RunJob supervises", func() bool { return f.job(id).Epoch == 2 })
	f.at(id, activities.SuperviseContainerName)
	f.finish(f.job(id))
}

func resets() map[string]*click {
	resetTo := func(fits func(*fleet, string) int64) func(*fleet, string) {
		return func(f *fleet, id string) { f.t.Helper(); f.reset(id, fits(f, id)) }
	}
	first := func(f *fleet, id string) int64 { f.t.Helper(); return f.afterEvent(id, anyEvent) }
	claimed := func(f *fleet, id string) int64 { f.t.Helper(); return f.afterEvent(id, activityCompleted) }
	supervising := func(f *fleet, id string) int64 { f.t.Helper(); return f.last(id) }
	return map[string]*click{
		"reset to before the claim": {
			input: stubborn(), click: after(supervised, resetTo(first)), want: leasestore.Completed, attempts: 2, epoch: 3,
		},
		"reset to after the claim": {
			input: patient(), click: after(supervised, resetTo(claimed)), then: takenOver,
			want: leasestore.Completed, attempts: 1, epoch: 1, kept: true,
		},
		"reset to where it supervises": {
			input: patient(), click: after(supervised, resetTo(supervising)), then: takenOver,
			want: leasestore.Completed, attempts: 1, epoch: 1, kept: true,
		},
		"reset after a signal, which is applied again": {
			input: patient(), click: after(signalled, resetTo(claimed)), then: takenOver,
			want: leasestore.Completed, attempts: 1, epoch: 1, kept: true,
		},
		"reset to after its report": {
			input: shell("echo finished"), click: after(reported, resetTo(supervising)),
			want: leasestore.Completed, attempts: 1, epoch: 1, kept: true,
		},
		"reset to the start after its end": {
			input: shell("echo finished"), click: after(reported, resetTo(first)), then: closed,
			want: leasestore.Completed, attempts: 1, epoch: 1, kept: true,
		},
	}
}

// last is the last completed workflow task.
func (f *fleet) last(id string) int64 {
	f.t.Helper()
	var last int64
	for _, event := range f.history(id) {
		if event.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = event.EventId
		}
	}
	return last
}

// takenOver waits until a later turn supervises the container, and ends it.
func takenOver(f *fleet, id string) {
	f.t.Helper()
	f.at(id, activities.SuperviseContainerName)
	f.finish(f.job(id))
}

// signalled supervises a job whose RunJob was sent a wake-up and the word of a
// recovery that never was.
func signalled(f *fleet, id string) {
	f.t.Helper()
	job := f.supervised(id)
	ctx := f.t.Context()
	f.must(f.temporal.Client.SignalWorkflow(ctx, id, "", activities.WakeSignal, nil))
	stale := leasestore.Authority{JobID: job.ID, Token: leasestore.NewToken(), Generation: 1, Epoch: 7}
	f.must(f.temporal.Client.SignalWorkflow(ctx, id, "", activities.RecoveredSignal, activities.Settled{Authority: &stale}))
}

func reported(f *fleet, id string) {
	f.t.Helper()
	f.until(id+" has ended", func() bool { return f.job(id).Status.Ended() })
	closed(f, id)
}

// closed waits until the workflow has ended.
func closed(f *fleet, id string) {
	f.t.Helper()
	f.must(f.temporal.Client.GetWorkflow(f.t.Context(), id, "").Get(f.t.Context(), nil))
}

func activityButtons() map[string]*click {
	supervise := activities.SuperviseContainerName
	kept := func(do, then func(*fleet, string)) *click {
		return &click{input: patient(), click: after(supervised, do), then: then, want: leasestore.Completed, attempts: 1, epoch: 1, kept: true}
	}
	return map[string]*click{
		"pause SuperviseContainer": kept(func(f *fleet, id string) { f.t.Helper(); f.pauseActivity(id, supervise) }, handedOver),
		"pause SuperviseContainer and unpause it": kept(func(f *fleet, id string) {
			f.t.Helper()
			f.pauseActivity(id, supervise)
			f.unpauseActivity(id, supervise)
		}, takenOver),
		"reset SuperviseContainer":                 kept(func(f *fleet, id string) { f.t.Helper(); f.resetActivity(id, supervise) }, handedOver),
		"update the options of SuperviseContainer": kept(func(f *fleet, id string) { f.t.Helper(); f.updateOptions(id, supervise) }, takenOver),
		"pause StartContainer": {
			input: nowhere("pause StartContainer"),
			click: whileStarting(func(f *fleet, id string) { f.t.Helper(); f.pauseActivity(id, activities.StartContainerName) }, ""),
			want:  leasestore.Completed, attempts: 1, epoch: 1,
		},
		"reset StartContainer": {
			input: nowhere("reset StartContainer"),
			click: whileStarting(func(f *fleet, id string) { f.t.Helper(); f.resetActivity(id, activities.StartContainerName) }, ""),
			want:  leasestore.Completed, attempts: 1, epoch: 1,
		},
		"pause ClaimJob and unpause it": {
			input: nowhere("pause ClaimJob and unpause it"),
			click: whileClaiming(func(f *fleet, id string) {
				f.t.Helper()
				f.pauseActivity(id, activities.ClaimJobName)
				f.unpauseActivity(id, activities.ClaimJobName)
			}),
			want: leasestore.Completed, attempts: 1, epoch: 1,
		},
	}
}

// handedOver waits until another activity supervises the container, in a later
// turn, and ends it.
func handedOver(f *fleet, id string) {
	f.t.Helper()
	f.until(id+" is taken over", func() bool {
		n := 0
		for _, event := range f.history(id) {
			if scheduled(activities.SuperviseContainerName)(event) {
				n++
			}
		}
		return n > 1
	})
	takenOver(f, id)
}

func (f *fleet) updateOptions(id, name string) {
	f.t.Helper()
	_, err := f.service().UpdateActivityOptions(f.t.Context(), &workflowservice.UpdateActivityOptionsRequest{
		Namespace: f.temporal.Name, Execution: f.execution(id), Identity: identity,
		Activity:        &workflowservice.UpdateActivityOptionsRequest_Type{Type: name},
		ActivityOptions: &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(3 * time.Second)},
		UpdateMask:      &fieldmaskpb.FieldMask{Paths: []string{"heartbeat_timeout"}},
	})
	f.must(err)
}

func starts() map[string]*click {
	again := func(f *fleet, id string, policy enumspb.WorkflowIdConflictPolicy) error {
		_, err := f.temporal.Client.ExecuteWorkflow(f.t.Context(), client.StartWorkflowOptions{
			ID: id, TaskQueue: taskQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			WorkflowIDConflictPolicy: policy, WorkflowExecutionErrorWhenAlreadyStarted: true,
		}, workflows.RunJobName, with(shell("echo the second"), "definition", "again after "+id))
		return err
	}
	return map[string]*click{
		"start with an ID that runs": {
			input: patient(),
			click: after(supervised, func(f *fleet, id string) {
				f.t.Helper()
				if err := again(f, id, enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL); err == nil {
					f.t.Error("a second run was started")
				}
			}),
			then: takenOver, want: leasestore.Completed, attempts: 1, epoch: 1, kept: true,
		},
		"start with an ID that has ended": {
			input: shell("echo finished"),
			click: after(reported, func(f *fleet, id string) {
				f.t.Helper()
				f.must(again(f, id, enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL))
			}),
			then: func(f *fleet, id string) { f.t.Helper(); closed(f, id); f.bothEnded(id) },
			want: leasestore.Completed, attempts: 1, epoch: 1,
		},
		"start with an ID that was terminated while it ran": {
			input: stubborn(),
			click: after(supervised, func(f *fleet, id string) {
				f.t.Helper()
				f.must(again(f, id, enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING))
			}),
			then: func(f *fleet, id string) { f.t.Helper(); f.bothEnded(id) },
			want: leasestore.Completed, attempts: 1, epoch: 1,
		},
		"start with an ID that was terminated while it waited": {
			input: nowhere("start with an ID that was terminated while it waited"),
			click: after(waiting, func(f *fleet, id string) {
				f.t.Helper()
				f.must(again(f, id, enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING))
				opened(f, id)
			}),
			then: func(f *fleet, id string) { f.t.Helper(); f.bothEnded(id) },
			want: leasestore.Completed, attempts: 1, epoch: 1,
		},
	}
}

// bothEnded waits until two jobs of one workflow ID have ended, each by its own
// program.
func (f *fleet) bothEnded(id string) {
	f.t.Helper()
	var jobs []leasestore.Job
	f.until("both jobs have ended", func() bool {
		var err error
		jobs, err = f.store.Jobs(f.t.Context(), leasestore.JobFilter{WorkflowID: id})
		return err == nil && len(jobs) == 2 && jobs[0].Status.Ended() && jobs[1].Status.Ended()
	})
	for _, job := range jobs {
		want := map[bool]string{true: "the second\n", false: "finished\n"}[job.ID == jobs[0].ID]
		if job.Status != leasestore.Completed || job.LogTail != want {
			f.t.Errorf("job %s: %s %s, log %q, want %q", job.ID, job.Status, job.Failure.Message, job.LogTail, want)
		}
	}
}

// events are the ledger of a job in words.
func (f *fleet) events(job uuid.UUID) string {
	f.t.Helper()
	text := ""
	for _, entry := range f.ledger(job) {
		text += fmt.Sprintf("%s %s epoch %d by %s %s\n", entry.At.Format("05.000"), entry.Event, entry.Epoch, entry.Worker, entry.Outcome)
	}
	return text
}
