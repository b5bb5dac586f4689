package docker

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"github.com/leasehold/leasehold/activities"
)

// sure tells whether an exit is the program's own. It is, unless the daemon went
// away or came back around it: a daemon that stops ends its containers, one
// that starts ends those that outlived a crash, and the exit then says 0 if the
// program takes SIGTERM for a reason to leave politely.
//
// It reports false if the daemon cannot be asked, for the caller to look again,
// and an error with the reason NODE_LOST if the end is, or may be, the daemon's
// doing.
func (w *watch) sure(ctx context.Context, c inspected) (bool, error) {
	if !w.running {
		return true, nil // it ended before our time
	}
	// A daemon that is about to go away answers, but on old connections only.
	if err := w.e.greetAnew(ctx, w.endpoint); err != nil {
		w.lose(nil)
		return false, ctx.Err()
	}
	if !w.lost {
		return true, nil
	}
	n, err := w.e.node(ctx, w.endpoint)
	if err != nil {
		return false, ctx.Err()
	}
	seen, err := w.events(ctx, n, c)
	if err != nil {
		w.lose(n)
		return false, ctx.Err()
	}
	if ownEnd(c, seen) {
		return true, nil
	}
	return false, w.subject.trouble(activities.ReasonNodeLost, "the daemon was restarted and ended it, "+
		"or lost sight of it; its exit code "+strconv.Itoa(c.Exit.Code)+" is not known to be the program's", nil)
}

// ownEnd tells whether a program ended by itself, from the events that the
// daemon remembers; it remembers none from before its own start. Where nothing
// speaks for it, it did not: to run a job again is better than to take it for
// done.
func ownEnd(c inspected, seen map[events.Action]bool) bool {
	switch {
	case seen[events.ActionStart]: // the daemon was there all the time
		return true
	case seen[events.ActionKill], unexplained(*c.Exit): // the daemon ended it as it started
		return false
	case seen[events.ActionDie]: // the daemon was back, and did nothing
		return true
	}
	return c.unseen // no daemon was there; otherwise the one that went away saw it end
}

// unexplained are the codes of programs that were killed, and that a daemon
// gives to those that ended nobody knows how.
func unexplained(exit activities.Exit) bool {
	return exit.Code == 137 && !exit.OOMKilled || exit.Code == 255
}

// events returns what the daemon remembers to have happened to a container
// since it was started.
func (w *watch) events(ctx context.Context, n *node, c inspected) (map[events.Action]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, w.e.opts.CallTimeout)
	defer cancel()
	messages, failures := n.patient.Events(ctx, events.ListOptions{
		Since:   stamp(c.StartedAt.Add(-time.Minute)),
		Until:   stamp(n.clock(time.Now())),
		Filters: filters.NewArgs(filters.Arg("type", string(events.ContainerEventType)), filters.Arg("container", c.ID)),
	})
	seen := map[events.Action]bool{}
	for {
		select {
		case message := <-messages:
			seen[message.Action] = true
		case err := <-failures:
			if errors.Is(err, io.EOF) {
				return seen, nil
			}
			return nil, err
		}
	}
}

// stamp is a time as the daemon reads it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
