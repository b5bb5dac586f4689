package docker

import (
	"context"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
)

// Wait follows a started container to its end. The wait request is only the
// alarm: what it answers is believed of nothing but a container that was seen
// running, and the container itself is looked at before Wait returns. As long
// as the node is out of reach Wait keeps asking, until ctx ends.
func (e *Engine) Wait(ctx context.Context, endpoint, containerID string, lines func(activities.LogLine)) (activities.Exit, error) {
	w := &watch{e: e, endpoint: endpoint, subject: about{what: "wait for the container", node: endpoint, containerID: containerID}}
	first, err := w.look(ctx)
	if err != nil {
		return activities.Exit{}, w.subject.wrap(ctx, callWait, err)
	}
	w.subject = w.subject.of(first.Container)
	if !first.started() {
		return activities.Exit{}, w.neverStarted(first)
	}
	log := newLog(e, endpoint, first, lines)
	following, stop := context.WithCancel(ctx)
	defer stop()
	var reader sync.WaitGroup
	defer reader.Wait()
	if lines != nil {
		reader.Go(func() { log.follow(following) })
	}
	exit, err := w.end(ctx, first)
	if err != nil {
		stop()
		return activities.Exit{}, w.subject.wrap(ctx, callWait, err)
	}
	if lines != nil {
		log.drain(ctx, e.opts.LogDrain)
		stop()
		reader.Wait()
		log.finish(ctx, w.broken > 0)
		exit.LogsIncomplete = !log.complete
	}
	return exit, w.neverExecuted(ctx, log, exit)
}

// watch is one call of Wait.
type watch struct {
	e        *Engine
	endpoint string
	subject  about

	running bool // it was seen running
	broken  int  // how often contact to the daemon was lost
	lost    bool // contact was lost since it was last seen running
}

func (w *watch) neverStarted(c inspected) error {
	if c.StartError != "" {
		return w.subject.refused(c)
	}
	return w.subject.trouble(activities.ReasonInternal, "it was never started, so it has no exit", nil)
}

// end waits until the container has ended, and returns how.
func (w *watch) end(ctx context.Context, c inspected) (activities.Exit, error) {
	code, answered := -1, false // of the wait request
	for {
		switch c.State {
		case activities.ContainerExited:
			sure, err := w.sure(ctx, c)
			if err != nil {
				return activities.Exit{}, err
			}
			if sure {
				return *c.Exit, nil
			}
		case activities.ContainerRunning, activities.ContainerPaused:
			w.running, w.lost = true, false
		case activities.ContainerCreated, activities.ContainerOther:
			pause := pauses{first: 200 * time.Millisecond}
			pause.wait(ctx)
		}
		if c.State != activities.ContainerExited && !answered {
			code, answered = w.await(ctx)
		}
		next, err := w.look(ctx)
		switch {
		case cerrdefs.IsNotFound(err):
			return w.vanished(c, code, answered)
		case err != nil:
			return activities.Exit{}, err
		}
		c = next
	}
}

// await makes one wait request, for a limited time. It reports the exit code
// if the daemon told one.
func (w *watch) await(ctx context.Context) (code int, answered bool) {
	slice, cancel := context.WithTimeout(ctx, w.e.opts.WaitSlice)
	defer cancel()
	n, err := w.e.node(slice, w.endpoint)
	if err != nil {
		return -1, false
	}
	// The client's goroutine ends when slice does, and sends one of these first.
	answers, failures := n.patient.ContainerWait(slice, w.subject.containerID, container.WaitConditionNotRunning)
	select {
	case answer := <-answers:
		return int(answer.StatusCode), answer.Error == nil
	case err = <-failures:
		if slice.Err() == nil && !cerrdefs.IsNotFound(err) {
			w.lose(n)
		}
		return -1, false
	}
}

// lose notes that contact to the daemon was lost now.
func (w *watch) lose(n *node) {
	if n != nil {
		w.e.forget(n)
	}
	w.broken++
	w.lost = true
}

// look inspects the container. It goes on while the node is out of reach, and
// asks a second time before it believes that the container is gone.
func (w *watch) look(ctx context.Context) (inspected, error) {
	pause := pauses{first: 100 * time.Millisecond, most: 5 * time.Second}
	for gone := false; ; {
		c, err := call(ctx, w.e, w.endpoint, func(ctx context.Context, n *node) (inspected, error) {
			return w.e.inspectOnce(ctx, n, w.subject.containerID)
		})
		switch {
		case err == nil, ctx.Err() != nil:
			return c, err
		case cerrdefs.IsNotFound(err) && gone:
			return c, err
		case cerrdefs.IsNotFound(err):
			gone = true
		default:
			w.lose(nil)
		}
		if !pause.wait(ctx) {
			return c, ctx.Err()
		}
	}
}

// vanished is the end of a container that is no longer there. A removal by
// force kills it first, which is no exit of the program; any other code that
// was told is the program's own.
func (w *watch) vanished(last inspected, code int, answered bool) (activities.Exit, error) {
	const killed = 137
	if answered && code != killed && w.running && w.broken == 0 {
		return activities.Exit{Code: code, StartedAt: last.StartedAt, FinishedAt: last.seen}, nil
	}
	return activities.Exit{}, w.subject.trouble(activities.ReasonContainerGone, "it was removed while it ran; how it would have ended is not known", nil)
}
