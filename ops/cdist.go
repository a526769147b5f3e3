package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var cdistOps = []*op.Def{
	composed(&op.Def{
		Sig:     "cdist(Tensor x1, Tensor x2, float p=2.0, str? compute_mode='use_mm_for_euclid_dist_if_necessary') -> Tensor",
		Traits:  op.Contraction,
		Names:   []string{"torch.cdist", "torch.functional.cdist"},
		Doc:     "Distances of order p between all pairs of rows of two batches of matrices: out[…,i,j] = ‖x1[…,i,:] − x2[…,j,:]‖ₚ.",
		SBP:     axes("x1 *m., x2 *n. -> *mn"),
		Reject:  checkCdist,
		Sample:  sampleCdist,
		Kernels: rowPairKernels(cdistRun[float32], cdistRun[float64]),
		Grad:    cdistGrad,
		Errors:  cdistErrors,
		Tol:     accumulating(distanceTerms, "a sum of Terms powers and its root"),
	}, func(b op.Builder, a op.Args) op.Value {
		return distance(b, rowDifferences(b, a), a.Float(arg.P))
	}),
	stepwise(&op.Def{
		Sig:     "cdist.backward(Tensor grad, Tensor x1, Tensor x2, Tensor distances, float p) -> Tensor",
		Doc:     "Gradient of cdist with respect to x1: Σⱼ grad[…,i,j]·∂distances[…,i,j]/∂x1[…,i,:], 0 where there is no derivative; p is not 0.",
		SBP:     axes("grad *mn, x1 *m., x2 *n., distances *mn -> *m."),
		Infer:   inferCdistBackward,
		Sample:  sampleCdistBackward,
		Kernels: rowPairKernels(cdistBackwardRun[float32], cdistBackwardRun[float64]),
		Errors:  cdistBackwardErrors,
		Tol:     accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.X2), 2) }, "a sum of Terms slopes"),
	}, func(b op.Builder, a op.Args) op.Value {
		cot, norm := b.Op("unsqueeze", a.Value(arg.Grad), -1), b.Op("unsqueeze", a.Value(arg.Distances), -1)
		return b.Op("sum", normSlopes(b, rowDifferences(b, a), cot, norm, a.Float(arg.P)), -2)
	}),
}

func inferCdistBackward(a op.Args) ([]op.Meta, error) {
	pairs, x := a.Value(arg.Distances).Shape(), a.Value(arg.X1)
	return one(x.DType(), append(slices.Clone(pairs[:len(pairs)-1]), sizeOf(x, 1)), nil), nil
}

func sampleCdistBackward(s *op.Sampler) []any {
	args := sampleCdist(s)
	x, y := args[0].(*tensor.Tensor), args[1].(*tensor.Tensor)
	pairs := append(slices.Clone(x.Shape()[:x.Dim()-1]), y.Shape()[y.Dim()-2])
	return []any{s.Tensor(-2, 2, pairs...), x, y, s.Tensor(0.5, 4, pairs...), []float64{0.5, 1, 1.5, 2, 3}[s.Index(5)]}
}

// rowDifferences are those between all pairs of rows of x1 and x2.
func rowDifferences(b op.Builder, a op.Args) op.Value {
	return b.Sub(b.Op("unsqueeze", a.Value(arg.X1), -2), b.Op("unsqueeze", a.Value(arg.X2), -3))
}

func rowPairKernels(run32, run64 func(c *op.Run) error) []op.Kernel {
	return []op.Kernel{
		{Name: "float32", When: op.DTypeIn(arg.X1, tensor.F32), Run: run32},
		{Name: "float64", When: op.DTypeIn(arg.X1, tensor.F64), Run: run64},
		{Name: "half", When: op.DTypeIn(arg.X1, halfTypes...), Run: inFloat32(run32)},
	}
}

// rowPairs returns the rows of two tensors as x1 and x2 of a call.
func rowPairs[T float32 | float64](x, y *tensor.Tensor) kernel.Rows[T] {
	xs, ys := x.Shape(), y.Shape()
	batch, err := tensor.BroadcastShapes(xs[:len(xs)-2], ys[:len(ys)-2])
	if err != nil {
		panic(err)
	}
	return kernel.Rows[T]{
		Batch: batch, M: xs[len(xs)-2], N: ys[len(ys)-2], K: xs[len(xs)-1],
		X: stackOf[T](x.Contiguous(), batch), Y: stackOf[T](y.Contiguous(), batch),
	}
}

func cdistRun[T float32 | float64](c *op.Run) error {
	rows := rowPairs[T](c.Tensor(arg.X1), c.Tensor(arg.X2))
	writeTo(c.Out[0], func(out []T) { kernel.Distances(rows, c.Float(arg.P), out) })
	return nil
}

func cdistBackwardRun[T float32 | float64](c *op.Run) error {
	rows := rowPairs[T](c.Tensor(arg.X1), c.Tensor(arg.X2))
	g, d := contiguousData[T](c.Tensor(arg.Grad)), contiguousData[T](c.Tensor(arg.Distances))
	writeTo(c.Out[0], func(out []T) { kernel.DistanceGrads(rows, c.Float(arg.P), g, d, out) })
	return nil
}

// cdistGrad takes the distances as they are before they are rounded to a half
// type, for those of infinite order are compared with the differences.
func cdistGrad(g *op.Grad) {
	x, y, p := wide(g, g.Value(arg.X1)), wide(g, g.Value(arg.X2)), g.Float(arg.P)
	if p == 0 {
		zeroGrads(arg.X1, arg.X2)(g)
		return
	}
	cot, d := wide(g, g.G()), g.Out[0]
	if d.DType() != x.DType() {
		d = g.Op("cdist", x, y, p)
	}
	turned := func(v op.Value) op.Value { return g.Op("transpose", v, -2, -1) }
	g.To(arg.X1, func() op.Value { return g.Op("cdist.backward", cot, x, y, d, p) })
	g.To(arg.X2, func() op.Value { return g.Op("cdist.backward", turned(cot), y, x, turned(d), p) })
}

// roundedRows are the rows of a call with their errors; terms are those of its sums.
func roundedRows(r *op.Rounding, terms int) kernel.RoundedRows {
	x, y := r.Tensor(arg.X1), r.Tensor(arg.X2)
	return kernel.RoundedRows{
		Rows: rowPairs[float64](x, y), Errs: rowPairs[float64](errorOf(r, arg.X1), errorOf(r, arg.X2)),
		Unit: r.Unit, Whole: r.Integral(arg.X1) && r.Integral(arg.X2),
		Sum: r.Sum(terms), Sqrt: r.ULP(3), Pow: r.ULP(16), Div: r.ULP(2.5),
	}
}

// errorOf is the error of an argument, zeros for none.
func errorOf(r *op.Rounding, name op.TensorArg) *tensor.Tensor {
	if e := r.Error(name); e != nil {
		return e
	}
	return tensor.New(tensor.F64, r.Tensor(name).Shape()...)
}

func cdistErrors(r *op.Rounding) ([]*tensor.Tensor, bool) {
	p := r.Float(arg.P)
	rows, e := roundedRows(r, distanceTerms(r.Args)), tensor.Unset(tensor.F64, r.Out[0].Shape(), nil)
	ok := kernel.DistanceErrors(rows, p, contiguousData[float64](r.Out[0]), tensor.Data[float64](e)[:e.Len()])
	return exactOr(e, rows.Whole && (p == 0 || p == 1 || math.IsInf(p, 1))), ok
}

func cdistBackwardErrors(r *op.Rounding) ([]*tensor.Tensor, bool) {
	p := r.Float(arg.P)
	rows, e := roundedRows(r, sizeOf(r.Value(arg.X2), 2)), tensor.Unset(tensor.F64, r.Out[0].Shape(), nil)
	rounded := func(name op.TensorArg) kernel.Rounded {
		return kernel.Rounded{Values: contiguousData[float64](r.Tensor(name)), Errs: contiguousData[float64](errorOf(r, name)), Whole: r.Integral(name)}
	}
	ok := kernel.DistanceGradErrors(rows, p, rounded(arg.Grad), rounded(arg.Distances), tensor.Data[float64](e)[:e.Len()])
	return exactOr(e, rows.Whole && r.Integral(arg.Grad) && (p == 1 || math.IsInf(p, 1))), ok
}

// exactOr is e, but nil where whole numbers have no error.
func exactOr(e *tensor.Tensor, whole bool) []*tensor.Tensor {
	if whole && !slices.ContainsFunc(tensor.Data[float64](e)[:e.Len()], func(v float64) bool { return v != 0 }) {
		return []*tensor.Tensor{nil}
	}
	return []*tensor.Tensor{e}
}

func checkCdist(a op.Args) error {
	x, y := a.Value(arg.X1), a.Value(arg.X2)
	modes := []string{"use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"}
	switch {
	case a.Has(arg.ComputeMode) && !slices.Contains(modes, a.Str(arg.ComputeMode)):
		return op.ValueError("%s is not a valid value for argument 'compute_mode'", a.Str(arg.ComputeMode))
	case len(x.Shape()) < 2 || len(y.Shape()) < 2:
		return op.RuntimeError("arguments 'x1' and 'x2' must have at least 2 dimensions")
	case sizeOf(x, 1) != sizeOf(y, 1):
		return op.RuntimeError("arguments 'x1' and 'x2' must have the same number of columns, not %d and %d", sizeOf(x, 1), sizeOf(y, 1))
	case x.DType() != y.DType() || !x.DType().IsDifferentiable() || x.DType().IsComplex():
		return op.RuntimeError("arguments 'x1' and 'x2' must have the same floating point dtype, not %s and %s", x.DType(), y.DType())
	case a.Float(arg.P) < 0:
		return op.RuntimeError("argument 'p' must not be negative, but is %v", a.Float(arg.P))
	}
	return nil
}

func sampleCdist(s *op.Sampler) []any {
	batch, m := s.Shape(0, 1), int(s.Int(1, 5))
	n, k := int(s.Int(1, 5)), int(s.Int(1, 5))
	both := s.Distinct(append(slices.Clone(batch), n+k, m)...)
	d := len(batch)
	return []any{both.Narrow(d, 0, n, 1), both.Narrow(d, n, k, 1), []float64{0.5, 1, 1.5, 2, 3, math.Inf(1)}[s.Index(6)]}
}
