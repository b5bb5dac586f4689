package leasestore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

func TestL3_AClaimStartsTheJobUnderANewLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("one", 1, nil)
	f.apply(containers("report"))
	job := f.queued("report")
	sent := time.Now()
	lease := f.claim(job, alice)
	if lease.Epoch != 1 || lease.Token == (leasestore.Token{}) || lease.Holder != alice || lease.Turn != turn1 ||
		lease.JobID != job.ID || lease.Generation != 1 || lease.NodeID != "one" || lease.Endpoint != "unix:///one" {
		t.Errorf("the lease is %+v", lease)
	}
	if lease.Remaining > ttl || lease.Remaining < ttl-5*time.Second {
		t.Errorf("%s remain of %s", lease.Remaining, ttl)
	}
	if lease.Deadline.After(sent.Add(time.Since(sent) + ttl)) {
		t.Error("[L2] the deadline does not count from before the request")
	}
	job = try(f.Job(t.Context(), job.ID)).or(t)
	if job.Status != leasestore.Running || job.Attempt != 1 || job.Epoch != 1 || job.StartedAt == nil || job.NodeID != "one" {
		t.Errorf("the job is %+v", job)
	}
}

// scene is a claim that is about to be made.
type scene struct {
	fixture
	job leasestore.Job
	r   *leasestore.ClaimRequest
}

// Each case makes one rule of [L3] fail; all others hold.
func TestL4_ARefusedClaimSaysWhyAndWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		def    leasestore.Definition
		before func(scene) (blocker string)
		reason leasestore.Ineligibility
	}{
		"the job was withdrawn": {heartbeats("d", 0), func(s scene) string {
			try(s.Withdraw(s.t.Context(), s.job.ID, boom.Failure)).or(s.t)
			return ""
		}, leasestore.NotQueued},
		"the job runs": {heartbeats("d", 0), func(s scene) string {
			s.claim(s.job, bob)
			return ""
		}, leasestore.NotQueued},
		"it was offered at another time": {heartbeats("d", 0), func(s scene) string {
			s.r.DispatchAttempt++
			return ""
		}, leasestore.StaleDispatch},
		"another generation was expected": {heartbeats("d", 0), func(s scene) string {
			s.r.Generation++
			return "definition d"
		}, leasestore.StaleDefinition},
		"the definition has changed": {heartbeats("d", 0), func(s scene) string {
			s.apply(heartbeats("d", 7))
			return "definition d"
		}, leasestore.StaleDefinition},
		"the definition is paused": {heartbeats("d", 0), func(s scene) string {
			try(s.SetPaused(s.t.Context(), "d", true)).or(s.t)
			return "definition d"
		}, leasestore.Paused},
		"the only one that may run runs": {heartbeats("d", 1), func(s scene) string {
			s.exec(`update leasehold.job set scheduled_at = scheduled_at + interval '1 hour' where id = $1`, s.job.ID)
			other := s.queued("d")
			s.claim(other, bob)
			return "job " + other.ID.String()
		}, leasestore.LimitReached},
		"two of two run": {heartbeats("d", 2), func(s scene) string {
			first := s.queued("d")
			s.claim(first, bob)
			s.claim(s.queued("d"), bob)
			return "job " + first.ID.String()
		}, leasestore.LimitReached},
		"an earlier one waits in front": {heartbeats("d", 1), func(s scene) string {
			front := s.queued("d")
			s.exec(`update leasehold.job set scheduled_at = scheduled_at - interval '1 hour' where id = $1`, front.ID)
			return "job " + front.ID.String()
		}, leasestore.BehindAnother},
		"no node is there":            {containers("d"), func(s scene) string { return "" }, leasestore.NoReadyNode},
		"the node is not healthy":     {containers("d"), unhealthy, leasestore.NoReadyNode},
		"the node drains":             {containers("d"), draining, leasestore.NoReadyNode},
		"the node was silent":         {containers("d"), silent, leasestore.NoReadyNode},
		"the node lacks a label":      {selecting("d", "gpu", "yes"), labelled, leasestore.NoReadyNode},
		"the node has no free slot":   {containers("d"), full, leasestore.NoFreeSlot},
		"the node was made too small": {containers("d"), shrunk, leasestore.NoFreeSlot},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.apply(tt.def)
			job := f.queued(tt.def.Name)
			r := request(job, alice)
			blocker := tt.before(scene{f, job, &r})
			before := f.row(job.ID)
			lease, err := f.Claim(t.Context(), r)
			refused := wants[*leasestore.NotEligibleError](t, err)
			if refused.Reason != tt.reason || refused.Blocker != blocker || refused.JobID != job.ID {
				t.Errorf("refused as %s behind %q, want %s behind %q: %v", refused.Reason, refused.Blocker, tt.reason, blocker, err)
			}
			if lease != (leasestore.Lease{}) {
				t.Errorf("a refused claim returned a lease")
			}
			if f.row(job.ID) != before {
				t.Error("a refused claim changed the job")
			}
		})
	}
}

func selecting(name, label, value string) leasestore.Definition {
	def := containers(name)
	def.NodeSelector = map[string]string{label: value}
	return def
}

func unhealthy(s scene) string {
	s.node("one", 1, nil)
	try(s.ReportNode(s.t.Context(), "one", leasestore.NodeReport{Message: "no answer"})).or(s.t)
	return ""
}

func draining(s scene) string {
	s.node("one", 1, nil)
	try(s.DrainNode(s.t.Context(), "one")).or(s.t)
	return ""
}

func silent(s scene) string {
	s.node("one", 1, nil)
	s.exec(`update leasehold.runtime_node set heartbeat_at = heartbeat_at - interval '31 seconds'`)
	return ""
}

func labelled(s scene) string {
	s.node("one", 1, map[string]string{"gpu": "no"})
	return ""
}

func full(s scene) string {
	s.node("one", 1, nil)
	s.claim(s.queued("d"), bob)
	return "node one"
}

func shrunk(s scene) string {
	s.node("one", 3, nil)
	s.claim(s.queued("d"), bob)
	s.node("one", 1, nil)
	return "node one"
}

func TestL4_AJobThatDoesNotExistIsNotFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.Claim(t.Context(), request(leasestore.Job{ID: uuid.New(), Generation: 1, DispatchAttempt: 1}, alice))
	wants[*leasestore.NotFoundError](t, err)
}

func TestL3_AStaleJobInFrontIsNotInTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("d", 1))
	f.queued("d") // its workflow was terminated: nobody will ever end it
	changed := heartbeats("d", 1)
	changed.Spec = []byte(`{"endpoint": "http://elsewhere"}`)
	f.apply(changed)
	f.claim(f.queued("d"), alice)
}
