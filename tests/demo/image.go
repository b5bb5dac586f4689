package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// makeImage makes an image on the daemon at endpoint, without a registry: base
// with one more file.
func makeImage(ctx context.Context, endpoint, base, ref, path string, content []byte) error {
	daemon, err := client.NewClientWithOpts(client.WithHost(endpoint), client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer daemon.Close()
	made, err := daemon.ContainerCreate(ctx, &container.Config{Image: base}, nil, nil, nil, "")
	if err != nil {
		return fmt.Errorf("make image %s: %w", ref, err)
	}
	defer func() {
		_ = daemon.ContainerRemove(context.WithoutCancel(ctx), made.ID, container.RemoveOptions{Force: true})
	}()
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := daemon.CopyToContainer(ctx, made.ID, "/", &file, container.CopyToContainerOptions{}); err != nil {
		return fmt.Errorf("make image %s: %w", ref, err)
	}
	if _, err := daemon.ContainerCommit(ctx, made.ID, container.CommitOptions{Reference: ref}); err != nil {
		return fmt.Errorf("make image %s: %w", ref, err)
	}
	return nil
}
