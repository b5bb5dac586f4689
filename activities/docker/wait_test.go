package docker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
)

// The fault that it catches: judging a container by its exit code, which is 0
// before it ran.
func TestC04_WaitBelievesOnlyAStartedContainer(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c := b.create(spec("true"))
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	exit, err := b.Wait(soon, b.endpoint, c.ID, nil)
	refused(t, err, activities.ReasonInternal, "never started")
	if exit != (activities.Exit{}) {
		t.Errorf("got an exit: %+v", exit)
	}
	seen, err := b.Inspect(t.Context(), b.endpoint, c.ID)
	check(t, err)
	if seen.Exit != nil || seen.State != activities.ContainerCreated || !seen.StartedAt.IsZero() {
		t.Errorf("got %+v", seen)
	}
}

func TestC05_AnEndedContainerKeepsItsExit(t *testing.T) {
	t.Parallel()
	b := shared(t)
	for range 10 {
		c := b.start(shell("exit 3"))
		if b.inspect(c.ID).HostConfig.AutoRemove {
			t.Fatal("the container removes itself")
		}
		exit, err := b.Wait(t.Context(), b.endpoint, c.ID, nil)
		check(t, err)
		if exit.Code != 3 || exit.StartedAt.IsZero() || exit.FinishedAt.IsZero() {
			t.Fatalf("got %+v", exit)
		}
		check(t, b.Remove(t.Context(), b.endpoint, c.ID))
	}
}

// The fault that it catches: taking the code of the wait, 137, for the
// program's.
func TestC06_AContainerThatVanishesHasNoExit(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c, out := b.start(shell("echo up; sleep 100")), newOutput()
	ended := b.wait(t.Context(), c.ID, out)
	receive(t, out.first, "the first line")
	check(t, b.outside.ContainerRemove(t.Context(), c.ID, container.RemoveOptions{Force: true}))
	refused(t, receive(t, ended, "the wait").err, activities.ReasonContainerGone, c.ID[:12], "removed while it ran", "node node-a", "attempt 1")
}

func TestC06_NoContainerNoExit(t *testing.T) {
	t.Parallel()
	b := shared(t)
	_, err := b.Wait(t.Context(), b.endpoint, "0123456789ab", nil)
	refused(t, err, activities.ReasonContainerGone)
	_, err = b.Inspect(t.Context(), b.endpoint, "0123456789ab")
	refused(t, err, activities.ReasonContainerGone)
}

func TestWaitEndsWithItsContextAndTheContainerRunsOn(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c, out := b.start(shell("echo up; sleep 100")), newOutput()
	why := errors.New("the lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := b.wait(ctx, c.ID, out)
	receive(t, out.first, "the first line")
	cancel(why)
	if err := receive(t, ended, "the wait").err; !errors.Is(err, why) || errors.As(err, new(*activities.RuntimeError)) {
		t.Errorf("got %v", err)
	}
	if !b.inspect(c.ID).State.Running {
		t.Error("the container was stopped")
	}
}

func TestC17_OnlyTheOOMFlagMeansOutOfMemory(t *testing.T) {
	t.Parallel()
	exit, _ := shared(t).finish(shell("exit 137"))
	if exit.Code != 137 || exit.OOMKilled {
		t.Errorf("exit 137: %+v", exit)
	}
	s := spec("tail", "/dev/zero")
	s.Memory = 16 << 20
	exit, _ = shared(t).finish(s)
	if exit.Code != 137 || !exit.OOMKilled {
		t.Errorf("tail /dev/zero with 16 MiB: %+v", exit)
	}
}

func TestC18_TheProgramsOwnCodeStandsBesideTheOOMFlag(t *testing.T) {
	t.Parallel()
	for script, code := range map[string]int{"tail /dev/zero; exit 0": 0, "tail /dev/zero; exit 3": 3} {
		s := shell(script)
		s.Memory = 16 << 20
		flagged := false
		for range 3 { // a busy daemon may miss what happened to a child
			exit, _ := shared(t).finish(s)
			if exit.Code != code {
				t.Errorf("%s: %+v", script, exit)
			}
			if flagged = exit.OOMKilled; flagged {
				break
			}
		}
		if !flagged {
			t.Errorf("%s: nothing says that the limit was hit", script)
		}
	}
}
