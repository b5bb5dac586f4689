package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
)

// runFlags are the flags of leasehold run, as given.
type runFlags struct {
	file           string
	image          string
	env            []string
	network        string
	timeout        time.Duration
	heartbeat      string
	expectStatus   int
	definition     string
	name           string
	idempotencyKey string
	maxRunning     int64
	maxAttempts    int64
	detach         bool
}

func (c *cli) runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] [-- COMMAND [ARGUMENT...]]",
		Short: "Start a job and follow it to its end",
		Long: `Start a job and follow it: its states go to standard error, what it prints to
standard output. Ctrl-C cancels the job and waits for its end; a second Ctrl-C
leaves at once.

The job is an image with a command, an HTTP request (--heartbeat), a stored
definition (--definition alone), or a JSON or YAML file (-f, - for standard
input) with the input of the workflow RunJob.

Exits with 0 if the job completed, 1 if it failed, 2 if it could not be
started as asked, 130 if it was cancelled.`,
		Example: `  leasehold run --image busybox:1 --env WHO=world -- sh -c 'echo hello $WHO'
  leasehold run --heartbeat https://example.com/healthz
  leasehold run --definition nightly-report --detach -o json
  leasehold run -f job.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return fmt.Errorf("%q is not a flag: put -- before the command of the job", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, command []string) error {
			if err := onlyWithoutFile(cmd, command); err != nil {
				return err
			}
			input, err := c.jobInput(flags, command)
			if err != nil {
				return err
			}
			return c.startAndFollow(cmd.Context(), input, flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.file, "file", "f", "", "JSON or YAML `FILE` with the job, - for standard input")
	f.StringVar(&flags.image, "image", "", "`IMAGE` to run in a container")
	f.StringArrayVarP(&flags.env, "env", "e", nil, "environment of the container, as `NAME=VALUE`; NAME alone takes the value from here; may be repeated")
	f.StringVar(&flags.network, "network", "", "`NETWORK` of the container, bridge or none; empty is what the worker and the node have")
	f.DurationVar(&flags.timeout, "timeout", 0, "how long it may run, a `TIME` such as 90s or 2h; 0 is the default, 10m, or 10s for --heartbeat")
	f.StringVar(&flags.heartbeat, "heartbeat", "", "`URL` to request once, instead of running a container")
	f.IntVar(&flags.expectStatus, "expect-status", 0, "HTTP status `CODE` that --heartbeat expects; 0 is the default, 200")
	f.StringVar(&flags.definition, "definition", "", "`NAME` of the stored definition to run; with --image or --heartbeat, the name to store it under")
	f.StringVar(&flags.name, "name", "", "Temporal workflow `ID`; made up if empty")
	f.StringVar(&flags.idempotencyKey, "idempotency-key", "", "a `KEY` of your choice: all starts of a definition with the same one are one job")
	f.Int64Var(&flags.maxRunning, "max-running", 0, "at most `N` jobs of the definition run at once; 0 is no limit")
	f.Int64Var(&flags.maxAttempts, "max-attempts", 0, "it is tried `N` times at most; 0 is the default, 3")
	f.BoolVarP(&flags.detach, "detach", "d", false, "only start it, and print its ID")
	return cmd
}

// onlyWithoutFile refuses what a file with the whole job would silently win over.
func onlyWithoutFile(cmd *cobra.Command, command []string) error {
	if !cmd.Flags().Changed("file") {
		return nil
	}
	var other []string
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"file", "name", "detach", "output"}, flag.Name) {
			other = append(other, "--"+flag.Name)
		}
	})
	if len(command) > 0 {
		other = append(other, "the command")
	}
	if len(other) == 0 {
		return nil
	}
	return &refusedError{Err: fmt.Errorf("-f describes the whole job: leave out %s, or put it into the file", strings.Join(other, ", "))}
}

// jobInput makes the input of RunJob from flags or from a file, and refuses
// what no worker would take.
func (c *cli) jobInput(flags runFlags, command []string) (activities.JobInput, error) {
	var input activities.JobInput
	var err error
	switch {
	case flags.image != "" && flags.heartbeat != "":
		err = errors.New("--image and --heartbeat are two kinds of job: give one of them")
	case flags.file == "" && flags.image == "" && flags.heartbeat == "" && flags.definition == "":
		err = errors.New("there is nothing to run: give --image, --heartbeat, --definition or -f (see leasehold run --help)")
	case flags.image == "" && len(command) > 0:
		err = errors.New("a command needs the image to run it in: give --image")
	case flags.image == "" && len(flags.env) > 0:
		err = errors.New("--env is for containers: give --image")
	case flags.file != "":
		return c.jobFromFile(flags.file)
	default:
		input, err = c.jobFromFlags(flags, command)
	}
	if err != nil {
		return input, &refusedError{Err: err}
	}
	return checked(input)
}

func (c *cli) jobFromFile(path string) (activities.JobInput, error) {
	var input activities.JobInput
	if err := c.decodeFile(path, &input); err != nil {
		return input, err
	}
	return checked(input)
}

func (c *cli) jobFromFlags(flags runFlags, command []string) (activities.JobInput, error) {
	input := activities.JobInput{
		Definition: flags.definition, IdempotencyKey: flags.idempotencyKey, MaxRunning: flags.maxRunning,
	}
	if flags.maxAttempts != 0 {
		input.Retry = &activities.RetryInput{MaxAttempts: flags.maxAttempts}
	}
	switch {
	case flags.heartbeat != "":
		input.Kind = leasestore.Heartbeat
		input.Heartbeat = &activities.HeartbeatSpec{
			Endpoint: flags.heartbeat, ExpectedStatusCode: flags.expectStatus, Timeout: activities.Duration(flags.timeout),
		}
	case flags.image != "":
		env, err := c.containerEnv(flags.env)
		if err != nil {
			return input, err
		}
		input.Kind = leasestore.Container
		input.Container = &activities.ContainerSpec{
			Image: flags.image, Env: env, Network: flags.network, Timeout: activities.Duration(flags.timeout),
		}
		if len(command) > 0 {
			input.Container.Command = &command
		}
	}
	return input, nil
}

func (c *cli) containerEnv(given []string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	env := map[string]string{}
	for _, pair := range given {
		name, value, hasValue := strings.Cut(pair, "=")
		if !hasValue {
			if value, hasValue = c.env.Lookup(name); !hasValue {
				return nil, fmt.Errorf("--env %s has no value, and %s is not set here: write %s=VALUE", name, name, name)
			}
		}
		if name == "" {
			return nil, fmt.Errorf("--env %q has no name: write NAME=VALUE", pair)
		}
		env[name] = value
	}
	return env, nil
}

// checked asks the worker's own rules, before anything is started.
func checked(input activities.JobInput) (activities.JobInput, error) {
	encoded, err := json.Marshal(input)
	if err != nil {
		return input, err
	}
	if _, err := activities.ParseJobInput(encoded); err != nil {
		return input, &refusedError{Err: fmt.Errorf("the job is not valid: %w", err)}
	}
	return input, nil
}
