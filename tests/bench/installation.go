package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/worker/dev"
)

// installation is what is measured: real servers, and a worker that is a
// process of its own, built from this tree.
type installation struct {
	dir      string
	postgres *dev.Postgres
	temporal *dev.Temporal
	client   client.Client
	worker   *dev.Process
}

func install(ctx context.Context) (*installation, error) {
	dir, err := os.MkdirTemp("", "leasehold-bench-")
	if err != nil {
		return nil, err
	}
	in := &installation{dir: dir}
	if err := in.start(ctx); err != nil {
		return nil, errors.Join(err, in.stop(context.WithoutCancel(ctx)))
	}
	return in, nil
}

func (in *installation) start(ctx context.Context) error {
	err := os.Chmod(in.dir, 0o711) // PostgreSQL passes through under its own account
	if err != nil {
		return err
	}
	if in.postgres, err = dev.StartPostgres(ctx, dev.PostgresOptions{Dir: filepath.Join(in.dir, "postgres")}); err != nil {
		return err
	}
	if _, err := leasestore.Migrate(ctx, in.postgres.URL()); err != nil {
		return err
	}
	if in.temporal, err = dev.StartTemporal(ctx, dev.TemporalOptions{LogDir: in.dir, Headless: true}); err != nil {
		return err
	}
	if in.client, err = client.DialContext(ctx, client.Options{HostPort: in.temporal.Address(), Logger: quiet{}}); err != nil {
		return err
	}
	command := filepath.Join(in.dir, "leasehold")
	build := exec.CommandContext(ctx, "go", "build", "-o", command, "./worker/cmd/leasehold")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the command: %w\n%s", err, out)
	}
	in.worker, err = dev.Start(ctx, dev.Command{
		Name: "worker", Path: command, Args: []string{"worker"}, LogFile: filepath.Join(in.dir, "worker.log"),
		Env: []string{
			"DATABASE_URL=" + in.postgres.URL(), "TEMPORAL_ADDRESS=" + in.temporal.Address(),
			"EXECUTION_WORKER_CONCURRENCY=128",
		},
		Ready: in.answers,
	})
	return err
}

// answers runs one job, so that nothing is measured before the worker works.
func (in *installation) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	server := endpoint(func(http.ResponseWriter, *http.Request) {})
	defer server.Close()
	return in.heartbeat(ctx, server.URL)
}

func (in *installation) stop(ctx context.Context) error {
	var err error
	if in.worker != nil {
		err = errors.Join(err, in.worker.Stop(ctx))
	}
	if in.client != nil {
		in.client.Close()
	}
	if in.temporal != nil {
		err = errors.Join(err, in.temporal.Kill())
	}
	if in.postgres != nil {
		err = errors.Join(err, in.postgres.Stop(ctx))
	}
	return errors.Join(err, os.RemoveAll(in.dir))
}

// quiet drops the SDK's log.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
