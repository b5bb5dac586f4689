package activities

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// HTTPDoer sends the requests of HEARTBEAT jobs.
type HTTPDoer interface {
	Do(req *http.Request) (*http.Response, error)
}

// NewHTTPClient returns the client for HEARTBEAT jobs. It follows at most five
// redirects and keeps no connection.
func NewHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > 5 {
				return fmt.Errorf("more than 5 redirects")
			}
			return nil
		},
	}
}

// maxBody is how much of an answer is read, and thrown away.
const maxBody = 64 << 10

// ProbeEndpoint sends the one request of a HEARTBEAT job and says how it went.
// No answer is a SYSTEM failure, another status than the expected one the
// USER's.
func (a *Activities) ProbeEndpoint(ctx context.Context, in Work) (Step, error) {
	step := Step{Queue: a.Queue}
	err := a.leased(ctx, in, &Progress{Phase: "probe"}, func(held context.Context, _ leasestore.Lease, job leasestore.Job) error {
		spec, err := heartbeatSpec(job)
		if err != nil {
			return err
		}
		failure := a.probe(held, spec)
		if context.Cause(held) != nil {
			return context.Cause(held)
		}
		step.Ending = &Ending{Failure: failure, Started: true}
		return nil
	})
	return step, err
}

func (a *Activities) probe(ctx context.Context, spec HeartbeatSpec) *leasestore.Failure {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(spec.Timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, spec.Endpoint, nil)
	if err != nil {
		failure := user("INVALID_SPEC", err.Error())
		return &failure
	}
	for name, value := range spec.Headers {
		request.Header.Set(name, value)
	}
	response, err := a.HTTP.Do(request)
	if err != nil {
		return &leasestore.Failure{Kind: leasestore.SystemFailure, Reason: ReasonEndpoint, Message: err.Error()}
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	if response.StatusCode != spec.ExpectedStatusCode {
		failure := user(ReasonEndpointStatus,
			fmt.Sprintf("%s answered with status %d instead of %d", spec.Endpoint, response.StatusCode, spec.ExpectedStatusCode))
		return &failure
	}
	return nil
}
