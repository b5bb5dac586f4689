package leasestore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const recoveredLeasesSQL = `
select` + leaseColumns + `
  from leasehold.lease l
  left join leasehold.runtime_node n on n.id = l.node_id
 where l.job_id = any(@jobs::uuid[]) and l.request_id = @request_id and l.process = @process`

const recoveredJobsSQL = `
select` + jobColumns + `
  from leasehold.job j
 where j.id = any(@jobs::uuid[])`

// recovered reads what was taken over, once that is known to be committed.
func (s *Store) recovered(ctx context.Context, rows []recoveredRow, r RecoverRequest, sent time.Time) ([]Recovered, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]uuid.UUID, len(rows))
	for i, row := range rows {
		ids[i] = row.JobID
	}
	leases, err := all[Lease](ctx, s.db, recoveredLeasesSQL, pgx.StrictNamedArgs{
		"jobs": ids, "request_id": r.RequestID, "process": r.Holder.Process,
	})
	if err != nil {
		return nil, wrap(err, "recover", "batch")
	}
	jobs, err := all[Job](ctx, s.db, recoveredJobsSQL, pgx.StrictNamedArgs{"jobs": ids})
	if err != nil {
		return nil, wrap(err, "recover", "batch")
	}
	leaseOf, jobOf := map[uuid.UUID]Lease{}, map[uuid.UUID]Job{}
	for _, lease := range leases {
		leaseOf[lease.JobID] = lease.since(sent)
	}
	for _, job := range jobs {
		jobOf[job.ID] = job
	}
	answer := make([]Recovered, 0, len(rows))
	for _, row := range rows {
		lease, live := leaseOf[row.JobID]
		if live || row.GivenUp {
			answer = append(answer, Recovered{Lease: lease, Job: jobOf[row.JobID], GivenUp: row.GivenUp})
		}
	}
	return answer, nil
}
