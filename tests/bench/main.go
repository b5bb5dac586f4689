// Command bench measures what Leasehold costs on top of plain Temporal, on a
// private PostgreSQL and a private Temporal server that it starts and stops:
//
//	go run ./tests/bench [-runs N]
//
// Machines are noisy, so figures are ratios: each pair of slices, one plain
// and one Leasehold, is measured back to back, and the median pair is printed
// with the quartiles.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	runs := flag.Int("runs", 12, "pairs of slices")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *runs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
