//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/tests/faults"
	"github.com/leasehold/leasehold/worker/dev"
)

// fault is something that breaks, when, and for how long.
type fault struct {
	name     string
	from     time.Duration // since the start of the run
	lasts    time.Duration
	node     string // that is cut off by it; empty if none is
	strike   func() error
	undo     func(context.Context) error
	lastedTo time.Time // when it was undone
	began    time.Time
}

// schedule are the faults of a seed, within the given time.
func (l *lab) schedule(random *rand.Rand, within time.Duration) []*fault {
	all := make([]*fault, 4+random.IntN(6))
	for i := range all {
		all[i] = l.fault(random)
		all[i].from = time.Duration(random.Int64N(int64(within)))
		all[i].lasts = 500*time.Millisecond + time.Duration(random.Int64N(int64(10*time.Second)))
	}
	slices.SortFunc(all, func(a, b *fault) int { return int(a.from - b.from) })
	return all
}

func (l *lab) fault(random *rand.Rand) *fault {
	w := l.workers[random.IntN(len(l.workers))]
	n := l.nodes[random.IntN(len(l.nodes))]
	none := func(context.Context) error { return nil }
	switch random.IntN(11) {
	case 0, 1:
		return &fault{name: "kill " + w.name, strike: w.kill, undo: w.up}
	case 2:
		return &fault{
			name: "freeze " + w.name, strike: func() error { w.signal(syscall.SIGSTOP); return nil },
			undo: func(context.Context) error { w.signal(syscall.SIGCONT); return nil },
		}
	case 3:
		return &fault{name: "stop " + w.name, strike: func() error { w.signal(syscall.SIGTERM); return nil }, undo: w.up}
	case 4, 5:
		return l.cut(random, w.name+" from PostgreSQL", w.postgres)
	case 6:
		return l.cut(random, w.name+" from Temporal", w.temporal)
	case 7:
		f := l.cut(random, "all from "+n.id, n.proxy)
		f.node = n.id
		return f
	case 8:
		return &fault{name: "kill PostgreSQL", strike: l.postgres.Kill, undo: restarting(l.postgres.Process, l.postgres.Restart)}
	case 9:
		return &fault{name: "kill Temporal", strike: l.temporal.Kill, undo: restarting(l.temporal.Process, l.temporal.Restart)}
	case 10:
		return &fault{
			name: "kill the daemon of " + n.id, node: n.id,
			strike: n.daemon.Kill, undo: restarting(n.daemon.Process, n.daemon.Restart),
		}
	}
	return &fault{name: "nothing", strike: func() error { return nil }, undo: none}
}

func restarting(p *dev.Process, restart func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return up(ctx, p, restart) }
}

// cut breaks a connection in one of four ways.
func (l *lab) cut(random *rand.Rand, name string, proxy *faults.Proxy) *fault {
	heal := func(context.Context) error { proxy.Heal(); proxy.Latency(0); return nil }
	kinds := []struct {
		name string
		do   func()
	}{
		{"refuse", proxy.Refuse},
		{"silence", proxy.Silence},
		{"half open", proxy.HalfOpen},
		{"slow", func() { proxy.Latency(300 * time.Millisecond) }},
	}
	kind := kinds[random.IntN(len(kinds))]
	return &fault{name: kind.name + " " + name, strike: func() error { kind.do(); return nil }, undo: heal}
}

// String says what breaks, when, and for how long.
func (f *fault) String() string {
	return fmt.Sprintf("%5.1fs %s for %.1fs", f.from.Seconds(), f.name, f.lasts.Seconds())
}

// inflict lets a fault strike in its time, and undoes it.
func (f *fault) inflict(ctx context.Context, start time.Time) error {
	if !wait(ctx, time.Until(start.Add(f.from))) {
		return ctx.Err()
	}
	f.began = time.Now()
	if err := f.strike(); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	wait(ctx, f.lasts)
	// A worker that is started while it is cut off gives up; it is started again
	// in the end.
	_ = f.undo(ctx)
	f.lastedTo = time.Now()
	return nil
}

// wait waits, and says whether it was not cut short.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
