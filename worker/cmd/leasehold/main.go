// Command leasehold runs jobs under durable, fenced leases: it starts workers,
// starts and follows jobs, and shows who owned them when.
//
// It exits with 0 if all went well, 1 if a job failed or something broke on the
// way, 2 if what was asked cannot be done as asked (nothing was changed then),
// and 130 if it was interrupted or its job was cancelled.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sethvargo/go-envconfig"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		// The first signal asks. From here on the second one has its usual
		// effect, so that nobody is kept waiting who does not want to wait.
		signal.Stop(signals)
		cancel()
	}()
	os.Exit(run(ctx, os.Args[1:], envconfig.OsLookuper(), os.Stdin, os.Stdout, os.Stderr))
}
