package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// errNodeLost ends the watching of a container whose node was out of reach for
// too long.
var errNodeLost = errors.New("the node was out of reach for too long")

// watchNode asks the node of a container from time to time, and gives the
// container up once there was no answer for as long as a node may be lost. A
// shorter outage is none of the job's business: its container runs on.
func (a *Activities) watchNode(ctx context.Context, endpoint string, giveUp context.CancelCauseFunc) {
	ticker := time.NewTicker(time.Duration(a.Timing.NodeLost) / 10)
	defer ticker.Stop()
	for answered := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := a.Runtime.Probe(ctx, endpoint); err == nil {
			answered = time.Now()
		} else if time.Since(answered) >= time.Duration(a.Timing.NodeLost) {
			giveUp(errNodeLost)
			return
		}
	}
}

// inspect looks at a container, and asks again while its node is out of reach.
func (a *Activities) inspect(ctx context.Context, lease leasestore.Lease) (Container, error) {
	for wait := 200 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		container, err := a.Runtime.Inspect(ctx, lease.Endpoint, lease.ContainerID)
		trouble, ok := errors.AsType[*RuntimeError](err)
		if !ok || trouble.Reason != ReasonNodeUnreachable {
			return container, err
		}
		select {
		case <-ctx.Done():
			return container, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

func (a *Activities) nodeLost(lease leasestore.Lease) *Ending {
	return &Ending{Started: true, Failure: &leasestore.Failure{
		Kind: leasestore.SystemFailure, Reason: string(ReasonNodeLost),
		Message: fmt.Sprintf("node %s was out of reach for %s", lease.NodeID, a.Timing.NodeLost),
	}}
}
