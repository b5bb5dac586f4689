package docker_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
)

// A registry on the loopback, which daemons take for insecure and so speak
// plain HTTP to. It has one good image, and answers for any other name as told.
type registry struct {
	*httptest.Server
	asked  atomic.Int32 // requests
	blobs  map[string][]byte
	image  []byte                                        // manifest
	answer func(w http.ResponseWriter, name, tag string) // for manifests
	slow   func(w http.ResponseWriter, req *http.Request) bool
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{blobs: map[string][]byte{}}
	r.image = r.build()
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func digest(blob []byte) string {
	sum := sha256.Sum256(blob)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (r *registry) put(blob []byte) { r.blobs[digest(blob)] = blob }

func (r *registry) ref(name string) string { return strings.TrimPrefix(r.URL, "http://") + "/" + name }

func (r *registry) serve(w http.ResponseWriter, req *http.Request) {
	r.asked.Add(1)
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/v2/"), "/")
	if r.slow != nil && len(parts) > 1 && r.slow(w, req) {
		return
	}
	switch {
	case len(parts) == 3 && parts[1] == "manifests" && r.answer != nil:
		r.answer(w, parts[0], parts[2])
	case len(parts) == 3 && parts[1] == "manifests":
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digest(r.image))
		_, _ = w.Write(r.image)
	case len(parts) == 3 && parts[1] == "blobs":
		if blob, ok := r.blobs[parts[2]]; ok {
			_, _ = w.Write(blob)
			return
		}
		http.NotFound(w, req)
	}
}

// build makes an image with one file, unlike any other, and returns its
// manifest.
func (r *registry) build() []byte {
	content := []byte(uuid.NewString())
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	_ = files.WriteHeader(&tar.Header{Name: "hello", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
	_, _ = files.Write(content)
	_ = files.Close()
	layerDigest, layerSize := digest(layer.Bytes()), layer.Len()
	config, _ := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Cmd": []string{"/hello"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layerDigest}},
	})
	r.put(layer.Bytes())
	r.put(config)
	manifest, _ := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": digest(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar", "size": layerSize, "digest": layerDigest}},
	})
	return manifest
}

func refuse(status int, code, message string) func(http.ResponseWriter, string, string) {
	return func(w http.ResponseWriter, _, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": message}}})
	}
}

// closedPort is an address where nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().String()
}
