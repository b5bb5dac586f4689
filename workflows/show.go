package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// Search attributes that RunJob sets, where the namespace has them: all are
// keywords.
var (
	JobAttribute        = temporal.NewSearchAttributeKeyKeyword(activities.JobAttributeName)
	DefinitionAttribute = temporal.NewSearchAttributeKeyKeyword(activities.DefinitionAttributeName)
	StatusAttribute     = temporal.NewSearchAttributeKeyKeyword(activities.StatusAttributeName)
	NodeAttribute       = temporal.NewSearchAttributeKeyKeyword(activities.NodeAttributeName)
)

// tag sets the search attributes to what has changed. It costs an event and a
// write to the server's visibility store, so it is called only when it matters.
func (r *run) tag() {
	result := r.job.Result
	now := tagged{result.Status, result.Node}
	if !r.job.SearchAttributes || now == r.tagged {
		return
	}
	r.tagged = now
	updates := []temporal.SearchAttributeUpdate{
		JobAttribute.ValueSet(result.JobID), DefinitionAttribute.ValueSet(result.Definition),
		StatusAttribute.ValueSet(string(result.Status)),
	}
	if result.Node != "" {
		updates = append(updates, NodeAttribute.ValueSet(result.Node))
	}
	if err := workflow.UpsertTypedSearchAttributes(r.work, updates...); err != nil {
		workflow.GetLogger(r.work).Warn("search attributes were not set", "error", err)
	}
}

// tagged is what the search attributes say that changes.
type tagged struct {
	status leasestore.Status
	node   string
}

// show sets the current details that the Web UI renders as Markdown.
func (r *run) show() {
	job := r.job.Result
	var text strings.Builder
	fmt.Fprintf(&text, "**%s** %s\n\n| | |\n|---|---|\n", job.Status, r.summary)
	row := func(name string, value any) { fmt.Fprintf(&text, "| %s | %v |\n", name, value) }
	row("job", "`"+job.JobID+"`")
	row("definition", fmt.Sprintf("%s, generation %d", job.Definition, r.job.Generation))
	row("attempt", fmt.Sprintf("%d of %d", job.Attempts, r.job.MaxAttempts))
	row("epoch", job.Epoch)
	if job.Node != "" {
		row("node", job.Node)
	}
	if len(job.Container) > 12 {
		row("container", "`"+job.Container[:12]+"`")
	}
	if r.queue != "" {
		row("held on", "`"+r.queue+"`")
	}
	if job.Failure != nil {
		row("failure", fmt.Sprintf("%s %s: %s", job.Failure.Kind, job.Failure.Reason, job.Failure.Message))
	}
	if job.Log != "" {
		fmt.Fprintf(&text, "\n```\n%s```\n", job.Log)
	}
	workflow.SetCurrentDetails(r.work, text.String())
}

// outcome is what an ended job makes of its workflow.
func (r *run) outcome() (JobResult, error) {
	result := r.job.Result
	switch result.Status {
	case leasestore.Failed:
		message := "job failed"
		if result.Failure != nil {
			message = fmt.Sprintf("job failed (%s, %s): %s", result.Failure.Kind, result.Failure.Reason, result.Failure.Message)
		}
		return result, temporal.NewApplicationErrorWithOptions(message, activities.JobFailedError,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{result}})
	case leasestore.Canceled:
		return result, temporal.NewCanceledError(result)
	case leasestore.Pending, leasestore.Queued, leasestore.Running, leasestore.Completed:
	}
	return result, nil
}
