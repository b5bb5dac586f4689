//go:build race

package model

// raceEnabled says that everything is some ten times slower.
const raceEnabled = true
