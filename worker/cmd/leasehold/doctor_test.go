package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
	"github.com/leasehold/leasehold/worker"
)

func TestDoctorSeesNodesAndLeasesAsTheyAre(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	store := leasestore.New(pool)
	d := &doctor{
		c: &cli{now: time.Now}, pool: pool, store: store,
		config: worker.Config{NodeTTL: 30 * time.Second, RecoveryInterval: 15 * time.Second},
	}
	says := func(detail string, err error) func(want string) {
		return func(want string) {
			t.Helper()
			if err != nil {
				detail = "FAIL " + err.Error()
			}
			if !strings.HasPrefix(detail, want) {
				t.Errorf("it says %q, want %q", detail, want)
			}
		}
	}
	change := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	says(d.checkNodes(t.Context()))("none takes jobs, so only HEARTBEAT jobs run")
	must[leasestore.Node](t)(store.RegisterNode(t.Context(), leasestore.Node{ID: "n", Endpoint: "unix:///n", Capacity: 4}))
	says(d.checkNodes(t.Context()))("FAIL node n does not answer (not probed yet): repair it, or leasehold nodes drain n")
	must[leasestore.Node](t)(store.ReportNode(t.Context(), "n", leasestore.NodeReport{Healthy: true}))
	says(d.checkNodes(t.Context()))("1 ready, 0 of 4 slots used")
	change(`update leasehold.runtime_node set heartbeat_at = heartbeat_at - interval '1 minute'`)
	says(d.checkNodes(t.Context()))("FAIL node n was last probed 1m0s ago, so it gets no jobs")
	must[leasestore.Node](t)(store.DrainNode(t.Context(), "n"))
	says(d.checkNodes(t.Context()))("none takes jobs")

	says(d.checkLeases(t.Context()))("0 live, 0 that just ran out")
	must[leasestore.Definition](t)(store.Apply(t.Context(), leasestore.Definition{Name: "d", Kind: leasestore.Heartbeat, Spec: []byte(`{}`)}))
	job := queued(t, store, "d")
	must[leasestore.Lease](t)(store.Claim(t.Context(), leasestore.ClaimRequest{
		JobID: job.ID, Generation: job.Generation, DispatchAttempt: job.DispatchAttempt, RequestID: uuid.New(),
		Holder: leasestore.Holder{Worker: "w", Process: uuid.New()}, Turn: 1, TTL: time.Minute,
	}))
	says(d.checkLeases(t.Context()))("1 live, 0 that just ran out")
	change(`update leasehold.lease set expires_at = clock_timestamp() - interval '5 seconds'`)
	says(d.checkLeases(t.Context()))("0 live, 1 that just ran out")
	change(`update leasehold.lease set expires_at = clock_timestamp() - interval '10 minutes'`)
	says(d.checkLeases(t.Context()))("FAIL 1 leases ran out and are not recovered, the first one 10m0s ago")
}

func TestParseAge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "36h": 36 * time.Hour, "0s": 0, "0d": 0} {
		if got, err := parseAge(text); got != want || err != nil {
			t.Errorf("%s is %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "soon", "-1h", "-1d", "1.5d", "99999999999d", "40000d", "7"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%q is taken as %s", text, got)
		}
	}
}
