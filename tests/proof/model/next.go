package model

// Event is what a step did in the database, for the invariants.
type Event struct {
	Flight Flight
	Before Row // as locked
	After  Row
	Judged bool // the step judged
	Wrote  bool // the step committed a change
}

// next is the state after a step.
func (b Bounds) next(s State, step Step) (State, Event) {
	f := &s.Flights[step.Actor]
	switch step.Kind {
	case Tick:
		return b.tick(s), Event{}
	case Send:
		b.send(&s, step)
	case Begin:
		b.begin(&s, f)
	case Decide:
		return b.decide(s, step)
	case Commit, Cut:
		return b.commit(s, step)
	case RollBack, Lose:
		*f = Flight{}
	case GiveUp:
		s.Flights[orphan], *f = *f, Flight{}
	case Crash:
		s.Actors[step.Actor].Down, s.Actors[step.Actor].Until = true, 0
	case Dispatch:
		s.Rows[step.Job].Status = Queued
		s.Rows[step.Job].Dispatch++
	case HandOver:
		from := s.Actors[step.Actor]
		s.Turns++
		s.Actors[step.To] = Actor{Job: from.Job, Token: from.Token, Epoch: from.Epoch, Turn: s.Turns}
	}
	return s, Event{}
}

func (b Bounds) send(s *State, step Step) {
	a := &s.Actors[step.Actor]
	st := Statement{Verb: step.Verb, Actor: step.Actor, Job: step.Job}
	switch step.Verb {
	case Claim:
		st.Turn, st.Request, st.Dispatch = 1, request(step.Actor), s.Rows[step.Job].Dispatch
	case Recover:
		st.Turn = 1
	default:
		st.Token, st.Epoch, st.Turn = a.Token, a.Epoch, a.Turn
		if step.Verb == Attach {
			st.Container = a.Turn
		}
		if a.Ending = a.Ending || step.Verb.Ends(); a.Ending && !b.Faults.Has(WorkAfterRelease) {
			a.Until = 0
		}
	}
	s.Started = true
	s.Flights[step.Actor] = Flight{Statement: st, Phase: Sent}
}

func (b Bounds) begin(s *State, f *Flight) {
	row := s.Rows[f.Job]
	f.Phase = Begun
	f.Seen = View{Running: s.running(), Epoch: row.Epoch}
	f.Early = b.Judge(row, f.Statement, f.Seen)
}

// decide lets a statement judge the row that it has locked. One that writes
// keeps the lock until its commit; any other is answered at once.
func (b Bounds) decide(s State, step Step) (State, Event) {
	f := &s.Flights[step.Actor]
	row := s.Rows[f.Job]
	f.Count = View{Running: s.running(), Epoch: row.Epoch}
	f.Answer = b.judged(row, f)
	event := Event{Flight: *f, Before: row, After: row, Judged: true}
	if f.Answer.Writes() {
		f.Phase, f.Early, f.Changed, f.Seen, f.BegunAt, f.Count.Running = Decided, 0, false, View{}, 0, 0
		return s, event
	}
	s.answered(step.Actor, b, row)
	s.Flights[step.Actor] = Flight{}
	return s, event
}

// judged is the protocol's judgement, or that of its faults.
func (b Bounds) judged(row Row, f *Flight) Answer {
	if b.Faults.Has(TransactionStartClock) {
		f.Count.Now = f.BegunAt
	}
	if b.Faults.Has(LockInDecidingStatement) && f.Verb == Claim {
		f.Count.Running = f.Seen.Running
	}
	if b.Faults.Has(EpochFromSnapshot) && f.Verb == Recover {
		f.Count.Epoch = f.Seen.Epoch
		if !f.Early.Writes() || row.Expires > f.BegunAt { // the scan's condition, looked at again for a new version
			return NothingDue
		}
	}
	byID := b.Faults.Has(RecoverOldSnapshot) && f.Verb == Recover && row.Token != 0
	if byID || b.Faults.Has(JudgeBeforeLock) && !f.Changed {
		return f.Early
	}
	return b.Judge(row, f.Statement, f.Count)
}

// commit makes the decision visible. A cut connection leaves the caller as it was.
func (b Bounds) commit(s State, step Step) (State, Event) {
	f := s.Flights[step.Actor]
	before := s.Rows[f.Job]
	grants := f.Answer == Accepted && !f.Verb.Holding()
	if grants {
		s.Serial++
		s.Turns = 1
		f.Fresh = s.Serial
	}
	row := b.Apply(before, f.Statement, f.Answer, f.Count)
	s.Rows[f.Job] = row
	if grants {
		s.Highest[f.Job] = max(s.Highest[f.Job], row.Epoch)
	}
	s.overtake(f.Statement)
	for i := range s.Flights {
		if other := &s.Flights[i]; other.Phase == Begun && other.Job == f.Job {
			other.Changed = true
		}
	}
	if step.Kind == Commit {
		s.answered(step.Actor, b, row)
	}
	s.Flights[step.Actor] = Flight{}
	if b.Faults == 0 {
		s.Rows[f.Job].Expires = max(row.Expires, 0)
	}
	return s, Event{Flight: f, Before: before, After: row, Wrote: true}
}

// overtake marks those whose turn is over by an accepted statement.
func (s *State) overtake(st Statement) {
	for i := range s.Actors {
		a := &s.Actors[i]
		if st.Verb.Holding() && a.Token == st.Token && a.Turn < st.Turn {
			a.Overtaken = true
		}
	}
}
