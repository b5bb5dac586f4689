package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the report as aligned tables.
func (r Report) WriteTable(out io.Writer) error {
	fmt.Fprintf(out, "PostgreSQL %s, fsync %s, synchronous_commit %s, shared_buffers %s; %d processors, %d connections, slices of %v s\n",
		r.Server.Version, r.Server.Fsync, r.Server.SynchronousCommit, r.Server.SharedBuffers, r.CPUs, r.Connections, r.SliceLength)
	for i, size := range r.Sizes {
		fmt.Fprintf(out, "\n%d jobs, %d leases: rows to the floor's rows, median [quartiles]\n", size.Jobs, size.Leases)
		rows := [][]string{{"operation", "× floor", "rows/s", "ms a call", "CPU µs/row", "WAL bytes/row", "HOT"}}
		for _, figure := range r.Figures {
			if figure.Size == size {
				rows = append(rows, append([]string{
					figure.Operation, figure.Ratio.String(), short(figure.PerSecond.Median), figure.PerCall.String(),
					microseconds(figure.CPU),
				}, figure.Account.cells()...))
			}
		}
		least := r.figure(RenewOne, size)
		rows = append(rows, append([]string{"floor", "1", short(least.Floor.Median), "", microseconds(least.FloorCPU)}, r.FloorAccounts[i].cells()...))
		if err := align(out, rows); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\nclaims at %d jobs to claims at %d, each to its floor: %s\n", r.Sizes[1].Jobs, r.Sizes[0].Jobs, r.ClaimGrowth)
	fmt.Fprintf(out, "recovering %d expired leases in batches of %d: %s s\n", r.Recovery.Leases, r.Recovery.Batch, r.Recovery.Seconds)
	fmt.Fprintf(out, "renewing %d leases every %v s by %d processes for %v s: %.1f %% of the machine, the server %.1f %% (%s); "+
		"the latest answer %s ms late, the longest recovery scan %s ms, %d leases lost\n\n",
		r.Load.Leases, r.Load.Every, r.Load.Processes, r.Load.For, 100*r.Load.Share, 100*r.Load.Server, r.Load.How,
		short(r.Load.Late), short(r.Load.LongestScan), r.Load.Lost)
	return r.writeTargets(out)
}

func (r Report) writeTargets(out io.Writer) error {
	rows := [][]string{{"target", "want", "got", ""}}
	for _, target := range r.Targets {
		verdict := "met"
		if !target.Met {
			verdict = "MISSED"
		}
		rows = append(rows, []string{target.Name, target.Want, short(target.Got), verdict})
	}
	return align(out, rows)
}

func microseconds(value float64) string {
	if value == 0 {
		return "-"
	}
	return short(value)
}

func (a Account) cells() []string {
	hot := "-"
	if a.HOT != nil {
		hot = fmt.Sprintf("%.1f %%", 100**a.HOT)
	}
	return []string{fmt.Sprintf("%.0f", a.WAL), hot}
}

func align(out io.Writer, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}
