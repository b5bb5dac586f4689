package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

func (d *doctor) checkDatabase(ctx context.Context) (string, error) {
	pool, err := d.c.openPool(ctx)
	if err != nil {
		return "", err
	}
	d.pool = pool
	var version, database string
	var standby bool
	err = pool.QueryRow(ctx, `select current_setting('server_version'), current_database(), pg_is_in_recovery()`).
		Scan(&version, &database, &standby)
	config := pool.Config().ConnConfig
	where := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	switch {
	case err != nil:
		return "", err
	case standby:
		return "", fmt.Errorf("PostgreSQL at %s is a standby: name the primary in DATABASE_URL, or several hosts "+
			"with target_session_attrs=read-write", where)
	}
	return fmt.Sprintf("PostgreSQL %s at %s, database %s", version, where, database), nil
}

// checkTransactions looks at what a session begins with: claims refuse to
// decide under another isolation than read committed.
func (d *doctor) checkTransactions(ctx context.Context) (string, error) {
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	var isolation, readOnly, user string
	var pid uint32
	err = conn.QueryRow(ctx, `select current_setting('default_transaction_isolation'),
	       current_setting('default_transaction_read_only'), current_user, pg_backend_pid()`).
		Scan(&isolation, &readOnly, &user, &pid)
	switch {
	case err != nil:
		return "", err
	case isolation != "read committed":
		return "", fmt.Errorf("transactions are %s by default, and claims need read committed: "+
			"alter role %q set default_transaction_isolation = 'read committed'", isolation, user)
	case readOnly == "on":
		return "", fmt.Errorf("transactions are read-only by default: alter role %q set default_transaction_read_only = off", user)
	}
	// A pooler tells its clients process numbers of its own.
	if pid != conn.Conn().PgConn().PID() {
		return "read committed, through a pooler: workers may, leasehold migrate and bench need a direct connection", nil
	}
	return "read committed, on a direct connection", nil
}

// checkDurability looks for settings under which PostgreSQL forgets leases
// that it has granted, so that two may have one after a crash.
func (d *doctor) checkDurability(ctx context.Context) (string, error) {
	var fsync, commit, standbys string
	err := d.pool.QueryRow(ctx, `select current_setting('fsync'), current_setting('synchronous_commit'),
	       current_setting('synchronous_standby_names')`).Scan(&fsync, &commit, &standbys)
	switch {
	case err != nil:
		return "", err
	case fsync == "off":
		return "", errors.New("fsync is off: a crash may lose leases, or the whole database: set fsync = on")
	case commit == "off":
		return "", errors.New("synchronous_commit is off: a crash may lose the last leases: set synchronous_commit = on")
	case standbys == "":
		return "commits are on disk; there is no synchronous standby, so a failover may lose the last ones", nil
	}
	return fmt.Sprintf("commits are on disk and, by synchronous_commit = %s, on standbys (%s)", commit, standbys), nil
}

// clockSlack is how far two clocks may be apart before people are misled.
const clockSlack = 2 * time.Second

// checkClock compares this machine's clock with the database's, which alone
// decides about leases.
func (d *doctor) checkClock(ctx context.Context) (string, error) {
	var theirs time.Time
	asked := time.Now()
	if err := d.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&theirs); err != nil {
		return "", err
	}
	took := time.Since(asked)
	apart := theirs.Sub(asked.Add(took / 2)).Abs()
	if apart > clockSlack+took {
		return "", fmt.Errorf("this machine's clock and the database's are %s apart: leases are safe, times in logs and lists mislead: "+
			"let both follow a time server", span(apart))
	}
	return fmt.Sprintf("this machine and the database differ by less than %s", span(apart+took)), nil
}

func (d *doctor) checkSchema(ctx context.Context) (string, error) {
	store := leasestore.New(d.pool)
	if err := store.CheckSchema(ctx); err != nil {
		return "", err
	}
	d.store = store
	return fmt.Sprintf("version %d, as this program needs it", leasestore.SchemaVersion()), nil
}

func (d *doctor) checkNodes(ctx context.Context) (string, error) {
	nodes, err := d.store.Nodes(ctx)
	if err != nil {
		return "", err
	}
	var ready, used, capacity int64
	for _, node := range nodes {
		switch {
		case node.State == leasestore.Draining:
			continue
		case node.State == leasestore.Unhealthy:
			return "", fmt.Errorf("node %s does not answer (%s): repair it, or leasehold nodes drain %[1]s", node.ID, or(node.Message, "not probed yet"))
		case node.HeartbeatAt == nil || d.c.now().Sub(*node.HeartbeatAt) > d.config.NodeTTL:
			return "", fmt.Errorf("node %s was last probed %s, so it gets no jobs: see whether a worker runs and the probe schedule is not paused",
				node.ID, d.c.agoPtr(node.HeartbeatAt))
		}
		ready, used, capacity = ready+1, used+node.Used, capacity+node.Capacity
	}
	if ready == 0 {
		return "none takes jobs, so only HEARTBEAT jobs run: leasehold nodes add makes one", nil
	}
	return fmt.Sprintf("%d ready, %d of %d slots used", ready, used, capacity), nil
}

const expiredSQL = `
select count(*) filter (where expires_at >= clock_timestamp()),
       count(*) filter (where expires_at < clock_timestamp()),
       coalesce(extract(epoch from max(clock_timestamp() - expires_at)), 0)::float8
  from leasehold.lease`

// checkLeases looks for leases that ran out so long ago that recovery should
// have taken them over twice.
func (d *doctor) checkLeases(ctx context.Context) (string, error) {
	var live, expired int64
	var oldest float64
	if err := d.pool.QueryRow(ctx, expiredSQL).Scan(&live, &expired, &oldest); err != nil {
		return "", err
	}
	waited := time.Duration(oldest * float64(time.Second))
	if expired > 0 && waited > 2*d.config.RecoveryInterval {
		return "", fmt.Errorf("%d leases ran out and are not recovered, the first one %s ago: leasehold recovery status shows why", expired, span(waited))
	}
	return fmt.Sprintf("%d live, %d that just ran out", live, expired), nil
}
