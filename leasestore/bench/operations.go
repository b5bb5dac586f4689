package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

// operation is what a slice does again and again. call makes one call for one
// connection of a slice and returns how many rows it was good for; before and
// after are not measured. kind and alone are for those that need them.
type operation struct {
	name    string
	workers int // connections at once; 0 is all
	before  func(context.Context, *lane) error
	call    func(context.Context, *lane, session, place) (int, error)
	after   func(context.Context, *lane) error
}

// place is which connection of how many makes a call.
type place struct{ worker, workers int }

// errDry says that a call found nothing more to do: the slice ends early.
var errDry = errors.New("nothing left to do")

// The names of the operations.
const (
	RenewOne       = "renew one"
	RenewBatch     = "renew 100"
	Claim          = "claim"
	Complete       = "complete"
	ClaimOnNode    = "claim on a node"
	CompleteOnNode = "complete on a node"
	Recover        = "recover 100"
	EmptyScan      = "empty recovery scan"
)

// batch is how many leases the batch operations ask for.
const batch = 100

// operations are in the order of a round: what is claimed is then completed.
func operations() []operation {
	return []operation{
		{name: RenewOne, call: renewOne},
		{name: RenewBatch, call: renewBatch},
		{name: Claim, before: queue(leasestore.Heartbeat), call: claim},
		{name: Complete, call: complete, after: requeue},
		{name: ClaimOnNode, before: queue(leasestore.Container), call: claim},
		{name: CompleteOnNode, call: complete, after: requeue},
		{name: Recover, before: expire, call: recoverBatch},
		{name: EmptyScan, workers: 1, before: settle, call: emptyScan},
	}
}

const floorCallSQL = `
update public.floor set n = n + 1 where id = $1`

// floor is the least that a durable change can cost.
func floor(ctx context.Context, l *lane, s session, _ place) (int, error) {
	_, err := s.pool.Exec(ctx, floorCallSQL, rand.IntN(l.bounded(l.floorRows))+1)
	return 1, err
}

func renewOne(ctx context.Context, l *lane, s session, p place) (int, error) {
	own := l.own(p.worker, p.workers)
	_, err := s.store.Renew(ctx, own[rand.IntN(len(own))], ttl)
	return 1, err
}

func renewBatch(ctx context.Context, l *lane, s session, p place) (int, error) {
	own := l.own(p.worker, p.workers)
	size := min(batch, len(own))
	from := rand.IntN(len(own) - size + 1)
	return renewAll(ctx, s, own[from:from+size])
}

func renewAll(ctx context.Context, s session, auths []leasestore.Authority) (int, error) {
	answers, err := s.store.RenewAll(ctx, auths, ttl)
	if err != nil {
		return 0, err
	}
	for _, answer := range answers {
		if !answer.Renewed {
			return 0, fmt.Errorf("lease of job %s was not renewed", answer.Authority.JobID)
		}
	}
	return len(answers), nil
}

const queuedSQL = `
select id from leasehold.job
 where status = 'QUEUED' and kind = @kind
 order by scheduled_at, id
 limit @limit`

// queue finds the jobs that wait to be claimed.
func queue(kind leasestore.Kind) func(context.Context, *lane) error {
	return func(ctx context.Context, l *lane) error {
		rows, err := l.pool.Query(ctx, queuedSQL, pgx.StrictNamedArgs{"kind": kind, "limit": l.bounded(l.queuedOfKind)})
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		l.queued.empty()
		l.queued.put(ids...)
		return err
	}
}

func claim(ctx context.Context, l *lane, s session, _ place) (int, error) {
	id, ok := l.queued.take()
	if !ok {
		return 0, errDry
	}
	lease, err := s.store.Claim(ctx, leasestore.ClaimRequest{
		JobID: id, Generation: 1, DispatchAttempt: 1, Holder: holder, Turn: turn, TTL: ttl,
		RequestID: uuid.New(), NodeTTL: ttl,
	})
	if err != nil {
		return 0, err
	}
	l.claimed.put(lease.Authority)
	l.taken.put(id)
	return 1, nil
}

func complete(ctx context.Context, l *lane, s session, _ place) (int, error) {
	auth, ok := l.claimed.take()
	if !ok {
		return 0, errDry
	}
	_, err := s.store.Complete(ctx, auth, leasestore.Outcome{})
	return 1, err
}

const requeueSQL = `
with freed as (
    delete from leasehold.lease where job_id = any(@jobs::uuid[])
)
update leasehold.job
   set status = 'QUEUED', attempt = 0, started_at = null, ended_at = null
 where id = any(@jobs::uuid[])`

// requeue makes everything that was claimed wait again.
func requeue(ctx context.Context, l *lane) error {
	_, err := l.pool.Exec(ctx, requeueSQL, pgx.StrictNamedArgs{"jobs": l.taken.all()})
	l.claimed.empty()
	l.taken.empty()
	return err
}
