package ops

import (
	"slices"

	"plumb/kernel"
	"plumb/op"
	"plumb/tensor"
)

const maxPoolDoc = "Maximum of each window: out[n, c, y, x] = max over i, j of input[n, c, y·stride − padding + i·dilation, x·stride − padding + j·dilation], padded with −∞; the first of equal maxima counts, NaN propagates."

var poolOps = []*op.Def{
	{
		Sig:   "max_pool2d(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
		Names: []string{"torch.nn.functional.max_pool2d", "torch.max_pool2d"},
		Doc:   maxPoolDoc,
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := poolOf(a)
			if err != nil {
				return nil, err
			}
			return p.results(a.Value("input"), 1), nil
		},
		Kernels: floatKernels("input", maxPoolRun[float32], maxPoolRun[float64]),
		Grad: func(g *op.Grad) {
			g.To("input", func() op.Value {
				found := g.All("max_pool2d_with_indices", g.Value("input"), g.Ints("kernel_size"), g.Any("stride"), g.Ints("padding"), g.Ints("dilation"), g.Bool("ceil_mode"))
				return poolScatter(g, g.G(), found[1], g.Value("input"))
			})
		},
		Sample: samplePool,
		Tol:    exactTol("each element is a copy of an input element"),
	},
	{
		Sig:   "max_pool2d_with_indices(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, bool ceil_mode=False, bool return_indices=True) -> (Tensor output, Tensor indices)",
		Names: []string{"torch.nn.functional.max_pool2d"},
		Doc:   maxPoolDoc + " Indices are positions in the plane; without return_indices there is one result.",
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := poolOf(a)
			if err != nil {
				return nil, err
			}
			if !a.Bool("return_indices") {
				return p.results(a.Value("input"), 1), nil
			}
			return p.results(a.Value("input"), 2), nil
		},
		Kernels: floatKernels("input", maxPoolRun[float32], maxPoolRun[float64]),
		Grad: func(g *op.Grad) {
			if g.G() == nil {
				return
			}
			g.To("input", func() op.Value {
				if len(g.Out) == 1 {
					found := g.All("max_pool2d_with_indices", g.Value("input"), g.Ints("kernel_size"), g.Any("stride"), g.Ints("padding"), g.Ints("dilation"), g.Bool("ceil_mode"))
					return poolScatter(g, g.G(), found[1], g.Value("input"))
				}
				return poolScatter(g, g.G(), g.Out[1], g.Value("input"))
			})
		},
		Sample: samplePool,
		Tol:    exactTol("each element is a copy of an input element, or its position"),
	},
	{
		Sig:       "max_pool2d.scatter(Tensor grad, Tensor indices, int[2] size) -> Tensor",
		Magnitude: "max_pool2d.scatter",
		Doc:       "Gradient of max_pool2d: adds each element of grad to the position of its plane, of the given size, that indices names.",
		Infer: func(a op.Args) ([]op.Meta, error) {
			return one(a.Value("grad").DType(), planesOf(a.Value("grad"), a.Ints("size")), nil), nil
		},
		Kernels: floatKernels("grad", scatterRun[float32], scatterRun[float64]),
		Grad: func(g *op.Grad) {
			g.To("grad", func() op.Value { return g.Op("max_pool2d.gather", g.G(), g.Value("indices")) })
		},
		Sample: func(s *op.Sampler) []any {
			grad, indices, plane := sampleIndices(s)
			return []any{grad, indices, plane.Shape()[1:]}
		},
		Tol: accumulating(func(a op.Args) int {
			s := a.Value("grad").Shape()
			return s[len(s)-1] * s[len(s)-2]
		}, "an element sums the gradients of the windows that it wins"),
	},
	{
		Sig:       "max_pool2d.gather(Tensor input, Tensor indices) -> Tensor",
		Magnitude: "max_pool2d.gather",
		Doc:       "The elements of each plane of input that indices names.",
		Infer: func(a op.Args) ([]op.Meta, error) {
			return one(a.Value("input").DType(), a.Value("indices").Shape(), nil), nil
		},
		Kernels: floatKernels("input", gatherRun[float32], gatherRun[float64]),
		Grad: func(g *op.Grad) {
			g.To("input", func() op.Value { return poolScatter(g, g.G(), g.Value("indices"), g.Value("input")) })
		},
		Sample: func(s *op.Sampler) []any {
			_, indices, plane := sampleIndices(s)
			return []any{plane, indices}
		},
		Tol: exactTol("each element is a copy of an input element"),
	},
}

// poolPlan is a checked pooling: its geometry and the shape of its results.
type poolPlan struct {
	kernel.Pool
	result []int
}

func (p *poolPlan) results(x op.Value, n int) []op.Meta {
	strides := suggestedStrides(x, p.result)
	return []op.Meta{{DType: x.DType(), Shape: p.result, Strides: strides}, {DType: tensor.I64, Shape: p.result, Strides: strides}}[:n]
}

func poolOf(a op.Args) (*poolPlan, error) {
	x := a.Value("input").Shape()
	if n := len(x); n != 3 && n != 4 || tensor.NumElements(x[n-3:]) == 0 {
		return nil, op.RuntimeError("expected 3D or 4D (batch mode) input, only its batch may be empty, but got size %s", tensor.ShapeString(x))
	}
	v, err := pairs(a, "kernel_size", "padding", "dilation")
	if err != nil {
		return nil, err
	}
	p := &poolPlan{}
	p.Kernel, p.Padding, p.Dilation, p.Stride = v[0], v[1], v[2], v[0]
	if len(a.Ints("stride")) > 0 {
		if v, err = pairs(a, "stride"); err != nil {
			return nil, err
		}
		p.Stride = v[0]
	}
	p.X = [2]int(x[len(x)-2:])
	if err := checkWindow(&p.Window); err != nil {
		return nil, err
	}
	for i := range 2 {
		p.Y[i] = pooledSize(p.X[i], p.Kernel[i], p.Stride[i], p.Padding[i], p.Dilation[i], a.Bool("ceil_mode"))
	}
	if min(p.Y[0], p.Y[1]) < 1 {
		return nil, op.RuntimeError("given input size %s, the calculated output size %v is too small", tensor.ShapeString(x), p.Y)
	}
	p.result = append(slices.Clone(x[:len(x)-2]), p.Y[0], p.Y[1])
	return p, nil
}

func checkWindow(w *kernel.Window) error {
	for _, c := range []struct {
		low  int
		name string
		pair [2]int
	}{{1, "kernel_size", w.Kernel}, {1, "stride", w.Stride}, {0, "padding", w.Padding}, {1, "dilation", w.Dilation}} {
		if err := checkAtLeast(c.low, c.name, c.pair); err != nil {
			return err
		}
	}
	if w.Padding[0] > w.Kernel[0]/2 || w.Padding[1] > w.Kernel[1]/2 {
		return op.RuntimeError("padding must be at most half of kernel_size, but they are %v and %v", w.Padding, w.Kernel)
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

func maxPoolRun[T float32 | float64](c *op.Run) error {
	p, err := poolOf(c.Args)
	if err != nil {
		return err
	}
	x := contiguousData[T](c.Tensor("input"))
	planes := tensor.NumElements(p.result[:len(p.result)-2])
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
	return append(slices.Clone(s[:len(s)-2]), size...)
}

func poolScatter(g *op.Grad, cot, indices, like op.Value) op.Value {
	s := like.Shape()
	return g.Op("max_pool2d.scatter", cot, indices, s[len(s)-2:])
}

func scatterRun[T float32 | float64](c *op.Run) error {
	s := c.Out[0].Shape()
	kernel.ScatterPlanes(tensor.NumElements(s[:len(s)-2]), contiguousData[T](c.Tensor("grad")), contiguousData[int64](c.Tensor("indices")), tensor.Data[T](c.Out[0])[:c.Out[0].Len()])
	return nil
}

func gatherRun[T float32 | float64](c *op.Run) error {
	s := c.Out[0].Shape()
	kernel.GatherPlanes(tensor.NumElements(s[:len(s)-2]), contiguousData[T](c.Tensor("input")), contiguousData[int64](c.Tensor("indices")), tensor.Data[T](c.Out[0])[:c.Out[0].Len()])
	return nil
}

func samplePool(s *op.Sampler) []any {
	var size, window, stride, pad, dilation [2]int
	for i := range 2 {
		window[i], stride[i], dilation[i] = int(s.Int(1, 4)), int(s.Int(1, 4)), int(s.Int(1, 3))
		pad[i] = int(s.Int(0, int64(window[i]/2+1)))
		size[i] = dilation[i]*(window[i]-1) + int(s.Int(1, 5))
	}
	x := append(s.Dims(2), size[:]...)
	if s.Bool() {
		x = x[1:]
	}
	return []any{s.Distinct(x...), window[:], stride[:], pad[:], dilation[:], s.Bool()}
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
