package dev

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// Command says how to run a part.
type Command struct {
	Name string   // what errors call it, such as "PostgreSQL"
	Path string   // the program
	Args []string // without the program's own name
	Env  []string // as os.Environ has it. Defaults to the environment of the parent.
	Dir  string   // working folder. Defaults to that of the parent.

	// LogFile receives standard output and standard error. It is appended to.
	LogFile string

	// Account runs the command under another account. Nil runs it as the
	// caller; anything else needs root.
	Account *Account

	// Ready is asked again and again until it returns nil. An attempt has a
	// second. Nil means that a started process is a ready one.
	Ready func(ctx context.Context) error

	// ReadyWithin bounds the wait for Ready. Too short and a busy machine
	// cannot start anything; too long and a part that hangs is noticed late.
	// Defaults to 60 seconds.
	ReadyWithin time.Duration

	// StopSignal asks the process to end. Defaults to SIGTERM.
	StopSignal syscall.Signal

	// Grace is how long a process may take to end after StopSignal before it
	// is killed. Defaults to 10 seconds.
	Grace time.Duration
}

// Process is a running [Command]. It can be stopped and started again, any
// number of times. Its methods may be called from several goroutines.
type Process struct {
	cmd Command

	change sync.Mutex // held while starting and stopping, so that these take turns
	mu     sync.Mutex // guards run
	run    *run
}

// Start runs a command and waits until it is ready. It returns an [*ExitError]
// if the process ends before that, and leaves nothing running when it returns
// an error. ctx bounds the start, not the life of the process.
func Start(ctx context.Context, cmd Command) (*Process, error) {
	if cmd.ReadyWithin == 0 {
		cmd.ReadyWithin = 60 * time.Second
	}
	if cmd.StopSignal == 0 {
		cmd.StopSignal = syscall.SIGTERM
	}
	if cmd.Grace == 0 {
		cmd.Grace = 10 * time.Second
	}
	p := &Process{cmd: cmd}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Done is closed when the process has ended, by itself or not. After a Restart
// there is a new channel to ask for.
func (p *Process) Done() <-chan struct{} { return p.current().done }

// Err returns nil while the process runs and after Stop or Kill, and an
// [*ExitError] once it has ended by itself.
func (p *Process) Err() error { return p.current().crash() }

// PID returns the process ID of the current or last run.
func (p *Process) PID() int { return p.current().pid }

// LogFile returns the file that the process logs to.
func (p *Process) LogFile() string { return p.cmd.LogFile }

// Signal sends a signal to the process alone, for tests: SIGSTOP makes a part
// that hangs. It returns an error if the process has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	r := p.current()
	if r.ended() {
		return fmt.Errorf("signal %s: it has ended", p.cmd.Name)
	}
	return syscall.Kill(r.pid, sig)
}

// Stop asks the process to end and waits for it. After the command's grace, or
// when ctx ends, the process is killed. A process that has ended already is
// fine. It returns an error only if the process outlives even SIGKILL by five
// seconds.
func (p *Process) Stop(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	return p.current().stop(ctx, p.cmd.StopSignal, p.cmd.Grace)
}

// Kill ends the process by SIGKILL and waits for it, up to five seconds.
func (p *Process) Kill() error {
	p.change.Lock()
	defer p.change.Unlock()
	return p.current().kill()
}

// Restart stops the process if it runs, starts the same command again and
// waits until it is ready. It returns what [Start] returns.
func (p *Process) Restart(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	if err := p.current().stop(ctx, p.cmd.StopSignal, p.cmd.Grace); err != nil {
		return err
	}
	return p.start(ctx)
}

func (p *Process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func (p *Process) start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("start %s: %w", p.cmd.Name, err)
	}
	r, err := launch(p.cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.cmd.Name, err)
	}
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	if err := p.awaitReady(ctx, r); err != nil {
		return errors.Join(err, r.kill())
	}
	return nil
}

func (p *Process) awaitReady(ctx context.Context, r *run) error {
	if p.cmd.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.cmd.ReadyWithin)
	defer cancel()
	ask := time.NewTicker(25 * time.Millisecond)
	defer ask.Stop()
	for began := time.Now(); ; {
		attempt, cancelAttempt := context.WithTimeout(ctx, time.Second)
		err := p.cmd.Ready(attempt)
		cancelAttempt()
		if r.ended() { // somebody else may have answered
			return r.crash()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ask.C:
		case <-r.done:
			return r.crash()
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready after %s: %w%s", p.cmd.Name,
				time.Since(began).Round(time.Millisecond), err, quoteLines(p.cmd.LogFile, r.lastLines()))
		}
	}
}
