package docker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/google/uuid"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/tests/testenv"
)

// A bench is an engine of an installation of its own on one daemon, and a
// plain client that looks at the same daemon from outside.
type bench struct {
	*docker.Engine
	t        *testing.T
	instance string
	endpoint string
	job      string
	outside  *client.Client
}

// on returns a bench on the daemon that the tests share. What it makes is
// removed when the test ends.
func on(t *testing.T, endpoint string, opts ...docker.Options) *bench {
	t.Helper()
	var options docker.Options
	if len(opts) > 0 {
		options = opts[0]
	}
	if options.Instance == "" {
		options.Instance = uuid.NewString()
	}
	b := &bench{t: t, Engine: docker.New(options), instance: options.Instance, endpoint: endpoint, job: uuid.NewString()}
	var err error
	b.outside, err = client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	check(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		for _, c := range b.containers(ctx) {
			_ = b.outside.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true}) // the daemon may be gone
		}
		_ = b.Close()
		_ = b.outside.Close()
	})
	return b
}

func shared(t *testing.T) *bench {
	t.Helper()
	return on(t, testenv.Docker(t))
}

func (b *bench) containers(ctx context.Context) []container.Summary {
	list, _ := b.outside.ContainerList(ctx, container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "leasehold.instance="+b.instance)),
	})
	return list
}

func spec(command ...string) activities.ContainerSpec {
	return activities.ContainerSpec{Image: testenv.Image, Command: &command}
}

func shell(script string) activities.ContainerSpec { return spec("/bin/sh", "-c", script) }

func (b *bench) run(s activities.ContainerSpec) activities.ContainerRun {
	return activities.ContainerRun{JobID: b.job, Definition: "test", NodeID: "node-a", Attempt: 1, Epoch: 1, Spec: s}
}

func (b *bench) create(s activities.ContainerSpec) activities.Container {
	b.t.Helper()
	c, err := b.Create(b.t.Context(), b.endpoint, b.run(s))
	check(b.t, err)
	return c
}

func (b *bench) start(s activities.ContainerSpec) activities.Container {
	b.t.Helper()
	c := b.create(s)
	check(b.t, b.Start(b.t.Context(), b.endpoint, c.ID))
	return c
}

// output collects lines.
type output struct {
	mu    sync.Mutex
	lines []activities.LogLine
	first chan struct{} // closed with the first line
}

func newOutput() *output { return &output{first: make(chan struct{})} }

func (o *output) add(line activities.LogLine) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines = append(o.lines, line); len(o.lines) == 1 {
		close(o.first)
	}
}

// text is the lines of one stream, each with its newline.
func (o *output) text(stderr bool) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var text strings.Builder
	for _, line := range o.lines {
		if line.Stderr == stderr {
			text.WriteString(line.Text + "\n")
		}
	}
	return text.String()
}

// finish runs a container to its end.
func (b *bench) finish(s activities.ContainerSpec) (activities.Exit, *output) {
	b.t.Helper()
	c, out := b.start(s), newOutput()
	exit, err := b.Wait(b.t.Context(), b.endpoint, c.ID, out.add)
	check(b.t, err)
	return exit, out
}

type ending struct {
	exit activities.Exit
	err  error
}

// wait waits in the background.
func (b *bench) wait(ctx context.Context, id string, out *output) <-chan ending {
	ended := make(chan ending, 1)
	go func() {
		exit, err := b.Wait(ctx, b.endpoint, id, out.add)
		ended <- ending{exit, err}
	}()
	return ended
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case value := <-from:
		return value
	case <-timer.C:
		t.Fatalf("%s: nothing for a minute", what)
		panic("unreachable")
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks the reason and the words of a failure.
func refused(t *testing.T, err error, reason activities.RuntimeErrorReason, words ...string) *activities.RuntimeError {
	t.Helper()
	trouble, ok := errors.AsType[*activities.RuntimeError](err)
	if !ok {
		t.Fatalf("got %v, want a RuntimeError %s", err, reason)
	}
	if trouble.Reason != reason {
		t.Fatalf("got %s (%v), want %s", trouble.Reason, err, reason)
	}
	for _, word := range words {
		if !strings.Contains(trouble.Message, word) {
			t.Errorf("%q does not say %q", trouble.Message, word)
		}
	}
	return trouble
}

func (b *bench) inspect(id string) container.InspectResponse {
	b.t.Helper()
	c, err := b.outside.ContainerInspect(b.t.Context(), id)
	check(b.t, err)
	return c
}

// eventually asks again and again, up to a minute.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ask := time.NewTicker(20 * time.Millisecond)
	defer ask.Stop()
	for deadline := time.Now().Add(time.Minute); !is(); <-ask.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestProbeSaysWhoAnswers(t *testing.T) {
	t.Parallel()
	b := shared(t)
	info, err := b.Probe(t.Context(), b.endpoint)
	check(t, err)
	if info.DaemonID == "" || info.APIVersion == "" || info.CPUs == 0 || info.Memory == 0 || info.OS != "linux" {
		t.Errorf("incomplete: %+v", info)
	}
	if since := time.Since(info.Now).Abs(); since > time.Minute {
		t.Errorf("the daemon on this machine has another clock: %s apart", since)
	}
}

func TestAnEndpointIsUnixOrTCP(t *testing.T) {
	t.Parallel()
	e := docker.New(docker.Options{})
	for _, endpoint := range []string{"foo://x", "", "unix://", "unix://relative", "tcp://host", "http://host:1", "tcp://host:1/path", ":"} {
		_, err := e.Probe(t.Context(), endpoint)
		refused(t, err, activities.ReasonNodeUnreachable, "cannot be used")
	}
	_, err := e.Probe(t.Context(), "unix:///nowhere/d.sock")
	refused(t, err, activities.ReasonNodeUnreachable, "Cannot connect")
}

func TestAnEngineWithoutAnInstanceOnlyLooks(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c := b.create(spec("true"))
	e := docker.New(docker.Options{})
	defer e.Close()
	_, err := e.Inspect(t.Context(), b.endpoint, c.ID)
	check(t, err)
	_, err = e.List(t.Context(), b.endpoint)
	refused(t, err, activities.ReasonInternal)
	_, err = e.Find(t.Context(), b.endpoint, b.job)
	refused(t, err, activities.ReasonInternal)
	_, err = e.Create(t.Context(), b.endpoint, b.run(spec("true")))
	refused(t, err, activities.ReasonInternal)
	refused(t, e.Remove(t.Context(), b.endpoint, c.ID), activities.ReasonInternal)
}
