package worker

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/leasestore"
)

// However claims, take-overs, activities, endings and losses interleave, no
// more leases than permits are held, no permit is given beyond the limit, and
// when all is over all permits are free.
func TestT7_PermitsAreNeitherExceededNorLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without the Deadline of t, which fake time forbids to ask for.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { permitsProperty(t, rt) })
	})
}

// claim is an activity of the claims queue that runs.
type claim struct {
	lease leasestore.Lease
	done  func()
}

func permitsProperty(t *testing.T, rt *rapid.T) {
	store := newFakeStore()
	limit := rapid.IntRange(1, 4).Draw(rt, "permits")
	k := newKeeper(keeperOptions{
		store: store, lease: testLease, renew: testRenew, permits: limit, unconfirmed: limit,
		log: slog.New(slog.DiscardHandler),
	})
	k.start(t.Context())
	defer k.close()
	turn, polls := int64(0), 0
	var running []claim          // hold a slot
	var known []leasestore.Lease // were held once
	pick := func() leasestore.Lease { return rapid.SampledFrom(known).Draw(rt, "lease") }
	held := func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.kept) + len(k.awaiting)
	}
	rt.Repeat(map[string]func(*rapid.T){
		"poll": func(rt *rapid.T) {
			if reserved, _ := k.reserve(); reserved {
				polls++
			}
		},
		"empty poll": func(rt *rapid.T) {
			if polls > 0 {
				polls--
				slots{k}.ReleaseSlot(nil)
			}
		},
		"claim": func(rt *rapid.T) {
			if polls == 0 {
				return
			}
			polls, turn = polls-1, turn+1
			lease := store.lease(turn)
			_, done := claiming{k}.Keep(t.Context(), lease)
			running, known = append(running, claim{lease, done}), append(known, lease)
		},
		"claim's activity ends": func(rt *rapid.T) {
			if len(running) > 0 {
				running[0].done()
				slots{k}.ReleaseSlot(nil)
				running = running[1:]
			}
		},
		"next activity": func(rt *rapid.T) {
			if len(known) == 0 {
				return
			}
			lease := pick()
			if stored := store.rows[lease.JobID]; stored.auth.Token == lease.Token && stored.expires.After(time.Now()) {
				turn++
				_, done := k.Keep(t.Context(), store.prove(lease.By(me, turn)))
				done()
			}
		},
		"ended": func(rt *rapid.T) {
			if len(known) > 0 {
				lease := pick()
				store.end(lease.Authority)
				k.Ended(lease.JobID, lease.Epoch)
			}
		},
		"unconfirmed": func(rt *rapid.T) {
			if len(known) > 0 {
				turn++
				lease := pick()
				if _, mine := k.newest(owned(lease.Authority)); !mine {
					return
				}
				if rapid.Bool().Draw(rt, "recorded") {
					store.end(lease.Authority)
				}
				k.Unconfirmed(lease.By(me, turn))
			}
		},
		"lost": func(rt *rapid.T) {
			if len(known) > 0 {
				store.end(pick().Authority)
			}
		},
		"outage": func(rt *rapid.T) {
			down := rapid.Bool().Draw(rt, "down")
			store.set(func(f *fakeStore) { f.down = nil; f.hangs = down })
		},
		"time passes": func(rt *rapid.T) {
			after(time.Duration(rapid.IntRange(1, 40).Draw(rt, "seconds")) * time.Second)
		},
		"": func(rt *rapid.T) {
			if n := held() + polls; n > limit {
				rt.Fatalf("%d leases and polls with %d permits", n, limit)
			}
			if free, taken := limit-held()-polls, k.inUse(); taken > limit+len(running) || free == limit && taken > len(running) {
				rt.Fatalf("%d permits of %d are taken, by %d leases, %d polls and %d activities", taken, limit, held(), polls, len(running))
			}
		},
	})
	store.set(func(f *fakeStore) { f.down, f.hangs = nil, false })
	for _, c := range running {
		c.done()
	}
	for range polls + len(running) {
		slots{k}.ReleaseSlot(nil)
	}
	after(4 * testLease)
	if taken := k.inUse(); taken != 0 {
		rt.Fatalf("%d permits are lost", taken)
	}
}
