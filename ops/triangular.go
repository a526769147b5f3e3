package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// triangularOps solve equations whose matrix is a triangle, or a product of two.
var triangularOps = []*op.Def{
	{
		Sig:     "linalg_solve_triangular(Tensor input, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   []string{"torch.linalg.solve_triangular"},
		Doc:     "The solution X of input·X = B, or of X·input = B without left, for triangular matrices, of which the elements beyond the triangle are not read, nor those of the diagonal if unitriangular, which count as 1.",
		SBP:     shardTriangular,
		Reject:  firstError(square(arg.Input), floating(arg.Input)),
		Infer:   inferTriangular,
		Kernels: factorKernels(arg.Input, triangularRun[float64](tensor.F64), triangularRun[complex128](tensor.C128)),
		Grad:    triangularGrad,
		Sample:  sampleTriangular,
		Tol:     matrixTol(arg.Input),
	},
	{
		Sig:     "cholesky_solve(Tensor input, Tensor input2, bool upper=False) -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Input2: op.Constant},
		Names:   both("cholesky_solve"),
		Doc:     "The solution X of (L·Lᴴ)·X = input for a lower triangular L = input2, or with upper of (Uᴴ·U)·X = input. PyTorch's gradient by the elements beyond the triangle, which are not read, is that of a function which reads them.",
		Reject:  checkCholeskySolve,
		Compose: composeCholeskySolve,
		Sample:  sampleCholeskySolve,
		Tol:     matrixTol(arg.Input2),
	},
}

func shardTriangular(a op.Args) []op.Sharding {
	if x, y := a.Value(arg.Input).Shape(), a.Value(arg.UpperB).Shape(); !slices.Equal(x[:len(x)-2], y[:len(y)-2]) {
		return nil
	}
	return planes(2, arg.Input, arg.UpperB)(a)
}

func triangularEquation(a op.Args) (*equation, error) {
	return matrixEquation(a.Value(arg.Input).Shape(), a.Value(arg.UpperB).Shape(), a.Bool(arg.Left))
}

func inferTriangular(a op.Args) ([]op.Meta, error) {
	e, err := triangularEquation(a)
	if err != nil {
		return nil, err
	}
	return one(a.Value(arg.Input).DType(), e.out, columnMajor(e.out)), nil
}

func triangularRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		e, err := triangularEquation(c.Args)
		if err != nil {
			return err
		}
		a, b, upper := c.Tensor(arg.Input).Convert(d), c.Tensor(arg.UpperB).Convert(d), c.Bool(arg.Upper)
		if !e.left {
			a, b, upper = a.Transpose(a.Dim()-2, a.Dim()-1), b.Transpose(b.Dim()-2, b.Dim()-1), !upper
		}
		left, err := matricesOf[T](a, e.batch)
		if err != nil {
			return err
		}
		x, err := b.Expand(append(slices.Clone(e.batch), e.n, e.m)...)
		if err != nil {
			return err
		}
		x = x.Clone().Contiguous()
		data := tensor.Data[T](x)
		n, m := e.n, e.m
		for i := range tensor.NumElements(e.batch) {
			kernel.SolveTriangle(n, m, left[i*n*n:][:n*n], data[i*n*m:][:n*m], upper, c.Bool(arg.Unitriangular))
		}
		if !e.left {
			x = x.Transpose(x.Dim()-2, x.Dim()-1)
		}
		c.Out[0].CopyFrom(x)
		return nil
	}
}

func triangularGrad(g *op.Grad) {
	upper, left, unit := g.Bool(arg.Upper), g.Bool(arg.Left), g.Bool(arg.Unitriangular)
	d := g.Op("linalg_solve_triangular", adjoint(g, g.Value(arg.Input)), g.G(),
		op.Kw("upper", !upper), op.Kw("left", left), op.Kw("unitriangular", unit))
	g.To(arg.UpperB, func() op.Value { return d })
	g.To(arg.Input, func() op.Value {
		x, y := d, adjoint(g, g.Out[0])
		if !left {
			x, y = y, x
		}
		triangle, beyond := "tril", 0
		if unit {
			beyond = -1
		}
		if upper {
			triangle, beyond = "triu", -beyond
		}
		return g.Neg(g.Op(triangle, g.Op("matmul", x, y), beyond))
	})
}

func sampleTriangular(s *op.Sampler) []any {
	a, upper, left := wellConditioned(s), s.Bool(), s.Bool()
	n := sizeOf(a, 1)
	size := []int{n, int(s.Int(1, 4))}
	if !left {
		slices.Reverse(size)
	}
	return []any{a, s.Tensor(-2, 2, append(batchOf(a), size...)...), op.Kw("upper", upper), op.Kw("left", left), op.Kw("unitriangular", s.Bool())}
}

func checkCholeskySolve(a op.Args) error {
	x, y := a.Value(arg.Input2), a.Value(arg.Input)
	if x.DType() != y.DType() {
		return op.RuntimeError("input and input2 must have the same dtype, but have %s and %s", y.DType(), x.DType())
	}
	if err := firstError(square(arg.Input2), floating(arg.Input2))(a); err != nil {
		return err
	}
	_, err := matrixEquation(x.Shape(), y.Shape(), true)
	return err
}

func composeCholeskySolve(b op.Builder, a op.Args) []op.Value {
	x, l := a.Value(arg.Input), a.Value(arg.Input2)
	h := conjugate(b, b.Op("transpose", l, -2, -1))
	if a.Bool(arg.Upper) {
		l, h = h, l
	}
	x = b.Op("linalg_solve_triangular", l, x, op.Kw("upper", false))
	return []op.Value{b.Op("linalg_solve_triangular", h, x, op.Kw("upper", true))}
}

func sampleCholeskySolve(s *op.Sampler) []any {
	l, upper := wellConditioned(s), s.Bool()
	n := sizeOf(l, 1)
	for i := range l.Len() {
		if row, column := i/n%n, i%n; upper && row > column || !upper && row < column {
			l.Set(i, 0)
		}
	}
	return []any{s.Tensor(-2, 2, append(batchOf(l), n, int(s.Int(1, 4)))...), l, upper}
}
