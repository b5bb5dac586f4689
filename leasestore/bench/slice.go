package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// slice is what one slice did.
type slice struct {
	calls []float64 // how long each took, in milliseconds
	rows  int
	took  time.Duration
	cpu   float64 // the server's processor time, in seconds; 0 where it is not known
}

// rate is rows per second.
func (s slice) rate() float64 { return float64(s.rows) / s.took.Seconds() }

// perCall is the median time of its calls, in milliseconds.
func (s slice) perCall() float64 { return spreadOf(s.calls).Median }

// slice runs an operation on all its connections until the time is up or there
// is nothing left to do. The first error ends it.
func (b *bench) slice(ctx context.Context, l *lane, on session, op operation) (slice, error) {
	workers := op.workers
	if workers == 0 {
		workers = b.Connections
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parts, before := make([]slice, workers), l.clock.read()
	started := time.Now()
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			var err error
			parts[worker], err = b.repeat(ctx, started.Add(b.SliceLength), func() (int, error) {
				return op.call(ctx, l, on, place{worker: worker, workers: workers})
			})
			if err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	done := slice{took: time.Since(started), cpu: l.clock.read().since(before).server}
	for _, part := range parts {
		done.calls = append(done.calls, part.calls...)
		done.rows += part.rows
	}
	if err := context.Cause(ctx); err != nil {
		return done, fmt.Errorf("bench: %s: %w", op.name, err)
	}
	if done.rows == 0 {
		return done, fmt.Errorf("bench: %s: a slice of %s is too short for one call", op.name, b.SliceLength)
	}
	return done, nil
}

// repeat calls until the time is up, at least once.
func (b *bench) repeat(ctx context.Context, until time.Time, call func() (int, error)) (done slice, err error) {
	for ctx.Err() == nil {
		started := time.Now()
		rows, err := call()
		if errors.Is(err, errDry) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
		ended := time.Now()
		done.calls = append(done.calls, milliseconds(ended.Sub(started)))
		done.rows += rows
		if ended.After(until) {
			return done, nil
		}
	}
	return done, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measured is one slice of an operation between two of the floor.
type measured struct {
	slice
	ratio float64 // of rows, to the floor
	floor slice   // both together
}

// measure takes one measured slice.
func (b *bench) measure(ctx context.Context, l *lane, op operation) (measured, error) {
	if op.before != nil {
		if err := op.before(ctx, l); err != nil {
			return measured{}, fmt.Errorf("bench: before %s: %w", op.name, err)
		}
	}
	least := operation{name: "floor", call: floor}
	first, err := b.slice(ctx, l, l.session, least)
	if err != nil {
		return measured{}, err
	}
	middle, err := b.slice(ctx, l, l.session, op)
	if err != nil {
		return measured{}, err
	}
	last, err := b.slice(ctx, l, l.session, least)
	if err != nil {
		return measured{}, err
	}
	if op.after != nil {
		if err := op.after(ctx, l); err != nil {
			return measured{}, fmt.Errorf("bench: after %s: %w", op.name, err)
		}
	}
	floor := slice{rows: first.rows + last.rows, took: first.took + last.took, cpu: first.cpu + last.cpu}
	return measured{slice: middle, ratio: middle.rate() / floor.rate(), floor: floor}, nil
}
