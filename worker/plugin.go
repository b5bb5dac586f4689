package worker

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/leasehold/leasehold/activities"
)

// PluginOptions are what a [Plugin] is made of.
type PluginOptions struct {
	// Config is the configuration, as [LoadConfig] returns it. A plugin that is
	// only for a workflow replayer needs none.
	Config Config
	// Log receives what happens. Defaults to nothing.
	Log *slog.Logger
	// Telemetry is where spans and metrics of the database go. Those of
	// Temporal follow the client's own options. Defaults to nowhere.
	Telemetry Telemetry
	// Runtime runs the containers. Defaults to the Docker Engine API.
	Runtime activities.Runtime

	// fatal is told when an inner worker cannot go on.
	fatal func(error)
	// starting ends starts under way when it ends; the SDK has no context for
	// them.
	starting context.Context //nolint:containedctx // see above
}

// Both are named PluginBase in the SDK.
type (
	clientBase = client.PluginBase //nolint:unused // it makes a Plugin a client.Plugin
	workerBase = sdkworker.PluginBase
)

// Plugin runs Leasehold in every worker of a client:
//
//	client.Options{Plugins: []client.Plugin{plugin}}
//
// It must not be listed in the options of those workers again. A plugin serves
// one client; make another for a second one. It may also be listed in the
// options of a workflow replayer.
//
// Each worker has a process identity, a database pool and permits of its own.
// The worker whose task queue is the configured one makes the schedules.
type Plugin struct {
	clientBase //nolint:unused // it makes this a client.Plugin
	workerBase
	options PluginOptions

	mu        sync.Mutex
	dial      func(context.Context) (client.Client, error) // nil before the client is there
	namespace string
	given     client.ConnectionOptions // before the credentials were applied
	workers   map[string]*plugged      // by worker instance key
	replayers map[string]bool          // that know the workflows, by instance key
}

// plugged is a worker of the client.
type plugged struct {
	taskQueue   string
	stopTimeout time.Duration
	twice       bool     // the plugin is listed twice
	running     *process // nil unless it is started
	bodies      bodies
}

// NewPlugin returns a plugin. It does no I/O: a worker opens the database when
// it starts, and stops using it when it has stopped. The error is a
// [*ConfigError].
func NewPlugin(options PluginOptions) (*Plugin, error) {
	if !reflect.ValueOf(options.Config).IsZero() {
		if err := options.Config.Validate(); err != nil {
			return nil, err
		}
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	options.Telemetry = options.Telemetry.orNone()
	return &Plugin{options: options, workers: map[string]*plugged{}, replayers: map[string]bool{}}, nil
}

var (
	_ client.Plugin    = (*Plugin)(nil)
	_ sdkworker.Plugin = (*Plugin)(nil)
)

// Name returns leasehold.
func (p *Plugin) Name() string { return "leasehold" }

// Version is the version of the module, as the Web UI shows it beside each
// worker.
func (p *Plugin) Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == "github.com/leasehold/leasehold" && module.Version != "" {
			return module.Version
		}
	}
	return "unknown"
}

// ConfigureWorker gives activities time to hand their work over, lets them learn
// quickly that they are no longer wanted, and lets the workflows of a process
// that was killed go on elsewhere at once.
func (p *Plugin) ConfigureWorker(_ context.Context, options sdkworker.PluginConfigureWorkerOptions) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if listed := p.workers[options.WorkerInstanceKey]; listed != nil {
		listed.twice = true // an error here would be a panic of the SDK
		return nil
	}
	w := &plugged{taskQueue: options.TaskQueue}
	p.workers[options.WorkerInstanceKey] = w
	worker := options.WorkerOptions
	if worker.WorkerStopTimeout == 0 {
		worker.WorkerStopTimeout = stopTimeout
	}
	if worker.MaxHeartbeatThrottleInterval == 0 {
		worker.MaxHeartbeatThrottleInterval = throttle(p.options.Config)
	}
	if worker.StickyScheduleToStartTimeout == 0 {
		worker.StickyScheduleToStartTimeout = stickyTimeout
	}
	w.stopTimeout = worker.WorkerStopTimeout
	worker.Interceptors = append(slices.Clone(worker.Interceptors), &w.bodies)
	return nil
}

// StartWorker starts Leasehold beside the worker. If it returns an error,
// nothing of it runs.
func (p *Plugin) StartWorker(ctx context.Context, options sdkworker.PluginStartWorkerOptions,
	next func(context.Context, sdkworker.PluginStartWorkerOptions) error,
) error {
	p.mu.Lock()
	w, dial, namespace := p.workers[options.WorkerInstanceKey], p.dial, p.namespace
	p.mu.Unlock()
	switch {
	case dial == nil:
		return errors.New("the Leasehold plugin belongs into client.Options.Plugins, not into the options of a worker")
	case w == nil || w.twice:
		return errors.New("the Leasehold plugin is listed twice for this worker: list it in client.Options.Plugins alone")
	}
	if p.options.starting != nil {
		starting, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(p.options.starting, func() { cancel(context.Canceled) })() //nolint:contextcheck // it ends one context with another
		ctx = starting
	}
	running, err := startProcess(ctx, p.options, peer{dial, namespace}, w)
	if err != nil {
		return err
	}
	defer func() {
		if w.running == nil { // next failed, or a name was registered before, which panics
			running.stop(func() {})
		}
	}()
	registerWorkflows(options.WorkerRegistry.RegisterWorkflowWithOptions)
	register(options.WorkerRegistry.RegisterActivityWithOptions, running.steps.Common())
	if err := next(ctx, options); err != nil {
		return err
	}
	w.running = running // a worker is stopped after its start, so this is no race
	return nil
}

// StopWorker stops claiming, then the worker, and what they used at last. It
// returns when no activity of Leasehold runs any longer.
func (p *Plugin) StopWorker(ctx context.Context, options sdkworker.PluginStopWorkerOptions,
	next func(context.Context, sdkworker.PluginStopWorkerOptions),
) {
	p.mu.Lock()
	w := p.workers[options.WorkerInstanceKey]
	delete(p.workers, options.WorkerInstanceKey)
	p.mu.Unlock()
	if w == nil || w.running == nil {
		next(ctx, options)
		return
	}
	w.running.stop(func() { next(ctx, options) })
}

// throttle is how long heartbeats are held back at most: what an activity is
// told, it is told in the answer to one.
func throttle(config Config) time.Duration {
	if config.Heartbeat == 0 {
		return 2 * time.Second
	}
	return max(config.Heartbeat/4, 200*time.Millisecond)
}
