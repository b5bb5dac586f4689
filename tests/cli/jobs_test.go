package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// read decodes what a command prints with --output json.
func read[T any](t *testing.T, h home, args ...string) T {
	t.Helper()
	var value T
	out := h.ok(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &value); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return value
}

// contains fails the test if a text lacks something.
func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

type started struct {
	JobID      string `json:"job_id"`
	WorkflowID string `json:"workflow_id"`
}

func TestJobsAreListedShownAndCancelled(t *testing.T) {
	t.Parallel()
	h := shared(t)
	needContainers(t, h)
	p, err := h.start("run", "--image", "busybox:1", "--name", "jobs-test", "--definition", "jobs-test",
		"--", "sh", "-c", untilStopped)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.await(t.Context(), &p.out, "up"); err != nil {
		t.Fatal(err)
	}
	listed := read[[]struct{ ID, Status string }](t, h, "jobs", "list", "--workflow", "jobs-test", "--status", "running")
	if len(listed) != 1 {
		t.Fatalf("listed are %+v", listed)
	}
	id := listed[0].ID
	contains(t, h.ok(t, "jobs", "list", "--definition", "jobs-test"), id, "RUNNING", "local", "1/3")
	contains(t, h.ok(t, "jobs", "show", id), "RUNNING", "busybox:1", "held by ", "ends in ", "CLAIMED")
	contains(t, h.ok(t, "jobs", "explain", "jobs-test"), "the job is RUNNING", "no")
	contains(t, h.ok(t, "jobs", "cancel", "jobs-test"), "Asked for the cancellation of job "+id)
	if got := p.wait(t); got.code != 130 {
		t.Errorf("the follower of a job that somebody cancelled has exit code %d:\n%s", got.code, got.err)
	}
	if got := h.run(t, "jobs", "cancel", id); got.code != 1 || !strings.Contains(got.err, "has ended already, as CANCELED") {
		t.Errorf("cancelled again: exit code %d\n%s", got.code, got.err)
	}
}

func TestAJobThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	h := shared(t)
	for _, verb := range []string{"show", "explain", "cancel"} {
		got := h.run(t, "jobs", verb, "nowhere")
		if got.code != 1 || !strings.Contains(got.err, `leasehold: there is no job with the ID or workflow ID "nowhere"`) {
			t.Errorf("%s: exit code %d\n%s", verb, got.code, got.err)
		}
	}
}

func TestDefinitionsAreAppliedListedAndRun(t *testing.T) {
	t.Parallel()
	h := shared(t)
	ui := h.parts(t)["TEMPORAL_UI_URL"]
	text := "definition: ping\nkind: HEARTBEAT\nheartbeat: {endpoint: '" + ui + "'}\nretry: {max_attempts: 2, backoff: 90s}\nmax_running: 1\n"
	file := write(t, "ping.yaml", text)
	contains(t, h.ok(t, "definitions", "apply", "-f", file), "Definition ping is stored at generation 1.")
	contains(t, h.ok(t, "definitions", "apply", "-f", file), "generation 1.")
	contains(t, h.ok(t, "definitions", "apply", "-f", write(t, "ping.yaml", text+"on_expiry: adopt\n")), "generation 2.")
	contains(t, h.ok(t, "definitions", "list"), "ping", "HEARTBEAT", ui)
	type definition struct {
		Name    string `json:"name"`
		Backoff string `json:"backoff"`
	}
	found := false
	for _, def := range read[[]definition](t, h, "definitions", "list") {
		found = found || def == definition{"ping", "1m30s"}
	}
	if !found {
		t.Error("the definition with its backoff of 1m30s is not listed as JSON")
	}
	job := read[started](t, h, "run", "--definition", "ping", "--detach", "--name", "ping-run")
	if job.WorkflowID != "ping-run" || job.JobID == "" {
		t.Errorf("started was %+v", job)
	}
	if got := h.run(t, "run", "--definition", "pong"); got.code != 2 || !strings.Contains(got.err, `"pong"`) {
		t.Errorf("a definition that is not there: exit code %d\n%s", got.code, got.err)
	}
	contains(t, h.ok(t, "definitions", "pause", "ping"), "Definition ping is paused.")
	contains(t, h.ok(t, "definitions", "resume", "ping"), "Definition ping is resumed.")
}

func TestNodesAreAddedDrainedAndRemoved(t *testing.T) {
	t.Parallel()
	h := shared(t)
	needContainers(t, h)
	endpoint := h.parts(t)["DOCKER_HOST"]
	// In a database without jobs, which would make the node's use a matter of luck.
	h = h.with(map[string]string{"DATABASE_URL": h.database(t, "nodes")})
	h.ok(t, "migrate")
	added := h.ok(t, "nodes", "add", "second", "--endpoint", endpoint, "--capacity", "2", "--label", "disk=ssd")
	contains(t, added, "Node second is added: READY, 2 slots")
	contains(t, h.ok(t, "nodes", "list"), "second", "READY", "0/2", endpoint, "disk=ssd")
	contains(t, h.ok(t, "nodes", "drain", "second"), "Node second drains: 0 jobs still run on it")
	contains(t, h.ok(t, "nodes", "list"), "DRAINING")
	contains(t, h.ok(t, "nodes", "remove", "second"), "Node second is removed")
	if out := h.ok(t, "nodes", "list"); strings.Contains(out, "second") {
		t.Errorf("it is still listed:\n%s", out)
	}
	got := h.run(t, "nodes", "add", "third", "--endpoint", "unix:///nowhere.sock")
	if got.code != 1 || !strings.Contains(got.err, "node third is not added, its daemon does not answer") {
		t.Errorf("a daemon that does not answer: exit code %d\n%s", got.code, got.err)
	}
	if got := h.run(t, "nodes", "drain", "nowhere"); got.code != 1 || !strings.Contains(got.err, "nowhere") {
		t.Errorf("a node that is not there: exit code %d\n%s", got.code, got.err)
	}
}

func TestRecoveryIsEnsuredTriggeredAndShown(t *testing.T) {
	t.Parallel()
	h := shared(t)
	contains(t, h.ok(t, "recovery", "ensure"), "The schedules are there.")
	contains(t, h.ok(t, "recovery", "trigger"), "Recovery is triggered")
	contains(t, h.ok(t, "recovery", "status"), "Schedule leasehold-recovery runs every 15s, next ", "RECOVERED")
	if status := read[struct{ ID string }](t, h, "recovery", "status"); status.ID != "leasehold-recovery" {
		t.Errorf("the status is that of %q", status.ID)
	}
}
