package activities

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/leasehold/leasehold/leasestore"
)

const (
	// restartSample is how many waiting jobs one RestartRunJobs looks at: each
	// is a question to Temporal.
	restartSample = 100
	// restartFrom is how many waiting jobs of a status the sample is taken from.
	restartFrom = 1000
)

// RestartResult is what RestartRunJobs found.
type RestartResult struct {
	Looked    int      `json:"looked"`
	Restarted []string `json:"restarted,omitempty"` // job IDs
}

// RestartRunJobs starts RunJob again for waiting jobs whose RunJob was
// terminated, has timed out or was deleted: nobody else would ever offer or
// claim them. It looks at a random sample, so that its cost is bounded and each
// job's turn comes.
//
// A RunJob that failed by itself is left alone: it would fail again.
func (a *Activities) RestartRunJobs(ctx context.Context) (RestartResult, error) {
	var result RestartResult
	waiting, err := a.waiting(ctx)
	if err != nil {
		return result, applicationError(err)
	}
	for _, job := range waiting {
		result.Looked++
		restarted, one := a.restart(ctx, job)
		if restarted {
			result.Restarted = append(result.Restarted, job.ID.String())
		}
		if one != nil {
			err = errors.Join(err, fmt.Errorf("job %s: %w", job.ID, one))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return result, applicationError(err)
}

func (a *Activities) waiting(ctx context.Context) ([]leasestore.Job, error) {
	var waiting []leasestore.Job
	for _, status := range []leasestore.Status{leasestore.Queued, leasestore.Pending} {
		jobs, err := a.Store.Jobs(ctx, leasestore.JobFilter{Status: status, Limit: restartFrom})
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, jobs...)
	}
	rand.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	return waiting[:min(len(waiting), restartSample)], nil
}

func (a *Activities) restart(ctx context.Context, job leasestore.Job) (bool, error) {
	driver, err := a.driver(ctx, job)
	if err != nil {
		return false, err
	}
	found, err := a.Client.DescribeWorkflow(ctx, driver, "")
	switch {
	case notRunning(err): // deleted, or forgotten after its retention
	case err != nil:
		return false, err
	case found.Status != enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED && found.Status != enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return false, nil
	}
	a.Log.InfoContext(ctx, "a waiting job's workflow does not run any longer and is started again",
		"job", job.ID, "workflow", driver)
	return true, a.signalOrStart(ctx, job, driver, WakeSignal, nil)
}
