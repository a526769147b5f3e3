package ops

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

const (
	maxPoolDoc = "Maximum of each window: out[…, y, x] = max over i, j of input[…, y·stride − padding + i·dilation, x·stride − padding + j·dilation], padded with −∞; the first of equal maxima counts, NaN propagates."
	avgPoolDoc = "Mean of each window: out[…, y, x] = Σ over i, j of input[…, y·stride − padding + i, x·stride − padding + j], padded with zeros, over divisor_override or the number of summed elements; with count_include_pad those of the padding count too."
	adaptDoc   = "for a result of the given size: along each dimension position o of m takes positions ⌊o·n/m⌋ to ⌈(o+1)·n/m⌉ − 1 of n; None keeps a size."
)

var poolOps = slices.Concat(maxPools(1), maxPools(2), maxPools(3), poolIndexing, avgPools(1), avgPools(2), avgPools(3), adaptivePools(1), adaptivePools(2), adaptivePools(3), []*op.Def{poolSpread, adaptiveSpread})

// maxPools are the forms of max_pool over n dimensions, without and with positions.
func maxPools(n int) []*op.Def {
	plain, found := fmt.Sprintf("max_pool%dd", n), fmt.Sprintf("max_pool%dd_with_indices", n)
	params := fmt.Sprintf("(Tensor input, int[%[1]d] kernel_size, int[%[1]d]? stride=None, int[%[1]d] padding=0, int[%[1]d] dilation=1, bool ceil_mode=False", n)
	run := windowKernels(arg.Input, maxPoolRun[float32], maxPoolRun[float64])
	scatter := func(g *op.Grad, indices op.Value) op.Value {
		if indices == nil {
			indices = g.All(found, g.Value(arg.Input), g.Ints(arg.KernelSize), g.Any(arg.Stride), g.Ints(arg.Padding), g.Ints(arg.Dilation), g.Bool(arg.CeilMode))[1]
		}
		return poolScatter(g, g.G(), indices, g.Value(arg.Input), n)
	}
	indexed := &op.Def{
		Sig:     found + params + ", bool return_indices=True) -> (Tensor output, Tensor indices)",
		Traits:  op.Monotone,
		Names:   []string{"torch.nn.functional." + plain},
		Doc:     maxPoolDoc + " Indices are positions in the image; without return_indices there is one result.",
		SBP:     planes(n, arg.Input),
		Infer:   inferMaxPools,
		Kernels: run,
		Grad:    maximaGrad(scatter),
		Sample:  func(s *op.Sampler) []any { return samplePool(s, n) },
		Tol:     ownMagnitude(selectTol("each element is a copy of an input element, or its position")),
	}
	if n == 1 {
		indexed.Names = append(indexed.Names, "torch."+found)
	}
	return []*op.Def{{
		Sig:    plain + params + ") -> Tensor",
		Traits: op.Monotone,
		Names:  []string{"torch.nn.functional." + plain, "torch." + plain},
		Doc:    maxPoolDoc,
		SBP:    planes(n, arg.Input),
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := maxPoolOf(a)
			if err != nil {
				return nil, err
			}
			return p.results(a.Value(arg.Input), 1), nil
		},
		Kernels: run,
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return scatter(g, nil) }),
		Sample:  func(s *op.Sampler) []any { return samplePool(s, n) },
		Tol:     ownMagnitude(selectTol("each element is a copy of an input element")),
	}, indexed}
}

// maximaGrad is the gradient of a maximum pooling whose positions are its second
// result, where that was asked for.
func maximaGrad(scatter func(g *op.Grad, indices op.Value) op.Value) func(*op.Grad) {
	return op.Gradient(func(g *op.Grad) op.Value {
		switch {
		case g.G() == nil:
			return nil
		case len(g.Out) == 1:
			return scatter(g, nil)
		}
		return scatter(g, g.Out[1])
	})
}

func inferMaxPools(a op.Args) ([]op.Meta, error) {
	p, err := maxPoolOf(a)
	if err != nil {
		return nil, err
	}
	if !a.Bool(arg.ReturnIndices) {
		return p.results(a.Value(arg.Input), 1), nil
	}
	return p.results(a.Value(arg.Input), 2), nil
}

// poolIndexing moves elements between planes and the windows that won them.
var poolIndexing = []*op.Def{
	{
		Sig:     "max_pool.scatter(Tensor grad, Tensor indices, int[] size) -> Tensor",
		SBP:     anyOf(linear(arg.Grad), planesBy(arg.Size, arg.Grad, arg.Indices), pooledSums),
		Doc:     "Gradient of max_pool: adds each element of grad to the position of its plane, of the given size, that indices names.",
		Infer:   inferMaxPoolScatter,
		Kernels: windowKernels(arg.Grad, scatterRun[float32], scatterRun[float64]),
		Grad:    op.GradientOf(arg.Grad, maxPoolScatterGrad),
		Sample:  sampleMaxPoolScatter,
		Tol:     addedInPlace(ownMagnitude(accumulating(maxPoolScatterTerms, "an element sums the gradients of the windows that it wins"))),
	},
	{
		Sig:     "max_pool.gather(Tensor input, Tensor indices, int dims) -> Tensor",
		SBP:     anyOf(linear(arg.Input), func(a op.Args) []op.Sharding { return planes(a.Int(arg.DimsInt), arg.Input, arg.Indices)(a) }, pooledEntries),
		Doc:     "The elements of each plane of input, its last dims dimensions, that indices names.",
		Infer:   inferMaxPoolGather,
		Kernels: windowKernels(arg.Input, gatherRun[float32], gatherRun[float64]),
		Grad:    op.Gradient(maxPoolGatherGrad),
		Sample:  sampleMaxPoolGather,
		Tol:     ownMagnitude(exactTol("each element is a copy of an input element")),
	},
}

func inferMaxPoolGather(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Input).DType(), a.Value(arg.Indices).Shape(), nil), nil
}

func maxPoolGatherGrad(g *op.Grad) op.Value {
	return poolScatter(g, g.G(), g.Value(arg.Indices), g.Value(arg.Input), g.Int(arg.DimsInt))
}

func sampleMaxPoolGather(s *op.Sampler) []any {
	_, indices, plane := sampleIndices(s)
	return []any{plane, indices, 2}
}

func inferMaxPoolScatter(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Grad).DType(), planesOf(a.Value(arg.Grad), a.Ints(arg.Size)), nil), nil
}

func maxPoolScatterGrad(g *op.Grad) op.Value {
	return g.Op("max_pool.gather", g.G(), g.Value(arg.Indices), len(g.Ints(arg.Size)))
}

func sampleMaxPoolScatter(s *op.Sampler) []any {
	grad, indices, plane := sampleIndices(s)
	return []any{grad, indices, plane.Shape()[1:]}
}

func maxPoolScatterTerms(a op.Args) int {
	s := a.Value(arg.Grad).Shape()
	return tensor.NumElements(s[len(s)-len(a.Ints(arg.Size)):])
}

// avgPools is avg_pool over n dimensions.
func avgPools(n int) []*op.Def {
	id := fmt.Sprintf("avg_pool%dd", n)
	sig := fmt.Sprintf("%[1]s(Tensor input, int[%[2]d] kernel_size, int[%[2]d]? stride=None, int[%[2]d] padding=0, bool ceil_mode=False, bool count_include_pad=True", id, n)
	if n > 1 {
		sig += ", int? divisor_override=None"
	}
	d := &op.Def{
		Sig:   sig + ") -> Tensor",
		SBP:   anyOf(linear(arg.Input), planes(n, arg.Input)),
		Names: []string{"torch.nn.functional." + id},
		Doc:   avgPoolDoc,
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := avgPoolOf(a, arg.Input, n, nil)
			if err != nil {
				return nil, err
			}
			return p.results(a.Value(arg.Input), 1), nil
		},
		Kernels: append(windowKernels(arg.Input, avgPoolRun[float32], avgPoolRun[float64]), op.Kernel{Name: "int64", When: op.DTypeIn(arg.Input, tensor.I64), Run: avgPoolRun[int64]}),
		Saves:   savesTensors,
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			x := g.Value(arg.Input).Shape()
			return g.Op("avg_pool.spread", g.G(), x[len(x)-n:], g.Ints(arg.KernelSize), g.Any(arg.Stride), g.Ints(arg.Padding), g.Bool(arg.CeilMode), g.Bool(arg.CountIncludePad), divisorOf(g.Args))
		}),
		Sample: func(s *op.Sampler) []any { return sampleAvgPool(s, n) },
		Tol:    ownMagnitude(weighted(kernelTerms, "a mean of the elements of a window")),
	}
	if n == 1 {
		d.Names = append(d.Names, "torch."+id)
	}
	return []*op.Def{d}
}

// poolSpread is the transposed map of avg_pool over any number of dimensions.
var poolSpread = &op.Def{
	Sig:     "avg_pool.spread(Tensor grad, int[] size, int[] kernel_size, int[]? stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
	SBP:     anyOf(linear(arg.Grad), planesBy(arg.Size, arg.Grad)),
	Doc:     "Gradient of avg_pool for images of the given size: each element of grad over its divisor is added to the elements of its window.",
	Infer:   inferAvgPoolSpread,
	Kernels: windowKernels(arg.Grad, avgSpreadRun[float32], avgSpreadRun[float64]),
	Grad:    op.GradientOf(arg.Grad, avgPoolSpreadGrad),
	Sample:  sampleAvgPoolSpread,
	Tol:     ownMagnitude(weighted(kernelTerms, "an element sums its share of every window that it is in")),
}

func inferAvgPoolSpread(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Grad).DType(), planesOf(a.Value(arg.Grad), a.Ints(arg.Size)), nil), nil
}

func avgPoolSpreadGrad(g *op.Grad) op.Value {
	args := []any{g.G(), g.Ints(arg.KernelSize), g.Any(arg.Stride), g.Ints(arg.Padding), g.Bool(arg.CeilMode), g.Bool(arg.CountIncludePad)}
	n := len(g.Ints(arg.Size))
	if n > 1 {
		args = append(args, g.Any(arg.DivisorOverride))
	}
	return g.Op(fmt.Sprintf("avg_pool%dd", n), args...)
}

func sampleAvgPoolSpread(s *op.Sampler) []any {
	n := 1 + s.Index(3)
	a := sampleAvgPool(s, n)
	x := a[0].(*tensor.Tensor).Shape()
	sig := op.Args{Sig: op.MustParseSig("avg_pool(Tensor input, int[] kernel_size, int[]? stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override)"), Vals: append(a, nil)[:7]}
	p, err := avgPoolOf(sig, arg.Input, n, nil)
	if err != nil {
		panic(err)
	}
	return append([]any{s.Tensor(-2, 2, p.result...), x[len(x)-n:]}, sig.Vals[1:]...)
}

// poolPlan is a checked pooling: its geometry and the shape of its results.
type poolPlan struct {
	kernel.Pool
	dims   int // that are pooled
	result []int
}

func (p *poolPlan) results(x op.Value, n int) []op.Meta {
	return pooled(x, p.result, p.dims, n)
}

func pooled(x op.Value, result []int, dims, n int) []op.Meta {
	var strides []int
	switch dims {
	case 1:
		strides = lineStrides(x, result)
	case 2:
		strides = suggestedStrides(x, result)
	}
	return []op.Meta{{DType: x.DType(), Shape: result, Strides: strides}, {DType: tensor.I64, Shape: result, Strides: strides}}[:n]
}

// lineStrides are those of a result that PyTorch computes as an image of height 1.
func lineStrides(x op.Value, result []int) []int {
	s, t := x.Shape(), x.Strides()
	if len(s) != 3 {
		return nil
	}
	shape, strides := []int{s[0], s[1], 1, s[2]}, []int{t[0], t[1], s[2] * t[2], t[2]}
	if !looksChannelsLast(shape, strides) {
		return nil
	}
	out := tensor.ChannelsLast.Strides([]int{result[0], result[1], 1, result[2]})
	return []int{out[0], out[1], out[3]}
}

// lifted puts unit dimensions before v, so that there are three.
func lifted(v []int, unit int) [3]int {
	out := [3]int{unit, unit, unit}
	copy(out[3-len(v):], v)
	return out
}

// tuple reads an int[n] argument.
func tuple(a op.Args, name op.IntsArg, n int) ([]int, error) {
	v := a.Ints(name)
	if len(v) != n {
		return nil, op.RuntimeError("expected %s to be a single integer value or a list of %d values, but got %s=%s", name, n, name, tensor.ShapeString(v))
	}
	return v, nil
}

// maxPoolOf checks a max_pool.
func maxPoolOf(a op.Args) (*poolPlan, error) {
	n := a.Sig.Params[a.Sig.Index(arg.KernelSize)].Type.N
	dilation, err := tuple(a, arg.Dilation, n)
	if err != nil {
		return nil, err
	}
	return poolOf(a, arg.Input, n, dilation, nil)
}

// poolOf checks a pooling of the last n dimensions; size stands for those of
// the argument x when it is not nil.
func poolOf(a op.Args, x op.TensorArg, n int, dilation, size []int) (*poolPlan, error) {
	shape := a.Value(x).Shape()
	if n == 2 && len(shape) < 3 && !a.Sig.Takes(arg.Dilation) { // avg_pool2d reads its size from the end
		return nil, op.IndexError("expected 3D or 4D (batch mode) %s, but got size %s", x, tensor.ShapeString(shape))
	}
	if d := len(shape); d != n+1 && d != n+2 || size == nil && tensor.NumElements(shape[d-n-1:]) == 0 {
		return nil, op.RuntimeError("expected %dD or %dD (batch mode) %s, only its batch may be empty, but got size %s", n+1, n+2, x, tensor.ShapeString(shape))
	}
	if size == nil {
		size = shape[len(shape)-n:]
	}
	p := &poolPlan{dims: n}
	p.X, p.Dilation, p.Y = lifted(size, 1), lifted(dilation, 1), [3]int{1, 1, 1}
	if err := readWindow(a, n, &p.Window); err != nil {
		return nil, err
	}
	for i := 3 - n; i < 3; i++ {
		p.Y[i] = pooledSize(p.X[i], p.Kernel[i], p.Stride[i], p.Padding[i], p.Dilation[i], a.Bool(arg.CeilMode))
	}
	if slices.Min(p.Y[:]) < 1 {
		return nil, op.RuntimeError("given input size %s, the calculated output size %v is too small", tensor.ShapeString(shape), p.Y[3-n:])
	}
	p.result = append(slices.Clone(shape[:len(shape)-n]), p.Y[3-n:]...)
	return p, nil
}

// readWindow reads and checks kernel_size, stride and padding; w has the dilation.
func readWindow(a op.Args, n int, w *kernel.Window) error {
	size, err := tuple(a, arg.KernelSize, n)
	if err != nil {
		return err
	}
	stride := size
	if len(a.Ints(arg.Stride)) > 0 {
		if stride, err = tuple(a, arg.Stride, n); err != nil {
			return err
		}
	}
	padding, err := tuple(a, arg.Padding, n)
	if err != nil {
		return err
	}
	w.Kernel, w.Stride, w.Padding = lifted(size, 1), lifted(stride, 1), lifted(padding, 0)
	return checkWindow(w)
}

func checkWindow(w *kernel.Window) error {
	for _, c := range []struct {
		low  int
		name op.IntsArg
		v    [3]int
	}{{1, arg.KernelSize, w.Kernel}, {1, arg.Stride, w.Stride}, {0, arg.Padding, w.Padding}, {1, arg.Dilation, w.Dilation}} {
		if err := checkAtLeast(c.low, c.name, c.v[:]); err != nil {
			return err
		}
	}
	for i := range 3 {
		if w.Padding[i] > w.Kernel[i]/2 {
			return op.RuntimeError("padding must be at most half of kernel_size, but they are %v and %v", w.Padding, w.Kernel)
		}
	}
	return nil
}

// pooledSize is PyTorch's pooling_output_shape: in ceil mode a last, partial
// window counts when it starts inside the image or its left padding.
func pooledSize(in, kernel, stride, pad, dilation int, ceil bool) int {
	reach := in + 2*pad - dilation*(kernel-1) - 1
	if ceil {
		reach += stride - 1
	}
	if reach < 0 {
		return 0
	}
	out := reach/stride + 1
	if ceil && (out-1)*stride >= in+pad {
		out--
	}
	return out
}

// suggestedStrides are the strides of a result in the memory format that
// PyTorch's suggest_memory_format reads off x; nil for contiguous.
func suggestedStrides(x op.Value, shape []int) []int {
	if !looksChannelsLast(x.Shape(), x.Strides()) || len(shape) != 4 {
		return nil
	}
	return tensor.ChannelsLast.Strides(shape)
}

// looksChannelsLast is PyTorch's is_channels_last_strides_2d: strides grow in
// the order c, w, h, n, and are not those of a contiguous n×1×h×w.
func looksChannelsLast(shape, strides []int) bool {
	if len(shape) != 4 || strides[1] == 0 {
		return false
	}
	low := 0
	for _, d := range [4]int{1, 3, 2, 0} {
		if shape[d] == 0 || strides[d] < low || d == 0 && low == strides[1] {
			return false
		}
		low = strides[d]
		if shape[d] > 1 {
			low *= shape[d]
		}
	}
	return true
}

// weighted is the class of results that sum terms with fractional weights.
func weighted(terms func(a op.Args) int, reason string) op.Tol {
	return fractional(accumulating(terms, reason))
}

// windowKernels are those of which PyTorch 1.13 has each.
func windowKernels(arg op.TensorArg, run32, run64 func(c *op.Run) error) []op.Kernel {
	ks := floatKernels(arg, run32, run64)
	for i := range ks {
		ks[i].Since = ""
	}
	return ks
}

func maxPoolRun[T float32 | float64](c *op.Run) error {
	p, err := maxPoolOf(c.Args)
	if err != nil {
		return err
	}
	x := contiguousData[T](c.Tensor(arg.Input))
	planes := tensor.NumElements(p.result[:len(p.result)-p.dims])
	writeTo(c.Out[0], func(y []T) {
		if len(c.Out) == 1 {
			kernel.MaxPool(&p.Pool, planes, x, y, nil)
			return
		}
		writeTo(c.Out[1], func(index []int64) { kernel.MaxPool(&p.Pool, planes, x, y, index) })
	})
	return nil
}

// planesOf is v's shape with planes of another size.
func planesOf(v op.Value, size []int) []int {
	s := v.Shape()
	return append(slices.Clone(s[:len(s)-len(size)]), size...)
}

// poolScatter sends cot to the positions that indices names in the last n dimensions of like.
func poolScatter(g *op.Grad, cot, indices, like op.Value, n int) op.Value {
	s := like.Shape()
	return g.Op("max_pool.scatter", cot, indices, s[len(s)-n:])
}

func scatterRun[T float32 | float64](c *op.Run) error {
	s := c.Out[0].Shape()
	planes := tensor.NumElements(s[:len(s)-len(c.Ints(arg.Size))])
	kernel.ScatterPlanes(planes, contiguousData[T](c.Tensor(arg.Grad)), contiguousData[int64](c.Tensor(arg.Indices)), tensor.Data[T](c.Out[0])[:c.Out[0].Len()])
	return nil
}

func gatherRun[T float32 | float64](c *op.Run) error {
	s := c.Out[0].Shape()
	planes := tensor.NumElements(s[:len(s)-c.Int(arg.DimsInt)])
	kernel.GatherPlanes(planes, contiguousData[T](c.Tensor(arg.Input)), contiguousData[int64](c.Tensor(arg.Indices)), tensor.Data[T](c.Out[0])[:c.Out[0].Len()])
	return nil
}

// divisorOf is the divisor_override argument, which avg_pool1d lacks.
func divisorOf(a op.Args) any {
	if !a.Sig.Takes(arg.DivisorOverride) {
		return nil
	}
	return a.Any(arg.DivisorOverride)
}

// kernelTerms is the number of elements of a window.
func kernelTerms(a op.Args) int { return tensor.NumElements(a.Ints(arg.KernelSize)) }

// avgPoolOf checks an avg_pool of the last n dimensions, as poolOf does.
func avgPoolOf(a op.Args, x op.TensorArg, n int, size []int) (*poolPlan, error) {
	p, err := poolOf(a, x, n, slices.Repeat([]int{1}, n), size)
	if err != nil {
		return nil, err
	}
	if d, ok := divisorOf(a).(int); ok && d == 0 {
		return nil, op.RuntimeError("divisor_override must not be zero")
	}
	return p, nil
}

// meanOf is the map that averages what the windows read.
func meanOf[T float32 | float64 | int64](p *kernel.Pool, a op.Args) *kernel.Blend[T] {
	m := &kernel.Blend[T]{Boxes: p.Boxes()}
	if d, ok := divisorOf(a).(int); ok {
		m.Div[2] = slices.Repeat([]T{T(d)}, p.Y[2])
		return m
	}
	for i := range m.Div {
		m.Div[i] = make([]T, p.Y[i])
		for o := range m.Div[i] {
			m.Div[i][o] = T(m.Axes[i].Count[o])
			if a.Bool(arg.CountIncludePad) {
				first := o*p.Stride[i] - p.Padding[i]
				m.Div[i][o] = T(min(first+p.Kernel[i], p.X[i]+p.Padding[i]) - first)
			}
		}
	}
	return m
}

func avgPoolRun[T float32 | float64 | int64](c *op.Run) error {
	p, err := avgPoolOf(c.Args, arg.Input, c.Sig.Params[c.Sig.Index(arg.KernelSize)].Type.N, nil)
	if err != nil {
		return err
	}
	applyBlend(c.Out[0], c.Tensor(arg.Input), meanOf[T](&p.Pool, c.Args), p.dims)
	return nil
}

func avgSpreadRun[T float32 | float64](c *op.Run) error {
	p, err := avgPoolOf(c.Args, arg.Grad, len(c.Ints(arg.Size)), c.Ints(arg.Size))
	if err != nil {
		return err
	}
	spreadBlend(c.Out[0], c.Tensor(arg.Grad), meanOf[T](&p.Pool, c.Args), p.dims)
	return nil
}

// applyBlend computes a map of the last n dimensions.
func applyBlend[T float32 | float64 | int64 | uint8](out, x *tensor.Tensor, m *kernel.Blend[T], n int) {
	data, planes := contiguousData[T](x), tensor.NumElements(out.Shape()[:out.Dim()-n])
	writeTo(out, func(y []T) { kernel.Apply(m, planes, data, y) })
}

// spreadBlend computes a transposed map of the last n dimensions.
func spreadBlend[T float32 | float64](out, grad *tensor.Tensor, m *kernel.Blend[T], n int) {
	data, planes := contiguousData[T](grad), tensor.NumElements(out.Shape()[:out.Dim()-n])
	writeTo(out, func(x []T) { kernel.ApplyTransposed(m, planes, data, x) })
}

// boxMean is the map that averages over boxes.
func boxMean[T float32 | float64](b *kernel.Boxes) *kernel.Blend[T] {
	m := &kernel.Blend[T]{Boxes: b}
	for i := range m.Div {
		for _, n := range b.Axes[i].Count {
			m.Div[i] = append(m.Div[i], T(n))
		}
	}
	return m
}

func samplePool(s *op.Sampler, n int) []any {
	size, window, stride, pad, dilation := make([]int, n), make([]int, n), make([]int, n), make([]int, n), make([]int, n)
	for i := range n {
		window[i], stride[i], dilation[i] = int(s.Int(1, 4)), int(s.Int(1, 4)), int(s.Int(1, 3))
		pad[i] = int(s.Int(0, int64(window[i]/2+1)))
		size[i] = dilation[i]*(window[i]-1) + int(s.Int(1, 5))
	}
	x := append(s.Dims(2), size...)
	if s.Bool() {
		x = x[1:]
	}
	return []any{s.Distinct(x...), window, stride, pad, dilation, s.Bool()}
}

func sampleAvgPool(s *op.Sampler, n int) []any {
	a := samplePool(s, n)
	args := []any{s.Tensor(-2, 2, a[0].(*tensor.Tensor).Shape()...), a[1], a[2], a[3], a[5], s.Bool()}
	if n > 1 && s.Bool() {
		args = append(args, int(s.Int(1, 6)))
	}
	return args
}

// sampleIndices draws planes, positions in them, and gradients for those.
func sampleIndices(s *op.Sampler) (grad, indices, plane *tensor.Tensor) {
	n, in, out := int(s.Int(1, 4)), s.Dims(2), s.Dims(2)
	indices = tensor.New(tensor.I64, n, out[0], out[1])
	for i := range indices.Len() {
		indices.SetInt(i, s.Int(0, int64(in[0]*in[1])))
	}
	return s.Tensor(-2, 2, n, out[0], out[1]), indices, s.Tensor(-2, 2, n, in[0], in[1])
}
