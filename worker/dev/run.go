package dev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A run is one life of a process.
type run struct {
	cmd    Command
	pid    int
	logged int64         // size of the log file before this run
	done   chan struct{} // closed when the process has been reaped
	state  string        // how it ended; set before done is closed

	mu      sync.Mutex
	stopped bool // we ended it
}

// launch starts a command without waiting for it to be ready.
func launch(cmd Command) (*run, error) {
	log, err := os.OpenFile(cmd.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	r := &run{cmd: cmd, logged: info.Size(), done: make(chan struct{})}
	started := make(chan error)
	go r.live(log, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return r, nil
}

// live starts the process and reaps it. Linux ties the death signal of a child
// to the thread that made it, not to the process, so this goroutine keeps its
// thread until the child has ended.
func (r *run) live(log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	child := exec.Command(r.cmd.Path, r.cmd.Args...)
	child.Env, child.Dir = r.cmd.Env, r.cmd.Dir
	child.Stdout, child.Stderr = log, log
	child.SysProcAttr = attributes(r.cmd.Account, r.cmd.StopSignal)
	if err := child.Start(); err != nil {
		started <- err
		return
	}
	r.pid = child.Process.Pid
	started <- nil
	r.state = "exit status 0"
	if err := child.Wait(); err != nil {
		r.state = err.Error()
	}
	close(r.done)
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// crash returns an [*ExitError] if the process has ended by itself.
func (r *run) crash() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || !r.ended() {
		return nil
	}
	return &ExitError{Name: r.cmd.Name, State: r.state, LogFile: r.cmd.LogFile, LastLines: r.lastLines()}
}

func (r *run) stop(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	if !r.signal(sig, false) {
		return nil
	}
	wait := time.NewTimer(grace)
	defer wait.Stop()
	select {
	case <-r.done:
		return nil
	case <-wait.C:
	case <-ctx.Done():
	}
	return r.kill()
}

func (r *run) kill() error {
	if !r.signal(syscall.SIGKILL, true) {
		return nil
	}
	wait := time.NewTimer(5 * time.Second)
	defer wait.Stop()
	select {
	case <-r.done:
		return nil
	case <-wait.C:
		return fmt.Errorf("%s (process %d) is still there five seconds after SIGKILL", r.cmd.Name, r.pid)
	}
}

// signal reports whether there was still a process to signal. A process that
// was reaped before is not signalled: its number may belong to another by now.
func (r *run) signal(sig syscall.Signal, group bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended() {
		return false
	}
	r.stopped = true
	target := r.pid
	if group {
		target = -r.pid
	}
	_ = syscall.Kill(target, sig) // it may end at this moment; done tells
	return true
}

// lastLines returns up to 12 lines from the end of what this run has logged.
func (r *run) lastLines() []string {
	const maxLines, maxBytes = 12, 8 << 10
	log, err := os.Open(r.cmd.LogFile)
	if err != nil {
		return nil
	}
	defer log.Close()
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	from := max(r.logged, end-maxBytes)
	tail := make([]byte, max(0, end-from))
	n, err := log.ReadAt(tail, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	tail = bytes.TrimSpace(tail[:n])
	if len(tail) == 0 {
		return nil
	}
	lines := strings.Split(string(tail), "\n")
	return lines[max(0, len(lines)-maxLines):]
}
