package reffaults

import (
	"slices"
	"testing"

	"plumb/program"
	"plumb/tensor"
)

// TestEveryConditionStandsAnyProgram: a fault is looked for in whatever was
// drawn, programs without inputs, with one, and without keywords among them.
func TestEveryConditionStandsAnyProgram(t *testing.T) {
	in := func(shape ...int) program.Input {
		return program.Input{Name: "x", DType: tensor.F32, Shape: shape, Fill: program.Fill{Dist: program.Uniform, Hi: 1}}
	}
	for _, inputs := range [][]program.Input{nil, {in()}, {in(0)}, {in(2, 3)}, {in(2, 3), in(2)}} {
		for _, call := range []program.Call{{Result: "y", Target: "torch.f"}, {Result: "y", Target: "torch.f", Args: []any{int64(1)}}} {
			p := &program.Program{Inputs: inputs, Calls: []program.Call{call}, Backward: []program.Backward{{Value: "y"}}}
			all := slices.Clone(Faults)
			for _, f := range Graphs {
				all = append(all, f.KnownFault)
			}
			for _, f := range all {
				if f.When == nil {
					continue
				}
				func() {
					defer func() {
						if r := recover(); r != nil {
							t.Errorf("%s (%s) with %d inputs: %v", f.Target, f.Reason, len(inputs), r)
						}
					}()
					f.When(p)
				}()
			}
		}
	}
}
