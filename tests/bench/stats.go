package main

import (
	"fmt"
	"slices"
)

// spread is the median of ratios with their quartiles.
type spread []float64

func (s spread) String() string {
	if len(s) == 0 {
		return "no measurement"
	}
	sorted := slices.Sorted(slices.Values(s))
	at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)-1)+0.5)] }
	return fmt.Sprintf("%.2f  [%.2f..%.2f]  (%d pairs)", at(0.5), at(0.25), at(0.75), len(sorted))
}
