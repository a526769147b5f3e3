package onekernel

import (
	"testing"

	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// TestResultsHaveABound: a result is no larger than what a process can compare in a moment, where
// it is the square of the argument.
func TestResultsHaveABound(t *testing.T) {
	def, err := Choose(ops.Table(), "torch.diag_embed")
	if err != nil {
		t.Fatal(err)
	}
	literal := &Literal{Table: ops.Table(), Def: def, Target: "torch.diag_embed", Takes: []string{"input"}}
	m := &maker{target: literal.Target, promises: Promises{DTypes: []tensor.DType{tensor.F32}}, signature: literal.Draw,
		legal: func(p *program.Program) bool { return Legal(ops.Table(), p) }}
	longest := 0
	for m.seed = range 4 {
		for _, c := range cases(t, m, 40) {
			shape := c.program.Inputs[0].Symbol().Shape()
			n := shape[len(shape)-1]
			longest = max(longest, n)
			if all := tensor.NumElements(shape) * n; all > mostOfResult {
				t.Errorf("seed %d, case %d: the result has %d elements: %v", m.seed, c.Index, all, c.Sizes)
			}
		}
	}
	if longest < 1024 {
		t.Errorf("rows have %d elements at most", longest)
	}
}
