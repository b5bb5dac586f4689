package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/leasestore"
	"github.com/leasehold/leasehold/worker/dev"
)

// lab is a leasehold dev in a folder of its own, run as a user runs it.
type lab struct {
	dir     string
	command string // the leasehold command
	process *dev.Process
	env     map[string]string
	pool    *pgxpool.Pool
	store   *leasestore.Store
}

func open(ctx context.Context) (_ *lab, err error) {
	dir, err := os.MkdirTemp("", "leasehold-demo-")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, command: filepath.Join(dir, "leasehold")}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close(ctx))
		}
	}()
	// PostgreSQL runs under another account if the caller is root.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", l.command, "github.com/leasehold/leasehold/worker/cmd/leasehold")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build leasehold: %w\n%s", err, output)
	}
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	if l.pool, err = pgxpool.New(ctx, l.env["DATABASE_URL"]); err != nil {
		return nil, err
	}
	l.store = leasestore.New(l.pool)
	return l, nil
}

// start runs leasehold dev and waits until it says where its parts are.
func (l *lab) start(ctx context.Context) (err error) {
	home := filepath.Join(l.dir, "dev")
	l.process, err = dev.Start(ctx, dev.Command{
		Name: "leasehold dev", Path: l.command, Args: []string{"dev", "--dir", home},
		LogFile: filepath.Join(l.dir, "dev.log"),
		Ready: func(context.Context) error {
			l.env, err = readEnv(filepath.Join(home, "leasehold.env"))
			return err
		},
		StopSignal: syscall.SIGINT,
		Grace:      90 * time.Second,
	})
	return err
}

func readEnv(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[name] = strings.Trim(value, "'")
		}
	}
	return env, nil
}

// close stops leasehold dev and removes the folder.
func (l *lab) close(ctx context.Context) error {
	if l.pool != nil {
		l.pool.Close()
	}
	var err error
	if l.process != nil {
		err = l.process.Stop(context.WithoutCancel(ctx))
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// leasehold runs the command and returns what it printed and its exit code.
func (l *lab) leasehold(ctx context.Context, input string, args ...string) (stdout string, code int, err error) {
	return l.exec(ctx, input, l.command, args...)
}

// temporal runs the temporal command, as somebody without leasehold would.
func (l *lab) temporal(ctx context.Context, args ...string) (string, int, error) {
	binary, err := dev.FindTemporal()
	if err != nil {
		return "", 0, err
	}
	return l.exec(ctx, "", binary, args...)
}

// exec runs a command to its end. Only a command that cannot be run is an error.
func (l *lab) exec(ctx context.Context, input, path string, args ...string) (string, int, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = os.Environ()
	for name, value := range l.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return stdout.String() + stderr.String(), exit.ExitCode(), nil
	}
	return stdout.String(), 0, err
}
