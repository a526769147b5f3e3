package onekernel

import (
	"slices"
	"testing"

	"plumb/tensor"
)

// TestTiesLieInSeveralBlocks: whichever the seed, one of the first draws has equal elements in rows
// that a kernel goes through in blocks, of which one is to win.
func TestTiesLieInSeveralBlocks(t *testing.T) {
	m := makerOf(t, "x: f32[N,C]", tensor.F32)
	for m.seed = range 20 {
		if !slices.ContainsFunc(cases(t, m, len(first)), func(c *Case) bool { return c.Regime == Ties && c.Sizes["C"] > usualBlock }) {
			t.Errorf("seed %d: no row of more than %d elements has ties", m.seed, usualBlock)
		}
	}
}
