package testenv

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/worker/dev"
)

// Image is in every daemon that testenv gives out: a busybox.
const Image = "busybox:1"

// Docker returns the endpoint of a daemon with [Image], which the tests of this
// process share: list containers by a label of your own. As root it is a private
// one, otherwise the one of this machine.
func Docker(t testing.TB) string {
	t.Helper()
	return process.docker.get(t, startDocker)
}

// DockerNode returns a private daemon of the test's own with [Image], to stop,
// kill and restart. Args are further flags of dockerd, such as --live-restore.
// Without root the test is skipped.
func DockerNode(t testing.TB, args ...string) *dev.Docker {
	t.Helper()
	dir := newDir(t, "docker")
	ctx, cancel := starting(t)
	defer cancel()
	node, err := dev.StartDocker(ctx, dev.DockerOptions{Dir: dir, Args: args})
	need(t, err)
	stopAfter(t, node.Stop)
	need(t, dev.ImportBusybox(ctx, node.Endpoint(), Image))
	return node
}

func startDocker(ctx context.Context) (string, error) {
	endpoint := os.Getenv("LEASEHOLD_TEST_DOCKER_HOST")
	switch {
	case endpoint != "":
	case os.Geteuid() == 0:
		node, err := dev.StartDocker(ctx, dev.DockerOptions{Dir: filepath.Join(process.dir, "docker")})
		if err != nil {
			return "", err
		}
		process.atEnd(node.Stop)
		endpoint = node.Endpoint()
	default:
		found, ok := dev.FindDocker(ctx)
		if !ok {
			return "", &dev.MissingError{What: "a Docker daemon that answers", Cure: "start one, or set LEASEHOLD_TEST_DOCKER_HOST"}
		}
		endpoint = found
	}
	return endpoint, dev.ImportBusybox(ctx, endpoint, Image)
}
