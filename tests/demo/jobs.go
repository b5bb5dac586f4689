package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// result is a job that has ended, and what is not as expected about it.
type result struct {
	what    string
	job     leasestore.Job
	ledger  []leasestore.Entry
	problem string
}

// runJobs runs all jobs of the demonstration and judges their outcomes.
func (l *lab) runJobs(ctx context.Context, out io.Writer) ([]result, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	steps := []struct {
		what string
		run  func(context.Context) ([]result, error)
	}{
		{"Counting the words of LICENSE in a container, started by temporal workflow start …", l.countWords},
		{"Asking the Web UI for its health …", l.heartbeat},
		{"Running a program that exits with code 3 …", l.failing},
		{"Running two jobs of one definition that must not overlap …", l.exclusive},
	}
	var results []result
	for _, step := range steps {
		fmt.Fprintln(out, step.what)
		more, err := step.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSuffix(step.what, " …"), err)
		}
		results = append(results, more...)
	}
	return results, nil
}

// countWords starts RunJob without any command of ours.
func (l *lab) countWords(ctx context.Context) ([]result, error) {
	text, err := readUpwards("LICENSE")
	if err != nil {
		return nil, err
	}
	const image = "leasehold-demo/words:1"
	if err := makeImage(ctx, l.env["DOCKER_HOST"], "busybox:1", image, "text/LICENSE", text); err != nil {
		return nil, err
	}
	input := fmt.Sprintf(`{"kind": "CONTAINER", "container": {"image": %q, "command": ["sh", "-c", "wc -w < /text/LICENSE"], `+
		`"network": "none", "timeout": "1m"}}`, image)
	answer, code, err := l.temporal(ctx, "workflow", "start", "--type", "RunJob", "--task-queue", "leasehold",
		"--workflow-id", "demo-words", "--input", input)
	if err := went("temporal workflow start", answer, code, err); err != nil {
		return nil, err
	}
	r, err := l.outcome(ctx, "words of LICENSE", "demo-words")
	if want := strconv.Itoa(len(strings.Fields(string(text)))); strings.TrimSpace(r.job.LogTail) != want {
		r.problem = fmt.Sprintf("it counted %q, and Go counts %s", strings.TrimSpace(r.job.LogTail), want)
	}
	r.what += " = " + strings.TrimSpace(r.job.LogTail)
	r.expect(leasestore.Completed, 0)
	return []result{r}, err
}

func (l *lab) heartbeat(ctx context.Context) ([]result, error) {
	answer, code, err := l.leasehold(ctx, "", "run", "--name", "demo-heartbeat", "--heartbeat", l.env["TEMPORAL_UI_URL"])
	if err := went("leasehold run", answer, code, err); err != nil {
		return nil, err
	}
	r, err := l.outcome(ctx, "GET Web UI", "demo-heartbeat")
	r.expect(leasestore.Completed, -1)
	return []result{r}, err
}

func (l *lab) failing(ctx context.Context) ([]result, error) {
	answer, code, err := l.leasehold(ctx, "", "run", "--name", "demo-fails", "--image", "busybox:1", "--network", "none",
		"--", "sh", "-c", "echo 'the ledger does not balance' >&2; exit 3")
	if err != nil {
		return nil, err
	}
	r, err := l.outcome(ctx, "exits with 3", "demo-fails")
	if code != 1 {
		r.problem = fmt.Sprintf("leasehold run exited with %d and not 1: %s", code, answer)
	}
	r.expect(leasestore.Failed, 3)
	return []result{r}, err
}

// exclusive starts two jobs at once of a definition that lets one run.
func (l *lab) exclusive(ctx context.Context) ([]result, error) {
	definition := `
definition: demo-exclusive
kind: CONTAINER
container: {image: "busybox:1", command: [sleep, "1"], network: none}
max_running: 1
`
	answer, code, err := l.leasehold(ctx, definition, "definitions", "apply", "-f", "-")
	if err := went("leasehold definitions apply", answer, code, err); err != nil {
		return nil, err
	}
	names := []string{"demo-exclusive-1", "demo-exclusive-2"}
	for _, name := range names {
		answer, code, err := l.leasehold(ctx, "", "run", "--definition", "demo-exclusive", "--name", name, "--detach")
		if err := went("leasehold run --detach", answer, code, err); err != nil {
			return nil, err
		}
	}
	var results []result
	for i, name := range names {
		r, err := l.outcome(ctx, fmt.Sprintf("alone, %d of 2", i+1), name)
		if err != nil {
			return nil, err
		}
		r.expect(leasestore.Completed, 0)
		results = append(results, r)
	}
	if overlap(results[0].ledger, results[1].ledger) {
		results[1].problem = "it overlapped the other one"
	}
	return results, nil
}

// went makes an error of a command that did not go well.
func went(what, answer string, code int, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if code != 0 {
		return fmt.Errorf("%s exited with %d: %s", what, code, answer)
	}
	return nil
}

// outcome waits for the end of a workflow's job.
func (l *lab) outcome(ctx context.Context, what, workflow string) (result, error) {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		jobs, err := l.store.Jobs(ctx, leasestore.JobFilter{WorkflowID: workflow, Limit: 1})
		if err == nil && len(jobs) == 1 && jobs[0].Status.Ended() {
			ledger, err := l.store.Ledger(ctx, jobs[0].ID)
			return result{what: what, job: jobs[0], ledger: ledger}, err
		}
		select {
		case <-ctx.Done():
			return result{what: what}, fmt.Errorf("job of workflow %s has not ended: %w", workflow, ctx.Err())
		case <-l.process.Done():
			return result{what: what}, l.process.Err()
		case <-ticker.C:
		}
	}
}

// readUpwards reads a file of the repository, wherever in it we were started.
func readUpwards(name string) ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil || dir == filepath.Dir(dir) {
			return text, err
		}
		dir = filepath.Dir(dir)
	}
}
