//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// TestChaos makes the runs with the seeds from SEED on.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	first, runs, within := uint64(1), 1, 6*time.Second
	if given := os.Getenv("RUNS"); given != "" {
		var err error
		if runs, err = strconv.Atoi(given); err != nil {
			t.Fatal(err)
		}
		within = 15 * time.Second
	}
	if given := os.Getenv("SEED"); given != "" {
		var err error
		if first, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	l := newLab(t)
	total := totals{}
	for seed := first; seed < first+uint64(runs); seed++ {
		wrong := l.run(seed, within, &total)
		for _, w := range wrong {
			t.Errorf("seed %d: %s", seed, w)
		}
	}
	t.Logf("seeds %d to %d: %s", first, first+uint64(runs)-1, total)
}

// totals are what the runs came to.
type totals struct {
	runs, jobs, faults, lines, refusals, claims, takeovers, recoveries int
	slowest                                                            time.Duration
}

func (t totals) String() string {
	return fmt.Sprintf("%d runs, %d jobs, %d faults, %d claims, %d take-overs, %d recoveries, %d lines witnessed, %d refused and explained; slowest to settle %s",
		t.runs, t.jobs, t.faults, t.claims, t.takeovers, t.recoveries, t.lines, t.refusals, t.slowest.Round(100*time.Millisecond))
}

// run makes one run and returns what is wrong after it.
func (l *lab) run(seed uint64, within time.Duration, total *totals) []string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Minute)
	defer cancel()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a run is to be repeated
	jobs, schedule := l.inputs(seed, random), l.schedule(random, within)
	l.must(l.heal(ctx))
	ids := l.strike(ctx, jobs, schedule, random, within)
	l.must(persist(ctx, l.heal))
	healed := time.Now()
	wrong := l.settle(ctx, ids)
	settled := time.Since(healed)
	seen, refusals := refused(l.nodes)
	wrong = append(wrong, unexplained(refusals, schedule)...)
	wrong = append(wrong, l.stopAll(ctx)...)
	wrong = append(wrong, l.proven(ctx)...)
	claims, takeovers, recoveries := l.count(ctx)
	l.t.Logf("seed %d: %d jobs, %d faults, settled in %s, %d lines, %d refused, %d faulty\n  %s", seed, len(ids), len(schedule),
		settled.Round(100*time.Millisecond), seen, len(refusals), len(wrong), strings.Join(words(schedule), "\n  "))
	total.runs, total.jobs, total.faults = total.runs+1, total.jobs+len(ids), total.faults+len(schedule)
	total.lines, total.refusals, total.slowest = total.lines+seen, total.refusals+len(refusals), max(total.slowest, settled)
	total.claims, total.takeovers, total.recoveries = claims, takeovers, recoveries
	return wrong
}

func words(schedule []*fault) []string {
	text := make([]string, len(schedule))
	for i, f := range schedule {
		text[i] = f.String()
	}
	return text
}

// strike runs the load under the faults, cancels two of the jobs, and returns
// when all faults are over.
func (l *lab) strike(ctx context.Context, jobs map[string]map[string]any, schedule []*fault, random *rand.Rand, within time.Duration) []string {
	l.t.Helper()
	start := time.Now()
	var parts sync.WaitGroup
	errs := make(chan error, len(schedule)+len(jobs))
	for _, f := range schedule {
		parts.Go(func() { errs <- f.inflict(ctx, start) })
	}
	ids := make([]string, 0, len(jobs))
	for id, input := range jobs {
		ids = append(ids, id)
		parts.Go(func() { errs <- l.start(ctx, id, input) })
	}
	canceled := time.Duration(random.Int64N(int64(within)))
	parts.Go(func() {
		wait(ctx, canceled)
		for id := range jobs {
			if strings.Contains(id, "-write-5") || strings.Contains(id, "-alone-13") {
				// One that does not run any longer is fine.
				_ = l.client.CancelWorkflow(ctx, id, "")
			}
		}
	})
	parts.Wait()
	close(errs)
	for err := range errs {
		l.must(err)
	}
	return ids
}

func (l *lab) count(ctx context.Context) (claims, takeovers, recoveries int) {
	l.t.Helper()
	l.must(l.pool.QueryRow(ctx, `
		select count(*) filter (where event = 'CLAIMED'), count(*) filter (where event = 'TAKEN_OVER'),
		       count(*) filter (where event = 'RECOVERED')
		  from leasehold.ledger`).Scan(&claims, &takeovers, &recoveries))
	return claims, takeovers, recoveries
}
