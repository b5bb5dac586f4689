package worker

import (
	"fmt"
	"strings"
)

// ConfigHelp lists all variables that a worker reads, a line or two each, with
// what they mean and their defaults.
func ConfigHelp() string {
	var text strings.Builder
	for _, field := range variables() {
		value, computed := field.Tag.Lookup("computed")
		if !computed {
			_, value, _ = strings.Cut(field.Tag.Get("env"), "default=")
		}
		fmt.Fprintf(&text, "  %s\n      %s. Defaults to %s.\n", variable(field), field.Tag.Get("help"), value)
	}
	text.WriteString(`  TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS…, TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE
      Temporal server, as the Temporal SDK and the temporal command read them.
      Defaults to the namespace default at localhost:7233.
  OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT, …
      Telemetry, as OpenTelemetry defines them. Defaults to none.
`)
	return text.String()
}
