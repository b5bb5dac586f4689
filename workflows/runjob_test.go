package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/workflows"
)

var input = json.RawMessage(`{"definition": "report"}`)

func completed(t *testing.T, env *testsuite.TestWorkflowEnvironment) workflows.JobResult {
	t.Helper()
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow did not end")
	}
	var result workflows.JobResult
	if err := env.GetWorkflowResult(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestRunJobTakesAJobFromClientToEnd(t *testing.T) {
	for kind, calls := range map[leasestore.Kind][]string{
		leasestore.Container: {"enqueue", "dispatch", "claim", "start", "supervise", "report"},
		leasestore.Heartbeat: {"enqueue", "dispatch", "claim", "probe", "report"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := newScript(kind)
			env := s.environment(t)
			env.ExecuteWorkflow(workflows.RunJob, input)
			if result := completed(t, env); result.Status != leasestore.Completed {
				t.Errorf("result: %+v", result)
			}
			s.expect(t, calls...)
		})
	}
}

func TestT1_ARefusedClaimIsTriedAgainLaterAndAtOnceAfterAWakeUp(t *testing.T) {
	s := newScript(leasestore.Container)
	wait := activities.Refusal{Reason: leasestore.LimitReached, Blocker: "job 1", Retry: activities.Duration(40 * time.Second)}
	s.claims = []activities.Refusal{wait, wait}
	env := s.environment(t)
	started := env.Now()
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(activities.WakeSignal, nil) }, 45*time.Second)
	env.ExecuteWorkflow(workflows.RunJob, input)
	completed(t, env)
	s.expect(t, "enqueue", "dispatch", "claim", "claim", "claim", "start", "supervise", "report")
	if took := env.Now().Sub(started); took < 45*time.Second || took > 50*time.Second {
		t.Errorf("took %s of workflow time: the second wait should have ended with the signal at 45 s", took)
	}
}

func TestL15_AReleasedJobIsTriedAgainAfterItsBackoff(t *testing.T) {
	s := newScript(leasestore.Container)
	node := leasestore.Failure{Kind: leasestore.SystemFailure, Reason: "NODE_UNREACHABLE", Message: "no route"}
	s.endings = []leasestore.Failure{node, node, node}
	env := s.environment(t)
	started := env.Now()
	env.ExecuteWorkflow(workflows.RunJob, input)
	err := env.GetWorkflowError()
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != activities.JobFailedError || !failed.NonRetryable() {
		t.Fatalf("the workflow ended with %v", err)
	}
	if want := "job failed (SYSTEM, NODE_UNREACHABLE): no route"; failed.Message() != want {
		t.Errorf("message is %q, want %q", failed.Message(), want)
	}
	var result workflows.JobResult
	if err := failed.Details(&result); err != nil || result.Attempts != 3 {
		t.Errorf("details: %+v, %v", result, err)
	}
	if took := env.Now().Sub(started); took < 90*time.Second {
		t.Errorf("took %s of workflow time, less than the backoffs 30 s + 60 s", took)
	}
}

func TestT3_ASilentProcessIsReplacedInsideTheSameAttempt(t *testing.T) {
	tests := map[string]error{
		"heartbeats stop":  temporal.NewTimeoutError(3, nil), // HEARTBEAT is 4, START_TO_CLOSE 1; any timeout hands over
		"the worker stops": temporal.NewApplicationError("the worker stops", activities.WorkerStoppingError),
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScript(leasestore.Container)
			s.supervise = func(_ context.Context, try int) (activities.Step, error) {
				if try == 1 {
					return activities.Step{}, fault
				}
				return activities.Step{Queue: "other", Ending: &activities.Ending{}}, nil
			}
			env := s.environment(t)
			env.ExecuteWorkflow(workflows.RunJob, input)
			if result := completed(t, env); result.Attempts != 1 {
				t.Errorf("the take-over cost an attempt: %+v", result)
			}
			s.expect(t, "enqueue", "dispatch", "claim", "start", "supervise", "supervise", "report")
		})
	}
}

func TestT9_ALostLeaseWaitsForRecoveryAndGoesOnFromTheDatabase(t *testing.T) {
	s := newScript(leasestore.Container)
	s.supervise = func(_ context.Context, try int) (activities.Step, error) {
		if try == 1 {
			return activities.Step{}, temporal.NewNonRetryableApplicationError("lost", activities.LeaseLostError, nil)
		}
		return activities.Step{Queue: "process", Ending: &activities.Ending{}}, nil
	}
	env := s.environment(t)
	env.RegisterDelayedCallback(func() {
		s.job.Result.Status, s.job.Result.Epoch = leasestore.Pending, 2
		env.SignalWorkflow(activities.RecoveredSignal, activities.Settled{})
	}, 10*time.Second)
	env.ExecuteWorkflow(workflows.RunJob, input)
	if result := completed(t, env); result.Attempts != 2 || result.Epoch != 3 {
		t.Errorf("result: %+v", result)
	}
	s.expect(t, "enqueue", "dispatch", "claim", "start", "supervise", "read", "read",
		"dispatch", "claim", "start", "supervise", "report")
}

func TestT9_AnAdoptedContainerIsSupervisedOnUnderTheNewLease(t *testing.T) {
	s := newScript(leasestore.Container)
	s.job.Result.Status, s.job.Result.Attempts, s.job.Result.Epoch = leasestore.Running, 1, 2
	env := s.environment(t)
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(activities.RecoveredSignal, activities.Settled{Authority: s.authority(), Node: "local"})
	}, time.Second)
	env.ExecuteWorkflow(workflows.RunJob, json.RawMessage(`{"job_id": "`+s.job.Result.JobID+`"}`))
	completed(t, env)
	s.expect(t, "enqueue", "supervise", "report")
}

func TestCancelingWhileWaitingWithdrawsTheJob(t *testing.T) {
	s := newScript(leasestore.Container)
	for range 100 {
		s.claims = append(s.claims, activities.Refusal{Reason: leasestore.NoReadyNode, Retry: activities.Duration(time.Minute)})
	}
	env := s.environment(t)
	env.RegisterDelayedCallback(env.CancelWorkflow, 90*time.Second)
	env.ExecuteWorkflow(workflows.RunJob, input)
	if err := env.GetWorkflowError(); !temporal.IsCanceledError(err) {
		t.Errorf("the workflow ended with %v, not canceled", err)
	}
	s.expect(t, "enqueue", "dispatch", "claim", "claim", "withdraw")
}

func TestCancelingWhileRunningStopsTheContainerThenReports(t *testing.T) {
	s := newScript(leasestore.Container)
	s.supervise = func(ctx context.Context, _ int) (activities.Step, error) {
		<-ctx.Done()
		return activities.Step{}, temporal.NewCanceledError()
	}
	env := s.environment(t)
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == activities.SuperviseContainerName {
			env.CancelWorkflow()
		}
	})
	env.ExecuteWorkflow(workflows.RunJob, input)
	if err := env.GetWorkflowError(); !temporal.IsCanceledError(err) {
		t.Errorf("the workflow ended with %v, not canceled", err)
	}
	s.expect(t, "enqueue", "dispatch", "claim", "start", "supervise", "stop CANCEL", "report")
}

func TestATimedOutContainerIsStoppedThenReported(t *testing.T) {
	s := newScript(leasestore.Container)
	s.supervise = func(context.Context, int) (activities.Step, error) {
		return activities.Step{Queue: "process", TimedOut: true}, nil
	}
	env := s.environment(t)
	env.ExecuteWorkflow(workflows.RunJob, input)
	if err := env.GetWorkflowError(); err == nil {
		t.Error("the workflow completed")
	}
	s.expect(t, "enqueue", "dispatch", "claim", "start", "supervise", "stop TIMEOUT", "report")
}

func TestL27_AStaleJobIsWithdrawn(t *testing.T) {
	s := newScript(leasestore.Container)
	s.claims = []activities.Refusal{{Reason: leasestore.StaleDefinition}}
	env := s.environment(t)
	env.ExecuteWorkflow(workflows.RunJob, input)
	if err := env.GetWorkflowError(); !temporal.IsCanceledError(err) {
		t.Errorf("the workflow ended with %v, not canceled", err)
	}
	if s.job.Result.Failure.Reason != activities.ReasonStale {
		t.Errorf("reason: %+v", s.job.Result.Failure)
	}
}
