package activities_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/activities"
)

func list(items ...string) *[]string {
	if items == nil {
		items = []string{}
	}
	return &items
}

func TestAContainerSpecSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 600)
	tests := map[string]struct {
		change func(*activities.ContainerSpec)
		faults []string // "path: beginning of the message"
	}{
		"nothing":         {func(*activities.ContainerSpec) {}, nil},
		"no image":        {func(s *activities.ContainerSpec) { s.Image = "" }, []string{"container.image: must be given"}},
		"upper case":      {func(s *activities.ContainerSpec) { s.Image = "BusyBox" }, []string{"container.image: must be a lower-case image reference"}},
		"a space":         {func(s *activities.ContainerSpec) { s.Image = "busybox 1" }, []string{"container.image: must be a lower-case"}},
		"an ID":           {func(s *activities.ContainerSpec) { s.Image = strings.Repeat("a", 64) }, []string{"container.image: must be an image reference with a name"}},
		"a digest alone":  {func(s *activities.ContainerSpec) { s.Image = "sha256:" + strings.Repeat("a", 64) }, []string{"container.image: must be an image reference with a name"}},
		"a long image":    {func(s *activities.ContainerSpec) { s.Image = long }, []string{"container.image: must not be longer"}},
		"tag and digest":  {func(s *activities.ContainerSpec) { s.Image = "a/b:1@sha256:" + strings.Repeat("a", 64) }, nil},
		"pull policy":     {func(s *activities.ContainerSpec) { s.PullPolicy = "sometimes" }, []string{"container.pull_policy: must be"}},
		"nothing to run":  {func(s *activities.ContainerSpec) { s.Entrypoint, s.Command = list(), list() }, []string{"container.command: nothing is left"}},
		"NUL":             {func(s *activities.ContainerSpec) { s.Command = list("a", "b\x00") }, []string{"container.command[1]: must not contain NUL"}},
		"a long argument": {func(s *activities.ContainerSpec) { s.Command = list(strings.Repeat("x", 1<<17)) }, []string{"container.command[0]: must not be longer"}},
		"much entrypoint": {func(s *activities.ContainerSpec) { s.Entrypoint = list(make([]string, 65)...) }, []string{"container.entrypoint: must not have more"}},
		"env": {func(s *activities.ContainerSpec) {
			s.Env = map[string]string{"1": "", "A=": "", "B": "\x00", "C.d-e": "\xff\n"}
		}, []string{"container.env.1: the name", "container.env.A=: the name", "container.env.B: the value"}},
		"our env":         {func(s *activities.ContainerSpec) { s.Env = map[string]string{"LEASEHOLD_EPOCH": "9"} }, []string{"container.env.LEASEHOLD_EPOCH: names that begin"}},
		"a relative path": {func(s *activities.ContainerSpec) { s.WorkingDir = "tmp" }, []string{"container.working_dir: must be an absolute path"}},
		"user":            {func(s *activities.ContainerSpec) { s.User = "a:b:c" }, []string{"container.user: must be"}},
		"users":           {func(s *activities.ContainerSpec) { s.User = "1000:www-data" }, nil},
		"a short timeout": {func(s *activities.ContainerSpec) { s.Timeout = 1 }, []string{"container.timeout: must be between 1s and 720h"}},
		"negative":        {func(s *activities.ContainerSpec) { s.Timeout, s.StopGrace = -1, -1 }, []string{"container.timeout:", "container.stop_grace:"}},
		"a long grace":    {func(s *activities.ContainerSpec) { s.StopGrace = activities.Duration(6 * time.Minute) }, []string{"container.stop_grace: must be between 1s and 5m"}},
		"a signal":        {func(s *activities.ContainerSpec) { s.StopSignal = "SIGFOO" }, []string{"container.stop_signal: must be"}},
		"signals":         {func(s *activities.ContainerSpec) { s.StopSignal = "USR1" }, nil},
		"few CPUs":        {func(s *activities.ContainerSpec) { s.CPUs = 0.001 }, []string{"container.cpus: must be"}},
		"odd CPUs":        {func(s *activities.ContainerSpec) { s.CPUs = 0.015 }, []string{"container.cpus: must be"}},
		"no number":       {func(s *activities.ContainerSpec) { s.CPUs = math.NaN() }, []string{"container.cpus: must be"}},
		"CPUs":            {func(s *activities.ContainerSpec) { s.CPUs = 0.29 }, nil},
		"little memory":   {func(s *activities.ContainerSpec) { s.Memory = 5 << 20 }, []string{"container.memory: must be in bytes, at least 6291456"}},
		"much memory":     {func(s *activities.ContainerSpec) { s.Memory = math.MaxInt64 }, []string{"container.memory:"}},
		"pids":            {func(s *activities.ContainerSpec) { s.PidsLimit = -1 }, []string{"container.pids_limit:"}},
		"host network":    {func(s *activities.ContainerSpec) { s.Network = "host" }, []string{"container.network: must be none or bridge"}},
		"our label":       {func(s *activities.ContainerSpec) { s.Labels = map[string]string{"leasehold.epoch": "9"} }, []string{"container.labels.leasehold.epoch: names that begin"}},
		"a label": {func(s *activities.ContainerSpec) {
			s.Labels = map[string]string{"": "", "a": long + strings.Repeat(long, 9)}
		}, []string{"container.labels.: the name", "container.labels.a: the value"}},
		"two things": {func(s *activities.ContainerSpec) { s.Image, s.Network = "", "x" }, []string{"container.image:", "container.network:"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := activities.ContainerSpec{Image: "busybox:1"}
			tt.change(&spec)
			wantFaults(t, spec.Validate(), tt.faults)
			wantFaults(t, spec.WithDefaults().Validate(), tt.faults)
		})
	}
}

func TestAHeartbeatSpecSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec   activities.HeartbeatSpec
		faults []string
	}{
		"a good one": {activities.HeartbeatSpec{Endpoint: "https://[::1]:8080/x?y=z", ExpectedStatusCode: 204, Headers: map[string]string{"X-A": "b\tc"}}, nil},
		"nothing":    {activities.HeartbeatSpec{}, []string{"heartbeat.endpoint: must be given"}},
		"ftp":        {activities.HeartbeatSpec{Endpoint: "ftp://x"}, []string{"heartbeat.endpoint: must be an http or https URL"}},
		"no host":    {activities.HeartbeatSpec{Endpoint: "http://:80/"}, []string{"heartbeat.endpoint: must be an http or https URL"}},
		"a path":     {activities.HeartbeatSpec{Endpoint: "/health"}, []string{"heartbeat.endpoint: must be an http or https URL"}},
		"a control":  {activities.HeartbeatSpec{Endpoint: "http://x/\n"}, []string{"heartbeat.endpoint: must be an http or https URL"}},
		"a user":     {activities.HeartbeatSpec{Endpoint: "http://me:secret@x/"}, []string{"heartbeat.endpoint: must not contain a user"}},
		"status":     {activities.HeartbeatSpec{Endpoint: "http://x", ExpectedStatusCode: 600}, []string{"heartbeat.expected_status_code:"}},
		"timeout":    {activities.HeartbeatSpec{Endpoint: "http://x", Timeout: activities.Duration(6 * time.Minute)}, []string{"heartbeat.timeout: must be between 1s and 5m"}},
		"headers":    {activities.HeartbeatSpec{Endpoint: "http://x", Headers: map[string]string{"a b": "", "C": "x\r\ny", "Host": "x"}}, []string{"heartbeat.headers.C: the value", "heartbeat.headers.Host: is set", "heartbeat.headers.a b: the name"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.spec.Validate()
			wantFaults(t, err, tt.faults)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
}

func wantFaults(t *testing.T, err error, want []string) {
	t.Helper()
	var got []activities.Fault
	if fault, ok := errors.AsType[*activities.SpecError](err); ok {
		got = fault.Faults
	} else if err != nil {
		t.Fatalf("got %v", err)
	}
	if len(got) != len(want) {
		t.Fatalf("got %v, want %q", err, want)
	}
	for i, fault := range got {
		if line := fault.Path + ": " + fault.Message; !strings.HasPrefix(line, want[i]) {
			t.Errorf("got %q, want %q", line, want[i])
		}
	}
}

func TestC21_SpecsAreReadStrictly(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`{"image":"a","command":"echo hi"}`:   `container.command: give a list, one item per argument`,
		`{"image":"a","entrypoint":["sh",1]}`: `container.entrypoint: give a list`,
		`{"image":"a","privileged":true}`:     `container.privileged: there is no such field`,
		`{"image":"a","memory":"1g"}`:         `container.memory: a string does not belong there`,
		`{"image":"a","timeout":30}`:          `container.timeout: 30 is no duration: give a string with a unit`,
		`{"image":"a","stop_grace":"10"}`:     `container.stop_grace: "10" is no duration`,
		`{"image":1}`:                         `container.image: a number does not belong there`,
		`{"image":"a","env":{"A":1}}`:         `container.env`,
	}
	for raw, want := range tests {
		var spec activities.ContainerSpec
		if err := json.Unmarshal([]byte(raw), &spec); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
	var spec activities.HeartbeatSpec
	if err := json.Unmarshal([]byte(`{"endpoint":"http://x","timeout":5}`), &spec); err == nil || !strings.HasPrefix(err.Error(), "heartbeat.timeout: 5 is no duration") {
		t.Errorf("got %v", err)
	}
	if err := json.Unmarshal([]byte(`{"url":"http://x"}`), &spec); err == nil || !strings.HasPrefix(err.Error(), "heartbeat.url: there is no such field") {
		t.Errorf("got %v", err)
	}
}

// The fault that it catches: omitempty on a list, which makes an empty one
// absent.
func TestC22_SpecsSurviveJSON(t *testing.T) {
	t.Parallel()
	lists := rapid.Custom(func(t *rapid.T) *[]string {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		return list(rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "items")...)
	})
	rapid.Check(t, func(t *rapid.T) {
		spec := activities.ContainerSpec{
			Image: rapid.String().Draw(t, "image"), Entrypoint: lists.Draw(t, "entrypoint"), Command: lists.Draw(t, "command"),
			Timeout:   activities.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "timeout")),
			StopGrace: activities.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "grace")),
			CPUs:      rapid.Float64Range(0, 100).Draw(t, "cpus"), Memory: rapid.Int64().Draw(t, "memory"), ReadOnly: rapid.Bool().Draw(t, "ro"),
		}
		encoded, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		var decoded activities.ContainerSpec
		if err := json.Unmarshal(encoded, &decoded); err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(decoded)
		if string(again) != string(encoded) || (decoded.Entrypoint == nil) != (spec.Entrypoint == nil) || (decoded.Command == nil) != (spec.Command == nil) {
			t.Fatalf("%s became %s", encoded, again)
		}
	})
}

func TestDurationsAreShortStrings(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", 5 * time.Minute: "5m", time.Hour: "1h", 90 * time.Minute: "1h30m", 10 * time.Millisecond: "10ms",
		time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m",
	} {
		if got := activities.Duration(given).String(); got != want {
			t.Errorf("%s is %q, want %q", given, got, want)
		}
		var back activities.Duration
		encoded, err := json.Marshal(activities.Duration(given))
		if err == nil {
			err = json.Unmarshal(encoded, &back)
		}
		if err != nil || time.Duration(back) != given {
			t.Errorf("%s came back as %s, %v", given, back, err)
		}
	}
}
