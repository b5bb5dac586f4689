package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a call of the command that runs.
type process struct {
	cmd      *exec.Cmd
	out, err watched
	ended    chan struct{}
}

// start starts the command in this home.
func (h home) start(args ...string) (*process, error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.out.changed, p.err.changed = make(chan struct{}), make(chan struct{})
	for name, value := range h.vars {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	// A group of its own: it is we who send it signals, not the terminal.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // its code is read from ProcessState
		close(p.ended)
	}()
	return p, nil
}

// answer is what a call came to.
type answer struct {
	code     int
	out, err string
}

const runWithin = 60 * time.Second

// run runs the command to its end, with nothing on standard input.
func (h home) run(t *testing.T, args ...string) answer {
	t.Helper()
	p, err := h.start(args...)
	if err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

// wait waits for the end.
func (p *process) wait(t *testing.T) answer {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(runWithin):
		_ = p.cmd.Process.Kill()
		<-p.ended
		t.Fatalf("%s did not end within %s; it said:\n%s%s", p.cmd, runWithin, p.out.String(), p.err.String())
	}
	return answer{code: p.cmd.ProcessState.ExitCode(), out: p.out.String(), err: p.err.String()}
}

// ok runs the command and fails the test unless it succeeds. It returns what
// the command printed.
func (h home) ok(t *testing.T, args ...string) string {
	t.Helper()
	got := h.run(t, args...)
	if got.code != 0 {
		t.Fatalf("leasehold %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.out, got.err)
	}
	return got.out
}

// signal is Ctrl-C, by SIGINT.
func (p *process) signal(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// interrupt sends SIGINT and waits for an end with exit code 0.
func (p *process) interrupt() error {
	_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended; its code tells
	select {
	case <-p.ended:
	case <-time.After(runWithin):
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		return fmt.Errorf("%s did not end within %s of SIGINT", p.cmd, runWithin)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s: exit code %d\n%s", p.cmd, code, p.err.String())
	}
	return nil
}

// await waits until the process has said something.
func (p *process) await(ctx context.Context, in *watched, text string) error {
	for {
		said, changed := in.look()
		if strings.Contains(said, text) {
			return nil
		}
		select {
		case <-changed:
		case <-p.ended:
			if strings.Contains(in.String(), text) {
				return nil
			}
			return errors.New(p.cmd.String() + " has ended:\n" + p.out.String() + p.err.String())
		case <-ctx.Done():
			return fmt.Errorf("%s did not say %q in time, but:\n%s%s", p.cmd, text, p.out.String(), p.err.String())
		}
	}
}

// watched is output that can be waited for.
type watched struct {
	mu      sync.Mutex
	said    bytes.Buffer
	changed chan struct{} // closed at the next change
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
	return w.said.Write(p)
}

func (w *watched) look() (string, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.String(), w.changed
}

func (w *watched) String() string {
	said, _ := w.look()
	return said
}
