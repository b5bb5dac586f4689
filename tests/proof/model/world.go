package model

// The actors: two workers and a recoverer. A statement that its caller has
// given up flies on in a slot of its own.
const (
	workers   = 2
	recoverer = 2
	actors    = 3
	orphan    = 3
	jobs      = 2
)

// Actor is what a process believes.
type Actor struct {
	Down               bool
	Job                uint8
	Token, Epoch, Turn uint16
	// Until is how long it trusts its lease: counted from before the request
	// that was answered with it.
	Until Time
	// Ending says that it has sent an ending, and so has stopped its work.
	Ending bool
	// Overtaken says that a later turn has acted. The process cannot know; it
	// is here because the promise is about owners, not about their turns.
	Overtaken bool
}

// bears says whether the process acts as the owner of a job.
func (a Actor) bears() bool { return !a.Down && a.Token != 0 && a.Until > 0 && !a.Overtaken }

// Phase is how far a statement has come.
type Phase uint8

// The phases.
const (
	Idle    Phase = iota
	Sent          // on its way
	Begun         // the server has its snapshot and the transaction's clock
	Decided       // it has the row lock and has judged; its commit is to come
)

// Flight is a statement on its way.
type Flight struct {
	Statement
	Phase   Phase
	SentAt  Time
	BegunAt Time
	Early   Answer // by the snapshot, if that is a fault's
	Changed bool   // the row got a new version since the snapshot
	Seen    View   // the snapshot

	DecidedAt Time
	Answer    Answer
	Count     View // what it judged by
}

// State is the whole world at one moment, all times counted from now.
type State struct {
	Rows    [jobs]Row
	Highest [jobs]uint16 // epoch ever granted
	Actors  [actors]Actor
	Flights [actors + 1]Flight
	Serial  uint16 // of the last token
	Turns   uint16 // of the last hand-over
	Started bool   // somebody has sent something
}

// Bounds are what the explorer is limited to.
type Bounds struct {
	Protocol
	Jobs      int
	Turns     uint16 // within one epoch
	Verbs     []Verb // of the holders
	Crashes   bool
	GiveUps   bool // callers stop waiting
	HandOvers bool
	Depth     int // of a trace; 0 is no limit
	States    int // looked at before the explorer stops
}

func (b Bounds) initial() State {
	var s State
	for i := range b.Jobs {
		s.Rows[i].Status, s.Rows[i].Dispatch = Queued, 1
	}
	return s
}

// locked says whether a statement holds the row's lock.
func (s State) locked(job uint8) bool {
	for _, f := range s.Flights {
		if f.Phase == Decided && f.Job == job {
			return true
		}
	}
	return false
}

// claiming says whether a claim holds the definition's lock.
func (s State) claiming() bool {
	for _, f := range s.Flights {
		if f.Phase == Decided && f.Verb == Claim {
			return true
		}
	}
	return false
}

func (s State) running() uint8 {
	var n uint8
	for _, row := range s.Rows {
		if row.Status == Running {
			n++
		}
	}
	return n
}

// tick lets the smallest time pass.
func (b Bounds) tick(s State) State {
	past := Time(0) // an expired lease is expired
	if b.Faults != 0 {
		past = -2 * b.TTL // a fault may compare two moments of the past
	}
	for i := range s.Rows {
		if s.Rows[i].Token != 0 {
			s.Rows[i].Expires = max(s.Rows[i].Expires-1, past)
		}
	}
	for i := range s.Actors {
		s.Actors[i].Until = max(s.Actors[i].Until-1, 0)
	}
	for i := range s.Flights {
		f := &s.Flights[i]
		if f.Phase == Decided {
			f.DecidedAt = max(f.DecidedAt-1, -2*b.TTL)
			f.Count.Now = max(f.Count.Now-1, -2*b.TTL)
		}
		if f.Phase == Begun {
			f.BegunAt = max(f.BegunAt-1, -2*b.TTL)
		}
		if f.Phase != Idle {
			f.SentAt = max(f.SentAt-1, -2*b.TTL)
		}
	}
	return s
}
