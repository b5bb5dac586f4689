package activities

import (
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/leasestore"
)

// Ending is how a run ended, as it was seen: the evidence from which the
// job's outcome is decided.
type Ending struct {
	// Exit is the container's exit; nil if it did not run or its end is unknown.
	Exit *Exit `json:"exit,omitempty"`
	// Failure is trouble other than the program's own exit.
	Failure *leasestore.Failure `json:"failure,omitempty"`
	// ExitCode is set where there is a code without a run: a start that was refused.
	ExitCode *int     `json:"exit_code,omitempty"`
	Started  bool     `json:"started"`
	Warnings []string `json:"warnings,omitempty"`
	LogTail  string   `json:"log_tail,omitempty"`
}

func endingOf(trouble *RuntimeError) *Ending {
	ending := &Ending{Failure: &leasestore.Failure{
		Kind: leasestore.SystemFailure, Reason: string(trouble.Reason), Message: trouble.Message,
	}}
	if trouble.User() {
		ending.Failure.Kind = leasestore.UserFailure
	}
	if trouble.ExitCode != 0 {
		ending.ExitCode = &trouble.ExitCode
	}
	return ending
}

// Reasons of failures that are not a [RuntimeErrorReason].
const (
	ReasonExitCode       = "EXIT_CODE"
	ReasonOOM            = "OOM"
	ReasonTimeout        = "TIMEOUT"
	ReasonCanceled       = "CANCELED"
	ReasonLeaseLost      = "LEASE_LOST"
	ReasonStale          = "STALE_DEFINITION"
	ReasonEndpointStatus = "UNEXPECTED_STATUS"
	ReasonEndpoint       = "ENDPOINT_UNREACHABLE"
)

// Verdict is what is to be done about a run.
type Verdict string

// The verdicts, each the verb that reports it.
const (
	VerdictComplete Verdict = "complete"
	VerdictFail     Verdict = "fail"
	VerdictCancel   Verdict = "cancel"
	VerdictRelease  Verdict = "release"
)

// Decide turns what was seen of a run into its outcome. Each rule wins over
// those below it: the recorded intent, trouble from outside, the memory limit,
// the exit code.
func Decide(job leasestore.Job, seen Ending) (Verdict, leasestore.Outcome) {
	outcome := leasestore.Outcome{ExitCode: seen.ExitCode, Warnings: seen.Warnings, LogTail: seen.LogTail}
	if seen.Exit != nil {
		outcome.ExitCode = &seen.Exit.Code
		outcome.Warnings = append(outcome.Warnings, exitWarnings(*seen.Exit)...)
	}
	switch {
	case job.Intent == leasestore.CancelIntent, seen.Failure != nil && seen.Failure.Reason == ReasonCanceled:
		outcome.Failure = CanceledOnRequest()
		return VerdictCancel, outcome
	case job.Intent == leasestore.TimeoutIntent:
		outcome.Failure = user(ReasonTimeout, "timed out"+after(job))
	case seen.Failure != nil:
		outcome.Failure = *seen.Failure
	case seen.Exit == nil:
		return VerdictComplete, outcome
	case seen.Exit.OOMKilled && seen.Exit.Code == 137:
		outcome.Failure = user(ReasonOOM, "killed: it reached its memory limit"+limit(job))
	case seen.Exit.Code != 0:
		outcome.Failure = user(ReasonExitCode, fmt.Sprintf("exited with code %d%s", seen.Exit.Code, lastWords(seen.LogTail)))
	default:
		return VerdictComplete, outcome
	}
	if outcome.Failure.Kind == leasestore.SystemFailure || job.RetryUserFailures {
		return VerdictRelease, outcome
	}
	return VerdictFail, outcome
}

// CanceledOnRequest is the failure of a job that was canceled before or while
// it ran.
func CanceledOnRequest() leasestore.Failure { return user(ReasonCanceled, "canceled on request") }

func user(reason, message string) leasestore.Failure {
	return leasestore.Failure{Kind: leasestore.UserFailure, Reason: reason, Message: message}
}

func exitWarnings(exit Exit) []string {
	var warnings []string
	if exit.OOMKilled && exit.Code != 137 {
		warnings = append(warnings, "the memory limit was hit and a process of the container was killed")
	}
	if exit.LogsIncomplete {
		warnings = append(warnings, "the log is incomplete")
	}
	return warnings
}

func after(job leasestore.Job) string {
	spec, err := containerSpec(job)
	if err != nil || spec.Timeout == 0 {
		return ""
	}
	return " after " + spec.Timeout.String()
}

func limit(job leasestore.Job) string {
	spec, err := containerSpec(job)
	if err != nil || spec.Memory == 0 {
		return ""
	}
	return fmt.Sprintf(" (memory limit %d MiB)", spec.Memory>>20)
}

func lastWords(tail string) string {
	lines := strings.Split(strings.TrimRight(tail, "\n"), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" {
		return ""
	}
	return ": " + last
}

// maxTail bounds the log lines that travel through Temporal's history.
const maxTail = 8 << 10

// Tail keeps the last lines of a log, at most maxTail bytes.
type Tail struct {
	lines []string
	size  int
}

// Add appends a line and lets the oldest go.
func (t *Tail) Add(line LogLine) {
	text := line.Text
	if len(text) > maxTail/2 {
		text = strings.ToValidUTF8(text[len(text)-maxTail/2:], "")
	}
	t.lines, t.size = append(t.lines, text), t.size+len(text)+1
	for t.size > maxTail {
		t.size -= len(t.lines[0]) + 1
		t.lines = t.lines[1:]
	}
}

// String joins the lines, each with its newline.
func (t *Tail) String() string {
	if len(t.lines) == 0 {
		return ""
	}
	return strings.Join(t.lines, "\n") + "\n"
}
