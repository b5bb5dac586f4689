package tests

import (
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/leasehold/leasehold/leasestore"
)

func (f *fleet) daemon() *client.Client {
	f.t.Helper()
	daemon, err := client.NewClientWithOpts(client.WithHost(f.docker), client.WithAPIVersionNegotiation())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = daemon.Close() })
	return daemon
}

// containerState is a container's state in Docker's words, or gone.
func (f *fleet) containerState(id string) string {
	f.t.Helper()
	daemon := f.daemon()
	inspected, err := daemon.ContainerInspect(f.t.Context(), id)
	if err != nil {
		return "gone"
	}
	return inspected.State.Status
}

// containers are the IDs of all containers of a job, in any state.
func (f *fleet) containers(job leasestore.Job) []string {
	f.t.Helper()
	list, err := f.daemon().ContainerList(f.t.Context(), container.ListOptions{
		All: true, Filters: filters.NewArgs(filters.Arg("label", "leasehold.job_id="+job.ID.String())),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ids := make([]string, len(list))
	for i, found := range list {
		ids[i] = found.ID
	}
	return ids
}
