package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore"
)

func (c *cli) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Prove from the ledger that no two owners of a job overlapped",
		Long: `Prove from the ledger that no two ownerships of a job overlapped: each began
after the one before it was ended by its owner, or had run out. It reads the
whole ledger and changes nothing. Jobs that were pruned prove nothing any more.

Exits with 1 if an entry contradicts that, and shows the first hundred.`,
		Example: "  leasehold verify\n  leasehold verify -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			found, err := store.Verify(cmd.Context())
			if err != nil {
				return err
			}
			return c.showVerification(found)
		},
	}
}

func (c *cli) showVerification(found leasestore.Verification) error {
	broken := len(found.Violations)
	if c.output == "json" {
		found.Violations = orEmpty(found.Violations)
		if err := c.printJSON(found); err != nil {
			return err
		}
	} else if broken == 0 {
		fmt.Fprintf(c.out, "%d ownerships of %d jobs: no two of a job overlapped.\n", found.Ownerships, found.Jobs)
	} else if err := c.printTable(violationRows(found.Violations)); err != nil {
		return err
	}
	if broken > 0 {
		fmt.Fprintf(c.errOut, "leasehold: the ledger of %d ownerships breaks its rules %s: leasehold jobs show JOB shows what happened\n",
			found.Ownerships, times(broken))
		return &endedError{code: exitFailed}
	}
	return nil
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 100:
		return "a hundred times or more"
	}
	return strconv.Itoa(n) + " times"
}

func violationRows(violations []leasestore.Violation) [][]string {
	rows := [][]string{{"ENTRY", "JOB", "EPOCH", "EVENT", "AFTER", "RULE THAT IT BREAKS"}}
	for _, v := range violations {
		rows = append(rows, []string{
			strconv.FormatInt(v.Entry, 10), v.JobID.String(), strconv.FormatInt(v.Epoch, 10),
			v.Event, or(v.Previous, "-"), v.Rule,
		})
	}
	return rows
}
