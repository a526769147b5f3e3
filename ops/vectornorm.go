package ops

import (
	"math"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var vectorNormOps = []*op.Def{
	{
		Sig:   "norm.reduce(Tensor input, float p, int[]? dim=None, bool keepdim=False, bool share=True) -> Tensor",
		Doc:   "Norm over the dimensions dim, all of them by default: (Σ|x|ᵖ)^(1/p), the largest or smallest |x| for an infinite p, the number of non-zeros for 0; 0 without elements. The gradient of an infinite norm is shared by the elements that make it, or goes to each of them whole.",
		SBP:   reduced,
		Infer: inferStat(func(a op.Args) tensor.DType { return realPart(statInputType(a)) }),
		Kernels: []op.Kernel{
			{Name: "no elements", When: emptyInput, Priority: 1, Run: zeroResults},
			rowKernel("float32", op.DTypeIn(arg.Input, float32Set...), nil, func(a op.Args) func([]float32) float32 { return kernel.NormRow[float32](a.Float(arg.P)) }),
			rowKernel("float64", op.DTypeIn(arg.Input, tensor.F64), nil, func(a op.Args) func([]float64) float64 { return kernel.NormRow[float64](a.Float(arg.P)) }),
			rowKernel("complex", op.DTypeIn(arg.Input, complexTypes...), nil, func(a op.Args) func([]complex128) float64 { return kernel.ComplexNormRow(a.Float(arg.P)) }),
		},
		Grad:    op.Gradient(normGrad),
		Sample:  sampleNormReduce,
		Formula: normFormula,
		Tol:     accumulating(statTerms, "a sum of Terms powers and its root"),
	},
	composed(&op.Def{
		Sig:    "vector_norm(Tensor input, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		Names:  []string{"torch.linalg.vector_norm"},
		Doc:    "Norm of order ord over the dimensions dim, all of them by default, computed in dtype.",
		Reject: checkVectorNorm,
		Sample: sampleVectorNorm,
		Tol:    accumulating(statTerms, "a sum of Terms powers and its root"),
	}, func(b op.Builder, a op.Args) op.Value {
		return normOf(b, a, a.Scalar(arg.Ord).Float())
	}),
	composed(&op.Def{
		Sig:    "linalg_norm(Tensor input, str ord, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		More:   []string{"linalg_norm(Tensor input, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor"},
		Names:  []string{"torch.linalg.norm"},
		Doc:    "Norm of the vectors along dim, all of input by default, of order 2 unless ord says otherwise; over two dimensions a norm of matrices: 'fro', or the largest (1) or smallest (-1) sum of a column, of a row for ±inf, or the largest (2) or smallest (-2) singular value, or their sum ('nuc').",
		Reject: checkLinalgNorm,
		Sample: sampleLinalgNorm,
		Tol:    accumulating(statTerms, "a sum of Terms powers and its root"),
	}, func(b op.Builder, a op.Args) op.Value {
		if isMatrixNorm(a) {
			return matrixNorm(b, a)
		}
		return normOf(b, a, orderOf(a.Any(arg.Ord)))
	}),
	composed(&op.Def{
		Sig:    "matrix_norm(Tensor input, str ord='fro', int[] dim=[-2, -1], bool keepdim=False, *, dtype? dtype=None) -> Tensor",
		More:   []string{"matrix_norm(Tensor input, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, dtype? dtype=None) -> Tensor"},
		Names:  []string{"torch.linalg.matrix_norm"},
		Doc:    "Norm of the matrices over two dimensions: 'fro', or the largest (1) or smallest (-1) sum of a column, of a row for ±inf, or the largest (2) or smallest (-2) singular value, or their sum ('nuc').",
		Reject: checkMatrixNorm,
		Sample: sampleMatrixNorm,
		Tol:    accumulating(statTerms, "a sum of Terms powers and its root"),
	}, matrixNorm),
	plainNorm("norm", "*, ", "torch.norm", "torch.functional.norm"),
	plainNorm("norm.method", "", "Tensor.norm"),
	composed(&op.Def{
		Sig:    "normalize(Tensor input, float p=2.0, int[1] dim=1, float eps=1e-12) -> Tensor",
		Names:  []string{"torch.nn.functional.normalize"},
		Doc:    "Divides by the norm along dim: input/max(‖input‖ₚ, eps).",
		Reject: checkNormType,
		Sample: sampleNormalize,
		Tol:    accumulating(statTerms, "a sum of Terms powers and its root, and a quotient"),
	}, func(b op.Builder, a op.Args) op.Value {
		x := a.Value(arg.Input)
		norm := b.Op("norm.reduce", x, a.Float(arg.P), a.Ints(arg.DimInts), true)
		return b.Div(x, b.Expand(b.Op("clamp_min", norm, a.Float(arg.Eps)), x.Shape()))
	}),
}

func sampleNormReduce(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	x := s.Distinct(shape...)
	p := []float64{0.5, 1, 1.5, 2, 3, math.Inf(1), math.Inf(-1)}[s.Index(7)]
	return []any{x, p, []int{s.Index(len(shape))}, s.Bool()}
}

func sampleLinalgNorm(s *op.Sampler) []any {
	if s.Index(3) == 2 {
		return append(sampleMatrixNorm(s), s.Bool())
	}
	args := sampleVectorNorm(s)
	if len(args) == 1 {
		return []any{args[0], nil}
	}
	return args
}

func sampleNormalize(s *op.Sampler) []any {
	x := s.Distinct(s.Shape(2, 4)...)
	return []any{x, []float64{1, 1.5, 2, 3}[s.Index(4)], []int{s.Index(x.Dim())}, 0.01}
}

// plainNorm is torch.norm or Tensor.norm, which differ in what may be positional.
func plainNorm(id, keyword string, names ...string) *op.Def {
	rest := ", int[1]? dim=None, bool keepdim=False, " + keyword + "dtype? dtype=None) -> Tensor"
	return composed(&op.Def{
		Sig:    id + "(Tensor input, str? p='fro'" + rest,
		More:   []string{id + "(Tensor input, Scalar p" + rest},
		Names:  names,
		Doc:    "Norm of order p over the dimensions dim, all of them by default, of vectors even over two dimensions; 'fro' is the order 2, and 'nuc' the sum of the singular values of matrices.",
		Reject: firstError(checkPlainNorm, checkNormType),
		Sample: samplePlainNorm,
		Tol:    accumulating(statTerms, "a sum of Terms powers and its root"),
	}, func(b op.Builder, a op.Args) op.Value {
		if a.Any(arg.P) == "nuc" {
			return nuclearNorm(b, a)
		}
		return normOf(b, a, orderOf(a.Any(arg.P)))
	})
}

func samplePlainNorm(s *op.Sampler) []any {
	x := s.Distinct(s.Shape(1, 3)...)
	if s.Bool() {
		return []any{x, "fro", []int{s.Index(x.Dim())}, s.Bool()}
	}
	return []any{x}
}

// orderOf returns the number that an order is; 2 for None and 'fro'.
func orderOf(v any) float64 {
	if s, ok := v.(op.Scalar); ok {
		return s.Float()
	}
	return 2
}

// normOf is norm.reduce over the call's dim, in its dtype.
func normOf(b op.Builder, a op.Args, p float64) op.Value {
	x := a.Value(arg.Input)
	if a.Has(arg.DType) {
		x = b.Cast(x, a.DType(arg.DType))
	}
	return b.Op("norm.reduce", x, p, a.Any(arg.Dim), a.Bool(arg.Keepdim))
}

func checkNormType(a op.Args) error {
	if d := statInputType(a); !d.IsDifferentiable() {
		return op.RuntimeError("argument 'input' must be floating point or complex, not %s", d)
	}
	return nil
}

func checkVectorNorm(a op.Args) error {
	if err := checkNormType(a); err != nil {
		return err
	}
	p, shape := a.Scalar(arg.Ord).Float(), a.Value(arg.Input).Shape()
	dims, err := statDims(a)
	if err != nil {
		return err
	}
	all := len(a.Ints(arg.DimInts)) == 0
	for _, d := range dims {
		if (p < 0 || math.IsInf(p, 1)) && shape[d] == 0 && (!all || tensor.NumElements(shape) == 0) {
			return op.RuntimeError("cannot compute the norm of ord=%v over dimension %d of argument 'input', which has no elements", p, d)
		}
	}
	return checkNormDType(a)
}

func checkNormDType(a op.Args) error {
	from, to := statInputType(a), a.DType(arg.DType)
	switch {
	case !a.Has(arg.DType):
	case from.IsComplex() != to.IsComplex() || !to.IsDifferentiable():
		return op.RuntimeError("argument 'dtype' must be of the kind of input's dtype %s, but is %s", from, to)
	case tensor.Promote(from, to) != to:
		return op.RuntimeError("input's dtype %s cannot become the argument 'dtype' %s without narrowing", from, to)
	}
	return nil
}

func checkLinalgNorm(a op.Args) error {
	n := len(a.Value(arg.Input).Shape())
	dims := a.Ints(arg.DimInts)
	if s, ok := a.Any(arg.Ord).(string); ok {
		switch {
		case a.Has(arg.Dim) && len(dims) != 2 || !a.Has(arg.Dim) && n != 2:
			return op.RuntimeError("ord=%q needs two dimensions in argument 'dim', or of input", s)
		case s != "fro":
			return checkMatrixNorm(a)
		}
		return checkNormType(a)
	}
	if !a.Has(arg.Ord) {
		return firstError(checkNormType, checkNormDType)(a)
	}
	switch {
	case !a.Has(arg.Dim) && n != 1 && n != 2:
		return op.RuntimeError("input must have 1 or 2 dimensions when 'ord' is given and 'dim' is not, but has %d", n)
	case a.Has(arg.Dim) && len(dims) != 1 && len(dims) != 2:
		return op.RuntimeError("argument 'dim' must name 1 or 2 dimensions when 'ord' is given, but names %d", len(dims))
	case isMatrixNorm(a):
		return checkMatrixNorm(a)
	}
	return checkVectorNorm(a)
}

func checkPlainNorm(a op.Args) error {
	switch p := a.Any(arg.P).(type) {
	case string:
		switch {
		case p == "nuc":
			return checkNuclearNorm(a)
		case p != "fro":
			return op.RuntimeError("argument 'p' must be a number, 'fro' or 'nuc', not %q", p)
		case a.Has(arg.DType):
			return op.ValueError("argument 'dtype' is not supported with p='fro'")
		case len(a.Ints(arg.DimInts)) > 2:
			return op.RuntimeError("argument 'dim' must name at most 2 dimensions with p='fro'")
		}
	case op.Scalar:
		if p.DType().IsComplex() {
			return op.RuntimeError("argument 'p' must be an integer or a float")
		}
	}
	return nil
}

func sampleVectorNorm(s *op.Sampler) []any {
	x := s.Distinct(s.Shape(1, 3)...)
	if s.Bool() {
		return []any{x}
	}
	ord := []float64{0.5, 1, 2, 3, math.Inf(1)}[s.Index(5)]
	return []any{x, ord, []int{s.Index(x.Dim())}, s.Bool()}
}

// normGrad follows PyTorch where the norm has no derivative: it is 0 at the norm
// 0 and at the elements 0, and for p = 0 none, or 0 in a distance.
func normGrad(g *op.Grad) op.Value {
	x, p := wide(g, g.Value(arg.Input)), g.Float(arg.P)
	switch {
	case p == 0 && g.Bool(arg.Share):
		return nil
	case p == 0:
		return zeros(g, x)
	case tensor.NumElements(x.Shape()) == 0:
		return zeros(g, x)
	}
	cot, norm := keptLike(g, wide(g, g.G())), keptLike(g, wide(g, g.Out[0]))
	if math.IsInf(p, 0) && g.Bool(arg.Share) {
		cot = g.Div(cot, statSum(g, extremes(g.Builder, x, norm)))
	}
	return normSlopes(g.Builder, x, cot, norm, p)
}

// normSlopes is the gradient of a norm of an order other than 0, weighted by
// cot: where it is infinite, all of it for each element that makes the norm.
func normSlopes(b op.Builder, x, cot, norm op.Value, p float64) op.Value {
	switch {
	case p == 1:
		return b.Mul(b.Op("sgn", x), cot)
	case p == 2:
		return b.Mul(x, whereNonZero(b, norm, b.Div(cot, norm)))
	case math.IsInf(p, 0):
		return b.Mul(b.Mul(b.Op("sgn", x), extremes(b, x, norm)), cot)
	case p < 1:
		slopes := whereNonZero(b, x, b.Mul(b.Op("sgn", x), b.Op("pow", b.Op("abs", x), p-1)))
		return b.Mul(slopes, b.Mul(cot, b.Op("pow", norm, 1-p)))
	}
	slopes := b.Mul(b.Op("sgn", x), b.Op("pow", b.Op("abs", x), p-1))
	return b.Mul(slopes, whereNonZero(b, norm, b.Div(cot, b.Op("pow", norm, p-1))))
}

// whereNonZero is v, but 0 where x is 0.
func whereNonZero(b op.Builder, x, v op.Value) op.Value {
	return b.Op("where", b.Op("eq", x, 0), 0.0, v)
}

// extremes is 1 for the elements whose magnitude is the norm, and 0 for others.
func extremes(b op.Builder, x, norm op.Value) op.Value {
	nan := b.Mul(b.Op("isnan", x), b.Op("isnan", norm))
	return b.Cast(b.Add(b.Op("eq", b.Op("abs", x), norm), nan), norm.DType())
}

var distanceOps = []*op.Def{
	{
		Sig:     "cosine_similarity.floor(Tensor input, float eps) -> Tensor",
		Traits:  op.Monotone,
		Doc:     "Elements, but eps for those below it; its gradient passes both unchanged.",
		SBP:     pointwise,
		Infer:   inferLike(arg.Input),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.G() }),
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(1, 2, s.Shape(0, 3)...), 0.5} },
		Tol:     exactTol("one of its inputs"),
		Kernels: []op.Kernel{{Name: "clamp_min", Run: runCosineSimilarityFloor}},
	},
	composed(&op.Def{
		Sig:    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
		Names:  []string{"torch.cosine_similarity", "torch.nn.functional.cosine_similarity"},
		Doc:    "Cosine of the angle between vectors along dim: Σ x1·x2 / (max(‖x1‖, eps)·max(‖x2‖, eps)).",
		Reject: checkCosine,
		Sample: sampleCosineSimilarity,
		Tol:    accumulating(distanceTerms, "sums of Terms products and their quotient"),
	}, func(b op.Builder, a op.Args) op.Value {
		d := a.Promoted(arg.X1, arg.X2)
		x, y := b.Cast(a.Value(arg.X1), d), b.Cast(a.Value(arg.X2), d)
		shape, err := broadcastShape(x, y)
		if err != nil {
			op.Fail(err)
		}
		unit := func(v op.Value) op.Value {
			v = b.Expand(v, shape)
			return b.Div(v, b.Op("cosine_similarity.floor", b.Op("norm.reduce", v, 2.0, []int{a.Int(arg.Dim)}, true), a.Float(arg.Eps)))
		}
		return b.Op("sum", b.Mul(unit(x), unit(y)), op.Kw("dim", []int{a.Int(arg.Dim)}))
	}),
	composed(&op.Def{
		Sig:    "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor",
		Names:  []string{"torch.pairwise_distance", "torch.nn.functional.pairwise_distance"},
		Doc:    "Norm of the differences along the last dimension: ‖x1 − x2 + eps‖ₚ.",
		Sample: samplePairwiseDistance,
		Tol:    accumulating(distanceTerms, "a sum of Terms powers and its root"),
	}, func(b op.Builder, a op.Args) op.Value {
		v := b.Add(b.Sub(a.Value(arg.X1), a.Value(arg.X2)), a.Float(arg.Eps))
		return b.Op("norm.reduce", v, a.Float(arg.P), []int{-1}, a.Bool(arg.Keepdim))
	}),
}

func runCosineSimilarityFloor(c *op.Run) error {
	v, err := compositionTable().Executor().Apply("clamp_min", []any{c.Tensor(arg.Input), c.Float(arg.Eps)}, nil)
	if err == nil {
		c.Out[0].CopyFrom(v[0].(*tensor.Tensor))
	}
	return err
}

func sampleCosineSimilarity(s *op.Sampler) []any {
	shape := s.Dims(2 + s.Index(2))
	return []any{s.Distinct(shape...), s.Distinct(shape...), s.Index(len(shape)), s.Float(1e-8, 1e-4)}
}

func samplePairwiseDistance(s *op.Sampler) []any {
	shape := s.Dims(1 + s.Index(3))
	pair := s.Distinct(append([]int{2}, shape...)...)
	return []any{pair.Select(0, 0), pair.Select(0, 1), []float64{1, 1.5, 2, 3}[s.Index(4)], s.Float(1e-6, 1e-3), s.Bool()}
}

// distance is the norm of order p along the last dimension. That of order 0
// counts the elements that are not 0, and is NaN where one is.
func distance(b op.Builder, v op.Value, p float64) op.Value {
	if p == 0 {
		return b.Op("sum", b.Op("clamp", b.Op("ceil", b.Op("abs", v)), nil, 1.0), -1)
	}
	return b.Op("norm.reduce", v, p, []int{-1}, false, false)
}

// distanceTerms is the length of the vectors of which distances are taken.
func distanceTerms(a op.Args) int {
	shape, err := broadcastShape(a.Value(arg.X1))
	if err != nil || len(shape) == 0 {
		return 1
	}
	if a.Sig.Takes(arg.Dim) {
		if d, err := wrapDim(a.Int(arg.Dim), len(shape)); err == nil {
			return shape[d]
		}
	}
	return shape[len(shape)-1]
}

func checkCosine(a op.Args) error {
	if d := a.Promoted(arg.X1, arg.X2); !d.IsDifferentiable() || d.IsComplex() {
		return op.RuntimeError("arguments 'x1' and 'x2' must have a floating point common dtype, not %s", d)
	}
	return nil
}
