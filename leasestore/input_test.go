package leasestore_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// refusals are inputs that can never be accepted, by verb and field. good is a
// live lease, offered a job that waits for a claim.
func (f fixture) refusals(good leasestore.Authority, offered leasestore.Job) map[string]func() error {
	ctx := f.t.Context()
	calls := map[string]func() error{}
	for what, text := range map[string]string{"empty": "", "NUL": "a\x00b", "1 MB": strings.Repeat("x", 1<<20), "not UTF-8": "\xff"} {
		calls["attach, container ID, "+what] = func() error { _, err := f.Attach(ctx, good, "one", text, ttl); return err }
		calls["attach, node ID, "+what] = func() error { _, err := f.Attach(ctx, good, text, "c1", ttl); return err }
		calls["fail, failure reason, "+what] = func() error {
			_, err := f.Fail(ctx, good, leasestore.Outcome{Failure: leasestore.Failure{Kind: leasestore.UserFailure, Reason: text}})
			return err
		}
		calls["renew, holder's worker ID, "+what] = func() error { a := good; a.Worker = text; _, err := f.Renew(ctx, a, ttl); return err }
		calls["claim, holder's worker ID, "+what] = func() error {
			_, err := f.Claim(ctx, request(offered, leasestore.Holder{Worker: text, Process: uuid.New()}))
			return err
		}
		calls["apply, definition, "+what] = func() error { _, err := f.Apply(ctx, heartbeats(text, 0)); return err }
		calls["apply, spec, "+what] = func() error {
			d := containers("x")
			d.Spec = json.RawMessage(text)
			_, err := f.Apply(ctx, d)
			return err
		}
		calls["node, endpoint, "+what] = func() error {
			_, err := f.RegisterNode(ctx, leasestore.Node{ID: "two", Endpoint: text, Capacity: 1})
			return err
		}
		calls["node, label, "+what] = func() error {
			_, err := f.RegisterNode(ctx, leasestore.Node{ID: "two", Endpoint: "e", Capacity: 1, Labels: map[string]string{text: "v"}})
			return err
		}
		calls["enqueue, definition, "+what] = func() error {
			_, err := f.Enqueue(ctx, leasestore.EnqueueRequest{JobID: uuid.New(), Definition: text})
			return err
		}
		if what == "empty" {
			continue
		}
		calls["apply, node_selector, "+what] = func() error { _, err := f.Apply(ctx, selecting("x", "zone", text)); return err }
		calls["enqueue, idempotency key, "+what] = func() error {
			_, err := f.Enqueue(ctx, leasestore.EnqueueRequest{JobID: uuid.New(), Definition: "report", IdempotencyKey: text})
			return err
		}
	}
	for _, d := range []time.Duration{-1, 0, 99 * time.Millisecond, 24*time.Hour + 1, math.MaxInt64, math.MinInt64} {
		what := fmt.Sprint(int64(d))
		calls["renew, lease duration, "+what] = func() error { _, err := f.Renew(ctx, good, d); return err }
		calls["prove, lease duration, "+what] = func() error { _, err := f.Prove(ctx, good, d); return err }
		calls["renew all, lease duration, "+what] = func() error { _, err := f.RenewAll(ctx, []leasestore.Authority{good}, d); return err }
		calls["claim, lease duration, "+what] = func() error { r := request(offered, bob); r.TTL = d; _, err := f.Claim(ctx, r); return err }
		calls["recover, lease duration, "+what] = func() error { r := recovery(bob, 1); r.TTL = d; _, err := f.Recover(ctx, r); return err }
	}
	for _, d := range []time.Duration{-1, math.MinInt64} {
		calls[fmt.Sprintf("prune, age, %d", d)] = func() error { _, err := f.Prune(ctx, d, 1); return err }
		calls[fmt.Sprintf("requeue, wait, %d", d)] = func() error { _, err := f.Requeue(ctx, offered.ID, 1, d); return err }
		calls[fmt.Sprintf("apply, backoff, %d", d)] = func() error { def := containers("x"); def.Backoff = d; _, err := f.Apply(ctx, def); return err }
		calls[fmt.Sprintf("claim, node TTL, %d", d)] = func() error { r := request(offered, bob); r.NodeTTL = d; _, err := f.Claim(ctx, r); return err }
	}
	calls["renew, authority's token, empty"] = func() error { a := good; a.Token = leasestore.Token{}; _, err := f.Renew(ctx, a, ttl); return err }
	calls["renew, authority's job ID, empty"] = func() error { a := good; a.JobID = uuid.Nil; _, err := f.Renew(ctx, a, ttl); return err }
	calls["renew, process ID, empty"] = func() error { a := good; a.Process = uuid.Nil; _, err := f.Renew(ctx, a, ttl); return err }
	calls["claim, request ID, empty"] = func() error {
		r := request(offered, bob)
		r.RequestID = uuid.Nil
		_, err := f.Claim(ctx, r)
		return err
	}
	calls["prune, limit, 0"] = func() error { _, err := f.Prune(ctx, time.Hour, 0); return err }
	calls["recover, limit, 1001"] = func() error { _, err := f.Recover(ctx, recovery(bob, 1001)); return err }
	calls["apply, value, a number beyond all"] = func() error {
		d := containers("x")
		d.Spec = json.RawMessage(`1e999999`)
		_, err := f.Apply(ctx, d)
		return err
	}
	calls["read, value, NUL"] = func() error { _, err := f.Definition(ctx, "a\x00b"); return err }
	calls["list, value, NUL"] = func() error { _, err := f.Jobs(ctx, leasestore.JobFilter{WorkflowID: "a\x00b"}); return err }
	return calls
}

// Seeded faults: any check dropped from validate.go.
func TestBadInputIsRefusedByItsFieldAndWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.placed().Authority
	offered := f.queued("report")
	before := f.effects()
	for name, call := range f.refusals(good, offered) {
		field, _, _ := strings.Cut(strings.SplitN(name, ", ", 2)[1], ", ")
		err := call()
		if invalid := wants[*leasestore.InvalidError](t, err); !strings.Contains(invalid.Field, field) {
			t.Errorf("%s: refused as %v", name, err)
		}
		if len(err.Error()) > 2000 {
			t.Errorf("%s: the refusal repeats %d characters", name, len(err.Error()))
		}
	}
	if after := f.effects(); after != before {
		t.Errorf("something was written\n%s\n%s", before, after)
	}
	for _, text := range []string{`{"job_id": "7"}`, `{"token": "7"}`, `{"process": "x"}`} {
		if err := json.Unmarshal([]byte(text), &leasestore.Authority{}); err == nil {
			t.Errorf("%s is taken for an authority", text)
		}
	}
	long := leasestore.Outcome{LogTail: strings.Repeat("\x00ä", 1<<20), Warnings: []string{"\xff\x00"}}
	if job := try(f.Complete(t.Context(), good, long)).or(t); len(job.LogTail) > 16<<10 || job.Warnings[0] != "\uFFFD\uFFFD" {
		t.Errorf("stored %d bytes and %q", len(job.LogTail), job.Warnings)
	}
}

// A standby, or a database that was made read-only. The real standby is in
// tests/store.
func TestADatabaseThatTakesNoChangesSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.node("one", 40, nil)
	f.apply(containers("report"))
	calls := f.calls()
	config := f.pool.Config().Copy()
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	store := leasestore.New(testenv.PoolWith(t, config))
	for _, c := range calls {
		_, err := c.send(store)
		wants[*leasestore.ReadOnlyError](t, err)
	}
	if _, err := store.Jobs(t.Context(), leasestore.JobFilter{}); err != nil {
		t.Error(err)
	}
}
