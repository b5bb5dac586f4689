package proof

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof/model"
)

// record is one call of a verb on one job, as its caller saw it.
type record struct {
	verb     model.Verb // None is a dispatch
	client   int
	job      uuid.UUID
	auth     leasestore.Authority // of a holder; of a claim or a recovery holder and turn
	request  uuid.UUID            // of a claim or a recovery
	dispatch int64                // of a claim; of a dispatch, the one that it made

	lease leasestore.Lease
	ended leasestore.Job
	gone  bool // the recovery gave the job up
	err   error

	call, ret     int64 // nanoseconds, by the test's monotonic clock
	before, after time.Time
}

// grant names an ownership before its token is known.
type grant struct{ request, job uuid.UUID }

// converter numbers what the model numbers, and looks up in the ledger what
// the answers do not tell: when an ending was decided, and what became of a
// call whose answer was lost.
type converter struct {
	base      time.Time
	processes map[uuid.UUID]uint8
	grants    map[grant]uint16
	tokens    map[uuid.UUID]uint16
	granted   map[grant]entry
	ended     map[uuid.UUID]entry // by token
}

func newConverter(base time.Time, seen snapshot, records []record) *converter {
	c := &converter{
		base: base, processes: map[uuid.UUID]uint8{}, grants: map[grant]uint16{}, tokens: map[uuid.UUID]uint16{},
		granted: map[grant]entry{}, ended: map[uuid.UUID]entry{},
	}
	for _, entries := range seen.ledger {
		for _, e := range entries {
			if e.Request != nil {
				c.granted[grant{*e.Request, e.JobID}] = e
			}
			if e.Token != nil {
				c.ended[*e.Token] = e
			}
		}
	}
	for _, r := range records {
		if r.lease.Token != (leasestore.Token{}) && r.request != uuid.Nil {
			c.tokens[uuid.UUID(r.lease.Token)] = c.grant(r)
		}
	}
	return c
}

func (c *converter) grant(r record) uint16 {
	key := grant{r.request, r.job}
	if c.grants[key] == 0 {
		c.grants[key] = uint16(len(c.grants) + 1)
	}
	return c.grants[key]
}

func (c *converter) process(h leasestore.Holder) uint8 {
	if c.processes[h.Process] == 0 {
		c.processes[h.Process] = uint8(len(c.processes) + 1)
	}
	return c.processes[h.Process]
}

func (c *converter) time(t time.Time) model.Time { return model.Time(t.Sub(c.base).Microseconds()) }

func (c *converter) statement(r record) model.Statement {
	st := model.Statement{Verb: r.verb, Dispatch: uint8(r.dispatch), Turn: uint16(r.auth.Turn)}
	if r.verb != model.None {
		st.Actor = c.process(r.auth.Holder)
	}
	switch {
	case r.verb.Holding():
		st.Token, st.Epoch = c.tokens[uuid.UUID(r.auth.Token)], uint16(r.auth.Epoch)
	case r.verb != model.None:
		st.Fresh = c.grant(r)
	}
	if r.verb == model.Claim {
		st.Request = st.Fresh
	}
	if r.verb == model.Attach {
		st.Container = st.Turn
	}
	return st
}

// operation is the call for Porcupine; false if it cannot have done anything.
func (c *converter) operation(r record) (porcupine.Operation, bool) {
	out := outcome{before: c.time(r.before), after: c.time(r.after)}
	op := porcupine.Operation{ClientId: r.client, Input: c.statement(r), Call: r.call, Return: r.ret}
	ok := true
	switch answer, known := refusedAs(r.err); {
	case r.err == nil:
		c.succeeded(r, &out)
	case known:
		out.answers = []model.Answer{answer}
	default:
		if out.unknown = isUnknown(r.err); out.unknown {
			op.Return = math.MaxInt64
			ok = c.lookedUp(r, &out)
		} else {
			ok = false // it was not sent, or the decision had been a refusal
		}
	}
	op.Output = out
	return op, ok
}

func (c *converter) succeeded(r record, out *outcome) {
	out.data = true
	switch {
	case r.gone:
		out.answers, out.decided = []model.Answer{model.GivenUp}, c.time(*r.ended.EndedAt)
	case r.verb == model.Claim, r.verb == model.Recover:
		out.answers = []model.Answer{model.Accepted, model.Replayed}
		out.decided, out.expires, out.epoch = c.time(r.lease.GrantedAt), c.time(r.lease.ExpiresAt), uint16(r.lease.Epoch)
	case r.verb.Ends():
		out.answers = []model.Answer{model.Accepted, model.Confirmed}
		if e, ok := c.ended[uuid.UUID(r.auth.Token)]; ok {
			out.decided = c.time(e.At)
		} else if r.ended.EndedAt != nil {
			out.decided = c.time(*r.ended.EndedAt)
		}
	case r.verb.Holding():
		out.answers = []model.Answer{model.Accepted}
		out.expires, out.epoch = c.time(r.lease.ExpiresAt), uint16(r.lease.Epoch)
		out.decided = out.expires - spec.TTL
	}
}

// lookedUp finds in the ledger what a call has done whose answer was lost. Of
// renewals the ledger knows nothing.
func (c *converter) lookedUp(r record, out *outcome) bool {
	var e entry
	switch {
	case r.verb.Ends():
		e = c.ended[uuid.UUID(r.auth.Token)]
		if e.ID != 0 && !strings.HasPrefix(e.Outcome, endings[r.verb]) {
			return false
		}
	case r.verb.Holding():
		return true
	default:
		e = c.granted[grant{r.request, r.job}]
	}
	if e.ID == 0 {
		return false
	}
	out.data, out.decided, out.epoch = true, c.time(e.At), uint16(e.Epoch)
	if out.answers = []model.Answer{model.Accepted}; r.verb == model.Recover && e.Event == "FAILED" {
		out.answers = []model.Answer{model.GivenUp}
	}
	if e.Until != nil {
		out.expires = c.time(*e.Until)
	}
	return true
}

// history is the calls of each job, in the order in which they were made.
func (c *converter) history(records []record) (calls []call, byJob map[uuid.UUID][]porcupine.Operation) {
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(a.call, b.call) })
	byJob = map[uuid.UUID][]porcupine.Operation{}
	for _, r := range records {
		if op, ok := c.operation(r); ok {
			byJob[r.job] = append(byJob[r.job], op)
			calls = append(calls, call{r, op.Output.(outcome)})
		}
	}
	return calls, byJob
}
