// Package model is the lease protocol as one transition function on data, and
// an explorer that tries every interleaving of it within bounds.
//
// [Protocol.Judge] and [Protocol.Apply] are the protocol: what a statement is
// answered, and what it writes. They know nothing of who runs them: [Explore]
// runs them against every order of events, and the histories of the real store
// (package proof) are checked against the same two functions.
//
// What the explorer's world has: two workers and a recoverer, one or two jobs, a
// clock of discrete ticks. A statement is sent, may begin (its snapshot and its
// transaction's clock), takes the row lock and decides, and commits; any number
// of ticks may pass between any two of these. Its caller may stop waiting, so
// that it arrives late; its connection may be cut with the transaction
// committed or not; a worker may crash; Temporal may hand an authority to
// another process with a later turn.
//
// Times are kept as distances from now and cut off where no rule can tell them
// apart, so the number of ticks has no bound. What is bounded is in [Bounds].
//
// Every [Fault] is a mistake that somebody has made in a system of this kind. A
// test demands that the explorer finds a violation with each of them, because
// a checker that never finds anything proves nothing.
package model
