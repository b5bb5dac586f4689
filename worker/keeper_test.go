package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

const (
	testLease = 30 * time.Second
	testRenew = 10 * time.Second
)

// keeping runs a test with a started keeper of n permits in fake time.
func keeping(t *testing.T, permits int, test func(*testing.T, *keeper, *fakeStore)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		k := newKeeper(keeperOptions{
			store: store, lease: testLease, renew: testRenew, permits: permits, unconfirmed: max(permits, 1),
			log: slog.New(slog.DiscardHandler),
		})
		k.start(t.Context())
		defer k.close()
		test(t, k, store)
	})
}

// after lets fake time pass and everything due in it happen.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func mustHold(t *testing.T, held context.Context) { //nolint:revive // a test helper
	t.Helper()
	if held.Err() != nil {
		t.Fatalf("the held context has ended: %v", context.Cause(held))
	}
}

func mustBeLost(t *testing.T, held context.Context, reason leasestore.LostReason) { //nolint:revive // a test helper
	t.Helper()
	lost, ok := errors.AsType[*leasestore.LostError](context.Cause(held))
	if !ok || lost.Reason != reason {
		t.Fatalf("the held context's cause is %v, not a loss by %s", context.Cause(held), reason)
	}
	if lost.Authority.Token != (leasestore.Token{}) {
		t.Error("the error has the token in it")
	}
}

func (k *keeper) inUse() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.taken()
}

func TestAKeptLeaseLivesAsLongAsItIsRenewed(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		held, done := k.Keep(t.Context(), store.lease(1))
		defer done()
		after(time.Hour)
		mustHold(t, held)
	})
}

// The fault it catches: a deadline that only the renewing goroutine looks at.
func TestT5_TheLocalDeadlineEndsTheWorkWhetherOrNotTheDatabaseAnswers(t *testing.T) {
	faults := map[string]func(*fakeStore){
		"the database refuses connections": func(f *fakeStore) { f.down = errors.New("refused") },
		"the database hangs":               func(f *fakeStore) { f.hangs = true },
		"the row is always locked":         func(f *fakeStore) { f.busy[f.asked[0][0].JobID] = true },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
				held, done := k.Keep(t.Context(), store.lease(1))
				defer done()
				after(testRenew) // renewed once
				store.set(fault)
				after(testLease - time.Second - time.Millisecond)
				mustHold(t, held)
				after(time.Millisecond)
				if cause := context.Cause(held); !errors.Is(cause, activities.ErrDeadline) {
					t.Errorf("29 s after the last renewal the cause is %v", cause)
				}
				if k.inUse() != 1 {
					t.Error("the permit is free, though the last renewal may have been made")
				}
				store.set(func(f *fakeStore) { f.down, f.hangs = nil, false })
				after(2 * testRenew)
				if k.inUse() != 0 {
					t.Error("the permit is not free, though the lease has run out")
				}
			})
		})
	}
}

// The fault it catches: trust counted from the answer instead of the request.
func TestL2_ASlowAnswerShortensTheTrustInALease(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		held, done := k.Keep(t.Context(), store.lease(1))
		defer done()
		store.set(func(f *fakeStore) { f.took = 4 * time.Second })
		after(testRenew + 4*time.Second)
		store.set(func(f *fakeStore) { f.down = errors.New("refused") })
		after(testLease - 5*time.Second - time.Millisecond)
		mustHold(t, held)
		after(time.Millisecond)
		if context.Cause(held) == nil {
			t.Error("the lease is trusted for longer than from the sending of its renewal")
		}
	})
}

func TestAnUnknownRenewalIsTriedAgainSoon(t *testing.T) {
	for name, fault := range map[string]func(*fakeStore){
		"refused": func(f *fakeStore) { f.down = errors.New("refused") },
		"hanging": func(f *fakeStore) { f.hangs = true },
	} {
		t.Run(name, func(t *testing.T) {
			keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
				began := time.Now()
				held, done := k.Keep(t.Context(), store.lease(1))
				defer done()
				store.set(fault)
				after(testLease - 5*time.Second)
				if store.calls < 3 {
					t.Errorf("%d tries in 15 s of outage", store.calls)
				}
				for _, until := range store.until {
					if until.After(began.Add(testLease - time.Second)) {
						t.Errorf("a renewal might take until %s, when its lease has run out", until.Sub(began))
					}
				}
				store.set(func(f *fakeStore) { f.down, f.hangs = nil, false })
				if name == "refused" { // there is time for one more try
					after(testLease)
					mustHold(t, held)
				}
			})
		})
	}
}

func TestARefusedRenewalEndsTheWorkAtOnceAndSaysWhy(t *testing.T) {
	tests := map[string]struct {
		happens func(*fakeStore, leasestore.Authority)
		reason  leasestore.LostReason
	}{
		"recovered by another": {func(f *fakeStore, a leasestore.Authority) {
			a.Token, a.Epoch, a.Holder = leasestore.NewToken(), 2, leasestore.Holder{Worker: "bob"}
			f.prove(a)
		}, leasestore.OwnerChanged},
		"taken over by another process": {func(f *fakeStore, a leasestore.Authority) {
			f.prove(a.By(leasestore.Holder{Worker: "bob"}, 2))
		}, leasestore.Superseded},
		"expired in the database": {func(f *fakeStore, a leasestore.Authority) {
			f.set(func(f *fakeStore) { f.rows[a.JobID] = row{auth: a, status: leasestore.Running} })
		}, leasestore.Expired},
		"ended": {(*fakeStore).end, leasestore.OwnerChanged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
				lease := store.lease(1)
				held, done := k.Keep(t.Context(), lease)
				defer done()
				tt.happens(store, lease.Authority)
				after(testRenew)
				mustBeLost(t, held, tt.reason)
				if k.inUse() != 0 {
					t.Error("the permit is not free")
				}
			})
		})
	}
}

// The fault it catches: an answer applied to a lease that is no longer kept.
func TestARefusalThatComesAfterTheEndIsNoLoss(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		lease := store.lease(1)
		held, done := k.Keep(t.Context(), lease)
		defer done()
		store.set(func(f *fakeStore) { f.took = time.Second })
		after(testRenew + time.Millisecond) // the renewal is on its way
		store.end(lease.Authority)
		k.Ended(lease.JobID, lease.Epoch)
		after(time.Minute)
		mustHold(t, held)
	})
}

func TestL11_ALaterTurnSupersedesAnEarlierOne(t *testing.T) {
	keeping(t, 2, func(t *testing.T, k *keeper, store *fakeStore) {
		lease := store.lease(2)
		second, done2 := k.Keep(t.Context(), lease)
		defer done2()
		late, done1 := k.Keep(t.Context(), leasestore.Lease{Authority: lease.By(me, 1), Deadline: lease.Deadline})
		defer done1()
		mustBeLost(t, late, leasestore.Superseded)
		mustHold(t, second)
		third, done3 := k.Keep(t.Context(), store.prove(lease.By(me, 3)))
		defer done3()
		mustBeLost(t, second, leasestore.Superseded)
		after(time.Minute)
		mustHold(t, third)
		if k.inUse() != 1 {
			t.Errorf("%d permits for one lease", k.inUse())
		}
	})
}

func TestALeaseLingersForOneLeaseDurationAfterItsUse(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		lease := store.lease(1)
		_, done := k.Keep(t.Context(), lease)
		done()
		after(testLease + testRenew)
		if left := time.Until(store.rows[lease.JobID].expires); left < testRenew {
			t.Errorf("%s are left one lease duration after its use", left)
		}
		after(testLease + 2*testRenew)
		if k.inUse() != 0 {
			t.Error("a lease that nobody used still has a permit")
		}
	})
}

func TestAKeptLeaseGoesOnInItsNextActivity(t *testing.T) {
	keeping(t, 1, func(t *testing.T, k *keeper, store *fakeStore) {
		lease := store.lease(1)
		_, done := k.Keep(t.Context(), lease)
		done()
		after(testLease + 2*time.Second)
		held, done := k.Keep(t.Context(), store.prove(lease.By(me, 2)))
		defer done()
		after(time.Hour)
		mustHold(t, held)
	})
}

func TestLeasesRenewInBatches(t *testing.T) {
	keeping(t, 2000, func(t *testing.T, k *keeper, store *fakeStore) {
		for range 1200 {
			_, done := k.Keep(t.Context(), store.lease(1))
			done()
		}
		after(testRenew)
		if len(store.asked) != 3 {
			t.Errorf("1200 leases were renewed in %d statements", len(store.asked))
		}
		for _, batch := range store.asked {
			if len(batch) > inBatch {
				t.Errorf("a batch has %d leases", len(batch))
			}
		}
	})
}

func TestClosingEndsWhatIsStillHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		k := newKeeper(keeperOptions{store: store, lease: testLease, renew: testRenew, log: slog.New(slog.DiscardHandler)})
		k.start(t.Context())
		before, _ := k.Keep(t.Context(), store.lease(1))
		k.close()
		later, _ := k.Keep(t.Context(), store.lease(1))
		for _, held := range []context.Context{before, later} {
			if !errors.Is(context.Cause(held), errKeeperStopped) {
				t.Errorf("cause: %v", context.Cause(held))
			}
		}
	})
}
