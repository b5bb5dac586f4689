package model

import "fmt"

// Kind is a kind of event.
type Kind uint8

// The events.
const (
	Tick     Kind = iota
	Send          // an actor sends a statement
	Begin         // it reaches the server
	Decide        // it gets its lock and judges
	Commit        // and the caller gets the answer
	Cut           // the connection breaks, with the transaction committed
	RollBack      // the connection breaks, with the transaction rolled back
	Lose          // the connection breaks before the statement arrives
	GiveUp        // the caller stops waiting, and the statement goes on
	Crash         // a worker
	Dispatch      // a pending job is offered again
	HandOver      // Temporal gives the authority to another process, with a later turn
)

// Step is one event.
type Step struct {
	Kind  Kind
	Actor uint8 // or the flight
	Verb  Verb
	Job   uint8
	To    uint8 // of a hand-over
}

func (s Step) String() string {
	who := [...]string{"worker A", "worker B", "the recoverer", "the statement given up"}
	switch s.Kind {
	case Tick:
		return "a tick passes"
	case Send:
		return fmt.Sprintf("%s sends %s of job %d", who[s.Actor], s.Verb, s.Job)
	case Crash:
		return who[s.Actor] + " crashes"
	case Dispatch:
		return fmt.Sprintf("job %d is dispatched", s.Job)
	case HandOver:
		return fmt.Sprintf("%s gets the authority of %s, with a later turn", who[s.To], who[s.Actor])
	case GiveUp:
		return fmt.Sprintf("%s stops waiting for its %s, which goes on", who[s.Actor], s.Verb)
	default:
		return fmt.Sprintf("%s: %s of job %d %s", who[s.Actor], s.Verb, s.Job, flown[s.Kind])
	}
}

// flown is what a statement on its way does.
var flown = map[Kind]string{
	Begin: "begins: snapshot and clock", Decide: "has the lock and judges", Commit: "commits and is answered",
	Cut: "commits, and the answer is lost", RollBack: "is rolled back, and nobody is told", Lose: "is lost on its way",
}

// steps are all events that can be next.
func (b Bounds) steps(s State) []Step {
	steps := append(make([]Step, 0, 24), Step{Kind: Tick})
	for i := range s.Actors {
		if a := s.Actors[i]; !a.Down && s.Flights[i].Phase == Idle {
			steps = b.sends(steps, s, uint8(i))
		}
		if b.Crashes && i < workers && !s.Actors[i].Down {
			steps = append(steps, Step{Kind: Crash, Actor: uint8(i)})
		}
	}
	for i := range s.Flights {
		steps = b.flies(steps, s, uint8(i))
	}
	for i := range b.Jobs {
		if s.Rows[i].Status == Pending && !s.locked(uint8(i)) {
			steps = append(steps, Step{Kind: Dispatch, Job: uint8(i)})
		}
	}
	return b.handOvers(steps, s)
}

// sends are what an actor may send: whatever it has an authority for, however
// old that is, and a claim if it has none.
func (b Bounds) sends(steps []Step, s State, actor uint8) []Step {
	a := s.Actors[actor]
	if a.Token != 0 {
		for _, verb := range b.Verbs {
			steps = append(steps, Step{Kind: Send, Actor: actor, Verb: verb, Job: a.Job})
		}
		return steps
	}
	for i := range b.Jobs {
		row, job := s.Rows[i], uint8(i)
		switch {
		case actor == recoverer:
			if row.Token != 0 {
				steps = append(steps, Step{Kind: Send, Actor: actor, Verb: Recover, Job: job})
			}
		case actor > 0 && !s.Started: // the workers are alike: let A be the first
		case row.Status == Queued, row.Token != 0 && row.Request == request(actor):
			steps = append(steps, Step{Kind: Send, Actor: actor, Verb: Claim, Job: job})
		}
	}
	return steps
}

// request is the request ID of an actor's claim. With the dispatch attempt
// beside it, it names one claim.
func request(actor uint8) uint16 { return uint16(actor) + 1 }

func (b Bounds) flies(steps []Step, s State, slot uint8) []Step {
	f := s.Flights[slot]
	does := func(kind Kind) {
		steps = append(steps, Step{Kind: kind, Actor: slot, Verb: f.Verb, Job: f.Job})
	}
	switch {
	case f.Phase == Idle:
		return steps
	case f.Phase == Decided:
		does(Commit)
		does(Cut)
		does(RollBack)
	case f.Phase == Sent && b.Faults.begins(f.Verb):
		does(Begin)
		does(Lose)
	case !s.locked(f.Job) && (f.Verb != Claim || b.Limit == 0 || !s.claiming()):
		does(Decide)
		if f.Phase == Sent {
			does(Lose)
		}
	}
	if b.GiveUps && slot < actors && !s.Actors[slot].Down && s.Flights[orphan].Phase == Idle {
		does(GiveUp)
	}
	return steps
}

func (b Bounds) handOvers(steps []Step, s State) []Step {
	if !b.HandOvers || s.Turns >= b.Turns {
		return steps
	}
	for from := range s.Actors {
		for to := range s.Actors {
			if s.Actors[from].Token != 0 && s.Actors[to].Token == 0 && !s.Actors[to].Down && s.Flights[to].Phase == Idle {
				steps = append(steps, Step{Kind: HandOver, Actor: uint8(from), Job: s.Actors[from].Job, To: uint8(to)})
			}
		}
	}
	return steps
}
