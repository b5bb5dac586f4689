package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore"
)

// pruneBatch is how many jobs one transaction forgets: few enough that it
// locks nothing for long.
const pruneBatch = 500

func (c *cli) jobsPruneCommand() *cobra.Command {
	var age string
	cmd := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Forget jobs that ended long ago, with their logs and their ledger",
		Long: `Forget jobs that ended longer ago than an age, oldest first, each together with
its log and its entries in the ledger. Jobs that have not ended stay, and so do
those that ended within the last hour. An idempotency key that is forgotten
makes a new job.

It works in small transactions beside live workers, and can be interrupted and
repeated. Temporal keeps its own history for as long as its namespace says.`,
		Example: "  leasehold jobs prune --older-than 30d\n  leasehold jobs prune --older-than 36h -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			olderThan, err := parseAge(age)
			if err != nil {
				return &refusedError{Err: err}
			}
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			return c.prune(cmd.Context(), store, olderThan)
		},
	}
	cmd.Flags().StringVar(&age, "older-than", "", "`AGE`, such as 30d or 12h (required)")
	return cmd
}

// parseAge reads a Go duration, or a whole number of days such as 30d.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, errors.New("give the age of what is to be forgotten: --older-than 30d")
	}
	age, err := time.ParseDuration(text)
	if number, days := strings.CutSuffix(text, "d"); days {
		var n int
		n, err = strconv.Atoi(number)
		if n > 36500 {
			err = errors.New("more than a hundred years")
		}
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age < 0 {
		return 0, fmt.Errorf("--older-than is %q: it must be an age such as 30d or 12h", text)
	}
	return age, nil
}

func (c *cli) prune(ctx context.Context, store *leasestore.Store, olderThan time.Duration) error {
	forgotten := 0
	for {
		ids, err := store.Prune(ctx, olderThan, pruneBatch)
		if err != nil {
			if forgotten > 0 {
				fmt.Fprintf(c.errOut, "%d jobs were forgotten until then.\n", forgotten)
			}
			return err
		}
		forgotten += len(ids)
		if len(ids) < pruneBatch {
			break
		}
		fmt.Fprintf(c.errOut, "%d jobs …\n", forgotten)
	}
	if c.output == "json" {
		return c.printJSON(map[string]int{"forgotten": forgotten})
	}
	_, err := fmt.Fprintf(c.out, "Forgot %d jobs that ended more than %s ago.\n", forgotten, span(olderThan))
	return err
}
