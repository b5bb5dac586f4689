package proof

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Rule is a promise that can be proven from the ledger.
type Rule string

// The rules.
const (
	Verified        Rule = "the ledger is one that Store.Verify accepts"
	NoOverlap       Rule = "nobody owns a job before the time promised to its owner is over"
	OnlyTheOwner    Rule = "only the owner of the moment acts, in its latest turn"
	EndsOnce        Rule = "a job ends once, and nothing comes after its end"
	TokensDie       Rule = "a token ends one ownership"
	RefusalsAreKept Rule = "every refused ending is kept, with its outcome"
	AttemptsBounded Rule = "attempts and recoveries are bounded"
	RowsAgree       Rule = "the rows are what the ledger makes them"
	LimitHolds      Rule = "no more jobs of a definition run than may"
)

// maxRecoveries is the store's bound for one attempt.
const maxRecoveries = 10

// walk goes through the ledger of one job, for what Store.Verify does not look
// at: turns and processes, take-overs, tokens, ends, bounds, and the rows.
type walk struct {
	job    row
	tokens map[uuid.UUID]bool // that have ended an ownership, of any job

	owner      *entry // the grant, with the turn, process and until of the latest take-over
	granted    time.Time
	end        *entry
	highest    int64
	claims     int64
	recoveries int64 // of this attempt
	found      []Violation
}

func (w *walk) broken(rule Rule, e entry, format string, args ...any) {
	w.found = append(w.found, Violation{Rule: rule, Job: w.job.ID, Entry: e.ID, Detail: fmt.Sprintf(format, args...)})
}

func (w *walk) step(e entry) {
	if e.Event == "REFUSED" {
		if e.Outcome == "" || e.Process == nil {
			w.broken(RefusalsAreKept, e, "nobody knows which ending was refused, or whose")
		}
		return
	}
	if w.end != nil {
		w.broken(EndsOnce, e, "%s after %s", e.Event, w.end.Event)
	}
	switch {
	case e.Event == "CLAIMED":
		w.claims++
		w.recoveries = 0
		w.grant(e)
	case e.Event == "RECOVERED", e.Event == "FAILED" && e.Request != nil:
		w.recovered(e)
	case e.Event == "TAKEN_OVER":
		w.takenOver(e)
	case e.Event == "CANCELED" && e.Process == nil:
		w.withdrawn(e)
	default:
		w.ended(e)
	}
}

// recovered is a lease that was rotated, or a job that was given up instead.
func (w *walk) recovered(e entry) {
	if w.owner != nil && e.At.Before(*w.owner.Until) {
		w.broken(NoOverlap, e, "recovered %s before epoch %d could have run out", w.owner.Until.Sub(e.At), w.owner.Epoch)
	}
	if w.recoveries++; w.recoveries > maxRecoveries+1 {
		w.broken(AttemptsBounded, e, "recovered %d times in one attempt", w.recoveries)
	}
	w.grant(e)
	if e.Event == "FAILED" {
		w.owner, w.end = nil, &e
	}
}

func (w *walk) grant(e entry) {
	if e.Until == nil || e.Until.Before(e.At) {
		w.broken(NoOverlap, e, "the ownership ends before it begins")
		e.Until = &e.At
	}
	w.highest = max(w.highest, e.Epoch)
	w.owner, w.granted = &e, e.At
}

func (w *walk) takenOver(e entry) {
	if !w.acts(e) {
		return
	}
	if e.Until == nil || e.Until.Before(*w.owner.Until) {
		w.broken(NoOverlap, e, "the take-over shortens the lease")
		return
	}
	w.owner.Process, w.owner.Turn, w.owner.Until = e.Process, e.Turn, e.Until
}

// acts says whether the entry is by the owner, in a turn that may act.
func (w *walk) acts(e entry) bool {
	switch {
	case w.owner == nil:
		w.broken(OnlyTheOwner, e, "%s by epoch %d, and nobody owned the job", e.Event, e.Epoch)
		return false
	case e.Epoch != w.owner.Epoch:
		w.broken(OnlyTheOwner, e, "%s by epoch %d, and epoch %d owned the job", e.Event, e.Epoch, w.owner.Epoch)
	case e.Turn < w.owner.Turn:
		w.broken(OnlyTheOwner, e, "%s in turn %d after turn %d", e.Event, e.Turn, w.owner.Turn)
	case e.Turn == w.owner.Turn && (e.Process == nil || *e.Process != *w.owner.Process):
		w.broken(OnlyTheOwner, e, "%s in turn %d by another process than the one that has it", e.Event, e.Turn)
	}
	return true
}
