//go:build chaos

package chaos

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"
)

// line is what a container wrote: under which epoch, and when.
type line struct {
	job, node string
	epoch     int64
	at        time.Time // the daemon's clock; all share this machine's
}

// witness reads what the containers of a daemon write, past all faults but the
// daemon's own death.
type witness struct {
	daemon *client.Client
	mu     sync.Mutex
	lines  []line
	last   map[string]time.Time // by container, what was read
	reads  map[string]bool      // containers that are read now
	wg     sync.WaitGroup
}

// watch reads until the test ends.
func watch(t *testing.T, endpoint string) *witness {
	t.Helper()
	daemon, err := client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{daemon: daemon, last: map[string]time.Time{}, reads: map[string]bool{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w.wg.Go(func() { w.look(ctx) })
	t.Cleanup(func() {
		stop()
		w.wg.Wait()
		_ = daemon.Close()
	})
	return w
}

func (w *witness) containers(ctx context.Context) ([]container.Summary, error) {
	return w.daemon.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "leasehold.job_id"))})
}

// look finds containers, four times a second.
func (w *witness) look(ctx context.Context) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		found, err := w.containers(ctx)
		if err != nil {
			found = nil // the daemon is dead; what it runs is read later
		}
		for _, c := range found {
			w.mu.Lock()
			busy := w.reads[c.ID]
			w.reads[c.ID] = true
			w.mu.Unlock()
			if !busy {
				w.wg.Go(func() { w.read(ctx, c.ID, c.Labels["leasehold.job_id"], c.Labels["leasehold.node_id"]) })
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// read follows a container's log, from where the last read ended.
func (w *witness) read(ctx context.Context, id, job, node string) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reads[id] = false
	}()
	logs, err := w.daemon.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true, Timestamps: true, Follow: true})
	if err != nil {
		return
	}
	defer logs.Close()
	text, write := io.Pipe()
	w.wg.Go(func() {
		_, err := stdcopy.StdCopy(write, write, logs)
		_ = write.CloseWithError(err)
	})
	defer text.Close()
	for lines := bufio.NewScanner(text); lines.Scan(); {
		stamp, epoch, _ := strings.Cut(lines.Text(), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		n, isEpoch := strconv.ParseInt(epoch, 10, 64)
		if err != nil || isEpoch != nil {
			continue
		}
		w.mu.Lock()
		if at.After(w.last[id]) {
			w.last[id] = at
			w.lines = append(w.lines, line{job, node, n, at})
		}
		w.mu.Unlock()
	}
}

// refused replays what all witnesses have read in the order in which it was
// written, and returns what a fenced resource refuses.
func refused(nodes []*node) (seen int, refusals []line) {
	var all []line
	for _, n := range nodes {
		n.witness.mu.Lock()
		all = append(all, n.witness.lines...)
		n.witness.lines = nil
		n.witness.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	newest := map[string]int64{}
	for _, l := range all {
		if l.epoch < newest[l.job] {
			refusals = append(refusals, l)
			continue
		}
		newest[l.job] = l.epoch
	}
	return len(all), refusals
}
