// Package cli tests the leasehold command as a person has it: as a process,
// with an environment, signals and exit codes.
package cli

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(inFolder(m)) }

// inFolder runs the tests with a folder that every account can reach, as the
// PostgreSQL in it needs, and stops the shared dev when they are over.
func inFolder(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "leasehold-cli-"); err == nil {
		err = os.Chmod(folder, 0o711)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if signal.Ignored(os.Interrupt) { // as behind an & in a script; the commands must not inherit that
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	// The tests wait most of the time, so more of them run than there are cores.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if theDev.process != nil {
		if err := theDev.process.interrupt(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the shared dev:", err)
			code = max(code, 1)
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// folder holds all that this test process makes.
var folder string

// program is the command, built once.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "leasehold")
	args := []string{"build", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/leasehold/leasehold/worker/cmd/leasehold")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return path, nil
})

// theDev is the leasehold dev that most tests share.
var theDev struct {
	once    sync.Once
	home    home
	process *process
	err     error
}

// shared returns the home of a running leasehold dev.
func shared(t *testing.T) home {
	t.Helper()
	theDev.once.Do(func() {
		theDev.home = newHome(t)
		theDev.process, theDev.err = theDev.home.startDev(context.WithoutCancel(t.Context()))
	})
	need(t, theDev.err)
	return theDev.home
}

// need skips the test if the machine lacks something, and fails it in CI or
// for any other error.
func need(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if strings.Contains(err.Error(), " was not found: ") && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// home is an account's environment: where its data is, and what its shell has
// set.
type home struct {
	dir  string
	vars map[string]string
}

func newHome(t *testing.T) home {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts servers")
	}
	dir, err := os.MkdirTemp(folder, "home-") //nolint:usetesting // t.TempDir is closed to PostgreSQL's account
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"HOME": dir, "XDG_DATA_HOME": dir}
	for _, name := range []string{"PATH", "TMPDIR", "LEASEHOLD_TEMPORAL"} {
		if value, ok := os.LookupEnv(name); ok {
			vars[name] = value
		}
	}
	switch docker := os.Getenv("LEASEHOLD_TEST_DOCKER_HOST"); {
	case docker != "":
		vars["DOCKER_HOST"] = docker
	case os.Geteuid() == 0: // a daemon of its own, even if the machine has one
		vars["DOCKER_HOST"] = "unix://" + filepath.Join(dir, "none.sock")
	case os.Getenv("DOCKER_HOST") != "":
		vars["DOCKER_HOST"] = os.Getenv("DOCKER_HOST")
	}
	return home{dir: dir, vars: vars}
}

// with returns the same home with more variables set.
func (h home) with(vars map[string]string) home {
	merged := maps.Clone(h.vars)
	maps.Copy(merged, vars)
	return home{dir: h.dir, vars: merged}
}

const devWithin = 90 * time.Second

// startDev starts leasehold dev and returns when it is up.
func (h home) startDev(ctx context.Context, args ...string) (*process, error) {
	dev, err := h.start(append([]string{"dev"}, args...)...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, devWithin)
	defer cancel()
	if err := dev.await(ctx, &dev.out, "Ctrl-C stops it."); err != nil {
		return nil, err
	}
	return dev, nil
}
