//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/workflows"
)

// inputs are the jobs of a seed: probes, containers that write their epoch until
// they end, some of them adopted, and some that must not run side by side.
func (l *lab) inputs(seed uint64, random *rand.Rand) map[string]map[string]any {
	jobs := map[string]map[string]any{}
	add := func(kind string, input map[string]any) {
		input["retry"] = map[string]any{"max_attempts": 20, "backoff": "500ms"}
		jobs[fmt.Sprintf("%d-%s-%d", seed, kind, len(jobs))] = input
	}
	writing := func() map[string]any {
		script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo $LEASEHOLD_EPOCH; sleep 0.2; i=$((i+1)); done", 5+random.IntN(25))
		return map[string]any{"kind": "CONTAINER", "container": map[string]any{
			"image": "busybox:1", "command": []string{"sh", "-c", script}, "stop_grace": "1s",
		}}
	}
	for range 4 {
		add("probe", map[string]any{"kind": "HEARTBEAT", "heartbeat": map[string]any{"endpoint": l.endpoint.URL}})
	}
	for range 5 {
		add("write", writing())
	}
	for range 3 {
		input := writing()
		input["on_expiry"] = "adopt"
		add("adopt", input)
	}
	for range 3 {
		input := writing()
		input["container"].(map[string]any)["command"].([]string)[2] = "for i in 1 2 3; do echo $LEASEHOLD_EPOCH; sleep 0.2; done"
		input["definition"], input["max_running"] = fmt.Sprintf("%d-alone", seed), 1
		add("alone", input)
	}
	return jobs
}

// persist does until it works, or ctx ends: Temporal may be down.
func persist(ctx context.Context, do func(context.Context) error) error {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := do(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (l *lab) start(ctx context.Context, id string, input map[string]any) error {
	return persist(ctx, func(ctx context.Context) error {
		_, err := l.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, workflows.RunJobName, input)
		return err
	})
}
