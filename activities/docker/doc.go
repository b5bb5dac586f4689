// Package docker runs containers for Leasehold on Docker daemons, over the
// Docker Engine API 1.40 (Docker 19.03) or later. [Engine] is the
// [activities.Runtime] of the product.
//
// It promises:
//
//   - One container per job and epoch. Its name and labels say whose it is, so
//     a Create whose answer was lost finds what it made (TestC01, TestC02).
//   - A container is started from the state created and from no other; one that
//     ran is never run again (TestC11, TestC13).
//   - An exit is believed only of a container that was started (TestC04). A wait
//     that breaks off says nothing: the daemon is asked again until it answers
//     (TestC08, TestC09). A program that a daemon ended as it went away or came
//     back has no exit but the reason NODE_LOST (TestC07), and one that vanished
//     has CONTAINER_GONE (TestC06).
//   - Nothing is started, stopped or removed that does not carry the labels of
//     this installation (TestC12).
//   - Logs are read from the logs endpoint: a reader that is slow or stuck does
//     not hold up the program. Each line comes once, in the order of its stream
//     (TestLogsGoOnWhereTheyBroke), and no trouble with logs changes how a job
//     ends (TestC24).
//
// Containers are made with a fixed hardening that no job can change: no way to
// more privileges, few capabilities (see config.go), no restart, no health
// check, a bounded log, no swap beside the memory limit, and an init process
// that passes signals on.
//
// It does not promise that a request which the daemon has taken is undone when
// the caller's context ends. And of two processes that start the same container
// at the same moment, one may be late enough to run it again: the API has no
// conditional start. The lease keeps them apart, and within a process the engine
// does.
package docker
