package ops

import (
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// solveOps solve linear equations and factor positive definite matrices.
var solveOps = []*op.Def{
	{
		Sig:     "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
		Domains: asSampled(arg.UpperA, arg.UpperB),
		Names:   []string{"torch.linalg.solve"},
		Doc:     "The solution X of A·X = B, or of X·A = B without left, for square matrices A; B holds matrices, or vectors if its shape is A's without the last dimension. A singular matrix is rejected.",
		SBP:     shardLinalgSolve,
		Reject:  firstError(square(arg.UpperA), floating(arg.UpperA), checkLinalgSolve),
		Infer:   inferLinalgSolve,
		Kernels: factorKernels(arg.UpperA, solveRun[float64](tensor.F64), solveRun[complex128](tensor.C128)),
		Grad:    solveGrad,
		Sample:  sampleSolve,
		Tol:     matrixTol(arg.UpperA),
	},
	choleskyOp("cholesky", "bool upper=False", both("cholesky")),
	choleskyOp("linalg_cholesky", "*, bool upper=False", []string{"torch.linalg.cholesky"}),
	choleskyEx(),
}

func shardLinalgSolve(a op.Args) []op.Sharding {
	if x, y := a.Value(arg.UpperA).Shape(), a.Value(arg.UpperB).Shape(); len(x) != len(y) || !slices.Equal(x[:len(x)-2], y[:len(y)-2]) {
		return nil
	}
	return planes(2, arg.UpperA, arg.UpperB)(a)
}

func checkLinalgSolve(a op.Args) error {
	if x, y := a.Value(arg.UpperA).DType(), a.Value(arg.UpperB).DType(); x != y {
		return op.RuntimeError("A and B must have the same dtype, but have %s and %s", x, y)
	}
	return nil
}

func inferLinalgSolve(a op.Args) ([]op.Meta, error) {
	e, err := equationOf(a)
	if err != nil {
		return nil, err
	}
	strides := tensor.ContiguousStrides(e.out)
	if len(e.out) > 1 && e.left {
		strides = columnMajor(e.out)
	}
	return one(a.Value(arg.UpperA).DType(), e.out, strides), nil
}

// equation is A·X = B or X·A = B over batches of one shape: X is n×m, or m×n
// without left. Out is X's shape, without the last dimension for vectors.
type equation struct {
	left, vector bool
	batch, out   []int
	n, m         int
}

func equationOf(a op.Args) (*equation, error) {
	x, y := a.Value(arg.UpperA).Shape(), a.Value(arg.UpperB).Shape()
	vector := len(y) == 1 || slices.Equal(y, x[:len(x)-1])
	if vector {
		y = append(slices.Clone(y), 1)
	}
	e, err := matrixEquation(x, y, a.Bool(arg.Left))
	if vector && err == nil {
		e.vector, e.out = true, e.out[:len(e.out)-1]
	}
	return e, err
}

// matrixEquation is the equation of matrices A and B of the shapes x and y.
func matrixEquation(x, y []int, left bool) (*equation, error) {
	if len(y) < 2 {
		return nil, op.RuntimeError("B must have at least 2 dimensions, but has %d", len(y))
	}
	e := &equation{left: left, n: x[len(x)-1]}
	rows, columns := y[len(y)-2], y[len(y)-1]
	if !left {
		rows, columns = columns, rows
	}
	if rows != e.n {
		return nil, op.RuntimeError("A and B have incompatible shapes: %s and %s", tensor.ShapeString(x), tensor.ShapeString(y))
	}
	e.m = columns
	batch, err := tensor.BroadcastShapes(x[:len(x)-2], y[:len(y)-2])
	if err != nil {
		return nil, op.RuntimeError("batch dimensions of A and B: %v", err)
	}
	e.batch, e.out = batch, append(slices.Clone(batch), y[len(y)-2:]...)
	return e, nil
}

func solveRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		e, err := equationOf(c.Args)
		if err != nil {
			return err
		}
		a, b := c.Tensor(arg.UpperA).Convert(d), c.Tensor(arg.UpperB).Convert(d)
		if e.vector {
			b = b.Reshape(append(slices.Clone(b.Shape()), 1)...)
		}
		if !e.left {
			a, b = a.Transpose(a.Dim()-2, a.Dim()-1), b.Transpose(b.Dim()-2, b.Dim()-1)
		}
		left, err := matricesOf[T](a, e.batch)
		if err != nil {
			return err
		}
		right, err := matricesOf[T](b, e.batch)
		if err != nil {
			return err
		}
		x := tensor.New(d, append(slices.Clone(e.batch), e.n, e.m)...)
		data := tensor.Data[T](x)
		n, m := e.n, e.m
		for i := range tensor.NumElements(e.batch) {
			lu := kernel.Eliminate(n, left[i*n*n:][:n*n])
			if lu.Zero() >= 0 {
				return &op.Error{Class: "_LinAlgError", Msg: "argument A holds a singular matrix"}
			}
			lu.Solve(data[i*n*m:][:n*m], right[i*n*m:][:n*m], m)
		}
		if !e.left {
			x = x.Transpose(x.Dim()-2, x.Dim()-1)
		}
		c.Out[0].CopyFrom(x.Contiguous().Reshape(e.out...))
		return nil
	}
}

// matricesOf copies the matrices of t, broadcast to the batch, in row-major order.
func matricesOf[T kernel.Field](t *tensor.Tensor, batch []int) ([]T, error) {
	e, err := t.Expand(append(slices.Clone(batch), t.Shape()[t.Dim()-2:]...)...)
	if err != nil {
		return nil, err
	}
	return contiguousData[T](e.Clone()), nil
}

func solveGrad(g *op.Grad) {
	e, err := equationOf(g.Args)
	if err != nil {
		op.Fail(err)
	}
	cot, x := g.G(), g.Out[0]
	if e.vector {
		cot, x = g.Op("unsqueeze", cot, -1), g.Op("unsqueeze", x, -1)
	}
	a := g.Value(arg.UpperA)
	h := adjoint(g, a)
	d := g.Op("linalg_solve", g.Expand(h, append(slices.Clone(e.batch), e.n, e.n)), cot, op.Kw("left", e.left))
	g.To(arg.UpperB, func() op.Value {
		if e.vector {
			return g.Op("squeeze", d, -1)
		}
		return d
	})
	g.To(arg.UpperA, func() op.Value {
		if e.left {
			return g.Neg(g.Op("matmul", d, adjoint(g, x)))
		}
		return g.Neg(g.Op("matmul", adjoint(g, x), d))
	})
}

func sampleSolve(s *op.Sampler) []any {
	a := wellConditioned(s)
	n := sizeOf(a, 1)
	form := s.Index(4)
	if n == 1 {
		form = 2 // PyTorch 1.13 cannot differentiate by a matrix of one element, with a vector
	}
	switch form {
	case 0:
		return []any{a, s.Tensor(-2, 2, a.Shape()[:a.Dim()-1]...)}
	case 1:
		return []any{a, s.Tensor(-2, 2, append(batchOf(a), int(s.Int(1, 4)), n)...), op.Kw("left", false)}
	}
	return []any{a, s.Tensor(-2, 2, append(batchOf(a), n, n+1)...)}
}

func choleskyOp(id, params string, names []string) *op.Def {
	return &op.Def{
		Sig:     id + "(Tensor input, " + params + ") -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   names,
		Doc:     "The lower triangular L, of a positive diagonal, with L·Lᵀ = input, or with upper its transpose. The matrices must be symmetric, and real, for PyTorch's gradient of complex ones is that of no function; one that is not positive definite is rejected.",
		SBP:     planes(2, arg.Input),
		Reject: firstError(func(a op.Args) error {
			if id == "cholesky" && tensor.NumElements(a.Value(arg.Input).Shape()) == 0 {
				return nil // which that one returns as it is
			}
			return square(arg.Input)(a)
		}, floating(arg.Input)),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg.Input)
			if id == "cholesky" && tensor.NumElements(v.Shape()) == 0 {
				return one(v.DType(), v.Shape(), nil), nil
			}
			return one(v.DType(), v.Shape(), columnMajor(v.Shape())), nil
		},
		Kernels: factorKernels(arg.Input, runCholesky, nil),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return choleskyGrad(g) }),
		Sample:  func(s *op.Sampler) []any { return []any{positiveDefinite(s), op.Kw("upper", s.Bool())} },
		Tol:     matrixTol(arg.Input),
	}
}

// choleskyEx is linalg_cholesky with the order of the first leading minor that is
// not positive in the place of a rejection.
func choleskyEx() *op.Def {
	d := holding(op.Structured, choleskyOp("linalg_cholesky_ex", "*, bool upper=False, bool check_errors=False", []string{"torch.linalg.cholesky_ex"}))
	d.Traits |= op.Contraction
	d.Sig = strings.TrimSuffix(d.Sig, "Tensor") + "(Tensor L, Tensor info)"
	d.Doc = "The lower triangular L, of a positive diagonal, with L·Lᵀ = input, or with upper its transpose, and for each matrix 0, or the order of the first leading minor that is not positive: L is unfinished then. The matrices must be symmetric and real."
	infer := d.Infer
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		metas, err := infer(a)
		if err != nil {
			return nil, err
		}
		shape := a.Value(arg.Input).Shape()
		return append(metas, op.Meta{DType: tensor.I32, Shape: shape[:len(shape)-2]}), nil
	}
	return d
}

func runCholesky(c *op.Run) error {
	if c.Out[0].Len() == 0 {
		if len(c.Out) > 1 {
			c.Out[1].CopyFrom(tensor.New(tensor.I32, c.Out[1].Shape()...))
		}
		return nil
	}
	x := c.Tensor(arg.Input).Convert(tensor.F64).Clone().Contiguous()
	data, n := tensor.Data[float64](x), sizeOf(x, 1)
	for i := range tensor.NumElements(x.Shape()[:x.Dim()-2]) {
		k := kernel.Cholesky(n, data[i*n*n:][:n*n])
		switch {
		case k < n && (len(c.Out) == 1 || c.Bool(arg.CheckErrors)):
			return &op.Error{Class: "_LinAlgError", Msg: "argument input holds a matrix that is not positive definite"}
		case len(c.Out) > 1:
			c.Out[1].SetInt(i, int64((k+1)%(n+1)))
		}
	}
	if c.Bool(arg.Upper) {
		x = x.Transpose(x.Dim()-2, x.Dim()-1)
	}
	c.Out[0].CopyFrom(x.Convert(c.Out[0].DType()))
	return nil
}

// choleskyGrad is L⁻ᵀ·π(Lᵀ·G)·L⁻¹, where π is the symmetric part of the lower
// triangle, its diagonal counted once.
func choleskyGrad(g *op.Grad) op.Value {
	l, cot := g.Out[0], g.G()
	if g.Bool(arg.Upper) {
		l, cot = adjoint(g, l), adjoint(g, cot)
	}
	h := adjoint(g, l)
	p := g.Op("matmul", h, cot)
	part := g.Mul(g.Add(g.Op("tril", p), adjoint(g, g.Op("tril", p, -1))), 0.5)
	left := g.Op("linalg_solve", h, part)
	return adjoint(g, g.Op("linalg_solve", h, adjoint(g, left)))
}

// positiveDefinite draws symmetric matrices whose eigenvalues are at least 1.
func positiveDefinite(s *op.Sampler) *tensor.Tensor {
	n := int(s.Int(1, 5))
	t := s.Tensor(-1, 1, append(s.Shape(0, 1), n, n)...)
	out := tensor.New(s.DType, t.Shape()...)
	for i := range t.Len() {
		at, row, column := i/(n*n)*n*n, i/n%n, i%n
		sum := 0.0
		if row == column {
			sum = 1
		}
		for k := range n {
			sum += t.Float(at+row*n+k) * t.Float(at+column*n+k)
		}
		out.Set(i, complex(sum, 0))
	}
	return out
}
