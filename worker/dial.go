package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/sethvargo/go-envconfig"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	temporalenv "go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
)

// Dial connects to the Temporal server that the TEMPORAL_* variables and the
// SDK's configuration file name, and checks that its namespace is there. It
// gives up after 10 seconds. adjust may add to the options; without a logger
// the client is silent. The error is one sentence with the cure.
func Dial(ctx context.Context, config Config, adjust ...func(*client.Options)) (client.Client, error) {
	options, err := clientOptions(config.lookup)
	if err != nil {
		return nil, fmt.Errorf("the Temporal configuration cannot be read: %w: correct the TEMPORAL_* variables", err)
	}
	for _, change := range adjust {
		change(&options)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	connected, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, temporalError(options, err)
	}
	_, err = connected.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: options.Namespace})
	if err != nil && !denied(err) { // not everybody may describe it
		connected.Close()
		return nil, temporalError(options, err)
	}
	return connected, nil
}

// clientOptions are what the SDK reads from its environment and file, with the
// defaults made explicit.
func clientOptions(env envconfig.Lookuper) (client.Options, error) {
	request := temporalenv.LoadClientOptionsRequest{}
	if env != nil {
		request.EnvLookup = environment{env}
	}
	options, err := temporalenv.LoadClientOptions(request)
	if err != nil {
		return options, err
	}
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	return options, nil
}

// environment shows a Lookuper to the SDK. A Lookuper cannot list what it has:
// of the variables whose names are not known, only those of the process that
// it also has are listed.
type environment struct{ envconfig.Lookuper }

func (e environment) LookupEnv(name string) (string, bool) { return e.Lookup(name) }

func (e environment) Environ() []string {
	var listed []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if value, ok := e.Lookup(name); ok && strings.HasPrefix(name, "TEMPORAL_") {
			listed = append(listed, name+"="+value)
		}
	}
	return listed
}

// temporalError says what keeps us from Temporal and what to do about it.
func temporalError(options client.Options, err error) error {
	_, missing := errors.AsType[*serviceerror.NamespaceNotFound](err)
	_, notFound := errors.AsType[*serviceerror.NotFound](err)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case missing, notFound:
		return fmt.Errorf("the Temporal server at %s has no namespace %q: create it with temporal operator namespace create --namespace %s, "+
			"or correct TEMPORAL_NAMESPACE", options.HostPort, options.Namespace, options.Namespace)
	case denied(err), strings.Contains(err.Error(), "Unauthenticated"):
		return fmt.Errorf("the Temporal server at %s does not let us in (%s): correct TEMPORAL_API_KEY or the TEMPORAL_TLS_* variables",
			options.HostPort, rootCause(err))
	}
	return fmt.Errorf("the Temporal server at %s does not answer (%s): start it, or correct TEMPORAL_ADDRESS",
		options.HostPort, rootCause(err))
}
