package onekernel

import (
	"math/cmplx"
	"slices"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// views holds it against a kernel that results lie in an argument's memory where a size is 1,
// the layout another one, or nothing has moved, unless all that it does is to move
// elements: a reshape may have nothing to copy there.
func (s *Session) views() {
	moves := s.moves()
	for _, r := range s.outcomes {
		switch {
		case r.viewed == "":
		case moves:
			s.note("moves elements alone: its result is a view where there is nothing to copy, as where a size is 1")
		default:
			f := finding{"aliases", r.viewed, r}
			r.problems = append(r.problems, f)
			s.add(f)
		}
	}
}

// moves reports whether no call of the kernel computed anything, and results have memory of
// their own in plain calls, of which there are some.
func (s *Session) moves() bool {
	copies := false
	for _, r := range s.outcomes {
		if r.kernel.Status != backend.OK {
			continue
		}
		if r.seen.Foreign || len(r.seen.Operators) > 0 || len(r.seen.Shares) > 0 && r.plain() && !r.stays() {
			return false
		}
		copies = copies || r.plain() && len(r.seen.Shares) == 0 && r.elements() > 0
	}
	return copies
}

// plain reports whether no tensor of a case has a size of 1, and each is contiguous.
func (c *Case) plain() bool {
	return c.Layout == Contiguous && !slices.ContainsFunc(c.program.Inputs, func(in program.Input) bool { return slices.Contains(in.Shape, 1) })
}

// selectsOne reports whether a case has an index of no dimensions, by which x[i] is a view.
func (c *Case) selectsOne() bool {
	return slices.ContainsFunc(c.program.Inputs, func(in program.Input) bool { return in.DType.IsInt() && len(in.Shape) == 0 })
}

// stays reports whether a result of the reference has an argument's elements, in their order.
func (r *result) stays() bool {
	for _, v := range r.ref.Values {
		for _, t := range leaves(v) {
			for i := range r.program.Inputs {
				if in := &r.program.Inputs[i]; in.DType == t.DType() && sameElements(in.Materialize(), t) {
					return true
				}
			}
		}
	}
	return false
}

// sameElements reports whether tensors have the same elements, NaN as well, of whatever shapes.
func sameElements(a, b *tensor.Tensor) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if x, y := a.At(i), b.At(i); x != y && !(cmplx.IsNaN(x) && cmplx.IsNaN(y)) {
			return false
		}
	}
	return true
}

// unfolds gives an argument that the reference changes, here or in an earlier call, memory of
// its own for each element, and reports whether one had none: what is left where several lie in
// one place depends on the order of the writes, and most of PyTorch's operators refuse it.
func (s *Session) unfolds(r *result) (found bool) {
	for i := range r.program.Inputs {
		in := &r.program.Inputs[i]
		if !slices.Contains(s.changed, in.Name) && changes(r.ref, in.Name) {
			s.changed = append(s.changed, in.Name)
		}
		if slices.Contains(in.Strides, 0) && slices.Contains(s.changed, in.Name) {
			in.Strides, found = nil, true
		}
	}
	return found
}
