package docker

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
)

// log reads the output of one container from the logs endpoint.
type log struct {
	e        *Engine
	endpoint string
	id       string
	tty      bool
	join     [2]joiner // stdout, stderr
	lines    func(activities.LogLine)
	first    activities.LogLine
	given    int // lines

	chunks     atomic.Int64  // how much was read, to see progress
	end        chan struct{} // closed when follow returns
	complete   bool          // the last reading came to the log's own end
	unreadable bool          // and will not become readable
}

func newLog(e *Engine, endpoint string, c inspected, lines func(activities.LogLine)) *log {
	l := &log{e: e, endpoint: endpoint, id: c.ID, tty: c.tty, lines: lines, end: make(chan struct{})}
	l.join[1].stderr = true
	return l
}

// follow reads until the container has ended, or ctx. When the stream breaks it
// goes on where it was.
func (l *log) follow(ctx context.Context) {
	defer close(l.end)
	pause := pauses{first: 100 * time.Millisecond, most: 2 * time.Second}
	for {
		err := l.read(ctx, true)
		if ctx.Err() != nil || l.unreadable || cerrdefs.IsNotFound(err) {
			return
		}
		if l.complete = err == nil; l.complete && l.over(ctx) {
			return
		}
		if !pause.wait(ctx) {
			return
		}
	}
}

// over tells whether nothing can follow the end of the log.
func (l *log) over(ctx context.Context) bool {
	c, err := l.e.inspect(ctx, l.endpoint, l.id)
	return cerrdefs.IsNotFound(err) || err == nil && c.State == activities.ContainerExited
}

// drain gives follow time to come to the end, for as long as it makes progress.
func (l *log) drain(ctx context.Context, patience time.Duration) {
	const most = 20 // times the patience
	timer := time.NewTicker(patience)
	defer timer.Stop()
	before := int64(-1)
	for range most {
		select {
		case <-l.end:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
			now := l.chunks.Load()
			if now == before {
				return
			}
			before = now
		}
	}
}

// finish reads once more to the end of the log, whatever follow has read, and
// gives out unfinished lines. Follow has returned, and the container has ended,
// or is gone. A daemon may end a follow before the last line, one without a
// newline above all.
func (l *log) finish(ctx context.Context, broken bool) {
	if !l.unreadable {
		limited, cancel := context.WithTimeout(ctx, l.e.opts.CallTimeout)
		defer cancel()
		err := l.read(limited, false)
		vanished := cerrdefs.IsNotFound(err) && !broken
		l.complete = err == nil || l.complete && vanished
	}
	l.complete = l.complete && !l.unreadable
	for i := range l.join {
		l.join[i].flush(l.give)
	}
}

// read reads from where the last reading ended. It returns nil at the end of
// the log.
func (l *log) read(ctx context.Context, follow bool) error {
	n, err := l.e.node(ctx, l.endpoint)
	if err != nil {
		return err
	}
	stream, err := n.patient.ContainerLogs(ctx, l.id, container.LogsOptions{
		ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: follow, Since: l.since(),
	})
	if err != nil {
		if strings.Contains(err.Error(), "does not support reading") {
			l.unreadable = true
		}
		return err
	}
	defer stream.Close()
	for i := range l.join {
		l.join[i].resume()
	}
	input := bufio.NewReaderSize(stream, 64<<10)
	if l.tty {
		err = readTerminal(input, l.take)
	} else {
		err = readFrames(input, l.take)
	}
	if err == io.EOF { //nolint:errorlint // wrapped, it is a stream that broke off
		return nil
	}
	return err
}

// overlap is how far before the last line a resumed reading begins: the two
// streams are stamped apart and may be stored out of order by that much.
const overlap = 2 * time.Second

func (l *log) since() string {
	last := l.join[0].last
	if l.join[1].last.After(last) {
		last = l.join[1].last
	}
	if last.IsZero() {
		return ""
	}
	return stamp(last.Add(-overlap))
}

// take takes a chunk: one line, or a part of a long one.
func (l *log) take(stderr bool, at time.Time, chunk []byte) {
	j := &l.join[0]
	if stderr {
		j = &l.join[1]
	}
	j.add(at, chunk, l.e.opts.LineLimit, l.give)
	l.chunks.Add(1)
}

func (l *log) give(line activities.LogLine) {
	if l.given++; l.given == 1 {
		l.first = line
	}
	l.lines(line)
}
