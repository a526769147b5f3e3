package kernel

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"
)

// sweeps bounds the passes of Jacobi's methods, which converge in about ten.
const sweeps = 60

func conjugated[T Field](v T) T {
	if z, ok := any(v).(complex128); ok {
		return any(cmplx.Conj(z)).(T)
	}
	return v
}

func realOf[T Field](v T) float64 {
	switch v := any(v).(type) {
	case float64:
		return v
	case complex128:
		return real(v)
	}
	return 0
}

// absolute returns |v|.
func absolute[T Field](v T) float64 {
	switch v := any(v).(type) {
	case float64:
		return math.Abs(v)
	case complex128:
		return cmplx.Abs(v)
	}
	return 0
}

func fieldOf[T Field](v float64) T {
	var out T
	switch p := any(&out).(type) {
	case *float64:
		*p = v
	case *complex128:
		*p = complex(v, 0)
	}
	return out
}

// Finite reports whether all elements are finite.
func Finite[T Field](a []T) bool {
	return !slices.ContainsFunc(a, func(v T) bool { return v-v != 0 })
}

// rotation turns two columns x and y into c·x − s·w·y and s·x + c·w·y.
type rotation[T Field] struct{ c, s, w T }

// diagonalising returns the rotation that makes a diagonal matrix of the
// Hermitian one with the diagonal alpha, beta and gamma ≠ 0 above it.
func diagonalising[T Field](alpha, beta float64, gamma T) rotation[T] {
	size := absolute(gamma)
	theta := (beta - alpha) / (2 * size)
	t := 1 / (math.Abs(theta) + math.Hypot(theta, 1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Hypot(t, 1)
	return rotation[T]{fieldOf[T](c), fieldOf[T](t * c), conjugated(gamma) / fieldOf[T](size)}
}

func (r rotation[T]) turn(x, y []T) {
	y = y[:len(x)]
	for i, a := range x {
		b := r.w * y[i]
		x[i], y[i] = r.c*a-r.s*b, r.s*a+r.c*b
	}
}

// innerProduct returns Σ conj(x)·y.
func innerProduct[T Field](x, y []T) T {
	y = y[:len(x)]
	var sum T
	for i, v := range x {
		sum += conjugated(v) * y[i]
	}
	return sum
}

func euclidean[T Field](x []T) float64 {
	sum := 0.0
	for _, v := range x {
		sum = math.Hypot(sum, absolute(v))
	}
	return sum
}

func identity[T Field](n int) []T {
	v := make([]T, n*n)
	for i := range n {
		v[i*n+i] = 1
	}
	return v
}

// SVD is a thin singular value decomposition A = U·diag(S)·Vᴴ: S descends, and
// U and V hold their columns one after the other. A column of U whose
// singular value is 0, or of V where A has more columns than rows, is 0. The
// largest element of each column of the square one of U and V is real.
type SVD[T Field] struct {
	S    []float64
	U, V []T
}

// Decompose returns the singular value decomposition of the m×n matrix a, in
// row-major order, by one-sided rotations: Demmel and Veselić, "Jacobi's method
// is more accurate than QR" (SIAM J. Matrix Anal. Appl. 13, 1992).
func Decompose[T Field](m, n int, a []T) *SVD[T] {
	if m < n {
		h := make([]T, m*n) // the columns of Aᴴ are the conjugate rows of A
		for i, v := range a[:m*n] {
			h[i] = conjugated(v)
		}
		d := decomposeColumns(n, m, h)
		d.U, d.V = d.V, d.U
		return d
	}
	columns := make([]T, m*n)
	for i := range m {
		for j := range n {
			columns[j*m+i] = a[i*n+j]
		}
	}
	return decomposeColumns(m, n, columns)
}

func decomposeColumns[T Field](m, n int, u []T) *SVD[T] {
	v := identity[T](n)
	for turned, sweep := true, 0; turned && sweep < sweeps; sweep++ {
		turned = false
		for p := range n {
			for q := p + 1; q < n; q++ {
				x, y := u[p*m:][:m], u[q*m:][:m]
				alpha, beta, gamma := realOf(innerProduct(x, x)), realOf(innerProduct(y, y)), innerProduct(x, y)
				if g := absolute(gamma); g == 0 || g <= 0x1p-52*math.Sqrt(alpha)*math.Sqrt(beta) {
					continue
				}
				turned = true
				r := diagonalising(alpha, beta, gamma)
				r.turn(x, y)
				r.turn(v[p*n:][:n], v[q*n:][:n])
			}
		}
	}
	d := &SVD[T]{S: make([]float64, n)}
	for j := range n {
		d.S[j] = euclidean(u[j*m:][:m])
	}
	order := sortedBy(d.S, func(x, y float64) bool { return x > y })
	d.U, d.V = columnsIn(u, m, order), columnsIn(v, n, order)
	settlePhases(n, d.V, d.U)
	for j, s := range d.S {
		if s > 0 {
			divide(d.U[j*m:][:m], s)
		}
	}
	return d
}

// settlePhases makes the largest element of each of the n columns of v positive
// if they are complex, turning the columns of u alike, so that v is a smooth
// function of the matrix. The sign of real ones is one already.
func settlePhases[T Field](n int, v, u []T) {
	if _, complexes := any(v).([]complex128); !complexes || n == 0 {
		return
	}
	m := len(u) / n
	for j := range n {
		column := v[j*n:][:n]
		largest := slices.MaxFunc(column, func(x, y T) int { return cmp.Compare(absolute(x), absolute(y)) })
		if size := absolute(largest); size > 0 {
			phase := conjugated(largest) / fieldOf[T](size)
			scale(column, phase)
			scale(u[j*m:][:m], phase)
		}
	}
}

func scale[T Field](x []T, by T) {
	for i := range x {
		x[i] *= by
	}
}

func divide[T Field](x []T, by float64) {
	f := fieldOf[T](by)
	for i := range x {
		x[i] /= f
	}
}

// sortedBy sorts values and returns where each was.
func sortedBy(values []float64, before func(x, y float64) bool) []int {
	order, unsorted := make([]int, len(values)), slices.Clone(values)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case before(unsorted[i], unsorted[j]):
			return -1
		case before(unsorted[j], unsorted[i]):
			return 1
		}
		return 0
	})
	for i, j := range order {
		values[i] = unsorted[j]
	}
	return order
}

func columnsIn[T Field](columns []T, m int, order []int) []T {
	out := make([]T, 0, len(columns))
	for _, j := range order {
		out = append(out, columns[j*m:][:m]...)
	}
	return out
}

// Hermitian makes the n×n matrix a, in row-major order, the Hermitian one that
// has its lower or upper triangle, and the real part of its diagonal.
func Hermitian[T Field](n int, a []T, upper bool) {
	for i := range n {
		for j := range i {
			if upper {
				a[i*n+j] = conjugated(a[j*n+i])
			} else {
				a[j*n+i] = conjugated(a[i*n+j])
			}
		}
		a[i*n+i] = (a[i*n+i] + conjugated(a[i*n+i])) / 2
	}
}

// HermitianEigen returns the eigenvalues of the Hermitian n×n matrix a, in
// row-major order, ascending, and the eigenvectors one after the other, by
// Jacobi's rotations. The matrix is overwritten.
func HermitianEigen[T Field](n int, a []T) (values []float64, vectors []T) {
	for i := range n {
		for j := range i {
			a[i*n+j], a[j*n+i] = a[j*n+i], a[i*n+j] // by columns from here on
		}
	}
	least, v := euclidean(a[:n*n])*0x1p-60, identity[T](n)
	for turned, sweep := true, 0; turned && sweep < sweeps; sweep++ {
		turned = false
		for p := range n {
			for q := p + 1; q < n; q++ {
				if gamma := a[q*n+p]; absolute(gamma) > least {
					turned = true
					r := diagonalising(realOf(a[p*n+p]), realOf(a[q*n+q]), gamma)
					r.turn(a[p*n:][:n], a[q*n:][:n])
					r.turnRows(n, a, p, q)
					r.turn(v[p*n:][:n], v[q*n:][:n])
				}
			}
		}
	}
	values = make([]float64, n)
	for i := range values {
		values[i] = realOf(a[i*n+i])
	}
	order := sortedBy(values, func(x, y float64) bool { return x < y })
	v = columnsIn(v, n, order)
	settlePhases(n, v, nil)
	return values, v
}

// turnRows multiplies the n×n matrix a, stored by columns, by the adjoint of
// the rotation of columns p and q from the left.
func (r rotation[T]) turnRows(n int, a []T, p, q int) {
	w := conjugated(r.w)
	for k := range n {
		x, y := a[k*n+p], w*a[k*n+q]
		a[k*n+p], a[k*n+q] = r.c*x-r.s*y, r.s*x+r.c*y
	}
}

// QR is A = Q·R by reflections, with the signs of LAPACK's geqrf: R and, below
// its diagonal, the reflections' vectors, whose first element is 1.
type QR[T Field] struct {
	m, n int
	data []T
	tau  []T
}

// Triangularise factors the m×n matrix a, in row-major order, in its place.
func Triangularise[T Field](m, n int, a []T) *QR[T] {
	f := &QR[T]{m, n, a, make([]T, min(m, n))}
	for k := range f.tau {
		f.tau[k] = f.reflect(k)
		f.apply(conjugated(f.tau[k]), k, a, n, k+1)
	}
	return f
}

// reflect makes column k's elements below the diagonal the vector of the
// reflection that clears them, and returns its factor.
func (f *QR[T]) reflect(k int) T {
	alpha, below := f.data[k*f.n+k], 0.0
	for i := k + 1; i < f.m; i++ {
		below = math.Hypot(below, absolute(f.data[i*f.n+k]))
	}
	if below == 0 && alpha == conjugated(alpha) {
		return 0
	}
	beta := fieldOf[T](-math.Copysign(math.Hypot(absolute(alpha), below), realOf(alpha)))
	for i := k + 1; i < f.m; i++ {
		f.data[i*f.n+k] /= alpha - beta
	}
	f.data[k*f.n+k] = beta
	return (beta - alpha) / beta
}

// apply multiplies the rows from k of x, which has n columns, by I − tau·v·vᴴ
// from the left, v being the vector of reflection k; columns before from stay.
func (f *QR[T]) apply(tau T, k int, x []T, n, from int) {
	for j := from; j < n && tau != 0; j++ {
		sum := x[k*n+j]
		for i := k + 1; i < f.m; i++ {
			sum += conjugated(f.data[i*f.n+k]) * x[i*n+j]
		}
		sum *= tau
		x[k*n+j] -= sum
		for i := k + 1; i < f.m; i++ {
			x[i*n+j] -= f.data[i*f.n+k] * sum
		}
	}
}

// Q sets q, of f's rows and the given number of columns in row-major order, to
// the first columns of Q.
func (f *QR[T]) Q(q []T, columns int) {
	clear(q)
	for i := range columns {
		q[i*columns+i] = 1
	}
	for k := len(f.tau) - 1; k >= 0; k-- {
		f.apply(f.tau[k], k, q, columns, 0)
	}
}

// R sets r, of the given number of rows in row-major order, to the first rows of R.
func (f *QR[T]) R(r []T, rows int) {
	clear(r)
	for i := range min(rows, f.n) {
		copy(r[i*f.n+i:(i+1)*f.n], f.data[i*f.n+i:(i+1)*f.n])
	}
}

// SolveTriangle replaces x, n×m in row-major order, by the solution of A·x' = x,
// for the upper or lower triangle of the n×n matrix a, whose diagonal counts as
// ones if unit.
func SolveTriangle[T Field](n, m int, a, x []T, upper, unit bool) {
	for step := range n {
		i, lo, hi := step, 0, step
		if upper {
			i = n - 1 - step
			lo, hi = i+1, n
		}
		row := x[i*m : (i+1)*m]
		for k := lo; k < hi; k++ {
			addScaled(row, -a[i*n+k], x[k*m:(k+1)*m])
		}
		if !unit {
			for j := range row {
				row[j] /= a[i*n+i]
			}
		}
	}
}

// Exponential returns Σₖ aᵏ/k! of the n×n matrix a, in row-major order: the sum
// for a/2ˢ, whose largest row sum is at most ½, squared s times. a is overwritten.
func Exponential[T Field](n int, a []T) []T {
	largest := 0.0
	for i := range n {
		sum := 0.0
		for _, v := range a[i*n : (i+1)*n] {
			sum += absolute(v)
		}
		largest = max(largest, sum)
	}
	squarings := 0
	if largest > 0.5 && !math.IsInf(largest, 1) {
		_, e := math.Frexp(largest)
		squarings = e + 1
		divide(a, math.Ldexp(1, squarings))
	}
	const terms = 16 // ½¹⁷/17! is below 2⁻⁶⁴
	out, next := identity[T](n), make([]T, n*n)
	for k := terms; k > 0; k-- {
		multiplySquare(n, next, a, out)
		divide(next, float64(k))
		for i := range n {
			next[i*n+i]++
		}
		out, next = next, out
	}
	for range squarings {
		multiplySquare(n, next, out, out)
		out, next = next, out
	}
	return out
}

func multiplySquare[T Field](n int, out, x, y []T) {
	clear(out)
	for i := range n {
		for k := range n {
			addScaled(out[i*n:(i+1)*n], x[i*n+k], y[k*n:(k+1)*n])
		}
	}
}

// PseudoInverse sets x, n×m in row-major order, to the pseudo-inverse of the m×n
// matrix, in which singular values that are not above least count as 0.
func (d *SVD[T]) PseudoInverse(m, n int, x []T, least float64) {
	clear(x)
	for k, s := range d.S {
		if !(s > least) {
			return
		}
		for i := range n {
			f := d.V[k*n+i] / fieldOf[T](s)
			for j := range m {
				x[i*m+j] += f * conjugated(d.U[k*m+j])
			}
		}
	}
}
