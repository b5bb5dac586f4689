package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/sethvargo/go-envconfig"
)

// An installation is the folder of leasehold dev: its data, its logs, and the
// file that tells other commands where the parts listen.
type installation struct {
	dir  string
	lock *os.File
}

const (
	envFile  = "leasehold.env"
	lockFile = "leasehold.lock"
)

// defaultDir is where leasehold dev keeps its data. PostgreSQL does not run as
// root and could not enter root's home, so root's data is in /var/lib.
func defaultDir(env envconfig.Lookuper) string {
	if base, ok := env.Lookup("XDG_DATA_HOME"); ok && filepath.IsAbs(base) {
		return filepath.Join(base, "leasehold", "dev")
	}
	home, _ := env.Lookup("HOME")
	switch {
	case os.Geteuid() == 0:
		return "/var/lib/leasehold/dev"
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "leasehold", "dev")
	}
	return filepath.Join(home, ".local", "share", "leasehold", "dev")
}

// openInstallation makes the folder if it is not there and takes it for this
// process. The kernel gives it back, however the process ends.
func openInstallation(dir string) (*installation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, &refusedError{Err: err}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &refusedError{Err: err}
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, &refusedError{Err: err}
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &refusedError{Err: fmt.Errorf(
				"another leasehold dev runs in %s: use it, stop it with Ctrl-C, or give this one another --dir", dir)}
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return &installation{dir: dir, lock: lock}, nil
}

// close gives the folder back. What the env file said is true no longer.
func (i *installation) close() {
	_ = os.Remove(i.path(envFile)) // it may never have been written
	// Closing would not be enough: a process that is being started at this
	// moment has the file open too.
	_ = syscall.Flock(int(i.lock.Fd()), syscall.LOCK_UN)
	i.lock.Close()
}

func (i *installation) path(elem ...string) string {
	return filepath.Join(append([]string{i.dir}, elem...)...)
}

// writeEnv stores the addresses, in a form that a shell can read too.
func (i *installation) writeEnv(env map[string]string) error {
	var text strings.Builder
	text.WriteString("# Where the parts of the running leasehold dev listen. In a shell: set -a; . ./" + envFile + "\n")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&text, "%s=%s\n", name, shellQuote(env[name]))
	}
	next := i.path(envFile + ".next")
	if err := os.WriteFile(next, []byte(text.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(next, i.path(envFile))
}

func shellQuote(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }

// runningDev returns what the env file in dir says, if a leasehold dev runs
// there now.
func runningDev(dir string) (map[string]string, bool) {
	lock, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, false
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return nil, false // nobody has it; closing gives it back
	}
	text, err := os.ReadFile(filepath.Join(dir, envFile))
	if err != nil {
		return nil, false
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.HasPrefix(name, "#") {
			found[name] = strings.ReplaceAll(strings.Trim(value, "'"), `'\''`, "'")
		}
	}
	return found, true
}
