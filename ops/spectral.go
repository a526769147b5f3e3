package ops

import (
	"math"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// spectralOps follow from singular values, or from powers of a matrix.
var spectralOps = []*op.Def{
	linalgPinv(),
	pseudoInverse("pinverse(Tensor input, float rcond=1e-15) -> Tensor", func(a op.Args, largest float64) float64 {
		return a.Float(arg.Rcond) * largest
	}, both("pinverse")...),
	{
		Sig:             "linalg_matrix_rank(Tensor input, *, float? atol=None, float? rtol=None, bool hermitian=False, float? tol=None) -> Tensor",
		More:            []string{"linalg_matrix_rank(Tensor input, float tol, bool hermitian=False) -> Tensor"},
		OnlyInOverloads: []string{"tol"},
		Domains:         asSampled(arg.Input),
		Names:           []string{"torch.linalg.matrix_rank"},
		Doc:             "How many singular values of a matrix are above tol, or above atol and above rtol times the largest: rtol is the dtype's epsilon times the larger size unless atol or rtol says otherwise.",
		Traits:          op.NoGrad,
		SBP:             planes(2, arg.Input),
		Reject:          firstError(matrices(arg.Input), floating(arg.Input), checkHermitian),
		Infer:           func(a op.Args) ([]op.Meta, error) { return one(tensor.I64, batchOf(a.Value(arg.Input)), nil), nil },
		Kernels:         factorKernels(arg.Input, rankRun[float64](tensor.F64), rankRun[complex128](tensor.C128)),
		Sample:          func(s *op.Sampler) []any { return []any{fullRank(s)} },
		Tol:             exactTol("a number of singular values"),
	},
	{
		Sig:     "linalg_cond(Tensor input, Scalar? p=None) -> Tensor",
		More:    []string{"linalg_cond(Tensor input, str p) -> Tensor"},
		Domains: asSampled(arg.Input),
		Names:   []string{"torch.linalg.cond"},
		Doc:     "Condition number: the quotient of the largest and the smallest singular value (of the smallest and the largest for p = -2), otherwise the norm of the matrix times that of its inverse. A singular matrix is rejected, and a gradient refused, unless p is None, ±2 or 'nuc'.",
		Reject:  firstError(matrices(arg.Input), checkCond),
		Compose: composeCond,
		Sample: func(s *op.Sampler) []any {
			return []any{wellConditioned(s), []any{nil, 2.0, -2.0, "nuc"}[s.Index(4)]}
		},
		Tol: rectangularTol(arg.Input),
	},
	{
		Sig:     "matrix_exp(Tensor input) -> Tensor",
		Names:   append(both("matrix_exp"), "torch.linalg.matrix_exp"),
		Domains: asSampled(arg.Input),
		Doc:     "Exponential of square matrices: Σₖ inputᵏ/k!.",
		SBP:     planes(2, arg.Input),
		Reject:  firstError(square(arg.Input), rejectTypes(arg.Input, integralSet...)),
		Infer: func(a op.Args) ([]op.Meta, error) {
			return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
		},
		Kernels: []op.Kernel{
			{Name: "real", When: op.DTypeIn(arg.Input, tensor.BF16, tensor.F32, tensor.F64), Run: exponentialRun[float64](tensor.F64)},
			{Name: "float16", When: op.DTypeIn(arg.Input, tensor.F16), Run: exponentialRun[float64](tensor.F64), Since: "2"},
			{Name: "complex", When: op.DTypeIn(arg.Input, complexTypes...), Run: exponentialRun[complex128](tensor.C128)},
		},
		Grad: op.Gradient(exponentialGrad),
		Sample: func(s *op.Sampler) []any {
			n := int(s.Int(1, 5))
			return []any{s.Tensor(-1, 1, append(s.Shape(0, 1), n, n)...)}
		},
		Tol: accumulating(func(a op.Args) int {
			n := sizeOf(a.Value(arg.Input), 1)
			return 8 * n * n
		}, "products of the terms of a polynomial and squares of their sum"),
	},
}

func linalgPinv() *op.Def {
	d := pseudoInverse("linalg_pinv(Tensor input, *, float? atol=None, float? rtol=None, bool hermitian=False, float? rcond=None) -> Tensor",
		func(a op.Args, largest float64) float64 {
			if a.Has(arg.Rcond) {
				return a.Float(arg.Rcond) * largest
			}
			return leastSingular(a, largest)
		}, "torch.linalg.pinv")
	d.More = []string{"linalg_pinv(Tensor input, float rcond, bool hermitian=False) -> Tensor"}
	d.OnlyInOverloads = []string{"rcond"}
	d.Reject = firstError(d.Reject, checkHermitian)
	return d
}

// pseudoInverse is an operator that inverts the singular values above least.
func pseudoInverse(sig string, least func(a op.Args, largest float64) float64, names ...string) *op.Def {
	return &op.Def{
		Sig:     sig,
		Domains: asSampled(arg.Input),
		Names:   names,
		Doc:     "Pseudo-inverse of matrices, in which singular values count as 0 that are not above rcond times the largest, or above atol and above rtol times the largest.",
		SBP:     planes(2, arg.Input),
		Reject:  firstError(matrices(arg.Input), floating(arg.Input)),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg.Input)
			return one(v.DType(), append(batchOf(v), sizeOf(v, 1), sizeOf(v, 2)), nil), nil
		},
		Kernels: factorKernels(arg.Input, pseudoInverseRun[float64](tensor.F64, least), pseudoInverseRun[complex128](tensor.C128, least)),
		Grad:    op.Gradient(pseudoInverseGrad),
		Sample:  func(s *op.Sampler) []any { return []any{fullRank(s)} },
		Tol:     rectangularTol(arg.Input),
	}
}

func checkHermitian(a op.Args) error {
	if a.Bool(arg.Hermitian) {
		return square(arg.Input)(a)
	}
	return nil
}

// asHermitian returns the matrices that have the lower triangles of x where the
// call says that they are Hermitian, and x otherwise.
func asHermitian[T kernel.Field](a op.Args, x *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if !a.Sig.Takes(arg.Hermitian) || !a.Bool(arg.Hermitian) {
		return x
	}
	out := tensor.New(d, x.Shape()...)
	n := sizeOf(x, 1)
	eachMatrix(x, d, func(i int, m []T) {
		kernel.Hermitian(n, m, false)
		copy(tensor.Data[T](out)[i*n*n:], m)
	})
	return out
}

// leastSingular returns the larger of atol and rtol times the largest singular
// value, at and below which they count as 0.
func leastSingular(a op.Args, largest float64) float64 {
	x := a.Value(arg.Input)
	rtol := a.Float(arg.Rtol)
	if !a.Has(arg.Rtol) && a.Float(arg.Atol) <= 0 {
		rtol = epsilon(x.DType()) * float64(max(sizeOf(x, 1), sizeOf(x, 2)))
	}
	return max(a.Float(arg.Atol), rtol*largest)
}

// epsilon returns the distance of 1 from the next number of single or double precision.
func epsilon(d tensor.DType) float64 {
	if d.Real() == tensor.F32 {
		return 0x1p-23
	}
	return 0x1p-52
}

func pseudoInverseRun[T kernel.Field](d tensor.DType, least func(a op.Args, largest float64) float64) func(c *op.Run) error {
	return func(c *op.Run) error {
		x := c.Tensor(arg.Input)
		m, n := sizeOf(x, 2), sizeOf(x, 1)
		out := tensor.New(d, c.Out[0].Shape()...)
		data := tensor.Data[T](out)
		err := decomposed(asHermitian[T](c.Args, x, d), d, func(i int, svd *kernel.SVD[T]) {
			if len(svd.S) > 0 {
				svd.PseudoInverse(m, n, data[i*m*n:][:m*n], least(c.Args, svd.S[0]))
			}
		})
		c.Out[0].CopyFrom(out)
		return err
	}
}

// pseudoInverseGrad is that of matrices whose rank stays as it is: Golub and
// Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
// problems whose variables separate" (SIAM J. Numer. Anal. 10, 1973).
func pseudoInverseGrad(g *op.Grad) op.Value {
	a, p := g.Value(arg.Input), g.Out[0]
	h, cot := adjoint(g, p), adjoint(g, g.G())
	times := func(x, y op.Value) op.Value { return g.Op("matmul", x, y) }
	left, right := times(times(cot, p), h), times(h, times(p, cot))
	left, right = g.Sub(left, times(a, times(p, left))), g.Sub(right, times(times(right, p), a))
	return g.Sub(g.Add(left, right), times(h, times(g.G(), h)))
}

func rankRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	least := func(a op.Args, largest float64) float64 {
		if a.Has(arg.TolFloat) {
			return a.Float(arg.TolFloat)
		}
		return leastSingular(a, largest)
	}
	return func(c *op.Run) error {
		return decomposed(asHermitian[T](c.Args, c.Tensor(arg.Input), d), d, func(i int, svd *kernel.SVD[T]) {
			rank := 0
			for _, s := range svd.S {
				if s > least(c.Args, svd.S[0]) {
					rank++
				}
			}
			c.Out[0].SetInt(i, int64(rank))
		})
	}
}

// condOrder returns p of linalg_cond, and whether it is one of singular values.
func condOrder(a op.Args) (p any, singular bool) {
	switch p := a.Any(arg.P).(type) {
	case op.Scalar:
		return p.Float(), math.Abs(p.Float()) == 2
	case string:
		return p, p == "nuc"
	}
	return 2.0, true
}

func checkCond(a op.Args) error {
	switch p, _ := condOrder(a); p {
	case 2.0, -2.0:
		return floating(arg.Input)(a)
	case 1.0, -1.0, math.Inf(1), math.Inf(-1), "fro", "nuc":
		return firstError(square(arg.Input), floating(arg.Input))(a)
	default:
		return op.ValueError("argument 'p' must be ±1, ±2, ±inf, 'fro' or 'nuc', not %v", p)
	}
}

func composeCond(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	p, singular := condOrder(a)
	if tensor.NumElements(x.Shape()) == 0 {
		return []op.Value{b.Op("zeros", batchOf(x), op.Kw("dtype", x.DType().Real()))}
	}
	if !singular {
		x = b.NoGradient(x, "PyTorch's gradient of this condition number fails: it changes the inverse in place")
		return []op.Value{b.Mul(b.Op("matrix_norm", x, p), b.Op("matrix_norm", b.Op("linalg_inv", x), p))}
	}
	s := b.Op("linalg_svdvals", x)
	if p == "nuc" {
		return []op.Value{b.Mul(b.Op("sum", s, []int{-1}), b.Op("sum", b.Op("reciprocal", s), []int{-1}))}
	}
	largest, smallest := b.Op("select", s, -1, 0), b.Op("select", s, -1, -1)
	if p == -2.0 {
		largest, smallest = smallest, largest
	}
	return []op.Value{b.Div(largest, smallest)}
}

func exponentialRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		x := c.Tensor(arg.Input)
		n, out := sizeOf(x, 1), tensor.New(d, x.Shape()...)
		eachMatrix(x, d, func(i int, a []T) { copy(tensor.Data[T](out)[i*n*n:], kernel.Exponential(n, a)) })
		c.Out[0].CopyFrom(out)
		return nil
	}
}

// exponentialGrad is a block of the exponential of a matrix of twice the size:
// Al-Mohy and Higham, "Computing the Fréchet derivative of the matrix
// exponential" (SIAM J. Matrix Anal. Appl. 30, 2009).
func exponentialGrad(g *op.Grad) op.Value {
	h := adjoint(g, g.Value(arg.Input))
	n := sizeOf(h, 1)
	top := g.Op("cat", []op.Value{h, g.G()}, -1)
	bottom := g.Op("cat", []op.Value{zeros(g, h), h}, -1)
	e := g.Op("matrix_exp", g.Op("cat", []op.Value{top, bottom}, -2))
	return g.Narrow(g.Narrow(e, -2, 0, n), -1, n, n)
}
