package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// inBatch is how many leases one statement renews or reconciles.
const inBatch = 500

// start starts the goroutine that renews and reconciles. It does not end with
// ctx, because work is to be kept while a worker drains: [keeper.close] ends it.
func (k *keeper) start(ctx context.Context) {
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.over = make(chan struct{})
	go func() {
		defer close(k.over)
		k.run(ctx)
	}()
}

// close stops renewing, waits for the goroutine, and ends the contexts that are
// still in use. A lease kept later gets a context that has ended.
func (k *keeper) close() {
	k.stop()
	<-k.over
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	for id := range k.kept {
		k.remove(id, errKeeperStopped)
	}
	clear(k.awaiting)
}

func (k *keeper) run(ctx context.Context) {
	round := time.NewTicker(k.renew)
	defer round.Stop()
	again := time.NewTimer(0)
	again.Stop()
	defer again.Stop()
	for {
		unknown := false
		select {
		case <-ctx.Done():
			return
		case <-round.C:
			unknown = k.renewAll(ctx, func(*entry) bool { return true })
			k.reconcile(ctx)
		case <-again.C:
			unknown = k.renewAll(ctx, func(e *entry) bool { return e.again })
		}
		if unknown {
			again.Reset(k.soon())
		}
	}
}

// soon is when to try again what is unknown: spread, so that workers that lost
// the database together do not come back together.
func (k *keeper) soon() time.Duration {
	wait := max(k.renew/5, 10*time.Millisecond)
	return wait/2 + rand.N(wait)
}

// renewAll renews the leases that are due and says whether the outcome of any
// is unknown. One that nobody has used for a lease duration is left to run out:
// the job's next activity has not come, or runs elsewhere.
func (k *keeper) renewAll(ctx context.Context, due func(*entry) bool) (unknown bool) {
	k.mu.Lock()
	var entries []*entry
	for _, e := range k.kept {
		if due(e) && !e.idleFor(k.lease) {
			entries = append(entries, e)
		}
	}
	batches := slices.Collect(slices.Chunk(sorted(entries), inBatch))
	k.mu.Unlock()
	for _, batch := range batches {
		unknown = k.renewBatch(ctx, batch) || unknown
	}
	return unknown
}

func (k *keeper) renewBatch(ctx context.Context, batch []*entry) (unknown bool) {
	auths, limit := k.presented(batch)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers, err := k.store.RenewAll(ctx, auths, k.lease)
	if err != nil {
		k.log.Warn("leases were not renewed, to be tried again", "leases", len(batch), "error", err)
	}
	var refused []leasestore.Authority
	k.mu.Lock()
	for i, e := range batch {
		switch {
		case k.kept[owned(auths[i])] != e || e.auth != auths[i]: // ended or taken over meanwhile
		case err != nil || answers[i].Busy:
			e.again, unknown = true, true
		case answers[i].Renewed:
			e.again = false
			e.extend(k.local(answers[i].Deadline))
		default:
			refused = append(refused, auths[i])
		}
	}
	k.mu.Unlock()
	k.refused(context.WithoutCancel(ctx), refused)
	return unknown
}

// presented are the authorities of a batch and how long its renewal may take:
// less than what is left of the lease that ends first, and short enough to try
// again on another connection.
func (k *keeper) presented(batch []*entry) ([]leasestore.Authority, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	auths := make([]leasestore.Authority, len(batch))
	limit := max(k.renew/2, min(time.Second, k.renew))
	for i, e := range batch {
		auths[i] = e.auth
		limit = min(limit, time.Until(e.deadline))
	}
	return auths, limit
}
