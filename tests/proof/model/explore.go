package model

import (
	"fmt"
	"slices"
	"strings"
)

// Report is what an exploration has found.
type Report struct {
	States   int
	Depth    int  // of the farthest state
	Complete bool // all states within the bounds were looked at
	Reached  map[Situation]int
	Broken   string   // the promise that was broken; empty if none
	Trace    []string // the shortest way to it
}

// String is the counter-example, to read.
func (r Report) String() string {
	if r.Broken == "" {
		return fmt.Sprintf("%d states, depth %d, complete %t: no promise was broken", r.States, r.Depth, r.Complete)
	}
	return fmt.Sprintf("%s\n%s", r.Broken, strings.Join(r.Trace, "\n"))
}

// node remembers how a state was first reached.
type node struct {
	parent int32
	depth  int32
	step   Step
}

// explorer is one search, breadth first: the first counter-example is a
// shortest one.
type explorer struct {
	Bounds
	seen   map[State]struct{}
	nodes  []node
	queue  []State // of nodes from first on
	first  int
	report Report
}

// Explore looks at every state that the bounds allow, from jobs that are queued,
// until a promise is broken.
func Explore(b Bounds) Report {
	x := &explorer{Bounds: b, seen: map[State]struct{}{}, report: Report{Reached: map[Situation]int{}}}
	x.add(b.initial(), node{parent: -1})
	for len(x.queue) > 0 && x.report.Broken == "" {
		at := x.nodes[x.first]
		if len(x.nodes) >= b.States || b.Depth > 0 && int(at.depth) >= b.Depth {
			break
		}
		state := x.queue[0]
		x.queue = x.queue[1:]
		x.visit(state, at.depth)
		x.first++
	}
	x.report.States, x.report.Depth = len(x.nodes), int(x.nodes[len(x.nodes)-1].depth)
	x.report.Complete = len(x.queue) == 0
	return x.report
}

func (x *explorer) visit(state State, depth int32) {
	for _, step := range x.steps(state) {
		next, event := x.next(state, step)
		for _, situation := range situations(state, step, event) {
			x.report.Reached[situation]++
		}
		if broken := x.violated(state, next, event); broken != "" {
			x.report.Broken = broken
			x.report.Trace = x.trace(x.first, step)
			return
		}
		x.add(next, node{parent: int32(x.first), depth: depth + 1, step: step})
	}
}

func (x *explorer) add(state State, n node) {
	if _, known := x.seen[state]; known {
		return
	}
	x.seen[state] = struct{}{}
	x.nodes = append(x.nodes, n)
	x.queue = append(x.queue, state)
}

// trace walks the way to a state again, and tells it.
func (x *explorer) trace(at int, last Step) []string {
	steps := []Step{last}
	for ; x.nodes[at].parent >= 0; at = int(x.nodes[at].parent) {
		steps = append(steps, x.nodes[at].step)
	}
	state := x.initial()
	lines := make([]string, 0, len(steps))
	for _, step := range slices.Backward(steps) {
		next, event := x.next(state, step)
		line := fmt.Sprintf("%3d  %-62s", len(lines)+1, step)
		if event.Judged {
			line += fmt.Sprintf(" [%s]", event.Flight.Answer)
		}
		job := step.Job
		if next.Rows[job] != state.Rows[job] || event.Wrote {
			line += "  " + next.Rows[job].String()
		}
		lines = append(lines, strings.TrimRight(line, " "))
		state = next
	}
	return lines
}

// String is the row in a line of a trace.
func (r Row) String() string {
	if r.Token == 0 {
		return fmt.Sprintf("%s, epoch %d", r.Status, r.Epoch)
	}
	return fmt.Sprintf("%s, epoch %d, token %d, %s, turn %d, %d ticks left", r.Status, r.Epoch, r.Token, name(r.Holder), r.Turn, r.Expires)
}

func name(actor uint8) string {
	if int(actor) < len(names) {
		return names[actor]
	}
	return fmt.Sprintf("process %d", actor)
}
