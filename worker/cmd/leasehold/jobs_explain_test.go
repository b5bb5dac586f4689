package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// queued stores a job of a definition and offers it.
func queued(t *testing.T, store *leasestore.Store, definition string) leasestore.Job {
	t.Helper()
	job, err := store.Enqueue(t.Context(), leasestore.EnqueueRequest{JobID: uuid.New(), Definition: definition, WorkflowID: "w-" + definition})
	if err == nil {
		job, err = store.Dispatch(t.Context(), job.ID, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// must is for steps that only prepare what a test is about.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestExplainNamesWhatAClaimWouldRefuse(t *testing.T) {
	t.Parallel()
	store := leasestore.New(testenv.Pool(t))
	def := leasestore.Definition{
		Name: "report", Kind: leasestore.Container, Spec: json.RawMessage(`{"image": "busybox:1"}`), MaxRunning: 1,
	}
	must[leasestore.Definition](t)(store.Apply(t.Context(), def))
	first, second := queued(t, store, "report"), queued(t, store, "report")

	unmet := func(job leasestore.Job) string {
		t.Helper()
		rules := must[[]ruleCheck](t)(explain(t.Context(), store, job, time.Now()))
		for _, rule := range rules {
			if !rule.Met {
				return rule.Why
			}
		}
		return ""
	}
	expect := func(job leasestore.Job, want string) {
		t.Helper()
		if got := unmet(job); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	expect(first, "there is no node: add one with leasehold nodes add")
	must[leasestore.Node](t)(store.RegisterNode(t.Context(), leasestore.Node{ID: "n", Endpoint: "unix:///n", Capacity: 1}))
	expect(first, "node n is UNHEALTHY")
	must[leasestore.Node](t)(store.ReportNode(t.Context(), "n", leasestore.NodeReport{Healthy: true}))
	expect(first, "")
	expect(second, "job "+first.ID.String()+" waits in front of it")
	must[leasestore.Definition](t)(store.SetPaused(t.Context(), "report", true))
	expect(first, "definition report is paused")
	must[leasestore.Definition](t)(store.SetPaused(t.Context(), "report", false))

	must[leasestore.Lease](t)(store.Claim(t.Context(), leasestore.ClaimRequest{
		JobID: first.ID, Generation: 1, DispatchAttempt: 1, Turn: 1, TTL: time.Minute, NodeTTL: time.Minute, RequestID: uuid.New(),
		Holder: leasestore.Holder{Worker: "w", Process: uuid.New()},
	}))
	expect(must[leasestore.Job](t)(store.Job(t.Context(), first.ID)), "the job is RUNNING")
	expect(second, "1 of at most 1 run, such as job "+first.ID.String())
	def.Retry.MaxAttempts = 7
	must[leasestore.Definition](t)(store.Apply(t.Context(), def))
	expect(second, "the job has generation 1, the definition 2")
}

func TestJobsAreShownWithWhoOwnedThem(t *testing.T) {
	t.Parallel()
	url := testenv.Database(t)
	env := map[string]string{"DATABASE_URL": url}
	c := &cli{env: lookup(func(key string) (string, bool) { v, ok := env[key]; return v, ok })}
	store, closeStore, err := c.store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	must[leasestore.Definition](t)(store.Apply(t.Context(), leasestore.Definition{
		Name: "probe", Kind: leasestore.Heartbeat, Spec: json.RawMessage(`{"endpoint": "http://localhost"}`),
	}))
	job := queued(t, store, "probe")
	lease := must[leasestore.Lease](t)(store.Claim(t.Context(), leasestore.ClaimRequest{
		JobID: job.ID, Generation: 1, DispatchAttempt: 1, Turn: 42, TTL: time.Minute, RequestID: uuid.New(),
		Holder: leasestore.Holder{Worker: "alice", Process: uuid.New()},
	}))
	for _, name := range []string{job.ID.String(), "w-probe"} {
		got := call(t, env, "", "jobs", "show", name, "-o", "json")
		var shown shownJob
		if err := json.Unmarshal([]byte(got.out), &shown); err != nil || got.code != 0 {
			t.Fatalf("exit code %d, %q, %v", got.code, got.errOut, err)
		}
		if shown.Job.ID != job.ID || shown.Lease == nil || shown.Lease.Worker != "alice" || shown.Lease.Turn != 42 ||
			len(shown.Ledger) != 1 || shown.Ledger[0].Event != "CLAIMED" {
			t.Errorf("shown: %s", got.out)
		}
	}
	token := must[[]byte](t)(lease.Token.MarshalText())
	for _, args := range [][]string{{"jobs", "show", "w-probe"}, {"jobs", "show", "w-probe", "-o", "json"}, {"jobs", "list"}} {
		got := call(t, env, "", args...)
		if got.code != 0 || !strings.Contains(got.out, job.ID.String()) || strings.Contains(got.out, string(token)) {
			t.Errorf("%v: exit code %d, %s%s", args, got.code, got.out, got.errOut)
		}
	}
}
