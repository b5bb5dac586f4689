package bench

import (
	"fmt"
	"slices"
)

// Spread is the median of what was measured, and the quartiles.
type Spread struct {
	Median float64 `json:"median"`
	P25    float64 `json:"p25"`
	P75    float64 `json:"p75"`
	Count  int     `json:"count"`
}

func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(share float64) float64 { return sorted[int(share*float64(len(sorted)-1)+0.5)] }
	return Spread{Median: at(0.5), P25: at(0.25), P75: at(0.75), Count: len(sorted)}
}

// String is "0.87 [0.81..0.93]".
func (s Spread) String() string {
	if s.Count == 0 {
		return "-"
	}
	return fmt.Sprintf("%s [%s..%s]", short(s.Median), short(s.P25), short(s.P75))
}

// short is a number with three digits that count.
func short(value float64) string {
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	case value >= 0.1 || value == 0:
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.3f", value)
}
