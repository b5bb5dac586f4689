package dev_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/leasehold/leasehold/worker/dev"
)

func startDocker(t *testing.T, dir string, args ...string) *dev.Docker {
	t.Helper()
	d := started[*dev.Docker](t)(dev.StartDocker(t.Context(), dev.DockerOptions{Dir: dir, Args: args}))
	err := dev.ImportBusybox(t.Context(), d.Endpoint(), "busybox:1")
	if missing, ok := errors.AsType[*dev.MissingError](err); ok && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	check(t, err)
	return d
}

func connect(t *testing.T, d *dev.Docker) *client.Client {
	t.Helper()
	daemon, err := client.NewClientWithOpts(client.WithHost(d.Endpoint()), client.WithAPIVersionNegotiation())
	check(t, err)
	t.Cleanup(func() { daemon.Close() })
	return daemon
}

func runContainer(t *testing.T, d *dev.Docker, command ...string) string {
	t.Helper()
	daemon := connect(t, d)
	created, err := daemon.ContainerCreate(t.Context(), &container.Config{Image: "busybox:1", Cmd: command}, nil, nil, nil, "")
	check(t, err)
	check(t, daemon.ContainerStart(t.Context(), created.ID, container.StartOptions{}))
	return created.ID
}

func TestDockerRunsBusyboxAndLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	d := startDocker(t, dir)
	ended, failed := connect(t, d).ContainerWait(t.Context(), runContainer(t, d, "true"), container.WaitConditionNotRunning)
	select {
	case end := <-ended:
		if end.StatusCode != 0 {
			t.Errorf("true ended with %d", end.StatusCode)
		}
	case err := <-failed:
		t.Fatal(err)
	}
	runContainer(t, d, "sleep", "1000")
	check(t, d.Stop(t.Context()))
	assertNothingLeft(t, d, dir)
}

// The fault that it catches: a Stop that leaves the rest to the daemon.
func TestNothingIsLeftOfADockerThatWasKilled(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	d := startDocker(t, dir)
	runContainer(t, d, "sleep", "1000")
	check(t, d.Kill())
	check(t, d.Stop(t.Context()))
	assertNothingLeft(t, d, dir)
}

func TestContainersOutliveAKilledDocker(t *testing.T) {
	t.Parallel()
	d := startDocker(t, openDir(t), "--live-restore")
	id := runContainer(t, d, "sleep", "1000")
	check(t, d.Kill())
	check(t, d.Restart(t.Context()))
	found, err := connect(t, d).ContainerInspect(t.Context(), id)
	check(t, err)
	if !found.State.Running {
		t.Errorf("the container is %s", found.State.Status)
	}
}

func TestTwoDockersStandSideBySide(t *testing.T) {
	t.Parallel()
	one, two := startDocker(t, openDir(t)), startDocker(t, openDir(t))
	id := runContainer(t, one, "true")
	if _, err := connect(t, two).ContainerInspect(t.Context(), id); !cerrdefs.IsNotFound(err) {
		t.Errorf("the second daemon knows a container of the first: %v", err)
	}
}

func assertNothingLeft(t *testing.T, d *dev.Docker, dir string) {
	t.Helper()
	socket := strings.TrimPrefix(d.Endpoint(), "unix://")
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	if strings.Contains(string(mounts), dir) {
		t.Errorf("something is still mounted in %s", dir)
	}
	for _, pid := range dev.ProcessesWith(strings.TrimSuffix(socket, "d.sock") + "exec/") {
		t.Errorf("process %d is left", pid)
	}
}
