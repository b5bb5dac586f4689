package leasestore_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

func TestEnqueueOffersADueJobAtOnceIfAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("a", 0))
	tests := map[string]struct {
		dispatch bool
		at       time.Time
		status   leasestore.Status
		attempt  int64
	}{
		"not asked":     {false, time.Time{}, leasestore.Pending, 0},
		"asked and due": {true, time.Time{}, leasestore.Queued, 1},
		"not due yet":   {true, time.Now().Add(time.Hour), leasestore.Pending, 0},
	}
	for name, tt := range tests {
		enqueue := leasestore.EnqueueRequest{JobID: uuid.New(), Definition: "a", WorkflowID: "w", Dispatch: tt.dispatch, ScheduledAt: tt.at}
		for range 2 { // the same request again finds the same job
			job := try(f.Enqueue(t.Context(), enqueue)).or(t)
			if job.Status != tt.status || job.DispatchAttempt != tt.attempt {
				t.Errorf("%s: %s, dispatch attempt %d", name, job.Status, job.DispatchAttempt)
			}
		}
		if tt.status == leasestore.Queued {
			try(f.Claim(t.Context(), request(try(f.Job(t.Context(), enqueue.JobID)).or(t), alice))).or(t)
		}
	}
}
