package workflows_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/workflows"
)

// script stands in for the store: functions under the activities' names that
// play one job. It keeps no lease; that part is tested on the real one.
type script struct {
	mu    sync.Mutex
	job   activities.JobState
	calls []string
	// claims are answered in order; when they are used up the claim is granted.
	claims []activities.Refusal
	// endings are how the attempts end; when they are used up they complete.
	endings []leasestore.Failure
	// supervise answers SuperviseContainer, if set.
	supervise func(ctx context.Context, try int) (activities.Step, error)
	tries     int
}

func newScript(kind leasestore.Kind) *script {
	second := activities.Duration(time.Second)
	return &script{job: activities.JobState{
		Kind: kind, Generation: 1, MaxAttempts: 3,
		Result: activities.JobResult{JobID: uuid.NewString(), Definition: "report", Status: leasestore.Pending},
		Timing: activities.Timing{Lease: 30 * second, Renew: 10 * second, Heartbeat: 10 * second, StartDelay: 5 * second, Recovery: 15 * second},
	}}
}

func (s *script) environment(t *testing.T) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	env.RegisterWorkflow(workflows.RunJob)
	for name, f := range map[string]any{
		activities.EnqueueJobName:         s.enqueue,
		activities.DispatchJobName:        s.dispatch,
		activities.WithdrawJobName:        s.withdraw,
		activities.ReadJobName:            s.read,
		activities.ClaimJobName:           s.claim,
		activities.StartContainerName:     s.start,
		activities.SuperviseContainerName: s.watch,
		activities.StopContainerName:      s.stop,
		activities.ProbeEndpointName:      s.probe,
		activities.ReportOutcomeName:      s.report,
	} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	return env
}

func (s *script) called(name string) func() {
	s.mu.Lock()
	s.calls = append(s.calls, name)
	return s.mu.Unlock
}

func (s *script) enqueue(context.Context, activities.EnqueueInput) (activities.JobState, error) {
	defer s.called("enqueue")()
	return s.job, nil
}

func (s *script) dispatch(_ context.Context, in activities.DispatchInput) (activities.JobState, error) {
	defer s.called("dispatch")()
	s.job.Result.Status, s.job.DispatchAttempt, s.job.Wait = leasestore.Queued, in.After+1, 0
	return s.job, nil
}

func (s *script) withdraw(_ context.Context, in activities.WithdrawInput) (activities.JobState, error) {
	defer s.called("withdraw")()
	s.job.Result.Status, s.job.Result.Failure = leasestore.Canceled, &in.Why
	return s.job, nil
}

func (s *script) read(context.Context, uuid.UUID) (activities.JobState, error) {
	defer s.called("read")()
	return s.job, nil
}

func (s *script) claim(context.Context, activities.ClaimInput) (activities.Claim, error) {
	defer s.called("claim")()
	if len(s.claims) > 0 {
		refused := s.claims[0]
		s.claims = s.claims[1:]
		return activities.Claim{Refused: &refused}, nil
	}
	s.job.Result.Status = leasestore.Running
	s.job.Result.Attempts++
	s.job.Result.Epoch++
	return activities.Claim{Authority: s.authority(), Node: "local", Queue: "process"}, nil
}

func (s *script) authority() *leasestore.Authority {
	return &leasestore.Authority{JobID: uuid.MustParse(s.job.Result.JobID), Token: leasestore.NewToken(), Epoch: s.job.Result.Epoch}
}

func (s *script) start(context.Context, activities.Work) (activities.Step, error) {
	defer s.called("start")()
	return activities.Step{Queue: "process"}, nil
}

func (s *script) watch(ctx context.Context, _ activities.Work) (activities.Step, error) {
	done := s.called("supervise")
	s.tries++
	try := s.tries
	done()
	if s.supervise != nil {
		return s.supervise(ctx, try)
	}
	return activities.Step{Queue: "process", Ending: &activities.Ending{}}, nil
}

func (s *script) stop(_ context.Context, in activities.Stop) (activities.Step, error) {
	defer s.called("stop " + string(in.Intent))()
	why := activities.CanceledOnRequest()
	if in.Intent == leasestore.TimeoutIntent {
		why = leasestore.Failure{Kind: leasestore.UserFailure, Reason: activities.ReasonTimeout, Message: "timed out"}
	}
	return activities.Step{Queue: "process", Ending: &activities.Ending{Failure: &why}}, nil
}

func (s *script) probe(context.Context, activities.Work) (activities.Step, error) {
	defer s.called("probe")()
	return activities.Step{Queue: "process", Ending: &activities.Ending{}}, nil
}

func (s *script) report(_ context.Context, in activities.Report) (activities.JobState, error) {
	defer s.called("report")()
	ending := in.Ending
	if len(s.endings) > 0 {
		ending.Failure, s.endings = &s.endings[0], s.endings[1:]
	}
	switch {
	case ending.Failure == nil:
		s.job.Result.Status = leasestore.Completed
	case ending.Failure.Reason == activities.ReasonCanceled:
		s.job.Result.Status = leasestore.Canceled
	case ending.Failure.Kind == leasestore.SystemFailure && s.job.Result.Attempts < s.job.MaxAttempts:
		s.job.Result.Status, s.job.Wait = leasestore.Pending, activities.Duration(30*time.Second<<(s.job.Result.Attempts-1))
	default:
		s.job.Result.Status = leasestore.Failed
	}
	s.job.Result.Failure = ending.Failure
	return s.job, nil
}

func (s *script) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := fmt.Sprint(s.calls); got != fmt.Sprint(want) {
		t.Errorf("calls:\n got %s\nwant %s", got, fmt.Sprint(want))
	}
}
