package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var linalgOps = slices.Concat(vectorProducts, addedProducts, chainedProducts, matrixFunctions, solveOps, triangularOps, decompositions, spectralOps)

var vectorProducts = []*op.Def{
	{
		Sig:     "mv(Tensor input, Tensor vec) -> Tensor",
		Names:   both("mv"),
		Doc:     "Product of a matrix and a vector: out[i] = Σₖ input[i, k]·vec[k].",
		Reject:  dimensions(arg.Input, 2, arg.Vec, 1),
		Compose: composeMv,
		Sample:  sampleMv,
		Tol:     innerTol(arg.Input),
	},
	{
		Sig:     "dot(Tensor input, Tensor tensor) -> Tensor",
		Names:   both("dot"),
		Doc:     "Sum of the products of two vectors: Σₖ inputₖ·tensorₖ.",
		Reject:  dimensions(arg.Input, 1, arg.Tensor, 1),
		Compose: composeDot,
		Sample:  sampleVectors,
		Tol:     innerTol(arg.Input),
	},
	{
		Sig:     "vdot(Tensor input, Tensor other) -> Tensor",
		Names:   both("vdot"),
		Doc:     "Sum of the products of a vector's conjugate and another vector: Σₖ conj(inputₖ)·otherₖ.",
		Reject:  dimensions(arg.Input, 1, arg.Other, 1),
		Compose: composeVdot,
		Sample:  sampleVectors,
		Tol:     innerTol(arg.Input),
	},
	{
		Sig:     "inner(Tensor input, Tensor other) -> Tensor",
		Names:   both("inner"),
		Doc:     "Products summed over the last dimension of both: out[…, …′] = Σₖ input[…, k]·other[…′, k]; a number multiplies.",
		Reject:  checkInner,
		Compose: composeInner,
		Sample:  sampleInner,
		Tol:     innerTol(arg.Input),
	},
	{
		Sig:     "outer(Tensor input, Tensor vec2) -> Tensor",
		Names:   both("outer", "ger"),
		Doc:     "All products of two vectors: out[i, j] = input[i]·vec2[j].",
		Reject:  dimensions(arg.Input, 1, arg.Vec2, 1),
		Compose: composeOuter,
		Sample:  sampleOuter,
		Tol:     accumulating(func(op.Args) int { return 1 }, "each element is one product"),
	},
	{
		Sig:     "tensordot(Tensor a, Tensor b, int dims=2) -> Tensor",
		Names:   []string{"torch.tensordot", "torch.functional.tensordot"},
		Doc:     "Products summed over the last dims dimensions of a and the first of b.",
		Reject:  checkTensordot,
		Compose: composeTensordot,
		Sample:  sampleTensordot,
		Tol:     contractedTol,
	},
	{
		Sig:     "tensordot.dims(Tensor a, Tensor b, Data dims) -> Tensor",
		Names:   []string{"torch.tensordot", "torch.functional.tensordot"},
		Doc:     "Products summed over the dimensions of a and of b that two lists of the same length name.",
		Compose: composeTensordot,
		Sample:  sampleTensordotLists,
		Tol:     contractedTol,
	},
}

func composeMv(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Op("matmul", a.Value(arg.Input), a.Value(arg.Vec))}
}

func sampleMv(s *op.Sampler) []any {
	d := s.Dims(2)
	return []any{s.Tensor(-2, 2, d[0], d[1]), s.Tensor(-2, 2, d[1])}
}

func composeDot(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Op("matmul", a.Value(arg.Input), a.Value(arg.Tensor))}
}

func composeVdot(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Op("matmul", conjugate(b, a.Value(arg.Input)), a.Value(arg.Other))}
}

func sampleInner(s *op.Sampler) []any {
	k := int(s.Int(1, 6))
	return []any{s.Tensor(-2, 2, append(s.Shape(0, 2), k)...), s.Tensor(-2, 2, append(s.Shape(0, 2), k)...)}
}

func composeOuter(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Mul(b.Reshape(a.Value(arg.Input), []int{-1, 1}), a.Value(arg.Vec2))}
}

func sampleOuter(s *op.Sampler) []any {
	d := s.Dims(2)
	return []any{s.Tensor(-2, 2, d[0]), s.Tensor(-2, 2, d[1])}
}

func checkTensordot(a op.Args) error {
	_, _, err := contractedDims(a)
	return err
}

var addedProducts = []*op.Def{
	addedProduct("addmm", arg.Mat1, arg.Mat2, 2, 2, "out = beta·input + alpha·(mat1 @ mat2)."),
	inPlace(op.InPlaceRules{Fit: fitUnconverted}, addedProduct("addmv", arg.Mat, arg.Vec, 2, 1, "out = beta·input + alpha·(mat @ vec).")),
	inPlace(op.InPlaceRules{Resizes: true}, addedProduct("addbmm", arg.Batch1, arg.Batch2, 3, 3, "out = beta·input + alpha·Σᵢ batch1[i] @ batch2[i].")),
	inPlace(op.InPlaceRules{Fit: fitUnconverted}, addedProduct("baddbmm", arg.Batch1, arg.Batch2, 3, 3, "out[i] = beta·input[i] + alpha·(batch1[i] @ batch2[i]).")),
}

// innerTol is the class of sums over the last dimension of the named tensor.
func innerTol(name op.TensorArg) op.Tol {
	return accumulating(func(a op.Args) int { return sizeOf(a.Value(name), 1) }, "each element sums one product per inner index")
}

// dimensions rejects named tensors that do not have the given numbers of dimensions.
func dimensions(x op.TensorArg, nx int, y op.TensorArg, ny int) func(op.Args) error {
	return func(a op.Args) error {
		if gx, gy := len(a.Value(x).Shape()), len(a.Value(y).Shape()); gx != nx || gy != ny {
			refuse := op.RuntimeError
			if nx == 3 && (gy < 3 || gx < 2) || nx == 2 && gx == 0 { // whose sizes are read before they are counted
				refuse = op.IndexError
			}
			return refuse("%s and %s must have %d and %d dimensions, but have %d and %d", x, y, nx, ny, gx, gy)
		}
		return nil
	}
}

func sampleVectors(s *op.Sampler) []any {
	n := int(s.Int(1, 9))
	return []any{s.Tensor(-2, 2, n), s.Tensor(-2, 2, n)}
}

func conjugate(b op.Builder, v op.Value) op.Value {
	if !v.DType().IsComplex() {
		return v
	}
	return b.Op("conj", v)
}

func checkInner(a op.Args) error {
	x, y := a.Value(arg.Input).Shape(), a.Value(arg.Other).Shape()
	if len(x) > 0 && len(y) > 0 && x[len(x)-1] != y[len(y)-1] {
		return op.RuntimeError("the last dimensions of input and other must match, but the shapes are %s and %s", tensor.ShapeString(x), tensor.ShapeString(y))
	}
	return nil
}

func composeInner(b op.Builder, a op.Args) []op.Value {
	x, y := a.Value(arg.Input), a.Value(arg.Other)
	nx, ny := len(x.Shape()), len(y.Shape())
	if nx == 0 || ny == 0 {
		return []op.Value{b.Mul(x, y)}
	}
	return []op.Value{contracted(b, x, y, []int{nx - 1}, []int{ny - 1})}
}

// contractedTol is the class of sums over the dimensions that tensordot contracts.
var contractedTol = accumulating(func(a op.Args) int {
	dims, _, err := contractedDims(a)
	n := 1
	for _, d := range dims {
		n *= a.Value(arg.A).Shape()[d]
	}
	if err != nil {
		return 1
	}
	return n
}, "each element sums one product per contracted index")

// contractedDims returns the dimensions of a and b that tensordot sums over.
func contractedDims(a op.Args) (dx, dy []int, err error) {
	x, y := a.Value(arg.A).Shape(), a.Value(arg.B).Shape()
	if dx, dy, err = namedDims(a.Any(arg.Dims), min(len(x), len(y))); err != nil {
		return nil, nil, err
	}
	if x, y := a.Value(arg.A).DType(), a.Value(arg.B).DType(); x != y {
		return nil, nil, op.RuntimeError("a and b must have the same dtype, but have %s and %s", x, y)
	}
	for i := range dx {
		if dx[i], err = wrapDim(dx[i], len(x)); err != nil {
			return nil, nil, err
		}
		if dy[i], err = wrapDim(dy[i], len(y)); err != nil {
			return nil, nil, err
		}
		if len(x) == 0 || len(y) == 0 {
			return nil, nil, op.IndexError("dims names %d dimensions, but a and b have %d and %d", len(dx), len(x), len(y))
		}
		if nx, ny := x[dx[i]], y[dy[i]]; nx != ny && nx != 1 && ny != 1 {
			return nil, nil, op.RuntimeError("dimension %d of a has size %d, but dimension %d of b has size %d", dx[i], nx, dy[i], ny)
		}
	}
	for i := range dx {
		if slices.Contains(dx[:i], dx[i]) || slices.Contains(dy[:i], dy[i]) {
			return nil, nil, op.RuntimeError("dims names a dimension more than once: %v and %v", dx, dy)
		}
	}
	return dx, dy, nil
}

// namedDims reads the argument dims of tensordot: two lists, or a number of
// the last dimensions of a and the first of b, at most rank.
func namedDims(dims any, rank int) (dx, dy []int, err error) {
	if truth, ok := dims.(op.Scalar); ok && truth.DType() == tensor.Bool {
		dims = int(truth.Int())
	}
	switch dims := dims.(type) {
	case int:
		if dims < 0 {
			return nil, nil, op.RuntimeError("dims must not be negative, but is %d", dims)
		}
		if dims > rank {
			return nil, nil, op.RuntimeError("dims is %d, but a or b has %d dimensions", dims, rank)
		}
		for i := range dims {
			dx, dy = append(dx, i-dims), append(dy, i)
		}
		return dx, dy, nil
	case []any:
		return listedDims(dims)
	}
	return nil, nil, op.RuntimeError("dims must be an int or two lists of ints")
}

func listedDims(lists []any) (dx, dy []int, err error) {
	if len(lists) != 2 {
		return nil, nil, op.ValueError("dims must be two lists of ints, but has %d elements", len(lists))
	}
	for i, named := range []*[]int{&dx, &dy} {
		list, ok := lists[i].([]any)
		if !ok {
			return nil, nil, op.TypeError("dims must be two lists of ints, but element %d is none", i)
		}
		for _, e := range list {
			s, _ := e.(op.Scalar)
			d, ok := s.Any().(int64)
			if !ok {
				return nil, nil, op.TypeError("dims must be two lists of ints, but has %v", e)
			}
			*named = append(*named, int(d))
		}
	}
	if len(dx) != len(dy) {
		return nil, nil, op.RuntimeError("the lists of dims must have the same length, but have %d and %d", len(dx), len(dy))
	}
	return dx, dy, nil
}

func composeTensordot(b op.Builder, a op.Args) []op.Value {
	dx, dy, err := contractedDims(a)
	if err != nil {
		op.Fail(err)
	}
	return []op.Value{contracted(b, a.Value(arg.A), a.Value(arg.B), dx, dy)}
}

// contracted sums products over the dimensions dx of x and dy of y, as one
// product of matrices. A dimension of size 1 meets the sum over the other.
func contracted(b op.Builder, x, y op.Value, dx, dy []int) op.Value {
	inner := 1
	for i := range dx {
		switch nx, ny := x.Shape()[dx[i]], y.Shape()[dy[i]]; {
		case ny == 1:
			x = sumKept(b, x, dx[i:i+1])
		case nx == 1:
			y = sumKept(b, y, dy[i:i+1])
		default:
			inner *= nx
		}
	}
	fx, fy := otherDims(x, dx), otherDims(y, dy)
	out := []int{}
	rows, columns := 1, 1
	for _, d := range fx {
		out = append(out, x.Shape()[d])
		rows *= x.Shape()[d]
	}
	for _, d := range fy {
		out = append(out, y.Shape()[d])
		columns *= y.Shape()[d]
	}
	left := b.Reshape(b.Op("permute", x, append(fx, dx...)), []int{rows, inner})
	right := b.Reshape(b.Op("permute", y, append(slices.Clone(dy), fy...)), []int{inner, columns})
	return b.Reshape(b.Op("mm", left, right), out)
}

func otherDims(v op.Value, dims []int) []int {
	return slices.DeleteFunc(allDims(len(v.Shape())), func(d int) bool { return slices.Contains(dims, d) })
}

func sampleTensordot(s *op.Sampler) []any {
	shared := s.Shape(0, 2)
	x, y := slices.Concat(s.Shape(0, 2), shared), slices.Concat(shared, s.Shape(0, 2))
	if n := len(shared); n > 0 && s.Index(3) == 2 {
		y[s.Index(n)] = 1
	}
	return []any{s.Tensor(-2, 2, x...), s.Tensor(-2, 2, y...), len(shared)}
}

// sampleTensordotLists moves the shared dimensions of two tensors about.
func sampleTensordotLists(s *op.Sampler) []any {
	args := sampleTensordot(s)
	x, y, n := args[0].(*tensor.Tensor), args[1].(*tensor.Tensor), args[2].(int)
	dx, dy := []any{}, []any{}
	for i := range n {
		dx, dy = append(dx, x.Dim()-n+i), append(dy, i)
	}
	if x.Dim() > 1 && s.Bool() {
		x = x.Permute(append([]int{x.Dim() - 1}, allDims(x.Dim()-1)...)...).Contiguous()
		for i, d := range dx {
			dx[i] = (d.(int) + 1) % x.Dim()
		}
	}
	return []any{x, y, []any{dx, dy}}
}

// addedProduct is an operator that adds a product of matrices to its input.
func addedProduct(id string, x op.TensorArg, y op.TensorArg, nx, ny int, formula string) *op.Def {
	p := &addProduct{id, x, y}
	return &op.Def{
		Traits: op.Contraction,
		Sig:    id + "(Tensor input, Tensor " + string(x) + ", Tensor " + string(y) + ", *, Scalar beta=1, Scalar alpha=1) -> Tensor",
		Names:  both(id),
		Doc:    "A product of matrices added to the input: " + formula + " With beta 0 the input is ignored.",
		SBP:    p.shardings(),
		Reject: firstError(dimensions(x, nx, y, ny), p.check),
		Infer: func(a op.Args) ([]op.Meta, error) {
			out, err := p.outShape(a)
			if err != nil {
				return nil, err
			}
			return one(a.Value(x).DType(), out, nil), nil
		},
		Kernels: p.kernels(),
		Grad:    p.grad,
		Sample:  p.sample,
		Tol:     ownMagnitude(accumulating(func(a op.Args) int { return p.terms(a) + 1 }, "each element sums one product per inner index and the input")),
	}
}

// addProduct names the operands of a product that is added to the input.
type addProduct struct {
	id   string
	x, y op.TensorArg
}

func (p *addProduct) shardings() sharder {
	x, y, out := "mk", "kn", "mn"
	switch p.id {
	case "addmv":
		y, out = "k", "m"
	case "addbmm":
		x, y = "bmk", "bkn"
	case "baddbmm":
		x, y, out = "bmk", "bkn", "bmn"
	}
	return anyOf(productAxes(string(p.x)+" "+x, string(p.y)+" "+y, out), multilinear([]op.Handle{p.x, p.y}, arg.Input))
}

// stacked reports whether the product sums over the batch.
func (p *addProduct) stacked() bool { return p.id == "addbmm" }

func (p *addProduct) terms(a op.Args) int {
	n := sizeOf(a.Value(p.x), 1)
	if p.stacked() {
		n *= a.Value(p.x).Shape()[0]
	}
	return n
}

func (p *addProduct) check(a op.Args) error {
	x, y, in := a.Value(p.x), a.Value(p.y), a.Value(arg.Input)
	if x.DType() != y.DType() {
		return op.RuntimeError("%s and %s must have the same dtype, but have %s and %s", p.x, p.y, x.DType(), y.DType())
	}
	if in.DType() != x.DType() {
		return op.RuntimeError("input must have the dtype %s of %s, but has %s", x.DType(), p.x, in.DType())
	}
	if len(x.Shape()) == 3 && x.Shape()[0] != y.Shape()[0] {
		return op.RuntimeError("%s and %s must have the same batch size, but have %d and %d", p.x, p.y, x.Shape()[0], y.Shape()[0])
	}
	for _, name := range []op.ScalarArg{arg.Beta, arg.Alpha} {
		if imag(a.Scalar(name).Complex()) != 0 && !x.DType().IsComplex() {
			return op.RuntimeError("%s is complex, but %s has dtype %s", name, p.x, x.DType())
		}
		if err := fits(a.Scalar(name), x.DType()); err != nil {
			return err
		}
	}
	return nil
}

func (p *addProduct) outShape(a op.Args) ([]int, error) {
	x, y := a.Value(p.x).Shape(), a.Value(p.y).Shape()
	if x[len(x)-1] != columnShape(y)[max(len(y)-2, 0)] {
		refuse := op.RuntimeError
		if p.id == "addmv" && len(a.Value(arg.Input).Shape()) == 0 {
			refuse = op.IndexError
		}
		return nil, refuse("%s %s and %s %s cannot be multiplied: their inner sizes differ", p.x, tensor.ShapeString(x), p.y, tensor.ShapeString(y))
	}
	out := slices.Clone(x[:len(x)-1])
	if len(y) > 1 {
		out = append(out, y[len(y)-1])
	}
	if p.stacked() {
		out = out[1:]
	}
	if in := a.Value(arg.Input).Shape(); !broadcastsTo(in, out) || p.id == "addmv" && len(in) > 1 {
		return nil, op.RuntimeError("input of shape %s does not expand to the product's shape %s", tensor.ShapeString(in), tensor.ShapeString(out))
	}
	return out, nil
}

func (p *addProduct) kernels() []op.Kernel {
	empty := op.Pred{Text: "no products to sum", Holds: func(a op.Args) bool {
		out, err := p.outShape(a)
		return err == nil && (p.terms(a) == 0 || tensor.NumElements(out) == 0)
	}}
	others := slices.Concat(integerTypes, complexTypes)
	return append(floatKernels(p.x, addProductRun[float32](p), addProductRun[float64](p)),
		op.Kernel{Name: "integer and complex", When: op.DTypeIn(p.x, others...), Run: p.runElements},
		op.Kernel{Name: "no products", Priority: 1, When: op.And(empty, op.DTypeIn(p.x, tensor.F16)), Run: inFloat32(addProductRun[float32](p))},
	)
}

func (p *addProduct) runElements(c *op.Run) error {
	return byElement(c, p.x, elementRuns{
		addProductRun[uint8](p), addProductRun[int8](p), addProductRun[int16](p), addProductRun[int32](p), addProductRun[int64](p),
		addProductRun[complex64](p), addProductRun[complex128](p),
	})
}

func addProductRun[T gemmType](p *addProduct) func(c *op.Run) error {
	return func(c *op.Run) error {
		out := c.Out[0]
		dst := tensor.Data[T](out)[:out.Len()]
		alpha, beta := scalarElement[T](c.Scalar(arg.Alpha), out.DType()), scalarElement[T](c.Scalar(arg.Beta), out.DType())
		clear(dst)
		if p.terms(c.Args) > 0 && len(dst) > 0 && (alpha != 0 || p.id != "addmv") {
			x, y := p.operands(c)
			matmulInto[T](x, y, out, nil)
		}
		var in []T
		if beta != 0 {
			spread, err := c.Tensor(arg.Input).Convert(out.DType()).Expand(out.Shape()...)
			if err != nil {
				return err
			}
			in = contiguousData[T](spread)
		}
		kernel.ScaleAdd(dst, alpha, in, beta)
		return nil
	}
}

// operands returns the factors of one product of matrices, or of a batch of them.
func (p *addProduct) operands(c *op.Run) (x, y *tensor.Tensor) {
	x, y = c.Tensor(p.x), c.Tensor(p.y)
	if !p.stacked() {
		return x, y
	}
	xs, ys := x.Shape(), y.Shape()
	return x.Permute(1, 0, 2).Reshape(xs[1], xs[0]*xs[2]), y.Reshape(ys[0]*ys[1], ys[2])
}

func scalarElement[T gemmType](s op.Scalar, d tensor.DType) T {
	return tensor.Data[T](scalarTensor(s, d))[0]
}

func (p *addProduct) grad(g *op.Grad) {
	x, y := g.Value(p.x), g.Value(p.y)
	g.To(arg.Input, func() op.Value { return timesConj(g, g.G(), g.Scalar(arg.Beta)) })
	cot := g.G()
	if p.stacked() {
		cot = g.Expand(cot, append([]int{x.Shape()[0]}, cot.Shape()...))
	}
	vector := len(y.Shape()) == 1
	if vector {
		cot, y = g.Op("unsqueeze", cot, 1), g.Op("unsqueeze", y, 1)
	}
	g.To(p.x, func() op.Value {
		return timesConj(g, g.Op("matmul", cot, adjoint(g, y)), g.Scalar(arg.Alpha))
	})
	g.To(p.y, func() op.Value {
		d := g.Op("matmul", adjoint(g, x), cot)
		if vector {
			d = g.Op("squeeze", d, 1)
		}
		return timesConj(g, d, g.Scalar(arg.Alpha))
	})
}

// timesConj multiplies a gradient by the conjugate of a number.
func timesConj(g *op.Grad, v op.Value, s op.Scalar) op.Value {
	c := s.Complex()
	switch {
	case c == 1:
		return v
	case imag(c) != 0:
		return g.Mul(v, complex(real(c), -imag(c)))
	}
	return g.Mul(v, s)
}

func (p *addProduct) sample(s *op.Sampler) []any {
	b, m, k, n := int(s.Int(1, 4)), int(s.Int(1, 5)), int(s.Int(1, 5)), int(s.Int(1, 5))
	x, y, out := []int{m, k}, []int{k, n}, []int{m, n}
	switch p.id {
	case "addmv":
		y, out = y[:1], out[:1]
	case "addbmm":
		x, y = []int{b, m, k}, []int{b, k, n}
	case "baddbmm":
		x, y, out = []int{b, m, k}, []int{b, k, n}, []int{b, m, n}
	}
	args := []any{s.Tensor(-2, 2, partOf(s, out)...), s.Tensor(-2, 2, x...), s.Tensor(-2, 2, y...)}
	for _, name := range []string{"beta", "alpha"} {
		switch s.Index(4) {
		case 1:
			args = append(args, op.Kw(name, s.Int(0, 3)))
		case 2:
			args = append(args, op.Kw(name, factorOf(s)))
		}
	}
	return args
}

// factorOf draws a factor of s.DType: PyTorch asks for whole ones beside integers, and
// cuts others off, or refuses them, as it comes.
func factorOf(s *op.Sampler) any {
	if s.Fresh && !s.DType.IsDifferentiable() {
		return s.Int(-2, 3)
	}
	return s.Float(-2, 2)
}
