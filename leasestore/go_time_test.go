package leasestore_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/tests/testenv"
)

// No time of a worker's own clock reaches the database, but the place in line
// that a caller asks for. Seeded fault: expires_at as an argument, from
// time.Now().Add(ttl).
func TestCase9_NoGoTimeIsAnArgument(t *testing.T) {
	t.Parallel()
	allowed := regexp.MustCompile(`^\s*sent := time\.Now\(\)$`)
	for _, file := range try(filepath.Glob("*.go")).or(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for line := range strings.SplitSeq(string(try(os.ReadFile(file)).or(t)), "\n") {
			if strings.Contains(line, "time.Now()") && !allowed.MatchString(line) || strings.Contains(line, `": sent`) {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
	f := newFixture(t)
	config := f.pool.Config().Copy()
	seen := &arguments{}
	config.ConnConfig.Tracer = seen
	watched := fixture{leasestore.New(testenv.PoolWith(t, config)), t, f.pool}
	watched.everyVerb()
	try(watched.Enqueue(t.Context(), leasestore.EnqueueRequest{JobID: uuid.New(), Definition: "report", ScheduledAt: time.Now()})).or(t)
	if got := seen.times.Load(); got != 1 || seen.all.Load() < 50 {
		t.Errorf("%d of %d arguments were times, want scheduled_at only", got, seen.all.Load())
	}
}

// arguments counts what statements were sent with.
type arguments struct{ all, times atomic.Int64 }

func (a *arguments) count(args []any) {
	for _, arg := range args {
		named, ok := arg.(pgx.StrictNamedArgs)
		if !ok {
			named = pgx.StrictNamedArgs{"": arg}
		}
		for _, value := range named {
			a.all.Add(1)
			switch at := value.(type) {
			case time.Time:
				a.times.Add(1)
			case *time.Time:
				if at != nil {
					a.times.Add(1)
				}
			}
		}
	}
}

func (a *arguments) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	a.count(data.Args)
	return ctx
}
func (*arguments) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (*arguments) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (a *arguments) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	a.count(data.Args)
}
func (*arguments) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
