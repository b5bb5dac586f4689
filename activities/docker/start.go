package docker

import (
	"context"
	"errors"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
)

// Start starts a created container and leaves one alone that runs or has ended:
// the daemon would run the latter again. A start whose answer was lost is
// unknown: Start looks until the container has left the state created, and
// only then, or when it is sure that the daemon has done with the request,
// sends another.
func (e *Engine) Start(ctx context.Context, endpoint, containerID string) error {
	subject := about{what: "start the container", node: endpoint, containerID: containerID}
	turn, done := e.startTurn(endpoint, containerID)
	defer done()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return subject.wrap(ctx, callStart, ctx.Err())
	}
	c, err := e.inspect(ctx, endpoint, containerID)
	if err != nil {
		return subject.wrap(ctx, callStart, err)
	}
	subject = subject.of(c.Container)
	switch {
	case !c.ours:
		return subject.trouble(activities.ReasonInternal, "it belongs to another installation", nil)
	case c.State != activities.ContainerCreated:
		return nil
	case c.StartError != "":
		return subject.refused(c)
	}
	_, err = call(ctx, e, endpoint, func(ctx context.Context, n *node) (struct{}, error) {
		return struct{}{}, n.quick.ContainerStart(ctx, c.ID, container.StartOptions{})
	})
	if unreachable(err) && ctx.Err() == nil {
		return e.settleStart(ctx, endpoint, subject, err)
	}
	return subject.wrap(ctx, callStart, err)
}

// settleLost is how long a start whose answer was lost may take to show.
const settleLost = 10 * time.Second

// settleStart finds out what became of a start whose answer was lost. It never
// starts again: the first request may still be on its way, and if the program
// is quick, a second start would run it twice.
func (e *Engine) settleStart(ctx context.Context, endpoint string, subject about, lost error) error {
	limited, cancel := context.WithTimeout(ctx, settleLost)
	defer cancel()
	for pause := (pauses{first: 50 * time.Millisecond, most: time.Second}); pause.wait(limited); {
		c, err := e.inspect(limited, endpoint, subject.containerID)
		switch {
		case unreachable(err):
		case err != nil:
			return subject.wrap(ctx, callInspect, err)
		case c.State != activities.ContainerCreated:
			return nil
		case c.StartError != "":
			return subject.refused(c)
		}
	}
	return subject.wrap(ctx, callStart, lost)
}

// refused is what a start that the daemon refused before has left behind.
func (a about) refused(c inspected) *activities.RuntimeError {
	trouble := a.judge(callStart, errors.New(c.StartError))
	if c.startCode == 126 || c.startCode == 127 {
		trouble.Reason, trouble.ExitCode = activities.ReasonCannotStart, c.startCode
	}
	return trouble
}

// turns let one start of a container in at a time: of two that both see it
// created, the second would run a quick program again.
type turns struct {
	turn  chan struct{}
	users int
}

func (e *Engine) startTurn(endpoint, containerID string) (turn chan struct{}, done func()) {
	key := endpoint + " " + containerID
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.starts[key]
	if t == nil {
		t = &turns{turn: make(chan struct{}, 1)}
		e.starts[key] = t
	}
	t.users++
	return t.turn, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(e.starts, key)
		}
	}
}
