package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/leasestore/bench"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, testenv.NoLeaks())) }

// tiny is a measurement of a few seconds, good for nothing but this test. Its
// leases live for six seconds, which a busy machine can keep.
func tiny(databaseURL string) bench.Options {
	return bench.Options{
		DatabaseURL: databaseURL, Jobs: 1_000, Leases: 300, Slices: 1, SliceLength: 10 * time.Millisecond,
		Connections: 2, RenewEvery: 2 * time.Second, RenewFor: 3100 * time.Millisecond,
	}
}

func TestAMeasurementIsSaneAndLeavesNothingBehind(t *testing.T) {
	given := testenv.EmptyDatabase(t)
	var said bytes.Buffer
	options := tiny(given)
	options.Out = &said
	report, err := bench.Run(t.Context(), options)
	if err != nil {
		t.Fatalf("%v, after\n%s", err, &said)
	}
	sane(t, report)
	if names := temporary(t, given); len(names) > 0 {
		t.Errorf("databases left behind: %v", names)
	}
	var tables int
	one(t, given, `select count(*) from pg_class where relnamespace = 'public'::regnamespace`, &tables)
	if tables > 0 {
		t.Errorf("%d tables left in the given database", tables)
	}
}

func sane(t *testing.T, report bench.Report) {
	t.Helper()
	if got, want := len(report.Figures), 2*8; got != want {
		t.Errorf("got %d figures, want %d", got, want)
	}
	for _, figure := range report.Figures {
		if figure.Calls < 1 || figure.Ratio.Median <= 0 || figure.PerCall.Median <= 0 || figure.Floor.Median <= 0 {
			t.Errorf("%s at %v is not sane: %+v", figure.Operation, figure.Size, figure)
		}
		renewal := figure.Operation == bench.RenewOne || figure.Operation == bench.RenewBatch
		if renewal && (figure.HOT == nil || *figure.HOT < 0.9 || figure.WAL < 50) { // others write too, so there is no upper limit
			t.Errorf("%s at %v: heap-only updates and log are not sane: %+v", figure.Operation, figure.Size, figure.Account)
		}
	}
	if report.Recovery.Leases != 150 || report.Recovery.Seconds.Median <= 0 {
		t.Errorf("recovery is not sane: %+v", report.Recovery)
	}
	if report.Load.Leases != 300 || report.Load.Share <= 0 || report.Load.LongestScan <= 0 || report.Load.Lost > 0 {
		t.Errorf("load is not sane: %+v", report.Load)
	}
	var table bytes.Buffer
	if err := report.WriteTable(&table); err != nil {
		t.Error(err)
	}
	for _, target := range report.Targets {
		if !strings.Contains(table.String(), target.Name) {
			t.Errorf("target %q is not in the table:\n%s", target.Name, &table)
		}
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err) // a number that JSON cannot hold
	}
}

func TestAnInterruptedMeasurementLeavesNothingBehind(t *testing.T) {
	given := testenv.EmptyDatabase(t)
	ctx, cancel := context.WithCancel(t.Context())
	options := tiny(given)
	options.Out = whenTold{"round", cancel}
	if _, err := bench.Run(ctx, options); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if names := temporary(t, given); len(names) > 0 {
		t.Errorf("databases left behind: %v", names)
	}
}

func TestBadOptionsAreRefusedWithTheCure(t *testing.T) {
	given := testenv.EmptyDatabase(t)
	tests := map[string]struct {
		change func(*bench.Options)
		want   string
	}{
		"no database":             {func(o *bench.Options) { o.DatabaseURL = "" }, "database URL must not be empty"},
		"no URL":                  {func(o *bench.Options) { o.DatabaseURL = "postgres://u:secret@h:port/d" }, "it must look like postgres://"},
		"too few jobs":            {func(o *bench.Options) { o.Jobs = 999 }, "number of jobs must be between 1000 and"},
		"more leases than half":   {func(o *bench.Options) { o.Leases = 501 }, "number of leases must be between 200 and 500"},
		"negative slices":         {func(o *bench.Options) { o.Slices = -1 }, "number of slices must be between 1 and 1000"},
		"a slice of nothing":      {func(o *bench.Options) { o.SliceLength = 1 }, "length of a slice must be between 10ms and 1m0s"},
		"more to recover than is": {func(o *bench.Options) { o.Recover = 151 }, "number of leases to recover must be between 1 and 150"},
		"a poor account":          {func(o *bench.Options) { o.DatabaseURL = poor(t, given) }, "alter role \"poor\" createdb"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := tiny(given)
			tt.change(&options)
			_, err := bench.Run(t.Context(), options)
			if _, ok := errors.AsType[*leasestore.InvalidError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// whenTold calls do at the first line that begins with a word.
type whenTold struct {
	word string
	do   func()
}

func (w whenTold) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte(w.word)) {
		w.do()
	}
	return len(line), nil
}

// poor returns the URL for an account that may not create databases.
func poor(t *testing.T, databaseURL string) string {
	t.Helper()
	address, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `drop role if exists poor; create role poor login password 'secret'`); err != nil {
		t.Skip("this PostgreSQL does not let a role be made: ", err)
	}
	address.User = url.UserPassword("poor", "secret")
	return address.String()
}

// temporary are the databases of measurements on this server.
func temporary(t *testing.T, databaseURL string) (names []string) {
	t.Helper()
	one(t, databaseURL, `
select coalesce(array_agg(datname::text), '{}') from pg_database where datname like 'leasehold\_bench\_%'`, &names)
	return names
}

func one(t *testing.T, databaseURL, sql string, answer any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(answer); err != nil {
		t.Fatal(err)
	}
}
