package kernel

import (
	"math"
	"slices"

	"plumb/tensor"
)

// Places says, for each row and each quantile, row by row, between which
// elements it lies, the weight of the upper one, and the range of the ranks, 0 where q
// does not matter.
type Places[T float32 | float64] struct {
	Lower, Upper []int64
	Weight, Span []T
}

// QuantilePlaces fills out for the rows of in along its last dimension. F
// splits a rank, q times the largest one, in ranks and a weight. A row with NaN
// has them at the end, where all its quantiles lie; without says to leave them out.
func QuantilePlaces[T float32 | float64](out Places[T], in *tensor.Tensor, q []T, f func(rank float64) (lower, upper, weight float64), without bool) {
	r := rowsAlong[T](in, in.Dim()-1)
	r.run(func() func(i int) {
		buf, order := r.buffer(), make([]int64, r.reduced.total)
		return func(i int) {
			row := r.row(buf, i)
			real := ascending(order, row)
			span, first := T(len(row)-1), 0.0
			switch {
			case without:
				span = T(real - 1)
			case real < len(row):
				span, first = 0, float64(span)
			}
			for j, v := range q {
				rank, span := first+float64(v*span), span
				if rank < 0 {
					rank, span = 0, 0
				}
				lo, hi, w := f(rank)
				at := i*len(q) + j
				out.Lower[at], out.Upper[at] = order[int(lo)], order[int(hi)]
				out.Weight[at], out.Span[at] = T(w), span
			}
		}
	})
}

// ascending fills order with the places of the row's elements in ascending
// order, NaN last, and returns how many are not NaN.
func ascending[T float32 | float64](order []int64, row []T) int {
	for i := range order {
		order[i] = int64(i)
	}
	slices.SortStableFunc(order, func(i, j int64) int {
		a, b := row[i], row[j]
		switch {
		case a < b || a == a && b != b:
			return -1
		case a > b || a != a && b == b:
			return 1
		}
		return 0
	})
	n := len(row)
	for n > 0 && math.IsNaN(float64(row[order[n-1]])) {
		n--
	}
	return n
}

// Histogram adds to counts how many of x lie in each of its equal intervals
// from lo to hi, the last of which has its end.
func Histogram[T float32 | float64](counts []float64, x []T, lo, hi T) {
	n := T(len(counts))
	for _, v := range x {
		if v >= lo && v <= hi {
			at := len(counts) - 1
			if f := (v - lo) * n / (hi - lo); f < n { // not where a width overflows
				at = int(f)
			}
			counts[at]++
		}
	}
}
