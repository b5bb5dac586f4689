package docker

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"

	"github.com/leasehold/leasehold/activities"
)

// oldestAPI is the first version with all that we use.
const oldestAPI = "1.40"

// node is a daemon as it was when we connected to it. When a connection fails
// it is forgotten, so that the version is negotiated anew: the daemon may come
// back as another one.
type node struct {
	endpoint string
	quick    *client.Client // bounded: for all requests that answer at once
	patient  *client.Client // unbounded: for waits, logs, events, stops and pulls
	info     system.Info
	offset   time.Duration // what to add to our clock to get the daemon's
	bridge   bool          // it has a bridge network
}

func (n *node) close() {
	n.quick.Close()
	n.patient.Close()
}

// clock turns our time into the daemon's.
func (n *node) clock(t time.Time) time.Time { return t.Add(n.offset) }

// node returns the connected node of an endpoint. No lock is held while it
// connects, so that a node that hangs holds up only its own callers.
func (e *Engine) node(ctx context.Context, endpoint string) (*node, error) {
	e.mu.Lock()
	n := e.nodes[endpoint]
	e.mu.Unlock()
	if n != nil {
		return n, nil
	}
	n, err := e.dial(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	e.keep(n)
	return n, nil
}

func (e *Engine) keep(n *node) {
	e.mu.Lock()
	before := e.nodes[n.endpoint]
	e.nodes[n.endpoint] = n
	e.mu.Unlock()
	if before != nil {
		before.close()
	}
}

func (e *Engine) forget(n *node) {
	e.mu.Lock()
	if e.nodes[n.endpoint] == n {
		delete(e.nodes, n.endpoint)
	}
	e.mu.Unlock()
	n.close()
}

// dial opens a new connection, negotiates the version and asks who answers.
func (e *Engine) dial(ctx context.Context, endpoint string) (*node, error) {
	n := &node{endpoint: endpoint}
	var err error
	if n.quick, err = e.client(endpoint, client.WithTimeout(e.opts.CallTimeout)); err != nil {
		return nil, err
	}
	if n.patient, err = e.client(endpoint); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.opts.CallTimeout)
	defer cancel()
	if err := e.greet(ctx, n); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (e *Engine) greet(ctx context.Context, n *node) error {
	ping, err := n.quick.Ping(ctx)
	if err != nil {
		return err
	}
	if ping.APIVersion == "" || versions.LessThan(ping.APIVersion, oldestAPI) {
		return &unusableError{fmt.Sprintf("its Docker API %s is below %s", ping.APIVersion, oldestAPI)}
	}
	n.quick.NegotiateAPIVersionPing(ping)
	n.patient.NegotiateAPIVersionPing(ping)
	asked := time.Now()
	if n.info, err = n.quick.Info(ctx); err != nil {
		return err
	}
	if now, err := time.Parse(time.RFC3339Nano, n.info.SystemTime); err == nil {
		n.offset = now.Sub(asked.Add(time.Since(asked) / 2))
	}
	_, err = n.quick.NetworkInspect(ctx, activities.NetworkBridge, network.InspectOptions{})
	if n.bridge = err == nil; cerrdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// greetAnew tells whether the daemon still takes connections.
func (e *Engine) greetAnew(ctx context.Context, endpoint string) error {
	c, err := e.client(endpoint, client.WithTimeout(e.opts.CallTimeout))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Ping(ctx)
	return err
}

func (e *Engine) client(endpoint string, more ...client.Opt) (*client.Client, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, &unusableError{"its endpoint is no URL: " + err.Error()}
	}
	transport := &http.Transport{MaxIdleConns: 6, IdleConnTimeout: 30 * time.Second}
	opts := []client.Opt{
		client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}),
		client.WithHost(endpoint), client.WithAPIVersionNegotiation(),
	}
	switch {
	case target.Scheme == "unix" && path.IsAbs(target.Path) && target.Host == "":
	case target.Scheme == "tcp" && target.Hostname() != "" && target.Port() != "" && target.Path == "":
		transport.TLSClientConfig = e.opts.TLS
	case target.Scheme == "ssh":
		return nil, &unusableError{"ssh:// endpoints are not supported: forward the daemon's socket, as with ssh -L, and use unix:// or tcp://"}
	default:
		return nil, &unusableError{fmt.Sprintf("its endpoint %q is neither unix:///path nor tcp://host:port", endpoint)}
	}
	c, err := client.NewClientWithOpts(append(opts, more...)...)
	if err != nil {
		return nil, &unusableError{"its endpoint cannot be used: " + err.Error()}
	}
	return c, nil
}

// unusableError says why a node cannot be used at all.
type unusableError struct{ reason string }

func (e *unusableError) Error() string { return "the node cannot be used: " + e.reason }
