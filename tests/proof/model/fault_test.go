package model

import (
	"strings"
	"testing"
)

// seeded is a fault, where to look for it, and the promise that it breaks.
type seeded struct {
	scope  string
	change func(*Bounds)
	breaks string
}

func same(*Bounds) {}

var seededFaults = map[Fault]seeded{
	RenewIgnoresExpiry:      {"ownership", same, "I3, I4"},
	CompleteWithoutToken:    {"endings", same, "I3"},
	JudgeBeforeLock:         {"ownership", same, "I3, I4"},
	TransactionStartClock:   {"ownership", same, "I3, I4"},
	RecoverOldSnapshot:      {"ownership", func(b *Bounds) { b.GiveUps = false }, "I10"},
	TurnIgnored:             {"turns", same, "L11"},
	LockInDecidingStatement: {"limit", same, "I9"},
	EpochFromSnapshot:       {"ownership", func(b *Bounds) { b.TTL, b.MaxRecoveries = 1, 2 }, "I2"},
	RecoveryUncounted:       {"ownership", func(b *Bounds) { b.TTL, b.GiveUps = 1, false }, "I15"},
	TrustFromReply:          {"ownership", same, "I16"},
	WorkAfterRelease:        {"endings", same, "I1"},
}

// A checker that never finds anything proves nothing: with each fault switched
// on, a promise breaks, and it is the one that the fault is about. With -v the
// counter-examples are printed.
func TestEverySeededFaultIsFound(t *testing.T) {
	t.Parallel()
	for fault, name := range AllFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeded, ok := seededFaults[fault]
			if !ok {
				t.Fatal("nobody looks for it")
			}
			bounds := scopes[seeded.scope].Bounds
			bounds.States, bounds.Faults = 500_000, Faults(fault)
			seeded.change(&bounds)
			report := Explore(bounds)
			t.Log(report)
			if !strings.HasPrefix(report.Broken, seeded.breaks) {
				t.Errorf("after %d states it breaks %q, want %s", report.States, report.Broken, seeded.breaks)
			}
			bounds.Faults = 0
			bounds.States = min(report.States, most())
			if report := Explore(bounds); report.Broken != "" {
				t.Errorf("so does the protocol without it:\n%s", report)
			}
		})
	}
}

// Without the row lock being taken first the trace reads as finding F1 does.
func TestACounterExampleTellsWhatHappened(t *testing.T) {
	t.Parallel()
	bounds := scopes["ownership"].Bounds
	bounds.States, bounds.Faults = 500_000, Faults(JudgeBeforeLock)
	text := Explore(bounds).String()
	for _, want := range []string{"begins: snapshot and clock", "a tick passes", "has the lock and judges", "[accepted]", "worker A"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
