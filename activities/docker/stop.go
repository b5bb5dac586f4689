package docker

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
)

// killPatience is how long a daemon may take to kill a container after the
// grace is over.
const killPatience = 30 * time.Second

// Stop sends the stop signal, waits up to grace in whole seconds, kills, and
// returns how the container ended. It is the caller's to give a context that
// outlives the work that is being stopped. A stop that breaks off is sent
// again: stopping twice is stopping once.
func (e *Engine) Stop(ctx context.Context, endpoint, containerID string, grace time.Duration) (activities.Exit, error) {
	subject := about{what: "stop the container", node: endpoint, containerID: containerID}
	c, err := e.mine(ctx, endpoint, containerID, &subject)
	if err != nil {
		return activities.Exit{}, subject.wrap(ctx, callStop, err)
	}
	seconds := int(math.Ceil(max(0, grace).Seconds()))
	limited, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+killPatience)
	defer cancel()
	pause := pauses{first: 200 * time.Millisecond, most: 2 * time.Second}
	for c.State == activities.ContainerRunning || c.State == activities.ContainerPaused {
		n, err := e.node(limited, endpoint)
		if err == nil {
			err = n.patient.ContainerStop(limited, c.ID, container.StopOptions{Timeout: &seconds})
		}
		if unreachable(err) && n != nil {
			e.forget(n)
		}
		if err != nil && (!unreachable(err) || !pause.wait(limited)) {
			return activities.Exit{}, subject.wrap(ctx, callStop, err)
		}
		if c, err = e.inspect(limited, endpoint, c.ID); err != nil {
			return activities.Exit{}, subject.wrap(ctx, callStop, err)
		}
	}
	if c.Exit == nil {
		return activities.Exit{}, nil
	}
	return *c.Exit, nil
}

// Remove removes a container of this installation, running or not, with its
// anonymous volumes, and returns once it is gone. Where somebody else removes
// it already, it waits for that.
func (e *Engine) Remove(ctx context.Context, endpoint, containerID string) error {
	subject := about{what: "remove the container", node: endpoint, containerID: containerID}
	limited, cancel := context.WithTimeout(ctx, e.opts.CallTimeout+killPatience)
	defer cancel()
	pause, removed := pauses{first: 50 * time.Millisecond, most: time.Second}, false
	for {
		_, err := e.mine(limited, endpoint, containerID, &subject)
		if err == nil && !removed {
			_, err = call(limited, e, endpoint, func(ctx context.Context, n *node) (struct{}, error) {
				return struct{}{}, n.patient.ContainerRemove(ctx, containerID, container.RemoveOptions{Force: true, RemoveVolumes: true})
			})
			if removed = err == nil; removed {
				continue // and look whether it is gone
			}
		}
		switch {
		case cerrdefs.IsNotFound(err):
			return nil
		case err != nil && !unreachable(err) && !cerrdefs.IsConflict(err):
			return subject.wrap(ctx, callRemove, err)
		case !pause.wait(limited):
			return subject.wrap(ctx, callRemove, cmp.Or(err, errStillThere))
		}
	}
}

var errStillThere = errors.New("the daemon removes it, but it is still there")

// mine inspects a container that is about to be stopped or removed, and
// refuses one of another installation.
func (e *Engine) mine(ctx context.Context, endpoint, containerID string, subject *about) (inspected, error) {
	if err := e.mayAct(*subject); err != nil {
		return inspected{}, err
	}
	c, err := e.inspect(ctx, endpoint, containerID)
	if err != nil {
		return c, err
	}
	*subject = subject.of(c.Container)
	if !c.ours {
		return c, subject.trouble(activities.ReasonInternal, "it belongs to another installation", nil)
	}
	return c, nil
}
