// Package dev starts and stops the parts of a private installation as child
// processes: PostgreSQL, a Temporal development server and Docker daemons. The
// command "leasehold dev" and the tests use it. It is not for production:
// PostgreSQL trusts every connection from this machine, and the Temporal
// development server says of itself that it is not made for it.
//
// Every part listens on the loopback interface or on a Unix socket only, on
// free ports unless told otherwise, and keeps all that it writes in the folder
// that it is given, so that several installations run side by side. (A Docker
// daemon also has a folder in /run, because socket paths must be short.)
//
// A child ends with its parent. On Linux the kernel sends it its stop signal
// when the parent dies, however it dies; elsewhere only Stop ends it. Each has
// a process group of its own: Ctrl-C in a terminal reaches the parent alone,
// which then stops its parts in the order that it likes.
//
// What is not installed is reported as a [*MissingError], whose text ends with
// a cure.
package dev
