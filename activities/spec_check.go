package activities

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
)

// Fault is one thing that is wrong with a spec.
type Fault struct {
	Path    string // as in the JSON, such as container.env.PATH
	Message string
}

// SpecError lists everything that is wrong with a spec. It shows no value of
// env, headers or labels: they may be secret.
type SpecError struct{ Faults []Fault }

// Error is one fault a line.
func (e *SpecError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, fault := range e.Faults {
		lines[i] = fault.Path + ": " + fault.Message
	}
	return strings.Join(lines, "\n")
}

// faults collects; its zero value is empty.
type faults []Fault

func (f *faults) add(bad bool, path, format string, args ...any) {
	if bad {
		*f = append(*f, Fault{path, fmt.Sprintf(format, args...)})
	}
}

func (f *faults) err() error {
	if len(*f) == 0 {
		return nil
	}
	return &SpecError{*f}
}

// Bounds of a spec. Arguments and environment are what a Linux kernel takes.
const (
	maxImage      = 512
	maxEntrypoint = 64
	maxArguments  = 4096
	maxString     = 128<<10 - 1 // of one argument or variable
	maxStrings    = 1 << 20     // of all of them
	maxTimeout    = Duration(30 * 24 * time.Hour)
	maxStopGrace  = Duration(5 * time.Minute)
	maxCPUs       = 1024
	minMemory     = 6 << 20
	maxMemory     = 64 << 40
	maxPids       = 1 << 20
	maxLabels     = 64
	maxLabelKey   = 128
	maxLabelValue = 4096
	maxPath       = 4096

	reservedLabels = "leasehold."
	reservedEnv    = "LEASEHOLD_"
)

var (
	bareID   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$`)
	signals  = strings.Fields("HUP INT QUIT ABRT KILL USR1 USR2 PIPE ALRM TERM CONT STOP WINCH PWR IO POLL URG")
)

// Validate returns a [*SpecError] with all that is wrong with the spec whatever
// the node, or nil. Absent fields are right as far as they have a default.
func (s ContainerSpec) Validate() error {
	var f faults
	s.checkImage(&f)
	s.checkProcess(&f)
	s.checkTimes(&f)
	s.checkLimits(&f)
	s.checkLabels(&f)
	return f.err()
}

func (s ContainerSpec) checkImage(f *faults) {
	const at = "container.image"
	named, err := reference.ParseNormalizedNamed(s.Image)
	switch {
	case s.Image == "":
		f.add(true, at, "must be given, such as busybox:1")
	case len(s.Image) > maxImage:
		f.add(true, at, "must not be longer than %d bytes", maxImage)
	case strings.HasPrefix(s.Image, "sha256:"), err != nil && bareID.MatchString(s.Image):
		f.add(true, at, "must be an image reference with a name, not an ID")
	case err != nil || reference.IsNameOnly(named) && strings.HasSuffix(s.Image, ":"):
		f.add(true, at, "must be a lower-case image reference, such as busybox:1")
	}
	f.add(!slices.Contains([]string{"", PullIfNotPresent, PullAlways, PullNever}, s.PullPolicy),
		"container.pull_policy", "must be ifNotPresent, always or never")
}

func (s ContainerSpec) checkProcess(f *faults) {
	size := 0
	checkArguments(f, "container.entrypoint", s.Entrypoint, maxEntrypoint, &size)
	checkArguments(f, "container.command", s.Command, maxArguments, &size)
	f.add(isEmpty(s.Entrypoint) && isEmpty(s.Command), "container.command", "nothing is left to run: entrypoint and command are empty")
	for _, name := range sortedKeys(s.Env) {
		value := s.Env[name]
		at := "container.env." + brief(name)
		f.add(!envName.MatchString(name), at, "the name must match [A-Za-z_][A-Za-z0-9_.-]*")
		f.add(strings.HasPrefix(name, reservedEnv), at, "names that begin with %s are reserved", reservedEnv)
		f.add(strings.ContainsRune(value, 0), at, "the value must not contain NUL")
		f.add(len(name)+len(value) > maxString, at, "must not be longer than %d bytes", maxString)
		size += len(name) + len(value) + 2
	}
	f.add(size > maxStrings, "container", "entrypoint, command and env must not be longer than %d bytes together", maxStrings)
	f.add(s.WorkingDir != "" && !path.IsAbs(s.WorkingDir), "container.working_dir", "must be an absolute path")
	f.add(len(s.WorkingDir) > maxPath || strings.ContainsRune(s.WorkingDir, 0),
		"container.working_dir", "must be a path of at most %d bytes without NUL", maxPath)
	f.add(s.User != "" && !userName.MatchString(s.User), "container.user", "must be user or user:group, by name or number")
}

func isEmpty(list *[]string) bool { return list != nil && len(*list) == 0 }

func checkArguments(f *faults, at string, list *[]string, most int, size *int) {
	if list == nil {
		return
	}
	f.add(len(*list) > most, at, "must not have more than %d items", most)
	for i, item := range *list {
		f.add(strings.ContainsRune(item, 0), fmt.Sprintf("%s[%d]", at, i), "must not contain NUL")
		f.add(len(item) > maxString, fmt.Sprintf("%s[%d]", at, i), "must not be longer than %d bytes", maxString)
		*size += len(item) + 1
	}
}

func (s ContainerSpec) checkTimes(f *faults) {
	checkDuration(f, "container.timeout", s.Timeout, maxTimeout)
	checkDuration(f, "container.stop_grace", s.StopGrace, maxStopGrace)
	name := strings.TrimPrefix(s.StopSignal, "SIG")
	f.add(s.StopSignal != "" && !slices.Contains(signals, name), "container.stop_signal", "must be the name of a signal, such as SIGTERM")
}

func checkDuration(f *faults, at string, given, most Duration) {
	least := Duration(time.Second)
	f.add(given != 0 && (given < least || given > most), at, "must be between %s and %s", least, most)
}

func (s ContainerSpec) checkLimits(f *faults) {
	hundredths := s.CPUs * 100
	f.add(s.CPUs != 0 && (!(s.CPUs >= 0.01) || s.CPUs > maxCPUs || math.Abs(hundredths-math.Round(hundredths)) > 1e-6),
		"container.cpus", "must be between 0.01 and %d, in steps of 0.01", maxCPUs)
	f.add(s.Memory != 0 && (s.Memory < minMemory || s.Memory > maxMemory),
		"container.memory", "must be in bytes, at least %d (6 MiB) and at most %d (64 TiB)", minMemory, int64(maxMemory))
	f.add(s.PidsLimit < 0 || s.PidsLimit > maxPids, "container.pids_limit", "must be between 1 and %d", maxPids)
	f.add(!slices.Contains([]string{"", NetworkNone, NetworkBridge}, s.Network), "container.network", "must be none or bridge")
}

func (s ContainerSpec) checkLabels(f *faults) {
	f.add(len(s.Labels) > maxLabels, "container.labels", "must not be more than %d", maxLabels)
	for _, key := range sortedKeys(s.Labels) {
		at := "container.labels." + brief(key)
		f.add(key == "" || len(key) > maxLabelKey || strings.ContainsRune(key, 0), at, "the name must have 1 to %d bytes and no NUL", maxLabelKey)
		f.add(strings.HasPrefix(key, reservedLabels), at, "names that begin with %s are reserved", reservedLabels)
		f.add(len(s.Labels[key]) > maxLabelValue || strings.ContainsRune(s.Labels[key], 0), at, "the value must have at most %d bytes and no NUL", maxLabelValue)
	}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
