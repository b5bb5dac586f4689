package testenv

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/worker/dev"
)

// PgBouncer returns the URL of a database behind a PgBouncer of the test's own,
// in transaction mode with that many connections to the server.
func PgBouncer(t testing.TB, databaseURL string, servers int) string {
	t.Helper()
	dir := newDir(t, "pgbouncer")
	ctx, cancel := starting(t)
	defer cancel()
	through, process, err := startPgBouncer(ctx, dir, databaseURL, servers)
	need(t, err)
	stopAfter(t, process.Stop)
	return through
}

const pgBouncerConfig = `[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 200
server_login_retry = 1
`

func startPgBouncer(ctx context.Context, dir, databaseURL string, servers int) (string, *dev.Process, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer") // not in everybody's PATH
	}
	if err != nil {
		return "", nil, &dev.MissingError{What: "PgBouncer", Cure: "install it (Debian: apt-get install pgbouncer)"}
	}
	to, err := url.Parse(databaseURL)
	if err != nil {
		return "", nil, err
	}
	account, err := nobody()
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	file := filepath.Join(dir, "pgbouncer.ini")
	config := fmt.Sprintf(pgBouncerConfig, to.Hostname(), to.Port(), to.User.Username(), port, servers)
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil { //nolint:gosec // another account reads it
		return "", nil, err
	}
	through := *to
	through.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	process, err := dev.Start(ctx, dev.Command{
		Name: "PgBouncer", Path: program, Args: []string{file}, Dir: dir, LogFile: filepath.Join(dir, "pgbouncer.log"), Account: account,
		Ready: func(ctx context.Context) error {
			config, err := pgx.ParseConfig(through.String())
			if err != nil {
				return err
			}
			config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
			conn, err := pgx.ConnectConfig(ctx, config)
			if err != nil {
				return err
			}
			defer conn.Close(ctx)
			return conn.Ping(ctx)
		},
	})
	return through.String(), process, err
}

// nobody is the account for programs that refuse to run as root; nil, the
// caller's own, if the caller is not root.
func nobody() (*dev.Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	found, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &dev.Account{Name: "nobody", UID: uint32(uid), GID: uint32(gid)}, nil
}
