package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var productOps = []*op.Def{
	{
		Sig:   "prod(Tensor input, int dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		More:  []string{"prod(Tensor input, *, dtype? dtype=None) -> Tensor"},
		Names: both("prod"),
		Doc:   "Product along dim, of all elements by default. Integers and bool give int64 unless dtype says otherwise.",
		SBP:   reduced,
		Infer: inferStat(sumType),
		Kernels: []op.Kernel{
			rowKernel("integer", resultOf(sumType, integralSet...), sumType, fixed(kernel.ProductRow[int64])),
			rowKernel("float32", resultOf(sumType, float32Set...), sumType, fixed(kernel.ProductRow32)),
			rowKernel("float64", resultOf(sumType, tensor.F64), sumType, fixed(kernel.ProductRow[float64])),
			rowKernel("complex", resultOf(sumType, complexTypes...), sumType, fixed(kernel.ProductRow[complex128])),
		},
		Grad:   op.Gradient(prodGrad),
		Sample: sampleStatSome,
		Tol:    ownMagnitude(accumulating(statTerms, "a product of Terms elements, one rounding each")),
	},
	{
		Sig:   "prod.others(Tensor input) -> Tensor",
		Doc:   "Each element of a matrix replaced by the product of the others in its row.",
		SBP:   planes(1, arg.Input),
		Infer: inferLike(arg.Input),
		Kernels: []op.Kernel{
			scanKernel("float32", op.DTypeIn(arg.Input, float32Set...), nil, kernel.OtherProducts[float32]),
			scanKernel("float64", op.DTypeIn(arg.Input, tensor.F64), nil, kernel.OtherProducts[float64]),
			scanKernel("complex", op.DTypeIn(arg.Input, complexTypes...), nil, kernel.OtherProducts[complex128]),
		},
		Grad:   op.Gradient(othersGrad),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Dims(2)...)} },
		Tol:    ownMagnitude(accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) }, "a product of one row")),
	},
}

// resultOf holds when the dtype rule gives one of ds.
func resultOf(dtype func(op.Args) tensor.DType, ds ...tensor.DType) op.Pred {
	return op.Pred{
		Text:  "result dtype in {" + typeNames(ds) + "}",
		Holds: func(a op.Args) bool { return slices.Contains(ds, dtype(a)) },
	}
}

// sampleStatSome samples an operator with a dim and keepdim, given or not.
func sampleStatSome(s *op.Sampler) []any {
	args := sampleStatDim(s)
	return args[:1+2*s.Index(2)]
}

func prodGrad(g *op.Grad) op.Value {
	x := g.Cast(g.Value(arg.Input), workType(g.Out[0].DType()))
	if tensor.NumElements(x.Shape()) == 0 {
		return zeros(g, x)
	}
	rows, back := matrixOfRows(g, x)
	return g.Mul(spreadKept(g, g.G()), conj(g, back(g.Op("prod.others", rows))))
}

// matrixOfRows lays the rows that statDims names out as a matrix, and returns
// how to bring such a matrix back into the shape of x.
func matrixOfRows(g *op.Grad, x op.Value) (rows op.Value, back func(op.Value) op.Value) {
	dims, err := statDims(g.Args)
	if err != nil {
		op.Fail(err)
	}
	order := slices.DeleteFunc(allDims(len(x.Shape())), func(d int) bool { return slices.Contains(dims, d) })
	order = append(order, dims...)
	shape, inverse := permutedShape(x.Shape(), order)
	n := statTerms(g.Args)
	if len(order) > 0 {
		x = g.Op("permute", x, order)
	}
	rows = g.Reshape(x, []int{tensor.NumElements(shape) / n, n})
	return rows, func(v op.Value) op.Value {
		v = g.Reshape(v, shape)
		if len(order) > 0 {
			v = g.Op("permute", v, inverse)
		}
		return v
	}
}

func permutedShape(shape, order []int) (out, inverse []int) {
	out, inverse = make([]int, len(order)), make([]int, len(order))
	for i, d := range order {
		out[i], inverse[d] = shape[d], i
	}
	return out, inverse
}

// diagonalOnes returns an identity matrix of n rows in the dtype of v.
func diagonalOnes(g *op.Grad, v op.Value, n int) op.Value {
	first := g.Op("slice", g.Reshape(v, []int{tensor.NumElements(v.Shape())}), 0, 0, 1, 1)
	none := g.Op("zeros_like", g.Expand(first, []int{n * n}))
	ones := g.Add(g.Op("zeros_like", g.Expand(first, []int{n})), 1)
	return g.Reshape(g.Op("slice_scatter", none, ones, 0, 0, n*n, n+1), []int{n, n})
}

// othersGrad replaces x[i] by 1 in the i-th of n copies of a row, whose
// products without x[j] are then the derivatives of result i by x[j].
func othersGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	rows, n := x.Shape()[0], x.Shape()[1]
	if rows*n == 0 {
		return zeros(g, x)
	}
	diagonal := g.Op("eq", diagonalOnes(g, x, n), 1)
	copies := g.Op("where", diagonal, 1.0, g.Expand(g.Reshape(x, []int{rows, 1, n}), []int{rows, n, n}))
	pairs := g.Reshape(g.Op("prod.others", g.Reshape(copies, []int{rows * n, n})), []int{rows, n, n})
	pairs = g.Op("where", diagonal, 0.0, conj(g, pairs))
	return g.Op("sum", g.Mul(g.Reshape(g.G(), []int{rows, n, 1}), pairs), op.Kw("dim", []int{1}))
}

var countOps = []*op.Def{
	truthOf("all", "Whether no element along dim, of all by default, is 0", kernel.AllRow[int64], kernel.AllRow[float32], kernel.AllRow[float64], kernel.AllRow[complex128]),
	truthOf("any", "Whether an element along dim, of all by default, is not 0", kernel.AnyRow[int64], kernel.AnyRow[float32], kernel.AnyRow[float64], kernel.AnyRow[complex128]),
	{
		Sig:    "count_nonzero(Tensor input, int[1]? dim=None) -> Tensor",
		Names:  both("count_nonzero"),
		Doc:    "Number of elements along dim, of all by default, that are not 0.",
		Traits: op.NoGrad,
		SBP:    summing,
		Infer:  inferStat(statIndexType),
		Kernels: []op.Kernel{
			rowKernel("integer", op.DTypeIn(arg.Input, integralSet...), nil, fixed(kernel.CountRow[int64])),
			rowKernel("float32", op.DTypeIn(arg.Input, float32Set...), nil, fixed(kernel.CountRow[float32])),
			rowKernel("float64", op.DTypeIn(arg.Input, tensor.F64), nil, fixed(kernel.CountRow[float64])),
			rowKernel("complex", op.DTypeIn(arg.Input, complexTypes...), nil, fixed(kernel.CountRow[complex128])),
		},
		Sample: func(s *op.Sampler) []any { args := sampleReduced(s); return args[:min(len(args), 2)] },
		Tol:    exactTol("a count"),
	},
	{
		Sig:    "nansum(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		Names:  both("nansum"),
		SBP:    summing,
		Doc:    "Sum over the dimensions dim, all of them by default, of the elements that are not NaN.",
		Reject: rejectTypes(arg.Input, complexTypes...),
		Infer:  inferStat(sumType),
		Kernels: []op.Kernel{
			sumKernel("integer", integralSet, func(out, in *tensor.Tensor, dims []int, _ int) {
				kernel.Sum[int64, int64](out, in, dims, 1)
			}, sumType),
			rowKernel("float32", resultOf(sumType, float32Set...), sumType, fixed(kernel.NanSumRow[float32])),
			rowKernel("float64", resultOf(sumType, tensor.F64), sumType, fixed(kernel.NanSumRow[float64])),
		},
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Op("where", g.Op("isnan", g.Value(arg.Input)), 0.0, spread(g)) }),
		Sample: sampleReduced,
		Tol:    ownMagnitude(accumulating(statTerms, "a sum of Terms elements")),
	},
	{
		Sig:    "logsumexp(Tensor input, int[1] dim, bool keepdim=False) -> Tensor",
		Names:  append(both("logsumexp"), "torch.special.logsumexp"),
		Doc:    "Logarithm of the sum of exponentials over the dimensions dim: log Σ exp(input). Integers and bool give float32.",
		SBP:    reduced,
		Reject: checkLogSumExp,
		Infer:  inferStat(func(a op.Args) tensor.DType { return floatResult(statInputType(a)) }),
		Kernels: []op.Kernel{
			rowKernel("float32", op.DTypeIn(arg.Input, slices.Concat(float32Set, integralSet)...), nil, fixed(kernel.LogSumExpRow[float32])),
			rowKernel("float64", op.DTypeIn(arg.Input, tensor.F64), nil, fixed(kernel.LogSumExpRow[float64])),
			since("2.9", rowKernel("complex", op.DTypeIn(arg.Input, complexTypes...), nil, fixed(kernel.LogSumExpRowComplex))),
		},
		Grad:    op.Gradient(logsumexpGrad),
		Sample:  sampleLogsumexp,
		Formula: logSumExpFormula,
		Tol:     accumulating(statTerms, "a sum of Terms exponentials"),
	},
	composed(&op.Def{
		Sig:    "nanmean(Tensor input, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		Names:  both("nanmean"),
		Doc:    "Mean over the dimensions dim, all of them by default, of the elements that are not NaN.",
		Reject: func(a op.Args) error { return rejectTypes(arg.Input, append(integralSet, complexTypes...)...)(a) },
		Sample: sampleReduced,
		Tol:    accumulating(statTerms, "a sum of Terms elements, divided by their number"),
	}, func(b op.Builder, a op.Args) op.Value {
		x, dim, keep := a.Value(arg.Input), op.Kw("dim", a.Any(arg.Dim)), op.Kw("keepdim", a.Any(arg.Keepdim))
		count := b.Op("sum", b.Op("logical_not", b.Op("isnan", x)), dim, keep)
		return b.Div(b.Op("nansum", x, dim, keep, op.Kw("dtype", a.Any(arg.DType))), count)
	}),
}

func logsumexpGrad(g *op.Grad) op.Value {
	share := conj(g, g.Op("exp", g.Sub(wide(g, g.Value(arg.Input)), keptLike(g, wide(g, g.Out[0])))))
	return g.Mul(keptLike(g, wide(g, g.G())), share)
}

func sampleLogsumexp(s *op.Sampler) []any {
	args := sampleStatDim(s)
	return []any{args[0], []any{args[1]}, args[2]}
}

func checkLogSumExp(a op.Args) error {
	if len(a.Ints(arg.DimInts)) == 0 && len(a.Value(arg.Input).Shape()) > 0 {
		return op.RuntimeError("argument 'dim' must name a dimension")
	}
	return nil
}

// truthOf is all or any.
func truthOf(id, doc string, i64 func([]int64) uint8, f32 func([]float32) uint8, f64 func([]float64) uint8, c128 func([]complex128) uint8) *op.Def {
	return &op.Def{
		Sig:    id + "(Tensor input, int dim, bool keepdim=False) -> Tensor",
		More:   []string{id + "(Tensor input) -> Tensor", id + "(Tensor input, int[]? dim, bool keepdim=False) -> Tensor"},
		Names:  both(id),
		Doc:    doc + ". Bool; uint8 for uint8.",
		Traits: op.NoGrad,
		SBP:    reduced,
		Reject: checkTruthDims,
		Infer:  inferStat(inferTruthOf),
		Kernels: []op.Kernel{
			rowKernel("integer", op.DTypeIn(arg.Input, integralSet...), nil, fixed(i64)),
			rowKernel("float32", op.DTypeIn(arg.Input, float32Set...), nil, fixed(f32)),
			rowKernel("float64", op.DTypeIn(arg.Input, tensor.F64), nil, fixed(f64)),
			rowKernel("complex", op.DTypeIn(arg.Input, complexTypes...), nil, fixed(c128)),
		},
		Sample: sampleStatSome,
		Tol:    exactTol("a truth value"),
	}
}

// checkTruthDims knows no empty list of dims, of which PyTorch takes no dimension.
func checkTruthDims(a op.Args) error {
	if !a.Sig.Takes(arg.Dim) {
		return nil
	}
	if dims, list := a.Any(arg.Dim).([]int); list && len(dims) == 0 {
		return notUnderstood(a.Sig.Name, "dim")
	}
	return nil
}

func inferTruthOf(a op.Args) tensor.DType {
	if d := statInputType(a); d == tensor.U8 {
		return d
	}
	return tensor.Bool
}

var momentOps = []*op.Def{
	momentDef("var", "(mean of squared deviations from the mean, divided by their number less the correction)", false, false),
	momentDef("std", "(square root of the variance)", true, false),
	momentDef("var_mean", "and mean", false, true),
	momentDef("std_mean", "and mean", true, true),
}

const (
	momentParams   = "(Tensor input, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, bool? unbiased=None)"
	momentUnbiased = "(Tensor input, int[1]? dim, bool unbiased=True, bool keepdim=False)"
	momentAll      = "(Tensor input, bool unbiased=True)"
)

// momentDef is var or std, with or without the mean. The first signature has
// the parameters of all of them; unbiased is given through the others.
func momentDef(id, doc string, root, mean bool) *op.Def {
	result := " -> Tensor"
	if mean {
		result = " -> (Tensor " + id[:3] + ", Tensor mean)"
	}
	names := both(id)
	if mean {
		names = []string{"torch." + id} // PyTorch has no method of it
	}
	what := "Variance"
	if root {
		what = "Standard deviation"
	}
	return &op.Def{
		Sig:             id + momentParams + result,
		More:            []string{id + momentUnbiased + result, id + momentAll + result},
		OnlyInOverloads: []string{"unbiased"},
		Names:           names,
		Doc:             what + " over the dimensions dim, all of them by default " + doc + ": Σ|x − mean|²/max(0, n − correction), the correction being 1 unless unbiased is False.",
		SBP:             reduced,
		Reject:          checkMoment,
		Infer: func(a op.Args) ([]op.Meta, error) {
			metas, err := inferStatPair(func(a op.Args) tensor.DType { return realPart(statInputType(a)) }, statInputType)(a)
			if err != nil || mean {
				return metas, err
			}
			return metas[:1], nil
		},
		Kernels: []op.Kernel{
			momentKernel("float32", float32Set, root, kernel.VarianceRow[float32], kernel.DeviationRow[float32]),
			momentKernel("float64", float64Set, root, kernel.VarianceRow[float64], kernel.DeviationRow[float64]),
			momentKernel("complex", complexTypes, root,
				func(c float64) func(row, _ []complex128) (float64, complex128) {
					return kernel.ComplexVarianceRow(c, false)
				},
				func(c float64) func(row, _ []complex128) (float64, complex128) {
					return kernel.ComplexVarianceRow(c, true)
				}),
		},
		Saves:   savesTensors,
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return momentGrad(g, root) }),
		Sample:  sampleMoment,
		Formula: momentFormula(root, mean),
		Tol:     accumulating(statTerms, "mean and variance sum one term per element of the row"),
	}
}

func sampleMoment(s *op.Sampler) []any {
	shape := s.Dims(1 + s.Index(3))
	d := s.Index(len(shape))
	shape[d] += 2
	x := s.Tensor(-2, 2, shape...)
	switch s.Index(3) {
	case 0:
		return []any{x}
	case 1:
		return []any{x, []int{d}, op.Kw("correction", int64(s.Index(3)))}
	}
	return []any{x, []int{d}, op.Kw("unbiased", s.Bool()), op.Kw("keepdim", s.Bool())}
}

func checkMoment(a op.Args) error {
	if d := statInputType(a); !d.IsDifferentiable() {
		return op.RuntimeError("argument 'input' must be floating point or complex, not %s", d)
	}
	return nil
}

func momentCorrection(a op.Args) float64 {
	switch {
	case a.Has(arg.Correction):
		return a.Scalar(arg.Correction).Float()
	case a.Has(arg.Unbiased) && !a.Bool(arg.Unbiased):
		return 0
	}
	return 1
}

// realPart returns the dtype of the parts of a complex number.
func realPart(d tensor.DType) tensor.DType {
	switch d {
	case tensor.C64:
		return tensor.F32
	case tensor.C128:
		return tensor.F64
	}
	return d
}

func momentKernel[T, D kernel.Lane](name string, ds []tensor.DType, root bool, variance, deviation func(correction float64) func(row, _ []T) (D, T)) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		dims, err := statDims(c.Args)
		if err != nil {
			return err
		}
		f, means := variance, (*tensor.Tensor)(nil)
		if root {
			f = deviation
		}
		if len(c.Out) > 1 {
			means = c.Out[1]
		}
		kernel.ReducePairs(c.Out[0], means, c.Tensor(arg.Input), dims, f(momentCorrection(c.Args)))
		return nil
	}}
}

// momentGrad uses ∂var/∂x = 2·(x − mean)/(n − correction) and, where the
// deviation is not 0, ∂std/∂x = ∂var/∂x / (2·std). Of a scalar with n equal to
// the correction it is infinite, as in PyTorch.
func momentGrad(g *op.Grad, root bool) op.Value {
	x := wide(g, g.Value(arg.Input))
	n := float64(statTerms(g.Args))
	var terms []op.Value
	if v := g.Cot[0]; v != nil {
		v = wide(g, v)
		if root {
			std := wide(g, g.Out[0])
			v = g.Op("where", g.Op("eq", std, 0), 0.0, g.Div(v, g.Mul(std, 2)))
		}
		slope := g.Mul(spreadKept(g, v), momentSlope(n, momentCorrection(g.Args)))
		if len(x.Shape()) > 0 || n != momentCorrection(g.Args) {
			slope = g.Mul(g.Sub(x, g.Div(statSum(g, x), n)), slope)
		}
		terms = append(terms, slope)
	}
	if len(g.Cot) > 1 && g.Cot[1] != nil {
		terms = append(terms, g.Div(spreadKept(g, wide(g, g.Cot[1])), n))
	}
	return addAll(g, terms)
}

// momentSlope is 2/(n − correction), infinite for 0.
func momentSlope(n, correction float64) float64 {
	if n == correction {
		return math.Inf(1)
	}
	return 2 / (n - correction)
}
