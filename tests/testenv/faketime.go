package testenv

import (
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/worker/dev"
)

// FakeTime returns the library that, preloaded into a server, lets a test set
// its clock.
func FakeTime(t testing.TB) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1") // the only error is a bad pattern
	if len(found) == 0 {
		need(t, &dev.MissingError{What: "libfaketime", Cure: "install it (Debian: apt-get install libfaketime)"})
	}
	return found[0]
}

// Dir returns a folder that every account can reach. It is removed when the
// test ends.
func Dir(t testing.TB) string {
	t.Helper()
	return newDir(t, "test")
}
