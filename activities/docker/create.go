package docker

import (
	"context"
	"fmt"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/leasehold/leasehold/activities"
)

// Create makes, but does not start, the container of one job and epoch, and
// pulls its image first if need be. Called again it returns the container that
// it made before. It refuses where a later epoch has a container, and where
// the container of this epoch was made from another spec.
//
// A create whose answer was lost is unknown, not failed: the daemon may still
// be at it. It is looked for, and made again under the same name, which the
// daemon gives only once.
func (e *Engine) Create(ctx context.Context, endpoint string, run activities.ContainerRun) (activities.Container, error) {
	run.Spec = run.Spec.WithDefaults()
	subject := about{what: "create the container", node: run.NodeID, attempt: run.Attempt}
	if err := e.mayAct(subject); err != nil {
		return activities.Container{}, err
	}
	if err := run.Spec.Validate(); err != nil {
		return activities.Container{}, subject.trouble(activities.ReasonInvalidSpec, err.Error(), err)
	}
	if made, err := e.madeBefore(ctx, endpoint, run); made != nil || err != nil {
		return orZero(made), subject.wrap(ctx, callCreate, err)
	}
	img, err := e.provideImage(ctx, endpoint, run)
	if err != nil {
		return activities.Container{}, err
	}
	if spec := run.Spec; spec.Command != nil && len(*spec.Command) == 0 && spec.Entrypoint == nil && len(img.entrypoint) == 0 {
		return activities.Container{}, subject.trouble(activities.ReasonInvalidSpec,
			"container.command: nothing is left to run: it is empty, and the image has no entrypoint", nil)
	}
	made, err := e.create(ctx, endpoint, run, img)
	return made, subject.wrap(ctx, callCreate, err)
}

// createTries bounds the creates of one call: for lost answers, for names that
// are taken, and for an image that was cleaned up in between.
const createTries = 8

func (e *Engine) create(ctx context.Context, endpoint string, run activities.ContainerRun, img image) (activities.Container, error) {
	named, pause := name(run), pauses{first: 50 * time.Millisecond, most: 2 * time.Second}
	for try := 1; ; try++ {
		made, err := e.createOnce(ctx, endpoint, run, img, named)
		if err == nil {
			return made, nil
		}
		again := false
		switch {
		case ctx.Err() != nil || try == createTries:
			return activities.Container{}, err
		case unreachable(err):
			again = true
		case cerrdefs.IsConflict(err):
			again, err = e.clearName(ctx, endpoint, run, &named, err)
		case cerrdefs.IsNotFound(err) && classify(callCreate, err).reason == activities.ReasonImage && run.Spec.PullPolicy != activities.PullNever:
			img, err = e.provideImage(ctx, endpoint, run)
			again = err == nil
		}
		if !again {
			return activities.Container{}, err
		}
		if !pause.wait(ctx) {
			return activities.Container{}, ctx.Err()
		}
		if made, err := e.madeBefore(ctx, endpoint, run); made != nil || err != nil {
			return orZero(made), err
		}
	}
}

// madeBefore looks for the container of this epoch by its labels.
func (e *Engine) madeBefore(ctx context.Context, endpoint string, run activities.ContainerRun) (*activities.Container, error) {
	found, err := e.list(ctx, endpoint, run.JobID)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		if c.Epoch > run.Epoch {
			return nil, superseded(run, c)
		}
	}
	i := slices.IndexFunc(found, func(c activities.Container) bool {
		return c.Epoch == run.Epoch && c.State != activities.ContainerOther // being removed, or dead
	})
	if i < 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	c, err := e.inspect(ctx, endpoint, found[i].ID)
	switch {
	case cerrdefs.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none any more
	case err != nil:
		return nil, err
	case c.spec != specHash(run.Spec):
		return nil, about{what: "create the container", node: run.NodeID, attempt: run.Attempt}.of(c.Container).trouble(
			activities.ReasonInternal, "this epoch has a container already, made from another spec", nil)
	}
	return &c.Container, nil
}

func superseded(run activities.ContainerRun, newer activities.Container) error {
	return about{what: "create the container", node: run.NodeID, attempt: run.Attempt}.of(newer).trouble(
		activities.ReasonInternal, fmt.Sprintf("epoch %d is over: epoch %d has a container", run.Epoch, newer.Epoch), nil)
}

// clearName judges who holds the name that was refused. A container of ours
// from an earlier epoch is removed; one of this epoch is found by its labels
// next; of somebody else's we keep off and take another name.
func (e *Engine) clearName(ctx context.Context, endpoint string, run activities.ContainerRun, named *string, conflict error) (again bool, err error) {
	holder, err := e.inspect(ctx, endpoint, *named)
	switch {
	case cerrdefs.IsNotFound(err): // it is being removed
		return true, nil
	case err != nil:
		return false, err
	case !holder.ours || holder.JobID != run.JobID:
		*named += "-x"
		return true, nil
	case holder.Epoch == run.Epoch:
		return true, nil
	case holder.Epoch > run.Epoch:
		return false, superseded(run, holder.Container)
	}
	e.opts.Log.WarnContext(ctx, "removing the container of an earlier epoch that has the name",
		"container", holder.ID, "job", run.JobID, "epoch", holder.Epoch, "conflict", conflict)
	return true, e.Remove(ctx, endpoint, holder.ID)
}

func orZero(c *activities.Container) activities.Container {
	if c == nil {
		return activities.Container{}
	}
	return *c
}
