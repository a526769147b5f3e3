package kernel

import (
	"math"

	"plumb/tensor"
)

// ScanRows sets each row of out along dim to f of that row of in, which has
// the same shape. The slices that f gets have equal lengths and do not overlap.
func ScanRows[D, T Lane](out, in *tensor.Tensor, dim int, f func(dst []D, row []T)) {
	r, w := rowsAlong[T](in, dim), rowsAlong[D](out, dim)
	store := storer[D](out)
	r.run(func() func(i int) {
		buf, dst := r.buffer(), w.buffer()
		return func(i int) {
			f(dst, r.row(buf, i))
			w.put(store, dst, i)
		}
	})
}

// ScanPairs is ScanRows for two results.
func ScanPairs[D, E, T Lane](first, second, in *tensor.Tensor, dim int, f func(a []D, b []E, row []T)) {
	r, wa, wb := rowsAlong[T](in, dim), rowsAlong[D](first, dim), rowsAlong[E](second, dim)
	sa, sb := storer[D](first), storer[E](second)
	r.run(func() func(i int) {
		buf, a, b := r.buffer(), wa.buffer(), wb.buffer()
		return func(i int) {
			f(a, b, r.row(buf, i))
			wa.put(sa, a, i)
			wb.put(sb, b, i)
		}
	})
}

// ScanRows2 is ScanRows of two operands.
func ScanRows2[T Lane](out, x, y *tensor.Tensor, dim int, f func(dst, x, y []T)) {
	rx, ry, w := rowsAlong[T](x, dim), rowsAlong[T](y, dim), rowsAlong[T](out, dim)
	store := storer[T](out)
	rx.run(func() func(i int) {
		bx, by, dst := rx.buffer(), ry.buffer(), w.buffer()
		return func(i int) {
			f(dst, rx.row(bx, i), ry.row(by, i))
			w.put(store, dst, i)
		}
	})
}

// ScanRows3 is ScanRows of three operands.
func ScanRows3[T Lane](out, x, y, z *tensor.Tensor, dim int, f func(dst, x, y, z []T)) {
	rx, ry, rz, w := rowsAlong[T](x, dim), rowsAlong[T](y, dim), rowsAlong[T](z, dim), rowsAlong[T](out, dim)
	store := storer[T](out)
	rx.run(func() func(i int) {
		bx, by, bz, dst := rx.buffer(), ry.buffer(), rz.buffer(), w.buffer()
		return func(i int) {
			f(dst, rx.row(bx, i), ry.row(by, i), rz.row(bz, i))
			w.put(store, dst, i)
		}
	})
}

// rowsAlong is rowsOf one dimension, none of a 0-d tensor.
func rowsAlong[T Lane](t *tensor.Tensor, dim int) *reduction[T] {
	if t.Dim() == 0 {
		return rowsOf[T](t, nil)
	}
	return rowsOf[T](t, []int{dim})
}

// put writes row i.
func (r *reduction[T]) put(store storeFunc[T], row []T, i int) {
	if len(row) > 0 {
		store(row, r.kept.at(0, i), r.reduced.step(0))
	}
}

// CumSum sets dst[i] to the sum of row[:i+1], each rounded once.
func CumSum[T realLane, A float64 | int64](dst, row []T) {
	acc := A(0)
	for i, v := range row {
		acc += A(v)
		dst[i] = T(acc)
	}
}

// CumSumComplex is CumSum for complex elements.
func CumSumComplex(dst, row []complex128) {
	acc := complex128(0)
	for i, v := range row {
		acc += v
		dst[i] = acc
	}
}

// CumSumBack is CumSum from the end: dst[i] is the sum of row[i:].
func CumSumBack[T realLane, A float64 | int64](dst, row []T) {
	acc := A(0)
	for i := len(row) - 1; i >= 0; i-- {
		acc += A(row[i])
		dst[i] = T(acc)
	}
}

// CumSumBackComplex is CumSumBack for complex elements.
func CumSumBackComplex(dst, row []complex128) {
	acc := complex128(0)
	for i := len(row) - 1; i >= 0; i-- {
		acc += row[i]
		dst[i] = acc
	}
}

// CumProd sets dst[i] to the product of row[:i+1].
func CumProd[T Lane](dst, row []T) {
	acc := T(1)
	for i, v := range row {
		acc *= v
		dst[i] = acc
	}
}

// CumProd32 is CumProd, each product rounded once.
func CumProd32(dst, row []float32) {
	acc := 1.0
	for i, v := range row {
		acc *= float64(v)
		dst[i] = float32(acc)
	}
}

// CumProdBack sets dst[i] to Σ over k ≥ i of g[k]·Π over j ≤ k, j ≠ i of x[j],
// the gradient of CumProd.
func CumProdBack[T Lane](dst, g, x []T) {
	acc := T(1)
	for i, v := range x {
		dst[i] = acc
		acc *= v
	}
	tail := T(0)
	for i := len(x) - 1; i >= 0; i-- {
		if i+1 < len(x) {
			tail *= x[i+1]
		}
		tail += g[i]
		dst[i] *= tail
	}
}

// CumMax sets values[i] to the largest of row[:i+1], NaN from the first NaN
// on, and indices[i] to the last place at which it occurs.
func CumMax[T realLane](values []T, indices []int64, row []T) {
	at := 0
	for i, v := range row {
		if v >= row[at] || v != v {
			at = i
		}
		values[i], indices[i] = row[at], int64(at)
	}
}

// CumMin is CumMax for the smallest.
func CumMin[T realLane](values []T, indices []int64, row []T) {
	at := 0
	for i, v := range row {
		if v <= row[at] || v != v {
			at = i
		}
		values[i], indices[i] = row[at], int64(at)
	}
}

// LogCumSumExp sets dst[i] to log Σ exp(row[:i+1]).
func LogCumSumExp[T float32 | float64](dst, row []T) {
	acc := math.Inf(-1)
	for i, v := range row {
		acc = logAddExp(acc, float64(v))
		dst[i] = T(acc)
	}
}

func logAddExp(a, b float64) float64 {
	lo, hi := min(a, b), max(a, b)
	if lo == hi && math.IsInf(lo, 0) {
		return lo
	}
	return hi + math.Log1p(math.Exp(lo-hi))
}

// LogCumSumExpBack sets dst[i] to Σ over k ≥ i of g[k]·exp(x[i] − y[k]), the
// gradient of LogCumSumExp with the result y.
func LogCumSumExpBack[T float32 | float64](dst, g, x, y []T) {
	tail := 0.0
	for i := len(x) - 1; i >= 0; i-- {
		if i+1 < len(x) {
			tail *= math.Exp(float64(y[i]) - float64(y[i+1]))
		}
		tail += float64(g[i])
		dst[i] = T(math.Exp(float64(x[i])-float64(y[i])) * tail)
	}
}
