package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

// recoveries is how often the recovery figure is taken.
const recoveries = 3

// Recovery is how long it takes to take over many expired leases, one batch
// after another on one connection, while the others stay live.
type Recovery struct {
	Leases  int    `json:"leases"`
	Batch   int    `json:"batch"`
	Seconds Spread `json:"seconds"`
}

func (b *bench) figures(ctx context.Context) (err error) {
	large := b.lanes[len(b.lanes)-1]
	if b.report.Recovery, err = b.recovery(ctx, large); err != nil {
		return err
	}
	b.report.Load, err = b.load(ctx, large)
	return err
}

func (b *bench) recovery(ctx context.Context, l *lane) (Recovery, error) {
	b.say("recovering %d expired leases, %d times", b.Recover, recoveries)
	var seconds []float64
	for range recoveries {
		if err := l.expire(ctx, b.Recover); err != nil {
			return Recovery{}, fmt.Errorf("bench: expire: %w", err)
		}
		started, total := time.Now(), 0
		for {
			recovered, err := scan(ctx, l, l.session, place{})
			if err != nil {
				return Recovery{}, fmt.Errorf("bench: recover: %w", err)
			}
			if recovered == 0 {
				break
			}
			total += recovered
		}
		seconds = append(seconds, time.Since(started).Seconds())
		if total != b.Recover {
			return Recovery{}, fmt.Errorf("bench: %d leases had run out, and %d were recovered", b.Recover, total)
		}
	}
	return Recovery{Leases: b.Recover, Batch: batch, Seconds: spreadOf(seconds)}, nil
}

const expireSQL = `
with forgotten as (
    update leasehold.job set recoveries = 0 where id = any(@jobs::uuid[])
)
update leasehold.lease
   set expires_at = clock_timestamp() - interval '1 second', next_check = clock_timestamp() - interval '1 second'
 where job_id = any(@jobs::uuid[])`

// expire lets leases run out, as many as a slice can recover.
func expire(ctx context.Context, l *lane) error { return l.expire(ctx, 5_000) }

func (l *lane) expire(ctx context.Context, most int) error {
	auths := l.expiring(most)
	ids := make([]uuid.UUID, len(auths))
	for i, auth := range auths {
		ids[i] = auth.JobID
	}
	_, err := l.pool.Exec(ctx, expireSQL, pgx.StrictNamedArgs{"jobs": ids})
	return err
}

func recoverBatch(ctx context.Context, l *lane, s session, p place) (int, error) {
	recovered, err := scan(ctx, l, s, p)
	if err == nil && recovered == 0 {
		err = errDry
	}
	return recovered, err
}

// scan looks for expired leases and takes over what it finds.
func scan(ctx context.Context, _ *lane, s session, _ place) (int, error) {
	recovered, err := s.store.Recover(ctx, leasestore.RecoverRequest{
		Limit: batch, Holder: holder, Turn: turn, TTL: ttl, RequestID: uuid.New(),
	})
	return len(recovered), err
}

// emptyScan looks for expired leases where there are none. It counts as a row.
func emptyScan(ctx context.Context, l *lane, s session, p place) (int, error) {
	recovered, err := scan(ctx, l, s, p)
	if err == nil && recovered > 0 {
		err = fmt.Errorf("%d leases have run out", recovered)
	}
	return 1, err
}

// settle recovers what a slice left.
func settle(ctx context.Context, l *lane) error {
	for {
		if recovered, err := scan(ctx, l, l.session, place{}); err != nil || recovered == 0 {
			return err
		}
	}
}
