package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/leasehold/leasehold/leasestore"
)

// Options say where to measure and how much.
type Options struct {
	// DatabaseURL names a database whose account may create databases. No
	// transaction pooler may be in between. Required.
	DatabaseURL string
	// Jobs is how many jobs there are at the large size, from 1,000 to
	// 100,000,000; the small size is a hundredth of it, at least 500. Few
	// measure a table that fits into a cache. Defaults to 1,000,000.
	Jobs int
	// Leases is how many of them are leased, from 200 to half of the jobs; at
	// the small size a hundredth of it, at least 200. Defaults to a tenth of
	// the jobs.
	Leases int
	// Slices is how many slices of each operation are measured, from 1 to
	// 1,000. Few make the spread meaningless. Defaults to 12.
	Slices int
	// SliceLength is how long a slice takes, from 10 ms to 1 minute. A short
	// one measures the noise, a long one lets the neighbours change between
	// it and its floor. Defaults to 400 ms.
	SliceLength time.Duration
	// Connections is how many are used at once, from 1 to 64. Defaults to 4.
	Connections int
	// Recover is how many expired leases one recovery figure takes over, at
	// most half of the leases. Defaults to 10,000, or to half of the leases.
	Recover int
	// RenewEvery is the renewal interval of the load figure; a lease lives
	// three of them. Defaults to 10 s.
	RenewEvery time.Duration
	// RenewFor is how long all leases are renewed at that interval. Less than
	// three intervals does not show what recovery costs meanwhile. Defaults
	// to 60 s.
	RenewFor time.Duration
	// Out is told what is being done, a line at a time. Defaults to nothing.
	Out io.Writer
}

// The smallest sizes: less would measure conflicts between connections.
const (
	minJobs   = 500
	minLeases = 200
)

func (o Options) withDefaults() Options {
	orElse(&o.Jobs, 1_000_000)
	orElse(&o.Leases, o.Jobs/10)
	orElse(&o.Slices, 12)
	orElse(&o.SliceLength, 400*time.Millisecond)
	orElse(&o.Connections, 4)
	orElse(&o.Recover, min(10_000, o.Leases/2))
	orElse(&o.RenewEvery, 10*time.Second)
	orElse(&o.RenewFor, 60*time.Second)
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o
}

func orElse[T comparable](value *T, otherwise T) {
	var none T
	if *value == none {
		*value = otherwise
	}
}

func (o Options) validate() error {
	if o.DatabaseURL == "" {
		return &leasestore.InvalidError{Field: "database URL", Problem: "must not be empty"}
	}
	for _, number := range []struct {
		field           string
		value, min, max int
	}{
		{"number of jobs", o.Jobs, 1_000, 100_000_000},
		{"number of leases", o.Leases, minLeases, o.Jobs / 2},
		{"number of slices", o.Slices, 1, 1_000},
		{"number of connections", o.Connections, 1, 64},
		{"number of leases to recover", o.Recover, 1, o.Leases / 2},
	} {
		if number.value < number.min || number.value > number.max {
			return &leasestore.InvalidError{
				Field: number.field, Problem: fmt.Sprintf("must be between %d and %d", number.min, number.max),
			}
		}
	}
	for _, duration := range []struct {
		field           string
		value, min, max time.Duration
	}{
		{"length of a slice", o.SliceLength, 10 * time.Millisecond, time.Minute},
		{"renewal interval", o.RenewEvery, 50 * time.Millisecond, time.Hour},
		{"length of the load", o.RenewFor, 50 * time.Millisecond, 24 * time.Hour},
	} {
		if duration.value < duration.min || duration.value > duration.max {
			return &leasestore.InvalidError{
				Field: duration.field, Problem: fmt.Sprintf("must be between %s and %s", duration.min, duration.max),
			}
		}
	}
	return nil
}

// Size is how full the tables are.
type Size struct {
	Jobs   int `json:"jobs"`
	Leases int `json:"leases"`
}

// sizes are the small one and the large one.
func (o Options) sizes() []Size {
	return []Size{
		{Jobs: max(o.Jobs/100, minJobs), Leases: max(o.Leases/100, minLeases)},
		{Jobs: o.Jobs, Leases: o.Leases},
	}
}
