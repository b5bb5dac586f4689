package dev

import (
	"fmt"
	"strings"
)

// MissingError reports that something which a part needs is not on this
// machine. Tests skip on it; everything else is a failure.
type MissingError struct {
	What string // "PostgreSQL 14 or later"
	Cure string // "install it (Debian: apt-get install postgresql)"
}

// Error says what is missing and what to do about it, in one sentence.
func (e *MissingError) Error() string {
	return e.What + " was not found: " + e.Cure
}

// ExitError reports that a process ended by itself.
type ExitError struct {
	Name      string // what the process is called, such as "PostgreSQL"
	State     string // how it ended, such as "exit status 1"
	LogFile   string
	LastLines []string // the last lines that it logged since it was started
}

// Error says how the process ended, and its last log lines.
func (e *ExitError) Error() string {
	return fmt.Sprintf("%s has ended by itself (%s)%s", e.Name, e.State, quoteLines(e.LogFile, e.LastLines))
}

func quoteLines(file string, lines []string) string {
	if len(lines) == 0 {
		return "; its log " + file + " is empty"
	}
	return "; the end of its log " + file + ":\n\t" + strings.Join(lines, "\n\t")
}
