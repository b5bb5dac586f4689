package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore"
)

// ruleCheck is one rule that a job must meet to be claimed.
type ruleCheck struct {
	Rule string `json:"rule"`
	Met  bool   `json:"met"`
	Why  string `json:"why"`
}

func (c *cli) jobsExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain JOB",
		Short: "Say, rule by rule, whether a job could be claimed now",
		Long: `Say, rule by rule, whether a job could be claimed now, as read at this moment:
the claim itself decides.`,
		Example: "  leasehold jobs explain 0b6f7f0e-3f0a-5d0e-8f3e-0d4f5d1c2b3a",
		Args:    oneArg("a job, by its ID or its workflow ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			job, err := findJob(cmd.Context(), store, args[0])
			if err != nil {
				return err
			}
			rules, err := explain(cmd.Context(), store, job, c.now())
			if err != nil {
				return err
			}
			return c.print(rules, func() [][]string {
				rows := [][]string{{"RULE", "MET", "WHY"}}
				for _, rule := range rules {
					rows = append(rows, []string{rule.Rule, map[bool]string{true: "yes", false: "no"}[rule.Met], rule.Why})
				}
				return rows
			})
		},
	}
}

// explain checks the rules of a claim against what is stored now.
func explain(ctx context.Context, store *leasestore.Store, job leasestore.Job, now time.Time) ([]ruleCheck, error) {
	rules := []ruleCheck{{
		Rule: "it is queued", Met: job.Status == leasestore.Queued,
		Why: "the job is " + string(job.Status),
	}}
	def, err := store.Definition(ctx, job.Definition)
	if err != nil {
		return nil, err
	}
	paused := map[bool]string{true: "is paused", false: "is not paused"}[def.Paused]
	rules = append(rules,
		ruleCheck{
			Rule: "its definition has not changed", Met: def.Generation == job.Generation,
			Why: fmt.Sprintf("the job has generation %d, the definition %d", job.Generation, def.Generation),
		},
		ruleCheck{Rule: "its definition is not paused", Met: !def.Paused, Why: "definition " + def.Name + " " + paused},
	)
	limit, err := limitRules(ctx, store, job, def)
	if err != nil {
		return nil, err
	}
	rules = append(rules, limit...)
	if job.Kind == leasestore.Container {
		node, err := nodeRule(ctx, store, job, now)
		if err != nil {
			return nil, err
		}
		rules = append(rules, node)
	}
	return rules, nil
}

func limitRules(ctx context.Context, store *leasestore.Store, job leasestore.Job, def leasestore.Definition) ([]ruleCheck, error) {
	if def.MaxRunning == 0 {
		return []ruleCheck{{Rule: "fewer than max_running run", Met: true, Why: "the definition has no limit"}}, nil
	}
	running, err := store.Jobs(ctx, leasestore.JobFilter{Definition: def.Name, Status: leasestore.Running, Limit: int(min(def.MaxRunning, 1000))})
	if err != nil {
		return nil, err
	}
	limit := ruleCheck{
		Rule: "fewer than max_running run", Met: int64(len(running)) < def.MaxRunning,
		Why: fmt.Sprintf("%d of at most %d run", len(running), def.MaxRunning),
	}
	if !limit.Met {
		limit.Why += ", such as job " + running[0].ID.String()
	}
	if def.MaxRunning != 1 {
		return []ruleCheck{limit}, nil
	}
	line, err := store.NextInLine(ctx, def.Name, 1)
	if err != nil {
		return nil, err
	}
	first := ruleCheck{Rule: "no earlier job of it waits", Met: true, Why: "it is the first in line"}
	if len(line) > 0 && line[0].ID != job.ID {
		first.Met, first.Why = false, "job "+line[0].ID.String()+" waits in front of it"
	}
	return []ruleCheck{limit, first}, nil
}

// probedWithin is how old a node's heartbeat may be, if the worker has its
// default settings.
const probedWithin = 30 * time.Second

func nodeRule(ctx context.Context, store *leasestore.Store, job leasestore.Job, now time.Time) (ruleCheck, error) {
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return ruleCheck{}, err
	}
	rule := ruleCheck{Rule: "a ready node has a free slot", Why: "there is no node: add one with leasehold nodes add"}
	for _, node := range nodes {
		err := unfit(node, job, now)
		if err == nil {
			rule.Met, rule.Why = true, fmt.Sprintf("node %s uses %d of %d slots", node.ID, node.Used, node.Capacity)
			return rule, nil
		}
		rule.Why = fmt.Sprintf("node %s %s", node.ID, err)
	}
	if len(nodes) > 1 {
		rule.Why = fmt.Sprintf("none of %d nodes; for one, %s", len(nodes), rule.Why)
	}
	return rule, nil
}

// unfit says why a node cannot take a job.
func unfit(node leasestore.Node, job leasestore.Job, now time.Time) error {
	for label, value := range job.NodeSelector {
		if node.Labels[label] != value {
			return fmt.Errorf("has not the labels %s", pairs(job.NodeSelector))
		}
	}
	switch {
	case node.State != leasestore.Ready:
		return fmt.Errorf("is %s", node.State)
	case node.HeartbeatAt == nil || now.Sub(*node.HeartbeatAt) > probedWithin:
		return errors.New("has not been probed lately: does a worker run?")
	case node.Used >= node.Capacity:
		return fmt.Errorf("is full: %d of %d slots are used", node.Used, node.Capacity)
	}
	return nil
}
