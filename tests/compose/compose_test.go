// Package compose reads docker-compose.temporal.yml with Docker Compose v2, as
// whoever runs it does, and checks what it promises.
package compose

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// services are all there are, with what each of them waits for.
var services = map[string]map[string]string{
	"postgres": nil, "temporal": nil, "node-1": nil, "node-2": nil,
	"migrate":    {"postgres": healthy},
	"add-node-1": {"migrate": done, "node-1": healthy},
	"add-node-2": {"migrate": done, "node-2": healthy},
	"worker":     {"temporal": healthy, "add-node-1": done, "add-node-2": done},
}

const (
	healthy = "service_healthy"
	done    = "service_completed_successfully"
)

// ending are the services that do one thing and end.
var ending = []string{"migrate", "add-node-1", "add-node-2"}

func TestEachServiceWaitsForWhatItNeeds(t *testing.T) {
	t.Parallel()
	project := config(t, nil)
	if got, want := slices.Sorted(maps.Keys(project.Services)), slices.Sorted(maps.Keys(services)); !slices.Equal(got, want) {
		t.Fatalf("the services are %q, want %q", got, want)
	}
	for name, needs := range services {
		got := map[string]string{}
		for other, dependency := range project.Services[name].DependsOn {
			got[other] = dependency.Condition
		}
		if !maps.Equal(got, needs) {
			t.Errorf("%s waits for %v, want %v", name, got, needs)
		}
	}
}

func TestEachServiceThatStaysHasAHealthCheck(t *testing.T) {
	t.Parallel()
	for name, service := range config(t, nil).Services {
		ends := slices.Contains(ending, name)
		if has := service.Healthcheck != nil && len(service.Healthcheck.Test) > 1; has == ends {
			t.Errorf("%s has a health check: %t", name, has)
		}
	}
}

// A port without an address would be open to the network, with a password that
// stands in the file, and past most firewalls.
func TestPortsArePublishedOnTheLoopbackInterfaceOnly(t *testing.T) {
	t.Parallel()
	published := map[string]string{}
	for name, service := range config(t, nil).Services {
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes port %d on %q", name, port.Target, port.HostIP)
			}
			published[name+":"+strconv.Itoa(port.Target)] = port.Published
		}
		if service.NetworkMode != "" {
			t.Errorf("%s has network mode %s, which may open ports that are not listed", name, service.NetworkMode)
		}
	}
	want := map[string]string{"postgres:5432": "5432", "temporal:7233": "7233", "temporal:8233": "8233"}
	if !maps.Equal(published, want) {
		t.Errorf("the published ports are %v, want %v", published, want)
	}
}

func TestPortsCanBeChosen(t *testing.T) {
	t.Parallel()
	for variable, service := range map[string]string{"POSTGRES_PORT": "postgres", "TEMPORAL_PORT": "temporal", "UI_PORT": "temporal"} {
		var published []string
		for _, port := range config(t, map[string]string{variable: "12345"}).Services[service].Ports {
			published = append(published, port.Published)
		}
		if !slices.Contains(published, "12345") {
			t.Errorf("with %s=12345, %s publishes %q", variable, service, published)
		}
	}
}

var pinned = regexp.MustCompile(`:v?\d+\.\d+[\w.-]*$`)

func TestImagesArePinnedOrBuiltHere(t *testing.T) {
	t.Parallel()
	for name, service := range config(t, nil).Services {
		switch {
		case service.Build != nil:
			if service.Build.Dockerfile != "worker/cmd/leasehold/Dockerfile" || service.Image != "leasehold:dev" {
				t.Errorf("%s is built from %s as %s", name, service.Build.Dockerfile, service.Image)
			}
		case !pinned.MatchString(service.Image):
			t.Errorf("the image of %s is %q, which is no fixed version", name, service.Image)
		}
	}
}

func TestOurOwnContainersKnowBothServers(t *testing.T) {
	t.Parallel()
	project := config(t, nil)
	for _, name := range append([]string{"worker"}, ending...) {
		env := project.Services[name].Environment
		if !strings.Contains(env["DATABASE_URL"], "@postgres:5432/") || env["TEMPORAL_ADDRESS"] != "temporal:7233" {
			t.Errorf("%s has the environment %v", name, env)
		}
	}
}

// Only the nodes, which run Docker inside a container, may do as root does.
func TestOnlyNodesArePrivileged(t *testing.T) {
	t.Parallel()
	for name, service := range config(t, nil).Services {
		if node := strings.HasPrefix(name, "node-"); service.Privileged != node {
			t.Errorf("%s is privileged: %t", name, service.Privileged)
		}
	}
}
