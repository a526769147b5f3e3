package kernel

import "math"

// ScaleAdd sets dst to alpha·dst + beta·in; a nil in counts as positive zero,
// to which a BLAS adds its products.
func ScaleAdd[T gemmElement](dst []T, alpha T, in []T, beta T) {
	if in == nil {
		for i := range dst {
			dst[i] = alpha*dst[i] + 0
		}
		return
	}
	in = in[:len(dst)]
	for i := range dst {
		dst[i] = alpha*dst[i] + beta*in[i]
	}
}

// Field is the set of types in which matrices are eliminated.
type Field interface{ float64 | complex128 }

// LU is a square matrix after Gaussian elimination with row exchanges: the
// unit lower triangle and the upper triangle share the place of the matrix.
type LU[T Field] struct {
	N    int
	Sign T // of the row exchanges: 1 or -1
	data []T
	rows []int // which row of the matrix is now row i
}

// Eliminate factors the n×n matrix a, in row-major order, in its place. The
// pivot is the element of the largest absolute value, |re| + |im| of a complex one.
func Eliminate[T Field](n int, a []T) *LU[T] {
	lu := &LU[T]{N: n, Sign: 1, data: a, rows: make([]int, n)}
	for i := range lu.rows {
		lu.rows[i] = i
	}
	for k := range n {
		lu.exchange(k, lu.largest(k))
		pivot := a[k*n+k]
		if pivot == 0 {
			continue
		}
		for i := k + 1; i < n; i++ {
			f := a[i*n+k] / pivot
			a[i*n+k] = f
			addScaled(a[i*n+k+1:(i+1)*n], -f, a[k*n+k+1:(k+1)*n])
		}
	}
	return lu
}

// addScaled adds f·x to y.
func addScaled[T Field](y []T, f T, x []T) {
	x = x[:len(y)]
	for i := range y {
		y[i] += f * x[i]
	}
}

func (lu *LU[T]) largest(k int) int {
	best, at := -1.0, k
	for i := k; i < lu.N; i++ {
		if m := sizeOfElement(lu.data[i*lu.N+k]); m > best {
			best, at = m, i
		}
	}
	return at
}

func sizeOfElement[T Field](v T) float64 {
	switch v := any(v).(type) {
	case float64:
		return max(v, -v)
	case complex128:
		return max(real(v), -real(v)) + max(imag(v), -imag(v))
	}
	return 0
}

func (lu *LU[T]) exchange(i, j int) {
	if i == j {
		return
	}
	x, y := lu.data[i*lu.N:][:lu.N], lu.data[j*lu.N:][:lu.N]
	for k := range x {
		x[k], y[k] = y[k], x[k]
	}
	lu.rows[i], lu.rows[j] = lu.rows[j], lu.rows[i]
	lu.Sign = -lu.Sign
}

// Pivot returns element k of the upper triangle's diagonal.
func (lu *LU[T]) Pivot(k int) T { return lu.data[k*lu.N+k] }

// Zero returns the first k for which the pivot is zero; -1 if the matrix is invertible.
func (lu *LU[T]) Zero() int {
	for k := range lu.N {
		if lu.Pivot(k) == 0 {
			return k
		}
	}
	return -1
}

// Replace puts v in the place of every pivot of zero.
func (lu *LU[T]) Replace(v T) {
	for k := range lu.N {
		if lu.Pivot(k) == 0 {
			lu.data[k*lu.N+k] = v
		}
	}
}

// Det returns the determinant.
func (lu *LU[T]) Det() T {
	d := lu.Sign
	for k := range lu.N {
		d *= lu.Pivot(k)
	}
	return d
}

// Inverse sets x, n×n in row-major order, to the inverse.
func (lu *LU[T]) Inverse(x []T) {
	clear(x)
	for i, r := range lu.rows {
		x[i*lu.N+r] = 1
	}
	lu.substitute(x, lu.N)
}

// Solve sets x, n×m in row-major order, to the solution of A·x = b.
func (lu *LU[T]) Solve(x, b []T, m int) {
	for i, r := range lu.rows {
		copy(x[i*m:(i+1)*m], b[r*m:(r+1)*m])
	}
	lu.substitute(x, m)
}

func (lu *LU[T]) substitute(x []T, m int) {
	n := lu.N
	for i := range n {
		for k := range i {
			addScaled(x[i*m:(i+1)*m], -lu.data[i*n+k], x[k*m:(k+1)*m])
		}
	}
	for i := n - 1; i >= 0; i-- {
		row := x[i*m : (i+1)*m]
		for k := i + 1; k < n; k++ {
			addScaled(row, -lu.data[i*n+k], x[k*m:(k+1)*m])
		}
		for j := range row {
			row[j] /= lu.data[i*n+i]
		}
	}
}

// Cholesky replaces the n×n matrix a, in row-major order, by the lower
// triangular L of a positive diagonal with L·Lᵀ = (a + aᵀ)/2. It returns n, or
// the first row whose leading minor is not positive: its diagonal holds the
// square that has no root, and what follows is unfinished.
func Cholesky(n int, a []float64) int {
	for i := range n {
		for j := range i {
			a[i*n+j], a[j*n+i] = (a[i*n+j]+a[j*n+i])/2, 0
		}
	}
	for j := range n {
		row := a[j*n : j*n+j]
		d := a[j*n+j]
		for _, v := range row {
			d -= v * v
		}
		if !(d > 0) {
			a[j*n+j] = d
			return j
		}
		root := math.Sqrt(d)
		a[j*n+j] = root
		for i := j + 1; i < n; i++ {
			sum := a[i*n+j]
			for k, v := range row {
				sum -= a[i*n+k] * v
			}
			a[i*n+j] = sum / root
		}
	}
	return n
}

// Scale multiplies the elements by a number, rounded to their type.
func Scale[T float32 | float64](x []T, by float64) {
	f := T(by)
	for i := range x {
		x[i] *= f
	}
}

// ScaleComplex is Scale of complex elements.
func ScaleComplex(x []complex128, by float64) {
	for i, v := range x {
		x[i] = complex(real(v)*by, imag(v)*by)
	}
}
