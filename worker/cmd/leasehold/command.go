package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// run is the whole command. It returns the exit code.
func run(ctx context.Context, args []string, env envconfig.Lookuper, in io.Reader, out, errOut io.Writer) int {
	c := &cli{env: env, in: in, out: out, errOut: errOut, now: time.Now}
	root := c.root() //nolint:contextcheck // cobra hands the context to the command that it runs
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !c.parsed {
		err = &refusedError{Err: fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	}
	code := exitCode(ctx, err)
	switch {
	case code == exitInterrupted && errors.Is(err, context.Canceled):
		fmt.Fprintln(errOut, "leasehold: interrupted")
	case err != nil && err.Error() != "":
		fmt.Fprintln(errOut, "leasehold: "+err.Error())
	}
	return code
}

// cli is one call of the command.
type cli struct {
	env         envconfig.Lookuper
	in          io.Reader
	out, errOut io.Writer
	now         func() time.Time
	output      string // table or json
	parsed      bool   // the arguments were understood: what fails now is no matter of usage
	toldDev     bool   // the use of a running dev was said once
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Run jobs under durable, fenced leases",
		Long: `Leasehold runs jobs under durable, fenced leases: PostgreSQL decides who owns a
job and until when, Temporal decides what happens next, Docker daemons run the
containers.

Try it on this machine, without anything else running:

  leasehold dev
  leasehold run --image busybox:1 -- echo hello`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          subcommandOnly,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if c.output != "table" && c.output != "json" {
				return fmt.Errorf("--output is %q: it must be table or json", c.output)
			}
			c.parsed = true
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVarP(&c.output, "output", "o", "table", "`FORMAT` of results: table or json")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	addGroup(root, "Run jobs:", c.devCommand(), c.runCommand(), c.jobsCommand(), c.definitionsCommand())
	addGroup(root, "Operate an installation:", c.migrateCommand(), c.nodesCommand(), c.workerCommand(),
		c.recoveryCommand(), c.doctorCommand(), c.verifyCommand(), c.benchCommand())
	root.AddCommand(c.versionCommand())
	return root
}

func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
		root.AddCommand(cmd)
	}
}

// group is a command that only has subcommands. Called without one it shows
// its help; called with something else it says so.
func group(use, short, long string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: subcommandOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subcommands...)
	return cmd
}

func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := make([]string, 0, len(cmd.Commands()))
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return fmt.Errorf("%s has no subcommand %q%s", cmd.CommandPath(), args[0], didYouMean(args[0], names))
}

// flagError adds the nearest flag to the report of an unknown one.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	hint := didYouMean(unknown.GetSpecifiedName(), names)
	if hint != "" {
		hint = strings.Replace(hint, "mean ", "mean --", 1)
	}
	return fmt.Errorf("%w%s", err, hint)
}

// oneArg wants exactly one argument and says what it is.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs %s", cmd.CommandPath(), what)
		case len(args) > 1:
			return fmt.Errorf("%s takes one argument, not %q too", cmd.CommandPath(), strings.Join(args[1:], " "))
		}
		return nil
	}
}
