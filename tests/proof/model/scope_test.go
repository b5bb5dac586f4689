package model

import "testing"

var allEndings = []Verb{Complete, Fail, Cancel, Release}

// scope is one corner of the protocol, small enough to be looked at whole.
type scope struct {
	Bounds
	whole bool // all states within the bounds, not the first so many
	meets []Situation
}

var scopes = map[string]scope{
	"ownership": {
		Bounds: Bounds{Protocol: Protocol{TTL: 2, MaxAttempts: 1, MaxRecoveries: 1}, Jobs: 1, Verbs: []Verb{Renew}, GiveUps: true},
		whole:  true,
		meets: []Situation{
			RotatedUnderRenewal, UnknownCommitted, UnknownRolledBack, ClaimReplayed, LateRefused, LateAccepted, ExpiredInWait,
			CommittedAfterExpiry, RenewedBeforeRotate, RenewedInTime, JobGivenUp,
		},
	},
	"endings": {
		Bounds: Bounds{Protocol: Protocol{TTL: 1, MaxAttempts: 1, MaxRecoveries: 1}, Jobs: 1, Verbs: allEndings},
		whole:  true,
		meets:  []Situation{EndingConfirmed, EndingConflict, OldEndingRefused, LastAttemptReleased, JobGivenUp},
	},
	"attempts": {
		Bounds: Bounds{Protocol: Protocol{TTL: 1, MaxAttempts: 3}, Jobs: 1, Verbs: []Verb{Release, Complete}, Crashes: true},
		whole:  true,
		meets:  []Situation{ClaimedAgain, LastAttemptReleased, JobGivenUp, UnknownCommitted},
	},
	"turns": {
		Bounds: Bounds{
			Protocol: Protocol{TTL: 1, MaxAttempts: 1}, Jobs: 1, Verbs: []Verb{Prove, Renew},
			HandOvers: true, Turns: 3,
		},
		whole: true,
		meets: []Situation{TurnSuperseded, TurnTakenOver, UnprovenRefused},
	},
	"attaching": {
		Bounds: Bounds{
			Protocol: Protocol{TTL: 1, MaxAttempts: 1}, Jobs: 1, Verbs: []Verb{Attach, Complete},
			HandOvers: true, Turns: 2,
		},
		whole: true,
		meets: []Situation{AttachConflict, TurnSuperseded, TurnTakenOver},
	},
	"take-over": {
		Bounds: Bounds{
			Protocol: Protocol{TTL: 1, MaxAttempts: 1}, Jobs: 1, Verbs: []Verb{Prove, Complete},
			HandOvers: true, Turns: 2, Crashes: true,
		},
		whole: true,
		meets: []Situation{TakenOverAfterCrash, TurnSuperseded, OldEndingRefused},
	},
	"limit": {
		Bounds: Bounds{Protocol: Protocol{TTL: 1, MaxAttempts: 1, Limit: 1}, Jobs: 2, Verbs: []Verb{Complete}},
		whole:  true,
		meets:  []Situation{LimitHeld, ClaimReplayed},
	},
	"everything": {
		Bounds: Bounds{
			Protocol: Protocol{TTL: 2, MaxAttempts: 2, MaxRecoveries: 1}, Jobs: 1,
			Verbs:     []Verb{Prove, Renew, Attach, Complete, Fail, Cancel, Release},
			HandOvers: true, Turns: 2, Crashes: true, GiveUps: true,
		},
		meets: []Situation{RotatedUnderRenewal, TurnSuperseded, UnknownCommitted, ClaimReplayed, TakenOverAfterCrash},
	},
}

// most is how many states are looked at in a scope. Under the race detector
// and in short mode that is not all of the larger ones.
func most() int {
	if testing.Short() || raceEnabled {
		return 20_000
	}
	return 200_000
}

// No order of events within the bounds breaks a promise, and the hard cases are
// among them.
func TestNoOrderOfEventsBreaksAPromise(t *testing.T) {
	t.Parallel()
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scope.States = most()
			report := Explore(scope.Bounds)
			t.Log(report)
			if report.Broken != "" {
				t.Fatal("a promise was broken")
			}
			if report.States < 20_000 && !report.Complete {
				t.Errorf("it stopped after %d states", report.States)
			}
			if most() < 200_000 && !report.Complete {
				return // what was not met may be farther away
			}
			if report.Complete != scope.whole {
				t.Errorf("complete is %t", report.Complete)
			}
			for _, situation := range scope.meets {
				if report.Reached[situation] == 0 {
					t.Errorf("never reached: %s", situation)
				}
			}
		})
	}
}
