package docker_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/tests/testenv"
)

// The fault that it catches: starting whatever is not running. The daemon runs
// an ended container again.
func TestC11_AContainerRunsOnce(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c := b.create(shell("echo ran"))
	var starts sync.WaitGroup
	for range 4 {
		starts.Go(func() {
			if err := b.Start(t.Context(), b.endpoint, c.ID); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	_, err := b.Wait(t.Context(), b.endpoint, c.ID, nil)
	check(t, err)
	check(t, b.Start(t.Context(), b.endpoint, c.ID))
	out := newOutput()
	_, err = b.Wait(t.Context(), b.endpoint, c.ID, out.add)
	check(t, err)
	if out.text(false) != "ran\n" {
		t.Errorf("the log says %q", out.text(false))
	}
}

// The fault that it catches: sending a start again whose answer was lost.
func TestC13_ALostAnswerToStartIsLookedUp(t *testing.T) {
	t.Parallel()
	direct := shared(t)
	p := newProxy(t, direct.endpoint)
	var starts atomic.Int32
	p.meddle = func(req *http.Request, forward func() *http.Response, _ net.Conn) bool {
		if strings.HasSuffix(req.URL.Path, "/start") {
			starts.Add(1)
			discard(forward()) //nolint:bodyclose // discard closes it; nobody hears of the answer
			return true
		}
		return false
	}
	b := on(t, p.endpoint(), docker.Options{Instance: direct.instance})
	exit, out := b.finish(shell("echo ran"))
	if exit.Code != 0 || out.text(false) != "ran\n" || starts.Load() != 1 {
		t.Errorf("got %+v, %q after %d starts", exit, out.text(false), starts.Load())
	}
}

func TestC13_ACreatedContainerIsFoundAndRemoved(t *testing.T) {
	t.Parallel()
	b := shared(t)
	b.create(spec("true"))
	found, err := b.Find(t.Context(), b.endpoint, b.job)
	check(t, err)
	if len(found) != 1 || found[0].State != activities.ContainerCreated {
		t.Fatalf("found %+v", found)
	}
	if exit, err := b.Stop(t.Context(), b.endpoint, found[0].ID, time.Second); err != nil || exit != (activities.Exit{}) {
		t.Errorf("stopping it gives %+v, %v", exit, err)
	}
	check(t, b.Remove(t.Context(), b.endpoint, found[0].ID))
	if left := b.containers(t.Context()); len(left) != 0 {
		t.Errorf("%d are left", len(left))
	}
}

func TestC19_AProgramThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec  activities.ContainerSpec
		exit  int
		words string
	}{
		"no such program":  {spec("/bin/doesnotexist"), 127, "No such file or directory"},
		"not in the path":  {spec("doesnotexist"), 127, "No such file or directory"},
		"a command line":   {spec("echo hi"), 127, "give one list item per argument"},
		"a file without x": {spec("/etc/passwd"), 126, "Permission denied"},
		"a directory":      {spec("/etc"), 126, ""},
		"no such user":     {withUser(spec("true"), "nosuchuser"), 126, "no such user"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := shared(t)
			c, err := b.Create(t.Context(), b.endpoint, b.run(tt.spec))
			check(t, err)
			// Init is executed, and only then the program. So the refusal may
			// come from Start or from Wait; and it comes again.
			for range 2 {
				err = b.Start(t.Context(), b.endpoint, c.ID)
				if err == nil {
					_, err = b.Wait(t.Context(), b.endpoint, c.ID, newOutput().add)
				}
				trouble := refused(t, err, activities.ReasonCannotStart, tt.words)
				if trouble.ExitCode != tt.exit || !trouble.User() {
					t.Errorf("exit code %d, user %t: %v", trouble.ExitCode, trouble.User(), err)
				}
				_, err = b.Wait(t.Context(), b.endpoint, c.ID, nil)
				refused(t, err, activities.ReasonCannotStart, tt.words)
			}
		})
	}
}

func withUser(s activities.ContainerSpec, user string) activities.ContainerSpec {
	s.User = user
	return s
}

func TestAWorkingDirectoryThatCannotBeMade(t *testing.T) {
	t.Parallel()
	b := shared(t)
	s := spec("true")
	s.WorkingDir = "/etc/passwd"
	_, err := b.Create(t.Context(), b.endpoint, b.run(s))
	refused(t, err, activities.ReasonInvalidSpec, "directory")
}

func TestC19_AProgramThatExits127ByItselfHasStarted(t *testing.T) {
	t.Parallel()
	exit, out := shared(t).finish(shell("nosuchcmd"))
	if exit.Code != 127 || !strings.Contains(out.text(true), "not found") {
		t.Errorf("got %+v, %q", exit, out.text(true))
	}
}

func TestC21_ArgumentsArriveAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	_, out := shared(t).finish(spec("/bin/sh", "-c", `printf "%s|" "$@"`, "_", "a b", `c"d`, "e'f", "$HOME", "*", "", "--"))
	if got, want := out.text(false), `a b|c"d|e'f|$HOME|*||--|`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestC22_EntrypointAndCommandAbsentEmptyGiven(t *testing.T) {
	t.Parallel()
	b := on(t, testenv.Docker(t))
	b.image("entry-"+b.job[:8]+":1", `ENTRYPOINT ["/bin/echo","EP"]`, `CMD ["defcmd"]`)
	list := func(items ...string) *[]string { return &items }
	empty := &[]string{}
	tests := map[string]struct {
		entrypoint, command *[]string
		says                string
	}{
		"nothing":                {nil, nil, "EP defcmd\n"},
		"a command":              {nil, list("x", "y"), "EP x y\n"},
		"an empty command":       {nil, empty, "EP\n"},
		"no entrypoint":          {empty, list("/bin/echo", "x"), "x\n"},
		"an entrypoint":          {list("/bin/echo", "E"), nil, "E\n"},
		"entrypoint and command": {list("/bin/echo", "E"), list("x"), "E x\n"},
		"nothing at all":         {empty, empty, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := on(t, b.endpoint)
			s := activities.ContainerSpec{Image: "entry-" + b.job[:8] + ":1", Entrypoint: tt.entrypoint, Command: tt.command}
			if tt.says == "" {
				_, err := c.Create(t.Context(), c.endpoint, c.run(s))
				refused(t, err, activities.ReasonInvalidSpec, "command")
				return
			}
			if _, out := c.finish(s); out.text(false) != tt.says {
				t.Errorf("says %q, want %q", out.text(false), tt.says)
			}
		})
	}
}

func TestC23_EnvironmentValuesArriveByteForByte(t *testing.T) {
	t.Parallel()
	b := shared(t)
	s := spec("/bin/env")
	s.Env = map[string]string{"A": "1=2", "B": "", "NL": "a\nb", "E": "é€"}
	_, out := b.finish(s)
	for _, want := range []string{"A=1=2\n", "B=\n", "NL=a\nb\n", "E=é€\n", "LEASEHOLD_JOB_ID=" + b.job + "\n", "LEASEHOLD_EPOCH=1\n", "LEASEHOLD_ATTEMPT=1\n"} {
		if !strings.Contains(out.text(false), want) {
			t.Errorf("%q is missing in %q", want, out.text(false))
		}
	}
	for _, env := range []map[string]string{{"": "secret"}, {"A=B": "secret"}, {"A": "secret\x00"}, {"LEASEHOLD_EPOCH": "secret"}} {
		c := shared(t)
		s.Env = env
		_, err := c.Create(t.Context(), c.endpoint, c.run(s))
		trouble := refused(t, err, activities.ReasonInvalidSpec, "container.env.")
		if strings.Contains(trouble.Message, "secret") {
			t.Errorf("it shows the value: %s", trouble.Message)
		}
		if len(c.containers(t.Context())) != 0 {
			t.Error("a container was made")
		}
	}
}

func TestC15_StopGivesGraceToATidyProgram(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c, out := b.start(shell(`trap "sleep 1; echo cleaned; exit 0" TERM; echo up; while :; do sleep 0.1; done`)), newOutput()
	ended := b.wait(t.Context(), c.ID, out)
	receive(t, out.first, "the first line")
	exit, err := b.Stop(t.Context(), b.endpoint, c.ID, 20*time.Second)
	check(t, err)
	if exit.Code != 0 || exit.FinishedAt.IsZero() {
		t.Errorf("got %+v", exit)
	}
	waited := receive(t, ended, "the wait")
	check(t, waited.err)
	if waited.exit.Code != 0 || out.text(false) != "up\ncleaned\n" {
		t.Errorf("got %+v, %q", waited.exit, out.text(false))
	}
	if again, err := b.Stop(t.Context(), b.endpoint, c.ID, time.Second); err != nil || again != exit {
		t.Errorf("stopping it again gives %+v, %v", again, err)
	}
}

func TestC16_WhatAProgramMakesOfTheStopSignal(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		signal string
		code   int
	}{
		"it does not care":      {"echo up; sleep 100", "", 143},
		"it ignores it":         {`trap "" TERM; echo up; while :; do sleep 0.1; done`, "", 137},
		"it ends well":          {`trap "exit 0" TERM; echo up; while :; do sleep 0.1; done`, "", 0},
		"it ends otherwise":     {`trap "exit 7" TERM; echo up; while :; do sleep 0.1; done`, "", 7},
		"it has its own signal": {`trap "exit 8" USR1; echo up; while :; do sleep 0.1; done`, "SIGUSR1", 8},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := shared(t)
			s := shell(tt.script)
			s.StopSignal = tt.signal
			c, out := b.start(s), newOutput()
			ended := b.wait(t.Context(), c.ID, out)
			receive(t, out.first, "the first line")
			exit, err := b.Stop(t.Context(), b.endpoint, c.ID, 2*time.Second)
			check(t, err)
			if exit.Code != tt.code || exit.OOMKilled {
				t.Errorf("got %+v, want code %d", exit, tt.code)
			}
			if waited := receive(t, ended, "the wait"); waited.err != nil || waited.exit.Code != tt.code {
				t.Errorf("the wait gives %+v", waited)
			}
		})
	}
}

// The fault that it catches: taking every container that vanished for one that
// was removed while it ran.
func TestC33_PruningAfterTheEndLeavesTheCode(t *testing.T) {
	t.Parallel()
	direct := shared(t)
	p := newProxy(t, direct.endpoint)
	waiting := make(chan struct{}, 8)
	p.meddle = func(req *http.Request, forward func() *http.Response, client net.Conn) bool {
		if !strings.HasSuffix(req.URL.Path, "/wait") {
			return false
		}
		resp := forward()
		defer discard(resp)
		waiting <- struct{}{}
		body, _ := io.ReadAll(resp.Body) // the program has ended, and before we hear of it somebody cleans up
		id := strings.Split(req.URL.Path, "/")[3]
		_ = direct.outside.ContainerRemove(context.WithoutCancel(t.Context()), id, container.RemoveOptions{})
		_ = stream(client, resp, bytes.NewReader(body))
		return true
	}
	b := on(t, p.endpoint(), docker.Options{Instance: direct.instance})
	c, out := b.start(shell(`trap "exit 5" TERM; echo up; while :; do sleep 0.1; done`)), newOutput()
	ended := b.wait(t.Context(), c.ID, out)
	receive(t, out.first, "the first line")
	receive(t, waiting, "the wait request")
	check(t, direct.outside.ContainerKill(t.Context(), c.ID, "TERM"))
	waited := receive(t, ended, "the wait")
	check(t, waited.err)
	if waited.exit.Code != 5 || out.text(false) != "up\n" {
		t.Errorf("got %+v, %q", waited.exit, out.text(false))
	}
}

func TestC33_AContainerThatIsGoneBeforeItsStartSaysSo(t *testing.T) {
	t.Parallel()
	b := shared(t)
	c := b.create(spec("true"))
	check(t, b.outside.ContainerRemove(t.Context(), c.ID, container.RemoveOptions{}))
	refused(t, b.Start(t.Context(), b.endpoint, c.ID), activities.ReasonContainerGone)
	if again := b.create(spec("true")); again.ID == c.ID || again.State != activities.ContainerCreated {
		t.Errorf("got %+v", again)
	}
}
