package worker

import (
	"context"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
)

// Run runs a worker until ctx ends, then stops it gracefully and returns nil.
// It returns an error, one sentence with the cure, if the worker cannot start,
// and whatever stops it later.
func Run(ctx context.Context, config Config, logger *slog.Logger) error {
	if err := config.Validate(); err != nil {
		return err
	}
	telemetry, stopTelemetry, err := StartTelemetry(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectWithin)
		defer cancel()
		if stopped := stopTelemetry(ctx); stopped != nil {
			logger.Warn("the last telemetry was not sent", "error", stopped)
		}
	}()
	fatal := make(chan error, 3) // one for each worker
	stopped := func(err error) {
		select {
		case fatal <- err:
		default:
		}
	}
	plugin, err := NewPlugin(PluginOptions{Config: config, Log: logger, Telemetry: telemetry, fatal: stopped, starting: ctx})
	if err != nil {
		return err
	}
	connected, err := Dial(ctx, config, telemetry.instrument, func(options *client.Options) {
		options.Plugins = append(options.Plugins, plugin)
		options.Logger = log.NewStructuredLogger(logger)
	})
	if err != nil {
		return err
	}
	defer connected.Close()
	w := sdkworker.New(connected, config.TaskQueue, sdkworker.Options{
		DisableRegistrationAliasing: true,
		OnFatalError:                func(err error) { stopped(fatalError(config.TaskQueue, err)) },
	})
	defer w.Stop()
	if err := w.Start(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return err
	}
}
