package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	dockerclient "github.com/docker/docker/client"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/faults"
	"github.com/leasehold/leasehold/tests/testenv"
	"github.com/leasehold/leasehold/worker"
	"github.com/leasehold/leasehold/workflows"
)

// While its schedule is paused nothing is recovered. Then many recoveries at
// once, by trigger, backfill and hand, take each expired lease over once, and
// settle it as its definition says. It is seen to fail if recovery does not
// lock what it takes.
func TestT8_RecoveryIsDrivenByItsSchedule(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	alice := f.worker("alice")
	schedule := f.temporal.Client.ScheduleClient().GetHandle(t.Context(), worker.RecoveryScheduleID)
	f.must(schedule.Pause(t.Context(), client.SchedulePauseOptions{Note: "by the test"}))
	restarted := f.start("restarted", stubborn())
	adopting := f.start("adopting", adopted(patient()))
	before := f.supervised("adopting")
	f.supervised("restarted")
	f.must(alice.Process.Kill())
	f.until("both leases have run out", func() bool { return f.expired("restarted") && f.expired("adopting") })
	f.worker("bob")
	f.until("both workflows wait for recovery", func() bool {
		return f.pending("restarted", "SuperviseContainer") == nil && f.pending("adopting", "SuperviseContainer") == nil
	})
	for _, id := range []string{"restarted", "adopting"} {
		if job := f.job(id); job.Epoch != 1 {
			t.Errorf("%s was recovered while the schedule was paused", id)
		}
	}
	now := time.Now()
	f.must(schedule.Backfill(t.Context(), client.ScheduleBackfillOptions{Backfill: []client.ScheduleBackfill{
		{Start: now.Add(-10 * time.Second), End: now, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL},
	}}))
	for range 3 {
		f.must(schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL}))
	}
	recovered := f.recoverByHand(4)
	f.until("the container is adopted", func() bool { return f.job("adopting").Epoch == 2 && f.pending("adopting", "SuperviseContainer") != nil })
	f.finish(before)
	for _, run := range []client.WorkflowRun{restarted, adopting} {
		if _, err := f.result(run); err != nil {
			t.Error(err)
		}
	}
	for id, want := range map[string]int64{"restarted": 2, "adopting": 1} {
		if job := f.job(id); job.Attempt != want || f.count(job, "RECOVERED") != 1 {
			t.Errorf("%s: %d attempts, want %d\n%s", id, job.Attempt, want, f.events(job.ID))
		}
	}
	if job := f.job("adopting"); job.ContainerID != before.ContainerID || job.LogTail != "epoch 1\nfinished\n" {
		t.Errorf("container %s instead of %s, log %q", job.ContainerID, before.ContainerID, job.LogTail)
	}
	if recovered > 2 {
		t.Errorf("%d leases were recovered by hand, of 2", recovered)
	}
	f.proven()
}

// recoverByHand starts that many recoveries at once and says how many leases
// they took over together.
func (f *fleet) recoverByHand(n int) (recovered int) {
	f.t.Helper()
	runs := make([]client.WorkflowRun, n)
	for i := range runs {
		var err error
		runs[i], err = f.temporal.Client.ExecuteWorkflow(f.t.Context(), client.StartWorkflowOptions{
			ID: fmt.Sprintf("by-hand-%d", i), TaskQueue: taskQueue,
		}, workflows.RecoverExpiredLeasesName, workflows.RecoverInput{BatchSize: 1, Batches: 5})
		f.must(err)
	}
	for _, run := range runs {
		var result workflows.RecoverResult
		f.must(run.Get(f.t.Context(), &result))
		recovered += result.Recovered
	}
	return recovered
}

func (f *fleet) expired(id string) bool {
	f.t.Helper()
	lease, err := f.store.Lease(f.t.Context(), f.job(id).ID)
	return err == nil && lease.Remaining < 0
}

func (f *fleet) count(job leasestore.Job, event string) (n int) {
	f.t.Helper()
	for _, entry := range f.ledger(job.ID) {
		if entry.Event == event {
			n++
		}
	}
	return n
}

// A job on a node that is out of reach when its lease runs out is released by
// the usual policy, and runs elsewhere. What it left behind is removed once the
// node is back. It is seen to fail without the sweep.
func TestT9_AJobOfAnUnreachableNodeRunsElsewhereAndItsContainerIsRemovedLater(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	far := testenv.DockerNode(t)
	proxy, err := faults.Listen(t.Context(), far.Endpoint())
	f.must(err)
	t.Cleanup(func() { proxy.Close() })
	f.nodeAt("far", "tcp://"+proxy.Address(), nil)
	alice := f.worker("alice")
	run := f.start("moved", stubborn())
	daemon, err := dockerclient.NewClientWithOpts(dockerclient.WithHost(far.Endpoint()), dockerclient.WithAPIVersionNegotiation())
	f.must(err)
	t.Cleanup(func() { daemon.Close() })
	running := func() int {
		list, err := daemon.ContainerList(t.Context(), container.ListOptions{})
		f.must(err)
		return len(list)
	}
	f.until("it runs on the far node", func() bool { return running() == 1 })
	proxy.Refuse()
	f.must(alice.Process.Kill())
	f.until("the lease has run out", func() bool { return f.expired("moved") })
	f.node("near")
	f.worker("bob")
	result, err := f.result(run)
	if err != nil || result.Attempts != 2 || result.Node != "near" {
		t.Errorf("result: %+v, %v", result, err)
	}
	if running() != 1 {
		t.Error("the far node was reached all the same")
	}
	proxy.Heal()
	f.until("the leftover container is removed", func() bool { return running() == 0 })
	f.proven()
}

// A job that kills whoever runs it ends.
func TestL16_APoisonousJobEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 40 s")
	}
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	input := shell("sleep 3000")
	input["retry"] = map[string]any{"max_attempts": 2, "backoff": "1ms"}
	victim := f.worker("victim-1")
	run := f.start("poison", input)
	for attempt := range int64(2) {
		f.until("it runs", func() bool { return f.job("poison").Attempt == attempt+1 })
		f.running("poison")
		f.must(victim.Process.Kill())
		f.until("its lease has run out", func() bool { return f.expired("poison") })
		victim = f.worker(fmt.Sprintf("victim-%d", attempt+2))
	}
	_, err := f.result(run)
	failed := jobFailure(t, err)
	if failed.Attempts != 2 || failed.Failure.Reason != "LEASE_LOST" || failed.Failure.Kind != leasestore.SystemFailure {
		t.Errorf("result: %+v, %+v", failed, failed.Failure)
	}
	f.until("no container is left", func() bool { return len(f.containers(f.job("poison"))) == 0 })
	f.proven()
}
