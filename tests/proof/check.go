package proof

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
)

// Violation is a promise that the ledger and the rows show to be broken.
type Violation struct {
	Rule   Rule
	Job    uuid.UUID
	Entry  int64 // of the ledger; 0 if it is the rows that are wrong
	Detail string
}

func (v Violation) String() string {
	text := fmt.Sprintf("%s: job %s", v.Rule, v.Job)
	if v.Entry != 0 {
		text += fmt.Sprintf(", entry %d", v.Entry)
	}
	return text + ": " + v.Detail
}

// Refusal is an ending that a caller saw refused, so that the ledger must have
// it too [L21].
type Refusal struct {
	Job     uuid.UUID
	Epoch   int64
	Process uuid.UUID
	Turn    int64
}

// Check reads the ledger and the rows in one snapshot and returns every promise
// that they show to be broken: what [leasestore.Store.Verify] finds, and what
// takes the turns, the ends and the rows to see. It takes no lock and changes
// nothing, so it can run beside the work. Refusals are what callers know and the
// rows cannot.
//
// It cannot see renewals, which are not in the ledger: that no renewal revived a
// lease shows only where somebody else owned the job by then.
func Check(ctx context.Context, pool *pgxpool.Pool, refusals ...Refusal) ([]Violation, error) {
	var seen snapshot
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) (err error) {
			seen, err = read(ctx, tx)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return seen.violations(refusals), nil
}

// verified is what the store itself finds.
func verified(ctx context.Context, tx pgx.Tx) ([]Violation, error) {
	verification, err := leasestore.New(tx).Verify(ctx)
	found := make([]Violation, 0, len(verification.Violations))
	for _, v := range verification.Violations {
		detail := fmt.Sprintf("%s: %s at epoch %d after %s", v.Rule, v.Event, v.Epoch, v.Previous)
		found = append(found, Violation{Rule: Verified, Job: v.JobID, Entry: v.Entry, Detail: detail})
	}
	return found, err
}

// entry is a row of the ledger.
type entry struct {
	ID      int64
	JobID   uuid.UUID
	Epoch   int64
	Event   string
	At      time.Time
	Until   *time.Time
	Process *uuid.UUID
	Turn    int64
	Request *uuid.UUID
	Token   *uuid.UUID
	Outcome string
}

// row is what is stored of a job and its lease. The lease's fields are nil if
// there is none.
type row struct {
	ID          uuid.UUID
	Definition  string
	Status      string
	Epoch       int64
	Attempt     int64
	MaxAttempts int64
	Recoveries  int64
	EndedAt     *time.Time
	MaxRunning  int64 // of the definition, 0 if none or changed since
	LeaseEpoch  *int64
	Process     *uuid.UUID
	Turn        *int64
	GrantedAt   *time.Time
	ExpiresAt   *time.Time
}

// snapshot is all that a check looks at.
type snapshot struct {
	jobs     []row
	ledger   map[uuid.UUID][]entry
	verified []Violation
}

const ledgerSQL = `
select id, job_id, epoch, event, at, until, process, turn, request_id as request, token, outcome
  from leasehold.ledger
 order by id`

const rowsSQL = `
select j.id, j.definition, j.status, j.epoch, j.attempt, j.max_attempts, j.recoveries, j.ended_at,
       case when d.generation = 1 then coalesce(d.max_running, 0) else 0 end as max_running,
       l.epoch as lease_epoch, l.process, l.turn, l.granted_at, l.expires_at
  from leasehold.job j
  join leasehold.definition d on d.name = j.definition
  left join leasehold.lease l on l.job_id = j.id
 order by j.id`

func read(ctx context.Context, tx pgx.Tx) (snapshot, error) {
	seen := snapshot{ledger: map[uuid.UUID][]entry{}}
	rows, err := tx.Query(ctx, ledgerSQL)
	if err != nil {
		return seen, err
	}
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByName[entry])
	if err != nil {
		return seen, err
	}
	for _, e := range entries {
		seen.ledger[e.JobID] = append(seen.ledger[e.JobID], e)
	}
	if rows, err = tx.Query(ctx, rowsSQL); err != nil {
		return seen, err
	}
	if seen.jobs, err = pgx.CollectRows(rows, pgx.RowToStructByName[row]); err != nil {
		return seen, err
	}
	seen.verified, err = verified(ctx, tx)
	return seen, err
}

func (s snapshot) violations(refusals []Refusal) []Violation {
	found := slices.Clone(s.verified)
	tokens, stored := map[uuid.UUID]bool{}, map[uuid.UUID]bool{}
	for _, job := range s.jobs {
		stored[job.ID] = true
		walk := &walk{job: job, tokens: tokens}
		for _, e := range s.ledger[job.ID] {
			walk.step(e)
		}
		walk.compare()
		found = append(found, walk.found...)
	}
	for id, entries := range s.ledger {
		// An ending may be refused while its job is pruned.
		if !stored[id] && slices.ContainsFunc(entries, func(e entry) bool { return e.Event != "REFUSED" }) {
			found = append(found, Violation{Rule: RowsAgree, Job: id, Detail: "the ledger knows it and there is no such job"})
		}
	}
	found = append(found, s.limits()...)
	return append(found, s.refused(refusals)...)
}
