package wire_test

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/tests/proof/wire"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m, testenv.NoLeaks())) }

// Where the connection is cut decides what has happened, and what the client
// is told.
func TestTheCutDecidesWhatHasHappened(t *testing.T) {
	t.Parallel()
	tests := map[wire.Point]struct{ written, told bool }{
		wire.BeforeExecute:         {false, false},
		wire.BeforeSync:            {false, false},
		wire.BeforeCommandComplete: {true, false},
		wire.AfterCommandComplete:  {true, false},
		wire.BeforeReadyForQuery:   {true, false},
		wire.AfterReadyForQuery:    {true, true},
	}
	for point, tt := range tests {
		t.Run(point.String(), func(t *testing.T) {
			t.Parallel()
			database := testenv.EmptyDatabase(t)
			direct := connect(t, database)
			exec(t, direct, "create table mine (n int)")
			var armed atomic.Bool
			proxy, err := wire.Listen(t.Context(), database, func(at wire.Point) bool {
				return at == point && armed.CompareAndSwap(true, false)
			})
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Close()
			through := connect(t, proxy.URL())
			if _, err := through.Prepare(t.Context(), "write", "insert into mine values (1)"); err != nil {
				t.Fatal(err)
			}
			pid := through.PgConn().PID()
			armed.Store(true)
			_, err = through.Exec(t.Context(), "write")
			if told := err == nil; told != tt.told {
				t.Errorf("told %t: %v", told, err)
			}
			if _, err := through.Exec(t.Context(), "write"); err == nil {
				t.Error("the connection was not cut")
			}
			for gone := false; !gone; {
				scan(t, direct, &gone, "select not exists (select from pg_stat_activity where pid = $1)", pid)
			}
			var written bool
			scan(t, direct, &written, "select exists (select from mine)")
			if written != tt.written {
				t.Errorf("written is %t", written)
			}
		})
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.PgConn().Conn().Close() })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func scan(t *testing.T, conn *pgx.Conn, into any, sql string, args ...any) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(into); err != nil {
		t.Fatal(err)
	}
}
