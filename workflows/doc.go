// Package workflows is Leasehold's deterministic code: [RunJob] drives one job,
// [RecoverExpiredLeases] and [ProbeRuntimeNodes] are started by Temporal
// Schedules.
//
// Temporal decides here what happens next; it never decides who owns a job.
// An activity's retry, a reset of the workflow and a late answer are all safe,
// because every step carries its authority to PostgreSQL, which judges it.
//
// RunJob's path:
//
//	enqueue → dispatch → claim ─┬─ refused: wait (timer or wake-up), claim again
//	                            └─ lease: start → supervise → report ─┬─ ended
//	                                                                  └─ released: wait, dispatch again
//
// A step whose process goes silent is taken over by another process with a
// newer turn while the lease lives. If the lease runs out all the same, RunJob
// waits for recovery to settle the job and goes on from what the database says.
package workflows
