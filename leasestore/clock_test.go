package leasestore_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
)

// forbidden is SQL that no statement of the store may contain, and why.
var forbidden = map[string]string{
	`pg_(try_)?advisory_lock`: "[L22, case 7] a session lock outlives the transaction and the pooled connection",
	`pg_advisory_unlock`:      "[L22, case 7] locks end with their transaction",
	`\bnow\(\)`:               "[L1] it is the transaction's start",
	`current_timestamp`:       "[L1] it is the transaction's start",
	`localtimestamp`:          "[L1] it is the transaction's start",
	`timestamp without`:       "[L2] times are timestamptz",
	`\btimestamp\b`:           "[L2] times are timestamptz",
	`pg_notify|\bnotify\b`:    "[case 27] it serialises all commits",
	`\blisten\b`:              "[L22] it needs a session",
	`\binteger generated`:     "identities are bigint",
	`where .*advisory_xact`:   "[case 6] a lock in WHERE is taken an unknown number of times",
}

func TestL1_TheSQLUsesOneClockAndNoSession(t *testing.T) {
	t.Parallel()
	files := append(try(filepath.Glob("*.go")).or(t), try(filepath.Glob("migrations/*.sql")).or(t)...)
	if len(files) < 20 {
		t.Fatalf("found only %v", files)
	}
	comment, statement := regexp.MustCompile(`(?m)^\s*--.*$`), regexp.MustCompile("`[^`]*`")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := strings.ToLower(string(try(os.ReadFile(file)).or(t)))
		if strings.HasSuffix(file, ".go") {
			text = strings.Join(statement.FindAllString(text, -1), "\n")
		}
		text = comment.ReplaceAllString(text, "")
		for pattern, why := range forbidden {
			if found := regexp.MustCompile(pattern).FindString(text); found != "" {
				t.Errorf("%s contains %q: %s", file, found, why)
			}
		}
		if strings.Contains(text, "statement_timestamp") && file != "recover.go" && !strings.HasSuffix(file, "_eras.sql") {
			t.Errorf("%s judges by statement_timestamp: only a scan may", file)
		}
	}
}

// Seeded fault: clock_timestamp() replaced by now() in held, in recover, in claim.
func TestCase8_AVerbInALongTransactionJudgesByTheClockNotByItsStart(t *testing.T) {
	t.Parallel()
	// begun is a store in a transaction that has begun, and its now().
	begun := func(f fixture) (fixture, time.Time) {
		tx := f.begin()
		var start time.Time
		check(f.t, tx.QueryRow(f.t.Context(), `select now()`).Scan(&start))
		return fixture{leasestore.New(tx), f.t, f.pool}, start
	}
	for verb, act := range holding {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			lease := f.placed()
			late, _ := begun(f)
			f.exec(`update leasehold.lease set expires_at = clock_timestamp()`)
			wantsLost(t, act(late, lease.Authority), leasestore.Expired)
		})
	}
	t.Run("recover", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.claimed()
		late, start := begun(f)
		f.exec(`update leasehold.lease set expires_at = clock_timestamp(), next_check = clock_timestamp()`)
		got := try(late.Recover(t.Context(), recovery(bob, 1))).or(t)
		if len(got) != 1 || !got[0].Lease.GrantedAt.After(start) {
			t.Errorf("recovered %+v", got)
		}
	})
	t.Run("claim", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.apply(heartbeats("d", 0))
		job := f.queued("d")
		late, start := begun(f)
		if lease := late.claim(job, alice); !lease.GrantedAt.After(start) {
			t.Errorf("granted at %s, when the transaction began", start)
		}
	})
}

// A scan that an index serves, however many leases are live. Seeded fault:
// clock_timestamp() in the scan.
func TestTheScanOfRecoveryUsesItsIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(heartbeats("probe", 0))
	f.seedExpired(3000)
	f.exec(`update leasehold.lease set next_check = clock_timestamp() + interval '1 h', expires_at = clock_timestamp() + interval '1 h'`)
	f.exec(`analyze leasehold.lease`)
	sql := string(try(os.ReadFile("recover.go")).or(t))
	scan := regexp.MustCompile(`(?s)select l\.\* from leasehold\.lease l.*?order by l\.next_check`).FindString(sql)
	scan = strings.ReplaceAll(scan, "and not exists (select from replayed) and not exists (select from unsettled)", "")
	rows := try(f.pool.Query(t.Context(), "explain "+scan+" limit 100 for update skip locked")).or(t)
	plan := strings.Join(try(pgx.CollectRows(rows, pgx.RowTo[string])).or(t), "\n")
	if !strings.Contains(plan, "lease_next_check") {
		t.Errorf("the plan is\n%s", plan)
	}
}

// Renewals stay within their page and touch no index. Seeded fault: an index on
// expires_at.
func TestRenewalsAreHeapOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := read[int](f, `select count(*) from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
	       where i.indrelid = 'leasehold.lease'::regclass and a.attname in ('expires_at', 'container_id', 'worker', 'process', 'turn')`); got != 0 {
		t.Errorf("%d indexes cover a column that renewals or proofs change", got)
	}
}
