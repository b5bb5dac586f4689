package model

// answered lets the caller of a flight learn its answer. Nobody listens to one
// that was given up, nor in a process that is down.
func (s *State) answered(slot uint8, b Bounds, row Row) {
	f := s.Flights[slot]
	if slot == orphan || s.Actors[slot].Down {
		return
	}
	a := &s.Actors[slot]
	switch {
	case f.Answer == Unproven: // it may still prove
	case f.Answer == GivenUp, f.Answer == NothingDue, f.Answer == Ineligible, f.Answer == LimitHit:
	case f.Verb.Ends(), f.Answer != Accepted && f.Answer != Replayed && f.Answer != Conflict:
		*a = Actor{}
	case f.Answer == Conflict:
	case !f.Verb.Holding():
		*a = Actor{Job: f.Job, Token: row.Token, Epoch: row.Epoch, Turn: row.Turn}
		a.Until = b.trust(f, row)
	default:
		if !a.Ending || b.Faults.Has(WorkAfterRelease) {
			a.Until = max(a.Until, b.trust(f, row))
		}
	}
	if a.Ending && !b.Faults.Has(WorkAfterRelease) {
		a.Until = 0
	}
}

// trust is how long the caller may believe in the lease: what was left when
// PostgreSQL decided, counted from before the request was sent.
func (b Bounds) trust(f Flight, row Row) Time {
	left := row.Expires - f.DecidedAt
	if b.Faults.Has(TrustFromReply) {
		return left
	}
	return max(f.SentAt+left, 0)
}
