// Package tests holds the tests of the whole: real workers as processes of
// their own, on a real PostgreSQL, a real Temporal server and real Docker
// daemons.
package tests

import (
	"os"
	"testing"

	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
