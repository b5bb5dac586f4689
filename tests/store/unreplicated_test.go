package store

import (
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// PostgreSQL reports a commit whose wait for the standby was cancelled as done,
// with a warning; one whose session was ended in that wait (case 23: killed
// after the commit) as a lost connection. Both are unknown, both are there, and
// sent again have no second effect. Seeded faults: doubt always returns nil;
// Configure without its OnNotice.
func TestCase22_ACommitThatNoStandbyHasIsUnknown(t *testing.T) {
	t.Parallel()
	waiting, patient := withGhost(t)
	for _, how := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		for _, c := range patient.calls() {
			t.Run(c.name+", "+how, func(t *testing.T) {
				type answer struct {
					value any
					err   error
				}
				answered := make(chan answer, 1)
				go func() { value, err := c.send(waiting.Store); answered <- answer{value, err} }()
				patient.until(`select coalesce(bool_or(` + how + `(pid)), false) from pg_stat_activity
				              where wait_event = 'SyncRep' and pid <> pg_backend_pid()`)
				got := <-answered
				wants[*leasestore.UnknownError](t, got.err)
				if value := reflect.ValueOf(got.value); value.IsValid() && !value.IsZero() {
					t.Errorf("an unknown outcome returned %+v", got.value)
				}
				effects := patient.effects()
				if _, err := c.send(patient.Store); err != nil {
					t.Errorf("sent again: %v", err)
				}
				if again := patient.effects(); again != effects {
					t.Errorf("sent again it had a second effect\n%s\n%s", effects, again)
				}
			})
		}
	}
}

// A claim that was unknown is sent again while the standby is still missing: it
// waits as the first one did. Seeded fault: replaySQL without durably.
func TestCase22_AConfirmationWaitsForTheStandbyToo(t *testing.T) {
	t.Parallel()
	waiting, patient := withGhost(t)
	for _, c := range patient.calls() {
		if c.name == "renew" || c.name == "attach" {
			continue // these are made again
		}
		for range 2 {
			answered := make(chan error, 1)
			go func() { _, err := c.send(waiting.Store); answered <- err }()
			patient.until(`select coalesce(bool_or(pg_cancel_backend(pid)), false) from pg_stat_activity
			              where wait_event = 'SyncRep' and pid <> pg_backend_pid()`)
			wants[*leasestore.UnknownError](t, <-answered)
		}
	}
}

// withGhost is a database whose standby never answers: for a store whose
// commits wait for it, and one whose commits do not.
func withGhost(t *testing.T) (waiting, patient fixture) {
	t.Helper()
	server := testenv.Postgres(t, "synchronous_commit=local", "synchronous_standby_names=ghost")
	must(leasestore.Migrate(t.Context(), server.URL())).or(t)
	patient = at(t, server.URL())
	patient.node("one", 40)
	patient.apply("report", leasestore.Container)
	return at(t, server.URL(), func(c *pgx.ConnConfig) { c.RuntimeParams["synchronous_commit"] = "on" }), patient
}

type call struct {
	name string
	send func(*leasestore.Store) (any, error)
}

// calls are the verbs that change something, on jobs of their own.
func (f fixture) calls() []call {
	f.t.Helper()
	ctx := f.t.Context()
	claim := request(f.queued("report"), alice)
	auth := func() leasestore.Authority { return f.claim(f.queued("report"), alice).Authority }
	renewed, attached, completed, released := auth(), auth(), auth(), auth()
	expired := auth()
	f.exec(`update leasehold.lease set expires_at = clock_timestamp() - interval '1 s', next_check = clock_timestamp() - interval '1 s'
	         where job_id = $1`, expired.JobID)
	r := recovery(bob)
	return []call{
		{"recover", func(s *leasestore.Store) (any, error) { got, err := s.Recover(ctx, r); return got, err }},
		{"claim", func(s *leasestore.Store) (any, error) { return s.Claim(ctx, claim) }},
		{"renew", func(s *leasestore.Store) (any, error) { return s.Renew(ctx, renewed, 2*ttl) }},
		{"attach", func(s *leasestore.Store) (any, error) { return s.Attach(ctx, attached, "one", "c1", 2*ttl) }},
		{"complete", func(s *leasestore.Store) (any, error) { return s.Complete(ctx, completed, leasestore.Outcome{}) }},
		{"release", func(s *leasestore.Store) (any, error) { return s.Release(ctx, released, gone, false) }},
	}
}

// effects is all that the calls can change, without what a repeated renewal may
// move.
func (f fixture) effects() string {
	f.t.Helper()
	return read[string](f, `select (select string_agg(g.event || g.epoch || g.job_id, ' ' order by id) from leasehold.ledger g)
	    || (select string_agg(j.status || j.epoch || j.attempt || j.container_id || j.id, ' ' order by id) from leasehold.job j)
	    || (select string_agg(l.token || l.worker || coalesce(l.container_id, '') || l.job_id, ' ' order by job_id) from leasehold.lease l)`)
}
