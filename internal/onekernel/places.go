package onekernel

import (
	"math"
	"math/cmplx"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// displaced reports whether all that differs are places of equal elements, among which the
// reference's choice is its own.
func (r *result) displaced() bool {
	if !r.choosesFreely() {
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
			if !x.DType().IsFloat() || !pointsInto(want.Shape(), x.Shape(), dim) || !r.picksOf(x, dim, want) {
				continue
			}
			if indexed = true; r.alikeIn(x, dim, want, got) {
				return true
			}
		}
	}
	return r.amongMany(want, got, indexed) || !indexed && (r.Layout == Expanded || slices.Contains(tying, r.Regime) || slices.Contains(tying, r.kept))
}

// tying are the regimes in which what is computed of arguments has equal elements, by nearly
// equal arguments or by what it underflows to.
var tying = []Regime{ConstRows, ZeroRows, Ties, Zeros, Tiny, Large}

// pointsInto reports whether places of a shape may be along a dimension of another one.
func pointsInto(places, shape []int, dim int) bool {
	return len(places) == len(shape) && slices.Equal(places[:dim], shape[:dim]) && slices.Equal(places[dim+1:], shape[dim+1:])
}

// picksOf reports whether the first place of each line, by a reference that sorts or takes the
// largest, is of an extreme one there: else it chooses by what it computes of x, as a gate of
// experts does.
func (r *result) picksOf(x *tensor.Tensor, dim int, want *tensor.Tensor) bool {
	if !slices.ContainsFunc(choosing[:ordered], func(name string) bool { return slices.Contains(r.refSeen.Operators, name) }) {
		return true
	}
	shape, n := want.Shape(), x.Shape()[dim]
	inner, flat := tensor.NumElements(shape[dim+1:]), x.Contiguous()
	for i := range want.Len() {
		if i/inner%shape[dim] != 0 {
			continue
		}
		place, base := int(real(want.At(i))), i/(inner*shape[dim])*inner*n+i%inner
		if place < 0 || place >= n {
			return false
		}
		least, most, chosen := math.Inf(1), math.Inf(-1), flat.Float(base+place*inner)
		for k := range n {
			least, most = min(least, flat.Float(base+k*inner)), max(most, flat.Float(base+k*inner))
		}
		u := roundings * compare.Roundoff(r.DType)
		if chosen < most-u*math.Abs(most) && chosen > least+u*math.Abs(least) {
			return false
		}
	}
	return true
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
		if !known || !legal || !(math.Abs(v-w) <= roundings*u*max(1, math.Abs(v))) && !(math.IsNaN(v) && math.IsNaN(w)) && !r.chosenByMany(shape, i) {
			return false
		}
	}
	return len(seen[1]) >= len(seen[0])
}

// chosenByMany reports whether element i of a result of the reference, of a shape, is one that a
// softmax has many of: 0, to which it underflows, or NaN, which one infinity makes of a row.
func (r *result) chosenByMany(shape []int, i int) bool {
	for _, v := range r.ref.Values {
		for _, t := range leaves(v) {
			if t.DType().IsFloat() && slices.Equal(t.Shape(), shape) && (t.At(i) == 0 || cmplx.IsNaN(t.At(i))) {
				return true
			}
		}
	}
	return false
}

// rare is the part of places that near ties may be, of which nothing but the places tells.
const rare = 1. / 64

// amongMany reports whether places differ alone where what the reference chose is one of many,
// or, where it is not told what of, is beside one that is as large, or hardly anywhere.
func (r *result) amongMany(want, got *tensor.Tensor, told bool) bool {
	left := 0
	for i := range want.Len() {
		switch {
		case want.At(i) == got.At(i) || r.chosenByMany(want.Shape(), i):
		case told:
			return false
		case !r.tied(want.Shape(), i):
			left++
		}
	}
	return float64(left) <= rare*float64(want.Len())
}

// tied reports whether element i of a result of the reference, of a shape, equals one beside it
// in its row to some roundings.
func (r *result) tied(shape []int, i int) bool {
	if len(shape) == 0 {
		return false
	}
	width := shape[len(shape)-1]
	for _, v := range r.ref.Values {
		for _, t := range leaves(v) {
			if !t.DType().IsFloat() || !slices.Equal(t.Shape(), shape) {
				continue
			}
			for _, k := range []int{i - 1, i + 1} {
				if k >= 0 && k/width == i/width && verdict.Distance(t.At(i), t.At(k)) <= roundings*compare.Roundoff(t.DType())*cmplx.Abs(t.At(i)) {
					return true
				}
			}
		}
	}
	return false
}
