package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/leasestore"
)

func (c *cli) nodesCommand() *cobra.Command {
	return group("nodes", "Add, list, drain and remove the Docker daemons that run containers",
		"Add, list, drain and remove runtime nodes: the Docker daemons that run containers.",
		c.nodesAddCommand(), c.nodesListCommand(),
		c.nodeChangeCommand("drain", "Let a node take no new jobs; what runs on it goes on", "drains: {used} jobs still run on it", (*leasestore.Store).DrainNode),
		c.nodeChangeCommand("remove", "Forget a node; it must have no jobs", "is removed", (*leasestore.Store).RemoveNode))
}

func (c *cli) nodesAddCommand() *cobra.Command {
	node := leasestore.Node{}
	var labels []string
	var force bool
	cmd := &cobra.Command{
		Use:   "add NODE --endpoint URL",
		Short: "Add a Docker daemon, or change it; a draining one comes back",
		Long: `Add a Docker daemon as a runtime node, or change the one of that name; a draining
one comes back. The daemon is asked first who it is: one that does not answer is
refused, unless --force.`,
		Example: `  leasehold nodes add builder-1 --endpoint ssh://root@builder-1 --capacity 16 --label disk=ssd
  leasehold nodes add local --endpoint unix:///var/run/docker.sock`,
		Args: oneArg("a name for the node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			node.ID = args[0]
			var err error
			if node.Labels, err = labelMap(labels); err != nil {
				return err
			}
			return c.addNode(cmd.Context(), node, force)
		},
	}
	cmd.Flags().StringVar(&node.Endpoint, "endpoint", "", "`URL` of the daemon: unix://, tcp:// or ssh:// (default $DOCKER_HOST)")
	cmd.Flags().Int64Var(&node.Capacity, "capacity", 0, "it runs at most `N` containers at once; 0 is 4 for each of its CPUs")
	cmd.Flags().StringArrayVar(&labels, "label", nil, "`NAME=VALUE` that a job's node_selector may ask for; may be repeated")
	cmd.Flags().BoolVar(&force, "force", false, "add it even if it does not answer")
	return cmd
}

func labelMap(pairs []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, &refusedError{Err: fmt.Errorf("--label is %q: write NAME=VALUE", pair)}
		}
		labels[name] = value
	}
	return labels, nil
}

func (c *cli) addNode(ctx context.Context, node leasestore.Node, force bool) error {
	if node.Endpoint == "" {
		node.Endpoint, _ = c.environment().Lookup("DOCKER_HOST")
	}
	if node.Endpoint == "" {
		return &refusedError{Err: fmt.Errorf("the address of the daemon is missing: give --endpoint, such as unix:///var/run/docker.sock")}
	}
	store, closeStore, err := c.store(ctx)
	if err != nil {
		return err
	}
	defer closeStore()
	info, probeErr := probe(ctx, node.Endpoint)
	if probeErr != nil && !force {
		return fmt.Errorf("node %s is not added, its daemon does not answer (--force adds it all the same): %w", node.ID, probeErr)
	}
	node, err = registerNode(ctx, store, node, info, probeErr)
	if err != nil {
		return err
	}
	if c.output == "json" {
		return c.printJSON(node)
	}
	_, err = fmt.Fprintf(c.out, "Node %s is added: %s, %d slots, Docker %s.\n", node.ID, node.State, node.Capacity, or(node.Version, "unknown"))
	return err
}

func probe(ctx context.Context, endpoint string) (activities.NodeInfo, error) {
	engine := docker.New(docker.Options{})
	defer engine.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*connectWithin)
	defer cancel()
	return engine.Probe(ctx, endpoint)
}

// registerNode stores a node and what its probe found, so that it takes jobs
// at once.
func registerNode(ctx context.Context, store *leasestore.Store, node leasestore.Node, info activities.NodeInfo, probeErr error) (leasestore.Node, error) {
	if node.Capacity == 0 {
		node.Capacity = int64(4 * max(info.CPUs, 1))
	}
	if _, err := store.RegisterNode(ctx, node); err != nil {
		return node, err
	}
	report := leasestore.NodeReport{Healthy: probeErr == nil, DaemonID: info.DaemonID, Version: info.ServerVersion}
	if probeErr != nil {
		report.Message = probeErr.Error()
	}
	return store.ReportNode(ctx, node.ID, report)
}

func (c *cli) nodesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the nodes with their state and use",
		Example: "  leasehold nodes list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			nodes, err := store.Nodes(cmd.Context())
			if err != nil {
				return err
			}
			return c.print(orEmpty(nodes), func() [][]string { return c.nodeRows(nodes) })
		},
	}
}

func (c *cli) nodeRows(nodes []leasestore.Node) [][]string {
	rows := [][]string{{"NODE", "STATE", "USED", "ENDPOINT", "DOCKER", "HEARTBEAT", "LABELS", "MESSAGE"}}
	for _, node := range nodes {
		rows = append(rows, []string{
			node.ID, string(node.State), strconv.FormatInt(node.Used, 10) + "/" + strconv.FormatInt(node.Capacity, 10),
			node.Endpoint, or(node.Version, "-"), c.agoPtr(node.HeartbeatAt), or(pairs(node.Labels), "-"), node.Message,
		})
	}
	return rows
}

func (c *cli) nodeChangeCommand(use, short, becomes string,
	change func(*leasestore.Store, context.Context, string) (leasestore.Node, error),
) *cobra.Command {
	return &cobra.Command{
		Use:     use + " NODE",
		Short:   short,
		Example: "  leasehold nodes " + use + " builder-1",
		Args:    oneArg("a node, by its name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			node, err := change(store, cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if c.output == "json" {
				return c.printJSON(node)
			}
			_, err = fmt.Fprintf(c.out, "Node %s %s.\n", node.ID, strings.ReplaceAll(becomes, "{used}", strconv.FormatInt(node.Used, 10)))
			return err
		},
	}
}
