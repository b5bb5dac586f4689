package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// leasehold does one job in a call, and needs four calls for a job.
type leasehold struct {
	store      *leasestore.Store
	definition leasestore.Definition
	holder     leasestore.Holder
	// waiting are the jobs that were put in. River's query finds a job;
	// Leasehold is told which, by the job's workflow.
	waiting chan uuid.UUID
}

func openLeasehold(ctx context.Context, pool *pgxpool.Pool, jobs int) (*leasehold, error) {
	l := &leasehold{
		store: leasestore.New(pool), holder: leasestore.Holder{Worker: "bench", Process: uuid.New()},
		waiting: make(chan uuid.UUID, jobs),
	}
	var err error
	l.definition, err = l.store.Apply(ctx, leasestore.Definition{
		Name: "nothing", Kind: leasestore.Heartbeat, Spec: json.RawMessage(`{}`),
	})
	return l, err
}

func (*leasehold) name() string { return "Leasehold, 1 a call" }

func (*leasehold) inCall() int { return 1 }

// put enqueues and dispatches a job.
func (l *leasehold) put(ctx context.Context, _ int) error {
	id := uuid.New()
	if _, err := l.store.Enqueue(ctx, leasestore.EnqueueRequest{
		JobID: id, Definition: l.definition.Name, WorkflowID: "bench",
	}); err != nil {
		return err
	}
	_, err := l.store.Dispatch(ctx, id, 0)
	l.waiting <- id
	return err
}

// work claims and completes a job.
func (l *leasehold) work(ctx context.Context, _ int) error {
	const turn, ttl = 1, 30 * time.Second
	var id uuid.UUID
	select {
	case id = <-l.waiting:
	default:
		return errors.New("fewer jobs wait than were put in")
	}
	lease, err := l.store.Claim(ctx, leasestore.ClaimRequest{
		JobID: id, Generation: l.definition.Generation, DispatchAttempt: 1, Holder: l.holder, Turn: turn, TTL: ttl,
		RequestID: uuid.New(), NodeTTL: ttl,
	})
	if err != nil {
		return err
	}
	_, err = l.store.Complete(ctx, lease.Authority, leasestore.Outcome{})
	return err
}
