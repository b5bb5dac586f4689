package docker_test

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestC01_CreateAgainReturnsTheSameContainer(t *testing.T) {
	t.Parallel()
	b := shared(t)
	first := b.create(shell("exit 3"))
	if again := b.create(shell("exit 3")); again.ID != first.ID {
		t.Errorf("made a second container")
	}
	check(t, b.Start(t.Context(), b.endpoint, first.ID))
	_, err := b.Wait(t.Context(), b.endpoint, first.ID, nil)
	check(t, err)
	again := b.create(shell("exit 3"))
	if again.ID != first.ID || again.Exit == nil || again.Exit.Code != 3 {
		t.Errorf("after the end: got %+v", again)
	}
	_, err = b.Create(t.Context(), b.endpoint, b.run(shell("exit 4")))
	refused(t, err, activities.ReasonInternal, "another spec")
}

// The fault that it catches: looking by label only, and taking a name that is
// in use for a failure.
func TestC01_ParallelCreatesMakeOneContainer(t *testing.T) {
	t.Parallel()
	b := shared(t)
	var made [6]activities.Container
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			e := docker.New(docker.Options{Instance: b.instance}) // processes of their own
			defer e.Close()
			var err error
			if made[i], err = e.Create(t.Context(), b.endpoint, b.run(spec("true"))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(b.containers(t.Context())); n != 1 {
		t.Errorf("made %d containers", n)
	}
	for _, c := range made {
		if c.ID != made[0].ID {
			t.Errorf("got %s and %s", c.ID, made[0].ID)
		}
	}
}

func TestC01_TheNextEpochHasAContainerOfItsOwn(t *testing.T) {
	t.Parallel()
	b := shared(t)
	first := b.create(spec("true"))
	run := b.run(spec("true"))
	run.Attempt, run.Epoch = 2, 2
	second, err := b.Create(t.Context(), b.endpoint, run)
	check(t, err)
	if first.ID == second.ID || first.Name == second.Name {
		t.Errorf("got %+v after %+v", second, first)
	}
	found, err := b.Find(t.Context(), b.endpoint, b.job)
	check(t, err)
	if len(found) != 2 || found[0].ID != second.ID || found[1].ID != first.ID || found[0].Attempt != 2 || found[0].NodeID != "node-a" {
		t.Errorf("found %+v", found)
	}
	run.Epoch = 1
	_, err = b.Create(t.Context(), b.endpoint, run)
	refused(t, err, activities.ReasonInternal, "epoch 2 has a container")
}

// hold makes a container with a name, from outside.
func (b *bench) hold(name string, labels map[string]string) string {
	b.t.Helper()
	made, err := b.outside.ContainerCreate(b.t.Context(), &container.Config{Image: testenv.Image, Labels: labels}, nil, nil, nil, name)
	check(b.t, err)
	b.t.Cleanup(func() {
		_ = b.outside.ContainerRemove(b.t.Context(), made.ID, container.RemoveOptions{Force: true})
	})
	return made.ID
}

func TestC01_AForeignHolderOfTheNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := shared(t)
	wanted := "leasehold-" + b.job + "-1-1"
	foreign := b.hold(wanted, nil)
	defer b.outside.ContainerRemove(t.Context(), foreign, container.RemoveOptions{Force: true})
	c := b.create(spec("true"))
	if c.Name == wanted || !strings.HasPrefix(c.Name, wanted) || c.ID == foreign {
		t.Errorf("got %+v", c)
	}
	if again := b.create(spec("true")); again.ID != c.ID {
		t.Error("made a second container beside the foreign one")
	}
	if b.inspect(foreign).Name != "/"+wanted {
		t.Error("the foreign container was touched")
	}
}

func TestC01_AHolderOfAnEarlierEpochIsRemoved(t *testing.T) {
	t.Parallel()
	b := shared(t)
	old := b.hold("leasehold-"+b.job+"-1-1", map[string]string{
		"leasehold.instance": b.instance, "leasehold.schema": "1", "leasehold.job_id": b.job, "leasehold.epoch": "0", "leasehold.attempt": "1",
	})
	if c := b.create(spec("true")); c.ID == old || c.Name != "leasehold-"+b.job+"-1-1" {
		t.Errorf("got %+v", c)
	}
	if _, err := b.outside.ContainerInspect(t.Context(), old); err == nil {
		t.Error("the old container is still there")
	}
}

// The fault that it catches: reporting a lost answer as a failure, or making a
// second container.
func TestC02_ALostAnswerToCreateIsLookedUp(t *testing.T) {
	t.Parallel()
	direct := shared(t)
	p := newProxy(t, direct.endpoint)
	var creates atomic.Int32
	p.meddle = func(req *http.Request, forward func() *http.Response, _ net.Conn) bool {
		if !strings.HasSuffix(req.URL.Path, "/containers/create") || creates.Add(1) > 1 {
			return false
		}
		discard(forward()) //nolint:bodyclose // discard closes it; nobody hears of the answer
		return true
	}
	b := on(t, p.endpoint(), docker.Options{Instance: direct.instance})
	exit, out := b.finish(shell("echo once"))
	if exit.Code != 0 || out.text(false) != "once\n" {
		t.Errorf("got %+v, %q", exit, out.text(false))
	}
	if n, made := creates.Load(), len(direct.containers(t.Context())); n != 1 || made != 1 {
		t.Errorf("%d creates were sent and made %d containers", n, made)
	}
}

func TestC12_AnotherInstallationIsNotTouched(t *testing.T) {
	t.Parallel()
	a, b := shared(t), shared(t)
	c := a.start(spec("sleep", "100"))
	b.start(spec("sleep", "100"))
	list, err := b.List(t.Context(), b.endpoint)
	check(t, err)
	if len(list) != 1 || list[0].JobID != b.job || list[0].Epoch != 1 || list[0].State != activities.ContainerRunning {
		t.Errorf("listed %+v", list)
	}
	if found, err := b.Find(t.Context(), b.endpoint, a.job); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
	refused(t, b.Remove(t.Context(), b.endpoint, c.ID), activities.ReasonInternal, "another installation")
	_, err = b.Stop(t.Context(), b.endpoint, c.ID, 0)
	refused(t, err, activities.ReasonInternal, "another installation")
	refused(t, b.Start(t.Context(), b.endpoint, c.ID), activities.ReasonInternal, "another installation")
	if !a.inspect(c.ID).State.Running {
		t.Error("it was stopped")
	}
}

func TestC12_ContainersOfAnotherSchemaAreNotListed(t *testing.T) {
	t.Parallel()
	b := shared(t)
	b.hold("", map[string]string{
		"leasehold.instance": b.instance, "leasehold.schema": "2", "leasehold.job_id": b.job, "leasehold.epoch": "1", "leasehold.attempt": "1",
	})
	if list, err := b.List(t.Context(), b.endpoint); err != nil || len(list) != 0 {
		t.Errorf("listed %+v, %v", list, err)
	}
}

func TestContainersAreHardenedAndExplainThemselves(t *testing.T) {
	t.Parallel()
	b := shared(t)
	s := spec("true")
	s.Memory, s.CPUs, s.StopSignal, s.ReadOnly = 32<<20, 0.5, "INT", true
	s.Labels = map[string]string{"team": "a"}
	c := b.inspect(b.create(s).ID)
	host := c.HostConfig
	switch {
	case host.AutoRemove, host.RestartPolicy.Name != "no", !*host.Init, host.Privileged:
		t.Errorf("got %+v", host)
	case !slices.Equal(host.CapDrop, []string{"ALL"}), len(host.CapAdd) != 8, !slices.Contains(host.SecurityOpt, "no-new-privileges"):
		t.Errorf("caps %v %v, %v", host.CapDrop, host.CapAdd, host.SecurityOpt)
	case host.Memory != 32<<20, host.MemorySwap != host.Memory, host.NanoCPUs != 5e8, *host.PidsLimit != 512, !host.ReadonlyRootfs:
		t.Errorf("limits %+v", host.Resources)
	case host.LogConfig.Type != "json-file", c.Config.StopSignal != "SIGINT", !slices.Equal(c.Config.Healthcheck.Test, []string{"NONE"}):
		t.Errorf("got %+v, %+v", host.LogConfig, c.Config)
	}
	for label, value := range map[string]string{
		"team": "a", "leasehold.instance": b.instance, "leasehold.schema": "1", "leasehold.job_id": b.job, "leasehold.epoch": "1",
		"leasehold.attempt": "1", "leasehold.node_id": "node-a", "leasehold.definition": "test",
	} {
		if c.Config.Labels[label] != value {
			t.Errorf("label %s is %q", label, c.Config.Labels[label])
		}
	}
}

func TestANodeWithoutABridgeSaysSo(t *testing.T) {
	t.Parallel()
	b := on(t, testenv.DockerNode(t).Endpoint())
	c := b.create(spec("true"))
	if !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "no bridge network") }) {
		t.Errorf("warnings: %q", c.Warnings)
	}
	if mode := b.inspect(c.ID).HostConfig.NetworkMode; mode != "none" {
		t.Errorf("network %s", mode)
	}
}

func TestC03_RemovalsInParallelAllSucceed(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c := b.start(spec("sleep", "100"))
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if err := b.Remove(t.Context(), b.endpoint, c.ID); err != nil {
				t.Error(err)
			}
			if _, err := b.outside.ContainerInspect(t.Context(), c.ID); err == nil {
				t.Error("Remove returned before the container was gone")
			}
		})
	}
	all.Wait()
	check(t, b.Remove(t.Context(), b.endpoint, c.ID))
}

func TestC36_AnonymousVolumesGoWithTheirContainer(t *testing.T) {
	t.Parallel()
	b := on(t, testenv.DockerNode(t).Endpoint())
	b.image("volume:1", "VOLUME /data", `CMD ["true"]`)
	s := activities.ContainerSpec{Image: "volume:1"}
	c := b.start(s)
	_, err := b.Wait(t.Context(), b.endpoint, c.ID, nil)
	check(t, err)
	if n := b.volumes(); n != 1 {
		t.Fatalf("%d volumes while the container is there", n)
	}
	check(t, b.Remove(t.Context(), b.endpoint, c.ID))
	if n := b.volumes(); n != 0 {
		t.Errorf("%d volumes are left", n)
	}
}

func (b *bench) volumes() int {
	b.t.Helper()
	list, err := b.outside.VolumeList(b.t.Context(), volume.ListOptions{})
	check(b.t, err)
	return len(list.Volumes)
}

// image makes an image from busybox with other settings.
func (b *bench) image(ref string, changes ...string) {
	b.t.Helper()
	made, err := b.outside.ContainerCreate(b.t.Context(), &container.Config{Image: testenv.Image}, nil, nil, nil, "")
	check(b.t, err)
	defer b.outside.ContainerRemove(b.t.Context(), made.ID, container.RemoveOptions{})
	_, err = b.outside.ContainerCommit(b.t.Context(), made.ID, container.CommitOptions{Reference: ref, Changes: changes})
	check(b.t, err)
}
