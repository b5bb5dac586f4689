package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	imagetypes "github.com/docker/docker/api/types/image"

	"github.com/leasehold/leasehold/activities"
)

// image is what a container is made from.
type image struct {
	ref        string
	entrypoint []string
}

// provideImage makes sure that the image is on the node, as the pull policy
// says. The tag has no say in it.
func (e *Engine) provideImage(ctx context.Context, endpoint string, run activities.ContainerRun) (image, error) {
	spec, subject := run.Spec, about{what: "provide the image", node: run.NodeID, attempt: run.Attempt}
	ref, err := normalise(spec.Image)
	if err != nil {
		return image{}, subject.trouble(activities.ReasonImage, err.Error(), err)
	}
	if spec.PullPolicy != activities.PullAlways {
		img, err := e.localImage(ctx, endpoint, ref)
		switch {
		case err == nil || !cerrdefs.IsNotFound(err):
			return img, subject.wrap(ctx, callInspect, err)
		case spec.PullPolicy == activities.PullNever:
			return image{}, subject.trouble(
				activities.ReasonImage, ref+" is not on the node, and the pull policy is never", err)
		}
	}
	if err := e.pullOnce(ctx, endpoint, ref); err != nil {
		subject.what = "pull " + ref
		return image{}, subject.wrap(ctx, callPull, err)
	}
	img, err := e.localImage(ctx, endpoint, ref)
	if cerrdefs.IsNotFound(err) {
		err = subject.trouble(
			activities.ReasonPull, ref+" was pulled, and is not on the node", err)
	}
	return img, subject.wrap(ctx, callInspect, err)
}

func (e *Engine) localImage(ctx context.Context, endpoint, ref string) (image, error) {
	return read(ctx, e, endpoint, func(ctx context.Context, n *node) (image, error) {
		found, err := n.quick.ImageInspect(ctx, ref)
		if err != nil {
			return image{}, err
		}
		img := image{ref: ref}
		if found.Config != nil {
			img.entrypoint = found.Config.Entrypoint
		}
		return img, nil
	})
}

// normalise gives a reference one form: of tag and digest the digest, without
// either the tag latest. A name alone could be taken for an ID.
func normalise(given string) (string, error) {
	named, err := reference.ParseNormalizedNamed(given)
	if err != nil {
		return "", fmt.Errorf("%s: %w", given, err)
	}
	if digested, ok := named.(reference.Digested); ok {
		named, err = reference.WithDigest(reference.TrimNamed(named), digested.Digest())
		if err != nil {
			return "", fmt.Errorf("%s: %w", given, err)
		}
	}
	return reference.FamiliarString(reference.TagNameOnly(named)), nil
}

// transfer pulls an image, within the two limits.
func (e *Engine) transfer(ctx context.Context, endpoint, ref string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := time.AfterFunc(e.opts.PullTimeout, func() {
		cancel(&pullLimitError{fmt.Sprintf("the pull took longer than its total limit, %s", e.opts.PullTimeout)})
	})
	defer total.Stop()
	stall := time.AfterFunc(e.opts.PullStall, func() {
		cancel(&pullLimitError{fmt.Sprintf("the pull made no progress for %s", e.opts.PullStall)})
	})
	defer stall.Stop()
	n, err := e.node(ctx, endpoint)
	if err != nil {
		return err
	}
	stream, err := n.patient.ImagePull(ctx, ref, imagetypes.PullOptions{})
	if err == nil {
		err = readPull(stream, func() { stall.Reset(e.opts.PullStall) })
		_ = stream.Close() // it was read to its end or given up
	}
	if limit, ok := errors.AsType[*pullLimitError](context.Cause(ctx)); ok {
		return limit
	}
	if unreachable(err) {
		e.forget(n)
	}
	return err
}

type pullLimitError struct{ reason string }

func (e *pullLimitError) Error() string { return e.reason }

// readPull reads the answer to a pull to its end. The status was sent before
// anything was pulled, so a failure is a line among the others.
func readPull(stream io.Reader, progress func()) error {
	var last struct {
		Status, ID string
		Progress   json.RawMessage `json:"progressDetail"`
	}
	for lines := json.NewDecoder(stream); ; {
		line := struct {
			Error       string
			ErrorDetail struct{ Message string } `json:"errorDetail"`
			Status, ID  string
			Progress    json.RawMessage `json:"progressDetail"`
		}{}
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the answer broke off: %w", err)
		case line.ErrorDetail.Message != "":
			return errors.New(line.ErrorDetail.Message)
		case line.Error != "":
			return errors.New(line.Error)
		}
		if line.Status != last.Status || line.ID != last.ID || string(line.Progress) != string(last.Progress) {
			progress() // a line that says nothing new is none
		}
		last.Status, last.ID, last.Progress = line.Status, line.ID, line.Progress
	}
}
