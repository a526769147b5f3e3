package onekernel

import (
	"testing"

	"plumb/backend"
	"plumb/program"
)

// TestViews: a reshape returns a view where there is nothing to copy, which is held against
// no kernel that only moves elements, and copies them elsewhere.
func TestViews(t *testing.T) {
	call := func(shape []int, layout Layout, shares []int, operators ...string) *result {
		p := &program.Program{Inputs: []program.Input{{Name: "x", Shape: shape}}}
		r := &result{Case: &Case{Layout: layout, program: p}, kernel: &backend.Outcome{Status: backend.OK}, seen: observed{Shares: shares, Operators: operators}}
		if len(shares) > 0 && !r.plain() {
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
		{"one that computes in others", []*result{call([]int{2, 3}, Contiguous, nil, "aten::cumsum"), call([]int{2, 1}, Contiguous, of)}, 1},
	} {
		s := &Session{cfg: &Config{}, outcomes: c.calls}
		if s.views(); len(s.findings) != c.blame || (len(s.notes) > 0) != (c.blame == 0) {
			t.Errorf("%s: %v, notes %q", c.what, s.findings, s.notes)
		}
	}
}
