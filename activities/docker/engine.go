package docker

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold/leasehold/activities"
)

// Options configure an [Engine].
type Options struct {
	// Instance names the installation. It is a label of every container, and no
	// container of another instance is listed, stopped or removed: two
	// installations with one name would clean up each other's containers.
	// Without it an Engine can only look.
	Instance string

	// Log receives what goes wrong without failing a call. Defaults to nothing.
	Log *slog.Logger

	// DefaultNetwork is the network of specs that name none. Defaults to
	// bridge, or none on a node without a bridge network.
	DefaultNetwork string

	// TLS is used for tcp:// endpoints. Nil means plain TCP: whoever reaches
	// the port then is root on the node.
	TLS *tls.Config

	// CallTimeout bounds each request but pulls, waits and logs. Too short and
	// a busy daemon looks dead, too long and a dead one holds up its callers.
	// Defaults to 20 seconds.
	CallTimeout time.Duration

	// WaitSlice is how long one wait request lasts before the container is
	// looked at and waited for anew, in case the connection died silently.
	// Too short and it is polling. Defaults to 30 seconds.
	WaitSlice time.Duration

	// PullTimeout bounds a whole pull, PullStall the time without progress.
	// Default to 10 and 2 minutes.
	PullTimeout, PullStall time.Duration

	// PullsAtOnce bounds the pulls of this process on one node. Defaults to 3.
	PullsAtOnce int

	// LineLimit is where log lines are cut, in bytes. Defaults to 64 KiB.
	LineLimit int

	// LogDrain is how long the rest of the log may make no progress after the
	// container has ended. Defaults to 5 seconds.
	LogDrain time.Duration
}

// Engine runs containers on any number of Docker daemons. Its methods may be
// called from several goroutines; daemons do not wait for each other.
type Engine struct {
	opts Options
	life context.Context // of pulls, which belong to no single caller
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	nodes  map[string]*node
	pulls  map[pullKey]*pull
	slots  map[string]chan struct{} // of pulls, by endpoint
	starts map[string]*turns        // of starts, by container
}

var _ activities.Runtime = (*Engine)(nil)

// New returns an Engine. It connects to nothing before it is used.
func New(opts Options) *Engine {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	orElse(&opts.CallTimeout, 20*time.Second)
	orElse(&opts.WaitSlice, 30*time.Second)
	orElse(&opts.PullTimeout, 10*time.Minute)
	orElse(&opts.PullStall, 2*time.Minute)
	orElse(&opts.PullsAtOnce, 3)
	orElse(&opts.LineLimit, 64<<10)
	orElse(&opts.LogDrain, 5*time.Second)
	e := &Engine{
		opts: opts, nodes: map[string]*node{}, pulls: map[pullKey]*pull{},
		slots: map[string]chan struct{}{}, starts: map[string]*turns{},
	}
	e.life, e.end = context.WithCancel(context.Background()) //nolint:forbidigo // the engine's own life, ended by Close
	return e
}

func orElse[T comparable](value *T, otherwise T) {
	var unset T
	if *value == unset {
		*value = otherwise
	}
}

// Close gives up pulls under way, waits for them, and closes idle connections.
// Calls under way are not ended: end their contexts first. The error is always
// nil.
func (e *Engine) Close() error {
	e.end()
	e.work.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for endpoint, n := range e.nodes {
		n.close()
		delete(e.nodes, endpoint)
	}
	return nil
}

// Probe asks the daemon anew who and how it is: the connection and the API
// version are negotiated again.
func (e *Engine) Probe(ctx context.Context, endpoint string) (activities.NodeInfo, error) {
	n, err := e.dial(ctx, endpoint)
	if err != nil {
		return activities.NodeInfo{}, about{what: "probe the node"}.wrap(ctx, callProbe, err)
	}
	e.keep(n)
	info := n.info
	return activities.NodeInfo{
		DaemonID: info.ID, APIVersion: n.quick.ClientVersion(), ServerVersion: info.ServerVersion,
		OS: info.OSType, Architecture: info.Architecture, CPUs: info.NCPU, Memory: info.MemTotal,
		Now: time.Now().Add(n.offset),
	}, nil
}
