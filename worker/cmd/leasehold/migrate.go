package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore"
)

func (c *cli) migrateCommand() *cobra.Command {
	up := &cobra.Command{
		Use:     "up",
		Short:   "Bring the schema up to this program's version",
		Example: "  leasehold migrate up",
		Args:    cobra.NoArgs,
		RunE:    c.migrateUp,
	}
	status := &cobra.Command{
		Use:   "status",
		Short: "List the steps of the schema and say which are missing",
		Long: `List the steps of the schema, and when each was taken. Exits with 2 unless the
database has exactly the schema that this program needs.`,
		Example: "  leasehold migrate status -o json",
		Args:    cobra.NoArgs,
		RunE:    c.migrateStatus,
	}
	migrate := group("migrate", "Create or update the database schema",
		`Create or update the schema leasehold in the database of DATABASE_URL; without a
subcommand, it does what "up" does. It needs a session of its own, so no pooler
in transaction mode, and the right to create a schema. Live workers go on
meanwhile. Many may run at once: one works, the others wait.`, up, c.migrateDownCommand(), status,
		c.migratePrintCommand("print", "Print the SQL of all steps, to read or to apply by other means", leasestore.PrintMigrations),
		c.migratePrintCommand("roles", "Print the SQL of the roles that a worker and others connect as", func(out io.Writer) error {
			_, err := io.WriteString(out, leasestore.Roles())
			return err
		}))
	migrate.Example = "  DATABASE_URL=postgres://owner@db.example:5432/leasehold leasehold migrate"
	migrate.RunE = c.migrateUp
	return migrate
}

func (c *cli) migrateUp(cmd *cobra.Command, _ []string) error {
	pool, err := c.openPool(cmd.Context()) // its errors say more than those of the migration
	if err != nil {
		return err
	}
	pool.Close()
	version, err := leasestore.Migrate(cmd.Context(), pool.Config().ConnString())
	if err != nil {
		return err
	}
	return c.printVersion(version)
}

func (c *cli) printVersion(version int64) error {
	if c.output == "json" {
		return c.printJSON(map[string]int64{"version": version})
	}
	_, err := fmt.Fprintf(c.out, "The schema is at version %d.\n", version)
	return err
}

func (c *cli) migrateDownCommand() *cobra.Command {
	var to int64
	var yes bool
	cmd := &cobra.Command{
		Use:   "down --to VERSION --yes",
		Short: "Take the schema back to an earlier version; what later ones stored is lost",
		Long: `Take the schema back to an earlier version. What later versions stored is lost;
version 0 drops all jobs, definitions and nodes, and is refused while anybody
owns a job. Stop the workers first: they refuse to work with another schema.`,
		Example: "  leasehold migrate down --to 1 --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !cmd.Flags().Changed("to"):
				return &refusedError{Err: errors.New("give the version to go back to: --to VERSION (leasehold migrate status lists them)")}
			case !yes:
				return &refusedError{Err: fmt.Errorf("what versions after %d stored would be lost: add --yes if that is what you want", to)}
			}
			pool, err := c.openPool(cmd.Context())
			if err != nil {
				return err
			}
			pool.Close()
			version, err := leasestore.MigrateDown(cmd.Context(), pool.Config().ConnString(), to)
			if err != nil {
				return err
			}
			return c.printVersion(version)
		},
	}
	cmd.Flags().Int64Var(&to, "to", 0, "`VERSION` to go back to; 0 is no schema (required)")
	cmd.Flags().BoolVar(&yes, "yes", false, "lose what later versions stored (required)")
	return cmd
}

func (c *cli) migratePrintCommand(use, short string, write func(io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: "  leasehold migrate " + use + " > " + use + ".sql", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return write(c.out) },
	}
}

// schemaStatus is what migrate status prints as JSON.
type schemaStatus struct {
	Have  int64                  `json:"have"`
	Want  int64                  `json:"want"`
	Steps []leasestore.Migration `json:"steps"`
}

func (c *cli) migrateStatus(cmd *cobra.Command, _ []string) error {
	pool, err := c.openPool(cmd.Context())
	if err != nil {
		return err
	}
	defer pool.Close()
	store := leasestore.New(pool)
	steps, err := store.MigrationStatus(cmd.Context())
	if err != nil {
		return err
	}
	status := schemaStatus{Want: leasestore.SchemaVersion(), Steps: steps}
	for _, step := range steps {
		if step.AppliedAt != nil {
			status.Have = step.Version
		}
	}
	if err := c.print(status, func() [][]string { return stepRows(steps) }); err != nil {
		return err
	}
	return store.CheckSchema(cmd.Context())
}

func stepRows(steps []leasestore.Migration) [][]string {
	rows := [][]string{{"VERSION", "STEP", "APPLIED"}}
	for _, step := range steps {
		applied := "missing: leasehold migrate applies it"
		if step.AppliedAt != nil {
			applied = step.AppliedAt.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{strconv.FormatInt(step.Version, 10), or(step.Name, "of a newer leasehold"), applied})
	}
	return rows
}
