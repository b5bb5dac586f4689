package faults

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// When says at which moment a completion is lost.
type When int

// The moments.
const (
	Never      When = iota
	BeforeSent      // the server never hears it
	AfterSent       // the server has acted on it, and the worker is not told
)

// Completions loses the answers of an activity worker on their way to Temporal.
// Give its Intercept to the worker's client:
//
//	client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.Intercept)}}
//
// The SDK sends an answer again, so one loss is a delay; a standing one lasts
// until it is switched off or the activity has timed out. The zero value loses
// nothing.
type Completions struct {
	mu   sync.Mutex
	when When
	only string
	lost int
}

// Lose loses all completions from now on; Never ends that.
func (c *Completions) Lose(when When) { c.LoseOf("", when) }

// LoseOf loses the answers with this text in their results or failures alone.
func (c *Completions) LoseOf(text string, when When) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.when, c.only = when, text
}

// Lost is how many were lost so far.
func (c *Completions) Lost() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// Intercept is a grpc.UnaryClientInterceptor.
func (c *Completions) Intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	when := c.judge(method, request)
	if when != BeforeSent {
		err := invoke(ctx, method, request, reply, conn, opts...)
		if err != nil || when == Never {
			return err
		}
	}
	return status.Error(codes.Unavailable, "lost by the test")
}

func (c *Completions) judge(method string, request any) When {
	if !strings.Contains(method, "/RespondActivityTask") {
		return Never
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if text, ok := request.(interface{ String() string }); c.only != "" && (!ok || !strings.Contains(text.String(), c.only)) {
		return Never
	}
	if c.when != Never {
		c.lost++
	}
	return c.when
}
