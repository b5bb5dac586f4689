package faults_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/faults"
)

// short is how long a silence is listened to.
const short = 150 * time.Millisecond

// echo is a server that sends each line back.
func echo(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	return listener
}

func before(t *testing.T, target string) *faults.Proxy {
	t.Helper()
	proxy, err := faults.Listen(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	return proxy
}

// caller is a client of an echo.
type caller struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func call(t *testing.T, proxy *faults.Proxy) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", proxy.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

func (c *caller) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Errorf("say: %v", err)
	}
}

// hear waits for a line; 0 waits for as long as it takes.
func (c *caller) hear(within time.Duration) (string, error) {
	var deadline time.Time
	if within > 0 {
		deadline = time.Now().Add(within)
	}
	_ = c.SetReadDeadline(deadline)
	line, err := c.in.ReadString('\n')
	return line, err
}

func TestAProxyPassesOnWhatItGets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	targets := map[string]string{
		"TCP":         echo(t, "tcp", "127.0.0.1:0").Addr().String(),
		"Unix socket": "unix://" + echo(t, "unix", path).Addr().String(),
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			c := call(t, before(t, target))
			c.say("hello")
			if line, err := c.hear(0); line != "hello\n" {
				t.Errorf("heard %q, %v", line, err)
			}
		})
	}
}

func TestSilenceHoldsBackAndHealDelivers(t *testing.T) {
	t.Parallel()
	proxy := before(t, echo(t, "tcp", "127.0.0.1:0").Addr().String())
	old := call(t, proxy)
	old.say("before")
	if _, err := old.hear(0); err != nil {
		t.Fatal(err)
	}
	proxy.Silence()
	fresh := call(t, proxy) // it is accepted
	old.say("during")
	fresh.say("fresh")
	for _, c := range []*caller{old, fresh} {
		if line, err := c.hear(short); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("heard %q, %v through a silence", line, err)
		}
	}
	proxy.Heal()
	for want, c := range map[string]*caller{"during\n": old, "fresh\n": fresh} {
		if line, err := c.hear(0); line != want {
			t.Errorf("heard %q, %v after the silence, want %q", line, err, want)
		}
	}
}

func TestRefuseResetsOldAndNewConnections(t *testing.T) {
	t.Parallel()
	proxy := before(t, echo(t, "tcp", "127.0.0.1:0").Addr().String())
	old := call(t, proxy)
	old.say("before")
	if _, err := old.hear(0); err != nil {
		t.Fatal(err)
	}
	proxy.Refuse()
	for _, c := range []*caller{old, call(t, proxy)} {
		if line, err := c.hear(0); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("heard %q, %v, not a reset", line, err)
		}
	}
	proxy.Heal()
	again := call(t, proxy)
	again.say("after")
	if line, err := again.hear(0); line != "after\n" {
		t.Errorf("heard %q, %v after healing", line, err)
	}
}

func TestAHalfOpenConnectionIsNeverAnsweredAndANewOneIs(t *testing.T) {
	t.Parallel()
	proxy := before(t, echo(t, "tcp", "127.0.0.1:0").Addr().String())
	old := call(t, proxy)
	old.say("before")
	if _, err := old.hear(0); err != nil {
		t.Fatal(err)
	}
	proxy.HalfOpen()
	old.say("lost")
	if line, err := old.hear(short); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("heard %q, %v on a half-open connection", line, err)
	}
	fresh := call(t, proxy)
	fresh.say("fresh")
	if line, err := fresh.hear(0); line != "fresh\n" {
		t.Errorf("heard %q, %v on a new connection", line, err)
	}
}

func TestLatencyDelaysEachWay(t *testing.T) {
	t.Parallel()
	proxy := before(t, echo(t, "tcp", "127.0.0.1:0").Addr().String())
	c := call(t, proxy)
	proxy.Latency(short)
	began := time.Now()
	c.say("slowly")
	if _, err := c.hear(0); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*short {
		t.Errorf("there and back took %s, less than 2 × %s", took, short)
	}
}
