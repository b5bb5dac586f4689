package dev_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/worker/dev"
)

func startPostgres(t *testing.T, dir string) *dev.Postgres {
	t.Helper()
	return started[*dev.Postgres](t)(dev.StartPostgres(t.Context(),
		dev.PostgresOptions{Dir: dir, Database: "leasehold", Settings: map[string]string{"fsync": "off"}}))
}

func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	check(t, err)
	defer conn.Close(t.Context())
	var answer string
	check(t, conn.QueryRow(t.Context(), sql).Scan(&answer))
	return answer
}

func TestPostgresFindsItsDataAgain(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	first := startPostgres(t, dir)
	conn, err := pgx.Connect(t.Context(), first.URL())
	check(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "create table kept as select 'here' as word")
	check(t, err)
	check(t, first.Stop(t.Context()))
	check(t, first.Err())

	second := startPostgres(t, dir)
	if got := query(t, second.URL(), "select word from kept"); got != "here" {
		t.Errorf("got %q after a stop and a start", got)
	}
	check(t, second.Kill())
	check(t, second.Restart(t.Context()))
	if got := query(t, second.URL(), "select word from kept"); got != "here" {
		t.Errorf("got %q after a crash and a restart", got)
	}
}

func TestTwoPostgresStandSideBySide(t *testing.T) {
	t.Parallel()
	one, two := startPostgres(t, openDir(t)), startPostgres(t, openDir(t))
	if a, b := query(t, one.URL(), "show data_directory"), query(t, two.URL(), "show data_directory"); a == b {
		t.Errorf("both use %s", a)
	}
}

func TestASecondPostgresOnTheSameDataIsRefused(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	first := startPostgres(t, dir)
	second, err := dev.StartPostgres(t.Context(), dev.PostgresOptions{Dir: dir})
	if err == nil {
		t.Fatalf("it runs as process %d", second.PID())
	}
	if want := fmt.Sprintf("process %d serves", first.PID()); !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want %q in it", err, want)
	}
}

// The fault that it catches: leaving the mark to PostgreSQL, which believes any
// live process of its account.
func TestAStaleMarkDoesNotBlockPostgres(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	other := startPostgres(t, openDir(t))
	first := startPostgres(t, dir)
	mark := filepath.Join(dir, "data", "postmaster.pid")
	text, err := os.ReadFile(mark)
	check(t, err)
	check(t, first.Stop(t.Context()))
	_, rest, _ := strings.Cut(string(text), "\n")
	write(t, mark, fmt.Sprintf("%d\n%s", other.PID(), rest)) // alive, but not on this data
	startPostgres(t, dir)
}

func TestPostgresReportsASettingThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	check(t, startPostgres(t, dir).Stop(t.Context())) // or skip
	_, err := dev.StartPostgres(t.Context(), dev.PostgresOptions{Dir: dir, Settings: map[string]string{"no_such": "thing"}})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such"`) {
		t.Errorf("got %v", err)
	}
}
