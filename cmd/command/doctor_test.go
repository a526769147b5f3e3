package command

import (
	"strings"
	"testing"
)

// TestBoundsOnce: what several backends have alike is said once, and of each what they have not.
func TestBoundsOnce(t *testing.T) {
	of := func(bounds ...string) (checks []checkup) {
		for _, b := range bounds {
			checks = append(checks, checkup{Backend: "torch", OK: true, Details: map[string]string{"bounds": b}})
		}
		return checks
	}
	for want, checks := range map[int][]checkup{1: of("a limit", "a limit"), 2: of("a limit", "a limit of another kind")} {
		var out strings.Builder
		printCheckups(&out, checks)
		if got := strings.Count(out.String(), "a limit"); got != want {
			t.Errorf("said %d times, want %d:\n%s", got, want, out.String())
		}
	}
}
