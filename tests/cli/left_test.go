package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// processesOf lists the processes that have one of these texts in their
// arguments or work in this folder, as "pid: arguments". Only Linux can tell.
func processesOf(t *testing.T, dir string, marks ...string) []string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	files, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		arguments, err := os.ReadFile(filepath.Join(file, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		line := string(bytes.ReplaceAll(arguments, []byte{0}, []byte{' '}))
		at, _ := os.Readlink(filepath.Join(file, "cwd"))
		mine := strings.HasPrefix(at, dir)
		for _, mark := range marks {
			mine = mine || strings.Contains(line, mark)
		}
		if mine && filepath.Base(file) != strconv.Itoa(os.Getpid()) {
			found = append(found, filepath.Base(file)+": "+line)
		}
	}
	return found
}

// mountsOf lists what is mounted below a folder.
func mountsOf(t *testing.T, dir string) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil // not Linux
	}
	var found []string
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " "+dir) {
			found = append(found, line)
		}
	}
	return found
}

// untilNone asks again for some seconds, until nothing is found.
func untilNone(find func() []string) []string {
	patience := time.After(5 * time.Second)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		found := find()
		if len(found) == 0 {
			return nil
		}
		select {
		case <-again.C:
		case <-patience:
			return found
		}
	}
}
