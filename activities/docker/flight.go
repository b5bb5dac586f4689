package docker

import "context"

// pull is a pull under way, shared by all that want the same image on the same
// node.
type pull struct {
	cancel  context.CancelFunc
	waiters int
	done    chan struct{}
	err     error // once done
}

type pullKey struct{ endpoint, ref string }

// pullOnce pulls an image, or waits for the pull of it that is under way. A
// pull belongs to none of its waiters: it is given up when the last one leaves.
func (e *Engine) pullOnce(ctx context.Context, endpoint, ref string) error {
	key := pullKey{endpoint, ref}
	p := e.join(key) //nolint:contextcheck // the pull outlives whoever came first
	select {
	case <-p.done:
		e.leave(key, p)
		return p.err
	case <-ctx.Done():
		e.leave(key, p)
		return ctx.Err()
	}
}

func (e *Engine) join(key pullKey) *pull {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.pulls[key]
	if p == nil {
		ctx, cancel := context.WithCancel(e.life)
		p = &pull{cancel: cancel, done: make(chan struct{})}
		e.pulls[key] = p
		slots := e.slots[key.endpoint]
		if slots == nil {
			slots = make(chan struct{}, e.opts.PullsAtOnce)
			e.slots[key.endpoint] = slots
		}
		e.work.Go(func() {
			defer cancel()
			p.err = e.inSlot(ctx, slots, key)
			e.over(key, p)
			close(p.done)
		})
	}
	p.waiters++
	return p
}

func (e *Engine) inSlot(ctx context.Context, slots chan struct{}, key pullKey) error {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
		return e.transfer(ctx, key.endpoint, key.ref)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave counts a waiter out.
func (e *Engine) leave(key pullKey, p *pull) {
	e.mu.Lock()
	p.waiters--
	last := p.waiters == 0
	e.mu.Unlock()
	if last {
		e.over(key, p)
		p.cancel()
	}
}

// over makes room for the next pull of the image.
func (e *Engine) over(key pullKey, p *pull) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pulls[key] == p {
		delete(e.pulls, key)
	}
}
