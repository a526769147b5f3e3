package command

import (
	"slices"
	"strings"

	"plumb/internal/spell"
)

// near returns up to three of the names that are spelled like one, the nearest
// first.
func near(name string, among []string) []string {
	type scored struct {
		name string
		far  int
	}
	short := func(s string) string {
		return strings.TrimPrefix(strings.ToLower(s[strings.LastIndexByte(s, ':')+1:]), "test_")
	}
	want := short(name)
	var found []scored
	for _, n := range among {
		far := spell.Distance(want, short(n))
		if strings.Contains(short(n), want) {
			far = 0
		}
		if far <= max(len(want)/3, 1) {
			found = append(found, scored{n, far})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.far - b.far })
	var out []string
	for _, f := range found[:min(len(found), 3)] {
		out = append(out, f.name)
	}
	return out
}
