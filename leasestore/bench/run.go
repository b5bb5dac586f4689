package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// bench is one measurement under way.
type bench struct {
	Options
	server *server
	lanes  []*lane // the small one and the large one
	report Report
}

// Run measures on the database's server and returns the figures; see the
// package. At its defaults it takes about ten minutes and both of two
// processors. Bad options, and an account that may not create databases, are a
// [*leasestore.InvalidError]; then nothing was touched.
func Run(ctx context.Context, options Options) (report Report, err error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return Report{}, err
	}
	server, err := connect(ctx, options.DatabaseURL)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, server.close(context.WithoutCancel(ctx))) }()
	b := &bench{Options: options, server: server}
	defer func() {
		for _, l := range b.lanes {
			err = errors.Join(err, b.closeLane(ctx, l))
		}
	}()
	if err := b.run(ctx); err != nil {
		return Report{}, err
	}
	return b.report, nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.Out, format+"\n", args...) }

func (b *bench) run(ctx context.Context) (err error) {
	started := time.Now()
	b.report = Report{
		CPUs: runtime.NumCPU(), Connections: b.Connections, SliceLength: b.SliceLength.Seconds(),
		Sizes: b.sizes(),
	}
	if b.report.Server, err = b.server.describe(ctx); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	for _, size := range b.sizes() {
		l, err := b.openLane(ctx, size)
		if err != nil {
			return err
		}
		b.lanes = append(b.lanes, l)
	}
	if err := b.rounds(ctx); err != nil {
		return err
	}
	if err := b.accounts(ctx); err != nil {
		return err
	}
	if err := b.figures(ctx); err != nil {
		return err
	}
	b.report.Took = time.Since(started).Seconds()
	b.report.Targets = b.report.targets()
	return nil
}

// rounds measures every operation at both sizes, round by round. The first
// round warms up connections, plans and caches, and is not counted.
func (b *bench) rounds(ctx context.Context) error {
	slicesOf := make([]map[string][]measured, len(b.lanes))
	for i := range slicesOf {
		slicesOf[i] = map[string][]measured{}
	}
	for round := range b.Slices + 1 {
		b.say("round %d of %d", round, b.Slices)
		for _, op := range operations() {
			for i, l := range b.lanes {
				m, err := b.measure(ctx, l, op)
				if err != nil {
					return err
				}
				if round > 0 {
					slicesOf[i][op.name] = append(slicesOf[i][op.name], m)
				}
			}
		}
	}
	for i, l := range b.lanes {
		for _, op := range operations() {
			b.report.Figures = append(b.report.Figures, figureOf(op.name, l.Size, slicesOf[i][op.name]))
		}
	}
	b.report.ClaimGrowth = ratios(slicesOf[1][Claim], slicesOf[0][Claim])
	return nil
}

func figureOf(name string, size Size, taken []measured) Figure {
	figure := Figure{Operation: name, Size: size}
	each := func(value func(measured) float64) Spread {
		values := make([]float64, len(taken))
		for i, m := range taken {
			values[i] = value(m)
		}
		return spreadOf(values)
	}
	figure.Ratio = each(func(m measured) float64 { return m.ratio })
	figure.PerCall = each(func(m measured) float64 { return m.perCall() })
	figure.PerSecond = each(func(m measured) float64 { return m.rate() })
	figure.Floor = each(func(m measured) float64 { return m.floor.rate() })
	var all, floor slice
	for _, m := range taken {
		figure.Calls += len(m.calls)
		all.rows, all.cpu = all.rows+m.rows, all.cpu+m.cpu
		floor.rows, floor.cpu = floor.rows+m.floor.rows, floor.cpu+m.floor.cpu
	}
	figure.CPU, figure.FloorCPU = 1e6*all.cpu/float64(all.rows), 1e6*floor.cpu/float64(floor.rows)
	return figure
}

// ratios compares slices of the same rounds.
func ratios(of, to []measured) Spread {
	values := make([]float64, 0, len(of))
	for i, m := range slices.Backward(of) {
		values = append(values, m.ratio/to[i].ratio)
	}
	return spreadOf(values)
}
