package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// needContainers skips a test of containers where the dev found no daemon.
func needContainers(t *testing.T, h home) {
	t.Helper()
	if h.parts(t)["DOCKER_HOST"] != "" {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("there is no Docker daemon")
	}
	t.Skip("there is no Docker daemon")
}

// write puts text into a file of the test's and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunFollowsAJobToItsEnd(t *testing.T) {
	t.Parallel()
	h := shared(t)
	needContainers(t, h)
	jobYAML := write(t, "job.yaml", "kind: CONTAINER\ncontainer:\n  image: busybox:1\n  command: [sh, -c, 'echo from $FILE']\n  env: {FILE: a file}\n")
	jobJSON := write(t, "job.json", `{"kind": "HEARTBEAT", "heartbeat": {"endpoint": "`+h.parts(t)["TEMPORAL_UI_URL"]+`"}}`)
	tests := map[string]struct {
		args []string
		code int
		out  string
		last string // of what it says at the end
	}{
		"a container that succeeds": {[]string{"--image", "busybox:1", "--", "echo", "hi"}, 0, "hi\n", "Completed in "},
		"a container that fails": {
			[]string{"--image", "busybox:1", "--", "sh", "-c", "echo hi; exit 3"}, 1, "hi\n", "Failed: ",
		},
		"with environment":   {[]string{"--image", "busybox:1", "-e", "WHO=world", "--", "sh", "-c", "echo hello $WHO"}, 0, "hello world\n", "Completed in "},
		"from a YAML file":   {[]string{"-f", jobYAML}, 0, "from a file\n", "Completed in "},
		"from a JSON file":   {[]string{"-f", jobJSON}, 0, "", "Completed in "},
		"a heartbeat":        {[]string{"--heartbeat", h.parts(t)["TEMPORAL_UI_URL"]}, 0, "", "Completed in "},
		"a wrong status":     {[]string{"--heartbeat", h.parts(t)["TEMPORAL_UI_URL"], "--expect-status", "418"}, 1, "", "Failed: "},
		"a container's time": {[]string{"--image", "busybox:1", "--timeout", "1s", "--", "sleep", "60"}, 1, "", "Failed: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := h.run(t, append([]string{"run"}, tt.args...)...)
			if got.code != tt.code || got.out != tt.out {
				t.Errorf("exit code %d and output %q, want %d and %q", got.code, got.out, tt.code, tt.out)
			}
			lines := strings.Split(strings.TrimSpace(got.err), "\n")
			if last := lines[len(lines)-1]; !strings.HasPrefix(last, tt.last) || !strings.HasSuffix(last, ").") {
				t.Errorf("the last line is not %q, in:\n%s", tt.last, got.err)
			}
			if !strings.Contains(got.err, "Started job ") {
				t.Errorf("it does not say that it started:\n%s", got.err)
			}
		})
	}
}

func TestRunPrintsTheResultAsJSON(t *testing.T) {
	t.Parallel()
	h := shared(t)
	needContainers(t, h)
	got := h.run(t, "run", "-o", "json", "--image", "busybox:1", "--", "sh", "-c", "echo hi; exit 3")
	var result struct {
		JobID    string `json:"job_id"`
		Status   string `json:"status"`
		ExitCode *int   `json:"exit_code"`
	}
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatalf("%v:\n%s", err, got.out)
	}
	if got.code != 1 || result.Status != "FAILED" || result.ExitCode == nil || *result.ExitCode != 3 {
		t.Errorf("exit code %d and result:\n%s", got.code, got.out)
	}
}

// untilStopped is a program that says when it is up, and ends at once when it
// is asked to.
const untilStopped = "trap 'exit 0' TERM; echo up; sleep 600 & wait"

func TestCtrlCCancelsTheJob(t *testing.T) {
	t.Parallel()
	h := shared(t)
	needContainers(t, h)
	p, err := h.start("run", "--image", "busybox:1", "--name", "to-cancel", "--", "sh", "-c", untilStopped)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.await(t.Context(), &p.out, "up"); err != nil {
		t.Fatal(err)
	}
	p.signal(t)
	got := p.wait(t)
	if got.code != 130 || !strings.Contains(got.err, "\nCancelled (attempts 1, epoch ") {
		t.Errorf("exit code %d; it said:\n%s", got.code, got.err)
	}
	if shown := h.ok(t, "jobs", "show", "to-cancel"); !strings.Contains(shown, "CANCELED") {
		t.Errorf("the job is shown as:\n%s", shown)
	}
}

func TestASecondCtrlCLeavesAtOnce(t *testing.T) {
	t.Parallel()
	h := shared(t)
	needContainers(t, h)
	p, err := h.start("run", "--image", "busybox:1", "--name", "left", "--", "sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.await(t.Context(), &p.out, "up"); err != nil {
		t.Fatal(err)
	}
	p.signal(t)
	if err := p.await(t.Context(), &p.err, "Ctrl-C again leaves at once"); err != nil {
		t.Fatal(err)
	}
	p.signal(t)
	if got := p.wait(t); got.code == 0 || strings.Contains(got.err, "Cancelled (") {
		t.Errorf("exit code %d; it said:\n%s", got.code, got.err)
	}
}
