package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/leasestore"
)

// logFollower prints what a container prints, as it prints it, if this
// process can reach the container's daemon. What it could not read so is
// printed at the end from the log that the worker has kept.
type logFollower struct {
	container string
	cancel    context.CancelFunc
	reading   sync.WaitGroup
	mu        sync.Mutex
	printed   []string // the last lines of this container
}

// keptLines is how many printed lines are remembered, to find the place where
// the worker's log goes on.
const keptLines = 4096

// follow starts to read the log of a job's container, if it does not do so
// already.
func (l *logFollower) follow(ctx context.Context, c *cli, store *leasestore.Store, job leasestore.Job) {
	if l.container == job.ContainerID || c.output == "json" {
		return
	}
	lease, err := store.Lease(ctx, job.ID)
	if err != nil || lease.Endpoint == "" || lease.ContainerID != job.ContainerID {
		return
	}
	l.stop()
	l.container, l.printed = job.ContainerID, nil
	ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.reading.Go(func() {
		engine := docker.New(docker.Options{})
		defer engine.Close()
		// It is only about the lines: how the container ends the worker tells.
		_, _ = engine.Wait(ctx, lease.Endpoint, lease.ContainerID, func(line activities.LogLine) {
			l.line(c.out, line.Text)
		})
	})
}

func (l *logFollower) line(out io.Writer, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(out, text)
	if l.printed = append(l.printed, text); len(l.printed) > 2*keptLines {
		l.printed = slices.Clone(l.printed[keptLines:])
	}
}

// drain lets the reading come to its own end: the container has ended, so that
// is near.
func (l *logFollower) drain() {
	read := make(chan struct{})
	go func() {
		defer close(read)
		l.reading.Wait()
	}()
	patience := time.NewTimer(time.Second)
	defer patience.Stop()
	select {
	case <-read:
	case <-patience.C:
	}
}

// stop ends the reading and waits for it.
func (l *logFollower) stop() {
	if l.cancel != nil {
		l.cancel()
	}
	l.reading.Wait()
}

// finish ends the reading and prints the lines of the kept log that were not
// printed yet.
func (l *logFollower) finish(out io.Writer, kept string, quiet bool) {
	l.drain()
	l.stop()
	kept = strings.TrimSuffix(kept, "\n")
	if quiet || kept == "" {
		return
	}
	for _, line := range unprinted(l.printed, strings.Split(kept, "\n")) {
		fmt.Fprintln(out, line)
	}
}

// unprinted returns what follows in kept, the end of a log, after the lines of
// the same log that were printed already.
func unprinted(printed, kept []string) []string {
	for n := min(len(printed), len(kept)); n > 0; n-- {
		if slices.Equal(printed[len(printed)-n:], kept[:n]) {
			return kept[n:]
		}
	}
	return kept
}
