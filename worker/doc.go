// Package worker is what a program imports to run Leasehold.
//
// A team that has a worker of its own adds one line to its client:
//
//	plugin, err := worker.NewPlugin(worker.PluginOptions{Config: config})
//	client.Dial(client.Options{Plugins: []client.Plugin{plugin}})
//
// Every worker of that client then runs Leasehold beside the team's own
// workflows. A program that wants nothing else calls [Run].
//
// # What a running worker is made of
//
// The worker itself polls the task queue for workflows and for activities that
// act for no lease. Two inner workers poll for the activities of a lease:
//
//   - the claims queue, for claims and take-overs, only while a permit is free;
//   - the process's own queue, for the leases that it holds.
//
// A keeper renews all leases of the process in one statement per renew
// interval, apart from Temporal's heartbeats, and on database connections of
// its own, so that no work can be in its way. Each lease has a local deadline
// on the monotonic clock: when it passes without a confirmed renewal, the
// context of the work ends, whether or not anybody answers.
//
// # Permits
//
// A permit is the right to hold one lease, and there are
// EXECUTION_WORKER_CONCURRENCY of them. One is taken before the claims queue
// is polled and given back when the end of the lease is confirmed. If it is
// not, the permit stays taken until reconciliation has found that the lease is
// no longer live.
package worker
