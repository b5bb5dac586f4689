package main

import (
	"context"
	"errors"
	"strings"

	"github.com/leasehold/leasehold/leasestore"
)

// refusedError reports something that cannot be done as asked: bad arguments,
// a bad file, a bad configuration. Nothing was changed.
type refusedError struct{ Err error }

func (e *refusedError) Error() string { return e.Err.Error() }
func (e *refusedError) Unwrap() error { return e.Err }

// endedError carries the exit code of an end that was already told.
type endedError struct{ code int }

func (*endedError) Error() string { return "" }

const (
	exitFailed      = 1
	exitRefused     = 2
	exitInterrupted = 130
)

func exitCode(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	if ended, ok := errors.AsType[*endedError](err); ok {
		return ended.code
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if refused(err) {
		return exitRefused
	}
	return exitFailed
}

func refused(err error) bool {
	if _, ok := errors.AsType[*refusedError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*leasestore.InvalidError](err); ok {
		return true
	}
	_, ok := errors.AsType[*leasestore.SchemaError](err)
	return ok
}

// didYouMean returns a hint at the known name that is nearest to a mistyped
// one, or nothing if none is near.
func didYouMean(typed string, known []string) string {
	best, bestDistance := "", 1+len(typed)/3
	for _, name := range known {
		if d := distance(strings.ToLower(typed), name); d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the number of letters to add, drop or change that turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
