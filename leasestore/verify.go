package leasestore

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Verification is what the ledger proves.
type Verification struct {
	Jobs       int64 `json:"jobs"`
	Ownerships int64 `json:"ownerships"` // claims and recoveries
	// Violations are the first hundred; none proves that no two ownerships of
	// a job overlapped.
	Violations []Violation `json:"violations"`
}

// Violation is an entry of the ledger that contradicts the one before it.
type Violation struct {
	JobID    uuid.UUID `db:"job_id"    json:"job_id"`
	Entry    int64     `db:"entry"     json:"entry"` // its ID in the ledger
	Epoch    int64     `db:"epoch"     json:"epoch"`
	Event    string    `db:"event"     json:"event"`
	Previous string    `db:"previous"  json:"previous"` // the event before it
	Rule     string    `db:"rule"      json:"rule"`     // the rule that it breaks, as a sentence
}

const verifiedSQL = `
select count(distinct job_id) as jobs, count(*) as ownerships
  from leasehold.ledger
 where event in ('CLAIMED', 'RECOVERED')`

// An entry is written while its lease or its job is locked, so the entries of
// one job are in the order of what happened.
const violationsSQL = `
with entry as (
    select id, job_id, epoch, event, at, ran_out_at,
           lag(event) over job as previous, lag(epoch) over job as previous_epoch, lag(at) over job as previous_at
      from leasehold.ledger
     where event not in ('REFUSED', 'TAKEN_OVER')
    window job as (partition by job_id order by id)
), judged as (
    select *, case
           when at < previous_at then 'it happened before its predecessor'
           when event = 'CLAIMED' and previous in ('CLAIMED', 'RECOVERED') then 'the job was claimed while it was owned'
           when event in ('CLAIMED', 'RECOVERED') and epoch <= previous_epoch then 'an epoch was issued again'
           when event = 'RECOVERED' and previous not in ('CLAIMED', 'RECOVERED') then 'a job that nobody owned was recovered'
           when ran_out_at > at then 'a lease was recovered before it had run out'
           when ran_out_at is null and event not in ('CLAIMED', 'RECOVERED') and epoch <> previous_epoch
           then 'an ownership was ended by another'
           end as rule
      from entry
)
select job_id, id as entry, epoch, event, coalesce(previous, '') as previous, rule
  from judged
 where rule is not null
 order by id
 limit 100`

// Verify proves from the ledger that no two ownerships of a job overlap: each
// begins after the one before it was ended by its owner, or had run out. It
// reads the whole ledger. Entries that were pruned prove nothing any more.
func (s *Store) Verify(ctx context.Context) (Verification, error) {
	type totals struct{ Jobs, Ownerships int64 }
	found, err := all[Violation](ctx, s.db, violationsSQL, pgx.StrictNamedArgs{})
	if err != nil {
		return Verification{}, wrapRead(err, "verify", "ledger")
	}
	sum, _, err := one[totals](ctx, s.db, verifiedSQL, pgx.StrictNamedArgs{})
	if err != nil {
		return Verification{}, wrapRead(err, "verify", "ledger")
	}
	return Verification{Jobs: sum.Jobs, Ownerships: sum.Ownerships, Violations: found}, nil
}
