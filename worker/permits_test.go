package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

func TestT7_ThePermitOfAnUnconfirmedEndIsFreeOnceItIsNoLongerLive(t *testing.T) {
	tests := map[string]struct {
		happened func(*fakeStore, leasestore.Authority)
		after    time.Duration // until which the permit is taken
	}{
		"the end was recorded":     {(*fakeStore).end, 0},
		"the end was not recorded": {func(*fakeStore, leasestore.Authority) {}, testLease},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
				lease := store.lease(1)
				_, done := k.Keep(t.Context(), lease)
				done()
				tt.happened(store, lease.Authority)
				k.Unconfirmed(lease.By(me, 2))
				if tt.after > 0 {
					after(tt.after - time.Millisecond)
				}
				if k.inUse() != 1 {
					t.Fatal("the permit was given back before anybody knew")
				}
				after(testRenew + time.Millisecond)
				if k.inUse() != 0 {
					t.Error("the permit was not given back")
				}
			})
		})
	}
}

func TestT7_TooManyUnconfirmedEndsStopTheClaiming(t *testing.T) {
	keeping(t, 5, func(t *testing.T, k *keeper, store *fakeStore) {
		k.unconfirmed = 2
		store.set(func(f *fakeStore) { f.down = errors.New("refused") })
		for range 2 {
			if reserved, _ := k.reserve(); !reserved {
				t.Fatal("no permit")
			}
			slots{k}.ReleaseSlot(nil)
			k.Unconfirmed(store.lease(1).Authority)
		}
		if reserved, _ := k.reserve(); reserved {
			t.Error("a permit was given beside two unconfirmed ends")
		}
	})
}

// The fault it catches: freeing the permit of a refused lease that a later
// turn of this process has proven and not yet kept.
func TestARefusalByALaterTurnOfThisProcessFreesNoPermit(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		lease := store.lease(1)
		_, done := k.Keep(t.Context(), lease)
		done()
		proven := store.prove(lease.By(me, 2))
		after(testRenew)
		if reserved, _ := k.reserve(); reserved {
			t.Fatal("the permit was given away")
		}
		held, done := k.Keep(t.Context(), proven)
		defer done()
		after(time.Hour)
		mustHold(t, held)
	})
}

func TestAnUnconfirmedEndCanStillBeConfirmedOrTakenUpAgain(t *testing.T) {
	keeping(t, 2, func(t *testing.T, k *keeper, store *fakeStore) {
		first, second := store.lease(1), store.lease(1)
		k.Unconfirmed(first.By(me, 2))
		k.Unconfirmed(second.By(me, 2))
		k.Ended(first.JobID, first.Epoch)
		held, done := k.Keep(t.Context(), store.prove(second.By(me, 3)))
		defer done()
		if k.inUse() != 1 {
			t.Errorf("%d permits for one lease", k.inUse())
		}
		after(time.Hour)
		mustHold(t, held)
	})
}

func TestALeaseAndTheActivityThatClaimedItTakeOnePermit(t *testing.T) {
	keeping(t, 2, func(t *testing.T, k *keeper, store *fakeStore) {
		permits := slots{k}
		for range 2 {
			if permits.TryReserveSlot(nil) == nil {
				t.Fatal("no permit is free, and none or one is taken")
			}
			_, done := claiming{k}.Keep(t.Context(), store.lease(1))
			defer done()
		}
		if permits.TryReserveSlot(nil) != nil {
			t.Error("a third of two permits")
		}
	})
}

func TestAReleasedReservationWakesWhoWaits(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, _ *fakeStore) {
		permits, got := slots{k}, make(chan error)
		permits.TryReserveSlot(nil)
		go func() { _, err := permits.ReserveSlot(t.Context(), nil); got <- err }()
		synctest.Wait()
		permits.ReleaseSlot(nil)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

// The fault it catches: a refusal of one turn applied to the next, which was
// kept while the refusal was looked into.
func TestARefusalDoesNotReachALaterTurn(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		lease := store.lease(1)
		_, done := k.Keep(t.Context(), lease)
		done()
		proven := store.prove(lease.By(me, 2))
		store.set(func(f *fakeStore) { f.took = explainWithin / 2 })
		after(testRenew + explainWithin*3/4) // refused, and being explained
		held, done := k.Keep(t.Context(), proven)
		defer done()
		after(time.Hour)
		mustHold(t, held)
	})
}

func TestReservingWaitsForAPermitOrTheEndOfItsContext(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		permits := slots{k}
		if _, err := permits.ReserveSlot(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if permits.TryReserveSlot(nil) != nil {
			t.Error("two permits of one")
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed, got := make(chan error), make(chan error)
		go func() { _, err := permits.ReserveSlot(ctx, nil); failed <- err }()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("error: %v", err)
		}
		lease := store.lease(1)
		_, done := claiming{k}.Keep(t.Context(), lease)
		done()
		permits.ReleaseSlot(nil)
		go func() { _, err := permits.ReserveSlot(t.Context(), nil); got <- err }()
		synctest.Wait()
		select {
		case <-got:
			t.Error("a permit was given while the only one is held")
		default:
		}
		k.Ended(lease.JobID, lease.Epoch)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}
