package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// The server's clock is set forward by an hour, and back by two. Forward, every
// lease has run out at once and is recovered; its old token is dead for good,
// even when the clock is back. Back, a lease lives longer than it should: work
// is recovered late, and never twice. Not parallel: the server takes the clock
// from its environment when it is started.
func TestAClockThatIsSetBreaksNoPromise(t *testing.T) {
	library := testenv.FakeTime(t)
	clock := filepath.Join(testenv.Dir(t), "clock")
	set := func(by string) {
		t.Helper()
		if err := os.WriteFile(clock+".new", []byte(by), 0o644); err != nil { //nolint:gosec // the server reads it under another account
			t.Fatal(err)
		}
		if err := os.Rename(clock+".new", clock); err != nil {
			t.Fatal(err)
		}
	}
	set("+0")
	for name, value := range map[string]string{
		"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": clock, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
	} {
		t.Setenv(name, value)
	}
	server := testenv.Postgres(t)
	os.Unsetenv("LD_PRELOAD")
	must(leasestore.Migrate(t.Context(), server.URL())).or(t)
	f := at(t, server.URL())
	f.apply("probe", leasestore.Heartbeat)
	first := f.claim(f.queued("probe"), alice)

	set("+1h")
	if skew := read[float64](f, `select extract(epoch from clock_timestamp())::float8`) - float64(time.Now().Unix()); skew < 3500 {
		t.Fatalf("the server's clock is ahead by %f s only", skew)
	}
	_, err := f.Renew(t.Context(), first.Authority, ttl)
	if lost := wants[*leasestore.LostError](t, err); lost.Reason != leasestore.Expired {
		t.Errorf("lost as %s", lost.Reason)
	}
	recovered := must(f.Recover(t.Context(), recovery(bob))).or(t)
	if len(recovered) != 1 || recovered[0].Lease.Epoch != 2 {
		t.Fatalf("recovered %+v", recovered)
	}
	second := recovered[0].Lease

	set("-1h")
	_, err = f.Complete(t.Context(), first.Authority, leasestore.Outcome{})
	if lost := wants[*leasestore.LostError](t, err); lost.Reason != leasestore.OwnerChanged {
		t.Errorf("lost as %s", lost.Reason)
	}
	renewed := must(f.Renew(t.Context(), second.Authority, ttl)).or(t)
	if renewed.Remaining < 2*time.Hour-time.Minute || renewed.Remaining > 2*time.Hour+time.Minute {
		t.Errorf("%s remain", renewed.Remaining)
	}
	if got := must(f.Recover(t.Context(), recovery(alice))).or(t); len(got) != 0 {
		t.Errorf("a live lease was recovered: %+v", got)
	}
	if epoch := f.claim(f.queued("probe"), alice).Epoch; epoch != 1 {
		t.Errorf("claimed at epoch %d", epoch)
	}
	must(f.Complete(t.Context(), second.Authority, leasestore.Outcome{})).or(t)

	set("+0")
	v := must(f.Verify(t.Context())).or(t)
	if len(v.Violations) != 1 || v.Violations[0].Rule != "it happened before its predecessor" {
		t.Errorf("the ledger does not show that the clock went back: %+v", v.Violations)
	}
}
