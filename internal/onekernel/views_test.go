package onekernel

import (
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// TestViews: a reshape returns a view where there is nothing to copy, which is held against
// no kernel that only moves elements, and copies them elsewhere.
func TestViews(t *testing.T) {
	call := func(shape []int, layout Layout, shares []int, operators ...string) *result {
		p := &program.Program{Inputs: []program.Input{{Name: "x", Shape: shape}}}
		r := &result{Case: &Case{Layout: layout, program: p}, kernel: &backend.Outcome{Status: backend.OK}, ref: &backend.Outcome{Status: backend.OK}, seen: observed{Shares: shares, Operators: operators}}
		if len(shares) > 0 && !r.plain() {
			r.viewed = "returns the memory of its argument 0"
		}
		return r
	}
	// stays is a call whose result is its argument, of the shape and the values.
	stays := func(shares []int, want float64, operators ...string) *result {
		r := call([]int{2, 2}, Contiguous, shares, operators...)
		r.program.Inputs[0].DType, r.program.Inputs[0].Fill = tensor.F32, program.Fill{Dist: program.Constant, Lo: 2}
		r.ref = &backend.Outcome{Values: []backend.Value{{Tensor: (&program.Input{DType: tensor.F32, Shape: []int{2, 2}, Fill: program.Fill{Dist: program.Constant, Lo: want}}).Materialize()}}}
		if len(shares) > 0 && r.stays() {
			r.viewed = "returns the memory of its argument 0"
		}
		return r
	}
	of := []int{0}
	for _, c := range []struct {
		what  string
		calls []*result
		blame int
	}{
		{"a view where a size is 1", []*result{call([]int{2, 3}, Contiguous, nil), call([]int{2, 1}, Contiguous, of)}, 0},
		{"a view of another layout", []*result{call([]int{2, 3}, Contiguous, nil), call([]int{2, 3}, Transposed, of)}, 0},
		{"a view in plain calls", []*result{call([]int{2, 3}, Contiguous, of), call([]int{2, 1}, Contiguous, of)}, 1},
		{"a view in all that there were", []*result{call([]int{2, 1}, Contiguous, of)}, 1},
		{"no elements elsewhere", []*result{call([]int{2, 0}, Contiguous, nil), call([]int{2, 1}, Contiguous, of)}, 1},
		{"a view where all stays", []*result{call([]int{2, 3}, Contiguous, nil), stays(of, 2)}, 0},
		{"a view of what is another", []*result{call([]int{2, 3}, Contiguous, nil), stays(of, 3), call([]int{2, 1}, Contiguous, of)}, 1},
		{"a view in calls that all stay", []*result{stays(of, 2)}, 1},
		{"one that computes where all stays", []*result{call([]int{2, 3}, Contiguous, nil, "aten::relu"), stays(of, 2)}, 1},
		{"one that computes in others", []*result{call([]int{2, 3}, Contiguous, nil, "aten::cumsum"), call([]int{2, 1}, Contiguous, of)}, 1},
	} {
		s := &Session{cfg: &Config{}, outcomes: c.calls}
		if s.views(); len(s.findings) != c.blame || (len(s.notes) > 0) != (c.blame == 0) {
			t.Errorf("%s: %v, notes %q", c.what, s.findings, s.notes)
		}
	}
}

// TestArgumentsThatAreChangedLieApart: an argument that repeats has memory for each element where
// the reference writes to it, in a call that leaves it as it is too; one that it only reads repeats.
func TestArgumentsThatAreChangedLieApart(t *testing.T) {
	call := func(changed ...string) *result {
		p := &program.Program{Inputs: []program.Input{{Name: "mean", Shape: []int{3}, Strides: []int{0}}, {Name: "x", Shape: []int{2, 3}, Strides: []int{3, 0}}}}
		r := &result{Case: &Case{program: p}, ref: &backend.Outcome{}}
		for _, name := range changed {
			r.ref.Add(backend.Place{Part: backend.PartChange, Owner: name}, nil)
		}
		return r
	}
	s := &Session{}
	if r := call(); s.unfolds(r) {
		t.Error("nothing is changed", r.program.Inputs)
	}
	for _, r := range []*result{call("mean"), call()} {
		if !s.unfolds(r) || r.program.Inputs[0].Strides != nil || r.program.Inputs[1].Strides == nil {
			t.Errorf("%v", r.program.Inputs)
		}
		if s.unfolds(r) {
			t.Error("is made again, without a reason")
		}
	}
}
