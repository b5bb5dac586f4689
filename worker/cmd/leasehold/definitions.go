package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

func (c *cli) definitionsCommand() *cobra.Command {
	return group("definitions", "Store, list, pause and resume what jobs are made from",
		`Store, list, pause and resume definitions. Each change of a definition raises its
generation: jobs that run go on, jobs that were not yet claimed are stale and end
as cancelled.`,
		c.definitionsApplyCommand(), c.definitionsListCommand(),
		c.definitionsPauseCommand("pause", "Let no more jobs of a definition be claimed; running ones go on", true),
		c.definitionsPauseCommand("resume", "Let jobs of a paused definition be claimed again", false))
}

func (c *cli) definitionsApplyCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Store a definition, or change it",
		Long: `Store a definition, or change it, from a JSON or YAML file of the same form as
the input of RunJob and of leasehold run -f. Unchanged, it keeps its generation.`,
		Example: `  leasehold definitions apply -f - <<EOF
  definition: nightly-report
  kind: CONTAINER
  container:
    image: busybox:1
    command: [echo, good night]
    timeout: 5m
  retry: {max_attempts: 3, backoff: 30s}
  max_running: 1
  EOF`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			def, err := c.definitionFromFile(file)
			if err != nil {
				return err
			}
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			if def, err = store.Apply(cmd.Context(), def); err != nil {
				return err
			}
			if c.output == "json" {
				return c.printJSON(definitionView{def, activities.Duration(def.Backoff)})
			}
			_, err = fmt.Fprintf(c.out, "Definition %s is stored at generation %d.\n", def.Name, def.Generation)
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "JSON or YAML `FILE`, - for standard input (required)")
	return cmd
}

func (c *cli) definitionFromFile(file string) (leasestore.Definition, error) {
	if file == "" {
		return leasestore.Definition{}, &refusedError{Err: errors.New("give the file with the definition: -f FILE, or -f - for standard input")}
	}
	input, err := c.jobFromFile(file)
	if err != nil {
		return leasestore.Definition{}, err
	}
	problem := ""
	switch {
	case input.Definition == "":
		problem = "definition: is missing, it is the name to store it under"
	case input.Kind == "":
		problem = "kind: is missing, it must be CONTAINER or HEARTBEAT, with the spec"
	case input.IdempotencyKey != "":
		problem = "idempotency_key: belongs to a job, not to its definition"
	case input.Generation != 0:
		problem = "generation: is counted by the database, leave it out"
	case input.ScheduledAt != nil:
		problem = "scheduled_at: belongs to a job, not to its definition"
	case input.JobID != "":
		problem = "job_id: belongs to a job, not to its definition"
	}
	if problem != "" {
		return leasestore.Definition{}, &refusedError{Err: fmt.Errorf("%s: %s", file, problem)}
	}
	return input.Stored(input.Definition)
}

func (c *cli) definitionsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List definitions by name",
		Example: "  leasehold definitions list -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			defs, err := store.Definitions(cmd.Context(), 1000)
			if err != nil {
				return err
			}
			return c.print(shownDefinitions(defs), func() [][]string { return c.definitionRows(defs) })
		},
	}
}

func (c *cli) definitionRows(defs []leasestore.Definition) [][]string {
	rows := [][]string{{"DEFINITION", "GENERATION", "KIND", "RUNS", "ATTEMPTS", "MAX RUNNING", "PAUSED", "CHANGED"}}
	for _, def := range defs {
		limit, paused := "-", "no"
		if def.MaxRunning > 0 {
			limit = strconv.FormatInt(def.MaxRunning, 10)
		}
		if def.Paused {
			paused = "yes"
		}
		rows = append(rows, []string{
			def.Name, strconv.FormatInt(def.Generation, 10), string(def.Kind), runs(def.Spec),
			strconv.FormatInt(def.MaxAttempts, 10), limit, paused, c.ago(def.ChangedAt),
		})
	}
	return rows
}

// runs is what a spec runs, in short: the image with its command, or the address.
func runs(spec json.RawMessage) string {
	var s struct {
		Image, Endpoint     string
		Entrypoint, Command []string
	}
	if err := json.Unmarshal(spec, &s); err != nil {
		return "?"
	}
	text := strings.Join(append(append([]string{or(s.Image, or(s.Endpoint, "-"))}, s.Entrypoint...), s.Command...), " ")
	return brief(text)
}

func (c *cli) definitionsPauseCommand(use, short string, paused bool) *cobra.Command {
	return &cobra.Command{
		Use:     use + " DEFINITION",
		Short:   short,
		Example: "  leasehold definitions " + use + " nightly-report",
		Args:    oneArg("a definition, by its name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, closeStore, err := c.store(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			def, err := store.SetPaused(cmd.Context(), args[0], paused)
			if err != nil {
				return err
			}
			if c.output == "json" {
				return c.printJSON(definitionView{def, activities.Duration(def.Backoff)})
			}
			_, err = fmt.Fprintf(c.out, "Definition %s is %sd.\n", def.Name, use)
			return err
		},
	}
}
