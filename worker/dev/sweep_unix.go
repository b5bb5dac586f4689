//go:build unix && !linux

package dev

// dockerd runs on Linux only.
func (d *Docker) sweep() error { return nil }

func (d *Docker) removeStaleMarks() error { return nil }
