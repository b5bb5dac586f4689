package docker

// PullWaiters is how many callers wait for pulls.
func (e *Engine) PullWaiters() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, p := range e.pulls {
		n += p.waiters
	}
	return n
}
