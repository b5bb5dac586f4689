package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"github.com/leasehold/leasehold/leasestore"
)

// RecoverExpiredInput is the input of the RecoverExpiredLeases workflow.
type RecoverExpiredInput struct {
	BatchSize int `json:"batch_size,omitempty"` // 1 to 1000; defaults to 100
	Batches   int `json:"batches,omitempty"`    // 1 to 100; defaults to 10
}

// ParseRecoverInput reads RecoverExpiredLeases' input; none means the defaults.
func ParseRecoverInput(raw []byte) (RecoverExpiredInput, error) {
	in := RecoverExpiredInput{BatchSize: 100, Batches: 10}
	if len(raw) == 0 {
		return in, nil
	}
	if err := decodeStrict(raw, &in); err != nil {
		return in, err
	}
	switch {
	case in.BatchSize < 1 || in.BatchSize > 1000:
		return in, &InputError{"batch_size: must be between 1 and 1000"}
	case in.Batches < 1 || in.Batches > 100:
		return in, &InputError{"batches: must be between 1 and 100"}
	}
	return in, nil
}

// RecoverInput bounds a batch.
type RecoverInput struct {
	BatchSize int `json:"batch_size"`
}

// RecoverBatchResult is what became of a batch of expired leases.
type RecoverBatchResult struct {
	Jobs []RecoveredJob `json:"jobs"`
}

// RecoveredJob is what became of one job whose lease had run out.
type RecoveredJob struct {
	JobID   string            `json:"job_id"`
	Epoch   int64             `json:"epoch"`
	Status  leasestore.Status `json:"status"` // RUNNING if it was adopted
	Message string            `json:"message"`
}

// RecoveredSignal tells a job's RunJob that recovery has settled it.
const RecoveredSignal = "leasehold-recovered"

// Settled is the payload of a [RecoveredSignal].
type Settled struct {
	// Authority is the lease to carry on with, if the container was adopted.
	Authority *leasestore.Authority `json:"authority,omitempty"`
	Node      string                `json:"node,omitempty"`
}

// settling is how many jobs of a batch are settled at once.
const settling = 8

// RecoverBatch takes over expired leases and settles each: an ended container
// gives the job its result; one that still runs is stopped and the job
// released for retry, or adopted if its definition says so. A lease that
// cannot be settled now runs out again and is taken up by a later batch.
func (a *Activities) RecoverBatch(ctx context.Context, in RecoverInput) (RecoverBatchResult, error) {
	info := activity.GetInfo(ctx)
	request := leasestore.RecoverRequest{
		Limit: in.BatchSize, Holder: a.Holder, Turn: turn(info), TTL: time.Duration(a.Timing.Lease),
		RequestID: uuid.NewSHA1(uuid.NameSpaceOID, []byte(info.WorkflowExecution.RunID+"/"+info.ActivityID)),
	}
	recovered, err := sure(ctx, func(ctx context.Context) ([]leasestore.Recovered, error) { return a.Store.Recover(ctx, request) })
	if err != nil {
		return RecoverBatchResult{}, applicationError(err)
	}
	result := RecoverBatchResult{Jobs: make([]RecoveredJob, len(recovered))}
	kept := a.keepAll(ctx, recovered)
	slots := make(chan struct{}, settling)
	var all sync.WaitGroup
	for i, taken := range recovered {
		lease := kept[i]
		all.Go(func() {
			defer lease.done()
			slots <- struct{}{}
			defer func() { <-slots }()
			result.Jobs[i] = a.settle(lease.held, taken)
		})
	}
	a.beatUntil(ctx, &all, fmt.Sprintf("settling %d", len(recovered)))
	return result, nil
}

// keptLease is a recovered lease that is renewed until done.
type keptLease struct {
	held context.Context
	done func()
}

// keepAll renews the leases from now on: some wait for their turn to be settled.
func (a *Activities) keepAll(ctx context.Context, recovered []leasestore.Recovered) []keptLease {
	kept := make([]keptLease, len(recovered))
	for i, taken := range recovered {
		kept[i] = keptLease{held: ctx, done: func() {}}
		if !taken.GivenUp {
			kept[i].held, kept[i].done = a.Recovering.Keep(ctx, taken.Lease)
		}
	}
	return kept
}

// beatUntil sends heartbeats until all is done.
func (a *Activities) beatUntil(ctx context.Context, all *sync.WaitGroup, phase string) {
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	ticker := time.NewTicker(min(time.Duration(a.Timing.Heartbeat)/3, 3*time.Second))
	defer ticker.Stop()
	for {
		activity.RecordHeartbeat(ctx, phase)
		select {
		case <-over:
			return
		case <-ticker.C:
		}
	}
}
