package kernel

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"

	"plumb/tensor"
)

// rowsOf prepares a walk over a tensor's rows: the elements along dims, in
// row-major order, for each index of the other dimensions.
func rowsOf[T Lane](in *tensor.Tensor, dims []int) *reduction[T] {
	r := newReduction[T](in, dims)
	var shape, strides []int
	for d, n := range in.Shape() {
		if slices.Contains(dims, d) {
			shape, strides = append(shape, n), append(strides, in.Strides()[d])
		}
	}
	r.reduced = mergedPlan(shape, strides)
	return r
}

// row returns row i, in buf unless its elements lie side by side.
func (r *reduction[T]) row(buf []T, i int) []T {
	m := r.reduced.total
	if m == 0 {
		return buf[:0]
	}
	base := r.kept.at(0, i)
	if len(r.reduced.shape) == 1 {
		return r.get(buf, base, r.reduced.step(0), m)
	}
	r.reduced.segments(0, 0, m, func(from, n, at int) { r.load(buf[from:from+n], base+at, r.reduced.step(0)) })
	return buf[:m]
}

// run calls what worker returns for every row, several at a time; each worker
// may keep memory of its own.
func (r *reduction[T]) run(worker func() func(i int)) {
	Parallel(r.kept.total, max(1, mapGrain/max(r.reduced.total, 1)), func(lo, hi int) {
		f := worker()
		for i := lo; i < hi; i++ {
			f(i)
		}
	})
}

// buffer returns memory for one row.
func (r *reduction[T]) buffer() []T { return make([]T, r.reduced.total) }

// ReduceRows sets the contiguous out to f of each row of in along dims, in
// row-major order; f must not write to it.
func ReduceRows[T, D Lane](out, in *tensor.Tensor, dims []int, f func(row []T) D) {
	r := rowsOf[T](in, dims)
	vals := make([]D, r.kept.total)
	r.run(func() func(i int) {
		buf := r.buffer()
		return func(i int) { vals[i] = f(r.row(buf, i)) }
	})
	storer[D](out)(vals, 0, 1)
}

// ReducePairs is ReduceRows for two results, both contiguous; nil ones are
// dropped. Scratch is as long as a row.
func ReducePairs[T, A, B Lane](first, second, in *tensor.Tensor, dims []int, f func(row, scratch []T) (A, B)) {
	r := rowsOf[T](in, dims)
	as, bs := make([]A, r.kept.total), make([]B, r.kept.total)
	r.run(func() func(i int) {
		buf, scratch := r.buffer(), r.buffer()
		return func(i int) { as[i], bs[i] = f(r.row(buf, i), scratch) }
	})
	if first != nil {
		storer[A](first)(as, 0, 1)
	}
	if second != nil {
		storer[B](second)(bs, 0, 1)
	}
}

// rowMoments returns the mean of a row and the sum of squared deviations from it.
func rowMoments[T float32 | float64](row []T) (mean, squares float64) {
	sum := sumRow[T, float64](0, row, 0)
	mean = sum / float64(len(row))
	rest := 0.0
	for _, v := range row {
		d := float64(v) - mean
		squares += d * d
		rest += d
	}
	if constant(row) {
		return mean, 0
	}
	return mean, squares - rest*rest/float64(max(len(row), 1))
}

// constant reports whether a row's elements are finite and equal: they do not
// deviate from their mean, whatever its rounding.
func constant[T float32 | float64 | complex128](row []T) bool {
	for _, v := range row {
		if v != row[0] || v-v != 0 {
			return false
		}
	}
	return true
}

// VarianceRow returns how to compute the variance with a correction of the
// divisor, len(row) − correction but not below 0, and the mean of a row.
func VarianceRow[T float32 | float64](correction float64) func(row, _ []T) (variance, mean T) {
	return func(row, _ []T) (T, T) {
		mean, squares := rowMoments(row)
		return T(squares / max(0, float64(len(row))-correction)), T(mean)
	}
}

// DeviationRow is VarianceRow with the square root of the variance.
func DeviationRow[T float32 | float64](correction float64) func(row, _ []T) (deviation, mean T) {
	return func(row, _ []T) (T, T) {
		mean, squares := rowMoments(row)
		return T(math.Sqrt(squares / max(0, float64(len(row))-correction))), T(mean)
	}
}

// ComplexVarianceRow is VarianceRow for complex elements: the mean of |x − mean|²;
// with root, DeviationRow.
func ComplexVarianceRow(correction float64, root bool) func(row, _ []complex128) (float64, complex128) {
	return func(row, _ []complex128) (float64, complex128) {
		var sum complex128
		for _, v := range row {
			sum += v
		}
		mean := complex(real(sum)/float64(len(row)), imag(sum)/float64(len(row)))
		squares := 0.0
		for _, v := range row {
			d := v - mean
			squares += real(d)*real(d) + imag(d)*imag(d)
		}
		if constant(row) {
			squares = 0
		}
		v := squares / max(0, float64(len(row))-correction)
		if root {
			v = math.Sqrt(v)
		}
		return v, mean
	}
}

// NormRow returns how to compute the norm (Σ|x|ᵖ)^(1/p) of a row; the largest
// and the smallest |x| for an infinite p, the number of non-zeros for 0.
func NormRow[T float32 | float64](p float64) func(row []T) T {
	return func(row []T) T { return T(norm(p, row, func(v T) float64 { return math.Abs(float64(v)) })) }
}

// ComplexNormRow is NormRow for complex elements.
func ComplexNormRow(p float64) func(row []complex128) float64 {
	return func(row []complex128) float64 {
		return norm(p, row, func(v complex128) float64 { return math.Hypot(real(v), imag(v)) })
	}
}

func norm[T Lane](p float64, row []T, abs func(T) float64) float64 {
	acc := 0.0
	switch {
	case math.IsInf(p, 1):
		for _, v := range row {
			acc = max(acc, abs(v))
		}
		return acc
	case math.IsInf(p, -1):
		acc = math.Inf(1)
		for _, v := range row {
			acc = min(acc, abs(v))
		}
		return acc
	case p == 0:
		for _, v := range row {
			if abs(v) != 0 {
				acc++
			}
		}
		return acc
	case p == 1:
		for _, v := range row {
			acc += abs(v)
		}
		return acc
	case p == 2:
		for _, v := range row {
			a := abs(v)
			acc += a * a
		}
		return math.Sqrt(acc)
	}
	for _, v := range row {
		acc += math.Pow(abs(v), p)
	}
	return math.Pow(acc, 1/p)
}

// ProductRow multiplies a row; 1 without elements.
func ProductRow[T Lane](row []T) T {
	acc := T(1)
	for _, v := range row {
		acc *= v
	}
	return acc
}

// ProductRow32 is ProductRow, rounded once.
func ProductRow32(row []float32) float32 {
	acc := 1.0
	for _, v := range row {
		acc *= float64(v)
	}
	return float32(acc)
}

// OtherProducts sets each dst[i] to the product of row without row[i].
func OtherProducts[T Lane](dst, row []T) {
	acc := T(1)
	for i, v := range row {
		dst[i] = acc
		acc *= v
	}
	acc = 1
	for i := len(row) - 1; i >= 0; i-- {
		dst[i] *= acc
		acc *= row[i]
	}
}

// NanSumRow sums the elements of a row that are not NaN.
func NanSumRow[T float32 | float64](row []T) T {
	acc := 0.0
	for _, v := range row {
		if v == v {
			acc += float64(v)
		}
	}
	return T(acc)
}

// AllRow reports as 1 or 0 whether no element is 0.
func AllRow[T Lane](row []T) uint8 {
	for _, v := range row {
		if v == 0 {
			return 0
		}
	}
	return 1
}

// AnyRow reports as 1 or 0 whether an element is not 0.
func AnyRow[T Lane](row []T) uint8 {
	for _, v := range row {
		if v != 0 {
			return 1
		}
	}
	return 0
}

// CountRow counts the elements that are not 0.
func CountRow[T Lane](row []T) int64 {
	n := int64(0)
	for _, v := range row {
		if v != 0 {
			n++
		}
	}
	return n
}

// MinRow returns the smallest element, NaN if there is one, and its first
// index. The row must have an element.
func MinRow[T realLane](row, _ []T) (T, int64) {
	at := 0
	for i, v := range row {
		if v < row[at] || v != v {
			at = i
			if v != v {
				break
			}
		}
	}
	return row[at], int64(at)
}

// MaxRow is MinRow for the largest element.
func MaxRow[T realLane](row, _ []T) (T, int64) {
	at := 0
	for i, v := range row {
		if v > row[at] || v != v {
			at = i
			if v != v {
				break
			}
		}
	}
	return row[at], int64(at)
}

// LogSumExpRow returns log Σ exp(x), −∞ without elements.
func LogSumExpRow[T float32 | float64](row []T) T {
	top := math.Inf(-1)
	for _, v := range row {
		top = max(top, float64(v))
	}
	if math.IsInf(top, 0) {
		top = 0
	}
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v) - top)
	}
	return T(top + math.Log(sum))
}

// LogSumExpRowComplex returns log Σ e^z, scaled by the largest real part.
func LogSumExpRowComplex(row []complex128) complex128 {
	top := math.Inf(-1)
	for _, z := range row {
		top = max(top, real(z))
	}
	if math.IsInf(top, 0) {
		top = 0
	}
	sum := complex128(0)
	for _, z := range row {
		sum += cmplx.Exp(z - complex(top, 0))
	}
	return complex(top, 0) + LogComplex(sum)
}

// ModeRow returns the most frequent element, the smallest of several, and the
// last index at which it occurs. Scratch is as long as the row, which has an element.
func ModeRow[T realLane](row, scratch []T) (T, int64) {
	sorted := append(scratch[:0], row...)
	slices.SortFunc(sorted, func(a, b T) int { return cmp.Compare(a, b) })
	mode, most := sorted[0], 0
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		if j-i > most {
			mode, most = sorted[i], j-i
		}
		i = j
	}
	at := len(row) - 1
	for at > 0 && row[at] != mode {
		at--
	}
	return mode, int64(at)
}
