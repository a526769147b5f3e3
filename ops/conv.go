package ops

import (
	"fmt"
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var convOps = slices.Concat(convolutions(1), convolutions(2), convolutions(3), bilinearOps)

// convolutions are the convolution over n dimensions and its transpose.
func convolutions(n int) []*op.Def {
	forward, transposed := fmt.Sprintf("conv%dd", n), fmt.Sprintf("conv_transpose%dd", n)
	plan := func(a op.Args) (*convPlan, error) { return convOf(a, n) }
	transposedPlan := func(a op.Args) (*convPlan, error) { return convTransposeOf(a, n) }
	return []*op.Def{
		{
			Sig:    fmt.Sprintf("%[1]s(Tensor input, Tensor weight, Tensor? bias=None, int[%[2]d] stride=1, int[%[2]d] padding=0, int[%[2]d] dilation=1, int groups=1) -> Tensor", forward, n),
			SBP:    convolved(n, "oi"),
			Traits: op.Contraction,
			More:   []string{fmt.Sprintf("%[1]s(Tensor input, Tensor weight, Tensor? bias=None, int[%[2]d] stride=1, str padding='valid', int[%[2]d] dilation=1, int groups=1) -> Tensor", forward, n)},
			Names:  []string{"torch.nn.functional." + forward, "torch." + forward},
			Doc:    "Cross-correlation: out[b, o, …, y, x] = bias[o] + Σ weight[o, c, …, i, j]·input[b, c, …, y·stride − padding + i·dilation, x·stride − padding + j·dilation], c over the channels of o's group.",
			Infer:  inferConv(plan),
			Kernels: append(reporting(floatKernels(arg.Input, convRun[float32](plan), convRun[float64](plan))),
				op.Kernel{Name: "integer", When: op.And(op.DTypeIn(arg.Input, integerTypes...), undilated), Run: convOther(plan)},
				op.Kernel{Name: "int64 and complex", When: op.DTypeIn(arg.Input, tensor.I64, tensor.C64, tensor.C128), Run: convOther(plan)},
				op.Kernel{Name: "no elements", When: noElements(plan), Priority: 1, Run: zeroResults},
			),
			Grad:   convGrad(plan),
			Sample: func(s *op.Sampler) []any { return sampleConvolution(s, n) },
			Tol:    ownMagnitude(accumulating(func(a op.Args) int { return filterSize(a) + 1 }, "each element sums one product per weight of its filter and the bias")),
		},
		{
			Sig:    fmt.Sprintf("%[1]s(Tensor input, Tensor weight, Tensor? bias=None, int[%[2]d] stride=1, int[%[2]d] padding=0, int[%[2]d] output_padding=0, int groups=1, int[%[2]d] dilation=1) -> Tensor", transposed, n),
			SBP:    convolved(n, "io"),
			Traits: op.Contraction,
			Names:  []string{"torch.nn.functional." + transposed, "torch." + transposed},
			Doc:    "Transposed convolution, the gradient of " + forward + " with respect to its input: input[b, c, …, y, x]·weight[c, o, …, i, j] is added to out[b, o, …, y·stride − padding + i·dilation, x·stride − padding + j·dilation].",
			Infer:  inferConv(transposedPlan),
			Kernels: append(floatKernels(arg.Input, convTransposeRun[float32](transposedPlan), convTransposeRun[float64](transposedPlan)),
				op.Kernel{Name: "int64", When: op.DTypeIn(arg.Input, tensor.I64), Run: convTransposeRun[int64](transposedPlan)},
				op.Kernel{Name: "no elements", When: noElements(transposedPlan), Priority: 1, Run: zeroResults},
			),
			Grad:   convTransposeGrad(transposedPlan),
			Sample: func(s *op.Sampler) []any { return sampleConvTranspose(s, n) },
			Tol:    ownMagnitude(accumulating(convolutionsTerms, "each element sums at most one product per input channel of its group and kernel position, and the bias")),
		},
	}
}

func convolutionsTerms(a op.Args) int {
	w := a.Value(arg.Weight).Shape()
	return w[0]/max(a.Int(arg.Groups), 1)*tensor.NumElements(w[2:]) + 1
}

// bilinearOps are the three bilinear parts of a convolution, over any number of dimensions.
var bilinearOps = []*op.Def{
	{
		Sig:     "conv.map(Tensor image, Tensor weight, int[] size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
		SBP:     anyOf(bilinearConv("image ni, weight oi -> no"), linear(arg.Image, arg.Weight)),
		Doc:     "Convolution of a batch without bias to a map of a given size; outside the image there are zeros.",
		Infer:   inferBilinear(arg.Image, func(p *plane, image, weight op.Value) []int { return p.shape(image, 0, weight.Shape()[0]) }),
		Kernels: bilinearKernels(arg.Image, mapRun[float32], mapRun[float64], mapRun[complex64], mapRun[complex128]),
		Grad:    convMapGrad,
		Sample:  sampleBilinear(func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor) { return image, weight, mapped }),
		Tol:     ownMagnitude(accumulating(func(a op.Args) int { return patchSize(a.Value(arg.Weight)) }, "each element sums one product per weight of its filter")),
	},
	{
		Sig:     "conv.image(Tensor map, Tensor weight, int[] size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
		SBP:     anyOf(bilinearConv("map no, weight oi -> ni"), linear(arg.Map, arg.Weight)),
		Doc:     "Gradient of conv.map with respect to an image of a given size.",
		Infer:   inferBilinear(arg.Map, func(p *plane, m, weight op.Value) []int { return p.shape(m, 0, p.Groups*weight.Shape()[1]) }),
		Kernels: bilinearKernels(arg.Map, imageRun[float32], imageRun[float64], imageRun[complex64], imageRun[complex128]),
		Grad:    convImageGrad,
		Sample:  sampleBilinear(func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor) { return mapped, weight, image }),
		Tol:     ownMagnitude(accumulating(convImageTerms, "each element sums at most one product per weight")),
	},
	{
		Sig:     "conv.weight(Tensor image, Tensor map, int[] size, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
		SBP:     anyOf(bilinearConv("image ni, map no -> oi"), linear(arg.Image, arg.Map)),
		Doc:     "Gradient of conv.map with respect to weights with kernels of a given size.",
		Infer:   inferBilinear(arg.Image, func(p *plane, image, m op.Value) []int { return p.shape(m, 1, image.Shape()[1]/p.Groups) }),
		Kernels: bilinearKernels(arg.Image, weightRun[float32], weightRun[float64], weightRun[complex64], weightRun[complex128]),
		Grad:    convWeightGrad,
		Sample:  sampleBilinear(func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor) { return image, mapped, weight }),
		Tol:     ownMagnitude(accumulating(convWeightTerms, "each element sums one product per image and output position")),
	},
}

func convMapGrad(g *op.Grad) {
	p := planeOf(g.Args)
	image, weight := g.Value(arg.Image), g.Value(arg.Weight)
	g.To(arg.Image, func() op.Value { return p.image(g, g.G(), conj(g, weight), image) })
	g.To(arg.Weight, func() op.Value { return p.weight(g, conj(g, image), g.G(), weight) })
}

func convImageGrad(g *op.Grad) {
	p := planeOf(g.Args)
	m, weight := g.Value(arg.Map), g.Value(arg.Weight)
	g.To(arg.Map, func() op.Value { return p.mapped(g, g.G(), conj(g, weight), m) })
	g.To(arg.Weight, func() op.Value { return p.weight(g, g.G(), conj(g, m), weight) })
}

func convImageTerms(a op.Args) int {
	return a.Value(arg.Weight).Shape()[0] * patchSize(a.Value(arg.Weight))
}

func convWeightGrad(g *op.Grad) {
	p := planeOf(g.Args)
	image, m := g.Value(arg.Image), g.Value(arg.Map)
	g.To(arg.Image, func() op.Value { return p.image(g, conj(g, m), g.G(), image) })
	g.To(arg.Map, func() op.Value { return p.mapped(g, conj(g, image), g.G(), m) })
}

func convWeightTerms(a op.Args) int {
	s := a.Value(arg.Map).Shape()
	return s[0] * tensor.NumElements(s[2:])
}

// convPlan is a checked convolution: its geometry, where the image X and the
// map Y are the input and the result of a convolution, and the result and the
// input of a transposed one.
type convPlan struct {
	kernel.Conv
	dims    int // of an image
	batched bool
	result  []int
}

func checkAtLeast[N ~string](low int, name N, v []int) error {
	if slices.ContainsFunc(v, func(n int) bool { return n < low || n > math.MaxInt32 }) {
		return op.RuntimeError("%s must be at least %d and below 2^31, but is %v", name, low, v)
	}
	return nil
}

// convArgs checks what convolutions over n dimensions and transposed ones have
// in common. Padding may be a string.
func convArgs(a op.Args, n int) (*convPlan, error) {
	x, w := a.Value(arg.Input).Shape(), a.Value(arg.Weight).Shape()
	if d := len(x); d != n+1 && d != n+2 {
		return nil, op.RuntimeError("expected %dD (unbatched) or %dD (batched) input, but got input of size %s", n+1, n+2, tensor.ShapeString(x))
	}
	if len(w) != n+2 {
		return nil, op.RuntimeError("expected a weight of %d dimensions, but got size %s", n+2, tensor.ShapeString(w))
	}
	groups := a.Int(arg.Groups)
	if groups < 1 {
		return nil, op.RuntimeError("groups must be positive, but is %d", groups)
	}
	if out := w[0]; out < groups || out%groups != 0 {
		return nil, op.RuntimeError("groups=%d must divide dimension 0 of weight %s", groups, tensor.ShapeString(w))
	}
	p := &convPlan{dims: n, batched: len(x) == n+2}
	p.N, p.Groups, p.Kernel = 1, groups, lifted(w[2:], 1)
	if p.batched {
		p.N = x[0]
	}
	if err := p.readSteps(a); err != nil {
		return nil, err
	}
	return p, checkConvTypes(a)
}

// readSteps reads and checks stride, dilation and padding.
func (p *convPlan) readSteps(a op.Args) error {
	stride, err := tuple(a, arg.Stride, p.dims)
	if err != nil {
		return err
	}
	dilation, err := tuple(a, arg.Dilation, p.dims)
	if err != nil {
		return err
	}
	p.Stride, p.Dilation = lifted(stride, 1), lifted(dilation, 1)
	if p.Padding, err = padding(a, p); err != nil {
		return err
	}
	for _, c := range []struct {
		low  int
		name op.IntsArg
		v    [3]int
	}{{1, arg.Stride, p.Stride}, {0, arg.Padding, p.Padding}, {1, arg.Dilation, p.Dilation}, {1, arg.KernelSize, p.Kernel}} {
		if err := checkAtLeast(c.low, c.name, c.v[3-p.dims:]); err != nil {
			return err
		}
	}
	return nil
}

// padding reads the padding argument; 'same' puts the smaller half first.
func padding(a op.Args, p *convPlan) ([3]int, error) {
	text, ok := a.Any(arg.Padding).(string)
	switch {
	case !ok:
		v, err := tuple(a, arg.Padding, p.dims)
		if err != nil {
			return [3]int{}, err
		}
		return lifted(v, 0), nil
	case text == "valid":
		return [3]int{}, nil
	case text != "same":
		return [3]int{}, op.RuntimeError("padding must be 'same', 'valid' or integers, but is '%s'", text)
	case p.Stride != [3]int{1, 1, 1}:
		return [3]int{}, op.RuntimeError("padding='same' is not supported for strided convolutions")
	}
	var half [3]int
	for i := range half {
		half[i] = p.Dilation[i] * (p.Kernel[i] - 1) / 2
	}
	return half, nil
}

func checkConvTypes(a op.Args) error {
	d := a.Value(arg.Input).DType()
	for _, name := range []op.TensorArg{arg.Weight, arg.Bias} {
		if v := a.Value(name); v != nil && v.DType() != d {
			return op.RuntimeError("input and %s must have the same dtype, but have %s and %s", name, d, v.DType())
		}
	}
	return nil
}

func checkConvBias(a op.Args, channels int) error {
	if b := a.Value(arg.Bias); b != nil && !slices.Equal(b.Shape(), []int{channels}) {
		return op.RuntimeError("expected bias to be 1-dimensional with %d elements, but got bias of size %s", channels, tensor.ShapeString(b.Shape()))
	}
	return nil
}

// finish sets the shape of the result.
func (p *convPlan) finish(channels int, size [3]int) {
	p.result = append([]int{channels}, size[3-p.dims:]...)
	if p.batched {
		p.result = append([]int{p.N}, p.result...)
	}
}

func convOf(a op.Args, n int) (*convPlan, error) {
	p, err := convArgs(a, n)
	if err != nil {
		return nil, err
	}
	x, w := a.Value(arg.Input).Shape(), a.Value(arg.Weight).Shape()
	channels := x[len(x)-n-1]
	p.XC, p.YC, p.X = w[1], w[0]/p.Groups, lifted(x[len(x)-n:], 1)
	if channels != p.XC*p.Groups {
		return nil, op.RuntimeError("given groups=%d and weight of size %s, expected input %s to have %d channels, but got %d", p.Groups, tensor.ShapeString(w), tensor.ShapeString(x), p.XC*p.Groups, channels)
	}
	if err := checkConvBias(a, w[0]); err != nil {
		return nil, err
	}
	if slices.Min(p.X[:]) == 0 && p.N*channels != 0 {
		return nil, op.RuntimeError("expected an input with elements, but got size %s", tensor.ShapeString(x))
	}
	for i := range 3 {
		extent, pad := p.Dilation[i]*(p.Kernel[i]-1)+1, 2*p.Padding[i]
		if a.Any(arg.Padding) == "same" {
			pad = extent - 1
		}
		if p.X[i]+pad < extent {
			return nil, op.RuntimeError("kernel size %d (dilated) can't be greater than the padded input size %d", extent, p.X[i]+pad)
		}
		p.Y[i] = (p.X[i]+pad-extent)/p.Stride[i] + 1
	}
	out := w[0]
	if channels == 0 {
		out = 0 // as PyTorch, whatever the weight says
	}
	p.finish(out, p.Y)
	return p, nil
}

func convTransposeOf(a op.Args, n int) (*convPlan, error) {
	p, err := convArgs(a, n)
	if err != nil {
		return nil, err
	}
	extra, err := tuple(a, arg.OutputPadding, n)
	if err != nil {
		return nil, err
	}
	x, w := a.Value(arg.Input).Shape(), a.Value(arg.Weight).Shape()
	p.XC, p.YC, p.Y = w[1], w[0]/p.Groups, lifted(x[len(x)-n:], 1)
	if channels := x[len(x)-n-1]; channels != w[0] {
		return nil, op.RuntimeError("given weight of size %s, expected input %s to have %d channels, but got %d", tensor.ShapeString(w), tensor.ShapeString(x), w[0], channels)
	}
	if err := checkConvBias(a, w[1]*p.Groups); err != nil {
		return nil, err
	}
	if err := checkAtLeast(0, arg.OutputPadding, extra); err != nil {
		return nil, err
	}
	after := lifted(extra, 0)
	for i := range 3 {
		p.X[i] = (p.Y[i]-1)*p.Stride[i] - 2*p.Padding[i] + p.Dilation[i]*(p.Kernel[i]-1) + after[i] + 1
	}
	p.finish(w[1]*p.Groups, p.X)
	return p, checkTransposed(p, x, after)
}

// checkTransposed rejects sizes that only a batch without images may have.
func checkTransposed(p *convPlan, x []int, extra [3]int) error {
	low := 1
	if p.N == 0 {
		low = 0
	}
	if slices.Min(p.X[:]) < low {
		return op.RuntimeError("given input size %s, the calculated output size %v is too small", tensor.ShapeString(x), p.X[3-p.dims:])
	}
	if p.N == 0 && p.XC == 0 && p.YC > 0 {
		return op.IndexError("expected a weight with elements, but it has no output channels")
	}
	if p.N == 0 {
		return nil
	}
	if slices.Min(p.Y[:]) == 0 || p.XC == 0 {
		return op.RuntimeError("expected an input and a weight with elements, but the input has size %s and the weight %d output channels", tensor.ShapeString(x), p.XC*p.Groups)
	}
	for i := 3 - p.dims; i < 3; i++ {
		if extra[i] >= p.Stride[i] && extra[i] >= p.Dilation[i] {
			return op.RuntimeError("output padding must be smaller than either stride or dilation, but got output_padding %v, stride %v, dilation %v", extra, p.Stride, p.Dilation)
		}
	}
	return nil
}

func inferConv(plan func(op.Args) (*convPlan, error)) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		p, err := plan(a)
		if err != nil {
			return nil, err
		}
		return one(a.Value(arg.Input).DType(), p.result, nil), nil
	}
}

var undilated = op.Pred{
	Text: "dilation = 1",
	Holds: func(a op.Args) bool {
		return !slices.ContainsFunc(a.Ints(arg.Dilation), func(n int) bool { return n != 1 })
	},
}

func noElements(plan func(op.Args) (*convPlan, error)) op.Pred {
	return op.Pred{
		Text: "no elements in the result",
		Holds: func(a op.Args) bool {
			p, err := plan(a)
			return err == nil && tensor.NumElements(p.result) == 0
		},
	}
}

// filterSize is the number of weights of one output channel of a convolution.
func filterSize(a op.Args) int { return patchSize(a.Value(arg.Weight)) }

func patchSize(weight op.Value) int { return tensor.NumElements(weight.Shape()[1:]) }

// asBatch returns a view of an unbatched image of n dimensions as a batch of one.
func asBatch(t *tensor.Tensor, n int) *tensor.Tensor {
	if t.Dim() == n+2 {
		return t
	}
	return t.Reshape(append([]int{1}, t.Shape()...)...)
}

// planar returns t with the positions of each channel at equal steps.
func planar[T gemmType](t *tensor.Tensor) kernel.Volume[T] {
	v := kernel.VolumeOf[T](t)
	if !v.Planar(lifted(t.Shape()[2:], 1)) {
		v = kernel.VolumeOf[T](t.Clone())
	}
	return v
}

func convRun[T gemmType](plan func(op.Args) (*convPlan, error)) func(c *op.Run) error {
	return func(c *op.Run) error {
		p, err := plan(c.Args)
		if err != nil {
			return err
		}
		x := kernel.VolumeOf[T](asBatch(c.Tensor(arg.Input), p.dims))
		w, b := contiguousData[T](c.Tensor(arg.Weight)), contiguousData[T](c.Tensor(arg.Bias))
		kernel.ConvForwardThen(&p.Conv, x, w, b, tensor.Data[T](c.Out[0]), c.Done)
		return nil
	}
}

func convOther(plan func(op.Args) (*convPlan, error)) func(c *op.Run) error {
	return func(c *op.Run) error {
		return byElement(c, arg.Input, elementRuns{
			convRun[uint8](plan), convRun[int8](plan), convRun[int16](plan), convRun[int32](plan), convRun[int64](plan), convRun[complex64](plan), convRun[complex128](plan),
		})
	}
}

func convTransposeRun[T gemmType](plan func(op.Args) (*convPlan, error)) func(c *op.Run) error {
	return func(c *op.Run) error {
		p, err := plan(c.Args)
		if err != nil {
			return err
		}
		y := planar[T](asBatch(c.Tensor(arg.Input), p.dims))
		w, b := contiguousData[T](c.Tensor(arg.Weight)), contiguousData[T](c.Tensor(arg.Bias))
		kernel.ConvInput(&p.Conv, y, w, b, tensor.Data[T](c.Out[0]))
		return nil
	}
}

func convGrad(plan func(op.Args) (*convPlan, error)) func(g *op.Grad) {
	return func(g *op.Grad) {
		p, err := plan(g.Args)
		if err != nil {
			op.Fail(err)
		}
		if tensor.NumElements(p.result) == 0 {
			zeroGrads(arg.Input, arg.Weight, arg.Bias)(g)
			return
		}
		x, w := g.Value(arg.Input), g.Value(arg.Weight)
		l := p.plane()
		image, cot := p.batch(g, x), p.batch(g, g.G())
		g.To(arg.Input, func() op.Value { return g.Reshape(l.image(g, cot, conj(g, w), image), x.Shape()) })
		g.To(arg.Weight, func() op.Value { return l.weight(g, conj(g, image), cot, w) })
		g.To(arg.Bias, func() op.Value { return p.biasGrad(g, cot) })
	}
}

func convTransposeGrad(plan func(op.Args) (*convPlan, error)) func(g *op.Grad) {
	return func(g *op.Grad) {
		p, err := plan(g.Args)
		if err != nil {
			op.Fail(err)
		}
		if tensor.NumElements(p.result) == 0 {
			zeroGrads(arg.Input, arg.Weight, arg.Bias)(g)
			return
		}
		x, w := g.Value(arg.Input), g.Value(arg.Weight)
		l := p.plane()
		m, cot := p.batch(g, x), p.batch(g, g.G())
		g.To(arg.Input, func() op.Value { return g.Reshape(l.mapped(g, cot, w, m), x.Shape()) })
		g.To(arg.Weight, func() op.Value { return l.weight(g, cot, m, w) })
		g.To(arg.Bias, func() op.Value { return p.biasGrad(g, cot) })
	}
}

// biasGrad sums a batch over all but its channels.
func (p *convPlan) biasGrad(g *op.Grad, cot op.Value) op.Value {
	dims := allDims(p.dims + 2)
	return g.Op("sum", cot, op.Kw("dim", append(dims[:1], dims[2:]...)))
}

// batch returns an unbatched image as a batch of one.
func (p *convPlan) batch(g *op.Grad, v op.Value) op.Value {
	if p.batched {
		return v
	}
	return g.Reshape(v, append([]int{1}, v.Shape()...))
}

// plane is the geometry that the three bilinear parts of a convolution share.
type plane struct {
	kernel.Window
	Groups int
	Size   []int // of the result
}

func (p *convPlan) plane() *plane { return &plane{Window: p.Window, Groups: p.Groups} }

func planeOf(a op.Args) *plane {
	p := &plane{Groups: a.Int(arg.Groups), Size: a.Ints(arg.Size)}
	p.Stride, p.Padding, p.Dilation = lifted(a.Ints(arg.Stride), 1), lifted(a.Ints(arg.Padding), 0), lifted(a.Ints(arg.Dilation), 1)
	return p
}

// shape returns the result's shape: the size of dimension dim of v, then the other one.
func (p *plane) shape(v op.Value, dim, channels int) []int {
	return append([]int{v.Shape()[dim], channels}, p.Size...)
}

func (p *plane) apply(g *op.Grad, id string, x, y, like op.Value) op.Value {
	size := like.Shape()[2:]
	from := 3 - len(size)
	return g.Op(id, x, y, size, p.Stride[from:], p.Padding[from:], p.Dilation[from:], p.Groups)
}

// image returns the image, of like's size, that receives the map through the weights.
func (p *plane) image(g *op.Grad, m, weight, like op.Value) op.Value {
	return p.apply(g, "conv.image", m, weight, like)
}

// mapped returns the map, of like's size, of the image.
func (p *plane) mapped(g *op.Grad, image, weight, like op.Value) op.Value {
	return p.apply(g, "conv.map", image, weight, like)
}

// weight returns the weights, with kernels of like's size, that connect image and map.
func (p *plane) weight(g *op.Grad, image, m, like op.Value) op.Value {
	return p.apply(g, "conv.weight", image, m, like)
}

// inferBilinear infers one result of the dtype of the named argument. Its
// shape follows from the first two arguments.
func inferBilinear(first op.TensorArg, shape func(p *plane, x, y op.Value) []int) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		vs := a.AllValues()
		return one(a.Value(first).DType(), shape(planeOf(a), vs[0], vs[1]), nil), nil
	}
}

func bilinearKernels(first op.TensorArg, run32, run64, run64c, run128c func(c *op.Run) error) []op.Kernel {
	return append(floatKernels(first, run32, run64),
		op.Kernel{Name: "complex64", When: op.DTypeIn(first, tensor.C64), Run: run64c},
		op.Kernel{Name: "complex128", When: op.DTypeIn(first, tensor.C128), Run: run128c},
	)
}

// conv returns the geometry of a bilinear part with the given operands.
func (p *plane) conv(image, m, weight *tensor.Tensor) *kernel.Conv {
	x, y, w := image.Shape(), m.Shape(), weight.Shape()
	c := &kernel.Conv{N: x[0], Groups: p.Groups, XC: w[1], YC: w[0] / p.Groups, X: lifted(x[2:], 1), Y: lifted(y[2:], 1), Window: p.Window}
	c.Kernel = lifted(w[2:], 1)
	return c
}

func mapRun[T gemmType](c *op.Run) error {
	image, weight, out := c.Tensor(arg.Image), c.Tensor(arg.Weight), c.Out[0]
	conv := planeOf(c.Args).conv(image, out, weight)
	kernel.ConvForward(conv, kernel.VolumeOf[T](image), contiguousData[T](weight), nil, tensor.Data[T](out))
	return nil
}

func imageRun[T gemmType](c *op.Run) error {
	m, weight, out := c.Tensor(arg.Map), c.Tensor(arg.Weight), c.Out[0]
	conv := planeOf(c.Args).conv(out, m, weight)
	kernel.ConvInput(conv, planar[T](m), contiguousData[T](weight), nil, tensor.Data[T](out))
	return nil
}

func weightRun[T gemmType](c *op.Run) error {
	image, m, out := c.Tensor(arg.Image), c.Tensor(arg.Map), c.Out[0]
	conv := planeOf(c.Args).conv(image, m, out)
	kernel.ConvWeight(conv, kernel.VolumeOf[T](image), contiguousData[T](m), tensor.Data[T](out))
	return nil
}

// convSample is a random legal geometry.
type convSample struct {
	n, groups, xc, yc                       int
	size, kernel, stride, padding, dilation []int
}

func sampleConv(s *op.Sampler, n int) convSample {
	c := convSample{n: int(s.Int(1, 3)), groups: int(s.Int(1, 3)), xc: int(s.Int(1, 3)), yc: int(s.Int(1, 3))}
	for i := range n {
		c.kernel = append(c.kernel, int(s.Int(1, 4)))
		c.stride = append(c.stride, int(s.Int(1, 4)))
		c.padding = append(c.padding, int(s.Int(0, 3)))
		c.dilation = append(c.dilation, int(s.Int(1, 3)))
		c.size = append(c.size, max(c.dilation[i]*(c.kernel[i]-1)+1-2*c.padding[i], 1)+int(s.Int(0, 4)))
	}
	return c
}

// operands draws the input, the weight and the bias, if any, of an image with
// the given channels that is mapped to other ones.
func (c *convSample) operands(s *op.Sampler, in, out int) (x, weight *tensor.Tensor, bias any) {
	shape := append([]int{c.n, c.groups * in}, c.size...)
	if s.Bool() {
		shape = shape[1:]
	}
	if s.Bool() {
		bias = s.Tensor(-2, 2, c.groups*out)
	}
	return s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, append([]int{c.groups * c.yc, c.xc}, c.kernel...)...), bias
}

func sampleConvolution(s *op.Sampler, n int) []any {
	c := sampleConv(s, n)
	x, weight, bias := c.operands(s, c.xc, c.yc)
	return []any{x, weight, bias, c.stride, c.padding, c.dilation, c.groups}
}

func sampleConvTranspose(s *op.Sampler, n int) []any {
	c := sampleConv(s, n)
	extra := make([]int, n)
	for i := range n {
		extra[i] = int(s.Int(0, int64(max(c.stride[i], c.dilation[i]))))
		reach := c.dilation[i]*(c.kernel[i]-1) + extra[i]
		c.padding[i] = min(c.padding[i], ((c.size[i]-1)*c.stride[i]+reach)/2)
	}
	x, weight, bias := c.operands(s, c.yc, c.xc)
	return []any{x, weight, bias, c.stride, c.padding, extra, c.groups, c.dilation}
}

// sampleBilinear draws the operands of conv.map and lets choose which are
// the arguments and which gives the size of the result.
func sampleBilinear(choose func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor)) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		n := 1 + s.Index(3)
		c := sampleConv(s, n)
		image := s.Tensor(-2, 2, append([]int{c.n, c.groups * c.xc}, c.size...)...)
		weight := s.Tensor(-2, 2, append([]int{c.groups * c.yc, c.xc}, c.kernel...)...)
		out := []int{c.n, c.groups * c.yc}
		for i := range n {
			out = append(out, (c.size[i]+2*c.padding[i]-c.dilation[i]*(c.kernel[i]-1)-1)/c.stride[i]+1)
		}
		mapped := s.Tensor(-2, 2, out...)
		x, y, size := choose(image, mapped, weight)
		return []any{x, y, size.Shape()[2:], c.stride, c.padding, c.dilation, c.groups}
	}
}
