package faults_test

import (
	"os"
	"testing"

	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, testenv.NoLeaks())) }
