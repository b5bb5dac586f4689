package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

// riverQueue does a number of jobs in a call, and needs three calls for them.
type riverQueue struct {
	driver riverdriver.Executor
	queue  string // each has its own, so that none finds another's jobs
	calls  int
}

func openRiver(ctx context.Context, pool *pgxpool.Pool) (riverdriver.Driver[pgx.Tx], error) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return driver, err
}

func inCallsOf(jobs int, driver riverdriver.Driver[pgx.Tx]) *riverQueue {
	return &riverQueue{driver: driver.GetExecutor(), queue: fmt.Sprintf("calls_of_%d", jobs), calls: jobs}
}

func (r *riverQueue) name() string { return fmt.Sprintf("River, %d a call", r.calls) }

func (r *riverQueue) inCall() int { return r.calls }

// put inserts jobs that are available at once.
func (r *riverQueue) put(ctx context.Context, jobs int) error {
	params := make([]*riverdriver.JobInsertFastParams, jobs)
	for i := range params {
		params[i] = &riverdriver.JobInsertFastParams{
			EncodedArgs: []byte(`{}`), Kind: "nothing", MaxAttempts: river.MaxAttemptsDefault, Metadata: []byte(`{}`),
			Priority: river.PriorityDefault, Queue: r.queue, State: rivertype.JobStateAvailable, Tags: []string{},
		}
	}
	_, err := r.driver.JobInsertFastMany(ctx, &riverdriver.JobInsertFastManyParams{Jobs: params})
	return err
}

// work locks and completes jobs. A call may find fewer than it asks for,
// because it passes over what others are locking.
func (r *riverQueue) work(ctx context.Context, jobs int) error {
	const tries = 10_000
	for range tries {
		locked, err := r.driver.JobGetAvailable(ctx, &riverdriver.JobGetAvailableParams{
			ClientID: "bench", MaxAttemptedBy: 100, MaxToLock: jobs, Queue: r.queue,
		})
		if err != nil {
			return err
		}
		if len(locked.Jobs) > 0 {
			if err := r.complete(ctx, locked.Jobs); err != nil {
				return err
			}
		}
		if jobs -= len(locked.Jobs); jobs == 0 {
			return nil
		}
	}
	return errors.New("fewer jobs wait than were put in")
}

func (r *riverQueue) complete(ctx context.Context, jobs []*rivertype.JobRow) error {
	n, now := len(jobs), time.Now()
	params := &riverdriver.JobSetStateIfRunningManyParams{
		ID: make([]int64, n), Attempt: make([]*int, n), ErrData: make([][]byte, n), FinalizedAt: make([]*time.Time, n),
		MetadataDoMerge: make([]bool, n), MetadataUpdates: make([][]byte, n), ScheduledAt: make([]*time.Time, n),
		State: make([]rivertype.JobState, n),
	}
	for i, job := range jobs {
		params.ID[i], params.FinalizedAt[i], params.State[i] = job.ID, &now, rivertype.JobStateCompleted
	}
	done, err := r.driver.JobSetStateIfRunningMany(ctx, params)
	if err == nil && len(done) != n {
		err = fmt.Errorf("%d of %d jobs were completed", len(done), n)
	}
	return err
}
