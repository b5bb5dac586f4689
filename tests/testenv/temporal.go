package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/worker/dev"
)

// SearchAttributes are names and types of search attributes.
type SearchAttributes = map[string]enumspb.IndexedValueType

// Namespace is a namespace of a Temporal server that belongs to one test.
type Namespace struct {
	Address string // of the server, host:port
	Name    string
	Client  client.Client // of this namespace; closed when the test ends
}

// Temporal returns a new namespace of the server that the tests of this process
// share, with the search attributes, ready to use.
func Temporal(t testing.TB, attributes ...SearchAttributes) Namespace {
	t.Helper()
	server := process.temporal.get(t, startTemporal)
	ns := Namespace{Address: server.address, Name: "test-" + strings.ToLower(rand.Text())}
	var err error
	if ns.Client, err = client.NewClientFromExisting(server.client, client.Options{Namespace: ns.Name, Logger: quiet()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Client.Close)
	ctx, cancel := starting(t)
	defer cancel()
	if err := register(ctx, ns, attributes); err != nil {
		t.Fatalf("namespace %s: %v", ns.Name, err)
	}
	return ns
}

// TemporalServer returns a server of the test's own, to stop, kill and restart.
// It keeps workflows over a restart and has no Web UI.
func TemporalServer(t testing.TB) *dev.Temporal {
	t.Helper()
	dir := newDir(t, "temporal")
	ctx, cancel := starting(t)
	defer cancel()
	server, err := dev.StartTemporal(ctx, dev.TemporalOptions{
		DBFile: filepath.Join(dir, "temporal.db"), Headless: true, DynamicConfig: prompt,
	})
	need(t, err)
	stopAfter(t, func(context.Context) error { return server.Kill() }) // nobody reads its data again
	return server
}

// prompt makes the server see new namespaces and search attributes at once.
var prompt = map[string]string{
	"system.namespaceCacheRefreshInterval":           `"100ms"`,
	"system.forceSearchAttributesCacheRefreshOnRead": "true",
}

type temporalServer struct {
	address string
	client  client.Client // of the namespace "default"
}

func startTemporal(ctx context.Context) (temporalServer, error) {
	address := os.Getenv("LEASEHOLD_TEST_TEMPORAL_ADDRESS")
	if address == "" {
		server, err := dev.StartTemporal(ctx, dev.TemporalOptions{LogDir: process.dir, Headless: true, DynamicConfig: prompt})
		if err != nil {
			return temporalServer{}, err
		}
		process.atEnd(func(context.Context) error { return server.Kill() })
		address = server.Address()
	}
	connected, err := client.DialContext(ctx, client.Options{HostPort: address, Logger: quiet()})
	if err != nil {
		return temporalServer{}, fmt.Errorf("the Temporal server for tests: %w", err)
	}
	process.atEnd(func(context.Context) error { connected.Close(); return nil })
	return temporalServer{address: address, client: connected}, nil
}

// register makes the namespace and returns when it can be used.
func register(ctx context.Context, ns Namespace, attributes []SearchAttributes) error {
	_, err := ns.Client.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: ns.Name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		return err
	}
	wanted := SearchAttributes{}
	for _, some := range attributes {
		maps.Copy(wanted, some)
	}
	if len(wanted) > 0 {
		_, err := ns.Client.OperatorService().AddSearchAttributes(ctx,
			&operatorservice.AddSearchAttributesRequest{Namespace: ns.Name, SearchAttributes: wanted})
		if err != nil {
			return err
		}
	}
	return until(ctx, func() error { return usable(ctx, ns, wanted) })
}

// usable asks what a worker and a visibility query of the test would ask.
func usable(ctx context.Context, ns Namespace, wanted SearchAttributes) error {
	if _, err := ns.Client.WorkflowService().ListWorkflowExecutions(ctx,
		&workflowservice.ListWorkflowExecutionsRequest{Namespace: ns.Name, PageSize: 1}); err != nil {
		return err
	}
	if len(wanted) == 0 {
		return nil
	}
	known, err := ns.Client.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: ns.Name})
	if err != nil {
		return err
	}
	for name := range wanted {
		if _, ok := known.GetCustomAttributes()[name]; !ok {
			return errors.New("search attribute " + name + " is not known yet")
		}
	}
	return nil
}

// until asks again, every 20 ms, until there is no error or ctx ends.
func until(ctx context.Context, ask func() error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
