package dev

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// ImportBusybox makes an image named ref, such as busybox:1, from this machine's
// static busybox, without a registry. An image of that name that is there
// already is left alone. It returns a [*MissingError] if there is no static
// busybox.
func ImportBusybox(ctx context.Context, endpoint, ref string) error {
	daemon, err := client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	if err != nil {
		return fmt.Errorf("import %s: %w", ref, err)
	}
	defer daemon.Close()
	if _, err := daemon.ImageInspect(ctx, ref); err == nil {
		return nil
	}
	rootfs, err := busyboxRootfs(ctx)
	if err != nil {
		return fmt.Errorf("import %s: %w", ref, err)
	}
	answer, err := daemon.ImageImport(ctx, image.ImportSource{Source: rootfs, SourceName: "-"}, ref, image.ImportOptions{
		Changes: []string{`CMD ["sh"]`, "ENV PATH=/bin"},
	})
	if err != nil {
		return fmt.Errorf("import %s: %w", ref, err)
	}
	defer answer.Close()
	for lines := json.NewDecoder(answer); ; {
		var line struct{ Error string }
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("import %s: %w", ref, err)
		case line.Error != "":
			return fmt.Errorf("import %s: %s", ref, line.Error)
		}
	}
}

// busyboxRootfs returns a root file system as a tar: busybox, a link for each
// of its applets, /etc/passwd and /etc/group, and an open /tmp.
func busyboxRootfs(ctx context.Context) (io.Reader, error) {
	path, err := findBusybox()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	applets, err := exec.CommandContext(ctx, path, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list: %w", path, err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range []string{"bin/", "etc/", "root/", "proc/", "sys/", "dev/"} {
		err = errors.Join(err, add(w, tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil))
	}
	err = errors.Join(err,
		add(w, tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, nil),
		add(w, tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644},
			[]byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")),
		add(w, tar.Header{Typeflag: tar.TypeReg, Name: "etc/group", Mode: 0o644}, []byte("root:x:0:\nnogroup:x:65534:\n")),
		add(w, tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, program))
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet == "busybox" { // a link to itself would replace the program
			continue
		}
		err = errors.Join(err, add(w, tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox", Mode: 0o777}, nil))
	}
	return &out, errors.Join(err, w.Close())
}

func add(w *tar.Writer, header tar.Header, content []byte) error {
	header.Size = int64(len(content))
	header.ModTime = time.Unix(0, 0)
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func findBusybox() (string, error) {
	candidates := []string{"/bin/busybox", "/usr/bin/busybox"}
	if path, err := exec.LookPath("busybox"); err == nil {
		candidates = append(candidates, path)
	}
	for _, path := range candidates {
		if isStatic(path) {
			return path, nil
		}
	}
	return "", &MissingError{What: "a static busybox", Cure: "install it (Debian: apt-get install busybox-static)"}
}

// isStatic tells whether the file is a program that needs no shared libraries.
func isStatic(path string) bool {
	program, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer program.Close()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
