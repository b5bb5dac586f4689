// Package bench measures what the verbs of the protocol cost on a given
// PostgreSQL, as ratios to the least that a durable change can cost there.
//
// # How
//
// Machines are noisy, so no figure stands alone. The floor is a single-row
// update by key, committed, in a table of its own with room for heap-only
// updates. Each measured slice stands between two slices of the floor, on the
// same connections, and is divided by their mean; operations and sizes take
// turns, round by round. What is reported is the median of the rounds, with
// the quartiles. A ratio counts rows: a batch of 100 that takes ten times as
// long as the floor stands at 10.
//
// Everything is measured at two sizes: the given one and a hundredth of it. The
// second answers whether anything grows with the tables.
//
// Write-ahead log and the share of heap-only updates are counted apart from
// the clock, on connections of their own, because PostgreSQL counts the latter
// for good only when a connection ends. Few rows are changed again and again for
// it, so that whole pages, which are written once after a checkpoint, do not
// count. The log is the whole server's: what others write at the time is in it.
//
// The server's processor time is in the report beside the time of the clock,
// where server and measurement run on the same Linux machine: on a crowded
// machine it says more.
//
// The share of the machine that renewing takes is processor time, of the
// server and of this process, where both run on the same Linux machine.
// Elsewhere it is the renewals needed by the renewals possible.
//
// # What it touches
//
// Two temporary databases beside the given one, of the same server, named
// leasehold_bench_ and a random word. They are dropped at the end, also after
// an error or an interruption. A process that is killed leaves them. A million
// jobs take about a gigabyte. The given database itself is only connected to.
package bench
