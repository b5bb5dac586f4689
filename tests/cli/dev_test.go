package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// parts are what a leasehold dev says of itself in its env file.
func (h home) parts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.devDir(), "leasehold.env"))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		parts[name] = strings.Trim(value, "'")
	}
	return parts
}

func (h home) devDir() string { return filepath.Join(h.dir, "leasehold", "dev") }

// marks are texts in the arguments of all that a dev has started.
func (h home) marks(t *testing.T) []string {
	t.Helper()
	marks := []string{h.dir}
	if docker := h.parts(t)["DOCKER_HOST"]; strings.Contains(docker, "/run/leasehold-") {
		marks = append(marks, filepath.Dir(strings.TrimPrefix(docker, "unix://")))
	}
	return marks
}

// gone fails the test if something of a dev is left.
func (h home) gone(t *testing.T, marks []string) {
	t.Helper()
	// Those of a PostgreSQL that was killed notice it by themselves.
	if left := untilNone(func() []string { return processesOf(t, h.dir, marks...) }); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	if left := mountsOf(t, h.dir); len(left) > 0 {
		t.Errorf("mounts are left:\n%s", strings.Join(left, ""))
	}
	if _, err := os.Stat(filepath.Join(h.devDir(), "leasehold.env")); err == nil {
		t.Error("the env file is left, as if it still ran")
	}
}

// up starts a dev of the test's own.
func (h home) up(t *testing.T) *process {
	t.Helper()
	dev, err := h.startDev(t.Context())
	need(t, err)
	t.Cleanup(func() {
		_ = dev.cmd.Process.Signal(syscall.SIGTERM) // it has ended, unless the test failed
		<-dev.ended
	})
	return dev
}

func TestDevStopsAllItHasStartedAndFindsItsDataAgain(t *testing.T) {
	t.Parallel()
	other := shared(t) // which Ctrl-C here must not touch
	h := newHome(t)
	dev := h.up(t)
	parts := h.parts(t)
	for _, address := range []string{"DATABASE_URL", "TEMPORAL_ADDRESS", "TEMPORAL_UI_URL"} {
		if parts[address] == "" || !strings.Contains(dev.out.String(), parts[address]) {
			t.Errorf("%s is %q, and it printed:\n%s", address, parts[address], dev.out.String())
		}
	}
	answered(t, parts["TEMPORAL_UI_URL"])
	h.ok(t, "run", "--heartbeat", parts["TEMPORAL_UI_URL"], "--name", "before")
	h.refusesASecondDev(t)

	unlikely := "8" + strconv.Itoa(os.Getpid()) // seconds, that no other process sleeps
	if parts["DOCKER_HOST"] != "" {
		h.sleeper(t, unlikely)
	}
	marks := append(h.marks(t), "sleep "+unlikely)
	if err := dev.interrupt(); err != nil {
		t.Fatal(err)
	}
	h.gone(t, marks)
	other.ok(t, "jobs", "list")
	answered(t, other.parts(t)["TEMPORAL_UI_URL"])

	again := h.up(t)
	if now := h.parts(t); now["TEMPORAL_UI_URL"] != parts["TEMPORAL_UI_URL"] || now["DATABASE_URL"] != parts["DATABASE_URL"] {
		t.Errorf("the addresses were %v, and now they are %v", parts, now)
	}
	if got := h.ok(t, "jobs", "show", "before"); !strings.Contains(got, "COMPLETED") {
		t.Errorf("the job of the first start is shown as:\n%s", got)
	}
	h.reportsACrash(t, again)
}

// sleeper starts a job that does not end by itself and waits for its container.
func (h home) sleeper(t *testing.T, seconds string) {
	t.Helper()
	p, err := h.start("run", "--image", "busybox:1", "--name", "sleeper", "--", "sh", "-c", "echo up; exec sleep "+seconds)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.await(t.Context(), &p.out, "up"); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Kill() // it is only the follower
	<-p.ended
}

func (h home) refusesASecondDev(t *testing.T) {
	t.Helper()
	got := h.run(t, "dev")
	want := "leasehold: another leasehold dev runs in " + h.devDir() + ": use it, stop it with Ctrl-C, or give this one another --dir\n"
	if got.code != 2 || got.err != want {
		t.Errorf("a second dev: exit code %d\n%s", got.code, got.err)
	}
}

func (h home) reportsACrash(t *testing.T, dev *process) {
	t.Helper()
	marks := h.marks(t)
	pid := postgresPID(t, h)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := dev.wait(t)
	for _, want := range []string{
		"leasehold: PostgreSQL has ended by itself (signal: killed); the end of its log ",
		"database system is ready to accept connections",
	} {
		if !strings.Contains(got.err, want) {
			t.Errorf("it does not say %q, but:\n%s", want, got.err)
		}
	}
	if got.code != 1 {
		t.Errorf("exit code %d, want 1", got.code)
	}
	h.gone(t, marks)
}

func postgresPID(t *testing.T, h home) int {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(h.devDir(), "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(file), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid < 2 {
		t.Fatalf("postmaster.pid has the process %q", first)
	}
	return pid
}

func TestDevCanBeInterruptedWhileItStarts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dev, err := h.start("dev")
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.await(t.Context(), &dev.err, "Starting"); err != nil {
		t.Fatal(err)
	}
	dev.signal(t)
	if got := dev.wait(t); got.code != 130 {
		t.Errorf("exit code %d, want 130; it said:\n%s", got.code, got.err)
	}
	h.gone(t, []string{h.dir})
}

func answered(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s answers %s", url, response.Status)
	}
}
