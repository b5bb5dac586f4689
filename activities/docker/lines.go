package docker

import (
	"bytes"
	"strings"
	"time"

	"github.com/leasehold/leasehold/activities"
)

// joiner makes the lines of one stream out of its chunks. A daemon cuts long
// lines every 16 KiB; the parts have one stamp, and only the last a newline.
//
// Within a stream, stamps rise. So a reading that begins again needs to know no
// more than the last stamp, and how many chunks had it, to skip what it had.
type joiner struct {
	stderr bool

	last time.Time // stamp of the last chunk
	same int       // chunks with that stamp, so far

	replay bool // chunks that we had may come again
	again  int  // chunks with the last stamp that came again

	line    []byte
	began   time.Time
	pending bool // a line is unfinished, even if it is empty
	cut     bool
}

// resume says that reading begins again, somewhere before the last chunk.
func (j *joiner) resume() { j.replay, j.again = !j.last.IsZero(), 0 }

// had tells whether a chunk came before, and otherwise notes that it came now.
func (j *joiner) had(at time.Time) bool {
	if j.replay {
		if at.Before(j.last) {
			return true
		}
		if at.Equal(j.last) && j.again < j.same {
			j.again++
			return true
		}
		j.replay = false
	}
	if !at.Equal(j.last) {
		j.last, j.same = at, 0
	}
	j.same++
	return false
}

func (j *joiner) add(at time.Time, chunk []byte, limit int, give func(activities.LogLine)) {
	if j.had(at) {
		return
	}
	if !j.pending {
		j.began, j.pending = at, true
	}
	chunk, whole := bytes.CutSuffix(chunk, []byte("\n"))
	if room := limit - len(j.line); len(chunk) > room {
		chunk, j.cut = chunk[:room], true
	}
	j.line = append(j.line, chunk...)
	if whole {
		j.flush(give)
	}
}

// flush gives out the line so far, if there is one.
func (j *joiner) flush(give func(activities.LogLine)) {
	if !j.pending {
		return
	}
	line := activities.LogLine{Time: j.began, Stderr: j.stderr, Text: clean(j.line), Truncated: j.cut}
	j.line, j.pending, j.cut = j.line[:0], false, false
	give(line)
}

// clean makes text of bytes: valid UTF-8 without NUL, which PostgreSQL refuses.
func clean(line []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(line), "\uFFFD"), "\x00", "")
}
