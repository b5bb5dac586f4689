package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"

	"github.com/docker/docker/api/types/filters"

	"github.com/leasehold/leasehold/activities"
)

// The labels of a container. They are written at creation and never change.
const (
	labelInstance   = "leasehold.instance"
	labelSchema     = "leasehold.schema"
	labelNode       = "leasehold.node_id"
	labelDaemon     = "leasehold.daemon_id"
	labelJob        = "leasehold.job_id"
	labelDefinition = "leasehold.definition"
	labelAttempt    = "leasehold.attempt"
	labelEpoch      = "leasehold.epoch"
	labelSpec       = "leasehold.spec_hash"
)

// schema is the version of the labels. Containers with another one are left to
// whoever made them.
const schema = "1"

func (e *Engine) labels(run activities.ContainerRun, daemonID string) map[string]string {
	labels := maps.Clone(run.Spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		labelInstance: e.opts.Instance, labelSchema: schema,
		labelNode: run.NodeID, labelDaemon: daemonID,
		labelJob: run.JobID, labelDefinition: run.Definition,
		labelAttempt: strconv.Itoa(run.Attempt), labelEpoch: strconv.FormatInt(run.Epoch, 10),
		labelSpec: specHash(run.Spec),
	})
	return labels
}

func specHash(spec activities.ContainerSpec) string {
	encoded, err := json.Marshal(spec)
	if err != nil { // a float that is no number: refused before
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// identity reads the labels of one of our containers. It reports false if they
// are those of another installation or version.
func (e *Engine) identity(labels map[string]string) (activities.Container, bool) {
	attempt, badAttempt := strconv.Atoi(labels[labelAttempt])
	epoch, badEpoch := strconv.ParseInt(labels[labelEpoch], 10, 64)
	ours := e.opts.Instance != "" && labels[labelInstance] == e.opts.Instance && labels[labelSchema] == schema
	return activities.Container{
		JobID: labels[labelJob], NodeID: labels[labelNode], Attempt: attempt, Epoch: epoch,
	}, ours && badAttempt == nil && badEpoch == nil
}

// ours filters for the containers of this installation, and of one job unless
// it is empty.
func (e *Engine) ours(jobID string) filters.Args {
	args := filters.NewArgs(filters.Arg("label", labelInstance+"="+e.opts.Instance))
	if jobID != "" {
		args.Add("label", labelJob+"="+jobID)
	}
	return args
}

var notInName = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)

// name is the name of a container. That a daemon gives a name only once is what
// keeps two creates of one epoch from making two containers.
func name(run activities.ContainerRun) string {
	return fmt.Sprintf("leasehold-%s-%d-%d", notInName.ReplaceAllString(run.JobID, "_"), run.Attempt, run.Epoch)
}
