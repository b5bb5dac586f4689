package activities

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/leasestore"
)

// Activities are the steps of Leasehold's workflows, bound to one worker
// process. The worker package makes it and registers its methods under the
// names in this package.
type Activities struct {
	Store   *leasestore.Store
	Runtime Runtime
	Keeper  Keeper
	// Recovering keeps the leases that this process has taken over while it
	// settles them. They need no permit: settling is short and bounded.
	Recovering Keeper
	// Client signals and starts RunJob.
	Client client.Client
	Holder leasestore.Holder
	// Queue is the task queue that only this process polls. The activities of
	// a lease run where it was claimed.
	Queue string
	// TaskQueue is where RunJob runs.
	TaskQueue string
	Timing    Timing
	// Retry is the policy of jobs that bring none of their own. Workers of one
	// task queue must agree on it: to a definition it is a change.
	Retry leasestore.Retry
	// HTTP probes the endpoints of HEARTBEAT jobs.
	HTTP HTTPDoer
	// SearchAttributes says that the namespace has Leasehold's search
	// attributes, so that workflows may set them.
	SearchAttributes bool
	Log              *slog.Logger
}

// Timing is how long things take, as the claiming worker is configured.
// Workflows learn it from activity results, so that it is in their history.
type Timing struct {
	Lease      Duration `json:"lease"`
	Renew      Duration `json:"renew"`
	Heartbeat  Duration `json:"heartbeat"`         // Temporal heartbeat timeout of a supervising activity
	StartDelay Duration `json:"schedule_to_start"` // how long a process may take to pick up an activity of its own
	Recovery   Duration `json:"recovery"`          // interval of the recovery schedule
	NodeTTL    Duration `json:"node_ttl"`          // how old a node's heartbeat may be
	NodeLost   Duration `json:"node_lost"`         // how long a node may be out of reach before its jobs are given up
}

// Keeper keeps leases alive for a worker process, in batches, and counts them:
// a lease that is kept occupies one permit.
type Keeper interface {
	// Keep renews a proven lease from now on. The context that it returns ends
	// when the lease is refused or its local deadline passes, with a
	// [*leasestore.LostError] or [ErrDeadline] as its cause. done ends the
	// caller's use: the lease is renewed for a while longer, so that it lives
	// until the job's next activity, which keeps it again in a later turn.
	Keep(ctx context.Context, lease leasestore.Lease) (held context.Context, done func())
	// Ended says that the end of an ownership is confirmed: the lease is not
	// renewed again and its permit is free.
	Ended(jobID uuid.UUID, epoch int64)
	// Unconfirmed says that the end was sent and its answer was lost. The
	// lease is not renewed again; its permit stays taken until reconciliation
	// finds that it is no longer live.
	Unconfirmed(auth leasestore.Authority)
}

// Names of the activities.
const (
	EnqueueJobName         = "EnqueueJob"
	DispatchJobName        = "DispatchJob"
	WithdrawJobName        = "WithdrawJob"
	ReadJobName            = "ReadJob"
	ClaimJobName           = "ClaimJob"
	StartContainerName     = "StartContainer"
	SuperviseContainerName = "SuperviseContainer"
	StopContainerName      = "StopContainer"
	ProbeEndpointName      = "ProbeEndpoint"
	ReportOutcomeName      = "ReportOutcome"
	RecoverBatchName       = "RecoverBatch"
	RestartRunJobsName     = "RestartRunJobs"
	ProbeNodesName         = "ProbeNodes"
)

// ClaimsQueue is the task queue for activities that need a permit: claims and
// take-overs. A worker polls it only while it has a permit free.
func ClaimsQueue(taskQueue string) string { return taskQueue + "-claims" }

// ProcessQueue is the task queue of one worker process.
func ProcessQueue(taskQueue string, process uuid.UUID) string {
	return taskQueue + "-" + process.String()
}

// Common returns the activities that any worker of the task queue may run, by
// name: they act for no lease, or for leases that they take themselves.
func (a *Activities) Common() map[string]any {
	return map[string]any{
		EnqueueJobName:   a.EnqueueJob,
		DispatchJobName:  a.DispatchJob,
		WithdrawJobName:  a.WithdrawJob,
		ReadJobName:      a.ReadJob,
		RecoverBatchName: a.RecoverBatch, RestartRunJobsName: a.RestartRunJobs,
		ProbeNodesName: a.ProbeNodes,
	}
}

// Leased returns the activities of a lease, by name. They run on the claims
// queue and on the process's own.
func (a *Activities) Leased() map[string]any {
	return map[string]any{
		ClaimJobName:           a.ClaimJob,
		StartContainerName:     a.StartContainer,
		SuperviseContainerName: a.SuperviseContainer,
		StopContainerName:      a.StopContainer,
		ProbeEndpointName:      a.ProbeEndpoint,
		ReportOutcomeName:      a.ReportOutcome,
	}
}

// bounded is the time that short calls to the store get.
const bounded = 10 * time.Second

// Names of the search attributes, all keywords.
const (
	JobAttributeName        = "LeaseholdJobId"
	DefinitionAttributeName = "LeaseholdDefinition"
	StatusAttributeName     = "LeaseholdStatus"
	NodeAttributeName       = "LeaseholdNode"
)
