package activities

import "time"

// ContainerSpec is what a CONTAINER job runs. Its JSON form is part of
// RunJob's input; durations are Go duration strings there. A field that it
// does not know is refused: a daemon that ignores a misspelt limit runs the
// program without it.
type ContainerSpec struct {
	// Image is an image reference as docker run takes it, up to 512 bytes. Of
	// a tag and a digest the digest counts. Required.
	Image string `json:"image"`
	// PullPolicy is when to pull: ifNotPresent, always or never, whatever the
	// tag. Defaults to ifNotPresent.
	PullPolicy string `json:"pull_policy,omitempty"`
	// Entrypoint replaces the image's; absent keeps it, an empty list clears
	// it. With an entrypoint the image's command is not used.
	Entrypoint *[]string `json:"entrypoint,omitempty"`
	// Command replaces the image's; one list item per argument, no shell.
	// Absent keeps it, an empty list clears it.
	Command *[]string `json:"command,omitempty"`
	// Env is added to the image's environment. Names that begin with
	// LEASEHOLD_ are ours.
	Env map[string]string `json:"env,omitempty"`
	// WorkingDir is an absolute path. The daemon makes it if it is not there.
	// Defaults to the image's.
	WorkingDir string `json:"working_dir,omitempty"`
	// User is user[:group], by name or number. Defaults to the image's.
	User string `json:"user,omitempty"`
	// Timeout counts from the container's start, 1s to 30 days. Defaults to
	// 10m.
	Timeout Duration `json:"timeout,omitempty"`
	// StopGrace is the time between the stop signal and the kill, 1s to 5m;
	// the daemon counts whole seconds. Defaults to 10s.
	StopGrace Duration `json:"stop_grace,omitempty"`
	// StopSignal asks the program to end, such as SIGINT. Defaults to the
	// image's, otherwise SIGTERM.
	StopSignal string `json:"stop_signal,omitempty"`
	// CPUs are 0.01 to 1024, in steps of 0.01. Defaults to all of the node's.
	CPUs float64 `json:"cpus,omitempty"`
	// Memory is in bytes, from 6 MiB to 64 TiB; there is no swap beside it.
	// Defaults to all of the node's.
	Memory int64 `json:"memory,omitempty"`
	// PidsLimit bounds processes and threads, 1 to 1048576. Defaults to 512.
	PidsLimit int64 `json:"pids_limit,omitempty"`
	// ReadOnly makes the root file system read-only.
	ReadOnly bool `json:"read_only,omitempty"`
	// Network is none or bridge. Defaults to bridge where the node has one.
	Network string `json:"network,omitempty"`
	// Labels are put on the container. Those that begin with "leasehold." are
	// ours.
	Labels map[string]string `json:"labels,omitempty"`
}

// HeartbeatSpec is what a HEARTBEAT job requests: one HTTP GET.
type HeartbeatSpec struct {
	// Endpoint is an http or https URL without user info. Required.
	Endpoint string `json:"endpoint"`
	// ExpectedStatusCode is 100 to 599. Defaults to 200.
	ExpectedStatusCode int `json:"expected_status_code,omitempty"`
	// Timeout bounds the whole request, 1s to 5m. Defaults to 10s.
	Timeout Duration `json:"timeout,omitempty"`
	// Headers are sent with the request. Their values may be secret; no error
	// shows them.
	Headers map[string]string `json:"headers,omitempty"`
}

// The values of ContainerSpec.PullPolicy.
const (
	PullIfNotPresent = "ifNotPresent"
	PullAlways       = "always"
	PullNever        = "never"
)

// The values of ContainerSpec.Network.
const (
	NetworkNone   = "none"
	NetworkBridge = "bridge"
)

// WithDefaults fills in what is absent. The network stays as it is: what it
// defaults to is the node's matter.
func (s ContainerSpec) WithDefaults() ContainerSpec {
	if s.PullPolicy == "" {
		s.PullPolicy = PullIfNotPresent
	}
	if s.Timeout == 0 {
		s.Timeout = Duration(10 * time.Minute)
	}
	if s.StopGrace == 0 {
		s.StopGrace = Duration(10 * time.Second)
	}
	if s.PidsLimit == 0 {
		s.PidsLimit = 512
	}
	return s
}

// WithDefaults fills in what is absent.
func (s HeartbeatSpec) WithDefaults() HeartbeatSpec {
	if s.Timeout == 0 {
		s.Timeout = Duration(10 * time.Second)
	}
	if s.ExpectedStatusCode == 0 {
		s.ExpectedStatusCode = 200
	}
	return s
}
