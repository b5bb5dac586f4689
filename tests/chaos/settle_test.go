//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/proof"
)

const (
	// settlesIn is how long the last job may take to end once all is well.
	settlesIn = 150 * time.Second
	// sweptIn is how long after a node is back its leftovers may go on.
	sweptIn = 20 * time.Second
)

// settle waits until every job has ended, and nothing is left of them.
func (l *lab) settle(ctx context.Context, ids []string) []string {
	var wrong []string
	ctx, cancel := context.WithTimeout(ctx, settlesIn)
	defer cancel()
	var left []string
	_ = persist(ctx, func(ctx context.Context) error {
		var now []string
		for _, id := range ids {
			jobs, err := l.store.Jobs(ctx, leasestore.JobFilter{WorkflowID: id})
			if err != nil {
				return err
			}
			if len(jobs) != 1 || !jobs[0].Status.Ended() {
				now = append(now, l.describe(ctx, id, jobs))
			}
		}
		left = now
		if len(left) > 0 {
			return fmt.Errorf("%d jobs have not ended", len(left))
		}
		return nil
	})
	if len(left) > 0 {
		return left
	}
	for _, id := range ids {
		err := persist(ctx, func(ctx context.Context) error {
			err := l.client.GetWorkflow(ctx, id, "").Get(ctx, nil)
			if _, ended := errors.AsType[*temporal.WorkflowExecutionError](err); ended {
				return nil // as failed or canceled
			}
			return err
		})
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("workflow %s has not ended: %v", id, err))
		}
	}
	return append(wrong, l.leftovers(ctx)...)
}

func (l *lab) describe(ctx context.Context, id string, jobs []leasestore.Job) string {
	text := "job " + id + " has not ended:"
	for _, job := range jobs {
		text += fmt.Sprintf(" %s, attempt %d, epoch %d, %s", job.Status, job.Attempt, job.Epoch, job.Failure.Message)
		entries, _ := l.store.Ledger(ctx, job.ID) // it only explains
		for _, e := range entries {
			text += fmt.Sprintf("\n    %s %s epoch %d by %s %s", e.At.Format("15:04:05.000"), e.Event, e.Epoch, e.Worker, e.Outcome)
		}
	}
	return text
}

// leftovers are leases and containers that are still there.
func (l *lab) leftovers(ctx context.Context) []string {
	var wrong []string
	for _, n := range l.nodes {
		left := 0
		_ = persist(ctx, func(ctx context.Context) error {
			found, err := n.witness.containers(ctx)
			if left = len(found); err == nil && left > 0 {
				err = fmt.Errorf("%d containers", left)
			}
			return err
		})
		if left > 0 {
			wrong = append(wrong, fmt.Sprintf("%d containers are left on %s", left, n.id))
		}
	}
	var leases int
	if err := l.pool.QueryRow(ctx, "select count(*) from leasehold.lease").Scan(&leases); err != nil || leases > 0 {
		wrong = append(wrong, fmt.Sprintf("%d leases are left: %v", leases, err))
	}
	return wrong
}

// stopAll stops the workers and looks for what they left in PostgreSQL.
func (l *lab) stopAll(ctx context.Context) []string {
	var wrong []string
	for _, w := range l.workers {
		began := time.Now()
		if err := w.stop(ctx); err != nil {
			wrong = append(wrong, err.Error())
		}
		if took := time.Since(began); took > stopsIn {
			wrong = append(wrong, fmt.Sprintf("%s took %s to stop", w.name, took))
		}
	}
	l.pool.Reset()
	var others, locks int
	err := persist(ctx, func(ctx context.Context) error {
		err := l.pool.QueryRow(ctx, `
			select (select count(*) from pg_stat_activity
			         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'),
			       (select count(*) from pg_locks where locktype = 'advisory')`).Scan(&others, &locks)
		if err == nil && others+locks > 0 {
			err = fmt.Errorf("%d connections and %d advisory locks are left", others, locks)
		}
		return err
	})
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// proven is what the ledger shows to be broken.
func (l *lab) proven(ctx context.Context) []string {
	violations, err := proof.Check(ctx, l.pool)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	for _, violation := range violations {
		wrong = append(wrong, violation.String())
	}
	return wrong
}

// unexplained are the refusals of the witness that no cut of a node explains.
func unexplained(refusals []line, schedule []*fault) []string {
	var wrong []string
refusals:
	for _, r := range refusals {
		for _, f := range schedule {
			if f.node == r.node && !f.began.IsZero() && r.at.After(f.began) && r.at.Before(f.lastedTo.Add(sweptIn)) {
				continue refusals
			}
		}
		wrong = append(wrong, fmt.Sprintf("job %s wrote in epoch %d on %s at %s, after a later epoch", r.job, r.epoch, r.node, r.at.Format("15:04:05.000")))
	}
	return wrong
}
