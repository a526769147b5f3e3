package ops

import (
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var chainedProducts = []*op.Def{
	{
		Sig:     "kron(Tensor input, Tensor other) -> Tensor",
		Names:   both("kron"),
		Doc:     "Kronecker product: blocks of other, each multiplied by one element of input.",
		Compose: composeKron,
		Sample:  sampleKron,
		Tol:     accumulating(func(op.Args) int { return 1 }, "each element is one product"),
	},
	{
		Sig:     "matrix_power(Tensor input, int n) -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   append(both("matrix_power"), "torch.linalg.matrix_power"),
		Doc:     "Product of n copies of a square matrix, or of its inverse when n is negative.",
		Reject:  square(arg.Input),
		Compose: composePower,
		Sample:  func(s *op.Sampler) []any { return []any{wellConditioned(s), s.Int(-3, 6)} },
		Tol:     accumulating(matrixPowerTerms, "each factor sums one product per inner index"),
	},
	{
		Sig:     "matrix_power.identity(Tensor input) -> Tensor",
		Domains: asSampled(arg.Input),
		Doc:     "Identity matrices of the input's shape.",
		SBP:     planes(2, arg.Input),
		Infer:   inferMatrixPowerIdentity,
		Kernels: []op.Kernel{{Name: "any", Run: runMatrixPowerIdentity}},
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return zeros(g, g.Value(arg.Input)) }),
		Sample:  func(s *op.Sampler) []any { return []any{wellConditioned(s)} },
		Tol:     exactTol("ones and zeros"),
	},
	{
		Sig:     "multi_dot(Tensor[] tensors) -> Tensor",
		Names:   []string{"torch.linalg.multi_dot"},
		Doc:     "Product of matrices in the order of the fewest multiplications; the first and the last may be vectors.",
		SBP:     chainProduct(arg.Tensors),
		Reject:  checkChain,
		Compose: composeMultiDot,
		Sample:  func(s *op.Sampler) []any { return []any{sampleChain(s, 2)} },
		Tol:     accumulating(func(a op.Args) int { return chainTerms(a.Values(arg.Tensors)) }, "each product sums over its inner index"),
	},
	{
		Sig:      "chain_matmul(Tensor[] matrices) -> Tensor",
		Names:    []string{"torch.chain_matmul", "torch.functional.chain_matmul"},
		Variadic: true,
		Doc:      "Product of matrices in the order of the fewest multiplications.",
		SBP:      chainProduct(arg.Matrices),
		Reject:   checkChainMatmul,
		Compose:  composeChainMatmul,
		Sample:   func(s *op.Sampler) []any { return []any{sampleChain(s, 1)} },
		Tol:      accumulating(func(a op.Args) int { return chainTerms(a.Values(arg.Matrices)) }, "each product sums over its inner index"),
	},
	{
		Sig:     "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
		Names:   []string{"torch.nn.functional.bilinear", "torch.bilinear"},
		Doc:     "Bilinear form of the last dimensions: out[…, o] = Σᵢⱼ input1[…, i]·weight[o, i, j]·input2[…, j] + bias[o].",
		SBP:     anyOf(axes("input1 *i, input2 *j, weight oij, +bias o -> *o"), multilinear([]op.Handle{arg.Input1, arg.Input2, arg.Weight}, arg.Bias)),
		Reject:  checkBilinear,
		Compose: composeBilinear,
		Sample: func(s *op.Sampler) []any {
			d, batch := s.Dims(3), s.Shape(0, 2)
			args := []any{s.Tensor(-2, 2, append(slices.Clone(batch), d[1])...), s.Tensor(-2, 2, append(slices.Clone(batch), d[2])...), s.Tensor(-2, 2, d...)}
			if s.Bool() {
				args = append(args, s.Tensor(-2, 2, d[0]))
			}
			return args
		},
		Tol: accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Weight), 1)*sizeOf(a.Value(arg.Weight), 2) + 1 }, "each element sums one product per pair of features and the bias"),
	},
	crossProduct("cross(Tensor input, Tensor other, int? dim=None) -> Tensor", both("cross")),
	crossProduct("linalg_cross(Tensor input, Tensor other, *, int? dim=-1) -> Tensor", []string{"torch.linalg.cross"}),
}

func sampleKron(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, s.Shape(0, 3)...), s.Tensor(-2, 2, s.Shape(0, 3)...)}
}

func matrixPowerTerms(a op.Args) int {
	n := a.Int(arg.N)
	return sizeOf(a.Value(arg.Input), 1) * max(n, -n, 1)
}

func inferMatrixPowerIdentity(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
}

func runMatrixPowerIdentity(c *op.Run) error {
	out := c.Out[0]
	clear(out.Storage())
	for i, n := 0, sizeOf(out, 1); n > 0 && i < out.Len()/n; i++ {
		out.Set(i*n+i%n, 1)
	}
	return nil
}

func checkChainMatmul(a op.Args) error {
	for i, v := range a.Values(arg.Matrices) {
		if n := len(v.Shape()); n != 2 {
			return op.RuntimeError("element %d of matrices must have 2 dimensions, but has %d", i, n)
		}
	}
	if len(a.Values(arg.Matrices)) == 0 {
		return op.RuntimeError("matrices must have at least one element")
	}
	return nil
}

func composeChainMatmul(b op.Builder, a op.Args) []op.Value {
	vs := a.Values(arg.Matrices)
	if len(vs) == 1 {
		return vs
	}
	return []op.Value{b.Op("multi_dot", vs)}
}

var matrixFunctions = []*op.Def{
	inverseOp("inverse(Tensor input) -> Tensor", both("inverse"), arg.Input),
	inverseOp("linalg_inv(Tensor A) -> Tensor", []string{"torch.linalg.inv"}, arg.UpperA),
	{
		Sig:     "inverse.near(Tensor input) -> (Tensor det, Tensor inverse)",
		Domains: asSampled(arg.Input),
		Doc:     "Determinant and inverse of square matrices, in whose elimination the machine epsilon stands for a pivot of zero.",
		SBP:     planes(2, arg.Input),
		Reject:  firstError(square(arg.Input), floating(arg.Input)),
		Infer:   inferInverseNear,
		Kernels: factorKernels(arg.Input, inverseNearRun[float64](tensor.F64), inverseNearRun[complex128](tensor.C128)),
		Grad:    op.Gradient(inverseNearGrad),
		Sample:  func(s *op.Sampler) []any { return []any{wellConditioned(s)} },
		Tol:     matrixTol(arg.Input),
	},
	detOp("det(Tensor input) -> Tensor", both("det"), arg.Input),
	detOp("linalg_det(Tensor A) -> Tensor", []string{"torch.linalg.det"}, arg.UpperA),
	slogdetOp("slogdet(Tensor input) -> (Tensor sign, Tensor logabsdet)", both("slogdet"), arg.Input),
	slogdetOp("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", []string{"torch.linalg.slogdet"}, arg.UpperA),
	{
		Sig:     "logdet(Tensor input) -> Tensor",
		Domains: asSampled(arg.Input),
		Names:   both("logdet"),
		Doc:     "Logarithm of the determinant; NaN when that is negative, complex for complex matrices.",
		Reject:  firstError(square(arg.Input), floating(arg.Input)),
		Compose: composeLogdet,
		Sample:  sampleLogdet,
		Tol:     matrixTol(arg.Input),
	},
}

func inferInverseNear(a op.Args) ([]op.Meta, error) {
	v := a.Value(arg.Input)
	return append(one(v.DType(), batchOf(v), nil), op.Meta{DType: v.DType(), Shape: v.Shape()}), nil
}

func inverseNearGrad(g *op.Grad) op.Value {
	h := adjoint(g, g.Out[1])
	var d op.Value
	if g.Cot[0] != nil {
		d = g.Mul(asMatrices(g, g.Mul(g.Cot[0], conj(g, g.Out[0]))), h)
	}
	if g.Cot[1] == nil {
		return d
	}
	e := g.Op("matmul", h, g.Op("matmul", g.Cot[1], h))
	if d == nil {
		return g.Neg(e)
	}
	return g.Sub(d, e)
}

func composeLogdet(b op.Builder, a op.Args) []op.Value {
	out := b.All("slogdet", a.Value(arg.Input))
	if out[0].DType().IsComplex() {
		return []op.Value{b.Add(b.Op("log", out[0]), out[1])}
	}
	return []op.Value{b.Op("where", b.Op("eq", out[0], -1.0), math.NaN(), out[1])}
}

func sampleLogdet(s *op.Sampler) []any {
	x := wellConditioned(s)
	for i, n := 0, sizeOf(x, 1); i < x.Len()/n; i++ {
		x.Set(i*n+i%n, complex(math.Abs(x.Float(i*n+i%n)), 0))
	}
	return []any{x}
}

// square rejects a named tensor that is no batch of square matrices.
func square(name op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		s := a.Value(name).Shape()
		if len(s) < 2 || s[len(s)-1] != s[len(s)-2] {
			return op.RuntimeError("%s must be batches of square matrices, but has shape %s", name, tensor.ShapeString(s))
		}
		return nil
	}
}

// floating rejects dtypes for which PyTorch factorises no matrices.
func floating(name op.TensorArg) func(op.Args) error {
	return rejectTypes(name, slices.Concat(integralSet, halfTypes)...)
}

// wellConditioned draws square matrices with a dominant diagonal.
func wellConditioned(s *op.Sampler) *tensor.Tensor {
	n := int(s.Int(1, 6))
	t := s.Tensor(-0.5, 0.5, append(s.Shape(0, 1), n, n)...)
	for i := range t.Len() / n {
		at := i*n + i%n
		sign := 1.0
		if t.Float(at) < 0 {
			sign = -1
		}
		t.Set(at, t.At(at)+complex(sign*(1+float64(n)/2), 0))
	}
	return t
}

// matrixTol is the class of functions of a matrix by elimination.
func matrixTol(name op.TensorArg) op.Tol {
	return accumulating(func(a op.Args) int {
		n := sizeOf(a.Value(name), 1)
		return n * n
	}, "elimination sums one product per pivot, n times over")
}

func composeKron(b op.Builder, a op.Args) []op.Value {
	x, y := a.Value(arg.Input), a.Value(arg.Other)
	n := max(len(x.Shape()), len(y.Shape()))
	xs, ys, out := make([]int, 2*n), make([]int, 2*n), make([]int, n)
	for i := range n {
		nx, ny := sizeOf(x, n-i), sizeOf(y, n-i)
		xs[2*i], xs[2*i+1] = nx, 1
		ys[2*i], ys[2*i+1] = 1, ny
		out[i] = nx * ny
	}
	return []op.Value{b.Op("view", b.Mul(b.Reshape(x, xs), b.Reshape(y, ys)), out)}
}

func composePower(b op.Builder, a op.Args) []op.Value {
	x, n := a.Value(arg.Input), a.Int(arg.N)
	switch {
	case n == 0:
		return []op.Value{b.Op("matrix_power.identity", x)}
	case n == 1:
		return []op.Value{b.Op("clone", x, op.Kw("memory_format", tensor.Contiguous))}
	case n < 0:
		x = b.Op("inverse", x)
	}
	left := uint(max(n, -n))
	if left == 3 {
		return []op.Value{b.Op("matmul", b.Op("matmul", x, x), x)}
	}
	var out op.Value
	for {
		if left%2 == 1 && out == nil {
			out = x
		} else if left%2 == 1 {
			out = b.Op("matmul", out, x)
		}
		if left /= 2; left == 0 {
			return []op.Value{out}
		}
		x = b.Op("matmul", x, x)
	}
}

func checkChain(a op.Args) error {
	vs := a.Values(arg.Tensors)
	if len(vs) < 2 {
		return op.RuntimeError("tensors must have at least 2 elements, but has %d", len(vs))
	}
	for i, v := range vs {
		end := i == 0 || i == len(vs)-1
		if n := len(v.Shape()); n != 2 && (n != 1 || !end) {
			return op.RuntimeError("element %d of tensors must be a matrix, or a vector at an end, but has %d dimensions", i, n)
		}
		if v.DType() != vs[0].DType() {
			return op.RuntimeError("tensors must have one dtype, but element 0 has %s and element %d has %s", vs[0].DType(), i, v.DType())
		}
		if i > 0 && sizeOf(vs[i-1], 1) != columnShape(v.Shape())[0] {
			return op.RuntimeError("elements %d and %d of tensors cannot be multiplied: their shapes are %s and %s", i-1, i, tensor.ShapeString(vs[i-1].Shape()), tensor.ShapeString(v.Shape()))
		}
	}
	return nil
}

func composeMultiDot(b op.Builder, a op.Args) []op.Value {
	vs := slices.Clone(a.Values(arg.Tensors))
	last := len(vs) - 1
	out := []int{}
	if len(vs[0].Shape()) == 2 {
		out = append(out, vs[0].Shape()[0])
	}
	if len(vs[last].Shape()) == 2 {
		out = append(out, vs[last].Shape()[1])
	}
	vs[0] = b.Reshape(vs[0], rowShape(vs[0].Shape()))
	vs[last] = b.Reshape(vs[last], columnShape(vs[last].Shape()))
	split := cheapestSplits(vs)
	var multiply func(i, j int) op.Value
	multiply = func(i, j int) op.Value {
		if i == j {
			return vs[i]
		}
		k := split[i][j]
		return b.Op("mm", multiply(i, k), multiply(k+1, j))
	}
	return []op.Value{b.Reshape(multiply(0, last), out)}
}

// cheapestSplits returns for every range i…j of a chain the k after which to
// split it, so that the fewest products are computed: as PyTorch the first of
// equals, of three matrices the second.
func cheapestSplits(vs []op.Value) [][]int {
	n := len(vs)
	size := []int{vs[0].Shape()[0]}
	cost, split := make([][]int, n), make([][]int, n)
	for i, v := range vs {
		size = append(size, v.Shape()[1])
		cost[i], split[i] = make([]int, n), make([]int, n)
	}
	for length := 1; length < n; length++ {
		for i := range n - length {
			j := i + length
			cost[i][j] = math.MaxInt
			for k := i; k < j; k++ {
				if c := cost[i][k] + cost[k+1][j] + size[i]*size[k+1]*size[j+1]; c < cost[i][j] || n == 3 && c == cost[i][j] {
					cost[i][j], split[i][j] = c, k
				}
			}
		}
	}
	return split
}

func chainTerms(vs []op.Value) int {
	n := 1
	for _, v := range vs {
		n += sizeOf(v, 1)
	}
	return n
}

func sampleChain(s *op.Sampler, least int64) []any {
	size := s.Dims(int(s.Int(least, 5)) + 1)
	var vs []any
	for i := range len(size) - 1 {
		vs = append(vs, s.Tensor(-2, 2, size[i], size[i+1]))
	}
	return vs
}

func checkBilinear(a op.Args) error {
	for _, name := range []op.TensorArg{arg.Input2, arg.Weight, arg.Bias} {
		if d := a.Value(arg.Input1).DType(); a.Has(name) && a.Value(name).DType() != d {
			return op.RuntimeError("%s must have the dtype %s of input1, but has %s", name, d, a.Value(name).DType())
		}
	}
	x, y, w := a.Value(arg.Input1).Shape(), a.Value(arg.Input2).Shape(), a.Value(arg.Weight).Shape()
	if len(x) == 0 && len(y) == 0 {
		return op.IndexError("input1 and input2 must have a dimension of features, but have none")
	}
	if len(x) != len(y) {
		return op.RuntimeError("input1 and input2 must have the same number of dimensions, but have %d and %d", len(x), len(y))
	}
	last := len(x) - 1
	if !slices.Equal(x[:last], y[:last]) {
		return op.RuntimeError("input1 and input2 must have the same batch dimensions, but have shapes %s and %s", tensor.ShapeString(x), tensor.ShapeString(y))
	}
	if len(w) < 2 || len(w) == 2 && w[1] == x[last] {
		return op.IndexError("weight must have 3 dimensions, but has %d", len(w))
	}
	if len(w) != 3 || w[1] != x[last] || w[2] != y[last] {
		return op.RuntimeError("weight of shape %s does not fit input1 with %d and input2 with %d features", tensor.ShapeString(w), x[last], y[last])
	}
	if a.Has(arg.Bias) && len(a.Value(arg.Bias).Shape()) == 0 {
		return op.IndexError("bias must have the shape %s, but has no dimensions", tensor.ShapeString(w[:1]))
	}
	if a.Has(arg.Bias) && !slices.Equal(a.Value(arg.Bias).Shape(), w[:1]) {
		return op.RuntimeError("bias must have the shape %s, but has %s", tensor.ShapeString(w[:1]), tensor.ShapeString(a.Value(arg.Bias).Shape()))
	}
	return nil
}

func composeBilinear(b op.Builder, a op.Args) []op.Value {
	x, y, w := a.Value(arg.Input1), a.Value(arg.Input2), a.Value(arg.Weight)
	o, i, j := w.Shape()[0], w.Shape()[1], w.Shape()[2]
	batch := x.Shape()[:len(x.Shape())-1]
	n := tensor.NumElements(batch)
	left := sumProducts(b, b.Reshape(x, []int{n, 1, i, 1}), b.Op("unsqueeze", w, 0), []int{2})
	out := sumProducts(b, left, b.Reshape(y, []int{n, 1, 1, j}), []int{3})
	out = b.Reshape(out, append(slices.Clone(batch), o))
	if a.Has(arg.Bias) {
		out = b.Add(out, a.Value(arg.Bias))
	}
	return []op.Value{out}
}

func crossProduct(sig string, names []string) *op.Def {
	return &op.Def{
		Sig:     sig,
		Names:   names,
		Doc:     "Cross product along a dimension of size 3: outᵢ = inputⱼ·otherₖ − inputₖ·otherⱼ for (i, j, k) cyclic; without dim along the first such dimension.",
		Reject:  firstError(checkCross, rejectTypes(arg.Input, tensor.Bool, tensor.F16)),
		Compose: composeCross,
		Sample:  sampleCrossProduct,
		Tol:     accumulating(func(op.Args) int { return 2 }, "each element is a difference of two products"),
	}
}

func sampleCrossProduct(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	dim := s.Index(len(shape))
	shape[dim] = 3
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...), op.Kw("dim", dim)}
}

func checkCross(a op.Args) error {
	x, y := a.Value(arg.Input), a.Value(arg.Other)
	if len(x.Shape()) != len(y.Shape()) {
		return op.RuntimeError("input and other must have the same number of dimensions, but have %d and %d", len(x.Shape()), len(y.Shape()))
	}
	if len(x.Shape()) == 0 && a.Has(arg.Dim) {
		return op.IndexError("dim is %d, but input and other have no dimensions", a.Int(arg.Dim))
	}
	dim, err := crossDim(a)
	if err != nil {
		return err
	}
	if x.Shape()[dim] != 3 || y.Shape()[dim] != 3 {
		return op.RuntimeError("input and other must have size 3 along dim %d, but have shapes %s and %s", dim, tensor.ShapeString(x.Shape()), tensor.ShapeString(y.Shape()))
	}
	if x.DType() != y.DType() {
		return op.RuntimeError("input and other must have the same dtype, but have %s and %s", x.DType(), y.DType())
	}
	return nil
}

func crossDim(a op.Args) (int, error) {
	s := a.Value(arg.Input).Shape()
	if a.Has(arg.Dim) {
		return wrapDim(a.Int(arg.Dim), len(s))
	}
	if d := slices.Index(s, 3); d >= 0 {
		return d, nil
	}
	return 0, op.RuntimeError("input has no dimension of size 3: its shape is %s", tensor.ShapeString(s))
}

func composeCross(b op.Builder, a op.Args) []op.Value {
	dim, err := crossDim(a)
	if err != nil {
		op.Fail(err)
	}
	d := a.Value(arg.Input).DType()
	inner := d
	if d == tensor.F32 {
		inner = tensor.F64 // a product may overflow whose difference from the other does not
	}
	part := func(name op.TensorArg, i int) op.Value {
		return b.Cast(b.Op("narrow", a.Value(name), dim, i%3, 1), inner)
	}
	parts := make([]op.Value, 3)
	for i := range parts {
		parts[i] = b.Cast(b.Sub(b.Mul(part(arg.Input, i+1), part(arg.Other, i+2)), b.Mul(part(arg.Input, i+2), part(arg.Other, i+1))), d)
	}
	return []op.Value{b.Op("contiguous", b.Op("cat", parts, dim))}
}

// factorKernels are the kernels of functions by elimination, which computes
// in float64 or complex128.
func factorKernels(name op.TensorArg, reals func(c *op.Run) error, complexes func(c *op.Run) error) []op.Kernel {
	ks := []op.Kernel{{Name: "real", When: op.DTypeIn(name, tensor.F32, tensor.F64), Run: reals}}
	if complexes != nil {
		ks = append(ks, op.Kernel{Name: "complex", When: op.DTypeIn(name, complexTypes...), Run: complexes})
	}
	return ks
}

// factors calls f with the elimination of each matrix of the named tensor.
func factors[T kernel.Field](c *op.Run, name op.TensorArg, d tensor.DType, f func(i int, lu *kernel.LU[T])) {
	x := c.Tensor(name)
	n := sizeOf(x, 1)
	data := contiguousData[T](x.Convert(d).Clone())
	for i := range tensor.NumElements(x.Shape()[:x.Dim()-2]) {
		f(i, kernel.Eliminate(n, data[i*n*n:][:n*n]))
	}
}

// columnMajor returns the strides of contiguous matrices stored by columns.
func columnMajor(shape []int) []int {
	s := tensor.ContiguousStrides(shape)
	n := len(s)
	s[n-2], s[n-1] = 1, max(shape[n-2], 1)
	return s
}

func inverseOp(sig string, names []string, arg op.TensorArg) *op.Def {
	return &op.Def{
		Sig:     sig,
		Domains: asSampled(arg),
		Names:   names,
		Doc:     "Inverse of square matrices. A singular matrix is rejected.",
		SBP:     planes(2, arg),
		Reject:  firstError(square(arg), floating(arg)),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg)
			return one(v.DType(), v.Shape(), columnMajor(v.Shape())), nil
		},
		Kernels: factorKernels(arg, inverseRun[float64](arg, tensor.F64), inverseRun[complex128](arg, tensor.C128)),
		Grad:    op.GradientOf(arg, inverseOpGrad),
		Sample:  func(s *op.Sampler) []any { return []any{wellConditioned(s)} },
		Tol:     matrixTol(arg),
	}
}

func inverseOpGrad(g *op.Grad) op.Value {
	h := adjoint(g, g.Out[0])
	return g.Neg(g.Op("matmul", h, g.Op("matmul", g.G(), h)))
}

func inverseRun[T kernel.Field](arg op.TensorArg, d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		work := tensor.New(d, c.Out[0].Shape()...)
		data := tensor.Data[T](work)
		var err error
		factors(c, arg, d, func(i int, lu *kernel.LU[T]) {
			if k := lu.Zero(); k >= 0 {
				err = &op.Error{Class: "_LinAlgError", Msg: "argument " + string(arg) + " holds a singular matrix"}
				return
			}
			lu.Inverse(data[i*lu.N*lu.N:][:lu.N*lu.N])
		})
		if err == nil {
			c.Out[0].CopyFrom(work)
		}
		return err
	}
}

func inverseNearRun[T kernel.Field](d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		det, inverse := tensor.New(d, c.Out[0].Shape()...), tensor.New(d, c.Out[1].Shape()...)
		dets, data := tensor.Data[T](det), tensor.Data[T](inverse)
		eps := T(0x1p-52)
		if slices.Contains([]tensor.DType{tensor.F32, tensor.C64}, c.Out[0].DType()) {
			eps = 0x1p-23
		}
		factors(c, arg.Input, d, func(i int, lu *kernel.LU[T]) {
			lu.Replace(eps)
			dets[i] = lu.Det()
			lu.Inverse(data[i*lu.N*lu.N:][:lu.N*lu.N])
		})
		c.Out[0].CopyFrom(det)
		c.Out[1].CopyFrom(inverse)
		return nil
	}
}

func detOp(sig string, names []string, arg op.TensorArg) *op.Def {
	return &op.Def{
		Sig:     sig,
		Domains: asSampled(arg),
		Names:   names,
		Doc:     "Determinant of square matrices.",
		SBP:     planes(2, arg),
		Reject:  firstError(square(arg), floating(arg)),
		Infer:   func(a op.Args) ([]op.Meta, error) { return one(a.Value(arg).DType(), batchOf(a.Value(arg)), nil), nil },
		Kernels: factorKernels(arg, detRun[float64](arg, tensor.F64), detRun[complex128](arg, tensor.C128)),
		Grad: op.GradientOf(arg, func(g *op.Grad) op.Value {
			near := g.All("inverse.near", g.Value(arg))
			return g.Mul(asMatrices(g, g.Mul(g.G(), conj(g, near[0]))), adjoint(g, near[1]))
		}),
		Sample: func(s *op.Sampler) []any { return []any{wellConditioned(s)} },
		Tol:    matrixTol(arg),
	}
}

func batchOf(v op.Value) []int { return slices.Clone(v.Shape()[:len(v.Shape())-2]) }

// asMatrices appends two dimensions of size 1.
func asMatrices(g *op.Grad, v op.Value) op.Value {
	return g.Op("unsqueeze", g.Op("unsqueeze", v, -1), -1)
}

func detRun[T kernel.Field](arg op.TensorArg, d tensor.DType) func(c *op.Run) error {
	return func(c *op.Run) error {
		work := tensor.New(d, c.Out[0].Shape()...)
		data := tensor.Data[T](work)
		factors(c, arg, d, func(i int, lu *kernel.LU[T]) { data[i] = lu.Det() })
		c.Out[0].CopyFrom(work)
		return nil
	}
}

func slogdetOp(sig string, names []string, arg op.TensorArg) *op.Def {
	return &op.Def{
		Sig:     sig,
		Domains: asSampled(arg),
		Names:   names,
		Doc:     "Sign of the determinant, of complex matrices its direction, and the logarithm of its absolute value, which is real.",
		SBP:     planes(2, arg),
		Reject:  firstError(square(arg), floating(arg)),
		Infer: func(a op.Args) ([]op.Meta, error) {
			v := a.Value(arg)
			return append(one(v.DType(), batchOf(v), nil), one(v.DType().Real(), batchOf(v), nil)...), nil
		},
		Kernels: factorKernels(arg, slogdetRun(arg), complexSlogdetRun(arg)),
		Grad: func(g *op.Grad) {
			direction := g.Cot[0] != nil && g.Out[0].DType().IsComplex()
			if !direction && g.Cot[1] == nil {
				return
			}
			g.To(arg, func() op.Value {
				cot := g.Cot[1]
				switch {
				case direction && cot == nil:
					cot = turning(g, g.Cot[0], g.Out[0])
				case direction:
					cot = g.Add(turning(g, g.Cot[0], g.Out[0]), cot)
				}
				return g.Mul(asMatrices(g, cot), adjoint(g, g.Op("inverse", g.Value(arg))))
			})
		},
		Sample: func(s *op.Sampler) []any { return []any{wellConditioned(s)} },
		Tol:    matrixTol(arg),
	}
}

// turning returns -i·imag(conj(cot)·sign), by which a cotangent of the sign, a
// number on the unit circle, acts on the logarithm of the determinant.
func turning(g *op.Grad, cot, sign op.Value) op.Value {
	z := g.Mul(cot, conj(g, sign))
	return g.Mul(g.Sub(z, conj(g, z)), 0.5)
}

func complexSlogdetRun(arg op.TensorArg) func(c *op.Run) error {
	return func(c *op.Run) error {
		factors(c, arg, tensor.C128, func(i int, lu *kernel.LU[complex128]) {
			sign, log := lu.Sign, 0.0
			for k := range lu.N {
				size := cmplx.Abs(lu.Pivot(k))
				log += math.Log(size)
				if size == 0 {
					sign = 0
				} else {
					sign *= lu.Pivot(k) / complex(size, 0)
				}
			}
			c.Out[0].Set(i, sign)
			c.Out[1].Set(i, complex(log, 0))
		})
		return nil
	}
}

func slogdetRun(arg op.TensorArg) func(c *op.Run) error {
	return func(c *op.Run) error {
		factors(c, arg, tensor.F64, func(i int, lu *kernel.LU[float64]) {
			sign, log := lu.Sign, 0.0
			for k := range lu.N {
				p := lu.Pivot(k)
				log += math.Log(math.Abs(p))
				switch {
				case p < 0:
					sign = -sign
				case !(p > 0): // as torch.sign, 0 of NaN too
					sign = 0
				}
			}
			c.Out[0].Set(i, complex(sign, 0))
			c.Out[1].Set(i, complex(log, 0))
		})
		return nil
	}
}
