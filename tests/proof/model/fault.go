package model

// Fault is a mistake in the protocol, or in a bearer of it, that can be
// switched on.
type Fault uint16

// The faults.
const (
	// RenewIgnoresExpiry renews by token alone.
	RenewIgnoresExpiry Fault = 1 << iota
	// CompleteWithoutToken completes whatever runs under the job's ID.
	CompleteWithoutToken
	// JudgeBeforeLock judges, then waits for the row lock, and looks again only
	// if the row got a new version: a plain UPDATE … WHERE of PostgreSQL.
	JudgeBeforeLock
	// TransactionStartClock judges and counts by now().
	TransactionStartClock
	// RecoverOldSnapshot selects expired leases, then rotates them by ID.
	RecoverOldSnapshot
	// TurnIgnored lets every turn and process with the token act.
	TurnIgnored
	// LockInDecidingStatement counts running jobs in a snapshot from before the
	// wait for the definition's lock.
	LockInDecidingStatement
	// EpochFromSnapshot locks the lease, but counts on from the epoch that the
	// job's row had in the statement's snapshot.
	EpochFromSnapshot
	// RecoveryUncounted recovers for ever.
	RecoveryUncounted
	// TrustFromReply counts a lease's time from the answer, not from before the
	// request.
	TrustFromReply
	// WorkAfterRelease works on if a release is not answered.
	WorkAfterRelease
)

// AllFaults names every fault.
var AllFaults = map[Fault]string{
	RenewIgnoresExpiry:      "renew ignores expiry",
	CompleteWithoutToken:    "complete without token",
	JudgeBeforeLock:         "judge before lock",
	TransactionStartClock:   "now() at transaction start",
	RecoverOldSnapshot:      "recovery by IDs from an old snapshot",
	TurnIgnored:             "turn ignored",
	LockInDecidingStatement: "lock in the deciding statement",
	EpochFromSnapshot:       "epoch from an old snapshot",
	RecoveryUncounted:       "recoveries are not counted",
	TrustFromReply:          "trust counted from the reply",
	WorkAfterRelease:        "work goes on after a release without an answer",
}

// Faults is a set of faults.
type Faults uint16

// Has says whether the fault is switched on.
func (f Faults) Has(fault Fault) bool { return f&Faults(fault) != 0 }

// begins says whether a statement of this verb reads something when it begins,
// before it has its lock. In the correct protocol none does, so that its
// beginning is no event.
func (f Faults) begins(v Verb) bool {
	switch {
	case f.Has(JudgeBeforeLock), f.Has(TransactionStartClock):
		return true
	case v == Recover:
		return f.Has(RecoverOldSnapshot) || f.Has(EpochFromSnapshot)
	}
	return v == Claim && f.Has(LockInDecidingStatement)
}
