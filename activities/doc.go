// Package activities holds the steps of Leasehold's workflows, one a file.
//
// The steps of a lease ([Activities.StartContainer], SuperviseContainer,
// StopContainer, ProbeEndpoint) prove their authority with their own turn
// before they act, and act under a context that ends when the lease does.
// Losing that context ends the watching, never the container: only
// StopContainer stops one. [Activities.ReportOutcome] proves by recording.
//
// The evidence of how a run ended is an [Ending]; [Decide] alone turns it into
// an outcome, for a reporting worker and for recovery alike.
package activities
