package proof

import (
	"fmt"
	"testing"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof/model"
)

// odds are how often a holder does what, of 100.
var odds = []struct {
	verb model.Verb
	of   int
}{
	{model.Renew, 48},
	{model.Prove, 25},
	{model.Attach, 12},
	{model.Release, 12},
	{model.Complete, 1},
	{model.Fail, 1},
	{model.Cancel, 1},
}

func (c *client) choose() model.Verb {
	n := c.random.IntN(100)
	for _, o := range odds {
		if n -= o.of; n < 0 {
			return o.verb
		}
	}
	return model.Renew
}

// act shows an authority, the latest or one that has long been lost, as it was
// given or in a later turn.
func (c *client) act(t *testing.T, k known) {
	t.Helper()
	auth := k.auths[len(k.auths)-1]
	if c.random.IntN(5) == 0 {
		auth = k.auths[c.random.IntN(len(k.auths))]
	}
	verb := c.choose()
	if verb == model.Prove && c.random.IntN(2) == 0 || auth.Holder != c.holder && c.random.IntN(2) == 0 {
		auth = auth.By(c.holder, c.board.turns.Add(1))
	}
	r := c.call(t, record{verb: verb, job: k.job.ID, auth: auth}, func(r *record) { c.does(t, r) })
	c.learned(r)
}

func (c *client) does(t *testing.T, r *record) {
	t.Helper()
	ctx, auth := t.Context(), r.auth
	failed := leasestore.Outcome{Failure: leasestore.Failure{Kind: leasestore.SystemFailure, Reason: "LOST", Message: "lost"}}
	switch r.verb {
	case model.Prove:
		r.lease, r.err = c.verbs.Prove(ctx, auth, ttl)
	case model.Renew:
		r.lease, r.err = c.verbs.Renew(ctx, auth, ttl)
	case model.Attach:
		r.lease, r.err = c.verbs.Attach(ctx, auth, "one", fmt.Sprint("container ", auth.Turn), ttl)
	case model.Complete:
		r.ended, r.err = c.verbs.Complete(ctx, auth, leasestore.Outcome{})
	case model.Fail:
		r.ended, r.err = c.verbs.Fail(ctx, auth, failed)
	case model.Cancel:
		r.ended, r.err = c.verbs.Cancel(ctx, auth, leasestore.Outcome{})
	case model.Release:
		r.ended, r.err = c.verbs.Release(ctx, auth, failed, false)
	default:
		t.Errorf("%s is no verb of a holder", r.verb)
	}
}
