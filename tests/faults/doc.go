// Package faults breaks the connections of a system under test on purpose.
//
//   - [Proxy] stands between a client and a server, over TCP or a Unix socket:
//     refused and silent connections, half-open ones, slow ones.
//   - [Completions] loses what an activity worker tells Temporal, before or
//     after the server has heard it.
//
// The faults of whole processes are those of package dev: its processes can be
// killed, stopped and continued by signal, and started again.
package faults
