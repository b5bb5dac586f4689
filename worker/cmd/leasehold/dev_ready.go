package main

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/leasehold/leasehold/worker"
)

// polled waits until the worker polls its task queue: what dev invites to try
// works then. The error is that of ctx, or why Temporal cannot be asked.
func polled(ctx context.Context, config worker.Config) error {
	temporal, err := worker.Dial(ctx, config)
	if err != nil {
		return err
	}
	defer temporal.Close()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		queue, err := temporal.DescribeTaskQueue(ctx, config.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err == nil && len(queue.GetPollers()) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}
