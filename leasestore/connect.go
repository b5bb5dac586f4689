package leasestore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Configure prepares the connections of a pool, or a single one, for a store:
//
//   - a commit whose wait for synchronous replication was cancelled is an
//     [*UnknownError]. PostgreSQL itself reports it as done, with a warning only.
//   - each new connection enters the era: see [Store.EnterEra].
//
// It keeps the OnNotice and AfterConnect that are there; set those before. In a
// caller's own transaction ([New] on a pgx.Tx) it is the caller who commits, and
// who must ask [Unreplicated] afterwards.
func Configure(config *pgx.ConnConfig) {
	notice, connected := config.OnNotice, config.AfterConnect
	config.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		OnNotice(conn, n)
		if notice != nil {
			notice(conn, n)
		}
	}
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[unreplicatedKey] = new(atomic.Int64)
		if connected != nil {
			if err := connected(ctx, conn); err != nil {
				return err
			}
		}
		return enterEra(ctx, conn)
	}
}

const unreplicatedKey = "leasehold: commits that were not replicated"

// OnNotice is the handler that [Configure] installs as pgx.ConnConfig.OnNotice:
// call it from a handler that is set later. It counts the commits that
// PostgreSQL reports as done although their wait for a standby was cancelled.
// They are known by the server's routine, because the text is translated.
func OnNotice(conn *pgconn.PgConn, n *pgconn.Notice) {
	if count := unreplicated(conn); count != nil && n.Routine == "SyncRepWaitForLSN" {
		count.Add(1)
	}
}

// Unreplicated is how many commits of this connection may be missing on every
// standby. It is 0 for a connection that was not made with [Configure].
func Unreplicated(conn *pgconn.PgConn) int64 { return unreplicated(conn).Load() }

// unreplicated is set once, before anybody else has the connection, so the
// counter can still be read when the pool has given the connection to another.
func unreplicated(conn *pgconn.PgConn) *atomic.Int64 {
	if count, ok := conn.CustomData()[unreplicatedKey].(*atomic.Int64); ok {
		return count
	}
	return new(atomic.Int64)
}

var errUnreplicated = errors.New("the commit's wait for synchronous replication was cancelled: a failover may lose it")

// doubt watches the connection of some rows: call it before reading them, and
// what it returns after the end of them.
func doubt(rows pgx.Rows) (since func() error) {
	conn := rows.Conn()
	if conn == nil {
		return func() error { return nil }
	}
	count := unreplicated(conn.PgConn())
	before := count.Load()
	return func() error {
		if count.Load() != before {
			return errUnreplicated
		}
		return nil
	}
}

// enterEra is for a new connection, whose database may be a standby, have
// another schema or none, and whose role may be anybody's: claims and
// recoveries will report what is wrong with that.
func enterEra(ctx context.Context, conn *pgconn.PgConn) error {
	_, err := conn.Exec(ctx, `select leasehold.enter_era(false) where not pg_is_in_recovery()`).ReadAll()
	pgErr, refused := errors.AsType[*pgconn.PgError](err)
	if refused && pgErr.SeverityUnlocalized == "ERROR" {
		return nil
	}
	return err
}
