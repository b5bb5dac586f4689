package dev_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/worker/dev"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == parentArgument {
		beParent(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// started skips the test if something is not installed here, and fails it in
// CI or for any other error.
func started[T interface{ Stop(context.Context) error }](t *testing.T) func(T, error) T {
	t.Helper()
	return func(part T, err error) T {
		t.Helper()
		if missing, ok := errors.AsType[*dev.MissingError](err); ok && os.Getenv("CI") == "" {
			t.Skip(missing)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { check(t, part.Stop(context.WithoutCancel(t.Context()))) })
		return part
	}
}

// openDir returns a new folder that the account of PostgreSQL can reach, which
// that of t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "leasehold-dev-") //nolint:usetesting // see above
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	check(t, os.Chmod(dir, 0o711))
	return dir
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(file), 0o755))
	check(t, os.WriteFile(file, []byte(text), 0o644))
}

// await fails the test if the channel is not closed in time.
func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: not after ten seconds", what)
	}
}
