package dev

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// TemporalOptions says how to run a Temporal development server.
type TemporalOptions struct {
	// Binary is the temporal command. Defaults to what FindTemporal finds.
	Binary string

	// DBFile keeps workflows over a restart. Empty keeps them in memory.
	DBFile string

	// Port for gRPC and UIPort for the Web UI, on 127.0.0.1. Default to free ones.
	Port, UIPort int

	// Namespaces to create beside "default".
	Namespaces []string

	// SearchAttributes to register in every namespace made at the start, by
	// name, with types as the temporal command spells them, such as "Keyword".
	SearchAttributes map[string]string

	// DynamicConfig has settings of the server, by key, with values in JSON.
	DynamicConfig map[string]string

	// Headless runs no Web UI.
	Headless bool

	// LogDir receives temporal.log. Defaults to the folder of DBFile; required
	// without one.
	LogDir string
}

// Temporal is a running Temporal development server.
type Temporal struct {
	*Process
	address, uiURL string
}

// Address returns host and port of the server's gRPC service.
func (t *Temporal) Address() string { return t.address }

// UIURL returns the address of the Web UI, or "" if the server has none.
func (t *Temporal) UIURL() string { return t.uiURL }

// StartTemporal starts a development server and waits until its default
// namespace answers, about a second. It returns a [*MissingError] if the
// temporal command is not found. ctx bounds the start only.
func StartTemporal(ctx context.Context, opts TemporalOptions) (*Temporal, error) {
	if opts.LogDir == "" && opts.DBFile == "" {
		return nil, errors.New("start Temporal: it needs a folder for its log")
	}
	if opts.LogDir == "" {
		opts.LogDir = filepath.Dir(opts.DBFile)
	}
	if opts.Binary == "" {
		found, err := FindTemporal()
		if err != nil {
			return nil, err
		}
		opts.Binary = found
	}
	const attempts = 3
	for attempt := 1; ; attempt++ {
		started, err := startTemporal(ctx, opts)
		if err == nil || attempt == attempts || opts.Port != 0 || opts.UIPort != 0 || !portTaken(err) {
			return started, err
		}
	}
}

func startTemporal(ctx context.Context, opts TemporalOptions) (*Temporal, error) {
	var http, metrics int
	if err := choosePorts(&opts.Port, &opts.UIPort, &http, &metrics); err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.Port))
	process, err := Start(ctx, Command{
		Name:    "the Temporal server",
		Path:    opts.Binary,
		Args:    opts.args(http, metrics),
		LogFile: filepath.Join(opts.LogDir, "temporal.log"),
		Ready:   func(ctx context.Context) error { return temporalAnswers(ctx, address) },
		Grace:   15 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	started := &Temporal{Process: process, address: address}
	if !opts.Headless {
		started.uiURL = "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(opts.UIPort))
	}
	return started, nil
}

func (opts TemporalOptions) args(http, metrics int) []string {
	args := []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", strconv.Itoa(opts.Port),
		"--http-port", strconv.Itoa(http), "--metrics-port", strconv.Itoa(metrics),
		// By default the server looks for tasks 20 times a second at most: on a
		// busy one each step of a workflow would wait for 50 ms.
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
	}
	if opts.Headless {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-port", strconv.Itoa(opts.UIPort))
	}
	if opts.DBFile != "" {
		args = append(args, "--db-filename", opts.DBFile)
	}
	for _, namespace := range opts.Namespaces {
		args = append(args, "--namespace", namespace)
	}
	for _, name := range slices.Sorted(maps.Keys(opts.SearchAttributes)) {
		args = append(args, "--search-attribute", name+"="+opts.SearchAttributes[name])
	}
	for _, key := range slices.Sorted(maps.Keys(opts.DynamicConfig)) {
		args = append(args, "--dynamic-config-value", key+"="+opts.DynamicConfig[key])
	}
	return args
}

// temporalAnswers makes a connection of its own for each question: a
// connection that was refused once waits for a second before it tries again.
func temporalAnswers(ctx context.Context, address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = workflowservice.NewWorkflowServiceClient(conn).DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	return err
}

// FindTemporal returns the temporal command: $LEASEHOLD_TEMPORAL, or
// .bin/temporal in the working folder or one above it, or temporal on PATH. It
// returns a [*MissingError] if there is none of them.
func FindTemporal() (string, error) {
	missing := &MissingError{
		What: "the temporal command",
		Cure: "build it (make setup), install the Temporal CLI, or set LEASEHOLD_TEMPORAL to its path",
	}
	if named := os.Getenv("LEASEHOLD_TEMPORAL"); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			missing.What = "the temporal command " + strconv.Quote(named) + " of LEASEHOLD_TEMPORAL"
			return "", missing
		}
		return path, nil
	}
	if dir, err := os.Getwd(); err == nil {
		for ; ; dir = filepath.Dir(dir) {
			if path, err := exec.LookPath(filepath.Join(dir, ".bin", "temporal")); err == nil {
				return path, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	path, err := exec.LookPath("temporal")
	if err != nil {
		return "", missing
	}
	return path, nil
}
