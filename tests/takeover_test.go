package tests

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// defaults are the timing of an installation that sets none.
var defaults = map[string]string{
	"EXECUTION_WORKER_LEASE_DURATION": "30s", "EXECUTION_WORKER_LEASE_RENEW_INTERVAL": "10s",
	"EXECUTION_WORKER_HEARTBEAT_TIMEOUT": "10s", "EXECUTION_WORKER_SCHEDULE_TO_START": "5s",
	"EXECUTION_WORKER_RECOVERY_INTERVAL": "15s",
}

// counting writes numbered lines and ends with 7 when the test finishes it.
func counting() map[string]any {
	return shell(`trap "exit 7" USR1; i=0; while :; do i=$((i+1)); echo $i; sleep 0.2; done`)
}

// A worker that is killed with -9 is replaced inside its job's lease: heartbeat
// timeout, timer and sticky queue, and some seconds for a busy machine. It is
// seen to fail if SuperviseContainer gets two attempts, so that the second waits
// for the dead process's queue.
func TestT3_AKilledWorkerIsReplacedInTime(t *testing.T) {
	tests := map[string]struct {
		settings map[string]string
		within   time.Duration
	}{
		"with the default settings":       {nil, 15 * time.Second},
		"with a heartbeat timeout of 5 s": {map[string]string{"EXECUTION_WORKER_HEARTBEAT_TIMEOUT": "5s"}, 10 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.node("local")
			alice := f.worker("alice", defaults, tt.settings)
			run := f.start("counted", counting())
			before := f.supervised("counted")
			f.worker("bob", defaults, tt.settings)
			killed := time.Now()
			f.must(alice.Process.Kill())
			took := f.takenOverAt(before).Sub(killed)
			t.Logf("TAKE-OVER %s: %s after the kill", name, took.Round(10*time.Millisecond))
			if took > tt.within {
				t.Errorf("the take-over took %s, more than %s", took, tt.within)
			}
			f.finish(before)
			_, err := f.result(run)
			f.intact(before, jobFailure(t, err).ExitCode)
		})
	}
}

// takenOverAt waits until another process has the lease, in the same epoch.
func (f *fleet) takenOverAt(job leasestore.Job) time.Time {
	f.t.Helper()
	var at time.Time
	f.until("the lease is taken over", func() bool {
		for _, entry := range f.ledger(job.ID) {
			if entry.Event == "TAKEN_OVER" && entry.Worker != "alice" {
				at = entry.At
			}
		}
		return !at.IsZero()
	})
	return at
}

// intact checks what a take-over must not touch: epoch, attempt, container, exit
// code, and the log, of which no line is lost or doubled.
func (f *fleet) intact(before leasestore.Job, exit *int) {
	f.t.Helper()
	job := f.job(before.WorkflowID)
	if job.Epoch != int64(1+f.count(job, "RECOVERED")) || job.Attempt != 1 || job.ContainerID != before.ContainerID {
		f.t.Errorf("job: epoch %d, attempt %d, container %s instead of %s\n%s",
			job.Epoch, job.Attempt, job.ContainerID, before.ContainerID, f.events(job.ID))
	}
	if exit == nil || *exit != 7 {
		f.t.Errorf("exit code is %v, want 7", exit)
	}
	lines := strings.Fields(job.LogTail)
	for i, line := range lines {
		if line != fmt.Sprint(i+1) {
			f.t.Fatalf("line %d of the log is %s", i+1, line)
		}
	}
	if len(lines) < 5 {
		f.t.Errorf("the log has %d lines: %q", len(lines), job.LogTail)
	}
	f.proven()
}

// A worker that hangs is replaced, and changes nothing when it goes on. Temporal
// may have given it the tasks of the take-over too, since its polls are still
// open; then the lease runs out and recovery adopts the container. It is seen to
// fail if an earlier turn may prove a lease.
func TestT3_AFrozenWorkerIsReplacedAndWakesToNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	alice := f.worker("alice")
	run := f.start("counted", adopted(counting()))
	before := f.supervised("counted")
	f.worker("bob")
	frozen := time.Now()
	f.must(alice.Process.Signal(syscall.SIGSTOP))
	f.until("the lease is no longer alice's", func() bool {
		lease, err := f.store.Lease(t.Context(), before.ID)
		return err == nil && (lease.Remaining < 0 || lease.Holder.Worker == "bob")
	})
	f.until("another has the lease", func() bool {
		lease, err := f.store.Lease(t.Context(), before.ID)
		return err == nil && lease.Holder.Worker == "bob"
	})
	t.Logf("FROZEN: replaced %s after SIGSTOP, in epoch %d", time.Since(frozen).Round(10*time.Millisecond), f.job("counted").Epoch)
	f.must(alice.Process.Signal(syscall.SIGCONT))
	f.until("bob supervises", func() bool {
		return strings.Contains(f.heartbeat("counted", activities.SuperviseContainerName), `"worker":"bob"`)
	})
	f.finish(before)
	_, err := f.result(run)
	f.intact(before, jobFailure(t, err).ExitCode)
}

// heartbeat is the last heartbeat of a pending activity.
func (f *fleet) heartbeat(id, name string) string {
	f.t.Helper()
	payloads := f.pending(id, name).GetHeartbeatDetails().GetPayloads()
	if len(payloads) == 0 {
		return ""
	}
	return string(payloads[0].GetData())
}

// A worker that is told to stop claims nothing more, hands its job over within
// 2 seconds, and costs it no attempt. It is seen to fail if activities wait for
// the stop timeout, and if the claims queue is polled while the worker drains.
func TestT3_AStoppedWorkerHandsOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.node("local")
	alice := f.worker("alice", defaults)
	run := f.start("counted", counting())
	before := f.supervised("counted")
	f.worker("bob", defaults)
	stopped := time.Now()
	f.must(alice.Process.Signal(syscall.SIGTERM))
	later := []string{"one", "two", "three", "four", "five"}
	for _, id := range later {
		f.start(id, shell("echo "+id))
	}
	took := f.takenOverAt(before).Sub(stopped)
	t.Logf("HAND-OVER: %s after SIGTERM", took.Round(10*time.Millisecond))
	if took > 2*time.Second {
		t.Errorf("the hand-over took %s, more than 2 s", took)
	}
	for _, id := range later {
		if _, err := f.result(f.temporal.Client.GetWorkflow(t.Context(), id, "")); err != nil {
			t.Error(err)
		}
		for _, entry := range f.ledger(f.job(id).ID) {
			if entry.Event == "CLAIMED" && entry.Worker == "alice" && entry.At.Sub(stopped) > time.Second {
				t.Errorf("the stopping worker claimed %s %s after SIGTERM", id, entry.At.Sub(stopped))
			}
		}
		if job := f.job(id); job.Attempt != 1 {
			t.Errorf("job %s took %d attempts\n%s", id, job.Attempt, f.events(job.ID))
		}
	}
	f.finish(before)
	_, err := f.result(run)
	f.intact(before, jobFailure(t, err).ExitCode)
}
