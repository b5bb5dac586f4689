package main

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUnprintedLinesFollowThePrintedOnes(t *testing.T) {
	for name, tt := range map[string]struct{ printed, kept, want string }{
		"nothing printed":        {"", "a b c", "a b c"},
		"all printed":            {"a b c", "a b c", ""},
		"the start printed":      {"a b", "a b c", "c"},
		"more printed than kept": {"a b c d", "c d", ""},
		"kept goes on":           {"a b c", "b c d e", "d e"},
		"a gap between":          {"a b", "d e", "d e"},
		"lines that repeat":      {"tick tick", "tick tick tick", "tick"},
	} {
		t.Run(name, func(t *testing.T) {
			got := unprinted(strings.Fields(tt.printed), strings.Fields(tt.kept))
			if !slices.Equal(got, strings.Fields(tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Whatever part was printed and whatever end was kept: if together they are
// the whole log of different lines, it is printed whole, and no line twice.
func TestNoLineIsPrintedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.SliceOfDistinct(rapid.StringMatching(`[a-z]{3}`), rapid.ID[string]).Draw(t, "log")
		printed := rapid.IntRange(0, len(log)).Draw(t, "printed")
		kept := rapid.IntRange(0, printed).Draw(t, "kept from")
		got := append(slices.Clone(log[:printed]), unprinted(log[:printed], log[kept:])...)
		if !slices.Equal(got, log) {
			t.Fatalf("printed %q of %q", got, log)
		}
	})
}
