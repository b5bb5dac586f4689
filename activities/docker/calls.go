package docker

import (
	"context"
	"errors"
	"time"
)

// call makes one request, bounded by the call timeout, and forgets the node if
// the connection failed.
func call[T any](ctx context.Context, e *Engine, endpoint string, request func(context.Context, *node) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, e.opts.CallTimeout)
	defer cancel()
	var answer T
	n, err := e.node(ctx, endpoint)
	if err != nil {
		return answer, err
	}
	answer, err = request(ctx, n)
	if unreachable(err) {
		e.forget(n)
	}
	return answer, err
}

// readTries is how often a request that changes nothing is made before an
// unreachable node is reported.
const readTries = 3

// read makes a request that changes nothing, again if the node is out of reach.
func read[T any](ctx context.Context, e *Engine, endpoint string, request func(context.Context, *node) (T, error)) (T, error) {
	pause := pauses{first: 100 * time.Millisecond, most: time.Second}
	for try := 1; ; try++ {
		answer, err := call(ctx, e, endpoint, request)
		if try == readTries || !unreachable(err) || errors.As(err, new(*unusableError)) || !pause.wait(ctx) {
			return answer, err
		}
	}
}

// pauses are the growing times between tries.
type pauses struct{ first, most time.Duration }

// wait waits for the next pause. It reports false if ctx ends first.
func (p *pauses) wait(ctx context.Context) bool {
	timer := time.NewTimer(p.first)
	defer timer.Stop()
	p.first = min(2*p.first, p.most)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
