package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// sweep ends what a daemon leaves behind when it is killed: the shims of its
// containers and the programs in them, containerd, and mounts. It is called
// when the daemon is gone.
func (d *Docker) sweep() error {
	var doomed []int
	for _, pid := range processesWith(d.runDir + "/exec/") {
		doomed = append(doomed, descendantsOf(pid, 8)...) // first, or they lose their parent
		doomed = append(doomed, pid)
	}
	for _, pid := range doomed {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	if err := awaitGone(doomed); err != nil {
		return fmt.Errorf("stop dockerd: %w", err)
	}
	for _, point := range mountsBelow(d.dir, d.runDir) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("stop dockerd: unmount %s: %w", point, err)
		}
	}
	return os.RemoveAll(d.runDir)
}

// descendantsOf returns the processes below a process, to a depth.
func descendantsOf(pid, depth int) []int {
	if depth == 0 {
		return nil
	}
	var found []int
	for _, child := range childrenOf(pid) {
		found = append(append(found, descendantsOf(child, depth-1)...), child)
	}
	return found
}

// mountsBelow returns the mount points in the folders, the innermost first.
func mountsBelow(dirs ...string) []string {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var points []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescapeMount.Replace(fields[4])
		if slices.ContainsFunc(dirs, func(dir string) bool {
			return point == dir || strings.HasPrefix(point, dir+"/") // dockerd mounts its data folder on itself
		}) {
			points = append(points, point)
		}
	}
	slices.Reverse(points) // the table is in the order of mounting
	return points
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// removeStaleMarks removes the pidfiles of a daemon that is gone and of its
// containerd. Their numbers may belong to other processes by now, or to a dead
// one that nobody has reaped; dockerd would take both for itself. containerd is
// ended first: its own death signal may still be under way.
func (d *Docker) removeStaleMarks() error {
	if pid := pidIn(d.pidFile()); slices.Contains(processesWith(d.pidFile()), pid) {
		return fmt.Errorf("start Docker: process %d serves %s already: stop it first", pid, d.dir)
	}
	containerd := filepath.Join(d.runDir, "exec", "containerd")
	left := processesWith(filepath.Join(containerd, "containerd.toml"))
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	if err := awaitGone(left); err != nil {
		return fmt.Errorf("start Docker: %w", err)
	}
	for _, file := range []string{d.pidFile(), filepath.Join(containerd, "containerd.pid")} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("start Docker: %w", err)
		}
	}
	return nil
}

// pidIn returns the number in a pidfile, or 0.
func pidIn(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
