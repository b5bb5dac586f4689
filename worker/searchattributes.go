package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/activities"
)

// attributesWithin bounds the wait for new search attributes: servers and
// their caches take some seconds.
const attributesWithin = 20 * time.Second

// EnsureSearchAttributes makes the search attributes of jobs where they are
// missing in the client's namespace, which it names, and returns once they can be used, after
// 20 seconds at the latest. An account that may not make them is told how an
// operator does it; jobs run without them.
func EnsureSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	if usable(ctx, c) == nil {
		return nil
	}
	_, err := c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: namespace,
		SearchAttributes: map[string]enumspb.IndexedValueType{
			activities.JobAttributeName:        enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			activities.DefinitionAttributeName: enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			activities.StatusAttributeName:     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
			activities.NodeAttributeName:       enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		},
	})
	if _, there := errors.AsType[*serviceerror.AlreadyExists](err); err != nil && !there {
		return fmt.Errorf("make the search attributes: %w: an operator makes them with temporal operator search-attribute create "+
			"--name %s --type Keyword, and so %s, %s and %s", err, activities.JobAttributeName,
			activities.DefinitionAttributeName, activities.StatusAttributeName, activities.NodeAttributeName)
	}
	ctx, cancel := context.WithTimeout(ctx, attributesWithin)
	defer cancel()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for {
		if err = usable(ctx, c); err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the search attributes were made and cannot be used yet: %w", err)
		}
	}
}

// usable asks as a person would: a server refuses what it does not know.
func usable(ctx context.Context, c client.Client) error {
	_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("%s = 'x' AND %s = 'x' AND %s = 'x' AND %s = 'x'", activities.JobAttributeName,
			activities.DefinitionAttributeName, activities.StatusAttributeName, activities.NodeAttributeName),
	})
	return err
}
