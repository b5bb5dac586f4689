package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
)

// ProbeNodesResult is what a round of probes found.
type ProbeNodesResult struct {
	Nodes []ProbedNode `json:"nodes"`
}

// ProbedNode is a runtime node after a probe.
type ProbedNode struct {
	ID      string               `json:"id"`
	State   leasestore.NodeState `json:"state"`
	Removed int                  `json:"removed,omitempty"` // leftover containers
	Message string               `json:"message,omitempty"`
}

// probing is how many nodes are probed at once, and for how long each: a node
// that hangs delays no other.
const (
	probing      = 16
	probeTimeout = 5 * time.Second
)

// ProbeNodes pings every runtime node, records what it found, and removes
// containers whose epoch is over.
func (a *Activities) ProbeNodes(ctx context.Context) (ProbeNodesResult, error) {
	nodes, err := a.Store.Nodes(ctx)
	if err != nil {
		return ProbeNodesResult{}, applicationError(err)
	}
	result := ProbeNodesResult{Nodes: make([]ProbedNode, len(nodes))}
	slots := make(chan struct{}, probing)
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			result.Nodes[i] = a.probeNode(ctx, node)
		})
	}
	a.beatUntil(ctx, &all, fmt.Sprintf("probing %d nodes", len(nodes)))
	return result, nil
}

func (a *Activities) probeNode(ctx context.Context, node leasestore.Node) ProbedNode {
	ctx, cancel := context.WithTimeout(ctx, 3*probeTimeout)
	defer cancel()
	answer := ProbedNode{ID: node.ID, State: node.State}
	node, err := a.checkNode(ctx, node)
	answer.State, answer.Message = node.State, node.Message
	if err == nil && node.Message == "" {
		answer.Removed, err = a.sweep(ctx, node)
	}
	if err != nil {
		answer.Message = err.Error()
	}
	return answer
}

func (a *Activities) checkNode(ctx context.Context, node leasestore.Node) (leasestore.Node, error) {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	info, err := a.Runtime.Probe(probe, node.Endpoint)
	report := leasestore.NodeReport{Healthy: err == nil, DaemonID: info.DaemonID, Version: info.ServerVersion}
	if err != nil {
		report.Message = err.Error()
	}
	return a.Store.ReportNode(ctx, node.ID, report)
}

// sweep removes containers of jobs that have ended or moved on to a later
// epoch. It never removes what it could not look up.
func (a *Activities) sweep(ctx context.Context, node leasestore.Node) (removed int, err error) {
	containers, err := a.Runtime.List(ctx, node.Endpoint)
	if err != nil {
		return 0, err
	}
	for _, container := range containers {
		over, lookup := a.over(ctx, container)
		if lookup != nil {
			err = errors.Join(err, lookup)
			continue
		}
		if !over {
			continue
		}
		if gone := a.Runtime.Remove(ctx, node.Endpoint, container.ID); gone != nil {
			err = errors.Join(err, gone)
			continue
		}
		removed++
		a.Log.InfoContext(ctx, "removed a leftover container",
			"node", node.ID, "container", container.ID, "job", container.JobID, "epoch", container.Epoch)
	}
	return removed, err
}

// over says that nobody may act for a container any more.
func (a *Activities) over(ctx context.Context, container Container) (bool, error) {
	id, err := uuid.Parse(container.JobID)
	if err != nil {
		return false, fmt.Errorf("container %s: its job label %q is not a UUID; it is left alone", container.ID, container.JobID)
	}
	job, err := a.Store.Job(ctx, id)
	if err != nil {
		return false, fmt.Errorf("container %s is left alone: %w", container.ID, err)
	}
	lives := job.Status == leasestore.Running && (job.Epoch == container.Epoch || job.ContainerID == container.ID)
	return !lives, nil
}
