package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore/bench"
)

func (c *cli) benchCommand() *cobra.Command {
	var options bench.Options
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what leases cost on the PostgreSQL of DATABASE_URL",
		Long: `Measure what claiming, renewing, ending and recovering leases costs, as ratios
to the least that a durable change costs on the same PostgreSQL at the same time.

It makes two databases named leasehold_bench_… on the server of DATABASE_URL and
drops them at the end, also after Ctrl-C; the database itself it only connects to.
The account must be allowed to create databases, and no transaction pooler may be
in between. A million jobs take about a gigabyte, ten minutes, and most of the
server's power.`,
		Example: "  leasehold bench\n  leasehold bench --jobs 20000 --slices 3 --renew-for 10s -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.bench(cmd.Context(), options) },
	}
	f := cmd.Flags()
	f.IntVar(&options.Jobs, "jobs", 0, "`N` jobs at the large size; 0 is 1000000")
	f.IntVar(&options.Leases, "leases", 0, "`N` of the jobs are leased; 0 is a tenth")
	f.IntVar(&options.Slices, "slices", 0, "each operation is measured `N` times; 0 is 12")
	f.DurationVar(&options.SliceLength, "slice", 0, "each of these takes some `TIME`; 0 is 400ms")
	f.IntVar(&options.Connections, "connections", 0, "`N` connections are used at once; 0 is 4")
	f.IntVar(&options.Recover, "recover", 0, "one recovery figure takes over `N` expired leases; 0 is 10000, or half of the leases")
	f.DurationVar(&options.RenewEvery, "renew-every", 0, "`TIME` between two renewals of a lease under load; 0 is 10s")
	f.DurationVar(&options.RenewFor, "renew-for", 0, "`TIME` for which all leases are renewed; 0 is 60s")
	return cmd
}

func (c *cli) bench(ctx context.Context, options bench.Options) error {
	pool, err := c.openPool(ctx) // its errors say more than those of the measurement
	if err != nil {
		return err
	}
	pool.Close()
	options.DatabaseURL, options.Out = pool.Config().ConnString(), c.errOut
	report, err := bench.Run(ctx, options)
	if err != nil {
		return err
	}
	if c.output == "json" {
		return c.printJSON(report)
	}
	return report.WriteTable(c.out)
}
