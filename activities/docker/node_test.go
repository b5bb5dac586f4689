package docker_test

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/tests/testenv"
)

func itoa(i int) string { return strconv.Itoa(i) }

func withInstance(instance string) docker.Options { return docker.Options{Instance: instance} }

// The fault that it catches: believing the exit code that a daemon gives to
// what it killed.
func TestC07_ADaemonIsKilledWhileWeWait(t *testing.T) {
	t.Parallel()
	node := testenv.DockerNode(t)
	b := on(t, node.Endpoint())
	const untilOrphan = `echo up; while [ ! -e /tmp/alone ]; do sleep 0.1; done; `
	type job struct {
		*bench
		out   *output
		id    string
		ended <-chan ending
	}
	begin := func(script string) job {
		j := job{bench: on(t, b.endpoint), out: newOutput()}
		j.id = j.start(shell(script)).ID
		j.ended = j.wait(t.Context(), j.id, j.out)
		receive(t, j.out.first, "the first line")
		return j
	}
	ends5, ends0 := begin(untilOrphan+"exit 5"), begin(untilOrphan+"echo done")
	killed, tidy := begin("echo up; sleep 300"), begin(`trap "exit 0" TERM; echo up; while :; do sleep 0.1; done`)
	pids := []int{ends5.inspect(ends5.id).State.Pid, ends0.inspect(ends0.id).State.Pid}
	check(t, node.Kill())
	for _, pid := range pids { // they end by themselves while no daemon is there
		touchIn(t, pid, "/tmp/alone")
		eventually(t, "the program ends", func() bool { return syscall.Kill(pid, 0) != nil })
	}
	check(t, node.Restart(t.Context()))

	five, zero := receive(t, ends5.ended, "exit 5"), receive(t, ends0.ended, "exit 0")
	check(t, five.err)
	check(t, zero.err)
	if five.exit.Code != 5 || zero.exit.Code != 0 {
		t.Errorf("ended by themselves with %+v and %+v", five.exit, zero.exit)
	}
	if text := ends0.out.text(false); !strings.HasPrefix(text, "up\n") {
		t.Errorf("the log says %q", text)
	}
	trouble := refused(t, receive(t, killed.ended, "the killed one").err, activities.ReasonNodeLost)
	if trouble.User() {
		t.Error("it is the user's fault")
	}
	refused(t, receive(t, tidy.ended, "the tidy one").err, activities.ReasonNodeLost)
}

// The fault that it catches: believing an exit because it was told in good
// order. The program ended since it was told to, and the daemon, which still
// waits for another container, answers on the connections that it has.
func TestC07_ADaemonThatIsStoppedEndsItsContainers(t *testing.T) {
	t.Parallel()
	node := testenv.DockerNode(t)
	b, stubborn := on(t, node.Endpoint()), on(t, node.Endpoint())
	stubborn.start(shell(`trap "" TERM; while :; do sleep 0.1; done`))
	c, out := b.start(shell(`trap "exit 0" TERM; echo up; while :; do sleep 0.1; done`)), newOutput()
	ended := b.wait(t.Context(), c.ID, out)
	receive(t, out.first, "the first line")
	check(t, node.Restart(t.Context())) // stops it first, in good order
	refused(t, receive(t, ended, "the wait").err, activities.ReasonNodeLost)
}

func TestC07_LiveRestoreKeepsTheContainer(t *testing.T) {
	t.Parallel()
	node := testenv.DockerNode(t, "--live-restore")
	b := on(t, node.Endpoint())
	c, out := b.start(shell(`echo up; while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 9`)), newOutput()
	ended := b.wait(t.Context(), c.ID, out)
	receive(t, out.first, "the first line")
	pid := b.inspect(c.ID).State.Pid
	check(t, node.Kill())
	check(t, node.Restart(t.Context()))
	touchIn(t, pid, "/tmp/go")
	waited := receive(t, ended, "the wait")
	check(t, waited.err)
	if waited.exit.Code != 9 {
		t.Errorf("got %+v", waited.exit)
	}
}

// The fault that it catches: taking a node that cannot be reached for dead.
func TestC08_AShortOutageIsWaitedOut(t *testing.T) {
	t.Parallel()
	direct := shared(t)
	p := newProxy(t, direct.endpoint)
	b := on(t, p.endpoint(), docker.Options{Instance: direct.instance})
	c, out := b.start(shell(`trap "echo ok; exit 4" TERM; echo up; while :; do sleep 0.1; done`)), newOutput()
	ended := b.wait(t.Context(), c.ID, out)
	receive(t, out.first, "the first line")
	p.cut()
	// It ends during the outage, and nobody hears of it.
	check(t, direct.outside.ContainerKill(t.Context(), c.ID, "TERM"))
	eventually(t, "the container ends", func() bool { return !direct.inspect(c.ID).State.Running })
	select {
	case early := <-ended:
		t.Fatalf("the wait ended during the outage: %+v", early)
	default:
	}
	p.up()
	waited := receive(t, ended, "the wait")
	check(t, waited.err)
	if waited.exit.Code != 4 || waited.exit.LogsIncomplete || out.text(false) != "up\nok\n" {
		t.Errorf("got %+v, %q", waited.exit, out.text(false))
	}
	if n := len(direct.containers(t.Context())); n != 1 {
		t.Errorf("%d containers", n)
	}
}

// The fault that it catches: one lock for all nodes, or no deadline.
func TestC09_ADaemonThatHangsFailsNothingAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	node := testenv.DockerNode(t)
	direct := shared(t)
	b := on(t, node.Endpoint(), docker.Options{Instance: direct.instance, CallTimeout: 500 * time.Millisecond, WaitSlice: 300 * time.Millisecond})
	c, out := b.start(shell(`echo up; while [ ! -e /tmp/go ]; do sleep 0.1; done; exit 6`)), newOutput()
	ended := b.wait(t.Context(), c.ID, out)
	receive(t, out.first, "the first line")
	pid := b.inspect(c.ID).State.Pid
	check(t, node.Signal(syscall.SIGSTOP))
	resumed := false
	defer func() {
		if !resumed {
			_ = node.Signal(syscall.SIGCONT)
		}
	}()
	var err error
	eventually(t, "the daemon hangs", func() bool {
		_, err = b.Inspect(t.Context(), b.endpoint, c.ID)
		return err != nil
	})
	refused(t, err, activities.ReasonNodeUnreachable, "no answer in time")

	// Meanwhile the same engine works on another node.
	other, err := b.Create(t.Context(), direct.endpoint, direct.run(shell("exit 2")))
	check(t, err)
	check(t, b.Start(t.Context(), direct.endpoint, other.ID))
	exit, err := b.Wait(t.Context(), direct.endpoint, other.ID, nil)
	check(t, err)
	if exit.Code != 2 {
		t.Errorf("on the other node: %+v", exit)
	}
	touchIn(t, pid, "/tmp/go")
	check(t, node.Signal(syscall.SIGCONT))
	resumed = true
	waited := receive(t, ended, "the wait")
	check(t, waited.err)
	if waited.exit.Code != 6 {
		t.Errorf("got %+v", waited.exit)
	}
}

// The fault that it catches: one wait request for as long as the job takes.
func TestAConnectionThatDiesSilentlyIsNoticed(t *testing.T) {
	t.Parallel()
	direct := shared(t)
	p := newProxy(t, direct.endpoint)
	p.meddle = func(req *http.Request, _ func() *http.Response, _ net.Conn) bool {
		if !strings.HasSuffix(req.URL.Path, "/wait") {
			return false
		}
		<-t.Context().Done() // the answer does not come
		return true
	}
	b := on(t, p.endpoint(), docker.Options{Instance: direct.instance, WaitSlice: 200 * time.Millisecond})
	exit, err := b.Wait(t.Context(), b.endpoint, b.start(shell("sleep 0.5; exit 3")).ID, nil)
	check(t, err)
	if exit.Code != 3 {
		t.Errorf("got %+v", exit)
	}
}

func TestC37_ADaemonThatIsTooOldIsNotUsed(t *testing.T) {
	t.Parallel()
	direct := shared(t)
	p := newProxy(t, direct.endpoint)
	version := atomic.Pointer[string]{}
	old, newer := "1.39", "1.41"
	version.Store(&old)
	p.meddle = func(req *http.Request, _ func() *http.Response, client net.Conn) bool {
		if req.URL.Path != "/_ping" {
			return false
		}
		_, _ = client.Write([]byte("HTTP/1.1 200 OK\r\nApi-Version: " + *version.Load() + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
		return true
	}
	b := on(t, p.endpoint(), docker.Options{Instance: direct.instance})
	_, err := b.Probe(t.Context(), b.endpoint)
	refused(t, err, activities.ReasonNodeUnreachable, "API 1.39 is below 1.40")
	_, err = b.Create(t.Context(), b.endpoint, b.run(spec("true")))
	if trouble := refused(t, err, activities.ReasonNodeUnreachable, "API 1.39 is below 1.40"); trouble.User() {
		t.Error("it is the user's fault")
	}
	version.Store(&newer)
	info, err := b.Probe(t.Context(), b.endpoint)
	check(t, err)
	if info.APIVersion != "1.41" {
		t.Errorf("negotiated %s", info.APIVersion)
	}
}
