package dev_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/worker/dev"
)

func shell(dir, script string) dev.Command {
	return dev.Command{Name: "the script", Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(dir, "log")}
}

func TestACrashIsReportedWithTheLastLogLines(t *testing.T) {
	t.Parallel()
	cmd := shell(t.TempDir(), "echo one; echo two >&2; exit 3")
	cmd.Ready = func(context.Context) error { return errors.New("not yet") }
	began := time.Now()
	_, err := dev.Start(t.Context(), cmd)
	exit, ok := errors.AsType[*dev.ExitError](err)
	if !ok {
		t.Fatalf("got %v, want an ExitError", err)
	}
	if want := []string{"one", "two"}; !slices.Equal(exit.LastLines, want) || exit.State != "exit status 3" {
		t.Errorf("got %q %q, want %q and exit status 3", exit.LastLines, exit.State, want)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s to notice", took)
	}
}

func TestACrashAfterTheStartIsReportedToo(t *testing.T) {
	t.Parallel()
	p, err := dev.Start(t.Context(), shell(t.TempDir(), "read line; echo the end; exit 1"))
	check(t, err)
	await(t, p.Done(), "the script ends")
	exit, ok := errors.AsType[*dev.ExitError](p.Err())
	if !ok || !slices.Equal(exit.LastLines, []string{"the end"}) {
		t.Errorf("got %v, want an ExitError with the last line", p.Err())
	}
	check(t, p.Stop(t.Context()))
}

func TestOnlyTheLinesOfTheLastRunAreQuoted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "log"), "of an earlier run\n")
	p, err := dev.Start(t.Context(), shell(dir, "exit 1"))
	check(t, err)
	await(t, p.Done(), "the script ends")
	if exit, ok := errors.AsType[*dev.ExitError](p.Err()); !ok || len(exit.LastLines) > 0 {
		t.Errorf("got %v, want no lines", p.Err())
	}
}

func TestAProcessThatIsNeverReadyIsEnded(t *testing.T) {
	t.Parallel()
	cmd := shell(t.TempDir(), "echo here I am; exec sleep 100")
	var ready int
	cmd.Ready = func(context.Context) error { ready++; return errors.New("not yet") }
	cmd.ReadyWithin = 200 * time.Millisecond
	_, err := dev.Start(t.Context(), cmd)
	if err == nil || !strings.Contains(err.Error(), "was not ready") || !strings.Contains(err.Error(), "here I am") {
		t.Errorf("got %v", err)
	}
	if ready < 2 {
		t.Errorf("asked %d times", ready)
	}
}

func TestStopKillsAProcessThatDoesNotListen(t *testing.T) {
	t.Parallel()
	cmd := shell(t.TempDir(), "trap '' TERM; echo deaf; while :; do sleep 100; done")
	cmd.Grace = 50 * time.Millisecond
	cmd.Ready = func(context.Context) error {
		log, err := os.ReadFile(cmd.LogFile)
		if err == nil && !strings.Contains(string(log), "deaf") {
			err = errors.New("it listens still")
		}
		return err
	}
	p, err := dev.Start(t.Context(), cmd)
	check(t, err)
	check(t, p.Stop(t.Context()))
	await(t, p.Done(), "the process ends")
	check(t, p.Err())
	if err := p.Signal(syscall.SIGSTOP); err == nil {
		t.Error("a process that has ended took a signal")
	}
}

func TestRestartBeginsANewRun(t *testing.T) {
	t.Parallel()
	p, err := dev.Start(t.Context(), shell(t.TempDir(), "exec sleep 100"))
	check(t, err)
	first, done := p.PID(), p.Done()
	check(t, p.Restart(t.Context()))
	await(t, done, "the first run ends")
	if p.PID() == first || p.Err() != nil {
		t.Errorf("process %d after process %d: %v", p.PID(), first, p.Err())
	}
	check(t, p.Kill())
}

const parentArgument = "be-a-parent"

// beParent starts a child that does not end by itself, prints its number and
// waits to be killed.
func beParent(dir string) {
	child, err := dev.Start(context.Background(), shell(dir, "exec sleep 1000")) //nolint:forbidigo // a process of its own
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(os.Stdout, child.PID())
	<-child.Done()
}

// The fault that it catches: a child without a death signal.
func TestAChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux ends children with their parent")
	}
	self, err := os.Executable()
	check(t, err)
	parent := exec.CommandContext(t.Context(), self, parentArgument, t.TempDir())
	out, err := parent.StdoutPipe()
	check(t, err)
	check(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check(t, err)
	child, err := strconv.Atoi(strings.TrimSpace(line))
	check(t, err)
	check(t, syscall.Kill(child, 0))
	check(t, parent.Process.Kill())
	_ = parent.Wait() // it was killed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for t.Context().Err() == nil && running(child) {
			<-time.After(5 * time.Millisecond)
		}
	}()
	await(t, ended, "the child ends")
}

// running does not count a zombie: who inherits the child may be slow to reap it.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
