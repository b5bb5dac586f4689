package main

import (
	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// jobView is a job as JSON shows it: its backoff is a duration string, as in
// the input that the job was made from.
type jobView struct {
	leasestore.Job
	Backoff activities.Duration `json:"backoff"`
}

func viewOf(job leasestore.Job) jobView {
	return jobView{Job: job, Backoff: activities.Duration(job.Retry.Backoff)}
}

func shownJobs(jobs []leasestore.Job) []jobView {
	views := make([]jobView, 0, len(jobs)) // an empty list prints as [], not as null
	for _, job := range jobs {
		views = append(views, viewOf(job))
	}
	return views
}

// definitionView is the same for a definition.
type definitionView struct {
	leasestore.Definition
	Backoff activities.Duration `json:"backoff"`
}

func shownDefinitions(defs []leasestore.Definition) []definitionView {
	views := make([]definitionView, 0, len(defs))
	for _, def := range defs {
		views = append(views, definitionView{def, activities.Duration(def.Retry.Backoff)})
	}
	return views
}
