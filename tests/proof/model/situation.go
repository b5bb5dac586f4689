package model

// Situation is a hard case that a good exploration meets.
type Situation string

// The situations.
const (
	RotatedUnderRenewal  Situation = "a lease was rotated while its renewal was in flight"
	UnknownCommitted     Situation = "an unknown outcome that had committed"
	UnknownRolledBack    Situation = "an unknown outcome that had been rolled back"
	ClaimReplayed        Situation = "a claim was replayed"
	TurnSuperseded       Situation = "a turn was refused as superseded"
	TurnTakenOver        Situation = "a later turn took a live lease over"
	TakenOverAfterCrash  Situation = "a lease was taken over from a crashed worker before it expired"
	LateRefused          Situation = "a statement that was given up came after the rotation, and was refused"
	LateAccepted         Situation = "a statement that was given up was accepted"
	OldEndingRefused     Situation = "the old owner's ending was refused after the rotation"
	ExpiredInWait        Situation = "a lease expired while a statement waited for its lock"
	CommittedAfterExpiry Situation = "a renewal committed after the time that it had set was over"
	RenewedBeforeRotate  Situation = "a renewal was accepted while a recovery was in flight"
	RenewedInTime        Situation = "recovery found that the lease had been renewed"
	EndingConfirmed      Situation = "a repeated ending was confirmed"
	EndingConflict       Situation = "another ending after an ending was refused"
	AttachConflict       Situation = "another container was refused"
	JobGivenUp           Situation = "a job was recovered once too often and failed"
	LastAttemptReleased  Situation = "the release of the last attempt failed the job"
	ClaimedAgain         Situation = "a released job was claimed again"
	LimitHeld            Situation = "a claim was refused at the limit"
	UnprovenRefused      Situation = "a renewal of a turn that was not proven was refused"
)

// situations are the hard cases in one step.
func situations(s State, step Step, e Event) []Situation {
	var met []Situation
	is := func(situation Situation, yes bool) {
		if yes {
			met = append(met, situation)
		}
	}
	f := e.Flight
	is(UnknownCommitted, step.Kind == Cut)
	is(UnknownRolledBack, step.Kind == RollBack)
	if e.Judged {
		is(ClaimReplayed, f.Answer == Replayed)
		is(TurnSuperseded, f.Answer == Superseded)
		is(EndingConfirmed, f.Answer == Confirmed)
		is(EndingConflict, f.Answer == EndedAs)
		is(AttachConflict, f.Answer == Conflict)
		is(LimitHeld, f.Answer == LimitHit)
		is(UnprovenRefused, f.Answer == Unproven)
		is(JobGivenUp, f.Answer == GivenUp)
		is(LateRefused, step.Actor == orphan && f.Answer == OwnerGone && e.Before.Epoch > f.Epoch)
		is(LateAccepted, step.Actor == orphan && f.Answer == Accepted)
		is(OldEndingRefused, f.Verb.Ends() && f.Answer == OwnerGone && e.Before.Epoch > f.Epoch)
		is(ExpiredInWait, f.Answer == Expired && f.SentAt < 0)
		is(RenewedInTime, f.Verb == Recover && f.Answer == NothingDue && e.Before.Token != 0)
		is(RenewedBeforeRotate, f.Verb == Renew && f.Answer == Accepted && flying(s, Recover, f.Job))
	}
	if e.Wrote {
		is(RotatedUnderRenewal, f.Verb == Recover && flying(s, Renew, f.Job))
		is(TurnTakenOver, f.Verb.Holding() && e.After.Turn > e.Before.Turn)
		is(TakenOverAfterCrash, f.Verb == Prove && f.Actor != e.Before.Holder && e.Before.Holder < workers && s.Actors[e.Before.Holder].Down)
		is(CommittedAfterExpiry, f.Verb == Renew && e.After.Expires <= 0)
		is(LastAttemptReleased, f.Verb == Release && e.After.Status == Failed)
		is(ClaimedAgain, f.Verb == Claim && e.After.Attempt > 1)
	}
	return met
}

// flying says whether such a statement is on its way or waits for its lock.
func flying(s State, verb Verb, job uint8) bool {
	for _, f := range s.Flights {
		if f.Verb == verb && f.Job == job && f.Phase != Idle && f.Phase != Decided {
			return true
		}
	}
	return false
}
