package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/leasestore"
)

const (
	// stopTimeout is how long activities may take to hand their work over.
	stopTimeout = 20 * time.Second
	// bodiesTimeout is how long those are waited for that did not.
	bodiesTimeout = 15 * time.Second
	// startTimeout bounds each step of a start.
	startTimeout = 10 * time.Second
)

// process is what runs beside one worker while it is started.
type process struct {
	options   PluginOptions
	peer      peer
	taskQueue string
	outer     *bodies
	inner     bodies

	database   *database
	runtime    activities.Runtime
	client     client.Client
	keeper     *keeper
	recovering *keeper
	steps      *activities.Activities
	claims     sdkworker.Worker
	own        sdkworker.Worker

	undo []func() // what ends it, in the order of the starts
}

// peer is the client of the worker, to make another like it.
type peer struct {
	dial      func(context.Context) (client.Client, error)
	namespace string
}

// startProcess starts everything, or nothing and returns an error.
func startProcess(ctx context.Context, options PluginOptions, peer peer, w *plugged) (*process, error) {
	p := &process{options: options, peer: peer, taskQueue: w.taskQueue, outer: &w.bodies}
	for _, step := range []func(context.Context) error{
		p.openDatabase,
		p.connect,
		p.openRuntime,
		p.prepareNamespace,
		p.keep,
		func(context.Context) error { return p.startWorkers(w) },
	} {
		if err := step(ctx); err != nil {
			p.end()
			return nil, err
		}
	}
	options.Log.Info("Leasehold runs", "worker", p.steps.Holder.Worker, "process", p.steps.Holder.Process,
		"task_queue", p.taskQueue, "permits", options.Config.Concurrency, "search_attributes", p.steps.SearchAttributes)
	return p, nil
}

// end undoes the start, in reverse.
func (p *process) end() {
	for _, undo := range slices.Backward(p.undo) {
		undo()
	}
	p.undo = nil
}

func (p *process) openDatabase(ctx context.Context) error {
	if err := p.options.Config.Validate(); err != nil {
		return err
	}
	db, err := openDatabase(ctx, p.options.Config.DatabaseURL, p.options.Telemetry)
	if err != nil {
		return err
	}
	p.database = db
	p.undo = append(p.undo, db.close)
	return nil
}

func (p *process) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	connected, err := p.peer.dial(ctx)
	if err != nil {
		return fmt.Errorf("connect Leasehold's own Temporal client: %w", err)
	}
	p.client = connected
	p.undo = append(p.undo, connected.Close)
	return nil
}

func (p *process) openRuntime(ctx context.Context) error {
	if p.runtime = p.options.Runtime; p.runtime != nil {
		return nil
	}
	instance := p.options.Config.Instance
	if instance == "" {
		var err error
		if instance, err = p.database.instance(ctx); err != nil {
			return err
		}
	}
	p.options.Log.Info("containers of this installation are labelled", "instance", instance)
	engine := docker.New(docker.Options{
		Instance: instance, Log: p.options.Log, DefaultNetwork: p.options.Config.DefaultNetwork,
	})
	p.runtime = engine
	p.undo = append(p.undo, func() { _ = engine.Close() }) // its error is always nil
	return nil
}

// keep starts the keepers. They end after the workers, whose leases they keep.
func (p *process) keep(ctx context.Context) error {
	config, store := p.options.Config, leasestore.New(p.database.renewals)
	options := keeperOptions{
		store: store, lease: config.Lease, renew: config.Renew,
		permits: config.Concurrency, unconfirmed: config.AwaitingLimit, log: p.options.Log,
	}
	p.keeper = newKeeper(options)
	options.permits = 0
	p.recovering = newKeeper(options)
	for _, k := range []*keeper{p.keeper, p.recovering} {
		k.start(ctx)
		p.undo = append(p.undo, k.close)
	}
	p.steps.Keeper, p.steps.Recovering = p.keeper, p.recovering
	return nil
}

// prepareNamespace makes what Leasehold needs in the namespace, and the
// activities that know whether it is there.
func (p *process) prepareNamespace(ctx context.Context) error {
	config, log := p.options.Config, p.options.Log
	holder := leasestore.Holder{Worker: config.WorkerID, Process: uuid.New()}
	p.steps = &activities.Activities{
		Store: leasestore.New(p.database.work), Runtime: p.runtime, Client: p.client, Holder: holder,
		Queue: activities.ProcessQueue(p.taskQueue, holder.Process), TaskQueue: p.taskQueue,
		Timing: config.Timing(), Retry: leasestore.Retry{MaxAttempts: int64(config.RetryLimit), Backoff: config.RetryBackoff}, HTTP: activities.NewHTTPClient(), Log: log,
	}
	err := EnsureSearchAttributes(ctx, p.client, p.peer.namespace)
	p.steps.SearchAttributes = err == nil
	if err != nil {
		log.Warn("jobs get no search attributes", "error", err)
	}
	if p.taskQueue != config.TaskQueue {
		log.Info("this worker makes no schedules: its task queue is not EXECUTION_WORKER_TASK_QUEUE",
			"task_queue", p.taskQueue, "configured", config.TaskQueue)
		return nil
	}
	err = EnsureSchedules(ctx, p.client, config)
	if denied(err) {
		log.Warn("the schedules cannot be made by this worker: without them no expired lease is recovered", "error", err)
		return nil
	}
	return err
}

// stop stops claiming first, then the worker itself, and waits for what still
// runs before it takes the database away.
func (p *process) stop(next func()) {
	var inner sync.WaitGroup
	inner.Go(p.claims.Stop)
	inner.Go(p.own.Stop)
	next()
	inner.Wait()
	if !p.inner.wait(bodiesTimeout) || !p.outer.wait(bodiesTimeout) {
		p.options.Log.Warn("activities still run after the worker has stopped")
	}
	p.end()
	p.options.Log.Info("Leasehold has stopped", "process", p.steps.Holder.Process)
}
