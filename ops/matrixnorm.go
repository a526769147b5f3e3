package ops

import (
	"math"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// isMatrixNorm reports whether linalg.norm takes a norm that vectors do not have.
func isMatrixNorm(a op.Args) bool {
	if a.Str(arg.OrdStr) == "nuc" {
		return true
	}
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
		case p != 1 && p != 2 && !math.IsInf(p, 0):
			return op.RuntimeError("argument 'ord' of a matrix must be ±1, ±2 or ±inf, not %v", ord.Any())
		}
	}
	switch p := a.Str(arg.OrdStr); {
	case number || p == "fro" || p == "nuc":
	default:
		return op.RuntimeError("argument 'ord' must be a number, 'fro' or 'nuc', not %q", p)
	}
	_, err := matrixDims(a)
	if err != nil {
		return err
	}
	if err := firstError(checkNormType, checkNormDType)(a); err != nil || !ofSingularValues(a) {
		return err
	}
	d := a.Value(arg.Input).DType()
	if a.Has(arg.DType) {
		d = a.DType(arg.DType)
	}
	if d == tensor.F16 || d == tensor.BF16 {
		return op.RuntimeError("singular values of %s matrices are not implemented", d)
	}
	return nil
}

// ofSingularValues reports whether the norm of matrices is one of their singular values.
func ofSingularValues(a op.Args) bool {
	if ord, number := a.Any(arg.Ord).(op.Scalar); number {
		return math.Abs(ord.Float()) == 2
	}
	return a.Str(arg.OrdStr) == "nuc"
}

// checkNuclearNorm is for torch.norm, which takes a matrix or two dimensions.
func checkNuclearNorm(a op.Args) error {
	n, d := len(a.Value(arg.Input).Shape()), a.Value(arg.Input).DType()
	switch {
	case a.Has(arg.DType):
		return op.ValueError("argument 'dtype' is not supported in nuclear norm")
	case !a.Has(arg.Dim) && n != 2:
		return op.RuntimeError("argument 'input' must have 2 dimensions with p='nuc', but has %d", n)
	case !d.IsDifferentiable() || d == tensor.F16 || d == tensor.BF16:
		return op.RuntimeError("singular values of %s matrices are not implemented", d)
	}
	_, err := matrixDims(a)
	return err
}

func nuclearNorm(b op.Builder, a op.Args) op.Value {
	dims, err := matrixDims(a)
	if err != nil {
		op.Fail(err)
	}
	return b.Op("matrix_norm", a.Value(arg.Input), "nuc", dims, a.Bool(arg.Keepdim))
}

// singularNorm is the largest singular value, the smallest, or their sum.
func singularNorm(b op.Builder, x op.Value, dims []int, ord any) op.Value {
	s := b.Op("linalg_svdvals", b.Op("permute", x, append(otherDims(x, dims), dims...)))
	p, number := ord.(op.Scalar)
	switch {
	case !number:
		return b.Op("sum", s, []int{-1})
	case p.Float() < 0:
		return b.Op("amin", s, []int{-1})
	}
	return b.Op("amax", s, []int{-1})
}

// matrixNorm reduces the sums of the columns' magnitudes, or of the rows', or
// singular values.
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
	if ofSingularValues(a) {
		return b.Reshape(singularNorm(b, x, dims, a.Any(arg.Ord)), reducedShape(x.Shape(), dims, a.Bool(arg.Keepdim)))
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
