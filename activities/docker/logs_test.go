package docker_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/tests/testenv"
)

func TestLinesComeWithTheirStreamAndTime(t *testing.T) {
	t.Parallel()
	exit, out := shared(t).finish(shell("echo one; echo; echo two >&2; echo three; printf four"))
	if out.text(false) != "one\n\nthree\nfour\n" || out.text(true) != "two\n" || exit.LogsIncomplete {
		t.Errorf("got %q and %q, %+v", out.text(false), out.text(true), exit)
	}
	for _, line := range out.lines {
		if line.Time.Before(exit.StartedAt.Add(-1e9)) || line.Time.After(exit.FinishedAt.Add(1e9)) {
			t.Errorf("%q at %s", line.Text, line.Time)
		}
	}
}

func TestC24_ADaemonWithoutLogsStillHasOurs(t *testing.T) {
	t.Parallel()
	b := on(t, testenv.DockerNode(t, "--log-driver=none").Endpoint())
	if _, out := b.finish(shell("echo hi")); out.text(false) != "hi\n" {
		t.Errorf("got %q", out.text(false))
	}
}

// The fault that it catches: a log that cannot be read fails the job.
func TestC24_AnUnreadableLogIsNoFailure(t *testing.T) {
	t.Parallel()
	b := shared(t)
	made, err := b.outside.ContainerCreate(t.Context(),
		&container.Config{Image: testenv.Image, Cmd: []string{"echo", "hi"}, Labels: map[string]string{"leasehold.instance": b.instance}},
		&container.HostConfig{LogConfig: container.LogConfig{Type: "none"}}, nil, nil, "")
	check(t, err)
	check(t, b.outside.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	exit, err := b.Wait(t.Context(), b.endpoint, made.ID, newOutput().add)
	check(t, err)
	if exit.Code != 0 || !exit.LogsIncomplete {
		t.Errorf("got %+v", exit)
	}
}

// The fault that it catches: taking each 16 KiB that the daemon sends for a
// line, or stopping at a long one.
func TestC25_LongLinesAreJoinedAndCutAtTheLimit(t *testing.T) {
	t.Parallel()
	exit, out := shared(t).finish(shell(`head -c 40000 /dev/zero | tr "\0" a; echo; head -c 200000 /dev/zero | tr "\0" b; echo; echo next`))
	if exit.Code != 0 || len(out.lines) != 3 {
		t.Fatalf("got %+v and %d lines", exit, len(out.lines))
	}
	a, b, next := out.lines[0], out.lines[1], out.lines[2]
	if a.Text != strings.Repeat("a", 40000) || a.Truncated {
		t.Errorf("the first has %d bytes, truncated %t", len(a.Text), a.Truncated)
	}
	if b.Text != strings.Repeat("b", 64<<10) || !b.Truncated {
		t.Errorf("the second has %d bytes, truncated %t", len(b.Text), b.Truncated)
	}
	if next.Text != "next" || next.Truncated {
		t.Errorf("then comes %+v", next)
	}
}

func TestC26_BytesBecomeText(t *testing.T) {
	t.Parallel()
	_, out := shared(t).finish(shell(`printf "\377\376 ok\n"; printf "a\000b\n"; printf "\303"; sleep 0.2; printf "\251\n"`))
	if len(out.lines) != 3 {
		t.Fatalf("got %d lines", len(out.lines))
	}
	for _, line := range out.lines {
		if !utf8.ValidString(line.Text) || strings.ContainsRune(line.Text, 0) {
			t.Errorf("%q", line.Text)
		}
	}
	if !strings.HasSuffix(out.lines[0].Text, " ok") || out.lines[1].Text != "ab" || out.lines[2].Text != "é" {
		t.Errorf("got %q", out.text(false))
	}
}

func TestC27_ATerminalsStreamHasNoFrames(t *testing.T) {
	t.Parallel()
	b := shared(t)
	made, err := b.outside.ContainerCreate(t.Context(),
		&container.Config{Image: testenv.Image, Tty: true, Cmd: []string{"sh", "-c", "echo out; echo; echo err >&2"}, Labels: map[string]string{"leasehold.instance": b.instance}},
		nil, nil, nil, "")
	check(t, err)
	check(t, b.outside.ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	out := newOutput()
	_, err = b.Wait(t.Context(), b.endpoint, made.ID, out.add)
	check(t, err)
	if out.text(false) != "out\n\nerr\n" {
		t.Errorf("got %q", out.text(false))
	}
}

// The fault that it catches: beginning again with the last stamp, without
// counting, or from now.
func TestLogsGoOnWhereTheyBroke(t *testing.T) {
	t.Parallel()
	direct := shared(t)
	p := newProxy(t, direct.endpoint)
	b := on(t, p.endpoint(), withInstance(direct.instance))
	c := b.start(shell(`i=0; while [ $i -lt 400 ]; do echo out $i; echo err $i >&2; i=$((i+1)); [ $((i%20)) = 0 ] && sleep 0.1; done`))
	out := newOutput()
	cuts := 0
	exit, err := b.Wait(t.Context(), b.endpoint, c.ID, func(line activities.LogLine) {
		out.add(line)
		if len(out.lines)%97 == 0 {
			cuts++
			p.cut()
			p.up()
		}
	})
	check(t, err)
	if exit.Code != 0 || exit.LogsIncomplete || cuts < 3 {
		t.Errorf("got %+v after %d cuts", exit, cuts)
	}
	var wantOut, wantErr strings.Builder
	for i := range 400 {
		wantOut.WriteString("out " + itoa(i) + "\n")
		wantErr.WriteString("err " + itoa(i) + "\n")
	}
	if out.text(false) != wantOut.String() || out.text(true) != wantErr.String() {
		t.Errorf("lines are missing or doubled: %d of 800", len(out.lines))
	}
}
