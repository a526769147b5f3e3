package ops

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// Sets of dtypes that kernels and checks name.
var (
	integerTypes = []tensor.DType{tensor.U8, tensor.I8, tensor.I16, tensor.I32, tensor.I64}
	integralSet  = slices.Clip(slices.Concat([]tensor.DType{tensor.Bool}, integerTypes))
	halfTypes    = []tensor.DType{tensor.F16, tensor.BF16}
	float32Set   = append([]tensor.DType{tensor.F32}, halfTypes...) // computed in float32
	float64Set   = []tensor.DType{tensor.F64}
	complexTypes = []tensor.DType{tensor.C64, tensor.C128}
)

// wrapDim returns the dimension that a possibly negative dim names among n;
// a 0-d tensor has one dimension in this respect. The error is an IndexError.
func wrapDim(dim, n int) (int, error) {
	n = max(n, 1)
	if dim < -n || dim >= n {
		return 0, op.IndexError("Dimension out of range (expected to be in range of [%d, %d], but got %d)", -n, n-1, dim)
	}
	if dim < 0 {
		dim += n
	}
	return dim, nil
}

// wrapDims wraps each of dims and rejects duplicates. No dims mean all n of them.
func wrapDims(dims []int, n int) ([]int, error) {
	if len(dims) == 0 {
		return allDims(n), nil
	}
	out := make([]int, 0, len(dims))
	for _, d := range dims {
		w, err := wrapDim(d, n)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, w) {
			return nil, op.RuntimeError("dim %d appears multiple times in the list of dims", w)
		}
		out = append(out, w)
	}
	if n == 0 {
		return nil, nil
	}
	slices.Sort(out)
	return out, nil
}

func allDims(n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = i
	}
	return dims
}

// reducedShape removes the dimensions, or keeps them with size 1.
func reducedShape(shape, dims []int, keep bool) []int {
	out := []int{}
	for i, n := range shape {
		switch {
		case !slices.Contains(dims, i):
			out = append(out, n)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// broadcastShape returns the common shape of the values. The error is a RuntimeError.
func broadcastShape(vs ...op.Value) ([]int, error) {
	if len(vs) > 0 && !slices.ContainsFunc(vs, func(v op.Value) bool { return !slices.Equal(v.Shape(), vs[0].Shape()) }) {
		return slices.Clone(vs[0].Shape()), nil
	}
	var shapes [][]int
	for _, v := range vs {
		shapes = append(shapes, v.Shape())
	}
	shape, err := tensor.BroadcastShapes(shapes...)
	if err != nil {
		return nil, op.RuntimeError("%v", err)
	}
	return shape, nil
}

// floatResult is the dtype of a function of reals: integers and bool become float32.
func floatResult(d tensor.DType) tensor.DType {
	if d.IsDifferentiable() {
		return d
	}
	return tensor.F32
}

// one returns the description of a single result.
func one(d tensor.DType, shape, strides []int) []op.Meta {
	return []op.Meta{{DType: d, Shape: shape, Strides: strides}}
}

// elementwise infers a result of the broadcast shape of the named tensors, in
// the memory order that PyTorch's TensorIterator gives it.
func elementwise(dtype func(a op.Args) tensor.DType, names ...op.Handle) func(op.Args) ([]op.Meta, error) {
	return zipped(dtype, nil, names...)
}

// zipped is elementwise for operands that PyTorch brings to a common dtype
// first: those of another dtype take part in the memory order as dense copies.
func zipped(dtype, common func(a op.Args) tensor.DType, names ...op.Handle) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		vs := valuesOf(a, names)
		shape, err := broadcastShape(vs...)
		if err != nil {
			return nil, err
		}
		if common != nil {
			vs = convertedTo(common(a), vs)
		}
		return one(dtype(a), shape, iteratorStrides(shape, vs...)), nil
	}
}

// dense is a value of which only the layout matters.
type dense struct {
	op.Value
	strides []int
}

// Strides returns the strides of the dense copy.
func (d dense) Strides() []int { return d.strides }

func convertedTo(d tensor.DType, vs []op.Value) []op.Value {
	if !slices.ContainsFunc(vs, func(v op.Value) bool { return v.DType() != d }) {
		return vs
	}
	out := slices.Clone(vs)
	for i, v := range vs {
		if v.DType() != d {
			out[i] = dense{v, denseStrides(v)}
		}
	}
	return out
}

// denseStrides returns the strides of a copy of v in its memory order
// (preserve_format): v's own when it has no gaps.
func denseStrides(v op.Value) []int {
	if isDense(v.Shape(), v.Strides()) {
		return slices.Clone(v.Strides())
	}
	if s := iteratorStrides(v.Shape(), v); s != nil {
		return s
	}
	return tensor.ContiguousStrides(v.Shape())
}

// valuesOf returns the tensors among the named arguments.
func valuesOf(a op.Args, names []op.Handle) []op.Value {
	var vs []op.Value
	for _, n := range names {
		if v, ok := a.Any(n).(op.Value); ok {
			vs = append(vs, v)
		}
	}
	return vs
}

// sameAs infers a result of the dtype, shape and memory order of the named tensor.
func sameAs(name op.TensorArg) func(op.Args) ([]op.Meta, error) {
	return elementwise(func(a op.Args) tensor.DType { return a.Value(name).DType() }, name)
}

// floatAs is sameAs with integers and bool giving float32.
func floatAs(name op.TensorArg) func(op.Args) ([]op.Meta, error) {
	return elementwise(func(a op.Args) tensor.DType { return floatResult(a.Value(name).DType()) }, name)
}

// promoted returns the dtype rule of torch.result_type over the named arguments.
func promoted(names ...op.Handle) func(op.Args) tensor.DType {
	return func(a op.Args) tensor.DType { return a.Promoted(names...) }
}

// iteratorStrides returns the strides of a new result of the shape that is
// computed elementwise from vs: those of PyTorch's TensorIterator
// (reorder_dimensions and allocate_or_resize_outputs). Nil means contiguous.
func iteratorStrides(shape []int, vs ...op.Value) []int {
	if !slices.ContainsFunc(vs, func(v op.Value) bool { return !ordinary(shape, v) }) {
		return nil
	}
	if same := sharedStrides(shape, vs); same != nil {
		return same
	}
	expanded := make([][]int, len(vs))
	for i, v := range vs {
		expanded[i] = expandedStrides(shape, v)
	}
	order := iteratorOrder(shape, expanded)
	out, step := make([]int, len(shape)), 1
	for _, d := range order {
		out[d] = step
		step *= max(shape[d], 1)
	}
	return out
}

// ordinary reports whether v is contiguous; if it is broadcast to the shape,
// in the strides of its dimensions of size 1 too.
func ordinary(shape []int, v op.Value) bool {
	if slices.Equal(shape, v.Shape()) {
		return tensor.Contiguous.Matches(v.Shape(), v.Strides())
	}
	return slices.Equal(v.Strides(), tensor.ContiguousStrides(v.Shape()))
}

// sharedStrides returns the strides that all values of the shape have, when
// they are dense and without overlap; else nil.
func sharedStrides(shape []int, vs []op.Value) []int {
	for _, v := range vs {
		if !slices.Equal(v.Shape(), shape) || !slices.Equal(v.Strides(), vs[0].Strides()) || !isDense(shape, v.Strides()) {
			return nil
		}
	}
	return slices.Clone(vs[0].Strides())
}

// isDense reports whether the elements fill a range of storage, each once.
func isDense(shape, strides []int) bool {
	dims := slices.DeleteFunc(allDims(len(shape)), func(d int) bool { return shape[d] < 2 })
	slices.SortFunc(dims, func(a, b int) int { return strides[a] - strides[b] })
	step := 1
	for _, d := range dims {
		if strides[d] != step {
			return false
		}
		step *= shape[d]
	}
	return true
}

// expandedStrides returns v's strides under the broadcast shape, 0 where it repeats.
func expandedStrides(shape []int, v op.Value) []int {
	out := make([]int, len(shape))
	lead := len(shape) - len(v.Shape())
	for i, n := range v.Shape() {
		if n != 1 || shape[lead+i] == 1 {
			out[lead+i] = v.Strides()[i]
		}
	}
	return out
}

// iteratorOrder sorts the dimensions innermost first by the operands' strides;
// earlier operands decide, broadcast dimensions do not take part.
func iteratorOrder(shape []int, operands [][]int) []int {
	order := allDims(len(shape))
	slices.Reverse(order)
	for i := 1; i < len(order); i++ {
		at := i
		for j := i - 1; j >= 0; j-- {
			c := compareDims(order[j], order[at], shape, operands)
			if c < 0 {
				break
			}
			if c > 0 {
				order[j], order[at] = order[at], order[j]
				at = j
			}
		}
	}
	return order
}

// compareDims returns a positive number when dimension b belongs inside a, a
// negative one when a belongs inside b, and 0 when the operands do not tell.
func compareDims(a, b int, shape []int, operands [][]int) int {
	for _, s := range operands {
		switch {
		case s[a] == 0 || s[b] == 0:
		case s[a] != s[b]:
			return s[a] - s[b]
		case shape[a] > shape[b]:
			return 1
		}
	}
	return 0
}

// firstError runs checks in order and returns the first rejection.
func firstError(checks ...func(op.Args) error) func(op.Args) error {
	return func(a op.Args) error {
		for _, c := range checks {
			if err := c(a); err != nil {
				return err
			}
		}
		return nil
	}
}

// rejectTypes rejects a named tensor of one of the dtypes, with PyTorch's
// class for a missing CPU kernel.
func rejectTypes(name op.TensorArg, ds ...tensor.DType) func(op.Args) error {
	return func(a op.Args) error {
		if d := a.Value(name).DType(); slices.Contains(ds, d) {
			return op.RuntimeError("not implemented for argument '%s' of dtype %s", name, d)
		}
		return nil
	}
}

// resultIn holds when the promoted dtype of the named arguments is one of ds.
func resultIn(ds []tensor.DType, ps ...op.Handle) op.Pred {
	var names []string
	for _, p := range ps {
		names = append(names, p.Name())
	}
	return op.Pred{
		Text:  fmt.Sprintf("result type of %s in {%s}", strings.Join(names, ", "), typeNames(ds)),
		Holds: func(a op.Args) bool { return slices.Contains(ds, a.Promoted(ps...)) },
	}
}

func typeNames(ds []tensor.DType) string {
	var names []string
	for _, d := range ds {
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}

// number returns a Scalar or float argument as a Scalar.
func number(a op.Args, p op.Handle) op.Scalar {
	switch v := a.Any(p).(type) {
	case op.Scalar:
		return v
	case float64:
		return op.ScalarOf(v)
	}
	return op.Scalar{}
}

// conj returns the complex conjugate, by which PyTorch's convention multiplies
// gradients; a real value is itself.
func conj(g *op.Grad, v op.Value) op.Value {
	if !v.DType().IsComplex() {
		return v
	}
	return g.Op("conj", v)
}

// wide returns a half-precision value in float32, so that a gradient of
// several steps is rounded once at its end; others unchanged.
func wide(g *op.Grad, v op.Value) op.Value {
	if slices.Contains(halfTypes, v.DType()) {
		return g.Cast(v, tensor.F32)
	}
	return v
}

// roundHalf returns the rounding of a float32 to a half type.
func roundHalf(d tensor.DType) func(float32) float32 {
	if d == tensor.F16 {
		return func(v float32) float32 { return tensor.ToFloat16(v).Float32() }
	}
	return func(v float32) float32 { return tensor.ToBFloat16(v).Float32() }
}

// zeros returns a gradient of zeros for v.
func zeros(g *op.Grad, v op.Value) op.Value { return g.Op("zeros_like", v) }

// exactTol is the class of results that are copies or comparisons of their inputs.
func exactTol(reason string) op.Tol { return op.Tol{Class: op.Exact, Reason: reason} }

// ulpTol is the class of pointwise results within n units in the last place.
func ulpTol(n float64, reason string) op.Tol {
	return op.Tol{Class: op.Pointwise, ULP: n, Reason: reason}
}

// vanishing says of a class that results go to 0 as an exponential does.
func vanishing(t op.Tol) op.Tol {
	t.Vanishes = true
	return t
}

// fractional says of a class that its terms are divided.
func fractional(t op.Tol) op.Tol {
	t.Fractional = true
	return t
}

// selectTol is exactTol for operators that choose among elements: of +0 and -0
// they may choose either.
func selectTol(reason string) op.Tol {
	return op.Tol{Class: op.Exact, Reason: reason, AnyZero: true}
}

// ownMagnitude is the class of an operator that is its own Magnitude.
func ownMagnitude(t op.Tol) op.Tol {
	t.OwnMagnitude = true
	return t
}

// addedInPlace is the class of sums that are added into elements of the result one by
// one: PyTorch's kernels on the CPU, and its atomic ones of CUDA, round each time.
func addedInPlace(t op.Tol) op.Tol {
	t.InPlace = true
	return t
}

// both returns the names of a function of torch that is also a method.
func both(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, "torch."+n, "Tensor."+n)
	}
	return out
}

// scalarTensor returns s as a 0-d tensor of d.
func scalarTensor(s op.Scalar, d tensor.DType) *tensor.Tensor {
	if i, ok := s.Any().(int64); ok && d.IsInt() {
		t := tensor.New(d)
		t.SetInt(0, i)
		return t
	}
	return tensor.Scalar(d, s.Complex())
}

// operand returns a tensor or Scalar argument for a kernel whose operands are
// brought to dtype d. Only 0-d operands can lose anything by that, so the
// others are left to the kernel's loaders.
func operand(a op.Args, p op.TensorArg, d tensor.DType) *tensor.Tensor {
	t := a.Tensor(p)
	switch {
	case t == nil:
		return scalarTensor(number(a, p), d)
	case t.Dim() == 0 && t.DType() != d:
		return t.Convert(d)
	}
	return t
}

// fits rejects a Scalar that PyTorch refuses to convert to d.
func fits(s op.Scalar, d tensor.DType) error {
	v := s.Float()
	bad := false
	switch d {
	case tensor.U8:
		_, float := s.Any().(float64)
		bad = v < -255 || v > 255 || float && v < 0
	case tensor.I8, tensor.I16, tensor.I32:
		limit := float64(int64(1) << (8*d.Size() - 1))
		bad = v < -limit || v >= limit
	case tensor.F16:
		bad = v != 0 && !math.IsInf(v, 0) && math.Abs(v) > 65504
	case tensor.F32, tensor.BF16, tensor.C64:
		bad = !math.IsInf(v, 0) && math.Abs(v) > math.MaxFloat32
	}
	if bad {
		return op.RuntimeError("value %v cannot be converted to type %s without overflow", s.Any(), d)
	}
	return nil
}

// unary are the block functions of a map over the tensor "input", one per lane
// type; nil where there is none.
type unary struct {
	f32  func(dst, a []float32)
	f64  func(dst, a []float64)
	i64  func(dst, a []int64)
	c128 func(dst, a []complex128)
}

// kernels returns a kernel for every lane. Without an integer lane, integers
// and bool are computed in float32.
func (u unary) kernels() []op.Kernel {
	return parametric(func(op.Args) unary { return u }, u)
}

// parametric is kernels for block functions that depend on attributes; shape
// tells which lanes there are.
func parametric(of func(a op.Args) unary, shape unary) []op.Kernel {
	var ks []op.Kernel
	reals := float32Set
	if shape.i64 == nil {
		reals = slices.Concat(float32Set, integralSet)
	} else {
		ks = append(ks, mapKernel("integer", integralSet, func(a op.Args) func(dst, a []int64) { return of(a).i64 }))
	}
	if shape.f32 != nil {
		ks = append(ks, mapKernel("float32", reals, func(a op.Args) func(dst, a []float32) { return of(a).f32 }))
	}
	if shape.f64 != nil {
		ks = append(ks, mapKernel("float64", float64Set, func(a op.Args) func(dst, a []float64) { return of(a).f64 }))
	}
	if shape.c128 != nil {
		ks = append(ks, mapKernel("complex", complexTypes, func(a op.Args) func(dst, a []complex128) { return of(a).c128 }))
	}
	return ks
}

func mapKernel[T kernel.Lane](name string, ds []tensor.DType, f func(a op.Args) func(dst, a []T)) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		kernel.Map1(c.Out[0], c.Tensor(arg.Input), f(c.Args))
		return nil
	}}
}

// zipKernel is a kernel over two operands, tensors or Scalars, brought to the
// dtype to; it runs when their promoted dtype is one of ds.
func zipKernel[D, T kernel.Lane](name string, ds []tensor.DType, x, y op.TensorArg, to func(op.Args) tensor.DType, f func(a op.Args) func(dst []D, a, b []T)) op.Kernel {
	return op.Kernel{Name: name, When: resultIn(ds, x, y), Run: func(c *op.Run) error {
		a, b := c.Tensor(x), c.Tensor(y)
		if a == nil || b == nil || a.Dim() == 0 || b.Dim() == 0 {
			d := to(c.Args)
			a, b = operand(c.Args, x, d), operand(c.Args, y, d)
		}
		kernel.Map2(c.Out[0], a, b, f(c.Args))
		return nil
	}}
}

// fixed makes a block function that no attribute changes.
func fixed[F any](f F) func(op.Args) F { return func(op.Args) F { return f } }

// maxParts is how many tensors a composition makes at most.
const maxParts = 1 << 16

// failBeyond ends a composition whose argument asks for more than maxParts tensors.
func failBeyond(what string, n int) {
	if n > maxParts {
		op.Fail(op.RuntimeError("can't allocate memory: %s is %d", what, n))
	}
}

// savesTensors and savesNothing say whether PyTorch keeps tensors for the gradient of a call.
func savesTensors(op.Args) bool { return true }
func savesNothing(op.Args) bool { return false }
