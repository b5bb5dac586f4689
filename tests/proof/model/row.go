package model

// Time is a moment of the database's clock: ticks from now in the explorer,
// microseconds from the beginning of a history in package proof.
type Time int32

// Status is where a job stands.
type Status uint8

// The statuses.
const (
	Pending Status = iota
	Queued
	Running
	Completed
	Failed
	Canceled
)

// Ended says whether the status is final.
func (s Status) Ended() bool { return s >= Completed }

func (s Status) String() string {
	return [...]string{"PENDING", "QUEUED", "RUNNING", "COMPLETED", "FAILED", "CANCELED"}[s]
}

// Row is a job's row and, while Token is not 0, its lease's. The lease's epoch is
// the job's.
type Row struct {
	Status     Status
	Dispatch   uint8 // times it was offered
	Attempt    uint8 // times it was claimed
	Recoveries uint8 // times this attempt was recovered
	Epoch      uint16

	Token     uint16 // 0 if there is no lease
	Holder    uint8
	Turn      uint16
	Request   uint16
	Container uint16
	Expires   Time

	EndedBy uint16 // the token of the last ending
	Ending  Verb
}

// Verb is a statement of the protocol.
type Verb uint8

// The verbs.
const (
	None Verb = iota
	Claim
	Recover
	Prove
	Renew
	Attach
	Complete
	Fail
	Cancel
	Release
)

func (v Verb) String() string {
	return [...]string{"nothing", "claim", "recover", "prove", "renew", "attach", "complete", "fail", "cancel", "release"}[v]
}

// Statement is what a caller sends.
type Statement struct {
	Verb  Verb
	Actor uint8 // the process that sends it
	Job   uint8
	// The authority of a holder; Turn also of a claim and a recovery.
	Token, Epoch, Turn uint16
	Dispatch           uint8  // of a claim
	Request            uint16 // of a claim
	Fresh              uint16 // the token of the lease that it makes, if it makes one
	Container          uint16 // of an attach
}

// Answer is what a statement is answered.
type Answer uint8

// The answers. Only Accepted and GivenUp write.
const (
	Unjudged   Answer = iota
	Accepted          // done
	GivenUp           // recovered once too often: the job is FAILED instead
	Replayed          // the same claim made the lease that is there
	Confirmed         // this very ending was made before
	EndedAs           // this ownership was ended, otherwise
	OwnerGone         // another token owns the job, or nobody does
	Expired           // its time ran out
	Superseded        // a later turn acts, or another process in this one
	Unproven          // a later turn must prove before it renews
	Conflict          // another container is attached
	Ineligible        // not to be claimed as it is
	LimitHit          // as many run as may
	NothingDue        // no expired lease to take over
)

// Writes says whether the statement changes the row.
func (a Answer) Writes() bool { return a == Accepted || a == GivenUp }

func (a Answer) String() string {
	return [...]string{
		"unjudged", "accepted", "given up", "replayed", "confirmed", "ended otherwise", "owner changed", "expired",
		"superseded", "not proven", "conflict", "not eligible", "limit reached", "nothing due",
	}[a]
}
