package leasestore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

func (f fixture) used() map[string]int64 {
	f.t.Helper()
	used := map[string]int64{}
	for _, node := range try(f.Nodes(f.t.Context())).or(f.t) {
		used[node.ID] = node.Used
	}
	return used
}

func TestL7_TheLeastLoadedNodeWithTheLabelsIsChosen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("big", 4, map[string]string{"zone": "a", "gpu": "yes"})
	f.node("small", 2, map[string]string{"zone": "a"})
	f.node("elsewhere", 100, map[string]string{"zone": "b"})
	f.apply(selecting("d", "zone", "a"))
	var order []string
	for range 6 {
		order = append(order, f.claim(f.queued("d"), alice).NodeID)
	}
	if want := "[big small big big small big]"; fmt.Sprint(order) != want {
		t.Errorf("placed on %v, want %s", order, want)
	}
	_, err := f.Claim(t.Context(), request(f.queued("d"), alice))
	if refused := wants[*leasestore.NotEligibleError](t, err); refused.Reason != leasestore.NoFreeSlot {
		t.Errorf("refused as %s", refused.Reason)
	}
}

func TestL7_HeartbeatJobsNeverGetANode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("one", 1, nil)
	if lease := f.claimed(); lease.NodeID != "" || f.used()["one"] != 0 {
		t.Errorf("the lease is %+v", lease)
	}
}

func TestL7_EveryEndOfALeaseFreesItsSlot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(fixture, leasestore.Authority) error{
		"complete": holding["complete"], "fail": holding["fail"], "cancel": holding["cancel"], "release": holding["release"],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			lease := f.placed()
			if f.used()["one"] != 1 {
				t.Fatal("the lease has no slot")
			}
			check(t, end(f, lease.Authority))
			if f.used()["one"] != 0 {
				t.Error("the slot is still taken")
			}
		})
	}
}

// Many claim at once, over and over: no node is overfilled, no slot is lost,
// and all slots are used. Seeded fault: `s.job_id is null` dropped.
func TestL7_NodesAreNeverOverfilledUnderContention(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	capacity := map[string]int64{"a": 1, "b": 2, "c": 4}
	for id, n := range capacity {
		f.node(id, n, nil)
	}
	f.apply(containers("report"))
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		leases := make([]leasestore.Lease, 12)
		claims := make([]func(), len(leases))
		for i := range claims {
			job := f.queued("report")
			claims[i] = func() {
				for {
					lease, err := f.Claim(t.Context(), request(job, alice))
					refused, ok := errors.AsType[*leasestore.NotEligibleError](err)
					switch {
					case err == nil:
						leases[i] = lease
						return
					case !ok || refused.Reason != leasestore.Contended && refused.Reason != leasestore.NoFreeSlot:
						t.Error(err)
						return
					case refused.Reason == leasestore.NoFreeSlot:
						return
					}
				}
			}
		}
		race(claims...)
		if used := f.used(); !maps.Equal(used, capacity) {
			t.Fatalf("slots in use are %v, want %v", used, capacity)
		}
		if orphans := read[int](f, `select count(*) from leasehold.lease l where node_id is distinct from
		      (select s.node_id from leasehold.runtime_slot s where s.job_id = l.job_id)`); orphans != 0 {
			t.Fatalf("%d leases have no slot on their node", orphans)
		}
		ends := make([]func(), 0, len(leases))
		for _, lease := range leases {
			if lease.NodeID != "" {
				ends = append(ends, func() { try(f.Complete(t.Context(), lease.Authority, leasestore.Outcome{})).or(t) })
			}
		}
		if len(ends) != 7 {
			t.Fatalf("%d claims were granted, want 7", len(ends))
		}
		race(ends...)
	}
}

// A claim that is not yet committed has a slot, and the next claim takes another
// without waiting for it. Seeded faults: the slot chosen without skip locked; the
// node's row locked.
func TestL7_ClaimsOfOneNodeDoNotQueue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("one", 2, nil)
	f.apply(containers("report"))
	first, second := f.queued("report"), f.queued("report")
	try(leasestore.New(f.begin()).Claim(t.Context(), request(first, alice))).or(t)
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if lease := try(f.Claim(soon, request(second, bob))).or(t); lease.NodeID != "one" {
		t.Errorf("placed on %q", lease.NodeID)
	}
}

func TestANodeWithRunningJobsIsNotRemoved(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lease := f.placed()
	_, err := f.RemoveNode(t.Context(), "one")
	wants[*leasestore.ConflictError](t, err)
	try(f.Complete(t.Context(), lease.Authority, leasestore.Outcome{})).or(t)
	try(f.RemoveNode(t.Context(), "one")).or(t)
	_, err = f.RemoveNode(t.Context(), "one")
	wants[*leasestore.NotFoundError](t, err)
	_, err = f.ReportNode(t.Context(), "one", leasestore.NodeReport{})
	wants[*leasestore.NotFoundError](t, err)
}

// Removal and claims of one node race without a deadlock: either the node goes
// or the job runs on it.
func TestRemovingANodeRacesWithClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(containers("report"))
	for range 15 {
		f.node("one", 2, nil)
		job := f.queued("report")
		var lease leasestore.Lease
		var claimed, removed error
		race(func() { lease, claimed = f.Claim(t.Context(), request(job, alice)) },
			func() { _, removed = f.RemoveNode(t.Context(), "one") })
		if claimed != nil {
			wants[*leasestore.NotEligibleError](t, claimed)
			continue
		}
		wants[*leasestore.ConflictError](t, removed)
		try(f.Complete(t.Context(), lease.Authority, leasestore.Outcome{})).or(t)
	}
}

// Seeded fault: RemoveNode without the lock on the slots.
func TestRemovingANodeWaitsForAClaimThatIsBeingMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("one", 2, nil)
	f.apply(containers("report"))
	job := f.queued("report")
	tx := f.begin()
	try(leasestore.New(tx).Claim(t.Context(), request(job, alice))).or(t)
	removed := make(chan error, 1)
	go func() { _, err := f.RemoveNode(t.Context(), "one"); removed <- err }()
	f.waitForWaiters(1)
	check(t, tx.Commit(t.Context()))
	wants[*leasestore.ConflictError](t, <-removed)
}

func TestADrainingNodeComesBackOnlyByRegistration(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("one", 1, nil)
	try(f.DrainNode(t.Context(), "one")).or(t)
	if n := try(f.ReportNode(t.Context(), "one", leasestore.NodeReport{Healthy: true})).or(t); n.State != leasestore.Draining {
		t.Errorf("a probe made it %s", n.State)
	}
	f.node("one", 1, nil)
	if n := try(f.Nodes(t.Context())).or(t)[0]; n.State != leasestore.Ready || n.HeartbeatAt == nil || n.DaemonID != "daemon one" {
		t.Errorf("the node is %+v", n)
	}
	if n := try(f.ReportNode(t.Context(), "one", leasestore.NodeReport{Message: "gone"})).or(t); n.State != leasestore.Unhealthy || n.Message != "gone" {
		t.Errorf("the node is %+v", n)
	}
}
