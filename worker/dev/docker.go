package dev

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// DockerOptions says how to run a private Docker daemon.
type DockerOptions struct {
	// Dir keeps images, containers and the log. It is made if it is not there.
	// Required.
	Dir string

	// Args are further flags of dockerd, such as --live-restore.
	Args []string
}

// Docker is a running private Docker daemon. Its containers have no network
// but their own loopback.
type Docker struct {
	*Process
	endpoint string
	dir      string // of the data
	runDir   string // of the socket, and of what does not outlive the machine
}

// Endpoint returns the address of the daemon as DOCKER_HOST has it.
func (d *Docker) Endpoint() string { return d.endpoint }

// StartDocker starts a Docker daemon beside whatever others there are, and
// waits until it answers, about a second. It touches neither bridges nor the
// firewall. It returns a [*MissingError] if dockerd is not installed or the
// caller is not root, and an error if another daemon uses Dir. ctx bounds the
// start only.
//
// Kill ends the daemon alone, as a crash does: its containers run on, and the
// next start, by Restart or by StartDocker on the same Dir, finds them again
// with --live-restore and ends them without.
func StartDocker(ctx context.Context, opts DockerOptions) (*Docker, error) {
	dir, err := filepath.Abs(opts.Dir)
	if err != nil || opts.Dir == "" {
		return nil, errors.Join(errors.New("start Docker: it needs a folder"), err)
	}
	if os.Geteuid() != 0 {
		return nil, &MissingError{
			What: "the right to start a Docker daemon",
			Cure: "run as root, or have a daemon that this account may use and set DOCKER_HOST to it",
		}
	}
	dockerd, err := exec.LookPath("dockerd")
	if err != nil {
		return nil, &MissingError{What: "dockerd", Cure: "install it (Debian: apt-get install docker.io) or set DOCKER_HOST to a daemon"}
	}
	d := &Docker{dir: filepath.Join(dir, "docker"), runDir: shortRunDir(dir)}
	d.endpoint = "unix://" + filepath.Join(d.runDir, "d.sock")
	for _, folder := range []string{d.dir, d.runDir} {
		if err := os.MkdirAll(folder, 0o711); err != nil {
			return nil, fmt.Errorf("start Docker: %w", err)
		}
	}
	if err := d.removeStaleMarks(); err != nil {
		return nil, err
	}
	d.Process, err = Start(ctx, Command{
		Name: "dockerd",
		Path: dockerd,
		Args: append([]string{
			"--data-root", d.dir, "--exec-root", filepath.Join(d.runDir, "exec"),
			"--pidfile", d.pidFile(), "-H", d.endpoint, "--bridge=none", "--iptables=false", "--ip-masq=false",
		}, opts.Args...),
		LogFile: filepath.Join(dir, "docker.log"),
		Ready:   func(ctx context.Context) error { return ping(ctx, d.endpoint) },
		Grace:   30 * time.Second, // it grants its containers 10 seconds
	})
	if err != nil {
		return nil, errors.Join(err, d.sweep())
	}
	return d, nil
}

// shortRunDir returns a folder for the sockets of the installation in dir: a
// socket path has about a hundred bytes, and dir may have more.
func shortRunDir(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "/run/leasehold-" + hex.EncodeToString(sum[:4])
}

func (d *Docker) pidFile() string { return filepath.Join(d.runDir, "d.pid") }

// Restart stops the daemon if it runs, starts it again at the same endpoint and
// waits until it answers. A daemon that is stopped ends its containers first,
// unless it has --live-restore.
func (d *Docker) Restart(ctx context.Context) error {
	if err := d.Process.Stop(ctx); err != nil {
		return err
	}
	if err := d.removeStaleMarks(); err != nil {
		return err
	}
	return d.Process.Restart(ctx)
}

// Stop kills the containers and stops the daemon. Nothing of them is left
// running or mounted afterwards, even if the daemon was killed before; images
// and containers stay in Dir. It returns an error if something withstands.
func (d *Docker) Stop(ctx context.Context) error {
	d.killContainers(ctx)
	return errors.Join(d.Process.Stop(ctx), d.sweep())
}

// killContainers spares the daemon from waiting ten seconds for each. What it
// does not reach is left to the sweep.
func (d *Docker) killContainers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	daemon, err := client.NewClientWithOpts(client.WithHost(d.endpoint), client.WithAPIVersionNegotiation())
	if err != nil {
		return
	}
	defer daemon.Close()
	running, err := daemon.ContainerList(ctx, container.ListOptions{})
	if err != nil {
		return
	}
	for _, c := range running {
		_ = daemon.ContainerKill(ctx, c.ID, "KILL") // it may have ended meanwhile
	}
}

// FindDocker returns the Docker daemon of this machine: DOCKER_HOST, otherwise
// the default socket. It reports false if none answers within two seconds.
func FindDocker(ctx context.Context) (endpoint string, ok bool) {
	endpoint = os.Getenv("DOCKER_HOST")
	if endpoint == "" {
		endpoint = "unix:///var/run/docker.sock"
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return endpoint, ping(ctx, endpoint) == nil
}

func ping(ctx context.Context, endpoint string) error {
	daemon, err := client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer daemon.Close()
	_, err = daemon.Ping(ctx)
	return err
}
