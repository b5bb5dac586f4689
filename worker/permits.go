package worker

import (
	"context"

	sdkworker "go.temporal.io/sdk/worker"
)

// slots gives the permits of a keeper to the worker of the claims queue: it
// reserves one before each poll, so the queue is polled only while one is free,
// and gives it back when the poll came back empty or the activity has ended.
type slots struct{ keeper *keeper }

var _ sdkworker.SlotSupplier = slots{}

// ReserveSlot waits for a permit. The error is the context's.
func (s slots) ReserveSlot(ctx context.Context, _ sdkworker.SlotReservationInfo) (*sdkworker.SlotPermit, error) {
	for {
		reserved, freed := s.keeper.reserve()
		if reserved {
			return &sdkworker.SlotPermit{}, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot returns nil if no permit is free.
func (s slots) TryReserveSlot(sdkworker.SlotReservationInfo) *sdkworker.SlotPermit {
	if reserved, _ := s.keeper.reserve(); reserved {
		return &sdkworker.SlotPermit{}
	}
	return nil
}

// MarkSlotUsed has nothing to do: a permit is taken from its reservation on.
func (slots) MarkSlotUsed(sdkworker.SlotMarkUsedInfo) {}

// ReleaseSlot gives a reservation back. A lease that was claimed under it is
// counted by itself since then.
func (s slots) ReleaseSlot(sdkworker.SlotReleaseInfo) {
	k := s.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reserved--
	k.wake()
}

// MaxSlots returns the number of permits.
func (s slots) MaxSlots() int { return s.keeper.permits }

// reserve takes a permit, or returns a channel that is closed when it is worth
// asking again.
func (k *keeper) reserve() (bool, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped || k.taken() >= k.permits || len(k.awaiting) >= k.unconfirmed {
		return false, k.freed
	}
	k.reserved++
	return true, nil
}

// taken is how many permits are in use. Between the end of an activity and the
// release of its slot a lease may count twice, never less than once.
func (k *keeper) taken() int { return k.reserved + len(k.kept) - k.covered + len(k.awaiting) }

// wake tells those who wait for a permit to look again.
func (k *keeper) wake() {
	close(k.freed)
	k.freed = make(chan struct{})
}
