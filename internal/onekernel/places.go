package onekernel

import (
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// displaced reports whether all that differs are places of equal elements, among which the
// reference's choice is its own.
func (r *result) displaced() bool {
	if !slices.ContainsFunc(choosing, func(name string) bool { return slices.Contains(r.refSeen.Operators, name) }) {
		return false
	}
	return len(r.verdict.Differences) > 0 && !slices.ContainsFunc(r.verdict.Differences, func(d verdict.Difference) bool {
		want, got := verdict.At(r.ref, d.Where), verdict.At(r.kernel, d.Where)
		return d.Where.Part != backend.PartValue || d.Diff.Rule != compare.Distance || want == nil || got == nil || !want.DType().IsInt() || !slices.Equal(want.Shape(), got.Shape()) || !r.alike(want, got)
	})
}

// alike reports whether places are of equal elements of an argument. Where they point into no
// argument, but into what the reference computes first, only the call tells whether there
// are any.
func (r *result) alike(want, got *tensor.Tensor) bool {
	indexed := false
	for k := range r.program.Inputs {
		x := r.program.Inputs[k].Materialize()
		for dim := range want.Shape() {
			if !x.DType().IsFloat() || !pointsInto(want.Shape(), x.Shape(), dim) {
				continue
			}
			if indexed = true; r.alikeIn(x, dim, want, got) {
				return true
			}
		}
	}
	return !indexed && (r.Layout == Expanded || slices.Contains([]Regime{ConstRows, ZeroRows, Ties, Zeros, Tiny, Large}, r.Regime))
}

// pointsInto reports whether places of a shape may be along a dimension of another one.
func pointsInto(places, shape []int, dim int) bool {
	return len(places) == len(shape) && slices.Equal(places[:dim], shape[:dim]) && slices.Equal(places[dim+1:], shape[dim+1:])
}

// alikeIn reports whether places along a dimension are of elements of x that are equal to
// some roundings, of the function that the reference chooses by, or that it has as 0, and as
// distinct as its own.
func (r *result) alikeIn(x *tensor.Tensor, dim int, want, got *tensor.Tensor) bool {
	shape, n := want.Shape(), x.Shape()[dim]
	inner, flat := tensor.NumElements(shape[dim+1:]), x.Contiguous()
	at := func(i, place int) (float64, bool) {
		if place < 0 || place >= n {
			return 0, false
		}
		return flat.Float(i/(inner*shape[dim])*inner*n + place*inner + i%inner), true
	}
	u := compare.Roundoff(r.DType)
	seen := [2]map[[2]int]bool{{}, {}}
	for i := range want.Len() {
		line := i/(inner*shape[dim])*inner + i%inner
		seen[0][[2]int{line, int(real(want.At(i)))}] = true
		seen[1][[2]int{line, int(real(got.At(i)))}] = true
		v, known := at(i, int(real(want.At(i))))
		w, legal := at(i, int(real(got.At(i))))
		if !known || !legal || !(math.Abs(v-w) <= roundings*u*max(1, math.Abs(v))) && !r.chosenAsZero(shape, i) {
			return false
		}
	}
	return len(seen[1]) >= len(seen[0])
}

// chosenAsZero reports whether element i of a result of the reference, of a shape, is 0, to
// which a softmax underflows.
func (r *result) chosenAsZero(shape []int, i int) bool {
	for _, v := range r.ref.Values {
		for _, t := range leaves(v) {
			if t.DType().IsFloat() && slices.Equal(t.Shape(), shape) && t.At(i) == 0 {
				return true
			}
		}
	}
	return false
}
