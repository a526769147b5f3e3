package reffaults

import (
	"math/cmplx"

	"plumb/program"
)

// singular reports a square matrix, or one in a batch, that has no inverse or
// nearly none.
func singular(in program.Input) bool {
	d := len(in.Shape)
	if d < 2 || in.Shape[d-1] != in.Shape[d-2] || !in.DType.IsDifferentiable() {
		return false
	}
	x, n := in.Materialize(), in.Shape[d-1]
	for at := 0; n > 0 && at < x.Len(); at += n * n {
		a := make([][]complex128, n)
		for i := range a {
			for j := range n {
				a[i] = append(a[i], x.At(at+i*n+j))
			}
		}
		if rankless(a) {
			return true
		}
	}
	return false
}

// rankless reports whether elimination with pivots, in place, comes upon a column
// of nothing but roundoff.
func rankless(a [][]complex128) bool {
	largest := 0.0
	for _, row := range a {
		for _, v := range row {
			largest = max(largest, cmplx.Abs(v))
		}
	}
	for k := range a {
		for i := k + 1; i < len(a); i++ {
			if cmplx.Abs(a[i][k]) > cmplx.Abs(a[k][k]) {
				a[i], a[k] = a[k], a[i]
			}
		}
		if cmplx.Abs(a[k][k]) <= 1e-6*largest {
			return true
		}
		for i := k + 1; i < len(a); i++ {
			factor := a[i][k] / a[k][k]
			for j := k; j < len(a); j++ {
				a[i][j] -= factor * a[k][j]
			}
		}
	}
	return false
}
