package main

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/worker"
)

// config reads the worker's configuration: the commands that start jobs need
// the same task queue and server.
func (c *cli) config(ctx context.Context) (worker.Config, error) {
	if _, err := c.databaseURL(); err != nil {
		return worker.Config{}, err
	}
	config, err := worker.LoadConfig(ctx, c.environment())
	if err != nil {
		return config, &refusedError{Err: err}
	}
	return config, nil
}

// temporal connects to the Temporal server and checks that its namespace is
// there.
func (c *cli) temporal(ctx context.Context) (client.Client, worker.Config, error) {
	config, err := c.config(ctx)
	if err != nil {
		return nil, config, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	temporal, err := worker.Dial(ctx, config)
	if err != nil {
		return nil, config, &refusedError{Err: err}
	}
	return temporal, config, nil
}

// workflowError words the end of a workflow that left its job open.
func workflowError(err error) error {
	if err == nil {
		return fmt.Errorf("the workflow completed")
	}
	return fmt.Errorf("its workflow ended: %s", rootCause(err))
}
