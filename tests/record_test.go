package tests

import (
	"os"
	"path/filepath"
	"strings"

	"go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// record stores a workflow's history where LEASEHOLD_RECORD_HISTORIES says, as
// the replay tests of package workflows read it:
//
//	LEASEHOLD_RECORD_HISTORIES=$PWD/workflows/testdata go test ./tests -run 'TestAContainer|…'
//
// Record once for each released version, and keep the older files.
func (f *fleet) record(workflowID, runID string) {
	f.t.Helper()
	dir := os.Getenv("LEASEHOLD_RECORD_HISTORIES")
	if dir == "" {
		return
	}
	var recorded history.History
	events := f.temporal.Client.GetWorkflowHistory(f.t.Context(), workflowID, runID, false, 0)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			f.t.Fatal(err)
		}
		recorded.Events = append(recorded.Events, event)
	}
	encoded, err := protojson.MarshalOptions{Indent: " "}.Marshal(&recorded)
	if err != nil {
		f.t.Fatal(err)
	}
	name := strings.NewReplacer("/", "-", " ", "-").Replace(workflowID) + ".json"
	if err := os.WriteFile(filepath.Join(dir, name), encoded, 0o600); err != nil {
		f.t.Fatal(err)
	}
}
