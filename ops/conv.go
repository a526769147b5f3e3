package ops

import (
	"slices"

	"plumb/kernel"
	"plumb/op"
	"plumb/tensor"
)

var convOps = []*op.Def{
	{
		Sig:       "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
		Magnitude: "conv2d",
		More:      []string{"conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str padding='valid', int[2] dilation=1, int groups=1) -> Tensor"},
		Names:     []string{"torch.nn.functional.conv2d", "torch.conv2d"},
		Doc:       "Cross-correlation in 2 dimensions: out[n, o, y, x] = bias[o] + Σ weight[o, c, i, j]·input[n, c, y·stride − padding + i·dilation, x·stride − padding + j·dilation], c over the channels of o's group.",
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := conv2dOf(a)
			if err != nil {
				return nil, err
			}
			return one(a.Value("input").DType(), p.result, nil), nil
		},
		Kernels: append(floatKernels("input", conv2dRun[float32], conv2dRun[float64]),
			op.Kernel{Name: "integer", When: op.And(op.DTypeIn("input", integerTypes...), undilated), Run: conv2dOther},
			op.Kernel{Name: "int64 and complex", When: op.DTypeIn("input", tensor.I64, tensor.C64, tensor.C128), Run: conv2dOther},
			op.Kernel{Name: "no elements", When: noElements(conv2dOf), Priority: 1, Run: zeroResults},
		),
		Grad:   conv2dGrad,
		Sample: sampleConv2d,
		Tol:    accumulating(func(a op.Args) int { return filterSize(a) + 1 }, "each element sums one product per weight of its filter and the bias"),
	},
	{
		Sig:       "conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
		Magnitude: "conv_transpose2d",
		Names:     []string{"torch.nn.functional.conv_transpose2d", "torch.conv_transpose2d"},
		Doc:       "Transposed convolution in 2 dimensions, the gradient of conv2d with respect to its input: input[n, c, y, x]·weight[c, o, i, j] is added to out[n, o, y·stride − padding + i·dilation, x·stride − padding + j·dilation].",
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := convTranspose2dOf(a)
			if err != nil {
				return nil, err
			}
			return one(a.Value("input").DType(), p.result, nil), nil
		},
		Kernels: append(floatKernels("input", convTranspose2dRun[float32], convTranspose2dRun[float64]),
			op.Kernel{Name: "int64", When: op.DTypeIn("input", tensor.I64), Run: convTranspose2dRun[int64]},
			op.Kernel{Name: "no elements", When: noElements(convTranspose2dOf), Priority: 1, Run: zeroResults},
		),
		Grad:   convTranspose2dGrad,
		Sample: sampleConvTranspose2d,
		Tol: accumulating(func(a op.Args) int {
			w := a.Value("weight").Shape()
			return w[0]/max(a.Int("groups"), 1)*w[2]*w[3] + 1
		}, "each element sums at most one product per input channel of its group and kernel position, and the bias"),
	},
	{
		Sig:       "conv2d.map(Tensor image, Tensor weight, int[2] size, int[2] stride, int[2] padding, int[2] dilation, int groups) -> Tensor",
		Magnitude: "conv2d.map",
		Doc:       "conv2d of a batch without bias to a map of a given size; outside the image there are zeros.",
		Infer:     inferBilinear("image", func(p *plane, image, weight op.Value) []int { return p.shape(image, 0, weight.Shape()[0]) }),
		Kernels:   bilinearKernels("image", mapRun[float32], mapRun[float64], mapRun[complex64], mapRun[complex128]),
		Grad: func(g *op.Grad) {
			p := planeOf(g.Args)
			image, weight := g.Value("image"), g.Value("weight")
			g.To("image", func() op.Value { return p.image(g, g.G(), conj(g, weight), image) })
			g.To("weight", func() op.Value { return p.weight(g, conj(g, image), g.G(), weight) })
		},
		Sample: sampleBilinear(func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor) { return image, weight, mapped }),
		Tol:    accumulating(func(a op.Args) int { return patchSize(a.Value("weight")) }, "each element sums one product per weight of its filter"),
	},
	{
		Sig:       "conv2d.image(Tensor map, Tensor weight, int[2] size, int[2] stride, int[2] padding, int[2] dilation, int groups) -> Tensor",
		Magnitude: "conv2d.image",
		Doc:       "Gradient of conv2d.map with respect to an image of a given size.",
		Infer:     inferBilinear("map", func(p *plane, m, weight op.Value) []int { return p.shape(m, 0, p.Groups*weight.Shape()[1]) }),
		Kernels:   bilinearKernels("map", imageRun[float32], imageRun[float64], imageRun[complex64], imageRun[complex128]),
		Grad: func(g *op.Grad) {
			p := planeOf(g.Args)
			m, weight := g.Value("map"), g.Value("weight")
			g.To("map", func() op.Value { return p.mapped(g, g.G(), conj(g, weight), m) })
			g.To("weight", func() op.Value { return p.weight(g, g.G(), conj(g, m), weight) })
		},
		Sample: sampleBilinear(func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor) { return mapped, weight, image }),
		Tol: accumulating(func(a op.Args) int {
			return a.Value("weight").Shape()[0] * patchSize(a.Value("weight"))
		}, "each element sums at most one product per weight"),
	},
	{
		Sig:       "conv2d.weight(Tensor image, Tensor map, int[2] size, int[2] stride, int[2] padding, int[2] dilation, int groups) -> Tensor",
		Magnitude: "conv2d.weight",
		Doc:       "Gradient of conv2d.map with respect to weights with kernels of a given size.",
		Infer:     inferBilinear("image", func(p *plane, image, m op.Value) []int { return p.shape(m, 1, image.Shape()[1]/p.Groups) }),
		Kernels:   bilinearKernels("image", weightRun[float32], weightRun[float64], weightRun[complex64], weightRun[complex128]),
		Grad: func(g *op.Grad) {
			p := planeOf(g.Args)
			image, m := g.Value("image"), g.Value("map")
			g.To("image", func() op.Value { return p.image(g, conj(g, m), g.G(), image) })
			g.To("map", func() op.Value { return p.mapped(g, conj(g, image), g.G(), m) })
		},
		Sample: sampleBilinear(func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor) { return image, mapped, weight }),
		Tol: accumulating(func(a op.Args) int {
			s := a.Value("map").Shape()
			return s[0] * s[2] * s[3]
		}, "each element sums one product per image and output position"),
	},
}

// convPlan is a checked convolution: its geometry, where the image X and the
// map Y are the input and the result of conv2d, and the result and the input
// of conv_transpose2d.
type convPlan struct {
	kernel.Conv
	batched bool
	result  []int
}

// pairs reads the named int[2] arguments.
func pairs(a op.Args, names ...string) ([][2]int, error) {
	var out [][2]int
	for _, name := range names {
		v := a.Ints(name)
		if len(v) != 2 {
			return nil, op.RuntimeError("expected %s to be a single integer value or a list of 2 values, but got %s=%s", name, name, tensor.ShapeString(v))
		}
		out = append(out, [2]int(v))
	}
	return out, nil
}

func checkAtLeast(low int, name string, pair [2]int) error {
	if min(pair[0], pair[1]) < low {
		return op.RuntimeError("%s must be at least %d, but is %v", name, low, pair)
	}
	return nil
}

// convArgs checks what conv2d and conv_transpose2d have in common. Padding may
// be a string.
func convArgs(a op.Args) (*convPlan, error) {
	x, w := a.Value("input"), a.Value("weight")
	if n := len(x.Shape()); n != 3 && n != 4 {
		return nil, op.RuntimeError("expected 3D (unbatched) or 4D (batched) input, but got input of size %s", tensor.ShapeString(x.Shape()))
	}
	if len(w.Shape()) != 4 {
		return nil, op.RuntimeError("expected a weight of 4 dimensions, but got size %s", tensor.ShapeString(w.Shape()))
	}
	groups := a.Int("groups")
	if groups < 1 {
		return nil, op.RuntimeError("groups must be positive, but is %d", groups)
	}
	if out := w.Shape()[0]; out < groups || out%groups != 0 {
		return nil, op.RuntimeError("groups=%d must divide dimension 0 of weight %s", groups, tensor.ShapeString(w.Shape()))
	}
	v, err := pairs(a, "stride", "dilation")
	if err != nil {
		return nil, err
	}
	p := &convPlan{batched: len(x.Shape()) == 4}
	p.Groups, p.Stride, p.Dilation = groups, v[0], v[1]
	p.Kernel = [2]int(w.Shape()[2:])
	p.N = 1
	if p.batched {
		p.N = x.Shape()[0]
	}
	if p.Padding, err = padding(a, p); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		low  int
		name string
		pair [2]int
	}{{1, "stride", p.Stride}, {0, "padding", p.Padding}, {1, "dilation", p.Dilation}, {1, "kernel size", p.Kernel}} {
		if err := checkAtLeast(c.low, c.name, c.pair); err != nil {
			return nil, err
		}
	}
	return p, checkConvTypes(a)
}

// padding reads the padding argument; 'same' puts the smaller half first.
func padding(a op.Args, p *convPlan) ([2]int, error) {
	text, ok := a.Any("padding").(string)
	switch {
	case !ok:
		v, err := pairs(a, "padding")
		if err != nil {
			return [2]int{}, err
		}
		return v[0], nil
	case text == "valid":
		return [2]int{}, nil
	case text != "same":
		return [2]int{}, op.RuntimeError("padding must be 'same', 'valid' or integers, but is '%s'", text)
	case p.Stride != [2]int{1, 1}:
		return [2]int{}, op.RuntimeError("padding='same' is not supported for strided convolutions")
	}
	return [2]int{p.Dilation[0] * (p.Kernel[0] - 1) / 2, p.Dilation[1] * (p.Kernel[1] - 1) / 2}, nil
}

func checkConvTypes(a op.Args) error {
	d := a.Value("input").DType()
	for _, name := range []string{"weight", "bias"} {
		if v := a.Value(name); v != nil && v.DType() != d {
			return op.RuntimeError("input and %s must have the same dtype, but have %s and %s", name, d, v.DType())
		}
	}
	return nil
}

func checkConvBias(a op.Args, channels int) error {
	if b := a.Value("bias"); b != nil && !slices.Equal(b.Shape(), []int{channels}) {
		return op.RuntimeError("expected bias to be 1-dimensional with %d elements, but got bias of size %s", channels, tensor.ShapeString(b.Shape()))
	}
	return nil
}

// finish sets the shape of the result.
func (p *convPlan) finish(channels int, size [2]int) {
	p.result = []int{channels, size[0], size[1]}
	if p.batched {
		p.result = append([]int{p.N}, p.result...)
	}
}

func conv2dOf(a op.Args) (*convPlan, error) {
	p, err := convArgs(a)
	if err != nil {
		return nil, err
	}
	x, w := a.Value("input").Shape(), a.Value("weight").Shape()
	channels := x[len(x)-3]
	p.XC, p.YC, p.X = w[1], w[0]/p.Groups, [2]int(x[len(x)-2:])
	if channels != p.XC*p.Groups {
		return nil, op.RuntimeError("given groups=%d and weight of size %s, expected input %s to have %d channels, but got %d", p.Groups, tensor.ShapeString(w), tensor.ShapeString(x), p.XC*p.Groups, channels)
	}
	if err := checkConvBias(a, w[0]); err != nil {
		return nil, err
	}
	if min(p.X[0], p.X[1]) == 0 && p.N*channels != 0 {
		return nil, op.RuntimeError("expected an input with elements, but got size %s", tensor.ShapeString(x))
	}
	for i := range 2 {
		extent, pad := p.Dilation[i]*(p.Kernel[i]-1)+1, 2*p.Padding[i]
		if a.Any("padding") == "same" {
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

func convTranspose2dOf(a op.Args) (*convPlan, error) {
	p, err := convArgs(a)
	if err != nil {
		return nil, err
	}
	v, err := pairs(a, "output_padding")
	if err != nil {
		return nil, err
	}
	extra := v[0]
	x, w := a.Value("input").Shape(), a.Value("weight").Shape()
	p.XC, p.YC, p.Y = w[1], w[0]/p.Groups, [2]int(x[len(x)-2:])
	if x[len(x)-3] != w[0] {
		return nil, op.RuntimeError("given weight of size %s, expected input %s to have %d channels, but got %d", tensor.ShapeString(w), tensor.ShapeString(x), w[0], x[len(x)-3])
	}
	if err := checkConvBias(a, w[1]*p.Groups); err != nil {
		return nil, err
	}
	if err := checkAtLeast(0, "output_padding", extra); err != nil {
		return nil, err
	}
	for i := range 2 {
		p.X[i] = (p.Y[i]-1)*p.Stride[i] - 2*p.Padding[i] + p.Dilation[i]*(p.Kernel[i]-1) + extra[i] + 1
	}
	p.finish(w[1]*p.Groups, p.X)
	return p, checkTransposed(p, x, extra)
}

// checkTransposed rejects sizes that only a batch without images may have.
func checkTransposed(p *convPlan, x []int, extra [2]int) error {
	low := 1
	if p.N == 0 {
		low = 0
	}
	if min(p.X[0], p.X[1]) < low {
		return op.RuntimeError("given input size %s, the calculated output size %v is too small", tensor.ShapeString(x), p.X)
	}
	if p.N == 0 {
		return nil
	}
	if min(p.Y[0], p.Y[1]) == 0 || p.XC == 0 {
		return op.RuntimeError("expected an input and a weight with elements, but the input has size %s and the weight %d output channels", tensor.ShapeString(x), p.XC*p.Groups)
	}
	for i := range 2 {
		if extra[i] >= p.Stride[i] && extra[i] >= p.Dilation[i] {
			return op.RuntimeError("output padding must be smaller than either stride or dilation, but got output_padding %v, stride %v, dilation %v", extra, p.Stride, p.Dilation)
		}
	}
	return nil
}

var undilated = op.Pred{
	Text: "dilation = 1",
	Holds: func(a op.Args) bool {
		return slices.Equal(a.Ints("dilation"), []int{1, 1})
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

// filterSize is the number of weights of one output channel of conv2d.
func filterSize(a op.Args) int { return patchSize(a.Value("weight")) }

func patchSize(weight op.Value) int {
	w := weight.Shape()
	return w[1] * w[2] * w[3]
}

// asBatch returns a view of an unbatched image as a batch of one.
func asBatch(t *tensor.Tensor) *tensor.Tensor {
	if t.Dim() == 4 {
		return t
	}
	return t.Reshape(append([]int{1}, t.Shape()...)...)
}

// planar returns t with the positions of each channel at equal steps.
func planar[T gemmType](t *tensor.Tensor) kernel.Volume[T] {
	v := kernel.VolumeOf[T](t)
	if !v.Planar(t.Shape()[3]) {
		v = kernel.VolumeOf[T](t.Clone())
	}
	return v
}

func conv2dRun[T gemmType](c *op.Run) error {
	p, err := conv2dOf(c.Args)
	if err != nil {
		return err
	}
	x := kernel.VolumeOf[T](asBatch(c.Tensor("input")))
	w, b := contiguousData[T](c.Tensor("weight")), contiguousData[T](c.Tensor("bias"))
	kernel.ConvForward(&p.Conv, x, w, b, tensor.Data[T](c.Out[0]))
	return nil
}

func conv2dOther(c *op.Run) error {
	return byElement(c, "input", elementRuns{
		conv2dRun[uint8], conv2dRun[int8], conv2dRun[int16], conv2dRun[int32], conv2dRun[int64], conv2dRun[complex64], conv2dRun[complex128],
	})
}

func convTranspose2dRun[T gemmType](c *op.Run) error {
	p, err := convTranspose2dOf(c.Args)
	if err != nil {
		return err
	}
	y := planar[T](asBatch(c.Tensor("input")))
	w, b := contiguousData[T](c.Tensor("weight")), contiguousData[T](c.Tensor("bias"))
	kernel.ConvInput(&p.Conv, y, w, b, tensor.Data[T](c.Out[0]))
	return nil
}

func conv2dGrad(g *op.Grad) {
	p, err := conv2dOf(g.Args)
	if err != nil {
		op.Fail(err)
	}
	if tensor.NumElements(p.result) == 0 {
		zeroConvGrads(g)
		return
	}
	x, w := g.Value("input"), g.Value("weight")
	l := p.plane()
	image, cot := l.batch(g, x), l.batch(g, g.G())
	g.To("input", func() op.Value { return g.Reshape(l.image(g, cot, conj(g, w), image), x.Shape()) })
	g.To("weight", func() op.Value { return l.weight(g, conj(g, image), cot, w) })
	g.To("bias", func() op.Value { return g.Op("sum", cot, op.Kw("dim", []int{0, 2, 3})) })
}

func convTranspose2dGrad(g *op.Grad) {
	p, err := convTranspose2dOf(g.Args)
	if err != nil {
		op.Fail(err)
	}
	if tensor.NumElements(p.result) == 0 {
		zeroConvGrads(g)
		return
	}
	x, w := g.Value("input"), g.Value("weight")
	l := p.plane()
	m, cot := l.batch(g, x), l.batch(g, g.G())
	g.To("input", func() op.Value { return g.Reshape(l.mapped(g, cot, w, m), x.Shape()) })
	g.To("weight", func() op.Value { return l.weight(g, cot, m, w) })
	g.To("bias", func() op.Value { return g.Op("sum", cot, op.Kw("dim", []int{0, 2, 3})) })
}

func zeroConvGrads(g *op.Grad) {
	for _, name := range []string{"input", "weight", "bias"} {
		g.To(name, func() op.Value { return zeros(g, g.Value(name)) })
	}
}

// plane is the geometry that the three bilinear parts of a convolution share.
type plane struct {
	kernel.Window
	Groups int
	Size   [2]int // of the result
}

func (p *convPlan) plane() *plane { return &plane{Window: p.Window, Groups: p.Groups} }

func planeOf(a op.Args) *plane {
	p := &plane{Groups: a.Int("groups"), Size: [2]int(a.Ints("size"))}
	p.Stride, p.Padding, p.Dilation = [2]int(a.Ints("stride")), [2]int(a.Ints("padding")), [2]int(a.Ints("dilation"))
	return p
}

// batch returns an unbatched image as a batch of one.
func (p *plane) batch(g *op.Grad, v op.Value) op.Value {
	if len(v.Shape()) == 4 {
		return v
	}
	return g.Reshape(v, append([]int{1}, v.Shape()...))
}

// shape returns the result's shape: the size of dimension dim of v, then the other one.
func (p *plane) shape(v op.Value, dim, channels int) []int {
	return []int{v.Shape()[dim], channels, p.Size[0], p.Size[1]}
}

func (p *plane) apply(g *op.Grad, id string, x, y, like op.Value) op.Value {
	return g.Op(id, x, y, like.Shape()[2:], p.Stride[:], p.Padding[:], p.Dilation[:], p.Groups)
}

// image returns the image, of like's size, that receives the map through the weights.
func (p *plane) image(g *op.Grad, m, weight, like op.Value) op.Value {
	return p.apply(g, "conv2d.image", m, weight, like)
}

// mapped returns the map, of like's size, of the image.
func (p *plane) mapped(g *op.Grad, image, weight, like op.Value) op.Value {
	return p.apply(g, "conv2d.map", image, weight, like)
}

// weight returns the weights, with kernels of like's size, that connect image and map.
func (p *plane) weight(g *op.Grad, image, m, like op.Value) op.Value {
	return p.apply(g, "conv2d.weight", image, m, like)
}

// inferBilinear infers one result of the dtype of the named argument. Its
// shape follows from the first two arguments.
func inferBilinear(first string, shape func(p *plane, x, y op.Value) []int) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		vs := a.AllValues()
		return one(a.Value(first).DType(), shape(planeOf(a), vs[0], vs[1]), nil), nil
	}
}

func bilinearKernels(first string, run32, run64, run64c, run128c func(c *op.Run) error) []op.Kernel {
	return append(floatKernels(first, run32, run64),
		op.Kernel{Name: "complex64", When: op.DTypeIn(first, tensor.C64), Run: run64c},
		op.Kernel{Name: "complex128", When: op.DTypeIn(first, tensor.C128), Run: run128c},
	)
}

// conv returns the geometry of a bilinear part with the given operands.
func (p *plane) conv(image, m, weight *tensor.Tensor) *kernel.Conv {
	x, y, w := image.Shape(), m.Shape(), weight.Shape()
	c := &kernel.Conv{N: x[0], Groups: p.Groups, XC: w[1], YC: w[0] / p.Groups, X: [2]int(x[2:]), Y: [2]int(y[2:]), Window: p.Window}
	c.Kernel = [2]int(w[2:])
	return c
}

func mapRun[T gemmType](c *op.Run) error {
	image, weight, out := c.Tensor("image"), c.Tensor("weight"), c.Out[0]
	conv := planeOf(c.Args).conv(image, out, weight)
	kernel.ConvForward(conv, kernel.VolumeOf[T](image), contiguousData[T](weight), nil, tensor.Data[T](out))
	return nil
}

func imageRun[T gemmType](c *op.Run) error {
	m, weight, out := c.Tensor("map"), c.Tensor("weight"), c.Out[0]
	conv := planeOf(c.Args).conv(out, m, weight)
	kernel.ConvInput(conv, planar[T](m), contiguousData[T](weight), nil, tensor.Data[T](out))
	return nil
}

func weightRun[T gemmType](c *op.Run) error {
	image, m, out := c.Tensor("image"), c.Tensor("map"), c.Out[0]
	conv := planeOf(c.Args).conv(image, m, out)
	kernel.ConvWeight(conv, kernel.VolumeOf[T](image), contiguousData[T](m), tensor.Data[T](out))
	return nil
}

// convSample is a random legal geometry.
type convSample struct {
	n, groups, xc, yc                       int
	size, kernel, stride, padding, dilation [2]int
}

func sampleConv(s *op.Sampler) convSample {
	c := convSample{n: int(s.Int(1, 3)), groups: int(s.Int(1, 3)), xc: int(s.Int(1, 3)), yc: int(s.Int(1, 3))}
	for i := range 2 {
		c.kernel[i], c.stride[i], c.padding[i], c.dilation[i] = int(s.Int(1, 4)), int(s.Int(1, 4)), int(s.Int(0, 3)), int(s.Int(1, 3))
		c.size[i] = max(c.dilation[i]*(c.kernel[i]-1)+1-2*c.padding[i], 1) + int(s.Int(0, 4))
	}
	return c
}

func sampleConv2d(s *op.Sampler) []any {
	c := sampleConv(s)
	x := []int{c.n, c.groups * c.xc, c.size[0], c.size[1]}
	if s.Bool() {
		x = x[1:]
	}
	var bias any
	if s.Bool() {
		bias = s.Tensor(-2, 2, c.groups*c.yc)
	}
	weight := s.Tensor(-2, 2, c.groups*c.yc, c.xc, c.kernel[0], c.kernel[1])
	return []any{s.Tensor(-2, 2, x...), weight, bias, c.stride[:], c.padding[:], c.dilation[:], c.groups}
}

func sampleConvTranspose2d(s *op.Sampler) []any {
	c := sampleConv(s)
	var extra [2]int
	for i := range 2 {
		extra[i] = int(s.Int(0, int64(max(c.stride[i], c.dilation[i]))))
		reach := c.dilation[i]*(c.kernel[i]-1) + extra[i]
		c.padding[i] = min(c.padding[i], ((c.size[i]-1)*c.stride[i]+reach)/2)
	}
	x := []int{c.n, c.groups * c.yc, c.size[0], c.size[1]}
	if s.Bool() {
		x = x[1:]
	}
	var bias any
	if s.Bool() {
		bias = s.Tensor(-2, 2, c.groups*c.xc)
	}
	weight := s.Tensor(-2, 2, c.groups*c.yc, c.xc, c.kernel[0], c.kernel[1])
	return []any{s.Tensor(-2, 2, x...), weight, bias, c.stride[:], c.padding[:], extra[:], c.groups, c.dilation[:]}
}

// sampleBilinear draws the operands of conv2d.map and lets choose which are
// the arguments and which gives the size of the result.
func sampleBilinear(choose func(image, mapped, weight *tensor.Tensor) (x, y, size *tensor.Tensor)) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		c := sampleConv(s)
		image := s.Tensor(-2, 2, c.n, c.groups*c.xc, c.size[0], c.size[1])
		weight := s.Tensor(-2, 2, c.groups*c.yc, c.xc, c.kernel[0], c.kernel[1])
		out := [2]int{}
		for i := range 2 {
			out[i] = (c.size[i]+2*c.padding[i]-c.dilation[i]*(c.kernel[i]-1)-1)/c.stride[i] + 1
		}
		mapped := s.Tensor(-2, 2, c.n, c.groups*c.yc, out[0], out[1])
		x, y, size := choose(image, mapped, weight)
		return []any{x, y, size.Shape()[2:], c.stride[:], c.padding[:], c.dilation[:], c.groups}
	}
}
