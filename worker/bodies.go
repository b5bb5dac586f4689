package worker

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/leasehold/leasehold/activities"
)

// bodies counts the activities of Leasehold that run in a worker: Temporal
// does not wait for one that outlasts the stop timeout, and the database must
// not be closed under it.
type bodies struct {
	interceptor.WorkerInterceptorBase
	running sync.WaitGroup
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (b *bodies) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	counted := &body{bodies: b}
	counted.Next = next
	return counted
}

type body struct {
	interceptor.ActivityInboundInterceptorBase
	bodies *bodies
}

// ExecuteActivity runs an activity; a team's own are not counted.
func (b *body) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if ours[activity.GetInfo(ctx).ActivityType.Name] {
		b.bodies.running.Add(1)
		defer b.bodies.running.Done()
	}
	return b.Next.ExecuteActivity(ctx, in)
}

// ours are the names of Leasehold's activities.
var ours = func() map[string]bool {
	var a *activities.Activities
	names := map[string]bool{}
	for name := range a.Common() {
		names[name] = true
	}
	for name := range a.Leased() {
		names[name] = true
	}
	return names
}()

// wait waits until no activity runs, but not longer than the limit, and says
// whether that is so.
func (b *bodies) wait(limit time.Duration) bool {
	over := make(chan struct{})
	go func() {
		b.running.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-time.After(limit):
		return false
	}
}
