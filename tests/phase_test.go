package tests

import (
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/faults"
)

// whileClaiming clicks while a claim waits in PostgreSQL for the job's row, and
// then lets it through: it makes a lease.
func whileClaiming(click func(*fleet, string)) func(*fleet, string) {
	return func(f *fleet, id string) {
		f.t.Helper()
		waiting(f, id)
		release := f.blockClaims(id)
		opened(f, id) // a claim that comes now finds a node
		f.until("a claim of "+id+" waits for the row", f.claimIsBlocked)
		click(f, id)
		release()
		f.until(id+" was claimed", func() bool { return f.job(id).Attempt > 0 })
	}
}

// blockClaims locks the row of a job at a moment when no claim waits for it.
func (f *fleet) blockClaims(id string) (release func()) {
	f.t.Helper()
	var held pgx.Tx
	f.until("the row of "+id+" is locked and nobody waits for it", func() bool {
		tx, err := f.pool.Begin(f.t.Context())
		f.must(err)
		_, err = tx.Exec(f.t.Context(), "select from leasehold.job where workflow_id = $1 for update", id)
		f.must(err)
		if f.claimIsBlocked() {
			f.must(tx.Rollback(f.t.Context()))
			return false
		}
		held = tx
		return true
	})
	return func() { f.t.Helper(); f.must(held.Commit(f.t.Context())) }
}

func (f *fleet) claimIsBlocked() bool {
	f.t.Helper()
	var blocked bool
	f.must(f.pool.QueryRow(f.t.Context(), `
		select exists (select from pg_stat_activity
		 where datname = current_database() and wait_event_type = 'Lock' and query like '%wanted as materialized%')`).Scan(&blocked))
	return blocked
}

// whileStarting clicks while StartContainer waits for a daemon that does not
// answer. Once the workflow is at the given activity, if any, it does.
func whileStarting(click func(*fleet, string), next string) func(*fleet, string) {
	return func(f *fleet, id string) {
		f.t.Helper()
		waiting(f, id)
		proxy, err := faults.Listen(f.t.Context(), f.docker)
		f.must(err)
		f.t.Cleanup(func() { _ = proxy.Close() })
		proxy.Silence()
		offered := time.Time{}
		f.until(id+" was claimed", func() bool {
			if time.Since(offered) > time.Second { // probes soon find the node unhealthy
				f.nodeAt("node-of-"+id, "tcp://"+proxy.Address(), map[string]string{"only": id})
				f.wake(id)
				offered = time.Now()
			}
			return f.job(id).Attempt > 0
		})
		f.at(id, activities.StartContainerName)
		f.until("the daemon is asked", func() bool { return proxy.Connections() > 0 })
		click(f, id)
		if next != "" {
			f.at(id, next)
		}
		proxy.Heal()
		f.until("the node is ready again", func() bool { return f.ready("node-of-" + id) })
	}
}

func (f *fleet) ready(node string) bool {
	f.t.Helper()
	nodes, err := f.store.Nodes(f.t.Context())
	f.must(err)
	for _, found := range nodes {
		if found.ID == node {
			return found.State == leasestore.Ready && found.HeartbeatAt != nil && time.Since(*found.HeartbeatAt) < 5*time.Second
		}
	}
	return false
}

// through is the database as seen through a proxy.
func (f *fleet) through(proxy *faults.Proxy) string {
	f.t.Helper()
	at, err := url.Parse(f.databaseURL)
	f.must(err)
	at.Host = proxy.Address()
	return at.String()
}
