package docker_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// touchIn makes a file in the root of a container, whose init process is pid,
// without asking a daemon.
func touchIn(t *testing.T, pid int, path string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "root", path), nil, 0o600))
}
