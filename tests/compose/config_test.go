package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/worker/dev"
)

// project is what Compose makes of the file, as far as the tests look at it.
type project struct {
	Services map[string]service `json:"services"`
}

type service struct {
	Image string `json:"image"`
	Build *struct {
		Dockerfile string `json:"dockerfile"`
	} `json:"build"`
	Environment map[string]string `json:"environment"`
	Ports       []struct {
		HostIP    string `json:"host_ip"`
		Target    int    `json:"target"`
		Published string `json:"published"`
	} `json:"ports"`
	NetworkMode string `json:"network_mode"`
	Privileged  bool   `json:"privileged"`
	Healthcheck *struct {
		Test []string `json:"test"`
	} `json:"healthcheck"`
	DependsOn map[string]struct {
		Condition string `json:"condition"`
	} `json:"depends_on"`
}

// config runs compose config with the variables and nothing else that could
// change its answer.
func config(t *testing.T, variables map[string]string) project {
	t.Helper()
	command, err := find()
	if missing, ok := errors.AsType[*dev.MissingError](err); ok && os.Getenv("CI") == "" {
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(command[1:], []string{"-f", "../../docker-compose.temporal.yml", "--env-file", os.DevNull, "config", "--format", "json"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for name, value := range variables {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		t.Fatalf("%s: %v\n%s", cmd, err, said.String())
	}
	var read project
	if err := json.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

var versionTwo = regexp.MustCompile(`\bv?([2-9]|[1-9]\d+)\.\d+\.\d+`)

// find returns the command: docker compose, or what tests/setup has built.
// Version 1, which Debian has, does not know conditions that a service ends.
var find = sync.OnceValues(func() ([]string, error) {
	version, err := exec.Command("docker", "compose", "version").Output()
	if err == nil && versionTwo.Match(version) {
		return []string{"docker", "compose"}, nil
	}
	built, err := filepath.Abs("../../.bin/compose")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(built); err != nil {
		return nil, &dev.MissingError{What: "Docker Compose v2", Cure: "build it (tests/setup compose) or install Docker's"}
	}
	return []string{built}, nil
})
