package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/worker"
)

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check, one after another, all that jobs need to run",
		Long: `Check, one after another, all that jobs need to run: configuration, database,
Temporal, schedules, workers, nodes, leases. It changes nothing. What is wrong is
said with its cure; what cannot be checked because of that is marked with -.

Exits with 1 if something is wrong.`,
		Example: "  leasehold doctor\n  leasehold doctor -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{c: c}
			defer d.close()
			return d.examine(cmd.Context())
		},
	}
}

// doctor examines an installation.
type doctor struct {
	c        *cli
	config   worker.Config
	sound    bool              // the configuration is
	pool     *pgxpool.Pool     // nil unless the database answers
	store    *leasestore.Store // nil unless the schema is the right one
	temporal client.Client     // nil unless Temporal answers
}

// finding is what one check came to.
type finding struct {
	Check  string `json:"check"`
	Result result `json:"result"`
	Detail string `json:"detail"` // what is there, or what is wrong, with the cure
}

type result string

const (
	fine    result = "ok"
	wrong   result = "FAIL"
	skipped result = "-"
)

// examination is a check: what it is called, what must be there for it, and
// how it is done. It returns what there is to say if all is well.
type examination struct {
	name  string
	needs func() bool
	do    func(context.Context) (string, error)
}

func (d *doctor) examinations() []examination {
	always := func() bool { return true }
	database := func() bool { return d.pool != nil }
	filled := func() bool { return d.store != nil && d.sound }
	temporal := func() bool { return d.temporal != nil }
	return []examination{
		{"configuration", always, d.checkConfig},
		{"database", always, d.checkDatabase},
		{"transactions", database, d.checkTransactions},
		{"durability", database, d.checkDurability},
		{"clock", database, d.checkClock},
		{"schema", database, d.checkSchema},
		{"Temporal", func() bool { return d.sound }, d.checkTemporal},
		{"search attributes", temporal, d.checkSearchAttributes},
		{"recovery schedule", temporal, d.checkSchedule(worker.RecoveryScheduleID)},
		{"probe schedule", temporal, d.checkSchedule(worker.ProbeScheduleID)},
		{"workers", temporal, d.checkWorkers},
		{"nodes", filled, d.checkNodes},
		{"leases", filled, d.checkLeases},
	}
}

func (d *doctor) examine(ctx context.Context) error {
	var findings []finding
	failed := 0
	for _, exam := range d.examinations() {
		found := finding{Check: exam.name, Result: skipped, Detail: "not checked, because of the above"}
		if exam.needs() {
			found = examineOne(ctx, exam)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if found.Result == wrong {
			failed++
		}
		findings = append(findings, found)
	}
	if err := d.c.print(findings, func() [][]string { return findingRows(findings) }); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}
	return nil
}

func examineOne(ctx context.Context, exam examination) finding {
	ctx, cancel := context.WithTimeout(ctx, 2*connectWithin)
	defer cancel()
	detail, err := exam.do(ctx)
	if err != nil {
		return finding{Check: exam.name, Result: wrong, Detail: err.Error()}
	}
	return finding{Check: exam.name, Result: fine, Detail: detail}
}

func findingRows(findings []finding) [][]string {
	rows := [][]string{{"CHECK", "RESULT", "DETAIL"}}
	for _, found := range findings {
		rows = append(rows, []string{found.Check, string(found.Result), found.Detail})
	}
	return rows
}

func (d *doctor) close() {
	if d.pool != nil {
		d.pool.Close()
	}
	if d.temporal != nil {
		d.temporal.Close()
	}
}

func (d *doctor) checkConfig(ctx context.Context) (string, error) {
	var err error
	if d.config, err = d.c.config(ctx); err != nil {
		return "", err
	}
	d.sound = true
	return fmt.Sprintf("task queue %s, leases of %s renewed every %s, recovery every %s",
		d.config.TaskQueue, plain(d.config.Lease), plain(d.config.Renew), plain(d.config.RecoveryInterval)), nil
}

// plain writes a duration without units that are zero.
func plain(d time.Duration) string { return activities.Duration(d).String() }
