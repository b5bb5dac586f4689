package leasestore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const enterEraSQL = `
select leasehold.enter_era(@forced) as era`

// EnterEra raises the era if the database's history of commits is another than
// the one that the era began in: after a promotion, a point-in-time recovery or
// a restore into another cluster. It returns the era. However many call it,
// the era is raised once per promotion.
//
// Claims and recoveries do the same by themselves, and so does every new
// connection of a pool that was prepared by [Configure]; so a failover hook may
// call it, and need not. An era that is raised ends all leases (unless
// [Store.SetQuorum] vouches for promotions), and until a lease duration has
// passed claims are refused as [NewEra] and recoveries find nothing.
func (s *Store) EnterEra(ctx context.Context) (int64, error) { return s.era(ctx, false) }

// RaiseEra begins a new era unconditionally, and ends all leases even if
// [Store.SetQuorum] vouches for promotions: for an operator who knows that
// commits were lost where PostgreSQL does not tell, such as after restoring a
// backup into the same cluster.
func (s *Store) RaiseEra(ctx context.Context) (int64, error) { return s.era(ctx, true) }

func (s *Store) era(ctx context.Context, forced bool) (int64, error) {
	row, _, err := one[struct{ Era int64 }](ctx, s.db, enterEraSQL, pgx.StrictNamedArgs{"forced": forced})
	return row.Era, wrap(err, "raise", "era")
}

const setQuorumSQL = `
update leasehold.setting
   set quorum = @quorum
returning quorum`

// SetQuorum stores the operator's word that a promotion loses no commit:
// synchronous_commit is on, synchronous_standby_names asks for a quorum, and
// only a member of it is promoted. Leases then live through a promotion. If the
// word is wrong, old authorities live again as well.
func (s *Store) SetQuorum(ctx context.Context, vouched bool) error {
	_, _, err := one[struct{ Quorum bool }](ctx, s.db, setQuorumSQL, pgx.StrictNamedArgs{"quorum": vouched})
	return wrap(err, "vouch for promotions", fmt.Sprint(vouched))
}
