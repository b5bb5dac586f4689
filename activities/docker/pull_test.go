package docker_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leasehold/leasehold/activities"
	"github.com/leasehold/leasehold/activities/docker"
	"github.com/leasehold/leasehold/tests/testenv"
)

func pulled(ref, policy string) activities.ContainerSpec {
	return activities.ContainerSpec{Image: ref, PullPolicy: policy}
}

func TestAnImageIsPulledWhenItIsMissing(t *testing.T) {
	t.Parallel()
	b, r := shared(t), newRegistry(t)
	c := b.create(pulled(r.ref("good:1"), ""))
	if image := b.inspect(c.ID).Config.Image; image != r.ref("good:1") {
		t.Errorf("made from %s", image)
	}
}

// The fault that it catches: not reading the answer, whose status is 200.
func TestC29_AnErrorInsideThePullStreamIsAFailure(t *testing.T) {
	t.Parallel()
	b, r := shared(t), newRegistry(t)
	for key, blob := range r.blobs {
		if strings.Contains(string(blob), "rootfs") {
			r.blobs[key] = []byte(`{"rootfs":"another"}`)
		}
	}
	_, err := b.Create(t.Context(), b.endpoint, b.run(pulled(r.ref("bad:1"), "")))
	trouble := refused(t, err, activities.ReasonPull, "pull "+r.ref("bad:1"), "node node-a")
	if strings.Contains(trouble.Message, "No such image") {
		t.Errorf("the registry's words are lost: %s", trouble.Message)
	}
}

func TestC30_WhichPullFailuresAreTheUsers(t *testing.T) {
	t.Parallel()
	html := func(w http.ResponseWriter, _, _ string) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Log in to the hotel</html>"))
	}
	tests := map[string]struct {
		answer func(http.ResponseWriter, string, string)
		reason activities.RuntimeErrorReason
		words  string
	}{
		"no such tag":      {refuse(404, "MANIFEST_UNKNOWN", "manifest unknown"), activities.ReasonImage, "manifest"},
		"no such name":     {refuse(404, "NAME_UNKNOWN", "repository name not known to registry"), activities.ReasonImage, ""},
		"unauthorized":     {refuse(401, "UNAUTHORIZED", "authentication required"), activities.ReasonImage, ""},
		"denied":           {refuse(403, "DENIED", "requested access to the resource is denied"), activities.ReasonImage, "denied"},
		"rate limit":       {refuse(429, "TOOMANYREQUESTS", "You have reached your pull rate limit"), activities.ReasonPull, "slow down"},
		"bad gateway":      {refuse(502, "X", "x"), activities.ReasonPull, ""},
		"unavailable":      {refuse(503, "UNAVAILABLE", "service unavailable"), activities.ReasonPull, ""},
		"a captive portal": {html, activities.ReasonPull, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r := shared(t), newRegistry(t)
			r.answer = tt.answer
			_, err := b.Create(t.Context(), b.endpoint, b.run(pulled(r.ref("app:1"), "")))
			trouble := refused(t, err, tt.reason, tt.words)
			if trouble.User() != (tt.reason == activities.ReasonImage) {
				t.Errorf("user: %t", trouble.User())
			}
		})
	}
	b := shared(t)
	_, err := b.Create(t.Context(), b.endpoint, b.run(pulled(closedPort(t)+"/app:1", "")))
	refused(t, err, activities.ReasonPull, "refused")
}

func TestC32_ThePullPolicyIsExplicit(t *testing.T) {
	t.Parallel()
	b, r := shared(t), newRegistry(t)
	local := strings.TrimSuffix(r.ref("app"), "/") // the registry would be asked for it
	check(t, b.outside.ImageTag(t.Context(), testenv.Image, local+":latest"))
	b.create(pulled(local, ""))
	if n := r.asked.Load(); n != 0 {
		t.Errorf("the registry was asked %d times for an image that is there", n)
	}

	never := shared(t)
	_, err := never.Create(t.Context(), b.endpoint, never.run(pulled(r.ref("unknown:1"), activities.PullNever)))
	refused(t, err, activities.ReasonImage, "is not on the node, and the pull policy is never")
	if n := r.asked.Load(); n != 0 {
		t.Errorf("the registry was asked %d times", n)
	}

	always, gone := shared(t), closedPort(t)+"/app:1"
	check(t, b.outside.ImageTag(t.Context(), testenv.Image, gone))
	_, err = always.Create(t.Context(), b.endpoint, always.run(pulled(gone, activities.PullAlways)))
	refused(t, err, activities.ReasonPull)
}

func TestC31_APullHasALimitInAllAndOneWithoutProgress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options docker.Options
		words   string
	}{
		"silent": {docker.Options{PullStall: 500 * time.Millisecond, PullTimeout: time.Minute}, "no progress for 500ms"},
		"slow":   {docker.Options{PullStall: time.Minute, PullTimeout: 500 * time.Millisecond}, "total limit, 500ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRegistry(t)
			r.slow = func(_ http.ResponseWriter, req *http.Request) bool {
				if !strings.Contains(req.URL.Path, "/blobs/") {
					return false
				}
				<-t.Context().Done() // the daemon may keep asking after the pull was given up
				return true
			}
			b := on(t, testenv.Docker(t), tt.options)
			_, err := b.Create(t.Context(), b.endpoint, b.run(pulled(r.ref("app:1"), "")))
			refused(t, err, activities.ReasonPull, tt.words)
		})
	}
}

// The fault that it catches: the pull belongs to whoever came first, and fails
// for all when that one leaves.
func TestPullsOfOneImageAreOne(t *testing.T) {
	t.Parallel()
	direct, r := shared(t), newRegistry(t)
	p := newProxy(t, direct.endpoint)
	var pulls atomic.Int32
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	p.meddle = func(req *http.Request, _ func() *http.Response, _ net.Conn) bool {
		if strings.HasSuffix(req.URL.Path, "/images/create") {
			pulls.Add(1)
			arrived <- struct{}{}
			<-release
		}
		return false
	}
	b := on(t, p.endpoint(), docker.Options{Instance: direct.instance})
	create := func(ctx context.Context) error {
		run := b.run(pulled(r.ref("shared:1"), ""))
		run.JobID = uuid.NewString()
		_, err := b.Create(ctx, b.endpoint, run)
		return err
	}
	why := errors.New("cancelled")
	leaving, leave := context.WithCancelCause(t.Context())
	left := make(chan error, 1)
	go func() { left <- create(leaving) }()
	receive(t, arrived, "the pull")
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			if err := create(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	// The second inspection of the image comes before its wait for the pull.
	eventually(t, "all wait for the pull", func() bool { return b.PullWaiters() == 4 })
	leave(why)
	if err := receive(t, left, "the one that leaves"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	close(release)
	others.Wait()
	if n := pulls.Load(); n != 1 {
		t.Errorf("%d pulls", n)
	}
}
