package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// cpuClock reads how much processor time a PostgreSQL on this machine and this
// process have used. It is known only where the server's processes are seen in
// /proc.
type cpuClock struct {
	known      bool
	postmaster string
}

// used is processor time in seconds.
type used struct{ server, own float64 }

func (u used) since(before used) used {
	return used{server: u.server - before.server, own: u.own - before.own}
}

// cpuClockOf finds the server's processes by one of its sessions, whose title
// names the temporary database, so that no other process is taken for it.
func cpuClockOf(ctx context.Context, pool *pgxpool.Pool) (cpuClock, error) {
	var pid, database string
	err := pool.QueryRow(ctx, "select pg_backend_pid()::text, current_database()").Scan(&pid, &database)
	if err != nil {
		return cpuClock{}, err
	}
	title, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	if err != nil || !strings.Contains(string(title), database) {
		return cpuClock{}, nil //nolint:nilerr // it runs elsewhere
	}
	session, err := readStat(pid)
	return cpuClock{known: err == nil, postmaster: session.parent}, nil
}

// read adds up what the server's processes use: those that live, and through
// their parent those that have ended.
func (c cpuClock) read() used {
	if !c.known {
		return used{}
	}
	var total used
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return used{} // the pattern is well formed
	}
	for _, dir := range processes {
		stat, err := readStat(filepath.Base(dir))
		switch {
		case err != nil: // it has just ended
		case filepath.Base(dir) == c.postmaster:
			total.server += stat.own + stat.children
		case stat.parent == c.postmaster:
			total.server += stat.own
		}
	}
	if self, err := readStat("self"); err == nil {
		total.own = self.own
	}
	return total
}

type processStat struct {
	parent        string
	own, children float64 // seconds
}

// ticks is Linux's unit of processor time in /proc, in a second.
const ticks = 100

func readStat(pid string) (processStat, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return processStat{}, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name, which may hold anything
	fields := strings.Fields(after)
	if len(fields) < 15 {
		return processStat{}, errors.New("not a Linux /proc")
	}
	sum := func(names ...int) (seconds float64) {
		for _, name := range names {
			value, _ := strconv.ParseFloat(fields[name], 64)
			seconds += value / ticks
		}
		return seconds
	}
	return processStat{parent: fields[1], own: sum(11, 12), children: sum(13, 14)}, nil
}
