package proof

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold/leasehold/tests/proof/model"
)

// spec is the protocol that the histories must be a history of: the transition
// function that the explorer has tried in every order.
var spec = model.Protocol{TTL: model.Time(ttl.Microseconds()), MaxAttempts: maxAttempts, MaxRecoveries: maxRecoveries}

// believed is a state that a job may be in.
type believed struct {
	model.Row
	// Latest is when the lease ends at the latest. It differs from Expires only
	// after a renewal whose outcome is not known.
	Latest  model.Time
	Decided model.Time // the last decision
}

// outcome is what is known of a call. Times are the database's clock, which
// was read before and after it.
type outcome struct {
	answers []model.Answer // any of these explains what the caller got
	unknown bool           // or nothing happened
	data    bool           // decided, expires and epoch are known
	decided model.Time
	expires model.Time
	epoch   uint16
	before  model.Time
	after   model.Time
}

// linear is the spec as Porcupine wants it, for the history of one job.
func linear() porcupine.Model {
	spec := porcupine.NondeterministicModel{
		Init: func() []any { return []any{believed{Row: model.Row{Status: model.Queued, Dispatch: 1}}} },
		Step: func(state, input, output any) []any {
			return explain(state.(believed), input.(model.Statement), output.(outcome))
		},
		DescribeOperation: func(input, output any) string { return describe(input.(model.Statement), output.(outcome)) },
	}
	return spec.ToModel()
}

// explain returns the states that a job may be in after a call, if it was in s
// when the call took effect.
func explain(s believed, st model.Statement, out outcome) []any {
	var next []any
	if out.unknown {
		next = append(next, s)
		out.after = math.MaxInt32
		if !out.data {
			return append(next, s.maybeExtended(st, out)...)
		}
	}
	if st.Verb == model.None {
		return append(next, s.dispatched(st)...)
	}
	for _, answer := range out.answers {
		switch {
		case answer.Writes():
			next = append(next, s.written(st, out, answer)...)
		case s.answers(st, out, answer):
			next = append(next, s)
		}
	}
	return next
}

func (s believed) dispatched(st model.Statement) []any {
	switch {
	case s.Status == model.Pending && s.Dispatch+1 == st.Dispatch:
		s.Status, s.Dispatch = model.Queued, st.Dispatch
	case s.Status != model.Queued || s.Dispatch != st.Dispatch:
		return nil
	}
	return []any{s}
}

// ends are the moments at which the lease may end, as far as they differ.
func (s believed) ends() []model.Time {
	if s.Latest > s.Expires {
		return []model.Time{s.Expires, s.Latest}
	}
	return []model.Time{s.Expires}
}

// written explains a change whose decision is known. Decisions about one job
// are made one after another, under its lock, and within the call.
func (s believed) written(st model.Statement, out outcome, answer model.Answer) []any {
	if out.decided < max(out.before, s.Decided) || out.decided > out.after {
		return nil
	}
	for _, end := range s.ends() {
		row := s.Row
		row.Expires = end
		view := model.View{Now: out.decided, Epoch: row.Epoch}
		if spec.Judge(row, st, view) != answer {
			continue
		}
		row = spec.Apply(row, st, answer, view)
		if row.Token != 0 && (row.Expires != out.expires || row.Epoch != out.epoch) {
			continue
		}
		return []any{believed{Row: row, Latest: row.Expires, Decided: out.decided}}
	}
	return nil
}

// answers says whether a call that changes nothing may be answered so.
func (s believed) answers(st model.Statement, out outcome, answer model.Answer) bool {
	if st.Verb == model.Recover { // sent again: what it took is still its own
		return s.Token == st.Fresh && s.Holder == st.Actor
	}
	for _, end := range s.ends() {
		for _, now := range []model.Time{max(out.before, s.Decided), max(out.after, s.Decided)} {
			row := s.Row
			row.Expires = end
			if judged := spec.Judge(row, st, model.View{Now: now}); judged == answer || older(row, st, judged, answer) {
				return true
			}
		}
	}
	return false
}

// older explains what an ownership before the last one is told about its end:
// the store looks it up in its ledger, and the model knows the last only.
func older(row model.Row, st model.Statement, judged, answer model.Answer) bool {
	return judged == model.OwnerGone && (answer == model.Confirmed || answer == model.EndedAs) &&
		row.EndedBy != 0 && row.EndedBy != st.Token
}

// maybeExtended is the state after a renewal of which nothing is known but
// when it was sent: it was decided after that, and before the lease had ended.
func (s believed) maybeExtended(st model.Statement, out outcome) []any {
	row, now := s.Row, max(out.before, s.Decided)
	row.Expires = max(s.Latest, s.Expires)
	latest := row.Expires + spec.TTL
	view := model.View{Now: now, Epoch: row.Epoch}
	if spec.Judge(row, st, view) != model.Accepted {
		return nil
	}
	row = spec.Apply(row, st, model.Accepted, view)
	row.Expires = max(s.Expires, now+spec.TTL)
	return []any{believed{Row: row, Latest: max(latest, row.Expires), Decided: now}}
}

func describe(st model.Statement, out outcome) string {
	text := fmt.Sprintf("[%8d %8d] process %d: %-8s token %d turn %d", out.before, out.after, st.Actor, st.Verb, st.Token, st.Turn)
	if st.Fresh != 0 {
		text += fmt.Sprintf(" new token %d", st.Fresh)
	}
	if out.unknown {
		text += " -> unknown"
	}
	text += fmt.Sprintf(" -> %v", out.answers)
	if out.data {
		text += fmt.Sprintf(" decided %d expires %d epoch %d", out.decided, out.expires, out.epoch)
	}
	return text
}
