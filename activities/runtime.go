package activities

import (
	"context"
	"time"
)

// Runtime runs containers on runtime nodes. activities/docker implements it on
// the Docker Engine API. Every method takes the node's endpoint
// (unix:// or tcp://), so one Runtime serves any number of nodes.
//
// A Runtime knows nothing of leases: its callers prove their lease before and
// after each call. It reports every failure as a [*RuntimeError], but for one:
// when ctx ends first, the error wraps the cause of ctx and is none. What was
// asked of the daemon may happen nevertheless, even later: look with Find.
type Runtime interface {
	// Probe asks the daemon anew who and how it is. A daemon that is too old to
	// be used is reported as out of reach.
	Probe(ctx context.Context, endpoint string) (NodeInfo, error)

	// Create makes, but does not start, the container of one job and epoch.
	// It pulls the image if the spec's pull policy asks for it. Called again
	// for the same job and epoch it returns the container that it made before,
	// in whatever state that is. Where a later epoch has a container it refuses.
	Create(ctx context.Context, endpoint string, run ContainerRun) (Container, error)

	// Start starts a created container. A container that runs or has ended is
	// left alone, without an error: Wait tells which. A container whose start
	// is refused stays as it is, for the caller to look at and remove.
	Start(ctx context.Context, endpoint, containerID string) error

	// Wait follows a started container: each log line goes to lines (if not
	// nil) from the first one on, one call at a time and none after Wait has
	// returned, and Wait returns once the container has ended, with its exit.
	// When ctx ends first the container runs on. A node that is out of reach
	// does not end the wait: Wait goes on asking for as long as ctx allows. A
	// container that was never started has no exit, and waiting for it is an
	// error.
	Wait(ctx context.Context, endpoint, containerID string, lines func(LogLine)) (Exit, error)

	// Inspect returns a container as it is now.
	Inspect(ctx context.Context, endpoint, containerID string) (Container, error)

	// Find lists the containers of one job, newest epoch first, whatever
	// their state.
	Find(ctx context.Context, endpoint, jobID string) ([]Container, error)

	// List lists all containers of this installation on the node, without
	// StartedAt, Elapsed, Exit and StartError. Containers whose labels it
	// cannot read, such as those of a later version, are not listed.
	List(ctx context.Context, endpoint string) ([]Container, error)

	// Stop sends the stop signal, waits up to grace, kills, and returns how
	// the container ended. Stopping one that has ended is no error; one that
	// never ran has an Exit without StartedAt.
	Stop(ctx context.Context, endpoint, containerID string, grace time.Duration) (Exit, error)

	// Remove removes a container, running or not, with its anonymous volumes,
	// and returns once it is gone. Removing one that is gone is no error.
	Remove(ctx context.Context, endpoint, containerID string) error
}

// NodeInfo is what a daemon says of itself.
type NodeInfo struct {
	DaemonID      string
	APIVersion    string // negotiated
	ServerVersion string
	OS            string
	Architecture  string
	CPUs          int
	Memory        int64     // bytes
	Now           time.Time // the daemon's clock
}

// ContainerRun is what a container is made for. All of it but the spec becomes
// labels, so that a container explains itself to whoever finds it.
type ContainerRun struct {
	JobID      string
	Definition string
	NodeID     string
	Attempt    int
	Epoch      int64
	Spec       ContainerSpec // Create fills in the defaults and validates it
}

// ContainerState is the state of a container in Docker's words, reduced to
// what decides something.
type ContainerState string

// Container states. Restarting, removing and dead are Other.
const (
	ContainerCreated ContainerState = "created"
	ContainerRunning ContainerState = "running"
	ContainerPaused  ContainerState = "paused"
	ContainerExited  ContainerState = "exited"
	ContainerOther   ContainerState = "other"
)

// Container is a container as a daemon reports it.
type Container struct {
	ID        string
	Name      string
	JobID     string
	NodeID    string
	Attempt   int
	Epoch     int64
	State     ContainerState
	StartedAt time.Time // zero if it never ran; the daemon's clock
	// Elapsed is how long it has run, by the daemon's clock; 0 if it never ran.
	Elapsed time.Duration
	// Exit is how it ended; nil unless State is exited and it had been started.
	Exit *Exit
	// StartError is why its start was refused, as the daemon recorded it.
	StartError string
	// Warnings are what the daemon warned of at creation.
	Warnings []string
}

// Exit is how a container ended.
type Exit struct {
	Code       int
	OOMKilled  bool
	StartedAt  time.Time // the daemon's clock
	FinishedAt time.Time // the daemon's clock
	Error      string    // the daemon's words, if any
	// LogsIncomplete says that some output could not be read.
	LogsIncomplete bool
}

// LogLine is one line of a container's output: valid UTF-8, no NUL, no
// newline.
type LogLine struct {
	Time   time.Time // the daemon's clock
	Stderr bool
	Text   string
	// Truncated says that the line was longer than the limit and was cut.
	Truncated bool
}

// RuntimeErrorReason says why a runtime call did not work; see
// [RuntimeError.User] for whose fault each is.
type RuntimeErrorReason string

// Reasons of a [RuntimeError].
const (
	ReasonInvalidSpec     RuntimeErrorReason = "INVALID_SPEC"     // USER
	ReasonImage           RuntimeErrorReason = "IMAGE"            // USER: no such image, denied, bad reference
	ReasonCannotStart     RuntimeErrorReason = "CANNOT_START"     // USER: the program cannot be executed
	ReasonNodeUnreachable RuntimeErrorReason = "NODE_UNREACHABLE" // SYSTEM
	ReasonPull            RuntimeErrorReason = "PULL"             // SYSTEM: registry or network trouble
	ReasonDisk            RuntimeErrorReason = "DISK"             // SYSTEM
	ReasonNodeLost        RuntimeErrorReason = "NODE_LOST"        // SYSTEM: the daemon went away and ended the container with it
	ReasonContainerGone   RuntimeErrorReason = "CONTAINER_GONE"   // SYSTEM: it vanished, its end is not known
	ReasonInternal        RuntimeErrorReason = "INTERNAL"         // SYSTEM: anything else
)

// RuntimeError is a failed runtime call.
type RuntimeError struct {
	Reason  RuntimeErrorReason
	Message string // one sentence for the user, ends with the daemon's words
	// ExitCode is set (126 or 127) where the daemon refused to start the program.
	ExitCode int
	Err      error
}

func (e *RuntimeError) Error() string { return e.Message }

// Unwrap returns the client's error.
func (e *RuntimeError) Unwrap() error { return e.Err }

// User says whether the spec or the program is at fault.
func (e *RuntimeError) User() bool {
	switch e.Reason {
	case ReasonInvalidSpec, ReasonImage, ReasonCannotStart:
		return true
	case ReasonNodeUnreachable, ReasonPull, ReasonDisk, ReasonNodeLost, ReasonContainerGone, ReasonInternal:
		return false
	}
	return false
}
