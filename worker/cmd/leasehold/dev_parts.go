package main

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/worker/dev"
)

// parts are what leasehold dev runs beside the worker.
type parts struct {
	postgres *dev.Postgres
	temporal *dev.Temporal
	docker   *dev.Docker // nil if the machine has a daemon of its own
	endpoint string      // of the Docker daemon; empty without one
	noDocker string      // why there is none
}

// start starts what is not there, all at once. What was started before an
// error is still to be stopped.
func (p *parts) start(ctx context.Context, home *installation, ports devPorts) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		p.postgres, err = dev.StartPostgres(ctx, dev.PostgresOptions{
			Dir: home.path("postgres"), Port: ports.Postgres, Database: "leasehold",
		})
		return err
	})
	group.Go(func() (err error) {
		p.temporal, err = dev.StartTemporal(ctx, dev.TemporalOptions{
			DBFile: home.path("temporal.db"), Port: ports.Temporal, UIPort: ports.UI,
			SearchAttributes: map[string]string{
				activities.JobAttributeName: "Keyword", activities.DefinitionAttributeName: "Keyword",
				activities.StatusAttributeName: "Keyword", activities.NodeAttributeName: "Keyword",
			},
		})
		return err
	})
	group.Go(func() error { return p.startDocker(ctx, home) })
	return group.Wait()
}

func (p *parts) startDocker(ctx context.Context, home *installation) error {
	if endpoint, found := dev.FindDocker(ctx); found {
		p.endpoint = endpoint
		return nil
	}
	docker, err := dev.StartDocker(ctx, dev.DockerOptions{Dir: home.path("docker")})
	if missing, ok := errors.AsType[*dev.MissingError](err); ok {
		p.noDocker = missing.Error()
		return nil
	}
	if err != nil {
		return err
	}
	p.docker, p.endpoint = docker, docker.Endpoint()
	return nil
}

// stop stops what was started, even if ctx has ended. Each part has a bounded
// time for it, and is killed after that.
func (p *parts) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var temporal, docker, postgres error
	var stopping sync.WaitGroup
	if p.temporal != nil {
		stopping.Go(func() { temporal = p.temporal.Stop(ctx) })
	}
	if p.docker != nil {
		stopping.Go(func() { docker = p.docker.Stop(ctx) })
	}
	if p.postgres != nil {
		stopping.Go(func() { postgres = p.postgres.Stop(ctx) })
	}
	stopping.Wait()
	return errors.Join(temporal, docker, postgres)
}

// watch reports the first part that ends by itself. The function that it
// returns ends the watching.
func (p *parts) watch() (<-chan error, func()) {
	processes := []*dev.Process{p.postgres.Process, p.temporal.Process}
	if p.docker != nil {
		processes = append(processes, p.docker.Process)
	}
	crashed, over := make(chan error, len(processes)), make(chan struct{})
	var watching sync.WaitGroup
	for _, process := range processes {
		watching.Go(func() {
			select {
			case <-process.Done():
				crashed <- process.Err()
			case <-over:
			}
		})
	}
	return crashed, func() {
		close(over)
		watching.Wait()
	}
}

// environment is how other commands find the parts.
func (p *parts) environment() map[string]string {
	env := map[string]string{
		"DATABASE_URL":       p.postgres.URL(),
		"TEMPORAL_ADDRESS":   p.temporal.Address(),
		"TEMPORAL_NAMESPACE": "default",
		"TEMPORAL_UI_URL":    p.temporal.UIURL(),
	}
	if p.endpoint != "" {
		env["DOCKER_HOST"] = p.endpoint
	}
	return env
}

// ports are those that the parts listen on.
func (p *parts) ports() devPorts {
	return devPorts{
		Postgres: portOf(p.postgres.URL()), Temporal: portOf("tcp://" + p.temporal.Address()), UI: portOf(p.temporal.UIURL()),
	}
}

func portOf(address string) int {
	parsed, err := url.Parse(address)
	if err != nil {
		return 0
	}
	_, port, err := net.SplitHostPort(parsed.Host)
	if err != nil {
		return 0
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return number
}
