package tests

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof"
)

// click is a row of the operator's table, in workflows/README.md.
type click struct {
	input map[string]any
	// click waits for its moment and does it.
	click func(*fleet, string)
	// then waits for what must follow before the job can end; it may be nil.
	then func(*fleet, string)
	want leasestore.Status
	// attempts is how often the job was claimed in the end, epoch its last.
	attempts, epoch int64
	// kept says that one container did it all.
	kept bool

	at     time.Time // of the click
	before leasestore.Job
}

// TestT10_EveryButton clicks what can be clicked, on many jobs at once, and
// then waits for each to settle. Whatever was clicked, each job ends as the
// table says, has never had two owners, and leaves no container.
//
// It is seen to fail if awaitRecovery resumes whatever authority it is told of,
// if recovery starts a RunJob under an ID that another job has taken, and if
// RestartRunJobs restarts nothing.
func TestT10_EveryButton(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 40 s")
	}
	t.Parallel()
	f := newFleet(t)
	f.bigNode("local", nil)
	for _, name := range []string{"alice", "bob"} {
		f.worker(name, map[string]string{"EXECUTION_WORKER_CONCURRENCY": "40"})
	}
	rows := map[string]*click{}
	for _, some := range []map[string]*click{cancels(), terminations(), resets(), activityButtons(), starts()} {
		for name, row := range some {
			rows[name] = row
			f.start(name, row.input)
		}
	}
	names := slices.Sorted(maps.Keys(rows))
	for _, name := range names {
		row := rows[name]
		row.click(f, name)
		row.at, row.before = time.Now(), f.job(name)
	}
	for _, name := range names {
		row := rows[name]
		t.Run(name, func(t *testing.T) { f.in(t).settles(t, name, row) })
	}
	f.proven()
	f.until("no container is left", func() bool { return len(f.allContainers()) == 0 })
}

// in is the fleet as a subtest uses it.
func (f *fleet) in(t *testing.T) *fleet {
	t.Helper()
	copied := *f
	copied.t = t
	return &copied
}

func (f *fleet) settles(t *testing.T, name string, row *click) {
	t.Helper()
	if row.then != nil {
		row.then(f, name)
	}
	f.until("the job has ended", func() bool { return f.job(name).Status.Ended() })
	job := f.job(name)
	t.Logf("settled %s after the click, at %s", job.EndedAt.Sub(row.at).Round(100*time.Millisecond), job.EndedAt)
	if job.Status != row.want || job.Attempt != row.attempts || job.Epoch != row.epoch {
		t.Errorf("job ended as %s after %d attempts in epoch %d, want %s, %d, %d: %s\n%v", job.Status, job.Attempt, job.Epoch,
			row.want, row.attempts, row.epoch, job.Failure.Message, f.events(job.ID))
	}
	if row.kept && job.ContainerID != row.before.ContainerID {
		t.Errorf("container %s did not go on; %s ended the job", row.before.ContainerID, job.ContainerID)
	}
	f.until("its containers are gone", func() bool { return len(f.containers(job)) == 0 })
}

// proven checks the ledger and the rows.
func (f *fleet) proven() {
	f.t.Helper()
	violations, err := proof.Check(f.t.Context(), f.pool)
	f.must(err)
	for _, violation := range violations {
		f.t.Error(violation)
	}
}

// bigNode registers the Docker daemon as a node with room for all jobs.
func (f *fleet) bigNode(id string, labels map[string]string) {
	f.t.Helper()
	f.nodeAt(id, f.docker, labels)
}

func (f *fleet) nodeAt(id, endpoint string, labels map[string]string) {
	f.t.Helper()
	_, err := f.store.RegisterNode(f.t.Context(), leasestore.Node{ID: id, Endpoint: endpoint, Capacity: 100, Labels: labels})
	f.must(err)
	_, err = f.store.ReportNode(f.t.Context(), id, leasestore.NodeReport{Healthy: true})
	f.must(err)
}
