package ops

import (
	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var scanOps = []*op.Def{
	{
		Sig:   "cumsum(Tensor input, int dim, *, dtype? dtype=None) -> Tensor",
		Names: both("cumsum"),
		SBP:   anyOf(linear(arg.Input), alongOthers(arg.Input)),
		Doc:   "Running sum along dim: out[i] = Σ input[0…i]. Integers and bool give int64 unless dtype says otherwise.",
		Infer: inferScan(sumType),
		Kernels: []op.Kernel{
			scanKernel("integer", resultOf(sumType, integralSet...), sumType, kernel.CumSum[int64, int64]),
			scanKernel("float32", resultOf(sumType, float32Set...), sumType, kernel.CumSum[float32, float64]),
			scanKernel("float64", resultOf(sumType, tensor.F64), sumType, kernel.CumSum[float64, float64]),
			scanKernel("complex", resultOf(sumType, complexTypes...), sumType, kernel.CumSumComplex),
		},
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Op("cumsum.backward", g.G(), g.Int(arg.Dim)) }),
		Sample: sampleScan,
		Tol:    ownMagnitude(accumulating(scanTerms(arg.Input), "a sum of up to Terms elements")),
	},
	{
		Sig:   "cumsum.backward(Tensor grad, int dim) -> Tensor",
		SBP:   anyOf(linear(arg.Grad), alongOthers(arg.Grad)),
		Doc:   "Running sum along dim from its end: out[i] = Σ grad[i…].",
		Infer: inferLike(arg.Grad),
		Kernels: []op.Kernel{
			gradKernel("float32", float32Set, kernel.CumSumBack[float32, float64]),
			gradKernel("float64", float64Set, kernel.CumSumBack[float64, float64]),
			gradKernel("complex", complexTypes, kernel.CumSumBackComplex),
		},
		Grad:   op.GradientOf(arg.Grad, func(g *op.Grad) op.Value { return g.Op("cumsum", g.G(), g.Int(arg.Dim)) }),
		Sample: sampleScan,
		Tol:    ownMagnitude(accumulating(scanTerms(arg.Grad), "a sum of up to Terms elements")),
	},
	{
		Sig:   "cumprod(Tensor input, int dim, *, dtype? dtype=None) -> Tensor",
		Names: both("cumprod"),
		Doc:   "Running product along dim: out[i] = Π input[0…i]. Integers and bool give int64 unless dtype says otherwise.",
		SBP:   alongOthers(arg.Input),
		Infer: inferScan(sumType),
		Kernels: []op.Kernel{
			scanKernel("integer", resultOf(sumType, integralSet...), sumType, kernel.CumProd[int64]),
			scanKernel("float32", resultOf(sumType, float32Set...), sumType, kernel.CumProd32),
			scanKernel("float64", resultOf(sumType, tensor.F64), sumType, kernel.CumProd[float64]),
			scanKernel("complex", resultOf(sumType, complexTypes...), sumType, kernel.CumProd[complex128]),
		},
		Grad:   op.Gradient(cumprodGrad),
		Sample: sampleScan,
		Tol:    ownMagnitude(accumulating(scanTerms(arg.Input), "a product of up to Terms elements, one rounding each")),
	},
	{
		Sig:   "cumprod.backward(Tensor grad, Tensor input, int dim) -> Tensor",
		Doc:   "Gradient of cumprod: out[i] = Σ over k ≥ i of grad[k]·Π over j ≤ k, j ≠ i of input[j].",
		SBP:   anyOf(linear(arg.Grad), alongOthers(arg.Grad, arg.Input)),
		Infer: inferLike(arg.Input),
		Kernels: []op.Kernel{
			backKernel("float32", float32Set, kernel.CumProdBack[float32]),
			backKernel("float64", float64Set, kernel.CumProdBack[float64]),
			backKernel("complex", complexTypes, kernel.CumProdBack[complex128]),
		},
		Grad:   cumprodSecond,
		Sample: sampleCumprodBackward,
		Tol:    ownMagnitude(accumulating(scanTerms(arg.Input), "a sum of up to Terms products")),
	},
	{
		Sig:    "logcumsumexp(Tensor input, int dim) -> Tensor",
		Names:  both("logcumsumexp"),
		Doc:    "Running log-sum-exp along dim: out[i] = log Σ exp(input[0…i]).",
		SBP:    alongOthers(arg.Input),
		Reject: firstError(checkScanDim, rejectTypes(arg.Input, append(integralSet, complexTypes...)...)),
		Infer:  inferScan(statInputType),
		Kernels: []op.Kernel{
			scanKernel("float32", op.DTypeIn(arg.Input, float32Set...), nil, kernel.LogCumSumExp[float32]),
			scanKernel("float64", op.DTypeIn(arg.Input, tensor.F64), nil, kernel.LogCumSumExp[float64]),
		},
		Grad:    op.Gradient(logcumsumexpGrad),
		Sample:  sampleScan,
		Formula: logCumSumExpFormula,
		Tol:     accumulating(scanTerms(arg.Input), "a sum of up to Terms exponentials"),
	},
	{
		Sig:     "logcumsumexp.backward(Tensor grad, Tensor input, Tensor output, int dim) -> Tensor",
		Doc:     "Gradient of logcumsumexp: out[i] = Σ over k ≥ i of grad[k]·exp(input[i] − output[k]).",
		SBP:     anyOf(linear(arg.Grad), alongOthers(arg.Grad, arg.Input, arg.Output)),
		Infer:   inferLike(arg.Input),
		Kernels: []op.Kernel{logBackKernel[float32]("float32", float32Set), logBackKernel[float64]("float64", float64Set)},
		Grad:    logcumsumexpSecond,
		Sample:  sampleLogcumsumexpBackward,
		Formula: logCumSumExpBackFormula,
		Tol:     accumulating(scanTerms(arg.Input), "a sum of up to Terms products"),
	},
	runningExtreme("cummax", "largest", kernel.CumMax[int64], kernel.CumMax[float32], kernel.CumMax[float64]),
	runningExtreme("cummin", "smallest", kernel.CumMin[int64], kernel.CumMin[float32], kernel.CumMin[float64]),
}

func cumprodGrad(g *op.Grad) op.Value {
	d := g.Out[0].DType()
	return g.Op("cumprod.backward", wide(g, g.G()), conj(g, wide(g, g.Cast(g.Value(arg.Input), d))), g.Int(arg.Dim))
}

func sampleCumprodBackward(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...), s.Index(len(shape))}
}

func logcumsumexpGrad(g *op.Grad) op.Value {
	return g.Op("logcumsumexp.backward", g.G(), g.Value(arg.Input), g.Out[0], g.Int(arg.Dim))
}

func sampleLogcumsumexpBackward(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...), s.Index(len(shape))}
}

func runningExtreme(id, which string, i64 func([]int64, []int64, []int64), f32 func([]float32, []int64, []float32), f64 func([]float64, []int64, []float64)) *op.Def {
	return &op.Def{
		Sig:    id + "(Tensor input, int dim) -> (Tensor values, Tensor indices)",
		Names:  both(id),
		Traits: op.Monotone,
		Doc:    "Running " + which + " element along dim, NaN from the first one on, and the last index at which it has occurred.",
		SBP:    alongOthers(arg.Input),
		Reject: rejectTypes(arg.Input, complexTypes...),
		Infer:  inferRunningExtreme,
		Kernels: []op.Kernel{
			{Name: "no elements", When: emptyInput, Priority: 1, Run: zeroResults},
			runningKernel("integer", integralSet, i64),
			runningKernel("float32", float32Set, f32),
			runningKernel("float64", float64Set, f64),
		},
		Grad:   op.Gradient(runningExtremeGrad),
		Sample: func(s *op.Sampler) []any { return sampleDistinctDim(s)[:2] },
		Tol:    exactTol("one of its inputs"),
	}
}

func inferRunningExtreme(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	if _, err := scanDim(a, v); err != nil && len(v.Shape()) > 0 && tensor.NumElements(v.Shape()) > 0 {
		return nil, err
	}
	return []op.Meta{{DType: v.DType(), Shape: v.Shape()}, {DType: tensor.I64, Shape: v.Shape()}}, nil
}

func runningExtremeGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	if tensor.NumElements(x.Shape()) == 0 || len(x.Shape()) == 0 {
		return g.G()
	}
	return g.Op("scatter_add", zeros(g, x), g.Int(arg.Dim), g.Out[1], g.G())
}

func scanDim(a op.Args, v op.Value) (int, error) { return wrapDim(a.Int(arg.Dim), len(v.Shape())) }

func checkScanDim(a op.Args) error {
	_, err := scanDim(a, a.Value(arg.Input))
	return err
}

// inferScan infers one contiguous result of the input's shape.
func inferScan(dtype func(op.Args) tensor.DType) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		v := a.Value(arg.Input)
		if _, err := scanDim(a, v); err != nil {
			return nil, err
		}
		return one(dtype(a), v.Shape(), nil), nil
	}
}

// scanTerms returns the length of the named tensor's rows.
func scanTerms(name op.TensorArg) func(op.Args) int {
	return func(a op.Args) int {
		v := a.Value(name)
		if d, err := scanDim(a, v); err == nil && len(v.Shape()) > 0 {
			return v.Shape()[d]
		}
		return 1
	}
}

func sampleScan(s *op.Sampler) []any { return sampleStatDim(s)[:2] }

// alongDim returns the dimension of a scan; the last one without the parameter,
// and 0 for what cummax lets pass.
func alongDim(a op.Args, v op.Value) int {
	if !a.Sig.Takes(arg.Dim) {
		return len(v.Shape()) - 1
	}
	d, err := scanDim(a, v)
	if err != nil {
		return 0
	}
	return d
}

func scanKernel[T kernel.Lane](name string, when op.Pred, to func(op.Args) tensor.DType, f func(dst, row []T)) op.Kernel {
	return op.Kernel{Name: name, When: when, Run: func(c *op.Run) error {
		in := c.Tensor(arg.Input)
		if to != nil && in.DType() != to(c.Args) {
			in = in.Convert(to(c.Args))
		}
		kernel.ScanRows(c.Out[0], in, alongDim(c.Args, in), f)
		return nil
	}}
}

func gradKernel[T kernel.Lane](name string, ds []tensor.DType, f func(dst, row []T)) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Grad, ds...), Run: func(c *op.Run) error {
		in := c.Tensor(arg.Grad)
		kernel.ScanRows(c.Out[0], in, alongDim(c.Args, in), f)
		return nil
	}}
}

func backKernel[T kernel.Lane](name string, ds []tensor.DType, f func(dst, g, x []T)) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		in := c.Tensor(arg.Input)
		kernel.ScanRows2(c.Out[0], c.Tensor(arg.Grad), in, alongDim(c.Args, in), f)
		return nil
	}}
}

func logBackKernel[T float32 | float64](name string, ds []tensor.DType) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		in := c.Tensor(arg.Input)
		kernel.ScanRows3(c.Out[0], c.Tensor(arg.Grad), in, c.Tensor(arg.Output), alongDim(c.Args, in), kernel.LogCumSumExpBack[T])
		return nil
	}}
}

func runningKernel[T kernel.Lane](name string, ds []tensor.DType, f func(values []T, indices []int64, row []T)) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		in := c.Tensor(arg.Input)
		kernel.ScanPairs(c.Out[0], c.Out[1], in, alongDim(c.Args, in), f)
		return nil
	}}
}

// pairsAlong is what the gradients of scan gradients are made of: values of
// each pair (i, k) of places in a row lie along two dimensions that replace dim.
type pairsAlong struct {
	*op.Grad
	dim, n int
	shape  []int
}

func newPairs(g *op.Grad) *pairsAlong {
	x := g.Value(arg.Input)
	p := &pairsAlong{Grad: g, dim: alongDim(g.Args, x), shape: x.Shape()}
	if len(p.shape) == 0 {
		p.shape = []int{1}
	}
	p.n = p.shape[p.dim]
	return p
}

// with returns the shape with dim replaced by two of the sizes.
func (p *pairsAlong) with(i, k int) []int {
	shape := append([]int{}, p.shape[:p.dim]...)
	return append(append(shape, i, k), p.shape[p.dim+1:]...)
}

// first lays v out along i, second along k.
func (p *pairsAlong) first(v op.Value) op.Value  { return p.Reshape(v, p.with(p.n, 1)) }
func (p *pairsAlong) second(v op.Value) op.Value { return p.Reshape(v, p.with(1, p.n)) }

// total sums over one of the two dimensions.
func (p *pairsAlong) total(v op.Value, dim int) op.Value {
	return p.Reshape(p.Op("sum", v, op.Kw("dim", []int{p.dim + dim})), p.Value(arg.Input).Shape())
}

// square lays a matrix of n rows out along i and k.
func (p *pairsAlong) square(m op.Value) op.Value {
	shape := []int{p.n, p.n}
	for range p.shape[p.dim+1:] {
		shape = append(shape, 1)
	}
	return p.Reshape(m, shape)
}

// masks returns where i = k, and where i ≤ k.
func (p *pairsAlong) masks(v op.Value) (diagonal, upper op.Value) {
	eye := diagonalOnes(p.Grad, v, p.n)
	return p.Op("eq", p.square(eye), 1), p.Op("eq", p.square(p.Op("cumsum", eye, 1)), 1)
}

// cumprodSecond is the gradient of cumprod.backward: with x[i] replaced by 1,
// the running products at k ≥ i are the derivatives of cumprod.
func cumprodSecond(g *op.Grad) {
	if tensor.NumElements(g.Value(arg.Input).Shape()) == 0 {
		g.To(arg.Grad, func() op.Value { return g.G() })
		g.To(arg.Input, func() op.Value { return g.G() })
		return
	}
	p := newPairs(g)
	x, v := g.Value(arg.Input), p.first(g.G())
	diagonal, upper := p.masks(x)
	copies := g.Op("where", diagonal, 1.0, g.Expand(p.second(x), p.with(p.n, p.n)))
	g.To(arg.Grad, func() op.Value {
		slopes := g.Op("where", upper, conj(g, g.Op("cumprod", copies, p.dim+1)), 0.0)
		return p.total(g.Mul(v, slopes), 0)
	})
	g.To(arg.Input, func() op.Value {
		cot := g.Op("where", upper, g.Mul(v, conj(g, p.second(g.Value(arg.Grad)))), 0.0)
		d := g.Op("cumprod.backward", g.Expand(cot, p.with(p.n, p.n)), conj(g, copies), p.dim+1)
		return p.total(g.Op("where", diagonal, 0.0, d), 0)
	})
}

// logcumsumexpSecond differentiates grad[k]·exp(input[i] − output[k]).
func logcumsumexpSecond(g *op.Grad) {
	x, c := g.Value(arg.Input), g.Value(arg.Grad)
	if tensor.NumElements(x.Shape()) == 0 {
		for _, name := range []op.TensorArg{arg.Grad, arg.Input, arg.Output} {
			g.To(name, func() op.Value { return g.G() })
		}
		return
	}
	g.To(arg.Input, func() op.Value { return g.Mul(g.G(), g.Out[0]) })
	if !g.Needs(arg.Grad) && !g.Needs(arg.Output) {
		return
	}
	p := newPairs(g)
	_, upper := p.masks(x)
	difference := g.Op("where", upper, g.Sub(p.first(x), p.second(g.Value(arg.Output))), 0.0)
	slopes := g.Op("where", upper, g.Op("exp", difference), 0.0)
	sums := p.total(g.Mul(p.first(g.G()), slopes), 0)
	g.To(arg.Grad, func() op.Value { return sums })
	g.To(arg.Output, func() op.Value { return g.Neg(g.Mul(c, sums)) })
}
