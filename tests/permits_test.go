package tests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/faults"
	"github.com/leasehold/leasehold/tests/proof/wire"
)

// probing is a HEARTBEAT job.
func probing(endpoint string) map[string]any {
	return map[string]any{"kind": "HEARTBEAT", "heartbeat": map[string]any{"endpoint": endpoint}}
}

// Many jobs wait for one worker with 10 permits: no job is claimed before it
// can run, so no lease ever runs out, and there are never more than 10. It is
// seen to fail if the claims queue is polled without a permit.
func TestT7_NoClaimedJobWaitsForAPermit(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 40 s")
	}
	t.Parallel()
	const permits, heartbeats, containers = 10, 90, 6
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(endpoint.Close)
	f := newFleet(t)
	f.bigNode("local", nil)
	var ids []string
	for i := range heartbeats + containers {
		input := with(probing(endpoint.URL), "definition", "probe")
		if i%16 == 0 {
			input = with(shell("sleep 1"), "definition", "sleep")
		}
		ids = append(ids, fmt.Sprintf("job-%d", i))
		f.start(ids[i], input)
	}
	f.worker("alice", map[string]string{"EXECUTION_WORKER_CONCURRENCY": fmt.Sprint(permits)})
	for _, id := range ids {
		if _, err := f.result(f.temporal.Client.GetWorkflow(t.Context(), id, "")); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	if most := f.mostLeases(); most > permits || most < permits/2 {
		t.Errorf("there were up to %d leases at a time, with %d permits", most, permits)
	}
	var lapsed int
	f.must(f.pool.QueryRow(t.Context(), "select count(*) from leasehold.ledger where event = 'RECOVERED'").Scan(&lapsed))
	if lapsed > 0 {
		t.Errorf("%d leases ran out", lapsed)
	}
	f.proven()
}

// mostLeases is how many leases there were at most at a time, by the ledger.
func (f *fleet) mostLeases() int {
	f.t.Helper()
	rows, err := f.pool.Query(f.t.Context(), `
		select at, case when event = 'CLAIMED' then 1 else -1 end from leasehold.ledger
		 where event in ('CLAIMED', 'COMPLETED', 'FAILED', 'RELEASED', 'CANCELED')`)
	f.must(err)
	defer rows.Close()
	type change struct {
		at   time.Time
		more int
	}
	var changes []change
	for rows.Next() {
		var c change
		f.must(rows.Scan(&c.at, &c.more))
		changes = append(changes, c)
	}
	f.must(rows.Err())
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	now, most := 0, 0
	for _, c := range changes {
		now += c.more
		most = max(most, now)
	}
	return most
}

// The connection to PostgreSQL is cut at the moment when a job's end has been
// committed and nobody was told, and stays cut until the worker has given up
// asking. The only permit is found again by reconciliation: the job has ended
// once, and the next one runs. It is seen to fail if an unconfirmed end is never
// reconciled.
func TestT7_AnEndWhoseConfirmationIsLostFreesItsPermit(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(endpoint.Close)
	f := newFleet(t)
	link, err := faults.Listen(t.Context(), f.pool.Config().ConnConfig.Host+":"+fmt.Sprint(f.pool.Config().ConnConfig.Port))
	f.must(err)
	t.Cleanup(func() { link.Close() })
	var cut atomic.Bool
	proxy, err := wire.Listen(t.Context(), f.through(link), func(p wire.Point) bool {
		if p == wire.BeforeCommandComplete && !cut.Load() && f.hasEnded("first") && cut.CompareAndSwap(false, true) {
			link.Refuse()
		}
		return false
	})
	f.must(err)
	t.Cleanup(func() { proxy.Close() })
	f.worker("alice", map[string]string{"EXECUTION_WORKER_CONCURRENCY": "1", "DATABASE_URL": proxy.URL()})
	first := f.start("first", probing(endpoint.URL))
	f.until("the connection is cut", cut.Load)
	second := f.start("second", probing(endpoint.URL))
	lease := time.NewTimer(12 * time.Second) // longer than a report asks again, and than the lease
	defer lease.Stop()
	<-lease.C
	link.Heal()
	for _, run := range []interface {
		Get(context.Context, any) error
	}{first, second} {
		f.must(run.Get(t.Context(), nil))
	}
	for _, id := range []string{"first", "second"} {
		if job := f.job(id); job.Attempt != 1 || f.count(job, "COMPLETED") != 1 || job.Status != leasestore.Completed {
			t.Errorf("%s: %s\n%s", id, job.Status, f.events(job.ID))
		}
	}
	f.proven()
}

// hasEnded is asked from a proxy's goroutines.
func (f *fleet) hasEnded(id string) bool {
	jobs, err := f.store.Jobs(f.t.Context(), leasestore.JobFilter{WorkflowID: id})
	return err == nil && len(jobs) == 1 && jobs[0].Status.Ended()
}
