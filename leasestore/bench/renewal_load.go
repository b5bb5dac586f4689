package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

const (
	processes    = 10  // that share the leases, a connection each
	renewalBatch = 500 // leases in a statement, as a worker's keeper asks
)

// Load is what it takes to keep all leases live.
type Load struct {
	Leases    int     `json:"leases"`
	Processes int     `json:"processes"`
	Every     float64 `json:"every_seconds"`
	For       float64 `json:"for_seconds"`
	// Share of this machine: of the server and of this process together.
	Share  float64 `json:"share"`
	Server float64 `json:"server_share"` // 0 where it cannot be told apart
	How    string  `json:"how"`
	Late   float64 `json:"latest_ms"` // how late the latest renewal was answered
	Lost   int     `json:"lost"`      // leases that ran out: more than the machine can keep
	// LongestScan is the longest of the recovery scans that ran meanwhile.
	LongestScan float64 `json:"longest_scan_ms"`
}

const shortenSQL = `
update leasehold.lease
   set expires_at = clock_timestamp() + @ttl::interval, next_check = clock_timestamp() + @ttl::interval`

// load renews every lease at its interval, with the lease duration and the
// recovery scans that belong to it.
func (b *bench) load(ctx context.Context, l *lane) (Load, error) {
	b.say("renewing %d leases every %s for %s", l.Leases, b.RenewEvery, b.RenewFor)
	on, err := b.openSession(ctx, l, processes+1)
	if err != nil {
		return Load{}, err
	}
	defer on.pool.Close()
	if err := l.readLeases(ctx); err != nil {
		return Load{}, err
	}
	if err := b.shorten(ctx, on); err != nil {
		return Load{}, fmt.Errorf("bench: load: %w", err)
	}
	load := Load{
		Leases: len(l.live), Processes: processes, Every: b.RenewEvery.Seconds(), For: b.RenewFor.Seconds(),
	}
	clock, err := cpuClockOf(ctx, on.pool)
	if err != nil {
		return Load{}, fmt.Errorf("bench: load: %w", err)
	}
	before, started := clock.read(), time.Now()
	if err := b.keep(ctx, l, on, &load); err != nil {
		return Load{}, fmt.Errorf("bench: load: %w", err)
	}
	spent, available := clock.read().since(before), time.Since(started).Seconds()*float64(runtime.NumCPU())
	if clock.known {
		load.How = "processor time of PostgreSQL and of this process"
		load.Server, load.Share = spent.server/available, (spent.server+spent.own)/available
		return load, nil
	}
	load.How = "renewals needed by renewals possible, in batches of 100"
	load.Share = float64(load.Leases) / load.Every / b.report.figure(RenewBatch, l.Size).PerSecond.Median
	return load, nil
}

// shorten gives every lease its real duration. The first time says how long
// that takes, so that the first lease is not out of time when the last is set.
func (b *bench) shorten(ctx context.Context, on session) error {
	took := time.Hour
	for range 2 {
		started := time.Now()
		if _, err := on.pool.Exec(ctx, shortenSQL, pgx.StrictNamedArgs{"ttl": 3*b.RenewEvery + took}); err != nil {
			return err
		}
		took = time.Since(started)
	}
	return nil
}

// kept is what one process, or the recovery scans, met with.
type kept struct {
	slowest time.Duration
	lost    int
	err     error
}

// keep runs the processes and the recovery scans, and says how that went.
func (b *bench) keep(ctx context.Context, l *lane, on session, load *Load) error {
	ctx, cancel := context.WithTimeout(ctx, b.RenewFor)
	defer cancel()
	var all sync.WaitGroup
	var renewed [processes]kept
	var scanned kept
	for process := range processes {
		own := l.live[process*len(l.live)/processes : (process+1)*len(l.live)/processes]
		all.Go(func() { renewed[process] = b.keepOwn(ctx, on, own) })
	}
	all.Go(func() { scanned = b.keepScanning(ctx, on) })
	all.Wait()
	load.LongestScan, load.Lost = milliseconds(scanned.slowest), scanned.lost
	err := scanned.err
	for _, one := range renewed {
		load.Late = max(load.Late, milliseconds(one.slowest))
		load.Lost += one.lost
		err = cmp.Or(err, one.err)
	}
	return err
}

// keepOwn renews the leases of one process, its batches spread over the interval.
func (b *bench) keepOwn(ctx context.Context, on session, own []leasestore.Authority) (k kept) {
	batches := (len(own) + renewalBatch - 1) / renewalBatch
	step := b.RenewEvery / time.Duration(batches)
	next := time.NewTimer(0)
	defer next.Stop()
	for started, n := time.Now(), 0; ; n++ {
		due := started.Add(time.Duration(n) * step)
		next.Reset(time.Until(due))
		select {
		case <-next.C:
		case <-ctx.Done():
			return k
		}
		from := n % batches * renewalBatch
		var answers []leasestore.Renewal
		answers, k.err = on.store.RenewAll(context.WithoutCancel(ctx), own[from:min(from+renewalBatch, len(own))], 3*b.RenewEvery)
		for _, answer := range answers {
			if !answer.Renewed && !answer.Busy {
				k.lost++
			}
		}
		if k.err != nil || k.lost > 0 {
			return k
		}
		k.slowest = max(k.slowest, time.Since(due))
	}
}

// keepScanning looks for expired leases every one and a half intervals, as a
// worker's schedule does.
func (b *bench) keepScanning(ctx context.Context, on session) (k kept) {
	tick := time.NewTicker(b.RenewEvery * 3 / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return k
		}
		var recovered int
		started := time.Now()
		recovered, k.err = scan(context.WithoutCancel(ctx), nil, on, place{})
		k.slowest = max(k.slowest, time.Since(started))
		k.lost += recovered
		if k.err != nil || k.lost > 0 {
			return k
		}
	}
}
