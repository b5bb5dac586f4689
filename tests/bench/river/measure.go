package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// side is one way to do the jobs. Its methods are called on many connections
// at once.
type side interface {
	name() string
	inCall() int                              // jobs in a call, at most
	put(ctx context.Context, jobs int) error  // makes jobs that can be owned at once
	work(ctx context.Context, jobs int) error // owns and completes as many
}

// took is how long a side's jobs took in one round, in seconds.
type took struct{ put, work float64 }

// whole is a job's whole life, owned is from its lock or claim to its end.
func (t took) whole() float64 { return t.put + t.work }

func (t took) owned() float64 { return t.work }

// measure returns for each side what its rounds took. The first round warms up
// and is left out.
func measure(ctx context.Context, sides []side, rounds, jobs, connections int) (map[string][]took, error) {
	all := map[string][]took{}
	for round := range rounds + 1 {
		for _, s := range sides {
			var one took
			var err error
			if one.put, err = together(ctx, s.put, jobs, s.inCall(), connections); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
			if one.work, err = together(ctx, s.work, jobs, s.inCall(), connections); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name(), err)
			}
			if round > 0 {
				all[s.name()] = append(all[s.name()], one)
			}
		}
	}
	return all, nil
}

// together makes calls on all connections until the jobs are done, and returns
// how long that took, in seconds.
func together(ctx context.Context, call func(context.Context, int) error, jobs, inCall, connections int) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	portions := make(chan int, jobs/inCall+1)
	for left := jobs; left > 0; left -= inCall {
		portions <- min(left, inCall)
	}
	close(portions)
	started := time.Now()
	var workers sync.WaitGroup
	for range connections {
		workers.Go(func() {
			for portion := range portions {
				if ctx.Err() != nil {
					return
				}
				if err := call(ctx, portion); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return time.Since(started).Seconds(), context.Cause(ctx)
}

// show prints for each side its jobs a second, and how many of its jobs are
// done in the time of one of the first side's.
func show(out io.Writer, sides []side, all map[string][]took, jobs, connections int) error {
	fmt.Fprintf(out, "%d jobs of each side in each of %d rounds, %d connections: median [quartiles]\n\n",
		jobs, len(all[sides[0].name()]), connections)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "\tput in, owned and completed\tjobs/s\towned and completed\tjobs/s\n")
	first := all[sides[0].name()]
	for _, s := range sides {
		fmt.Fprint(w, s.name())
		for _, of := range []func(took) float64{took.whole, took.owned} {
			ratios, rates := make([]float64, len(first)), make([]float64, len(first))
			for round, one := range all[s.name()] {
				ratios[round], rates[round] = of(first[round])/of(one), float64(jobs)/of(one)
			}
			fmt.Fprintf(w, "\t%s ×\t%.0f", quartiles(ratios), at(rates, 0.5))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func quartiles(values []float64) string {
	return fmt.Sprintf("%.2f [%.2f..%.2f]", at(values, 0.5), at(values, 0.25), at(values, 0.75))
}

func at(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(share*float64(len(sorted)-1)+0.5)]
}
