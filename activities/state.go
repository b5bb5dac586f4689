package activities

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// JobState is a job as the workflow that drives it needs to know it.
type JobState struct {
	Result          JobResult       `json:"result"`
	Kind            leasestore.Kind `json:"kind"`
	Generation      int64           `json:"generation"`
	DispatchAttempt int64           `json:"dispatch_attempt"`
	MaxAttempts     int64           `json:"max_attempts"`
	Wait            Duration        `json:"wait"` // until the next attempt is due
	// Timeout and StopGrace are the container's.
	Timeout   Duration `json:"timeout"`
	StopGrace Duration `json:"stop_grace"`
	// Driver is the workflow that drives the job.
	Driver           string `json:"driver"`
	Timing           Timing `json:"timing"`
	SearchAttributes bool   `json:"search_attributes"`
}

// JobResult is RunJob's result, and the details of its failure.
type JobResult struct {
	JobID      string              `json:"job_id"`
	Definition string              `json:"definition"`
	Status     leasestore.Status   `json:"status"`
	Attempts   int64               `json:"attempts"`
	Epoch      int64               `json:"epoch"`
	ExitCode   *int                `json:"exit_code,omitempty"`
	Node       string              `json:"node,omitempty"`
	Container  string              `json:"container,omitempty"`
	CreatedAt  time.Time           `json:"created_at"`
	StartedAt  *time.Time          `json:"started_at,omitempty"`
	EndedAt    *time.Time          `json:"ended_at,omitempty"`
	Failure    *leasestore.Failure `json:"failure,omitempty"`
	Warnings   []string            `json:"warnings,omitempty"`
	Log        string              `json:"log,omitempty"` // the last lines
}

// ResultOf is a stored job as RunJob reports it.
func ResultOf(job leasestore.Job) JobResult {
	result := JobResult{
		JobID: job.ID.String(), Definition: job.Definition, Status: job.Status, Attempts: job.Attempt, Epoch: job.Epoch,
		ExitCode: job.ExitCode, Node: job.NodeID, Container: job.ContainerID, CreatedAt: job.CreatedAt,
		StartedAt: job.StartedAt, EndedAt: job.EndedAt, Warnings: job.Warnings, Log: job.LogTail,
	}
	if job.Failure.Kind != "" {
		result.Failure = &job.Failure
	}
	return result
}

func (a *Activities) stateOf(job leasestore.Job) JobState {
	state := JobState{
		Result: ResultOf(job), Kind: job.Kind, Generation: job.Generation, DispatchAttempt: job.DispatchAttempt,
		MaxAttempts: job.MaxAttempts, Wait: Duration(job.Wait), Driver: job.WorkflowID,
		Timing: a.Timing, SearchAttributes: a.SearchAttributes,
	}
	if job.Kind == leasestore.Container {
		if spec, err := containerSpec(job); err == nil {
			state.Timeout, state.StopGrace = spec.Timeout, spec.StopGrace
		}
	}
	return state
}

func containerSpec(job leasestore.Job) (ContainerSpec, error) {
	var spec ContainerSpec
	if err := json.Unmarshal(job.Spec, &spec); err != nil {
		return spec, fmt.Errorf("read the spec of job %s: %w", job.ID, err)
	}
	return spec.WithDefaults(), nil
}

func heartbeatSpec(job leasestore.Job) (HeartbeatSpec, error) {
	var spec HeartbeatSpec
	if err := json.Unmarshal(job.Spec, &spec); err != nil {
		return spec, fmt.Errorf("read the spec of job %s: %w", job.ID, err)
	}
	return spec.WithDefaults(), nil
}
