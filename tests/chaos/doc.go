//go:build chaos

// Package chaos breaks an installation at random and checks that no promise
// breaks with it: three workers, two Docker daemons, PostgreSQL and Temporal, all
// of its own, each connection through a proxy, under a mixed load.
//
// A run is decided by its seed:
//
//	make chaos SEED=1 RUNS=300
//
// makes the runs with the seeds 1 to 300 and prints a line for each. Without
// SEED and RUNS it is one short run. LOGS=dir keeps the logs of all processes.
//
// What the containers write is the witness, read from the daemons themselves by
// connections that no fault touches: each line says on which epoch's authority
// it was written. Like any fenced resource, the witness refuses a line of an
// epoch older than one that it has seen, and counts it. Every refusal must come
// from a node that was cut off: nobody could stop what ran there.
package chaos
