package worker

import (
	"context"

	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/workflows"
)

// ReplayWorkflow lets a replayer know Leasehold's workflows.
func (p *Plugin) ReplayWorkflow(ctx context.Context, options sdkworker.PluginReplayWorkflowOptions,
	next func(context.Context, sdkworker.PluginReplayWorkflowOptions) error,
) error {
	p.mu.Lock()
	known := p.replayers[options.WorkflowReplayerInstanceKey]
	if !known { // it is called for each history
		p.replayers[options.WorkflowReplayerInstanceKey] = true
		registerWorkflows(options.WorkflowReplayRegistry.RegisterWorkflowWithOptions)
	}
	p.mu.Unlock()
	return next(ctx, options)
}

func registerWorkflows(register func(any, workflow.RegisterOptions)) {
	register(workflows.RunJob, workflow.RegisterOptions{Name: workflows.RunJobName})
	register(workflows.RecoverExpiredLeases, workflow.RegisterOptions{Name: workflows.RecoverExpiredLeasesName})
	register(workflows.ProbeRuntimeNodes, workflow.RegisterOptions{Name: workflows.ProbeRuntimeNodesName})
}
