package leasestore

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// ClaimState is what has become of a claim.
type ClaimState string

// The states that Reconcile tells apart.
const (
	ClaimLive    ClaimState = "LIVE"    // exactly this token, generation and process, unexpired
	ClaimExpired ClaimState = "EXPIRED" // still this token, out of time
	ClaimChanged ClaimState = "CHANGED" // another token or process owns the job, or nobody does
	ClaimEnded   ClaimState = "ENDED"   // the job has ended
)

// ClaimReport is Reconcile's answer to one authority.
type ClaimReport struct {
	Authority Authority
	State     ClaimState
	Remaining time.Duration // if live
	Status    Status        // of the job; empty if it is unknown
	Holder    Holder        // who owns it now; zero if nobody does
	Epoch     int64         // of the job now
	// Ours says that this very ownership ended the job or gave it back, as Recorded.
	Ours     bool
	Recorded string
}

// LogValue leaves the token out.
func (r ClaimReport) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("authority", r.Authority), slog.String("state", string(r.State)),
		slog.String("status", string(r.Status)), slog.Int64("epoch", r.Epoch), slog.String("recorded", r.Recorded))
}

const reconcileSQL = `
with asked as (
    select * from unnest(@jobs::uuid[], @tokens::uuid[], @generations::bigint[], @epochs::bigint[],
                         @workers::text[], @processes::uuid[], @turns::bigint[])
         with ordinality as a (job_id, token, generation, epoch, worker, process, turn, place)
)
select a.place, coalesce(j.status, '') as status, coalesce(j.epoch, 0) as epoch,
       coalesce(l.worker, '') as worker, l.process,
       coalesce((l.token, l.generation, l.epoch, l.worker, l.process) =
                (a.token, a.generation, a.epoch, a.worker, a.process), false) as same,
       coalesce(l.expires_at - clock_timestamp(), interval '0') as remaining,
       coalesce((select g.outcome from leasehold.ledger g
                  where g.job_id = a.job_id and g.epoch = a.epoch and g.token = a.token and g.event <> 'REFUSED'
                  order by g.id desc limit 1), '') as recorded
  from asked a
  left join leasehold.job j on j.id = a.job_id
  left join leasehold.lease l on l.job_id = a.job_id
 order by a.place`

type reconcileRow struct {
	Place     int64
	Status    Status
	Epoch     int64
	Worker    string
	Process   *uuid.UUID
	Same      bool
	Remaining time.Duration
	Recorded  string
}

// Reconcile says what has become of claims whose end was not confirmed, in the
// order asked. It only reads: it extends nothing and locks nothing. At most
// 1000 at once.
func (s *Store) Reconcile(ctx context.Context, auths []Authority) ([]ClaimReport, error) {
	if err := validateBatch(auths, time.Second); err != nil || len(auths) == 0 {
		return nil, err
	}
	rows, err := all[reconcileRow](ctx, s.db, reconcileSQL, batchArgs(auths))
	if err != nil {
		return nil, wrapRead(err, "reconcile", "batch")
	}
	reports := make([]ClaimReport, len(rows))
	for i, row := range rows {
		reports[i] = row.report(auths[i])
	}
	return reports, nil
}

func (r reconcileRow) report(auth Authority) ClaimReport {
	report := ClaimReport{
		Authority: auth, Status: r.Status, Epoch: r.Epoch,
		Holder: Holder{Worker: r.Worker}, Ours: r.Recorded != "", Recorded: r.Recorded,
	}
	if r.Process != nil {
		report.Holder.Process = *r.Process
	}
	switch {
	case r.Same && r.Remaining > 0:
		report.State, report.Remaining = ClaimLive, r.Remaining
	case r.Same:
		report.State = ClaimExpired
	case r.Status.Ended():
		report.State = ClaimEnded
	default:
		report.State = ClaimChanged
	}
	return report
}
