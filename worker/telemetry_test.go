package worker

import (
	"testing"

	"github.com/sethvargo/go-envconfig"
)

func TestTelemetryIsSentOnlyIfItIsAskedFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		env             map[string]string
		traces, metrics bool
	}{
		"nothing":             {nil, false, false},
		"an endpoint":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, true, true},
		"one endpoint":        {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318"}, true, false},
		"an exporter":         {map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, false, true},
		"none":                {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, false, true},
		"disabled as a whole": {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, false, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := envconfig.MapLookuper(tt.env)
			if traces, metrics := asked(env, "TRACES"), asked(env, "METRICS"); traces != tt.traces || metrics != tt.metrics {
				t.Errorf("traces %t, metrics %t", traces, metrics)
			}
		})
	}
}

func TestWithoutTelemetryThereAreNoProviders(t *testing.T) {
	t.Parallel()
	telemetry, stop, err := StartTelemetry(t.Context(), Config{lookup: envconfig.MapLookuper(nil)})
	if err != nil || telemetry != (Telemetry{}) {
		t.Errorf("%+v, %v", telemetry, err)
	}
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
}
