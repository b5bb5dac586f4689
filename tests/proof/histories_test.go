package proof

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof/model"
	"github.com/leasehold/leasehold/tests/proof/wire"
)

const (
	clients = 5
	lines   = 4 // jobs
	lasts   = 1200 * time.Millisecond
)

// cuts are where connections are cut: some calls never ran, some were rolled
// back, and some were committed without their caller being told.
var cuts = map[wire.Point]bool{
	wire.BeforeExecute: true, wire.BeforeSync: true, wire.BeforeCommandComplete: true,
	wire.AfterCommandComplete: true, wire.BeforeReadyForQuery: true,
}

// How often a connection is cut, of the points where it may be: rough for the
// store; calm for faulty SQL, of which the ledger knows nothing.
const (
	rough = 80
	calm  = 2000
)

// history is what a run of the workload has left.
type history struct {
	calls []call
	byJob map[uuid.UUID][]porcupine.Operation
	found []Violation
}

// call is a record with what it means.
type call struct {
	record
	outcome
}

// play lets clients loose on a few jobs with leases of 100 ms, through a proxy
// that cuts connections, and returns their history. A faulty store is made of
// the pool and the true one.
func play(t *testing.T, seed uint64, cutOneIn int, faulty func(*pgxpool.Pool, *leasestore.Store) verbs) history {
	t.Helper()
	s := newScene(t, 0)
	proxy := try(wire.Listen(t.Context(), s.pool.Config().ConnString(), cutter(seed, cutOneIn))).or(t)
	b := &board{}
	for range lines {
		b.jobs = append(b.jobs, known{job: s.queued()})
	}
	all := make([]*client, clients)
	pools := make([]*pgxpool.Pool, clients)
	for i := range all {
		pools[i] = try(pgxpool.New(t.Context(), proxy.URL()+"&application_name=client&pool_max_conns=2")).or(t)
		c := &client{id: i, holder: newHolder(fmt.Sprint("worker ", i)), store: s.Store, clock: s.pool, board: b}
		c.verbs, c.random = faulty(pools[i], leasestore.New(pools[i])), rand.New(rand.NewPCG(seed, uint64(i)))
		all[i] = c
	}
	b.start = all[0].now(t)
	var done sync.WaitGroup
	for _, c := range all {
		done.Go(func() { c.run(t, lasts) })
	}
	done.Wait()
	for _, pool := range pools {
		pool.Close()
	}
	if err := proxy.Close(); err != nil {
		t.Log(err)
	}
	// What was cut may still run, and its outcome is in the ledger only then.
	s.waitFor(`select not exists (select from pg_stat_activity where datname = current_database() and application_name = 'client')`)
	return s.told(b, all)
}

// told reads the ledger and converts what the clients have seen.
func (s scene) told(b *board, all []*client) history {
	s.t.Helper()
	var h history
	var records []record
	for _, c := range all {
		records = append(records, c.records...)
	}
	tx := try(s.pool.Begin(s.t.Context())).or(s.t)
	defer tx.Rollback(s.t.Context())
	seen := try(read(s.t.Context(), tx)).or(s.t)
	h.calls, h.byJob = newConverter(b.start, seen, records).history(records)
	h.found = seen.violations(refusals(records))
	return h
}

// cutter cuts one of many points, by a seed.
func cutter(seed uint64, oneIn int) func(wire.Point) bool {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1<<32))
	return func(at wire.Point) bool {
		if !cuts[at] {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(oneIn) == 0
	}
}

// illegal returns the history of the first job that no order of decisions
// explains.
func (h history) illegal(t *testing.T) (string, bool) {
	t.Helper()
	for job, operations := range h.byJob {
		began := time.Now()
		result := porcupine.CheckOperationsTimeout(linear(), operations, 20*time.Second)
		t.Logf("job %s: %d operations, %s in %s", job, len(operations), result, time.Since(began).Round(time.Millisecond))
		switch result {
		case porcupine.Ok:
		case porcupine.Unknown:
			t.Errorf("job %s: no verdict in 20 s", job)
		case porcupine.Illegal:
			var text strings.Builder
			for _, op := range operations {
				fmt.Fprintln(&text, describe(op.Input.(model.Statement), op.Output.(outcome)))
			}
			return text.String(), true
		}
	}
	return "", false
}

// seedOf makes runs differ; -run with the seed in the code repeats the choices,
// if not the order of events.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return seed
}

// So many histories are played, until every hard case was met.
const (
	atLeast = 3
	atMost  = 12
)

// However workers and recoverers meet, and wherever their connections break,
// there is an order of decisions that explains what each of them was told, and
// the ledger is sound.
func TestHistoriesOfTheStoreAreLegal(t *testing.T) {
	t.Parallel()
	met := map[string]int{}
	for run := 0; run < atLeast || run < atMost && len(met) < len(hard); run++ {
		if run > 0 && testing.Short() {
			return
		}
		h := play(t, seedOf(t), rough, func(_ *pgxpool.Pool, store *leasestore.Store) verbs { return store })
		if text, illegal := h.illegal(t); illegal {
			t.Errorf("no order of decisions explains\n%s", text)
		}
		for _, violation := range h.found {
			t.Error(violation)
		}
		h.meets(met)
	}
	for name := range hard {
		if met[name] == 0 {
			t.Errorf("never met: %s", name)
		}
	}
	t.Log(met)
}
