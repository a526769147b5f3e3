package ops

import (
	"math/cmplx"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// decompositions factor matrices. Singular vectors and eigenvectors are unique
// only up to their signs: the operators that return them have no public name,
// and serve gradients, in which the signs cancel.
var decompositions = []*op.Def{
	{
		Sig:     "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
		Domains: asSampled(arg.UpperA),
		Names:   []string{"torch.linalg.qr"},
		Doc:     "Q, whose columns are orthonormal, and the upper triangular R with Q·R = A, of the signs that reflections give; Q is square when mode is 'complete' and empty when it is 'r'.",
		SBP:     planesUnlessEmpty,
		Reject:  firstError(matrices(arg.UpperA), floating(arg.UpperA), checkQR),
		Infer:   inferQR,
		Kernels: factorKernels(arg.UpperA, qrRun[float64](tensor.F64), qrRun[complex128](tensor.C128)),
		Grad:    qrGrad,
		Sample: func(s *op.Sampler) []any {
			x := fullRank(s)
			if sizeOf(x, 2) > sizeOf(x, 1) {
				return []any{x}
			}
			return []any{x, []string{"reduced", "complete"}[s.Index(2)]}
		},
		Tol: rectangularTol(arg.UpperA),
	},
	{
		Sig:     "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
		Domains: asSampled(arg.UpperA),
		Names:   []string{"torch.linalg.svdvals"},
		Doc:     "Singular values of matrices, in descending order.",
		SBP:     planes(2, arg.UpperA),
		Reject:  firstError(matrices(arg.UpperA), floating(arg.UpperA), checkDriver),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg.UpperA)
			return one(v.DType().Real(), append(batchOf(v), min(sizeOf(v, 2), sizeOf(v, 1))), nil), nil
		},
		Kernels: factorKernels(arg.UpperA, svdRun[float64](tensor.F64), svdRun[complex128](tensor.C128)),
		Grad: op.GradientOf(arg.UpperA, func(g *op.Grad) op.Value {
			parts := g.All("svd.thin", g.Value(arg.UpperA))
			return g.Op("matmul", g.Mul(parts[0], asRow(g, g.G())), adjoint(g, parts[2]))
		}),
		Sample: func(s *op.Sampler) []any { return []any{fullRank(s)} },
		Tol:    rectangularTol(arg.UpperA),
	},
	{
		Sig:     "svd.thin(Tensor A) -> (Tensor U, Tensor S, Tensor V)",
		Domains: asSampled(arg.UpperA),
		Doc:     "Singular vectors and values: A = U·diag(S)·Vᴴ.",
		SBP:     planes(2, arg.UpperA),
		Reject:  firstError(matrices(arg.UpperA), floating(arg.UpperA)),
		Infer:   inferSVD,
		Kernels: factorKernels(arg.UpperA, svdRun[float64](tensor.F64), svdRun[complex128](tensor.C128)),
		Grad:    op.GradientOf(arg.UpperA, svdGrad),
		Sample:  func(s *op.Sampler) []any { return []any{fullRank(s)} },
		Tol:     rectangularTol(arg.UpperA),
	},
	{
		Sig:     "linalg_eigvalsh(Tensor input, str UPLO='L') -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Input: op.Hermitian},
		Names:   []string{"torch.linalg.eigvalsh"},
		Doc:     "Eigenvalues of Hermitian matrices, in ascending order, of which the triangle that UPLO names is read. The gradient is of both triangles.",
		SBP:     planes(2, arg.Input),
		Reject:  firstError(square(arg.Input), floating(arg.Input), checkUPLO),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg.Input)
			return one(v.DType().Real(), slices.Clone(v.Shape()[:len(v.Shape())-1]), nil), nil
		},
		Kernels: factorKernels(arg.Input, eigenRun[float64](tensor.F64), eigenRun[complex128](tensor.C128)),
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			v := g.All("eigh.vectors", g.Value(arg.Input), g.Str(arg.UPLO))[1]
			return g.Op("matmul", g.Mul(v, asRow(g, g.G())), adjoint(g, v))
		}),
		Sample: func(s *op.Sampler) []any { return []any{symmetric(s), []string{"L", "U"}[s.Index(2)]} },
		Tol:    matrixTol(arg.Input),
	},
	{
		Sig:     "eigh.vectors(Tensor input, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
		Domains: map[op.TensorArg]op.Domain{arg.Input: op.Hermitian},
		Doc:     "Eigenvalues and eigenvectors of Hermitian matrices, of which the triangle that UPLO names is read.",
		SBP:     planes(2, arg.Input),
		Reject:  firstError(square(arg.Input), floating(arg.Input), checkUPLO),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg.Input)
			return append(one(v.DType().Real(), slices.Clone(v.Shape()[:len(v.Shape())-1]), nil), one(v.DType(), v.Shape(), nil)...), nil
		},
		Kernels: factorKernels(arg.Input, eigenRun[float64](tensor.F64), eigenRun[complex128](tensor.C128)),
		Grad:    op.Gradient(eigenGrad),
		Sample:  func(s *op.Sampler) []any { return []any{symmetric(s)} },
		Tol:     matrixTol(arg.Input),
	},
}

// matrices rejects a named tensor of fewer than two dimensions.
func matrices(name op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		if n := len(a.Value(name).Shape()); n < 2 {
			return op.RuntimeError("%s must have at least 2 dimensions, but has %d", name, n)
		}
		return nil
	}
}

// rectangularTol is matrixTol of matrices that need not be square.
func rectangularTol(name op.TensorArg) op.Tol {
	return accumulating(func(a op.Args) int {
		n := max(sizeOf(a.Value(name), 1), sizeOf(a.Value(name), 2))
		return n * n
	}, "each of n steps turns columns of n elements")
}

func planesUnlessEmpty(a op.Args) []op.Sharding {
	if a.Str(arg.Mode) == "r" {
		return nil
	}
	return planes(2, arg.UpperA)(a)
}

func checkDriver(a op.Args) error {
	if a.Has(arg.Driver) {
		return op.RuntimeError("argument 'driver' is for CUDA tensors")
	}
	return nil
}

func checkUPLO(a op.Args) error {
	switch a.Str(arg.UPLO) {
	case "L", "U", "l", "u":
		return nil
	}
	return op.RuntimeError("argument 'UPLO' must be 'L' or 'U', not %q", a.Str(arg.UPLO))
}

func checkQR(a op.Args) error {
	switch a.Str(arg.Mode) {
	case "reduced", "complete", "r":
		return nil
	}
	return op.RuntimeError("argument 'mode' must be 'reduced', 'complete' or 'r', not %q", a.Str(arg.Mode))
}

func inferQR(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.UpperA)
	m, n, d := sizeOf(v, 2), sizeOf(v, 1), v.DType()
	k := min(m, n)
	if a.Str(arg.Mode) == "complete" {
		k = m
	}
	q, r := append(batchOf(v), m, k), append(batchOf(v), k, n)
	metas := append(one(d, q, columnMajor(q)), one(d, r, columnMajor(r))...)
	if a.Str(arg.Mode) == "r" {
		metas[0] = op.Meta{DType: d, Shape: []int{0}}
	}
	return metas, nil
}

// eachMatrix calls f with the matrices of t in row-major order, whose memory is f's.
func eachMatrix[T kernel.Field](t *tensor.Tensor, d tensor.DType, f func(i int, a []T)) {
	data, size := contiguousData[T](t.Convert(d).Clone()), sizeOf(t, 1)*sizeOf(t, 2)
	for i := range tensor.NumElements(t.Shape()[:t.Dim()-2]) {
		f(i, data[i*size:][:size])
	}
}

func qrRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		x := c.Tensor(arg.UpperA)
		m, n, k := sizeOf(x, 2), sizeOf(x, 1), sizeOf(c.Out[1], 2)
		q, r := tensor.New(d, c.Out[0].Shape()...), tensor.New(d, c.Out[1].Shape()...)
		eachMatrix(x, d, func(i int, a []T) {
			f := kernel.Triangularise(m, n, a)
			f.R(tensor.Data[T](r)[i*k*n:][:k*n], k)
			if q.Dim() > 1 {
				f.Q(tensor.Data[T](q)[i*m*k:][:m*k], k)
			}
		})
		c.Out[0].CopyFrom(q)
		c.Out[1].CopyFrom(r)
		return nil
	}
}

func qrGrad(g *op.Grad) {
	a := g.Value(arg.UpperA)
	m, n, mode := sizeOf(a, 2), sizeOf(a, 1), g.Str(arg.Mode)
	g.To(arg.UpperA, func() op.Value {
		switch {
		case mode == "r":
			op.Fail(op.RuntimeError("mode 'r' has no gradient, which needs Q"))
		case mode == "complete" && m > n:
			op.Fail(op.RuntimeError("mode 'complete' has no gradient for matrices of more rows than columns"))
		}
		q, r, cq, cr := g.Out[0], g.Out[1], g.Cot[0], g.Cot[1]
		if m >= n {
			return orthogonalGrad(g, q, r, cq, cr)
		}
		// The columns beyond the square ones are Q·R₂: their gradient is Q's and R₂'s.
		square, rest := g.Narrow(r, -1, 0, m), g.Narrow(a, -1, m, n-m)
		if cr == nil {
			return g.Op("cat", []op.Value{orthogonalGrad(g, q, square, cq, nil), zeros(g, rest)}, -1)
		}
		beyond := g.Narrow(cr, -1, m, n-m)
		turned := g.Op("matmul", rest, adjoint(g, beyond))
		if cq != nil {
			turned = g.Add(cq, turned)
		}
		return g.Op("cat", []op.Value{orthogonalGrad(g, q, square, turned, g.Narrow(cr, -1, 0, m)), g.Op("matmul", q, beyond)}, -1)
	})
}

// orthogonalGrad returns (cq + Q·(S + Sᴴ))·R⁻ᴴ, where S is the upper triangle of
// cr·Rᴴ − Qᴴ·cq, its diagonal halved.
func orthogonalGrad(g *op.Grad, q, r, cq, cr op.Value) op.Value {
	var p op.Value
	if cr != nil {
		p = g.Op("matmul", cr, adjoint(g, r))
	}
	if cq != nil {
		turn := g.Op("matmul", adjoint(g, q), cq)
		if p == nil {
			p = g.Neg(turn)
		} else {
			p = g.Sub(p, turn)
		}
	}
	half := g.Mul(g.Add(g.Op("triu", p), g.Op("triu", p, 1)), 0.5)
	out := g.Op("matmul", q, g.Add(half, adjoint(g, half)))
	if cq != nil {
		out = g.Add(cq, out)
	}
	return g.Op("linalg_solve_triangular", adjoint(g, r), out, op.Kw("upper", false), op.Kw("left", false))
}

func inferSVD(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.UpperA)
	m, n := sizeOf(v, 2), sizeOf(v, 1)
	k, d := min(m, n), v.DType()
	return slices.Concat(one(d, append(batchOf(v), m, k), nil), one(d.Real(), append(batchOf(v), k), nil), one(d, append(batchOf(v), n, k), nil)), nil
}

// notFinite is the error for matrices that iterations cannot decompose.
var notFinite = &op.Error{Class: "_LinAlgError", Msg: "the algorithm does not converge, for the matrices hold numbers that are not finite"}

// decomposed calls f with the singular value decomposition of each matrix.
func decomposed[T kernel.Field](t *tensor.Tensor, d tensor.DType, f func(i int, svd *kernel.SVD[T])) error {
	if !kernel.Finite(contiguousData[T](t.Convert(d))) {
		return notFinite
	}
	eachMatrix(t, d, func(i int, a []T) { f(i, kernel.Decompose(sizeOf(t, 2), sizeOf(t, 1), a)) })
	return nil
}

// svdRun writes U, S and V, or S alone.
func svdRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		x := c.Tensor(arg.UpperA)
		m, n := sizeOf(x, 2), sizeOf(x, 1)
		k, batch := min(m, n), batchOf(x)
		values := tensor.New(tensor.F64, append(slices.Clone(batch), k)...)
		u, v := tensor.New(d, append(slices.Clone(batch), k, m)...), tensor.New(d, append(slices.Clone(batch), k, n)...)
		err := decomposed(x, d, func(i int, svd *kernel.SVD[T]) {
			copy(tensor.Data[float64](values)[i*k:], svd.S)
			copy(tensor.Data[T](u)[i*k*m:], svd.U)
			copy(tensor.Data[T](v)[i*k*n:], svd.V)
		})
		if len(c.Out) == 1 {
			c.Out[0].CopyFrom(values)
			return err
		}
		c.Out[0].CopyFrom(u.Transpose(u.Dim()-2, u.Dim()-1))
		c.Out[1].CopyFrom(values)
		c.Out[2].CopyFrom(v.Transpose(v.Dim()-2, v.Dim()-1))
		return err
	}
}

// asRow and asColumn make matrices of vectors.
func asRow(g *op.Grad, v op.Value) op.Value    { return g.Op("unsqueeze", v, -2) }
func asColumn(g *op.Grad, v op.Value) op.Value { return g.Op("unsqueeze", v, -1) }

// identities returns the identity matrices of the size of the vectors v.
func identities(g *op.Grad, v op.Value) op.Value { return g.Op("diag_embed", g.OnesLike(v)) }

// svdGrad follows Townsend, "Differentiating the singular value decomposition" (2016).
func svdGrad(g *op.Grad) op.Value {
	u, s, v := g.Out[0], g.Out[1], g.Out[2]
	row, column, one := asRow(g, s), asColumn(g, s), identities(g, s)
	apart := g.Add(g.Mul(g.Sub(row, column), g.Add(row, column)), one)
	inner := zeros(g, one)
	if cot := g.Cot[1]; cot != nil {
		inner = g.Op("diag_embed", cot)
	}
	side := func(x, cot op.Value) (turn, outside op.Value) {
		p := g.Op("matmul", adjoint(g, x), cot)
		return g.Sub(p, adjoint(g, p)), g.Div(g.Sub(cot, g.Op("matmul", x, p)), row)
	}
	cu, cv := g.Cot[0], g.Cot[2]
	if sizeOf(u, 2) < sizeOf(v, 2) {
		cv, cu = jointPhase(g, v, u, cv, cu)
	} else {
		cu, cv = jointPhase(g, u, v, cu, cv)
	}
	var left, right op.Value
	if cu != nil {
		turn, outside := side(u, cu)
		inner, left = g.Add(inner, g.Mul(g.Div(turn, apart), row)), outside
		if u.DType().IsComplex() {
			inner = g.Add(inner, g.Div(g.Mul(turn, one), g.Mul(column, 2.0)))
		}
	}
	if cv != nil {
		turn, outside := side(v, cv)
		inner, right = g.Add(inner, g.Mul(g.Div(turn, apart), column)), outside
	}
	out := g.Op("matmul", u, g.Op("matmul", g.Cast(inner, u.DType()), adjoint(g, v)))
	if left != nil && sizeOf(u, 2) > sizeOf(u, 1) {
		out = g.Add(out, g.Op("matmul", left, adjoint(g, v)))
	}
	if right != nil && sizeOf(v, 2) > sizeOf(v, 1) {
		out = g.Add(out, g.Op("matmul", u, adjoint(g, right)))
	}
	return out
}

// jointPhase returns cotangents of complex u and v of which nothing turns their
// columns by a common phase: that of v's largest elements, which stay real, is
// taken away. The square one of the two settles the phase.
func jointPhase(g *op.Grad, u, v, cu, cv op.Value) (op.Value, op.Value) {
	if !v.DType().IsComplex() || cu == nil && cv == nil {
		return cu, cv
	}
	turn := func(x, cot op.Value) op.Value {
		p := sumOver(g, g.Mul(conj(g, x), cot), -2)
		return g.Mul(g.Sub(p, conj(g, p)), 0.5)
	}
	var sum op.Value
	switch {
	case cu == nil:
		sum = turn(v, cv)
	case cv == nil:
		sum, cv = turn(u, cu), zeros(g, v)
	default:
		sum = g.Add(turn(u, cu), turn(v, cv))
	}
	rows := sizeOf(v, 2)
	largest := g.Op("argmax", g.Op("abs", v), -2, true)
	at := g.Cast(g.Op("eq", g.Reshape(g.Arange(rows), []int{rows, 1}), largest), v.DType())
	return cu, g.Sub(cv, g.Mul(at, g.Div(sum, sumOver(g, g.Mul(at, v), -2))))
}

// eigenRun writes eigenvalues, and eigenvectors if they are results.
func eigenRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		x := c.Tensor(arg.Input)
		if !kernel.Finite(contiguousData[T](x.Convert(d))) {
			return notFinite
		}
		n := sizeOf(x, 1)
		values, vectors := tensor.New(tensor.F64, c.Out[0].Shape()...), tensor.New(d, x.Shape()...)
		upper := strings.EqualFold(c.Str(arg.UPLO), "U")
		eachMatrix(x, d, func(i int, a []T) {
			kernel.Hermitian(n, a, upper)
			l, v := kernel.HermitianEigen(n, a)
			copy(tensor.Data[float64](values)[i*n:], l)
			copy(tensor.Data[T](vectors)[i*n*n:], v)
		})
		c.Out[0].CopyFrom(values)
		if len(c.Out) > 1 {
			c.Out[1].CopyFrom(vectors.Transpose(vectors.Dim()-2, vectors.Dim()-1))
		}
		return nil
	}
}

func eigenGrad(g *op.Grad) op.Value {
	l, v := g.Out[0], g.Out[1]
	one := identities(g, l)
	inner := zeros(g, one)
	if cot := g.Cot[0]; cot != nil {
		inner = g.Op("diag_embed", cot)
	}
	if g.Cot[1] != nil {
		_, cot := jointPhase(g, nil, v, nil, g.Cot[1])
		p := g.Op("matmul", adjoint(g, v), cot)
		turn := g.Mul(g.Sub(p, adjoint(g, p)), 0.5)
		turn = g.Sub(turn, g.Mul(turn, one))
		inner = g.Add(inner, g.Div(turn, g.Add(g.Sub(asRow(g, l), asColumn(g, l)), one)))
	}
	return g.Op("matmul", v, g.Op("matmul", g.Cast(inner, v.DType()), adjoint(g, v)))
}

// fullRank draws matrices whose singular values are apart from 0 and from each other.
func fullRank(s *op.Sampler) *tensor.Tensor {
	m, n := int(s.Int(1, 5)), int(s.Int(1, 5))
	t := s.Tensor(-0.25, 0.25, append(s.Shape(0, 1), m, n)...)
	for i := range t.Len() {
		if row, column := i/n%m, i%n; row == column {
			t.Set(i, t.At(i)+complex(float64(1-2*s.Index(2))*float64(2+row), 0))
		}
	}
	return t
}

// symmetric draws symmetric matrices whose eigenvalues are apart.
func symmetric(s *op.Sampler) *tensor.Tensor {
	n := int(s.Int(1, 5))
	t := s.Tensor(-0.25, 0.25, append(s.Shape(0, 1), n, n)...)
	for i := range t.Len() {
		switch row, column := i/n%n, i%n; {
		case row == column:
			t.Set(i, complex(t.Float(i)+float64(1-2*s.Index(2))*float64(1+row), 0))
		case row > column:
			t.Set(i, cmplx.Conj(t.At(i-row*n-column+column*n+row)))
		}
	}
	return t
}
