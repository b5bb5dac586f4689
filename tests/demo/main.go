// Command demo shows Leasehold at work on a private installation: it starts
// leasehold dev in a temporary folder, runs jobs of every kind on real input,
// checks their outcomes and prints them as a table. Nothing is left behind.
//
// It exits with 0 only if every outcome is the expected one.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	keep := flag.Bool("keep", false, "leave it running, with the Web UI, until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "demo: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, keep bool) (err error) {
	began := time.Now()
	fmt.Fprintln(out, "Building leasehold and starting leasehold dev …")
	lab, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := lab.close(ctx); err == nil {
			err = stopErr
		}
	}()
	ui := lab.env["TEMPORAL_UI_URL"]
	fmt.Fprintf(out, "Web UI: %s\n\n", ui)
	results, err := lab.runJobs(ctx, out)
	if err != nil {
		return err
	}
	unexpected := printResults(out, results)
	fmt.Fprintf(out, "\n%d of %d outcomes as expected, in %s.\n", len(results)-unexpected, len(results), time.Since(began).Round(time.Second))
	if keep {
		fmt.Fprintf(out, "The Web UI stays at %s until Ctrl-C.\n", ui)
		<-ctx.Done()
	} else {
		fmt.Fprintln(out, "To look at it in the Web UI: go run ./tests/demo --keep")
	}
	if unexpected > 0 {
		return fmt.Errorf("%d outcomes are not the expected ones", unexpected)
	}
	return nil
}
