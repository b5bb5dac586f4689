package leasestore_test

import (
	"testing"

	"github.com/leasehold/leasehold/leasestore"
)

func TestL12_AttachingIsIdempotentForTheSameContainerOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	auth := f.placed().Authority
	first := try(f.Attach(t.Context(), auth, "one", "c1", ttl)).or(t)
	again := try(f.Attach(t.Context(), auth, "one", "c1", ttl)).or(t)
	if first.ContainerID != "c1" || again.ContainerID != "c1" || again.NodeID != "one" {
		t.Errorf("attached %+v", again)
	}
	before := f.row(auth.JobID)
	_, err := f.Attach(t.Context(), auth, "one", "c2", ttl)
	if conflict := wants[*leasestore.ConflictError](t, err); conflict.Recorded != "c1" || conflict.Presented != "c2" {
		t.Errorf("refused as %v", conflict)
	}
	_, err = f.Attach(t.Context(), auth, "two", "c1", ttl)
	if conflict := wants[*leasestore.ConflictError](t, err); conflict.Recorded != "one" || conflict.Presented != "two" {
		t.Errorf("refused as %v", conflict)
	}
	_, err = f.Attach(t.Context(), auth.By(bob, turn2), "two", "c1", ttl)
	wants[*leasestore.ConflictError](t, err)
	if f.row(auth.JobID) != before {
		t.Error("a refused attachment changed the row")
	}
	if job := try(f.Job(t.Context(), auth.JobID)).or(t); job.ContainerID != "c1" {
		t.Errorf("the job has container %q", job.ContainerID)
	}
}

func TestL12_AJobWithoutANodeTakesNoContainer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.Attach(t.Context(), f.claimed().Authority, "one", "c1", ttl)
	wants[*leasestore.ConflictError](t, err)
}

func TestL10_AttachingInALaterTurnIsRecordedAsATakeOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	auth := f.placed().Authority.By(bob, turn2)
	if lease := try(f.Attach(t.Context(), auth, "one", "c1", ttl)).or(t); lease.Holder != bob || lease.Turn != turn2 {
		t.Errorf("the lease is %+v", lease)
	}
	if entries := try(f.Ledger(t.Context(), auth.JobID)).or(t); len(entries) != 2 || entries[1].Event != "TAKEN_OVER" {
		t.Errorf("the ledger has %+v", entries)
	}
}

func TestTheFirstIntentStands(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	auth := f.placed().Authority
	try(f.Intend(t.Context(), auth, leasestore.TimeoutIntent, ttl)).or(t)
	try(f.Intend(t.Context(), auth, leasestore.CancelIntent, ttl)).or(t)
	if job := try(f.Job(t.Context(), auth.JobID)).or(t); job.Intent != leasestore.TimeoutIntent {
		t.Errorf("the intent is %s", job.Intent)
	}
	job := try(f.Release(t.Context(), auth, lost, true)).or(t)
	f.claim(f.dispatched(job), alice)
	if job := try(f.Job(t.Context(), auth.JobID)).or(t); job.Intent != "" {
		t.Errorf("the next attempt begins with the intent %s", job.Intent)
	}
}
