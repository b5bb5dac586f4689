package bench

import "fmt"

// Report is what was measured.
type Report struct {
	Server      Server  `json:"server"`
	CPUs        int     `json:"cpus"` // of the machine that measured
	Connections int     `json:"connections"`
	SliceLength float64 `json:"slice_seconds"`
	Took        float64 `json:"took_seconds"`
	Sizes       []Size  `json:"sizes"` // the small one and the large one

	Figures       []Figure  `json:"figures"`
	FloorAccounts []Account `json:"floor_accounts"` // a size each
	// ClaimGrowth is claims at the large size to claims at the small one, each
	// to its floor.
	ClaimGrowth Spread   `json:"claim_growth"`
	Recovery    Recovery `json:"recovery"`
	Load        Load     `json:"load"`
	Targets     []Target `json:"targets"`
}

// Figure is one operation at one size.
type Figure struct {
	Operation string `json:"operation"`
	Size      `json:"size"`
	Ratio     Spread `json:"ratio"` // rows to the floor's rows
	// What follows is of this machine at that time.
	PerSecond Spread `json:"per_second"`       // rows
	PerCall   Spread `json:"per_call_ms"`      // milliseconds
	Floor     Spread `json:"floor_per_second"` // rows
	// CPU is the server's processor time for a row, in microseconds, whatever
	// else the machine does; 0 where it cannot be told. FloorCPU is the floor's.
	CPU      float64 `json:"cpu_us"`
	FloorCPU float64 `json:"floor_cpu_us"`
	Calls    int     `json:"calls"`
	Account  `json:"account"`
}

// Account is what a row of an operation costs apart from time.
type Account struct {
	WAL float64  `json:"wal_bytes"`           // a row
	HOT *float64 `json:"hot_share,omitempty"` // of its updates; nil if it has none
}

// figure returns the figure of an operation at a size.
func (r Report) figure(operation string, size Size) Figure {
	for _, figure := range r.Figures {
		if figure.Operation == operation && figure.Size == size {
			return figure
		}
	}
	return Figure{Operation: operation, Size: size}
}

// Target is what a figure should be, and whether it is.
type Target struct {
	Name string  `json:"name"`
	Want string  `json:"want"` // "≥ 0.85", "≤ 15 s"
	Got  float64 `json:"got"`
	Met  bool    `json:"met"`
}

// targets judges the report. They are meant for the sizes by default: at
// others they are only as good as the comparison.
func (r Report) targets() []Target {
	var targets []Target
	atLeast := func(name string, least, got float64, unit string) {
		targets = append(targets, Target{Name: name, Want: fmt.Sprintf("≥ %v%s", least, unit), Got: got, Met: got >= least})
	}
	atMost := func(name string, most, got float64, unit string) {
		targets = append(targets, Target{Name: name, Want: fmt.Sprintf("≤ %v%s", most, unit), Got: got, Met: got <= most})
	}
	large := r.Sizes[len(r.Sizes)-1]
	atLeast("renew one, to the floor", 0.85, r.figure(RenewOne, large).Ratio.Median, "")
	atLeast("renew 100, rows to the floor", 7, r.figure(RenewBatch, large).Ratio.Median, "")
	for _, renewal := range []string{RenewOne, RenewBatch} {
		var share float64
		if hot := r.figure(renewal, large).HOT; hot != nil {
			share = 100 * *hot
		}
		atLeast(renewal+", heap-only updates", 95, share, " %")
	}
	atLeast("claim, to the floor", 0.5, r.figure(Claim, large).Ratio.Median, "")
	atLeast("complete, to the floor", 0.6, r.figure(Complete, large).Ratio.Median, "")
	atLeast(fmt.Sprintf("claim at %d jobs, to that at %d", large.Jobs, r.Sizes[0].Jobs), 0.9, r.ClaimGrowth.Median, "")
	atMost(fmt.Sprintf("empty recovery scan at %d leases", large.Leases), 1, r.figure(EmptyScan, large).PerCall.Median, " ms")
	atMost(fmt.Sprintf("recovering %d expired leases", r.Recovery.Leases), 15, r.Recovery.Seconds.Median, " s")
	atMost(fmt.Sprintf("%d leases renewed every %v s, share of the machine", r.Load.Leases, r.Load.Every), 25, 100*r.Load.Share, " %")
	atMost("leases lost meanwhile", 0, float64(r.Load.Lost), "")
	return targets
}
