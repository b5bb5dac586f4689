// Package proof shows that the store keeps the promises of the lease protocol.
// A stranger runs it:
//
//	go test ./tests/proof/...
//
// It has three parts, each of which is itself tested with seeded faults.
//
//   - Package model tries every order of events of the protocol within bounds.
//   - The histories of workers and recoverers on a real PostgreSQL, behind a
//     proxy (package wire) that cuts connections at chosen messages, are checked
//     with Porcupine against the same transition function. Faulty SQL in place
//     of the store's is found illegal.
//   - [Check] proves from the ledger and the rows, offline, what can be proven
//     from them. Any test of the whole can end with it, and so can an operator.
//
// What is not covered: failover to a standby (eras), placement on nodes, the
// guard, and batches of renewals have tests of their own in package leasestore.
package proof
