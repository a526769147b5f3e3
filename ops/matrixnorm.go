package ops

import (
	"math"

	"plumb/internal/arg"
	"plumb/op"
)

// isMatrixNorm reports whether linalg.norm takes the norm of matrices by number.
func isMatrixNorm(a op.Args) bool {
	_, number := a.Any(arg.Ord).(op.Scalar)
	return number && (len(a.Ints(arg.DimInts)) == 2 || !a.Has(arg.Dim) && len(a.Value(arg.Input).Shape()) == 2)
}

// matrixDims returns the dimensions of rows and of columns.
func matrixDims(a op.Args) ([]int, error) {
	n, dims := len(a.Value(arg.Input).Shape()), a.Ints(arg.DimInts)
	if !a.Has(arg.Dim) {
		dims = []int{-2, -1}
	}
	switch {
	case n < 2:
		return nil, op.RuntimeError("argument 'input' must have at least 2 dimensions, but has %d", n)
	case len(dims) != 2:
		return nil, op.RuntimeError("argument 'dim' must name 2 dimensions, but names %d", len(dims))
	}
	out := make([]int, 2)
	for i, d := range dims {
		w, err := wrapDim(d, n)
		if err != nil {
			return nil, err
		}
		out[i] = w
	}
	if out[0] == out[1] {
		return nil, op.RuntimeError("argument 'dim' must name different dimensions, not %v", dims)
	}
	return out, nil
}

func checkMatrixNorm(a op.Args) error {
	ord, number := a.Any(arg.Ord).(op.Scalar)
	if number {
		switch p := math.Abs(ord.Float()); {
		case p == 2:
			return notUnderstood("matrix_norm", "ord=2")
		case p != 1 && !math.IsInf(p, 0):
			return op.RuntimeError("argument 'ord' of a matrix must be ±1, ±2 or ±inf, not %v", ord.Any())
		}
	}
	switch p := a.Str(arg.OrdStr); {
	case number || p == "fro":
	case p == "nuc":
		return notUnderstood("matrix_norm", "ord='nuc'")
	default:
		return op.RuntimeError("argument 'ord' must be a number, 'fro' or 'nuc', not %q", p)
	}
	_, err := matrixDims(a)
	if err != nil {
		return err
	}
	return firstError(checkNormType, checkNormDType)(a)
}

// matrixNorm reduces the sums of the columns' magnitudes, or of the rows'.
func matrixNorm(b op.Builder, a op.Args) op.Value {
	dims, err := matrixDims(a)
	if err != nil {
		op.Fail(err)
	}
	x := a.Value(arg.Input)
	if a.Has(arg.DType) {
		x = b.Cast(x, a.DType(arg.DType))
	}
	if a.Str(arg.OrdStr) == "fro" {
		return b.Op("norm.reduce", x, 2.0, dims, a.Bool(arg.Keepdim))
	}
	p := a.Scalar(arg.Ord).Float()
	inner, outer, best := dims[0], dims[1], "amax"
	if math.IsInf(p, 0) {
		inner, outer = outer, inner
	}
	if p < 0 {
		best = "amin"
	}
	sums := b.Op("sum", b.Op("abs", x), []int{inner}, true)
	out := b.Op(best, sums, []int{outer}, true)
	return b.Reshape(out, reducedShape(x.Shape(), dims, a.Bool(arg.Keepdim)))
}

func sampleMatrixNorm(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(2, 4)...) // the sums of Distinct would tie
	d := s.Index(x.Dim())
	dims := []int{d, (d + 1 + s.Index(x.Dim()-1)) % x.Dim()}
	return []any{x, []float64{1, -1, math.Inf(1), math.Inf(-1)}[s.Index(4)], dims}
}
