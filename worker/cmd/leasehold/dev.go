package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/worker"
	"github.com/leasehold/leasehold/worker/dev"
)

// devImage is the image that leasehold dev makes without a registry.
const devImage = "busybox:1"

// devNode is the name of this machine's Docker daemon as a runtime node.
const devNode = "local"

type devFlags struct {
	dir   string
	ports devPorts
}

func (c *cli) devCommand() *cobra.Command {
	flags := devFlags{dir: defaultDir(c.env)}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: PostgreSQL, Temporal, Docker and a worker",
		Long: `Run everything that Leasehold needs, and a worker, on this machine: PostgreSQL
with its own data, a Temporal development server with its Web UI, and a Docker
daemon (the machine's own, otherwise, as root, a private one). All listens on
127.0.0.1 only. A later start finds the data again. Ctrl-C stops what this
command has started, and nothing else.

Other leasehold commands find it by themselves while it runs, unless
DATABASE_URL or TEMPORAL_ADDRESS is set. Not for production.`,
		Example: "  leasehold dev\n  leasehold dev --dir ./lab --ui-port 8233",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.dev(cmd.Context(), flags) },
	}
	cmd.Flags().StringVar(&flags.dir, "dir", flags.dir, "`FOLDER` for data and logs")
	cmd.Flags().IntVar(&flags.ports.UI, "ui-port", 0, "`PORT` of the Web UI; 0 is that of the last start, or a free one")
	cmd.Flags().IntVar(&flags.ports.Temporal, "temporal-port", 0, "`PORT` of the Temporal server; 0 is that of the last start, or a free one")
	cmd.Flags().IntVar(&flags.ports.Postgres, "postgres-port", 0, "`PORT` of PostgreSQL; 0 is that of the last start, or a free one")
	return cmd
}

// dev runs until ctx ends or a part breaks, and stops all it has started.
func (c *cli) dev(ctx context.Context, flags devFlags) (err error) {
	if err := c.checkDevConfig(ctx); err != nil {
		return err
	}
	home, err := openInstallation(flags.dir)
	if err != nil {
		return err
	}
	defer home.close()
	ports, err := home.choosePorts(flags.ports)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.errOut, "Starting PostgreSQL, Temporal and Docker …")
	parts := &parts{}
	defer func() {
		fmt.Fprintln(c.errOut, "Stopping …")
		if left := parts.stop(ctx); left != nil {
			err = errors.Join(unlessInterrupted(ctx, err), left)
		}
	}()
	if err := parts.start(ctx, home, ports); err != nil {
		return cmp.Or(ctx.Err(), err) // what an interruption made of the parts is no news
	}
	if err := home.savePorts(parts.ports()); err != nil {
		return err
	}
	config, err := worker.LoadConfig(ctx, devEnvironment(parts.environment(), c.env))
	if err != nil {
		return &refusedError{Err: err}
	}
	node, err := parts.prepare(ctx)
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	return c.devRun(ctx, home, parts, config, node)
}

func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// checkDevConfig refuses a configuration of the worker that is wrong, whatever
// the addresses of the parts will be, before anything is made.
func (c *cli) checkDevConfig(ctx context.Context) error {
	anywhere := map[string]string{"DATABASE_URL": "postgres://127.0.0.1/leasehold"}
	if _, err := worker.LoadConfig(ctx, devEnvironment(anywhere, c.env)); err != nil {
		return &refusedError{Err: err}
	}
	return nil
}

// devRun runs the worker beside the parts, until one of them ends.
func (c *cli) devRun(ctx context.Context, home *installation, parts *parts, config worker.Config, node leasestore.Node) error {
	logFile, err := os.OpenFile(home.path("worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	var working sync.WaitGroup
	defer working.Wait() // what it meets on the way after a crash follows from that
	running, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan error, 1)
	working.Go(func() { worked <- worker.Run(running, config, slog.New(slog.NewTextHandler(logFile, nil))) })
	ready := make(chan error, 1)
	working.Go(func() { ready <- polled(running, config) })
	crashed, stopWatching := parts.watch()
	defer stopWatching()

	for err == nil {
		select {
		case err = <-ready:
			if err == nil {
				err = c.announce(home, parts, node)
			}
			ready = nil
		case err := <-crashed:
			return err
		case err = <-worked:
			return devWorkerEnded(ctx, home, err)
		case <-ctx.Done():
			return devWorkerEnded(ctx, home, <-worked)
		}
	}
	return unlessInterrupted(ctx, err)
}

// announce says where everything is, to people and to the other commands.
func (c *cli) announce(home *installation, parts *parts, node leasestore.Node) error {
	if err := home.writeEnv(parts.environment()); err != nil {
		return err
	}
	return c.printAddresses(home, parts, node)
}

func devWorkerEnded(ctx context.Context, home *installation, err error) error {
	if err == nil && ctx.Err() == nil {
		err = errors.New("it ended")
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the worker: %w (its log is %s)", err, home.path("worker.log"))
	}
	return nil
}

// prepare makes the schema, the image and the node.
func (p *parts) prepare(ctx context.Context) (leasestore.Node, error) {
	if _, err := leasestore.Migrate(ctx, p.postgres.URL()); err != nil {
		return leasestore.Node{}, err
	}
	if p.endpoint == "" {
		return leasestore.Node{}, nil
	}
	if err := dev.ImportBusybox(ctx, p.endpoint, devImage); err != nil {
		return leasestore.Node{}, err
	}
	c := &cli{env: lookup(func(key string) (string, bool) {
		value, ok := p.environment()[key]
		return value, ok
	})}
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return leasestore.Node{}, err
	}
	defer closeStore()
	info, err := probe(ctx, p.endpoint)
	if err != nil {
		return leasestore.Node{}, err
	}
	return registerNode(ctx, store, leasestore.Node{ID: devNode, Endpoint: p.endpoint}, info, nil)
}
