package leasestore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const pruneSQL = `
select leasehold.forget(@older_than::interval, @limit) as id`

// Prune forgets jobs that ended longer ago than this, oldest first, at most
// limit (1 to 1000) in a call, each together with all that the ledger says of
// it, so what is left proves as much as before. It returns their IDs. A
// forgotten idempotency key makes a new job.
//
// What ended within setting.kept_for (an hour, unless the owner of the schema
// has changed it) stays whatever is asked: a late repetition of an ending is
// confirmed from the ledger.
func (s *Store) Prune(ctx context.Context, olderThan time.Duration, limit int) ([]uuid.UUID, error) {
	switch {
	case olderThan < 0:
		return nil, &InvalidError{Field: "age", Problem: "must not be negative"}
	case limit < 1 || limit > maxBatch:
		return nil, &InvalidError{Field: "limit", Problem: "must be between 1 and 1000"}
	}
	type row struct{ ID uuid.UUID }
	rows, err := all[row](ctx, s.db, pruneSQL, pgx.StrictNamedArgs{"older_than": olderThan, "limit": limit})
	if err != nil {
		return nil, wrap(err, "prune", "jobs")
	}
	ids := make([]uuid.UUID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids, nil
}
