package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/leasehold/leasehold/activities"
)

// request is the kind of request that an answer belongs to: the same answer
// means different things to different requests.
type request string

const (
	callAny     request = ""
	callProbe   request = "probe"
	callPull    request = "pull"
	callCreate  request = "create"
	callStart   request = "start"
	callInspect request = "inspect"
	callList    request = "list"
	callWait    request = "wait"
	callStop    request = "stop"
	callRemove  request = "remove"
)

// A rule says what a refusal means. It applies if the request, the kind of
// status and the text do; what is not given always does.
type rule struct {
	call   request
	status func(error) bool
	text   *regexp.Regexp
	reason activities.RuntimeErrorReason
	exit   int    // of a program that cannot be executed
	hint   string // the cure, where there is one
}

const oneItem = "; give one list item per argument"

// rules are tried from the top; the first that applies decides. The status
// alone says little: daemons answer 500 to many mistakes of the user.
var rules = []rule{
	{callAny, nil, text(`no space left on device|disk quota exceeded`), activities.ReasonDisk, 0, ""},

	{callPull, nil, text(`toomanyrequests|too many requests|rate limit|\b429\b`), activities.ReasonPull, 0, "; the registry asks to slow down"},
	{callPull, nil, text(`HTTP status: 5|status code 5|invalid character '<'|timeout|refused|no such host|reset by peer|x509|tls:|\bEOF\b`), activities.ReasonPull, 0, ""},
	{callPull, nil, text(`manifest unknown|name unknown|not found|does not exist|no matching manifest`), activities.ReasonImage, 0, ""},
	{callPull, nil, text(`unauthorized|denied|authentication required|forbidden`), activities.ReasonImage, 0, ""},
	{callPull, nil, text(`invalid reference|repository name|unsupported media type|unsupported schema`), activities.ReasonImage, 0, ""},
	{callPull, cerrdefs.IsInvalidArgument, nil, activities.ReasonImage, 0, ""},
	{callPull, nil, nil, activities.ReasonPull, 0, ""},

	{callCreate, cerrdefs.IsNotFound, text(`no such image`), activities.ReasonImage, 0, ""},
	{callCreate, nil, text(`cannot mkdir|is not a directory`), activities.ReasonInvalidSpec, 0, "; the working directory cannot be made"},
	{callCreate, nil, text(`no command specified`), activities.ReasonInvalidSpec, 0, "; give a command"},
	{callCreate, cerrdefs.IsInvalidArgument, nil, activities.ReasonInvalidSpec, 0, ""},

	{callStart, nil, text(`executable file not found|exec: .* no such file or directory|exec: .*: stat .*: no such file`), activities.ReasonCannotStart, 127, oneItem},
	{callStart, nil, text(`exec: .*: (permission denied|is a directory)`), activities.ReasonCannotStart, 126, "; it is no executable file"},
	{callStart, nil, text(`unable to find (user|group)|no matching entries in (passwd|group)`), activities.ReasonCannotStart, 126, "; the image has no such user"},
	{callStart, nil, text(`chdir to cwd|mkdir .*: not a directory|cannot chdir`), activities.ReasonCannotStart, 126, "; the working directory cannot be used"},
	{callStart, cerrdefs.IsInvalidArgument, nil, activities.ReasonCannotStart, 126, ""},

	{callProbe, nil, nil, activities.ReasonNodeUnreachable, 0, ""},
	{callAny, nil, text(`marked for removal`), activities.ReasonContainerGone, 0, ""},
	{callAny, cerrdefs.IsNotFound, text(`no such container`), activities.ReasonContainerGone, 0, ""},
	{callAny, nil, nil, activities.ReasonInternal, 0, ""},
}

func text(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + pattern) }

func (r rule) applies(call request, err error, words string) bool {
	return (r.call == callAny || r.call == call) &&
		(r.status == nil || r.status(err)) &&
		(r.text == nil || r.text.MatchString(words))
}

// classify finds the rule of an error. Nothing that a daemon said is judged
// before it is known that a daemon said it.
func classify(call request, err error) rule {
	if unreachable(err) {
		return rule{reason: activities.ReasonNodeUnreachable}
	}
	words := daemonWords(err)
	for _, r := range rules {
		if r.applies(call, err, words) {
			return r
		}
	}
	return rule{reason: activities.ReasonInternal}
}

// unreachable says that the request may or may not have arrived, and that no
// answer to it did.
func unreachable(err error) bool {
	return err != nil && (client.IsErrConnectionFailed(err) || errors.As(err, new(net.Error)) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		cerrdefs.IsUnavailable(err) || errors.As(err, new(*unusableError)))
}

// daemonWords are what the daemon said, trimmed to what fits a message.
func daemonWords(err error) string {
	const most = 300
	words := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	words = strings.Join(strings.Fields(strings.ToValidUTF8(words, "\uFFFD")), " ")
	if len(words) > most {
		words = strings.ToValidUTF8(words[:most], "") + "…"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		words = "no answer in time"
	}
	return words
}

// about is what an error is about, as far as it is known.
type about struct {
	what        string // "start the container"
	node        string // its ID, or its endpoint
	containerID string
	attempt     int
}

// wrap turns an error into what the Runtime promises: the cause of ctx if that
// has ended, otherwise a [*activities.RuntimeError].
func (a about) wrap(ctx context.Context, call request, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", a.what, context.Cause(ctx))
	}
	if _, ok := errors.AsType[*activities.RuntimeError](err); ok {
		return err
	}
	return a.judge(call, err)
}

// judge turns an answer of a daemon into what it means.
func (a about) judge(call request, err error) *activities.RuntimeError {
	r := classify(call, err)
	trouble := a.trouble(r.reason, daemonWords(err)+r.hint, err)
	trouble.ExitCode = r.exit
	return trouble
}

// trouble words an error: what, why, and where.
func (a about) trouble(reason activities.RuntimeErrorReason, why string, cause error) *activities.RuntimeError {
	var where []string
	if a.node != "" {
		where = append(where, "node "+a.node)
	}
	if a.containerID != "" {
		where = append(where, "container "+short(a.containerID))
	}
	if a.attempt != 0 {
		where = append(where, fmt.Sprintf("attempt %d", a.attempt))
	}
	message := a.what + ": " + why
	if len(where) > 0 {
		message += " (" + strings.Join(where, ", ") + ")"
	}
	return &activities.RuntimeError{Reason: reason, Message: message, Err: cause}
}

// of adds what a container says of itself.
func (a about) of(c activities.Container) about {
	a.containerID, a.attempt = c.ID, c.Attempt
	if c.NodeID != "" {
		a.node = c.NodeID
	}
	return a
}

func short(id string) string { return id[:min(12, len(id))] }
