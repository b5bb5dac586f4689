package docker

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/docker/docker/api/types/container"

	"github.com/leasehold/leasehold/activities"
)

// capabilities are what a program keeps of root's: enough for usual images to
// take over their files and drop to another user. Docker's own default set has
// raw sockets, device nodes, chroot, file capabilities and the audit log on top.
var capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}

// The log of a container on its node: the last 10 to 20 MiB.
var logConfig = container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "2"}}

func (e *Engine) createOnce(ctx context.Context, endpoint string, run activities.ContainerRun, img image, named string) (activities.Container, error) {
	return call(ctx, e, endpoint, func(ctx context.Context, n *node) (activities.Container, error) {
		network, warning := e.network(run.Spec, n)
		config := processConfig(run, img)
		config.Labels = e.labels(run, n.info.ID)
		made, err := n.quick.ContainerCreate(ctx, config, hostConfig(run.Spec, network), nil, nil, named)
		if err != nil {
			return activities.Container{}, err
		}
		if warning != "" {
			made.Warnings = append(made.Warnings, warning)
		}
		return activities.Container{
			ID: made.ID, Name: named, JobID: run.JobID, NodeID: run.NodeID, Attempt: run.Attempt, Epoch: run.Epoch,
			State: activities.ContainerCreated, Warnings: made.Warnings,
		}, nil
	})
}

// network is what the spec asks for, then the installation's default, then
// bridge. Only a bridge that nobody asked for may be missing on the node.
func (e *Engine) network(spec activities.ContainerSpec, n *node) (mode, warning string) {
	switch {
	case spec.Network != "":
		return spec.Network, ""
	case e.opts.DefaultNetwork != "":
		return e.opts.DefaultNetwork, ""
	case n.bridge:
		return activities.NetworkBridge, ""
	}
	return activities.NetworkNone, "the node has no bridge network; the container has none but its own loopback"
}

func processConfig(run activities.ContainerRun, img image) *container.Config {
	spec := run.Spec
	config := &container.Config{
		Image: img.ref, Env: environment(run), WorkingDir: spec.WorkingDir, User: spec.User, StopSignal: signal(spec.StopSignal),
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}
	if spec.Entrypoint != nil {
		config.Entrypoint = append([]string{}, *spec.Entrypoint...) // [] clears, null keeps
	}
	if spec.Command != nil {
		config.Cmd = append([]string{}, *spec.Command...)
		if len(config.Cmd) == 0 && spec.Entrypoint == nil { // checked: the image has one
			// To the daemon no command means the image's, unless there is an entrypoint.
			config.Entrypoint = img.entrypoint
		}
	}
	return config
}

// environment is sorted, so that a container can be compared with another. What
// the program learns of its lease is the epoch, never the token.
func environment(run activities.ContainerRun) []string {
	env := maps.Clone(run.Spec.Env)
	if env == nil {
		env = map[string]string{}
	}
	env["LEASEHOLD_JOB_ID"] = run.JobID
	env["LEASEHOLD_EPOCH"] = strconv.FormatInt(run.Epoch, 10)
	env["LEASEHOLD_ATTEMPT"] = strconv.Itoa(run.Attempt)
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

func signal(name string) string {
	if name == "" || len(name) > 3 && name[:3] == "SIG" {
		return name
	}
	return fmt.Sprint("SIG", name)
}

func hostConfig(spec activities.ContainerSpec, network string) *container.HostConfig {
	init := true // as PID 1 a plain program would ignore the stop signal
	return &container.HostConfig{
		AutoRemove:     false, // it would take the exit code with it
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		Init:           &init,
		CapDrop:        []string{"ALL"},
		CapAdd:         capabilities,
		SecurityOpt:    []string{"no-new-privileges"},
		ReadonlyRootfs: spec.ReadOnly,
		NetworkMode:    container.NetworkMode(network),
		LogConfig:      logConfig,
		Resources: container.Resources{
			Memory:     spec.Memory,
			MemorySwap: spec.Memory, // the same: no swap, so that the limit is one
			NanoCPUs:   int64(math.Round(spec.CPUs*100)) * 1e7,
			PidsLimit:  &spec.PidsLimit,
		},
	}
}
