// Package picture shows where in a tensor a candidate differs from what is
// expected: in words, in characters for a terminal, and as SVG for a page.
package picture

import (
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// Field is one comparison, element by element in row-major order.
type Field struct {
	Where verdict.Where
	DType tensor.DType
	Shape []int
	// Want and Got are the elements; the modulus of a complex number.
	Want, Got []float64
	// Ratio is error ÷ limit: 0 for equal elements, infinite where nothing but
	// equality passes or where one side alone is not finite.
	Ratio []float64
	// ULP is how many units in the last place of the expected element they differ.
	ULP []float64
	// Over is the number of elements beyond the limit; First the index of the
	// first of them, Worst that of the largest ratio.
	Over         int
	First, Worst []int

	want, got *tensor.Tensor
}

// mostElements bounds the tensors that are looked at element by element.
const mostElements = 1 << 22

// Of returns the field of a record's first difference; nil where it is not one of
// elements, as of shapes, exceptions and random results, or where no element is
// beyond its limit.
func Of(r *verdict.Record) *Field {
	if len(r.Verdict.Differences) == 0 {
		return nil
	}
	d := &r.Verdict.Differences[0]
	if d.Diff.Rule != compare.Distance && d.Diff.Rule != compare.NonFinite {
		return nil
	}
	want, got := verdict.Sides(r.Reference, r.Outcome, d.Where)
	if want == nil || got == nil || want.Len() == 0 || want.Len() > mostElements || want.DType() != got.DType() || !slices.Equal(want.Shape(), got.Shape()) {
		return nil
	}
	f := measure(want, got, d.Limit)
	if f.Where = d.Where; f.Over == 0 {
		return nil
	}
	return f
}

func measure(want, got *tensor.Tensor, limit compare.Limit) *Field {
	n := want.Len()
	f := &Field{DType: want.DType(), Shape: want.Shape(), Want: make([]float64, n), Got: make([]float64, n), Ratio: make([]float64, n), ULP: make([]float64, n), want: want, got: got}
	if limit.Error != nil && limit.Error.Len() != n {
		limit.Error = nil
	}
	first, worst := -1, 0
	for i := range n {
		w, g := want.At(i), got.At(i)
		f.Want[i], f.Got[i] = number(w), number(g)
		f.Ratio[i] = ratio(w, g, limit.Allows(want, i))
		if f.Ratio[i] > 0 {
			f.ULP[i] = verdict.Distance(w, g) / compare.Spacing(number(complex(math.Abs(real(w)), imag(w))), want.DType())
		}
		if f.Ratio[i] > f.Ratio[worst] {
			worst = i
		}
		if f.Ratio[i] > 1 {
			if f.Over++; first < 0 {
				first = i
			}
		}
	}
	f.Worst = f.Index(worst)
	if first >= 0 {
		f.First = f.Index(first)
	}
	return f
}

// number is a real element, or the modulus of a complex one.
func number(z complex128) float64 {
	if imag(z) == 0 {
		return real(z)
	}
	return cmplx.Abs(z)
}

func ratio(w, g complex128, allowed float64) float64 {
	err := verdict.Distance(w, g)
	switch {
	case err == 0:
		return 0
	case allowed == 0:
		return math.Inf(1)
	}
	return err / allowed
}

// Index returns the coordinates of an element.
func (f *Field) Index(i int) []int {
	out := make([]int, len(f.Shape))
	for d := len(f.Shape) - 1; d >= 0; d-- {
		out[d] = i % f.Shape[d]
		i /= f.Shape[d]
	}
	return out
}

// Offset returns the element at coordinates.
func (f *Field) Offset(index []int) int {
	at := 0
	for d, i := range index {
		at = at*f.Shape[d] + i
	}
	return at
}

// Element prints what is expected at an index, and what is there.
func (f *Field) Element(index []int) (want, got string) {
	i := f.Offset(index)
	return compare.Element(f.want, i), compare.Element(f.got, i)
}

// Profile returns the largest ratio of each index of a dimension.
func (f *Field) Profile(dim int) []float64 {
	out := make([]float64, f.Shape[dim])
	inner := tensor.NumElements(f.Shape[dim+1:])
	for i, r := range f.Ratio {
		if k := i / inner % f.Shape[dim]; r > out[k] {
			out[k] = r
		}
	}
	return out
}

// Slice is a part of a field in which all but the last two dimensions are fixed.
type Slice struct {
	Fixed         []int // the indices of the dimensions before
	Rows, Columns int
	Over          int
	First         int // the element with which it begins
}

// Slices returns the slices with elements beyond the limit, those with most first.
func (f *Field) Slices() []Slice {
	rows, columns := 1, 1
	rank := len(f.Shape)
	if rank > 0 {
		columns = f.Shape[rank-1]
	}
	if rank > 1 {
		rows = f.Shape[rank-2]
	}
	size := rows * columns
	var out []Slice
	for first := 0; first < len(f.Ratio); first += size {
		s := Slice{Rows: rows, Columns: columns, First: first}
		for _, r := range f.Ratio[first : first+size] {
			if r > 1 {
				s.Over++
			}
		}
		if s.Over > 0 {
			s.Fixed = f.Index(first)[:max(rank-2, 0)]
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Slice) int { return b.Over - a.Over })
	return out
}

// Pool returns the largest ratio of each of at most so many blocks of rows and columns.
func (f *Field) Pool(s Slice, mostRows, mostColumns int) [][]float64 {
	rows, columns := min(s.Rows, mostRows), min(s.Columns, mostColumns)
	out := make([][]float64, rows)
	for r := range out {
		out[r] = make([]float64, columns)
	}
	for i := range s.Rows * s.Columns {
		r, c := i/s.Columns*rows/s.Rows, i%s.Columns*columns/s.Columns
		out[r][c] = max(out[r][c], f.Ratio[s.First+i])
	}
	return out
}
