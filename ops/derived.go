package ops

import (
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

const pairsRows = "it pairs every row with every other, along their whole length"

// derivedOps are written in other operators.
var derivedOps = slices.Concat(
	trapezoids("trapezoid", "Scalar dx=1"), trapezoids("trapz", "float dx=1"), trapezoids("cumulative_trapezoid", "Scalar dx=1"),
	[]*op.Def{
		composed(&op.Def{
			Sig:           "dist(Tensor input, Tensor other, Scalar p=2) -> Tensor",
			Names:         both("dist"),
			Doc:           "Norm of order p of the difference: ‖input − other‖ₚ.",
			NotSplittable: dependsOnAll,
			Reject:        checkDist,
			Sample:        sampleDist,
			Tol:           accumulating(func(a op.Args) int { return tensor.NumElements(a.Value(arg.Input).Shape()) }, "a sum of Terms powers and its root"),
		}, func(b op.Builder, a op.Args) op.Value {
			return b.Op("norm.reduce", b.Sub(a.Value(arg.Input), a.Value(arg.Other)), a.Scalar(arg.PScalar).Float())
		}),
		{
			Sig:     "diagflat(Tensor input, int offset=0) -> Tensor",
			Names:   both("diagflat"),
			Doc:     "A matrix with the elements of input, in row-major order, on a diagonal.",
			Compose: composeDiagflat,
			Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 2)...), s.Index(5) - 2} },
			Tol:     exactTol("copies its input"),
		},
		composed(&op.Def{
			Sig:    "addr(Tensor input, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
			Names:  both("addr"),
			Doc:    "All products of two vectors added to the input: out[i, j] = beta·input[i, j] + alpha·vec1[i]·vec2[j]. With beta 0 the input is ignored.",
			Reject: firstError(dimensions(arg.Vec1, 1, arg.Vec2, 1), checkAddr),
			Sample: sampleAddr,
			Tol:    accumulating(func(op.Args) int { return 2 }, "each element is a product and a summand"),
		}, composeAddr),
		{
			Sig:     "positive(Tensor input) -> Tensor",
			Names:   append(both("positive"), "operator.pos"),
			Doc:     "The input itself.",
			Reject:  checkPositive,
			Compose: func(b op.Builder, a op.Args) []op.Value { return vals(a.Value(arg.Input)) },
			Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 4)...)} },
			Tol:     exactTol("its input"),
		},
		{
			Sig:     "linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
			Names:   []string{"torch.linalg.diagonal"},
			Doc:     "A view of the diagonals of the matrices over two dimensions.",
			Compose: composeLinalgDiagonal,
			Sample:  sampleLinalgDiagonal,
			Tol:     exactTol("a view of its input"),
		},
		composed(&op.Def{
			Sig:    "vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
			Names:  []string{"torch.linalg.vecdot"},
			Doc:    "Sums of the products of vectors along dim, the first conjugated: Σ conj(x)·y.",
			Reject: checkVecdot,
			Sample: sampleVecdot,
			Tol:    accumulating(func(a op.Args) int { return tensor.NumElements(a.Value(arg.X).Shape()) }, "sums of Terms products"),
		}, func(b op.Builder, a op.Args) op.Value {
			return b.Op("sum", b.Mul(conjugate(b, a.Value(arg.X)), a.Value(arg.Y)), []int{a.Int(arg.Dim)})
		}),
		{
			Sig:     "sum_to_size(Tensor input, int[] size) -> Tensor",
			Names:   []string{"Tensor.sum_to_size"},
			Doc:     "Sums over the dimensions along which a tensor of the size would be repeated to become input.",
			SBP:     linear(arg.Input),
			Reject:  checkSumToSize,
			Compose: composeSumToSize,
			Sample:  sampleSumToSize,
			Tol:     accumulating(func(a op.Args) int { return tensor.NumElements(a.Value(arg.Input).Shape()) }, "sums of Terms elements"),
		},
		composed(&op.Def{
			Sig:           "pdist(Tensor input, float p=2) -> Tensor",
			Names:         []string{"torch.pdist", "torch.nn.functional.pdist"},
			Doc:           "Distances of order p between all pairs of rows, row 0 with the later ones first.",
			NotSplittable: pairsRows,
			Reject:        checkPdist,
			Sample:        func(s *op.Sampler) []any { return []any{s.Distinct(s.Dims(2)...), []float64{1, 1.5, 2, 3}[s.Index(4)]} },
			Tol:           accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) }, "a sum of Terms powers and its root"),
		}, func(b op.Builder, a op.Args) op.Value {
			x := a.Value(arg.Input)
			n := x.Shape()[0]
			pairs := b.Op("triu_indices", n, n, 1)
			row := func(i int) op.Value { return b.Op("index_select", x, 0, b.Op("select", pairs, 0, i)) }
			return distance(b, b.Sub(row(0), row(1)), a.Float(arg.P))
		}),
		stepwise(&op.Def{
			Sig:           "cov(Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
			Names:         both("cov"),
			Doc:           "Covariances of the rows, each a variable: (x − mean)·(x − mean)ᴴ/(n − correction). Weights are not implemented.",
			NotSplittable: pairsRows,
			Reject:        checkCov,
			Sample:        sampleCov,
			Tol:           accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) }, "sums of Terms products of differences from a mean"),
		}, covariance),
		stepwise(&op.Def{
			Sig:           "corrcoef(Tensor input) -> Tensor",
			Names:         both("corrcoef"),
			Doc:           "Correlations of the rows, each a variable: covariances divided by both standard deviations, within [-1, 1].",
			NotSplittable: pairsRows,
			Reject:        checkCov,
			Sample:        func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Index(4)+1, s.Index(4)+3)} },
			Tol:           accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) }, "sums of Terms products of differences from a mean, and a quotient"),
		}, correlation),
	},
)

func sampleLinalgDiagonal(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, s.Shape(2, 4)...), op.Kw("offset", s.Index(3)-1)}
}

func checkVecdot(a op.Args) error {
	x, y := a.Value(arg.X), a.Value(arg.Y)
	if d := x.DType(); !d.IsDifferentiable() || d != y.DType() {
		return op.RuntimeError("arguments 'x' and 'y' must have the same floating point or complex dtype, not %s and %s", d, y.DType())
	}
	if m, n := x.Shape(), y.Shape(); len(m) == 1 && len(n) == 1 && m[0] != n[0] {
		return op.RuntimeError("two vectors 'x' and 'y' must have the same size, not %d and %d", m[0], n[0])
	}
	return nil
}

func sampleVecdot(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...), op.Kw("dim", s.Index(len(shape)))}
}

func checkSumToSize(a op.Args) error {
	if x := a.Value(arg.Input).Shape(); !broadcastsTo(a.Ints(arg.Size), x) {
		return op.RuntimeError("argument 'size' %v does not expand to input's shape %s", a.Ints(arg.Size), tensor.ShapeString(x))
	}
	return nil
}

func composeSumToSize(b op.Builder, a op.Args) []op.Value {
	if len(a.Ints(arg.Size)) == 0 {
		return vals(b.Op("sum", a.Value(arg.Input)))
	}
	return vals(b.SumTo(a.Value(arg.Input), a.Ints(arg.Size)))
}

func sampleSumToSize(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 4)...)
	return []any{x, partOf(s, x.Shape())}
}

func checkPdist(a op.Args) error {
	x := a.Value(arg.Input)
	switch {
	case len(x.Shape()) != 2:
		return op.RuntimeError("argument 'input' must have 2 dimensions, but has %d", len(x.Shape()))
	case !x.DType().IsFloat():
		return op.RuntimeError("argument 'input' must have a floating point dtype, not %s", x.DType())
	case !(a.Float(arg.P) >= 0):
		return op.RuntimeError("argument 'p' must not be negative, but is %v", a.Float(arg.P))
	}
	return nil
}

func sampleCov(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, append(s.Shape(0, 1), s.Index(4)+2)...), op.Kw("correction", s.Index(2))}
}

func checkDist(a op.Args) error {
	d, p := a.Promoted(arg.Input, arg.Other), a.Scalar(arg.PScalar).DType()
	if !d.IsDifferentiable() || p.IsComplex() {
		return op.RuntimeError("arguments 'input' and 'other' must have a floating point or complex common dtype, not %s, and 'p' must be real, not %s", d, p)
	}
	return nil
}

func sampleDist(s *op.Sampler) []any {
	pair := s.Distinct(append([]int{2}, s.Shape(1, 3)...)...)
	return []any{pair.Select(0, 0), pair.Select(0, 1), []float64{1, 1.5, 2, 3}[s.Index(4)]}
}

func composeDiagflat(b op.Builder, a op.Args) []op.Value {
	return vals(b.Op("diag", b.Reshape(a.Value(arg.Input), []int{-1}), a.Int(arg.Offset)))
}

func sampleAddr(s *op.Sampler) []any {
	d := s.Dims(2)
	args := []any{s.Tensor(-2, 2, partOf(s, d)...), s.Tensor(-2, 2, d[0]), s.Tensor(-2, 2, d[1])}
	if s.Bool() && s.DType.IsDifferentiable() {
		args = append(args, op.Kw("beta", s.Float(-2, 2)), op.Kw("alpha", s.Float(-2, 2)))
	}
	return args
}

func checkPositive(a op.Args) error {
	if a.Value(arg.Input).DType() == tensor.Bool {
		return op.RuntimeError("the `+` operator on a bool tensor is not supported: argument 'input'")
	}
	return nil
}

func composeLinalgDiagonal(b op.Builder, a op.Args) []op.Value {
	return vals(b.Op("diagonal", a.Value(arg.UpperA), a.Int(arg.Offset), a.Int(arg.Dim1), a.Int(arg.Dim2)))
}

// trapezoids are an integral by the trapezoidal rule with places, and with distances.
func trapezoids(id, dx string) []*op.Def {
	doc := "Integral of y along dim by the trapezoidal rule: Σ (yᵢ + yᵢ₊₁)/2·"
	if id == "cumulative_trapezoid" {
		doc = "Running integrals of y along dim by the trapezoidal rule: the partial sums of (yᵢ + yᵢ₊₁)/2·"
	}
	with := func(sig, doc string, sample func(s *op.Sampler, y *tensor.Tensor, dim int) []any) *op.Def {
		return composed(&op.Def{
			Saves: func(a op.Args) bool { return a.Sig.Takes(arg.X) },
			Sig:   sig, Names: []string{"torch." + id}, Doc: doc, Reject: checkTrapezoid,
			Sample: func(s *op.Sampler) []any {
				y := s.Tensor(-2, 2, s.Shape(1, 3)...)
				return sample(s, y, s.Index(y.Dim()))
			},
			Tol: op.Tol{
				Class: op.Accumulating, Terms: func(a op.Args) int { return 2 * tensor.NumElements(a.Value(arg.Y).Shape()) }, Fractional: true,
				Reason: "sums of Terms products",
			},
		}, trapezoid)
	}
	return []*op.Def{
		with(id+"(Tensor y, Tensor x, *, int dim=-1) -> Tensor", doc+"(xᵢ₊₁ − xᵢ).", func(s *op.Sampler, y *tensor.Tensor, dim int) []any {
			shape := y.Shape()
			if s.Bool() {
				shape = shape[dim : dim+1]
			}
			return []any{y, s.Tensor(-2, 2, shape...), op.Kw("dim", dim)}
		}),
		with(id+".dx(Tensor y, *, "+dx+", int dim=-1) -> Tensor", doc+"dx.", func(s *op.Sampler, y *tensor.Tensor, dim int) []any {
			return []any{y, op.Kw("dx", s.Float(-2, 2)), op.Kw("dim", dim)}
		}),
	}
}

func checkTrapezoid(a op.Args) error {
	y := a.Value(arg.Y)
	d, err := wrapDim(a.Int(arg.Dim), len(y.Shape()))
	switch {
	case isRunning(a) && y.DType() == tensor.Bool:
		return rejectTypes(arg.Y, tensor.Bool)(a)
	case err != nil:
		return err
	case len(y.Shape()) == 0:
		return op.IndexError("argument 'y' has no dimensions, but 'dim' is %d", a.Int(arg.Dim))
	}
	if !a.Sig.Takes(arg.X) {
		if dx := number(a, arg.Dx).DType(); dx == tensor.Bool || dx.IsComplex() {
			return op.RuntimeError("argument 'dx' must be a real number, not %s", dx)
		}
		if !isRunning(a) && y.Shape()[d] == 0 {
			return nil
		}
		return rejectTypes(arg.Y, tensor.Bool)(a)
	}
	x := a.Value(arg.X)
	if !isRunning(a) && y.Shape()[d] == 0 {
		return nil
	}
	if err := firstError(rejectTypes(arg.Y, tensor.Bool), rejectTypes(arg.X, tensor.Bool))(a); err != nil {
		return err
	}
	if len(x.Shape()) > len(y.Shape()) {
		return notUnderstood("trapezoid", "x of more dimensions than y")
	}
	if len(x.Shape()) == 1 && x.Shape()[0] != y.Shape()[d] {
		return op.RuntimeError("argument 'x' must have one element for each of the %d of y, but has %d", y.Shape()[d], x.Shape()[0])
	}
	return nil
}

func isRunning(a op.Args) bool { return strings.HasPrefix(a.Sig.Name, "cumulative_") }

func trapezoid(b op.Builder, a op.Args) op.Value {
	y, running := a.Value(arg.Y), isRunning(a)
	rank := len(y.Shape())
	d := must(wrapDim(a.Int(arg.Dim), rank))
	n := y.Shape()[d]
	part := func(v op.Value, from int) op.Value {
		size := v.Shape()[d]
		return b.Op("narrow", v, d, min(from, size), max(size-1, 0))
	}
	total := func(v op.Value) op.Value {
		if running {
			return b.Op("cumsum", v, d)
		}
		return b.Op("sum", v, []int{d})
	}
	if n == 0 && !running {
		return b.Op("zeros", slices.Delete(slices.Clone(y.Shape()), d, d+1), op.Kw("dtype", y.DType()))
	}
	if !a.Sig.Takes(arg.X) && !running {
		ends := b.Add(b.Op("select", y, d, 0), b.Op("select", y, d, n-1))
		return b.Mul(b.Sub(b.Op("sum", y, []int{d}), b.Mul(ends, 0.5)), number(a, arg.Dx).Float())
	}
	heights := b.Add(part(y, 0), part(y, 1))
	if !a.Sig.Takes(arg.X) {
		return b.Mul(total(heights), number(a, arg.Dx).Float()/2)
	}
	x := a.Value(arg.X)
	shape := slices.Repeat([]int{1}, rank)
	if len(x.Shape()) == 1 {
		shape[d] = n
	} else {
		copy(shape[rank-len(x.Shape()):], x.Shape())
	}
	x = b.Reshape(x, shape)
	return b.Div(total(b.Mul(b.Sub(part(x, 1), part(x, 0)), heights)), 2.0)
}

func checkAddr(a op.Args) error {
	x, v, w := a.Value(arg.Input), a.Value(arg.Vec1), a.Value(arg.Vec2)
	d := a.Promoted(arg.Input, arg.Vec1, arg.Vec2)
	if out := []int{v.Shape()[0], w.Shape()[0]}; !broadcastsTo(x.Shape(), out) {
		return op.RuntimeError("argument 'input' of shape %s does not expand to %s", tensor.ShapeString(x.Shape()), tensor.ShapeString(out))
	}
	for _, name := range []op.ScalarArg{arg.Beta, arg.Alpha} {
		switch s := a.Scalar(name); {
		case s.DType().IsComplex() && !d.IsComplex(), s.DType().IsFloat() && !d.IsDifferentiable():
			return op.RuntimeError("argument '%s' is %v, but the tensors have dtype %s", name, s.Any(), d)
		case d != tensor.Bool && s.DType() == tensor.Bool:
			return op.RuntimeError("argument '%s' must not be bool, for the tensors have dtype %s", name, d)
		}
	}
	return nil
}

func composeAddr(b op.Builder, a op.Args) op.Value {
	d := a.Promoted(arg.Input, arg.Vec1, arg.Vec2)
	scaled := func(v op.Value, name op.ScalarArg) op.Value {
		if s := a.Scalar(name); s.Complex() != 1 {
			return b.Mul(v, s)
		}
		return v
	}
	column := b.Reshape(b.Cast(a.Value(arg.Vec1), d), []int{-1, 1})
	out := scaled(b.Mul(column, b.Cast(a.Value(arg.Vec2), d)), arg.Alpha)
	if a.Scalar(arg.Beta).Complex() != 0 {
		out = b.Add(scaled(b.Cast(a.Value(arg.Input), d), arg.Beta), out)
	}
	return b.Cast(out, d)
}

func checkCov(a op.Args) error {
	x := a.Value(arg.Input)
	for _, name := range []op.TensorArg{arg.Fweights, arg.Aweights} {
		if a.Sig.Takes(name) && a.Has(name) {
			return notUnderstood("cov", string(name))
		}
	}
	switch {
	case len(x.Shape()) > 2:
		return op.RuntimeError("argument 'input' must have at most 2 dimensions, but has %d", len(x.Shape()))
	case x.DType() == tensor.Bool || x.DType() == tensor.F16:
		return op.RuntimeError("not implemented for argument 'input' of dtype %s", x.DType())
	}
	return nil
}

func covariance(b op.Builder, a op.Args) op.Value {
	x := a.Value(arg.Input)
	rows, n := 1, tensor.NumElements(x.Shape())
	if len(x.Shape()) == 2 {
		rows, n = x.Shape()[0], x.Shape()[1]
	}
	correction := 1
	if a.Sig.Takes(arg.Correction) {
		correction = a.Int(arg.CorrectionInt)
	}
	v := b.Cast(b.Reshape(x, []int{rows, n}), floatResult(x.DType()))
	v = b.Sub(v, b.Op("mean", v, []int{1}, true))
	products := b.Op("mm", v, conjugate(b, b.Op("transpose", v, 0, 1)))
	return b.Op("squeeze", b.Div(products, float64(max(n-correction, 0))))
}

func correlation(b op.Builder, a op.Args) op.Value {
	c := covariance(b, a)
	if len(c.Shape()) == 0 {
		return b.Div(c, c)
	}
	spread := b.Op("diagonal", c)
	if spread.DType().IsComplex() {
		spread = b.Op("real", spread)
	}
	spread = b.Op("sqrt", spread)
	n := c.Shape()[0]
	c = b.Div(b.Div(c, b.Reshape(spread, []int{n, 1})), b.Reshape(spread, []int{1, n}))
	if c.DType().IsComplex() {
		return b.Op("complex", b.Op("clamp", b.Op("real", c), -1, 1), b.Op("clamp", b.Op("imag", c), -1, 1))
	}
	return b.Op("clamp", c, -1, 1)
}
