package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sethvargo/go-envconfig"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// Telemetry is where spans and metrics go. The zero value means nowhere.
type Telemetry struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

func (t Telemetry) orNone() Telemetry {
	if t.TracerProvider == nil {
		t.TracerProvider = tracenoop.NewTracerProvider()
	}
	if t.MeterProvider == nil {
		t.MeterProvider = metricnoop.NewMeterProvider()
	}
	return t
}

// StartTelemetry makes the exporters that the OTEL_* variables ask for; without
// any there are none. The exporters read the process's own environment. The
// function that it returns sends what is left and must be called.
func StartTelemetry(ctx context.Context, config Config) (Telemetry, func(context.Context) error, error) {
	var telemetry Telemetry
	var stops []func(context.Context) error
	stop := func(ctx context.Context) error {
		var err error
		for _, stop := range stops {
			err = errors.Join(err, stop(ctx))
		}
		return err
	}
	if asked(config.lookup, "TRACES") {
		exporter, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return telemetry, stop, fmt.Errorf("telemetry: %w: correct the OTEL_* variables", err)
		}
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described(ctx)))
		telemetry.TracerProvider, stops = provider, append(stops, provider.Shutdown)
	}
	if asked(config.lookup, "METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return telemetry, stop, errors.Join(fmt.Errorf("telemetry: %w: correct the OTEL_* variables", err), stop(ctx))
		}
		provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(described(ctx)))
		telemetry.MeterProvider, stops = provider, append(stops, provider.Shutdown)
	}
	return telemetry, stop, nil
}

// asked says that the environment asks for a signal.
func asked(env envconfig.Lookuper, signal string) bool {
	if env == nil {
		env = envconfig.OsLookuper()
	}
	value := func(name string) string {
		value, _ := env.Lookup(name)
		return value
	}
	if strings.EqualFold(value("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if exporter := value("OTEL_" + signal + "_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return value("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || value("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// described is who sends: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
func described(ctx context.Context) *resource.Resource {
	described, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "leasehold")), resource.WithFromEnv())
	if err != nil {
		return resource.Default()
	}
	return described
}

// instrument adds spans and metrics to a client and its workers.
func (t Telemetry) instrument(options *client.Options) {
	if t.TracerProvider != nil {
		spans, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{
			Tracer: t.TracerProvider.Tracer("leasehold"), AllowInvalidParentSpans: true,
		})
		if err == nil { // it fails for bad options only
			options.Interceptors = append(options.Interceptors, spans)
		}
	}
	if t.MeterProvider != nil && options.MetricsHandler == nil {
		options.MetricsHandler = opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
			Meter: t.MeterProvider.Meter("leasehold"), UseMonotonicCounters: true, OnError: func(error) {},
		})
	}
}
