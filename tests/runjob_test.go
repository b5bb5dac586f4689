package tests

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"go.temporal.io/sdk/temporal"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/workflows"
)

func shell(script string) map[string]any {
	return map[string]any{
		"kind":      "CONTAINER",
		"container": map[string]any{"image": "busybox:1", "command": []string{"sh", "-c", script}, "stop_grace": "1s"},
		"retry":     map[string]any{"backoff": "1s"},
	}
}

func with(input map[string]any, key string, value any) map[string]any {
	input[key] = value
	return input
}

func TestAContainerJobRunsFromClientToEnd(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	f.worker("alice")
	result, err := f.result(f.start("hello", shell("echo hi from $LEASEHOLD_JOB_ID; echo attempt $LEASEHOLD_ATTEMPT epoch $LEASEHOLD_EPOCH")))
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != leasestore.Completed || result.ExitCode == nil || *result.ExitCode != 0 || result.Node != "local" {
		t.Errorf("result: %+v", result)
	}
	want := "hi from " + result.JobID + "\nattempt 1 epoch 1\n"
	if result.Log != want {
		t.Errorf("log is %q, want %q", result.Log, want)
	}
	if left := f.containers(f.job("hello")); len(left) != 0 {
		t.Errorf("containers are left: %v", left)
	}
	if events := f.historyLength("hello"); events > 35 {
		t.Errorf("the history has %d events, more than 35", events)
	}
}

func TestAFailedContainerFailsTheWorkflowWithItsExitCodeAndLastWords(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	f.worker("alice")
	_, err := f.result(f.start("broken", shell("echo all went wrong >&2; exit 3")))
	failed := jobFailure(t, err)
	if failed.Failure == nil || failed.Failure.Kind != leasestore.UserFailure || failed.Failure.Reason != "EXIT_CODE" || *failed.ExitCode != 3 {
		t.Errorf("result: %+v", failed)
	}
	if !strings.Contains(err.Error(), "exited with code 3: all went wrong") {
		t.Errorf("the error does not say what happened: %v", err)
	}
	if failed.Attempts != 1 {
		t.Errorf("a failure of the program was tried %d times", failed.Attempts)
	}
}

func TestAContainerThatRunsTooLongIsStopped(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	f.worker("alice")
	input := shell("sleep 300")
	input["container"].(map[string]any)["timeout"] = "2s"
	_, err := f.result(f.start("slow", input))
	failed := jobFailure(t, err)
	if failed.Failure.Reason != "TIMEOUT" || failed.Failure.Message != "timed out after 2s" {
		t.Errorf("failure: %+v", failed.Failure)
	}
	if left := f.containers(f.job("slow")); len(left) != 0 {
		t.Errorf("containers are left: %v", left)
	}
}

func TestCancelingTheWorkflowStopsTheContainerAndCancelsTheJob(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	f.worker("alice")
	run := f.start("unwanted", shell(`trap "echo cleaned up; exit 0" TERM; while :; do sleep 0.1; done`))
	job := f.running("unwanted")
	if err := f.temporal.Client.CancelWorkflow(t.Context(), run.GetID(), ""); err != nil {
		t.Fatal(err)
	}
	_, err := f.result(run)
	if !temporal.IsCanceledError(err) {
		t.Fatalf("the workflow ended with %v, not canceled", err)
	}
	after := f.job("unwanted")
	if after.Status != leasestore.Canceled || !strings.Contains(after.LogTail, "cleaned up") {
		t.Errorf("job: %s, log %q", after.Status, after.LogTail)
	}
	if state := f.containerState(job.ContainerID); state != "gone" {
		t.Errorf("the container is %s", state)
	}
}

func TestAHeartbeatJob(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X") != "y" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(endpoint.Close)
	f := newFleet(t)
	f.worker("alice")
	good := f.start("healthy", map[string]any{
		"kind": "HEARTBEAT", "heartbeat": map[string]any{"endpoint": endpoint.URL, "headers": map[string]string{"X": "y"}},
	})
	bad := f.start("teapot", map[string]any{"kind": "HEARTBEAT", "heartbeat": map[string]any{"endpoint": endpoint.URL}})
	result, err := f.result(good)
	if err != nil || result.Status != leasestore.Completed || result.Node != "" {
		t.Errorf("result: %+v, %v", result, err)
	}
	if events := f.historyLength("healthy"); events > 35 {
		t.Errorf("the history has %d events, more than 35", events)
	}
	_, err = f.result(bad)
	if failed := jobFailure(t, err); failed.Failure.Reason != activities.ReasonEndpointStatus || failed.Failure.Kind != leasestore.UserFailure {
		t.Errorf("failure: %+v", failed.Failure)
	}
}

func TestAJobWaitsForAReadyNode(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker("alice")
	run := f.start("patient", shell("echo ran"))
	f.until("the job is queued", func() bool { return f.job("patient").Status == leasestore.Queued })
	f.node("late")
	result, err := f.result(run)
	if err != nil || result.Node != "late" {
		t.Errorf("result: %+v, %v", result, err)
	}
}

func TestL27_AJobOfAnOlderGenerationEndsAsCanceled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker("alice")
	run := f.start("old", with(shell("echo one"), "definition", "report"))
	f.until("the job is queued", func() bool { return f.job("old").Status == leasestore.Queued })
	def, err := f.store.Definition(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	def.Spec = []byte(`{"image": "busybox:1", "command": ["echo", "two"]}`)
	if def, err = f.store.Apply(t.Context(), def); err != nil || def.Generation != 2 {
		t.Fatalf("apply: %+v, %v", def, err)
	}
	f.node("local")
	if _, err := f.result(run); !temporal.IsCanceledError(err) {
		t.Errorf("the workflow ended with %v, not canceled", err)
	}
	if job := f.job("old"); job.Failure.Reason != activities.ReasonStale || job.Attempt != 0 {
		t.Errorf("job: %+v", job)
	}
}

func TestBadInputFailsTheWorkflowAndNamesTheField(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker("alice")
	tests := map[string]struct {
		input map[string]any
		want  string
	}{
		"unknown field":     {map[string]any{"kind": "CONTAINER", "contaner": map[string]any{}}, "contaner"},
		"no image":          {map[string]any{"kind": "CONTAINER", "container": map[string]any{}}, "container.image"},
		"unknown kind":      {map[string]any{"kind": "POD"}, "POD"},
		"nothing":           {map[string]any{}, "definition"},
		"wrong type":        {map[string]any{"definition": 7}, "definition"},
		"command as string": {map[string]any{"kind": "CONTAINER", "container": map[string]any{"image": "busybox:1", "command": "echo hi"}}, "command"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := f.result(f.start(strings.ReplaceAll(name, " ", "-"), tt.input))
			var app *temporal.ApplicationError
			if !errors.As(err, &app) || app.Type() != activities.InvalidInputError || !strings.Contains(app.Message(), tt.want) {
				t.Errorf("error is %v, want one that names %q", err, tt.want)
			}
		})
	}
	if jobs, err := f.store.Jobs(t.Context(), leasestore.JobFilter{}); err != nil || len(jobs) != 0 {
		t.Errorf("bad input left jobs: %v, %v", jobs, err)
	}
}

func TestJobsOfADefinitionWithLimitOneDoNotOverlap(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	f.worker("alice")
	for _, id := range []string{"first", "second", "third"} {
		input := with(with(shell("sleep 0.3"), "definition", "alone"), "max_running", 1)
		f.start(id, input)
	}
	for _, id := range []string{"first", "second", "third"} {
		run := f.temporal.Client.GetWorkflow(t.Context(), id, "")
		if _, err := f.result(run); err != nil {
			t.Fatal(err)
		}
	}
	f.noOverlap("alone")
}

// TestAKilledWorkerLosesNoJob kills the only worker with -9; another takes the
// lease over, or recovers the job after its expiry. Either way it runs once
// more at most and ends.
func TestAKilledWorkerLosesNoJob(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	alice := f.worker("alice")
	run := f.start("survivor", shell("sleep 2; echo done"))
	before := f.running("survivor")
	if err := alice.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.until("the lease has run out", func() bool {
		lease, err := f.store.Lease(t.Context(), before.ID)
		return err == nil && lease.Remaining < 0
	})
	f.worker("bob")
	result, err := f.result(run)
	if err != nil || result.Status != leasestore.Completed || result.Epoch < 2 {
		t.Fatalf("result: %+v, %v", result, err)
	}
	events := ""
	for _, entry := range f.ledger(before.ID) {
		events += entry.Event + " "
	}
	if !strings.HasPrefix(events, "CLAIMED RECOVERED ") || !strings.HasSuffix(events, "COMPLETED ") {
		t.Errorf("ledger: %s", events)
	}
}

// TestATakeOverKeepsTheContainer kills the supervising worker while another is
// there: the same container ends under it, in the same epoch and attempt.
func TestT3_ATakeOverKeepsTheContainer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	alice := f.worker("alice")
	run := f.start("handed-over", shell("for i in 1 2 3 4 5 6; do echo line $i; sleep 1; done"))
	before := f.running("handed-over")
	f.worker("bob")
	if err := alice.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	result, err := f.result(run)
	if err != nil {
		t.Fatal(err)
	}
	if result.Attempts != 1 || result.Epoch != 1 || result.Container != before.ContainerID {
		t.Errorf("result: %+v, started in container %s", result, before.ContainerID)
	}
	if want := "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n"; result.Log != want {
		t.Errorf("log is %q, want %q", result.Log, want)
	}
}

// TestL18_AZombiesLateCompletionIsRefused stops a worker with SIGSTOP until its
// job was recovered and ended by another, and lets it go on.
func TestL18_AZombiesLateCompletionIsRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	alice := f.worker("alice")
	run := f.start("zombie", shell("sleep 1; echo done"))
	before := f.running("zombie")
	if err := alice.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	f.until("the lease has run out", func() bool {
		lease, err := f.store.Lease(t.Context(), before.ID)
		return err == nil && lease.Remaining < 0
	})
	bob := f.worker("bob")
	result, err := f.result(run)
	if err != nil || result.Epoch < 2 {
		t.Fatalf("result: %+v, %v", result, err)
	}
	ended := f.job("zombie")
	if err := errors.Join(bob.Process.Kill(), alice.Process.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	// Alice is back when she has run another job.
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(endpoint.Close)
	back := f.start("back", map[string]any{"kind": "HEARTBEAT", "heartbeat": map[string]any{"endpoint": endpoint.URL}})
	if _, err := f.result(back); err != nil {
		t.Fatal(err)
	}
	if again := f.job("zombie"); again.Epoch != ended.Epoch || again.Status != ended.Status || !again.EndedAt.Equal(*ended.EndedAt) {
		t.Errorf("the zombie changed the job: %+v, was %+v", again, ended)
	}
}

func jobFailure(t *testing.T, err error) workflows.JobResult {
	t.Helper()
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.Type() != activities.JobFailedError {
		t.Fatalf("the workflow ended with %v, not with a failed job", err)
	}
	var result workflows.JobResult
	if err := app.Details(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

// noOverlap checks in the ledger that the runs of a definition's jobs are
// disjoint in time.
func (f *fleet) noOverlap(definition string) {
	f.t.Helper()
	var overlaps int
	err := f.pool.QueryRow(f.t.Context(), `
		with run as (
		    select job_id, min(at) filter (where event = 'CLAIMED') as began,
		           max(at) filter (where event in ('COMPLETED', 'FAILED', 'CANCELED', 'RELEASED')) as ended
		      from leasehold.ledger
		     where job_id in (select id from leasehold.job where definition = $1)
		     group by job_id)
		select count(*) from run a join run b on a.job_id < b.job_id and a.began < b.ended and b.began < a.ended`,
		definition).Scan(&overlaps)
	if err != nil {
		f.t.Fatal(err)
	}
	if overlaps > 0 {
		f.t.Errorf("%d pairs of jobs of %s overlapped", overlaps, definition)
	}
}

func (f *fleet) historyLength(workflowID string) int64 {
	f.t.Helper()
	described, err := f.temporal.Client.DescribeWorkflow(f.t.Context(), workflowID, "")
	if err != nil {
		f.t.Fatal(err)
	}
	return described.RawResponse.GetWorkflowExecutionInfo().GetHistoryLength()
}
