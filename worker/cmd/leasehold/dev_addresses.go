package main

import (
	"fmt"

	"github.com/leasehold/leasehold/leasestore"
)

// printAddresses says where the parts listen and what to try first.
func (c *cli) printAddresses(home *installation, parts *parts, node leasestore.Node) error {
	if c.output == "json" {
		return c.printJSON(parts.environment())
	}
	fmt.Fprintf(c.out, "Leasehold is running. Its data and logs are in %s\n\n", home.dir)
	docker := "none found: only HEARTBEAT jobs run (" + parts.noDocker + ")"
	if parts.endpoint != "" {
		docker = fmt.Sprintf("%s (node %s, %d slots)", parts.endpoint, node.ID, node.Capacity)
	}
	if err := c.printTable([][]string{
		{"  Web UI", parts.temporal.UIURL()},
		{"  Temporal", parts.temporal.Address()},
		{"  PostgreSQL", parts.postgres.URL()},
		{"  Docker", docker},
	}); err != nil {
		return err
	}
	fmt.Fprint(c.out, "\nTry, in another terminal:\n\n")
	if home.dir != defaultDir(c.env) {
		fmt.Fprintf(c.out, "  set -a; . %s; set +a\n", home.path(envFile))
	}
	_, err := fmt.Fprintf(c.out, `  leasehold run --image %s -- echo hello
  leasehold run --heartbeat %s
  leasehold jobs list

Ctrl-C stops it.
`, devImage, parts.temporal.UIURL())
	return err
}
