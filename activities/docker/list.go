package docker

import (
	"cmp"
	"context"
	"slices"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
)

// Inspect returns a container as it is now, whoever made it.
func (e *Engine) Inspect(ctx context.Context, endpoint, containerID string) (activities.Container, error) {
	c, err := e.inspect(ctx, endpoint, containerID)
	return c.Container, about{what: "look at the container", node: endpoint, containerID: containerID}.wrap(ctx, callInspect, err)
}

// Find lists the containers of one job, newest epoch first, whatever their
// state. One that vanishes meanwhile is left out.
func (e *Engine) Find(ctx context.Context, endpoint, jobID string) ([]activities.Container, error) {
	subject := about{what: "look for the containers of job " + jobID, node: endpoint}
	if err := e.mayAct(subject); err != nil {
		return nil, err
	}
	summaries, err := e.list(ctx, endpoint, jobID)
	if err != nil {
		return nil, subject.wrap(ctx, callList, err)
	}
	var found []activities.Container
	for _, summary := range summaries {
		c, err := e.inspect(ctx, endpoint, summary.ID)
		if cerrdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, subject.wrap(ctx, callInspect, err)
		}
		found = append(found, c.Container)
	}
	slices.SortStableFunc(found, func(a, b activities.Container) int { return cmp.Compare(b.Epoch, a.Epoch) })
	return found, nil
}

// List lists all containers of this installation on the node. Containers whose
// labels it cannot read are counted in the log and left out.
func (e *Engine) List(ctx context.Context, endpoint string) ([]activities.Container, error) {
	subject := about{what: "list the containers", node: endpoint}
	if err := e.mayAct(subject); err != nil {
		return nil, err
	}
	summaries, err := e.list(ctx, endpoint, "")
	return summaries, subject.wrap(ctx, callList, err)
}

func (e *Engine) list(ctx context.Context, endpoint, jobID string) ([]activities.Container, error) {
	summaries, err := read(ctx, e, endpoint, func(ctx context.Context, n *node) ([]container.Summary, error) {
		return n.quick.ContainerList(ctx, container.ListOptions{All: true, Filters: e.ours(jobID)})
	})
	if err != nil {
		return nil, err
	}
	var found []activities.Container
	for _, summary := range summaries {
		c, ours := e.identity(summary.Labels)
		if !ours {
			continue
		}
		c.ID, c.State = summary.ID, stateOf(summary.State)
		if len(summary.Names) > 0 {
			c.Name = summary.Names[0][1:]
		}
		found = append(found, c)
	}
	if skipped := len(summaries) - len(found); skipped > 0 {
		e.opts.Log.WarnContext(ctx, "containers with labels of another version are left alone", "node", endpoint, "count", skipped)
	}
	return found, nil
}

// inspected is a container with what only this package needs to know.
type inspected struct {
	activities.Container
	ours bool
	spec string // hash
	tty  bool
	seen time.Time // when the daemon was asked, by its clock

	startCode int  // where there is a StartError
	unseen    bool // it ended, and no daemon saw that, which would have released its network
}

// started says that the program ran at some time.
func (c inspected) started() bool { return !c.StartedAt.IsZero() }

func (e *Engine) inspect(ctx context.Context, endpoint, containerID string) (inspected, error) {
	return read(ctx, e, endpoint, func(ctx context.Context, n *node) (inspected, error) {
		return e.inspectOnce(ctx, n, containerID)
	})
}

func (e *Engine) inspectOnce(ctx context.Context, n *node, containerID string) (inspected, error) {
	now := n.clock(time.Now())
	answer, err := n.quick.ContainerInspect(ctx, containerID)
	if err != nil {
		return inspected{}, err
	}
	c, ours := e.identity(answer.Config.Labels)
	c.ID, c.Name, c.State = answer.ID, answer.Name[1:], stateOf(answer.State.Status)
	found := inspected{Container: c, ours: ours, spec: answer.Config.Labels[labelSpec], tty: answer.Config.Tty, seen: now}
	found.StartedAt = daemonTime(answer.State.StartedAt)
	finished := daemonTime(answer.State.FinishedAt)
	switch {
	case !found.started():
		found.StartError, found.startCode = answer.State.Error, answer.State.ExitCode
	case found.State == activities.ContainerExited:
		found.Elapsed = max(0, finished.Sub(found.StartedAt)) // of a quick program the daemon may write the end first
		found.Exit = &activities.Exit{
			Code: answer.State.ExitCode, OOMKilled: answer.State.OOMKilled,
			StartedAt: found.StartedAt, FinishedAt: finished, Error: answer.State.Error,
		}
		if answer.NetworkSettings != nil {
			for _, network := range answer.NetworkSettings.Networks {
				found.unseen = found.unseen || network.EndpointID != ""
			}
		}
	default:
		found.Elapsed = max(0, now.Sub(found.StartedAt))
	}
	return found, nil
}

func stateOf(status string) activities.ContainerState {
	switch state := activities.ContainerState(status); state {
	case activities.ContainerCreated, activities.ContainerRunning, activities.ContainerPaused, activities.ContainerExited:
		return state
	case activities.ContainerOther:
	}
	return activities.ContainerOther
}

// daemonTime reads a time of the daemon, which writes year 1 for never.
func daemonTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() < 2 {
		return time.Time{}
	}
	return t
}

// mayAct refuses to act without the name of the installation.
func (e *Engine) mayAct(subject about) error {
	if e.opts.Instance == "" {
		return subject.trouble(activities.ReasonInternal, "this engine was made without the name of an installation", nil)
	}
	return nil
}
