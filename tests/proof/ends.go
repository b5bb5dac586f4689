package proof

import (
	"cmp"
	"slices"
	"time"
)

func (w *walk) ended(e entry) {
	w.acts(e)
	switch {
	case e.Token == nil:
		w.broken(TokensDie, e, "%s without the token that it ended", e.Event)
	case w.tokens[*e.Token]:
		w.broken(TokensDie, e, "%s by a token that had ended an ownership before", e.Event)
	default:
		w.tokens[*e.Token] = true
	}
	w.owner = nil
	if e.Event != "RELEASED" {
		w.end = &e
	}
}

func (w *walk) withdrawn(e entry) {
	if w.owner != nil {
		w.broken(OnlyTheOwner, e, "withdrawn while epoch %d owns it", w.owner.Epoch)
	}
	w.end = &e
}

// compare holds the rows against what the ledger makes of them.
func (w *walk) compare() {
	job, none := w.job, entry{}
	if job.Attempt > job.MaxAttempts || job.Recoveries > maxRecoveries+1 {
		w.broken(AttemptsBounded, none, "attempt %d of %d, recovered %d times", job.Attempt, job.MaxAttempts, job.Recoveries)
	}
	if job.Attempt > w.claims || w.claims > 0 && job.Recoveries != w.recoveries {
		w.broken(RowsAgree, none, "attempt %d with %d claims, %d recoveries with %d entries",
			job.Attempt, w.claims, job.Recoveries, w.recoveries)
	}
	if job.Epoch != w.highest {
		w.broken(RowsAgree, none, "epoch %d, and %d was the last one granted", job.Epoch, w.highest)
	}
	ended := job.Status == "COMPLETED" || job.Status == "FAILED" || job.Status == "CANCELED"
	switch {
	case w.end == nil && ended:
		w.broken(RowsAgree, none, "%s, and the ledger knows no end", job.Status)
	case w.end != nil && (w.end.Event != job.Status || job.EndedAt == nil || !job.EndedAt.Equal(w.end.At)):
		w.broken(RowsAgree, *w.end, "%s, and the ledger ended it as %s", job.Status, w.end.Event)
	}
	w.compareLease()
}

func (w *walk) compareLease() {
	job, none := w.job, entry{}
	switch {
	case (job.LeaseEpoch != nil) != (job.Status == "RUNNING"):
		w.broken(RowsAgree, none, "%s, and its lease says otherwise", job.Status)
	case (job.LeaseEpoch != nil) != (w.owner != nil):
		w.broken(RowsAgree, none, "%s, and the ledger knows of no such ownership", job.Status)
	case w.owner == nil:
	case *job.LeaseEpoch != w.owner.Epoch || !job.GrantedAt.Equal(w.granted):
		w.broken(RowsAgree, *w.owner, "the lease is not the one that was granted last")
	case *job.Turn < w.owner.Turn || *job.Process != *w.owner.Process:
		w.broken(RowsAgree, *w.owner, "the lease is bound to another turn or process than the one that took it last")
	case job.ExpiresAt.Before(*w.owner.Until):
		w.broken(RowsAgree, *w.owner, "the lease ends %s before the time that was promised", w.owner.Until.Sub(*job.ExpiresAt))
	}
}

// limits counts, for definitions that never changed, who ran when.
func (s snapshot) limits() []Violation {
	type change struct {
		entry
		by int64
	}
	byDefinition, limit := map[string][]change{}, map[string]int64{}
	for _, job := range s.jobs {
		if job.MaxRunning == 0 {
			continue
		}
		limit[job.Definition] = job.MaxRunning
		for _, e := range s.ledger[job.ID] {
			switch {
			case e.Event == "CLAIMED":
				byDefinition[job.Definition] = append(byDefinition[job.Definition], change{e, 1})
			case e.Event == "RELEASED", e.Event == "COMPLETED", e.Event == "FAILED", e.Event == "CANCELED" && e.Process != nil:
				byDefinition[job.Definition] = append(byDefinition[job.Definition], change{e, -1})
			}
		}
	}
	var found []Violation
	for name, changes := range byDefinition {
		slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.by, b.by)) })
		var running int64
		for _, c := range changes {
			if running += c.by; running > limit[name] {
				found = append(found, Violation{LimitHolds, c.JobID, c.ID, "one too many of " + name + " at " + c.At.Format(time.RFC3339Nano)})
			}
		}
	}
	return found
}

// refused holds what callers saw refused against what was kept.
func (s snapshot) refused(refusals []Refusal) []Violation {
	kept := map[Refusal]int{}
	for _, entries := range s.ledger {
		for _, e := range entries {
			if e.Event == "REFUSED" && e.Process != nil {
				kept[Refusal{e.JobID, e.Epoch, *e.Process, e.Turn}]++
			}
		}
	}
	var found []Violation
	for _, r := range refusals {
		if kept[r]--; kept[r] < 0 {
			found = append(found, Violation{Rule: RefusalsAreKept, Job: r.Job, Detail: "the ledger lacks a refusal that its caller was told of"})
		}
	}
	return found
}
