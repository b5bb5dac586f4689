package workflows_test

import (
	"path/filepath"
	"testing"

	sdkworker "go.temporal.io/sdk/worker"

	"github.com/leasehold/leasehold/workflows"
)

// TestT13_StoredHistoriesReplay catches a change of workflow code that would
// break workflows which run across an update: a command more, less or in
// another order. The histories were recorded on a real server; tests/record_test.go
// says how.
func TestT13_StoredHistoriesReplay(t *testing.T) {
	t.Parallel()
	stored, err := filepath.Glob("testdata/*.json")
	if err != nil || len(stored) < 8 {
		t.Fatalf("found %d stored histories: %v", len(stored), err)
	}
	for _, file := range stored {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			replayer := sdkworker.NewWorkflowReplayer()
			replayer.RegisterWorkflow(workflows.RunJob)
			if err := replayer.ReplayWorkflowHistoryFromJSONFile(nil, file); err != nil {
				t.Error(err)
			}
		})
	}
}
