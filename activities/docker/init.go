package docker

import (
	"context"
	"regexp"

	"github.com/leasehold/leasehold/activities"
)

// initFailure is what the init process says when it cannot execute the program.
// To the daemon such a start is a success, since init was executed.
var initFailure = regexp.MustCompile(`^(?:\[FATAL tini \(\d+\)\] exec |ERROR \(catatonit:\d+\): failed to exec )(.*)$`)

// neverExecuted tells an exit of the program from one of the init process
// before it. The latter is a program that cannot be started.
func (w *watch) neverExecuted(ctx context.Context, log *log, exit activities.Exit) error {
	if exit.Code != 1 && exit.Code != 126 && exit.Code != 127 {
		return nil
	}
	if log.lines == nil { // nobody has read it yet
		log.lines = func(activities.LogLine) {}
		log.finish(ctx, true)
	}
	if log.given != 1 || !log.first.Stderr {
		return nil
	}
	said := initFailure.FindStringSubmatch(log.first.Text)
	if said == nil {
		return nil
	}
	hint := "; it is no program for this node"
	switch exit.Code {
	case 127:
		hint = oneItem
	case 126:
		hint = "; it is no executable file"
	}
	subject := w.subject
	subject.what = "start the container"
	trouble := subject.trouble(activities.ReasonCannotStart, said[1]+hint, nil)
	trouble.ExitCode = exit.Code
	return trouble
}
