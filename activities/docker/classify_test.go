package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/leasehold/leasehold/activities"
)

// What daemons say, of which not all can be provoked here.
func TestEachRefusalHasAReason(t *testing.T) {
	t.Parallel()
	said := func(kind error, words string) error {
		return fmt.Errorf("Error response from daemon: %s%w", words, kind)
	}
	internal, invalid, missing, conflict := cerrdefs.ErrInternal, cerrdefs.ErrInvalidArgument, cerrdefs.ErrNotFound, cerrdefs.ErrConflict
	tests := []struct {
		call   request
		err    error
		reason activities.RuntimeErrorReason
		exit   int
	}{
		{callCreate, said(internal, "mkdir /x: no space left on device"), activities.ReasonDisk, 0},
		{callPull, errors.New("write /x: no space left on device"), activities.ReasonDisk, 0},
		{callPull, said(internal, "toomanyrequests: You have reached your pull rate limit"), activities.ReasonPull, 0},
		{callPull, said(internal, "received unexpected HTTP status: 503 Service Unavailable"), activities.ReasonPull, 0},
		{callPull, said(internal, "Get https://r/v2/: dial tcp: lookup r: no such host"), activities.ReasonPull, 0},
		{callPull, said(internal, "Get https://r/v2/: x509: certificate signed by unknown authority"), activities.ReasonPull, 0},
		{callPull, said(internal, "error parsing HTTP 403 response body: invalid character '<' looking for beginning of value"), activities.ReasonPull, 0},
		{callPull, said(internal, "something new"), activities.ReasonPull, 0},
		{callPull, said(missing, "pull access denied for x, repository does not exist or may require 'docker login'"), activities.ReasonImage, 0},
		{callPull, said(internal, "manifest for x:1 not found: manifest unknown"), activities.ReasonImage, 0},
		{callPull, errors.New("no matching manifest for linux/s390x in the manifest list entries"), activities.ReasonImage, 0},
		{callPull, said(internal, "unauthorized: authentication required"), activities.ReasonImage, 0},
		{callPull, said(invalid, "invalid tag format"), activities.ReasonImage, 0},
		{callCreate, said(missing, "No such image: x:1"), activities.ReasonImage, 0},
		{callCreate, said(invalid, "No command specified"), activities.ReasonInvalidSpec, 0},
		{callCreate, said(internal, "No command specified"), activities.ReasonInvalidSpec, 0},
		{callCreate, said(invalid, "Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available"), activities.ReasonInvalidSpec, 0},
		{callCreate, said(internal, "something new"), activities.ReasonInternal, 0},
		{callStart, said(invalid, `OCI runtime create failed: exec: "x": executable file not found in $PATH: unknown`), activities.ReasonCannotStart, 127},
		{callStart, said(invalid, `exec: "/x": stat /x: no such file or directory: unknown`), activities.ReasonCannotStart, 127},
		{callStart, said(invalid, `exec: "/etc/passwd": permission denied: unknown`), activities.ReasonCannotStart, 126},
		{callStart, said(invalid, `exec: "/etc": is a directory: unknown`), activities.ReasonCannotStart, 126},
		{callStart, said(internal, "unable to find user x: no matching entries in passwd file"), activities.ReasonCannotStart, 126},
		{callStart, said(invalid, "something new"), activities.ReasonCannotStart, 126},
		{callStart, said(internal, "network bridge not found"), activities.ReasonInternal, 0},
		{callStart, said(conflict, "can not start container: container is marked for removal and cannot be started"), activities.ReasonContainerGone, 0},
		{callStart, said(missing, "No such container: 0123"), activities.ReasonContainerGone, 0},
		{callInspect, said(missing, "No such container: 0123"), activities.ReasonContainerGone, 0},
		{callWait, io.ErrUnexpectedEOF, activities.ReasonNodeUnreachable, 0},
		{callPull, fmt.Errorf("read: %w", io.ErrUnexpectedEOF), activities.ReasonNodeUnreachable, 0},
		{callStop, context.DeadlineExceeded, activities.ReasonNodeUnreachable, 0},
		{callList, said(cerrdefs.ErrUnavailable, "bad gateway"), activities.ReasonNodeUnreachable, 0},
		{callRemove, said(internal, "driver \"overlay2\" failed to remove root filesystem"), activities.ReasonInternal, 0},
		{callProbe, said(internal, "something new"), activities.ReasonNodeUnreachable, 0},
	}
	for _, tt := range tests {
		trouble := about{what: "do it", node: "n", containerID: "0123456789abcdef", attempt: 2}.judge(tt.call, tt.err)
		if trouble.Reason != tt.reason || trouble.ExitCode != tt.exit {
			t.Errorf("%s: %v is %s (exit %d), want %s (exit %d)", tt.call, tt.err, trouble.Reason, trouble.ExitCode, tt.reason, tt.exit)
		}
		if !strings.HasPrefix(trouble.Message, "do it: ") || !strings.HasSuffix(trouble.Message, " (node n, container 0123456789ab, attempt 2)") ||
			strings.Contains(trouble.Message, "Error response from daemon") || !errors.Is(trouble, tt.err) {
			t.Errorf("it reads %q", trouble.Message)
		}
	}
}

func TestMessagesAreTrimmed(t *testing.T) {
	t.Parallel()
	trouble := about{what: "do it"}.judge(callCreate, errors.New(strings.Repeat("é\n", 1000)))
	if n := len(trouble.Message); n > 320 || strings.Contains(trouble.Message, "\n") || strings.ContainsRune(trouble.Message, '\uFFFD') {
		t.Errorf("%d bytes: %q", n, trouble.Message)
	}
}
