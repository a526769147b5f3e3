package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var contractOps = []*op.Def{
	{
		Sig:     "matmul(Tensor input, Tensor other) -> Tensor",
		Traits:  op.Contraction,
		SBP:     anyOf(axes("input k, other k -> | input k, other *kn -> *n | input *mk, other k -> *m | input *mk, other *kn -> *mn"), linear(arg.Input, arg.Other)),
		Names:   []string{"torch.matmul", "Tensor.matmul", "operator.matmul", "torch.linalg.matmul"},
		Doc:     "Matrix product: out[…, i, j] = Σₖ input[…, i, k]·other[…, k, j]; vectors count as one row or column, leading dimensions broadcast.",
		Infer:   inferMatmul,
		Kernels: reporting(productKernels(matmulEmpty, zeroResults, matmulRun[float32], matmulRun[float64], matmulIntegers)),
		Grad:    matmulGrad,
		Sample:  sampleMatmul,
		Tol:     ownMagnitude(accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) }, "each element sums one product per inner index")),
	},
	{
		Sig:     "mm(Tensor input, Tensor mat2) -> Tensor",
		Traits:  op.Contraction,
		SBP:     anyOf(axes("input mk, mat2 kn -> mn"), linear(arg.Input, arg.Mat2)),
		Names:   []string{"torch.mm", "Tensor.mm"},
		Doc:     "Matrix product of two matrices: out[i, j] = Σₖ input[i, k]·mat2[k, j].",
		Infer:   func(a op.Args) ([]op.Meta, error) { return ranked(a, 2) },
		Kernels: reporting(productKernels(mat2Empty, zeroResults, mat2Run[float32], mat2Run[float64], mat2Integers)),
		Grad:    mat2Grad,
		Sample:  sampleMm,
		Tol:     ownMagnitude(accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) }, "each element sums one product per inner index")),
	},
	{
		Sig:     "bmm(Tensor input, Tensor mat2) -> Tensor",
		Traits:  op.Contraction,
		SBP:     anyOf(axes("input bmk, mat2 bkn -> bmn"), linear(arg.Input, arg.Mat2)),
		Names:   []string{"torch.bmm", "Tensor.bmm"},
		Doc:     "Matrix products of two batches: out[b, i, j] = Σₖ input[b, i, k]·mat2[b, k, j].",
		Infer:   func(a op.Args) ([]op.Meta, error) { return ranked(a, 3) },
		Kernels: reporting(productKernels(mat2Empty, zeroResults, mat2Run[float32], mat2Run[float64], mat2Integers)),
		Grad:    mat2Grad,
		Sample:  sampleBmm,
		Tol:     ownMagnitude(accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) }, "each element sums one product per inner index")),
	},
	{
		Sig:     "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
		Traits:  op.Contraction,
		SBP:     anyOf(axes("input *k, weight nk, +bias n -> *n | input *k, weight k, +bias * -> *"), multilinear([]op.Handle{arg.Input, arg.Weight}, arg.Bias)),
		Names:   []string{"torch.nn.functional.linear"},
		Doc:     "Affine map of the last dimension: out[…, j] = Σₖ input[…, k]·weight[j, k] + bias[j].",
		Infer:   inferLinear,
		Kernels: reporting(productKernels(linearEmpty, spreadBias, linearRun[float32], linearRun[float64], linearIntegers)),
		Grad:    linearGrad,
		Sample:  sampleLinear,
		Tol:     ownMagnitude(accumulating(func(a op.Args) int { return sizeOf(a.Value(arg.Input), 1) + 1 }, "each element sums one product per input feature and the bias")),
	},
}

func inferMatmul(a op.Args) ([]op.Meta, error) {
	p, err := matmulOf(a.Value(arg.Input), a.Value(arg.Other))
	if err != nil {
		return nil, err
	}
	return one(p.dtype, p.out, nil), nil
}

func sampleMm(s *op.Sampler) []any {
	d := s.Dims(3)
	return []any{s.Tensor(-2, 2, d[0], d[1]), s.Tensor(-2, 2, d[1], d[2])}
}

func sampleBmm(s *op.Sampler) []any {
	d := s.Dims(4)
	return []any{s.Tensor(-2, 2, d[0], d[1], d[2]), s.Tensor(-2, 2, d[0], d[2], d[3])}
}

func inferLinear(a op.Args) ([]op.Meta, error) {
	l, err := linearOf(a)
	if err == nil && a.Has(arg.Bias) {
		err = checkBias(a, l)
	}
	if err != nil {
		return nil, err
	}
	return one(a.Value(arg.Input).DType(), l.out, nil), nil
}

func sampleLinear(s *op.Sampler) []any {
	in, out := int(s.Int(1, 6)), int(s.Int(1, 6))
	shape := append(s.Shape(0, 2), in)
	args := []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, out, in)}
	if s.Bool() {
		args = append(args, s.Tensor(-2, 2, out))
	}
	return args
}

// gemmType is the set of element types that the packed product multiplies.
type gemmType interface {
	float32 | float64 | int8 | uint8 | int16 | int32 | int64 | complex64 | complex128
}

// productKernels are the kernels of a matrix product. PyTorch's CPU products
// exist for every dtype but bool; without products to sum, for that too.
func productKernels(empty op.Pred, zeros func(c *op.Run) error, run32, run64, other func(c *op.Run) error) []op.Kernel {
	others := slices.Concat(integerTypes, complexTypes)
	return append(floatKernels(arg.Input, run32, run64),
		op.Kernel{Name: "integer and complex", When: op.DTypeIn(arg.Input, others...), Run: other},
		op.Kernel{Name: "no products", When: empty, Priority: 1, Run: zeros},
	)
}

// product is a matrix product in batches: x and y are seen as [batch…, m, k]
// and [batch…, k, n]. Out is the result's shape, without the dimensions of
// size 1 that stand for a vector.
type product struct {
	batch, out []int
	m, n, k    int
	dtype      tensor.DType
}

// rowShape is the shape of x as matrices.
func rowShape(x []int) []int {
	if len(x) == 1 {
		return []int{1, x[0]}
	}
	return x
}

// columnShape is the shape of y as matrices.
func columnShape(y []int) []int {
	if len(y) == 1 {
		return []int{y[0], 1}
	}
	return y
}

func matmulOf(x, y op.Value) (*product, error) {
	if len(x.Shape()) == 0 || len(y.Shape()) == 0 {
		return nil, op.RuntimeError("both arguments to matmul need to be at least 1D, but they are %dD and %dD", len(x.Shape()), len(y.Shape()))
	}
	xs, ys := rowShape(x.Shape()), columnShape(y.Shape())
	xl, yl := len(xs)-2, len(ys)-2
	p := &product{m: xs[xl], n: ys[yl+1], k: ys[yl], dtype: x.DType()}
	if xs[xl+1] != p.k {
		return nil, op.RuntimeError("input %s and other %s cannot be multiplied: their inner sizes are %d and %d", tensor.ShapeString(x.Shape()), tensor.ShapeString(y.Shape()), xs[xl+1], p.k)
	}
	batch, err := tensor.BroadcastShapes(xs[:xl], ys[:yl])
	if err != nil {
		return nil, op.RuntimeError("batch dimensions: %v", err)
	}
	p.batch, p.out = batch, slices.Clone(batch)
	if len(x.Shape()) > 1 {
		p.out = append(p.out, p.m)
	}
	if len(y.Shape()) > 1 {
		p.out = append(p.out, p.n)
	}
	switch empty := p.isEmpty(x, y); {
	case empty && len(x.Shape()) > 1 && len(y.Shape()) > 2:
		p.dtype = y.DType() // as PyTorch, which compares the dtypes of batches only to multiply
	case x.DType() != y.DType():
		return nil, op.RuntimeError("input and other must have the same dtype, but have %s and %s", x.DType(), y.DType())
	}
	return p, nil
}

// isEmpty reports whether there is nothing to multiply. A product of vectors never counts as such.
func (p *product) isEmpty(x, y op.Value) bool {
	return len(x.Shape())+len(y.Shape()) > 2 && (p.k == 0 || tensor.NumElements(p.out) == 0)
}

var matmulEmpty = op.Pred{
	Text: "no products to sum",
	Holds: func(a op.Args) bool {
		x, y := a.Value(arg.Input), a.Value(arg.Other)
		p, err := matmulOf(x, y)
		return err == nil && p.isEmpty(x, y)
	},
}

func matmulRun[T gemmType](c *op.Run) error {
	matmulInto[T](c.Tensor(arg.Input), c.Tensor(arg.Other), c.Out[0], c.Done)
	return nil
}

func matmulInto[T gemmType](x, y, out *tensor.Tensor, done func(lo, hi int)) {
	p, err := matmulOf(x, y)
	if err != nil {
		panic(err)
	}
	x, y = x.Reshape(rowShape(x.Shape())...), y.Reshape(columnShape(y.Shape())...)
	if y.Dim() == 2 && x.Dim() > 2 {
		rows := tensor.NumElements(p.batch) * p.m
		p.m, p.batch = rows, nil
		x = x.Reshape(rows, p.k)
	}
	kernel.MatMulThen(p.batch, p.m, p.n, p.k, stackOf[T](x, p.batch), stackOf[T](y, p.batch), tensor.Data[T](out), done)
}

// stackOf views a tensor of matrices under the broadcast batch shape.
func stackOf[T gemmType](t *tensor.Tensor, batch []int) kernel.Stack[T] {
	e, err := t.Expand(append(slices.Clone(batch), t.Shape()[t.Dim()-2:]...)...)
	if err != nil {
		panic(err)
	}
	s := e.Strides()
	n := len(batch)
	return kernel.Stack[T]{Mat: kernel.Mat[T]{Data: tensor.Data[T](e), RS: s[n], CS: s[n+1]}, Batch: s[:n]}
}

func matmulIntegers(c *op.Run) error {
	return byElement(c, arg.Input, elementRuns{
		matmulRun[uint8], matmulRun[int8], matmulRun[int16], matmulRun[int32], matmulRun[int64], matmulRun[complex64], matmulRun[complex128],
	})
}

// elementRuns are the instances of a kernel for uint8, int8, int16, int32, int64, complex64 and complex128.
type elementRuns [7]func(c *op.Run) error

var elementOrder = slices.Concat(integerTypes, complexTypes)

// byElement runs the instance for the dtype of the named argument.
func byElement(c *op.Run, arg op.TensorArg, runs elementRuns) error {
	return runs[slices.Index(elementOrder, c.Tensor(arg).DType())](c)
}

func matmulGrad(g *op.Grad) { matmulGrads(g, arg.Input, arg.Other) }

// matmulGrads sets dX = G·Yᴴ and dY = Xᴴ·G, summed over broadcast batches.
func matmulGrads(g *op.Grad, xName, yName op.TensorArg) {
	x, y := g.Value(xName), g.Value(yName)
	p, err := matmulOf(x, y)
	if err != nil {
		op.Fail(err)
	}
	xs, ys := rowShape(x.Shape()), columnShape(y.Shape())
	cot := g.Reshape(g.G(), append(slices.Clone(p.batch), p.m, p.n))
	g.To(xName, func() op.Value {
		d := g.Op("matmul", cot, adjoint(g, g.Reshape(y, ys)))
		return g.Reshape(g.SumTo(d, xs), x.Shape())
	})
	g.To(yName, func() op.Value {
		left, right := g.Reshape(x, xs), cot
		if len(ys) == 2 && len(xs) > 2 {
			rows := tensor.NumElements(p.batch) * p.m
			left, right = g.Reshape(x, []int{rows, p.k}), g.Reshape(cot, []int{rows, p.n})
		}
		d := g.Op("matmul", adjoint(g, left), right)
		return g.Reshape(g.SumTo(d, ys), y.Shape())
	})
}

// adjoint returns the conjugate transpose of matrices.
func adjoint(g *op.Grad, v op.Value) op.Value {
	return conj(g, g.Op("transpose", v, -2, -1))
}

// ranked infers mm and bmm: matmul of two tensors of n dimensions, without broadcasting.
func ranked(a op.Args, n int) ([]op.Meta, error) {
	x, y := a.Value(arg.Input), a.Value(arg.Mat2)
	if len(x.Shape()) != n || len(y.Shape()) != n {
		return nil, op.RuntimeError("input and mat2 must have %d dimensions, but have shapes %s and %s", n, tensor.ShapeString(x.Shape()), tensor.ShapeString(y.Shape()))
	}
	if n == 3 && x.Shape()[0] != y.Shape()[0] {
		return nil, op.RuntimeError("input and mat2 must have the same batch size, but have %d and %d", x.Shape()[0], y.Shape()[0])
	}
	p, err := matmulOf(x, y)
	if err != nil {
		return nil, err
	}
	return one(p.dtype, p.out, nil), nil
}

var mat2Empty = op.Pred{
	Text: "no products to sum",
	Holds: func(a op.Args) bool {
		p, err := matmulOf(a.Value(arg.Input), a.Value(arg.Mat2))
		return err == nil && p.isEmpty(a.Value(arg.Input), a.Value(arg.Mat2))
	},
}

func mat2Run[T gemmType](c *op.Run) error {
	matmulInto[T](c.Tensor(arg.Input), c.Tensor(arg.Mat2), c.Out[0], c.Done)
	return nil
}

func mat2Integers(c *op.Run) error {
	return byElement(c, arg.Input, elementRuns{
		mat2Run[uint8], mat2Run[int8], mat2Run[int16], mat2Run[int32], mat2Run[int64], mat2Run[complex64], mat2Run[complex128],
	})
}

func mat2Grad(g *op.Grad) { matmulGrads(g, arg.Input, arg.Mat2) }

// sampleMatmul draws any of the forms of matmul, with tied inner sizes and
// broadcast batches.
func sampleMatmul(s *op.Sampler) []any {
	batch := s.Shape(0, 2)
	m, n, k := int(s.Int(1, 6)), int(s.Int(1, 6)), int(s.Int(1, 6))
	x, y := append(partOf(s, batch), m, k), append(partOf(s, batch), k, n)
	if len(x) == 2 && s.Bool() {
		x = x[1:]
	}
	if len(y) == 2 && s.Bool() {
		y = y[:1]
	}
	return []any{s.Tensor(-2, 2, x...), s.Tensor(-2, 2, y...)}
}

// partOf draws a shape that broadcasts to the given one.
func partOf(s *op.Sampler, shape []int) []int {
	part := slices.Clone(shape[s.Index(len(shape)+1):])
	for i := range part {
		if s.Index(3) == 2 {
			part[i] = 1
		}
	}
	return part
}

// affineMap is what linear computes: rows·weightᵀ, of shape [m, n], plus the bias.
type affineMap struct {
	m, n, k int
	out     []int
	fused   bool // the bias is added to all rows at once, as by addmm
}

func linearOf(a op.Args) (*affineMap, error) {
	x, w := a.Value(arg.Input), a.Value(arg.Weight)
	xs, ws := x.Shape(), w.Shape()
	if len(xs) == 0 || len(ws) == 0 || len(ws) > 2 {
		return nil, op.RuntimeError("input needs at least 1 dimension and weight 1 or 2, but they have shapes %s and %s", tensor.ShapeString(xs), tensor.ShapeString(ws))
	}
	lead, k := xs[:len(xs)-1], xs[len(xs)-1]
	if k != ws[len(ws)-1] {
		return nil, op.RuntimeError("input %s and weight %s cannot be multiplied: they have %d and %d features", tensor.ShapeString(xs), tensor.ShapeString(ws), k, ws[len(ws)-1])
	}
	if x.DType() != w.DType() {
		return nil, op.RuntimeError("input and weight must have the same dtype, but have %s and %s", x.DType(), w.DType())
	}
	l := &affineMap{m: tensor.NumElements(lead), n: 1, k: k, out: slices.Clone(lead)}
	if len(ws) == 2 {
		l.n = ws[0]
		l.out = append(l.out, l.n)
	}
	if b := a.Value(arg.Bias); b != nil {
		l.fused = len(xs) == 2 || tensor.Contiguous.Matches(xs, x.Strides()) && isRow(b.Shape())
	}
	return l, nil
}

// isRow reports a shape of one dimension, but for others of size 1.
func isRow(shape []int) bool {
	long := 0
	for _, n := range shape {
		if n != 1 {
			long++
		}
	}
	return len(shape) == 1 || long == 1
}

// checkBias applies PyTorch's rules: where it can, it adds the bias to all
// rows at once (addmm), which is stricter than a sum in place.
func checkBias(a op.Args, l *affineMap) error {
	x, w, b := a.Value(arg.Input), a.Value(arg.Weight), a.Value(arg.Bias)
	if l.fused && len(w.Shape()) != 2 {
		return op.RuntimeError("weight must be a matrix when there is a bias, but has shape %s", tensor.ShapeString(w.Shape()))
	}
	if d := tensor.Promote(x.DType(), b.DType()); l.fused && b.DType() != x.DType() || kindOf(d) > kindOf(x.DType()) {
		return op.RuntimeError("bias must have the dtype %s of input, but has %s", x.DType(), b.DType())
	}
	if l.fused && l.k == 0 && l.m*l.n > 0 && x.DType() == tensor.Bool {
		return op.RuntimeError("a bias of bool cannot be scaled")
	}
	target := l.biasShape()
	if !broadcastsTo(b.Shape(), target) {
		return op.RuntimeError("bias of shape %s does not broadcast to the output %s", tensor.ShapeString(b.Shape()), tensor.ShapeString(target))
	}
	return nil
}

func broadcastsTo(shape, target []int) bool {
	s, err := tensor.BroadcastShapes(shape, target)
	return err == nil && slices.Equal(s, target)
}

// biasShape is the shape of the output over which the bias is spread.
func (l *affineMap) biasShape() []int {
	if l.fused {
		return []int{l.m, l.n}
	}
	return l.out
}

// kindOf orders dtypes as PyTorch's canCast does: a sum in place may not move up.
func kindOf(d tensor.DType) int {
	switch {
	case d == tensor.Bool:
		return 0
	case d.IsInt():
		return 1
	case d.IsFloat():
		return 2
	}
	return 3
}

var linearEmpty = op.Pred{
	Text: "no products to sum",
	Holds: func(a op.Args) bool {
		l, err := linearOf(a)
		return err == nil && len(l.out) > 0 && (l.k == 0 || l.m*l.n == 0)
	},
}

// spreadBias sets the output to the bias, or to zero without one.
func spreadBias(c *op.Run) error {
	l, err := linearOf(c.Args)
	if err != nil {
		return err
	}
	bias := c.Tensor(arg.Bias)
	if bias == nil {
		return zeroResults(c)
	}
	shape := l.biasShape()
	spread, err := bias.Expand(shape...)
	if err == nil {
		c.Out[0].Reshape(shape...).CopyFrom(spread)
	}
	return err
}

func linearRun[T gemmType](c *op.Run) error {
	l, err := linearOf(c.Args)
	if err != nil {
		return err
	}
	x := c.Tensor(arg.Input).Reshape(l.m, l.k)
	w := c.Tensor(arg.Weight).Reshape(l.n, l.k)
	if c.Has(arg.Bias) {
		if err := spreadBias(c); err != nil {
			return err
		}
	}
	a := kernel.Mat[T]{Data: tensor.Data[T](x), RS: x.Strides()[0], CS: x.Strides()[1]}
	b := kernel.Mat[T]{Data: tensor.Data[T](w), RS: w.Strides()[1], CS: w.Strides()[0]}
	var done func(lo, hi int)
	if c.Done != nil {
		done = func(lo, hi int) { c.Done(lo*l.n, hi*l.n) }
	}
	kernel.GemmThen(l.m, l.n, l.k, a, b, kernel.Mat[T]{Data: tensor.Data[T](c.Out[0]), RS: l.n, CS: 1}, c.Has(arg.Bias), done)
	return nil
}

func linearIntegers(c *op.Run) error {
	return byElement(c, arg.Input, elementRuns{
		linearRun[uint8], linearRun[int8], linearRun[int16], linearRun[int32], linearRun[int64], linearRun[complex64], linearRun[complex128],
	})
}

func linearGrad(g *op.Grad) {
	l, err := linearOf(g.Args)
	if err != nil {
		op.Fail(err)
	}
	x, w := g.Value(arg.Input), g.Value(arg.Weight)
	cot := g.Reshape(g.G(), []int{l.m, l.n})
	g.To(arg.Input, func() op.Value {
		d := g.Op("matmul", cot, conj(g, g.Reshape(w, []int{l.n, l.k})))
		return g.Reshape(d, x.Shape())
	})
	g.To(arg.Weight, func() op.Value {
		d := g.Op("matmul", g.Op("transpose", cot, 0, 1), conj(g, g.Reshape(x, []int{l.m, l.k})))
		return g.Reshape(d, w.Shape())
	})
	g.To(arg.Bias, func() op.Value { return g.Reshape(g.G(), l.biasShape()) })
}
