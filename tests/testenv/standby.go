package testenv

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/worker/dev"
)

// Standby returns a PostgreSQL that follows a primary from [Postgres] by
// streaming replication: it can be read, cut off and promoted.
func Standby(t testing.TB, primary *dev.Postgres) *dev.Postgres {
	t.Helper()
	dir := newDir(t, "standby")
	ctx, cancel := starting(t)
	defer cancel()
	need(t, copyCluster(ctx, primary, dir))
	standby, err := dev.StartPostgres(ctx, dev.PostgresOptions{Dir: dir, Database: "leasehold", Settings: fast})
	need(t, err)
	stopAfter(t, standby.Stop)
	return standby
}

// copyCluster makes a standby's data in dir, as the account that the primary's
// data belongs to.
func copyCluster(ctx context.Context, primary *dev.Postgres, dir string) error {
	data, program, err := programOf(ctx, primary, "pg_basebackup")
	if err != nil {
		return err
	}
	owner, err := os.Stat(data)
	if err != nil {
		return err
	}
	account, ok := owner.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner of a folder is not known here")
	}
	if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
		return err
	}
	backup := exec.CommandContext(ctx, program, "--pgdata="+filepath.Join(dir, "data"), "--write-recovery-conf",
		"--checkpoint=fast", "--wal-method=stream", "--no-sync", "--dbname="+primary.URL())
	backup.Dir = dir
	if os.Geteuid() == 0 {
		backup.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: account.Uid, Gid: account.Gid}}
	}
	out, err := backup.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(strings.TrimSpace(string(out))))
	}
	return nil
}

// programOf returns the data folder of a server and a program of its version.
func programOf(ctx context.Context, server *dev.Postgres, name string) (data, program string, err error) {
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		return "", "", err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "show data_directory").Scan(&data); err != nil {
		return "", "", err
	}
	running, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(server.PID()), "exe"))
	if err == nil {
		program = filepath.Join(filepath.Dir(running), name)
		_, err = os.Stat(program)
	}
	if err != nil {
		return "", "", &dev.MissingError{What: name + " beside the running PostgreSQL", Cure: "install PostgreSQL's client programs"}
	}
	return data, program, nil
}
