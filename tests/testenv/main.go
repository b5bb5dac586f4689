package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/worker/dev"
)

// startWithin bounds the start of one service on a busy machine.
const startWithin = 90 * time.Second

// process is what the tests of this process share. A test process has exactly
// one environment, which TestMain and the tests cannot hand to each other.
var process environment

type environment struct {
	dir string // of everything that is started; empty outside Main

	postgres shared[*database]
	temporal shared[temporalServer]
	docker   shared[string]

	mu    sync.Mutex
	stops []func(context.Context) error
}

// Option changes what [Main] does.
type Option func(*settings)

type settings struct {
	leaks    bool
	leakOpts []goleak.Option
}

// NoLeaks makes Main fail the tests if goroutines are left when they are over
// and all services have stopped.
func NoLeaks(opts ...goleak.Option) Option {
	return func(s *settings) { s.leaks, s.leakOpts = true, opts }
}

// Main runs the tests of a package, stops whatever was started for them, and
// returns the exit code for os.Exit.
func Main(m *testing.M, opts ...Option) int {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	dir, err := os.MkdirTemp("", "leasehold-test-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // PostgreSQL passes through under its own account
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		return 1
	}
	process.dir = dir
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = errors.Join(process.stop(ctx), os.RemoveAll(dir))
	if set.leaks && code == 0 {
		err = errors.Join(err, goleak.Find(set.leakOpts...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		return max(code, 1)
	}
	return code
}

// atEnd registers what is to be done when the tests are over, in reverse order.
func (e *environment) atEnd(stop func(context.Context) error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stops = append(e.stops, stop)
}

func (e *environment) stop(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	for _, stop := range slices.Backward(e.stops) {
		err = errors.Join(err, stop(ctx))
	}
	return err
}

// A shared service is started by the first test that asks, and only then. The
// others get the same service, or the same error.
type shared[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (s *shared[T]) get(t testing.TB, start func(context.Context) (T, error)) T {
	t.Helper()
	mustBeInMain(t)
	s.once.Do(func() {
		ctx, cancel := starting(t)
		defer cancel()
		s.value, s.err = start(ctx)
	})
	need(t, s.err)
	return s.value
}

func mustBeInMain(t testing.TB) {
	t.Helper()
	if process.dir == "" {
		t.Fatal("the package has no func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }")
	}
}

// starting returns a context for a start or a clean-up: it is bounded, and it
// does not end with the test, because others wait for the same service.
func starting(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), startWithin)
}

// need skips the test if err says that something is not installed, or fails it
// for any other error, and for every error in CI.
func need(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if missing, ok := errors.AsType[*dev.MissingError](err); ok && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	t.Fatal(err)
}

// newDir returns a folder that every account can reach. It is removed when the
// test ends.
func newDir(t testing.TB, name string) string {
	t.Helper()
	mustBeInMain(t)
	dir, err := os.MkdirTemp(process.dir, name+"-") //nolint:usetesting // t.TempDir is closed to other accounts
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// stopAfter stops a service when the test ends.
func stopAfter(t testing.TB, stop func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := starting(t)
		defer cancel()
		if err := stop(ctx); err != nil {
			t.Error(err)
		}
	})
}
