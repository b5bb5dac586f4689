package proof

import (
	"slices"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/tests/proof/model"
)

// hard are cases that the histories of the store together must have met.
var hard = map[string]func(record, outcome) bool{
	"a call whose answer was lost had committed": func(r record, o outcome) bool { return isUnknown(r.err) && o.data },
	"a claim or recovery was sent again, and got what it had": func(r record, o outcome) bool {
		return r.err == nil && r.request != uuid.Nil && o.decided < o.before
	},
	"an expired lease was refused":      func(_ record, o outcome) bool { return slices.Contains(o.answers, model.Expired) },
	"a rotated token was refused":       func(_ record, o outcome) bool { return slices.Contains(o.answers, model.OwnerGone) },
	"a renewal's outcome was not known": func(r record, o outcome) bool { return o.unknown && r.verb.Holding() && !r.verb.Ends() },
	"an authority was proven":           func(r record, o outcome) bool { return r.err == nil && r.verb == model.Prove },
	"a lease was recovered":             func(r record, _ outcome) bool { return r.err == nil && r.verb == model.Recover },
	"a job was claimed again":           func(r record, o outcome) bool { return r.err == nil && r.verb == model.Claim && o.epoch > 1 },
	"a job was ended":                   func(r record, _ outcome) bool { return r.err == nil && r.verb.Ends() },
}

func (h history) meets(met map[string]int) {
	for _, c := range h.calls {
		for name, is := range hard {
			if is(c.record, c.outcome) {
				met[name]++
			}
		}
	}
}
