package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// expect notes the first thing that is not as expected. An exit code of -1
// expects none.
func (r *result) expect(status leasestore.Status, exit int) {
	switch {
	case r.problem != "":
	case r.job.Status != status:
		r.problem = fmt.Sprintf("it is %s (%s) and not %s", r.job.Status, r.job.Failure.Message, status)
	case exit >= 0 && (r.job.ExitCode == nil || *r.job.ExitCode != exit):
		r.problem = fmt.Sprintf("its exit code is %s and not %d", exitCode(r.job), exit)
	case exit < 0 && r.job.ExitCode != nil:
		r.problem = "it has an exit code"
	case r.job.Attempt != 1:
		r.problem = fmt.Sprintf("it took %d attempts", r.job.Attempt)
	}
}

// printResults prints the table and returns how many outcomes are unexpected.
func printResults(out io.Writer, results []result) int {
	unexpected := 0
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nJOB\tSTATUS\tATTEMPTS\tEPOCHS\tNODE\tEXIT\tWAITED\tRAN\tAS EXPECTED")
	for _, r := range results {
		verdict := "yes"
		if r.problem != "" {
			unexpected++
			verdict = "NO: " + r.problem
		}
		node := r.job.NodeID
		if node == "" {
			node = "-"
		}
		waited, ran := times(r)
		fmt.Fprintln(w, strings.Join([]string{
			r.what, string(r.job.Status), strconv.FormatInt(r.job.Attempt, 10), epochs(r.ledger), node, exitCode(r.job), waited, ran, verdict,
		}, "\t"))
	}
	_ = w.Flush() // out is the terminal
	return unexpected
}

func exitCode(job leasestore.Job) string {
	if job.ExitCode == nil {
		return "-"
	}
	return strconv.Itoa(*job.ExitCode)
}

func times(r result) (waited, ran string) {
	if r.job.StartedAt == nil || r.job.EndedAt == nil {
		return "-", "-"
	}
	return r.job.StartedAt.Sub(r.job.CreatedAt).Round(time.Millisecond).String(),
		r.job.EndedAt.Sub(*r.job.StartedAt).Round(time.Millisecond).String()
}

// epochs are the ownerships that a ledger tells of.
func epochs(ledger []leasestore.Entry) string {
	var list []string
	for _, entry := range ledger {
		if epoch := strconv.FormatInt(entry.Epoch, 10); !slices.Contains(list, epoch) {
			list = append(list, epoch)
		}
	}
	return strings.Join(list, ",")
}

// overlap tells from their ledgers whether two jobs ever ran at the same time.
func overlap(a, b []leasestore.Entry) bool {
	aFrom, aUntil := interval(a)
	bFrom, bUntil := interval(b)
	return aFrom.Before(bUntil) && bFrom.Before(aUntil)
}

// interval is from the first claim to the last entry of a ledger.
func interval(ledger []leasestore.Entry) (from, until time.Time) {
	for _, entry := range ledger {
		if entry.Event == "CLAIMED" && from.IsZero() {
			from = entry.At
		}
		until = entry.At
	}
	return from, until
}
