package model

import "fmt"

// violated is the first promise that a step has broken, or nothing.
func (b Bounds) violated(before, after State, e Event) string {
	if e.Judged {
		if broken := lawful(e); broken != "" {
			return broken
		}
	}
	if e.Wrote {
		if broken := b.written(before, e); broken != "" {
			return broken
		}
	}
	for i := range after.Rows {
		if was, is := before.Rows[i], after.Rows[i]; was.Status.Ended() && was != is {
			return fmt.Sprintf("I6: job %d had ended as %s, and changed", i, was.Status)
		}
	}
	if b.Limit > 0 && after.running() > b.Limit {
		return fmt.Sprintf("I9: %d jobs run, and %d may", after.running(), b.Limit)
	}
	return bearers(after)
}

// lawful looks at a judgement made under the lock, at this very moment, apart
// from how it was made.
func lawful(e Event) string {
	row, st := e.Before, e.Flight.Statement
	switch {
	case !e.Flight.Answer.Writes():
		return ""
	case st.Verb == Claim && (row.Status != Queued || row.Token != 0):
		return "I8: a claim of a job that is not queued"
	case st.Verb == Claim:
		return ""
	case st.Verb == Recover && row.Token == 0:
		return "I10: recovery of a job without a lease"
	case st.Verb == Recover && row.Expires > 0:
		return "I10: recovery of a live lease"
	case st.Verb == Recover:
		return ""
	case st.Token != row.Token:
		return fmt.Sprintf("I3: %s accepted with a token that is not the stored one", st.Verb)
	case row.Expires <= 0:
		return fmt.Sprintf("I3, I4: %s accepted after the lease had expired", st.Verb)
	case st.Turn < row.Turn, st.Turn == row.Turn && st.Actor != row.Holder:
		return fmt.Sprintf("L11: %s accepted from a turn that was superseded", st.Verb)
	}
	return ""
}

// written looks at a change as it commits.
func (b Bounds) written(s State, e Event) string {
	was, is := e.Before, e.After
	switch granted := is.Token != 0 && is.Token != was.Token; {
	case granted && is.Epoch <= s.Highest[e.Flight.Job]:
		return fmt.Sprintf("I2: epoch %d was granted again", is.Epoch)
	case is.Token != 0 && is.Token == was.Token && is.Expires < was.Expires:
		return "I4: the expiry fell"
	case is.Token != 0 && is.Token == was.Token && was.Container != 0 && is.Container != was.Container:
		return "I12: the container changed"
	case is.Attempt > b.MaxAttempts:
		return fmt.Sprintf("I15: attempt %d of %d", is.Attempt, b.MaxAttempts)
	case is.Recoveries > b.MaxRecoveries+1, is.Epoch > uint16(b.MaxAttempts)*uint16(b.MaxRecoveries+2):
		return fmt.Sprintf("I15: epoch %d, and recovery is bounded", is.Epoch)
	case (is.Token != 0) != (is.Status == Running):
		return fmt.Sprintf("I13: the job is %s, and its lease says otherwise", is.Status)
	}
	return ""
}

// bearers looks at who acts as an owner, whatever the database thinks.
func bearers(s State) string {
	for i, a := range s.Actors {
		if !a.bears() {
			continue
		}
		row := s.Rows[a.Job]
		for j, other := range s.Actors[:i] {
			if other.bears() && other.Job == a.Job && other.Token != a.Token {
				return fmt.Sprintf("I1: %s and %s both bear job %d", names[j], names[i], a.Job)
			}
		}
		switch {
		case row.Token != a.Token:
			return fmt.Sprintf("I1: %s bears job %d, whose lease is gone or another's", names[i], a.Job)
		case a.Until > row.Expires:
			return fmt.Sprintf("I16: %s trusts its lease of job %d longer than it lasts", names[i], a.Job)
		}
	}
	return ""
}

var names = [...]string{"worker A", "worker B", "the recoverer"}
