package worker

import (
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/leasehold/leasehold/activities"
)

// startWorkers starts the inner workers: the claims queue last, because a claim
// needs all the rest.
func (p *process) startWorkers(w *plugged) error {
	onClaims := *p.steps
	onClaims.Keeper = claiming{p.keeper}
	tuner, err := claimsTuner(p.keeper)
	if err != nil {
		return err
	}
	options := sdkworker.Options{
		DisableWorkflowWorker: true, DisableEagerActivities: true,
		WorkerStopTimeout: w.stopTimeout, MaxHeartbeatThrottleInterval: throttle(p.options.Config),
		Interceptors: []interceptor.WorkerInterceptor{&p.inner}, DisableRegistrationAliasing: true,
	}
	own := options
	own.MaxConcurrentActivityExecutionSize = 2*p.options.Config.Concurrency + 2 // never in the way of a lease that is held
	own.MaxConcurrentActivityTaskPollers = min(4, own.MaxConcurrentActivityExecutionSize)
	if p.own, err = p.startWorker(p.steps.Queue, own, p.steps.Leased()); err != nil {
		return err
	}
	claims := options
	claims.Tuner = tuner
	claims.MaxConcurrentActivityTaskPollers = min(4, p.options.Config.Concurrency)
	p.claims, err = p.startWorker(activities.ClaimsQueue(p.taskQueue), claims, onClaims.Leased())
	return err
}

func (p *process) startWorker(queue string, options sdkworker.Options, steps map[string]any) (sdkworker.Worker, error) {
	options.OnFatalError = func(err error) {
		err = fatalError(queue, err)
		p.options.Log.Error("an inner worker has stopped", "error", err)
		if p.options.fatal != nil {
			p.options.fatal(err)
		}
	}
	w := sdkworker.New(p.client, queue, options)
	register(w.RegisterActivityWithOptions, steps)
	if err := w.Start(); err != nil {
		w.Stop()
		return nil, fmt.Errorf("start the worker of task queue %q: %w", queue, err)
	}
	p.undo = append(p.undo, w.Stop)
	return w, nil
}

// claimsTuner polls the claims queue only while a permit is free.
func claimsTuner(k *keeper) (sdkworker.WorkerTuner, error) {
	none, err := sdkworker.NewFixedSizeSlotSupplier(1)
	if err != nil {
		return nil, err
	}
	return sdkworker.NewCompositeTuner(sdkworker.CompositeTunerOptions{
		ActivitySlotSupplier: slots{k}, WorkflowSlotSupplier: none, LocalActivitySlotSupplier: none,
		NexusSlotSupplier: none, SessionActivitySlotSupplier: none,
	})
}

func register(register func(any, activity.RegisterOptions), steps map[string]any) {
	for name, step := range steps {
		register(step, activity.RegisterOptions{Name: name})
	}
}

func fatalError(queue string, err error) error {
	return fmt.Errorf("the worker of task queue %q cannot go on: %w", queue, err)
}
