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

var windowOps = slices.Concat(patchOps, shuffleOps, []*op.Def{maxUnpool(1), maxUnpool(2), maxUnpool(3), lpPool(1), lpPool(2)})

const unfoldSig = "im2col(Tensor input, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor"

// patchOps take images apart into windows and put them together again.
var patchOps = []*op.Def{
	{
		Sig:       unfoldSig,
		SBP:       anyOf(linear(arg.Input), axes("input n... -> n..")),
		Magnitude: "im2col",
		Names:     []string{"torch.nn.functional.unfold"},
		Doc:       "Columns of the windows of an image, padded with zeros: out[n, (c·height + i)·width + j, y·columns + x] = input[n, c, y·stride − padding + i·dilation, x·stride − padding + j·dilation].",
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := unfoldOf(a)
			if err != nil {
				return nil, err
			}
			return one(a.Value(arg.Input).DType(), p.result, nil), nil
		},
		Kernels: []op.Kernel{
			{Name: "float32", When: op.DTypeIn(arg.Input, tensor.F32), Run: unfoldRun[float32]},
			{Name: "float64", When: op.DTypeIn(arg.Input, tensor.F64), Run: unfoldRun[float64]},
			{Name: "half", When: op.DTypeIn(arg.Input, halfTypes...), Run: unfoldRun[int16]}, // the same bits
			{Name: "complex64", When: op.DTypeIn(arg.Input, tensor.C64), Run: unfoldRun[complex64]},
			{Name: "complex128", When: op.DTypeIn(arg.Input, tensor.C128), Run: unfoldRun[complex128]},
		},
		Saves: savesTensors,
		Grad: op.Gradient(func(g *op.Grad) op.Value {
			x := g.Value(arg.Input).Shape()
			return g.Op("col2im", g.G(), x[len(x)-2:], g.Ints(arg.KernelSize), g.Ints(arg.Dilation), g.Ints(arg.Padding), g.Ints(arg.Stride))
		}),
		Sample: func(s *op.Sampler) []any {
			shape, args := samplePatches(s)
			return append([]any{s.Tensor(-2, 2, shape...)}, args...)
		},
		Tol: exactTol("each element is a copy of an input element, or zero"),
	},
	{
		Sig:     "col2im(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1) -> Tensor",
		SBP:     anyOf(linear(arg.Input), axes("input n.. -> n...")),
		Names:   []string{"torch.nn.functional.fold"},
		Doc:     "Sums columns of windows into images, the gradient of unfold: input[n, (c·height + i)·width + j, y·columns + x] is added to out[n, c, y·stride − padding + i·dilation, x·stride − padding + j·dilation].",
		Infer:   inferCol2im,
		Kernels: patchKernels(foldRun[float32], foldRun[float64], foldRun[complex64], foldRun[complex128]),
		Grad:    op.Gradient(col2imGrad),
		Sample:  sampleFold,
		Tol:     addedInPlace(ownMagnitude(accumulating(kernelTerms, "an element sums at most one element per tap of a window"))),
	},
}

func inferCol2im(a op.Args) ([]op.Meta, error) {
	p, err := foldOf(a)
	if err != nil {
		return nil, err
	}
	return one(a.Value(arg.Input).DType(), p.result, nil), nil
}

func col2imGrad(g *op.Grad) op.Value {
	return g.Op("im2col", g.G(), g.Ints(arg.KernelSize), g.Ints(arg.Dilation), g.Ints(arg.Padding), g.Ints(arg.Stride))
}

// shuffleOps move elements between channels and positions, or among channels.
var shuffleOps = []*op.Def{
	{
		Sig:     "pixel_shuffle(Tensor input, int upscale_factor) -> Tensor",
		SBP:     anyOf(linear(arg.Input), planes(3, arg.Input), evenly(axes("input ~c.. -> ~c.."))),
		Names:   []string{"torch.nn.functional.pixel_shuffle", "torch.pixel_shuffle"},
		Doc:     "Makes r×r pixels of r² channels, r the upscale_factor: out[…, c, y·r + i, x·r + j] = input[…, (c·r + i)·r + j, y, x].",
		Infer:   inferShuffle(inferPixelShuffle),
		Kernels: []op.Kernel{{Name: "copy", Run: runPixelShuffle}},
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Op("pixel_unshuffle", g.G(), g.Int(arg.UpscaleFactor)) }),
		Sample:  samplePixelShuffle,
		Tol:     ownMagnitude(exactTol("moves its input's elements")),
	},
	{
		Sig:     "pixel_unshuffle(Tensor input, int downscale_factor) -> Tensor",
		SBP:     anyOf(linear(arg.Input), planes(3, arg.Input), evenly(axes("input ~c.. -> ~c.."))),
		Names:   []string{"torch.nn.functional.pixel_unshuffle", "torch.pixel_unshuffle"},
		Doc:     "Makes r² channels of r×r pixels, r the downscale_factor: out[…, (c·r + i)·r + j, y, x] = input[…, c, y·r + i, x·r + j].",
		Infer:   inferShuffle(inferPixelUnshuffle),
		Kernels: []op.Kernel{{Name: "copy", Run: runPixelUnshuffle}},
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Op("pixel_shuffle", g.G(), g.Int(arg.DownscaleFactor)) }),
		Sample:  samplePixelUnshuffle,
		Tol:     ownMagnitude(exactTol("moves its input's elements")),
	},
	{
		Sig:     "channel_shuffle(Tensor input, int groups) -> Tensor",
		SBP:     anyOf(linear(arg.Input), besides(func(op.Args) []int { return []int{1} }, arg.Input)),
		Names:   []string{"torch.nn.functional.channel_shuffle", "torch.channel_shuffle"},
		Doc:     "Interleaves groups of channels: out[n, i·groups + g] = input[n, g·k + i], of groups of k channels.",
		Infer:   inferShuffle(inferChannelShuffle),
		Kernels: []op.Kernel{{Name: "copy", Run: runChannelShuffle}},
		Grad:    op.Gradient(channelShuffleGrad),
		Sample:  sampleChannelShuffle,
		Tol:     ownMagnitude(exactTol("moves its input's elements")),
	},
}

func inferPixelShuffle(a op.Args, x []int) ([]int, error) {
	r, n := a.Int(arg.UpscaleFactor), len(x)
	if err := checkChannelFactor("upscale_factor", r, x); err != nil {
		return nil, err
	}
	if x[n-3]%(r*r) != 0 {
		return nil, op.RuntimeError("the channels of input %s must be divisible by the square of upscale_factor=%d", tensor.ShapeString(x), r)
	}
	return append(slices.Clone(x[:n-3]), x[n-3]/(r*r), x[n-2]*r, x[n-1]*r), nil
}

func runPixelShuffle(c *op.Run) error {
	movePixels(c.Out[0], c.Tensor(arg.Input), c.Int(arg.UpscaleFactor), true)
	return nil
}

func samplePixelShuffle(s *op.Sampler) []any {
	r, x := int(s.Int(1, 4)), s.Shape(3, 4)
	x[len(x)-3] = r * r * int(s.Int(1, 3))
	return []any{s.Tensor(-2, 2, x...), r}
}

func inferPixelUnshuffle(a op.Args, x []int) ([]int, error) {
	r, n := a.Int(arg.DownscaleFactor), len(x)
	if err := checkChannelFactor("downscale_factor", r, x); err != nil {
		return nil, err
	}
	if x[n-2]%r != 0 || x[n-1]%r != 0 {
		return nil, op.RuntimeError("height and width of input %s must be divisible by downscale_factor=%d", tensor.ShapeString(x), r)
	}
	return append(slices.Clone(x[:n-3]), x[n-3]*r*r, x[n-2]/r, x[n-1]/r), nil
}

func runPixelUnshuffle(c *op.Run) error {
	movePixels(c.Tensor(arg.Input), c.Out[0], c.Int(arg.DownscaleFactor), false)
	return nil
}

func samplePixelUnshuffle(s *op.Sampler) []any {
	r, x := int(s.Int(1, 4)), s.Shape(3, 4)
	n := len(x)
	x[n-2], x[n-1] = r*int(s.Int(1, 4)), r*int(s.Int(1, 4))
	return []any{s.Tensor(-2, 2, x...), r}
}

func inferChannelShuffle(a op.Args, x []int) ([]int, error) {
	groups := a.Int(arg.Groups)
	switch {
	case len(x) < 3:
		return nil, op.RuntimeError("expected input of more than 2 dimensions, but got size %s", tensor.ShapeString(x))
	case groups < 1:
		return nil, op.RuntimeError("groups must be positive, but is %d", groups)
	case x[1]%groups != 0:
		return nil, op.RuntimeError("the channels of input %s must be divisible by groups=%d", tensor.ShapeString(x), groups)
	}
	return slices.Clone(x), nil
}

func runChannelShuffle(c *op.Run) error {
	x, groups := c.Tensor(arg.Input), c.Int(arg.Groups)
	n, channels, rest := x.Shape()[0], x.Shape()[1], x.Shape()[2:]
	if x.Len() > 0 {
		from := x.Reshape(append([]int{n, groups, channels / groups}, rest...)...)
		split(c.Out[0], append([]int{n, channels / groups, groups}, rest...)).CopyFrom(from.Transpose(1, 2))
	}
	return nil
}

func channelShuffleGrad(g *op.Grad) op.Value {
	return g.Op("channel_shuffle", g.G(), g.Value(arg.Input).Shape()[1]/g.Int(arg.Groups))
}

func sampleChannelShuffle(s *op.Sampler) []any {
	groups, x := int(s.Int(1, 4)), s.Shape(3, 5)
	x[1] = groups * int(s.Int(1, 4))
	return []any{s.Tensor(-2, 2, x...), groups}
}

// maxUnpool is max_unpool over n dimensions.
func maxUnpool(n int) *op.Def {
	id := fmt.Sprintf("max_unpool%dd", n)
	return &op.Def{
		Sig:   fmt.Sprintf("%[1]s(Tensor input, Tensor indices, int[%[2]d] kernel_size, int[%[2]d]? stride=None, int[%[2]d] padding=0, int[]? output_size=None) -> Tensor", id, n),
		SBP:   anyOf(linear(arg.Input), planes(n, arg.Input, arg.Indices)),
		Names: []string{"torch.nn.functional." + id},
		Doc:   "Puts each element of input at the position of its plane that indices names, as max_pool gives them, and zero elsewhere; output_size chooses among the sizes that max_pool maps to the input's.",
		Infer: func(a op.Args) ([]op.Meta, error) {
			shape, err := unpooledShape(a, n)
			if err != nil {
				return nil, err
			}
			var strides []int
			if n == 2 {
				strides = suggestedStrides(a.Value(arg.Input), shape)
			}
			return one(a.Value(arg.Input).DType(), shape, strides), nil
		},
		Kernels: windowKernels(arg.Input, unpoolRun[float32], unpoolRun[float64]),
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Op("max_pool.gather", g.G(), g.Value(arg.Indices), n) }),
		Sample:  func(s *op.Sampler) []any { return sampleUnpool(s, n) },
		Tol:     ownMagnitude(exactTol("each element is a copy of an input element, or zero")),
	}
}

// lpPool is lp_pool over n dimensions.
func lpPool(n int) *op.Def {
	id := fmt.Sprintf("lp_pool%dd", n)
	of := func(a op.Args) (*poolPlan, error) { return lpPoolOf(a, n) }
	kernelType := "int[2]"
	if n == 1 {
		kernelType = "int"
	}
	return &op.Def{
		Sig:   fmt.Sprintf("%[1]s(Tensor input, float norm_type, %[3]s kernel_size, int[%[2]d]? stride=None, bool ceil_mode=False) -> Tensor", id, n, kernelType),
		Names: []string{"torch.nn.functional." + id},
		Doc:   "Power mean of each window times its size: (k·mean of input^p)^(1/p), p the norm_type and k the elements of kernel_size; its gradient is zero where the sum is.",
		SBP:   planes(n, arg.Input),
		Infer: func(a op.Args) ([]op.Meta, error) {
			p, err := of(a)
			if err != nil {
				return nil, err
			}
			out := p.results(a.Value(arg.Input), 1)
			if !out[0].DType.IsDifferentiable() {
				out[0].DType = tensor.F32
			}
			return out, nil
		},
		Kernels: append(windowKernels(arg.Input, lpPoolRun[float32](of), lpPoolRun[float64](of)), op.Kernel{
			Name: "integers", Run: lpPoolRun[float32](of),
			When: op.DTypeIn(arg.Input, tensor.Bool, tensor.U8, tensor.I8, tensor.I16, tensor.I32, tensor.I64),
		}),
		Grad: op.Gradient(func(g *op.Grad) op.Value { return lpPoolGrad(g, n) }),
		Sample: func(s *op.Sampler) []any {
			a := samplePool(s, n)
			x := a[0].(*tensor.Tensor).Shape()
			if n == 1 {
				a[1] = a[1].([]int)[0]
			}
			return []any{s.Tensor(0.5, 2, x...), []float64{1, 2, 3, 1.5}[s.Index(4)], a[1], a[2], a[5]}
		},
		Tol: weighted(func(a op.Args) int { return 8 + 4*kernelTerms(padless(a, n)) }, "a sum of powers and its root, which PyTorch rounds at every step"),
	}
}

// lpPoolOf checks an lp_pool as PyTorch checks the avg_pool that it is made of.
func lpPoolOf(a op.Args, n int) (*poolPlan, error) {
	return poolOf(padless(a, n), arg.Input, n, slices.Repeat([]int{1}, n), nil)
}

// padless returns the arguments as avg_pool has them, with a padding of zero.
func padless(a op.Args, n int) op.Args {
	sig := *a.Sig
	sig.Params = append(slices.Clone(sig.Params), op.Param{Name: "padding"}, op.Param{Name: "count_include_pad"})
	vals := append(slices.Clone(a.Vals), make([]int, n), true)
	if k, ok := a.Any(arg.KernelSize).(int); ok {
		vals[sig.Index(arg.KernelSize)] = []int{k}
	}
	return op.Args{Sig: &sig, Vals: vals}
}

func lpPoolRun[T float32 | float64](of func(op.Args) (*poolPlan, error)) func(c *op.Run) error {
	return func(c *op.Run) error {
		p, err := of(c.Args)
		if err != nil {
			return err
		}
		input, norm := c.Tensor(arg.Input), c.Float(arg.NormType)
		if !input.DType().IsDifferentiable() {
			input = input.Convert(tensor.F32)
		}
		x := slices.Clone(contiguousData[T](input))
		powers(x, x, norm)
		m := meanOf[T](&p.Pool, padless(c.Args, p.dims))
		planes, size := tensor.NumElements(p.result[:len(p.result)-p.dims]), T(tensor.NumElements(p.Kernel[:]))
		writeTo(c.Out[0], func(y []T) {
			kernel.Apply(m, planes, x, y)
			for i := range y {
				y[i] *= size
			}
			powers(y, y, 1/norm)
		})
		return nil
	}
}

func powers[T float32 | float64](dst, x []T, p float64) {
	for i, v := range x {
		dst[i] = T(math.Pow(float64(v), p))
	}
}

func lpPoolGrad(g *op.Grad, n int) op.Value {
	x, p := wide(g, g.Value(arg.Input)), g.Float(arg.NormType)
	window, stride, ceil := padless(g.Args, n).Ints(arg.KernelSize), g.Any(arg.Stride), g.Bool(arg.CeilMode)
	size := tensor.NumElements(window)
	sum := g.Mul(g.Op(fmt.Sprintf("avg_pool%dd", n), g.Op("pow", x, p), window, stride, 0, ceil), size)
	slope := g.Mul(g.Op("pow", sum, 1/p-1), float64(size)/p)
	counts := g.Op("abs", g.Op("sign", sum)) // 0 of NaN, as PyTorch has it
	share := g.Op("where", g.Op("ne", sum, 0), g.Mul(g.Mul(wide(g, g.G()), slope), counts), zeros(g, sum))
	s := x.Shape()
	back := g.Op("avg_pool.spread", share, s[len(s)-n:], window, stride, make([]int, n), ceil, true, nil)
	return g.Mul(back, g.Mul(g.Op("pow", x, p-1), p))
}

func patchKernels(run32, run64, run64c, run128c func(c *op.Run) error) []op.Kernel {
	return append(windowKernels(arg.Input, run32, run64),
		op.Kernel{Name: "complex64", When: op.DTypeIn(arg.Input, tensor.C64), Run: run64c},
		op.Kernel{Name: "complex128", When: op.DTypeIn(arg.Input, tensor.C128), Run: run128c},
	)
}

// patchPlan is a checked unfold or fold: a convolution with a map per window
// element, of which only the geometry counts.
type patchPlan struct {
	kernel.Conv
	result []int
}

// patchWindow reads the window and the image's size, of which channels and
// batch are still unknown.
func patchWindow(a op.Args, size []int) (*patchPlan, error) {
	p := &patchPlan{}
	p.Groups = 1
	for _, field := range []struct {
		name      op.IntsArg
		low, unit int
		to        *[3]int
	}{{arg.KernelSize, 1, 1, &p.Kernel}, {arg.Dilation, 1, 1, &p.Dilation}, {arg.Padding, 0, 0, &p.Padding}, {arg.Stride, 1, 1, &p.Stride}} {
		v, err := tuple(a, field.name, 2)
		if err != nil {
			return nil, err
		}
		if err := checkAtLeast(field.low, field.name, v); err != nil {
			return nil, err
		}
		*field.to = lifted(v, field.unit)
	}
	p.X = lifted(size, 1)
	for i := range 3 {
		reach := p.X[i] + 2*p.Padding[i] - p.Dilation[i]*(p.Kernel[i]-1) - 1
		if reach < 0 {
			return nil, op.RuntimeError("kernel_size %v with dilation %v does not fit into an image of size %v with padding %v", p.Kernel[1:], p.Dilation[1:], size, p.Padding[1:])
		}
		p.Y[i] = reach/p.Stride[i] + 1
	}
	return p, nil
}

func unfoldOf(a op.Args) (*patchPlan, error) {
	x := a.Value(arg.Input).Shape()
	if len(x) < 3 {
		return nil, op.IndexError("expected 3D or 4D (batch mode) input, but got size %s", tensor.ShapeString(x))
	}
	if n := len(x); n > 4 || tensor.NumElements(x[n-3:]) == 0 {
		return nil, op.RuntimeError("expected 3D or 4D (batch mode) input, only its batch may be empty, but got size %s", tensor.ShapeString(x))
	}
	p, err := patchWindow(a, x[len(x)-2:])
	if err != nil {
		return nil, err
	}
	p.XC, p.N = x[len(x)-3], tensor.NumElements(x[:len(x)-3])
	p.result = append(slices.Clone(x[:len(x)-3]), p.XC*tensor.NumElements(p.Kernel[:]), tensor.NumElements(p.Y[:]))
	return p, nil
}

func foldOf(a op.Args) (*patchPlan, error) {
	x := a.Value(arg.Input).Shape()
	n := len(x)
	if n != 2 && n != 3 || tensor.NumElements(x[n-2:]) == 0 {
		return nil, op.RuntimeError("expected 2D or 3D (batch mode) input, only its batch may be empty, but got size %s", tensor.ShapeString(x))
	}
	size, err := tuple(a, arg.OutputSize, 2)
	if err != nil {
		return nil, err
	}
	if err := checkAtLeast(1, arg.OutputSize, size); err != nil {
		return nil, err
	}
	p, err := patchWindow(a, size)
	if err != nil {
		return nil, err
	}
	if taps := tensor.NumElements(p.Kernel[:]); x[n-2]%taps != 0 {
		return nil, op.RuntimeError("dimension %d of input %s must be divisible by the %d elements of kernel_size", n-2, tensor.ShapeString(x), taps)
	}
	if l := tensor.NumElements(p.Y[:]); x[n-1] != l {
		return nil, op.RuntimeError("expected %d windows for output_size %v, but input has size %s", l, size, tensor.ShapeString(x))
	}
	p.XC, p.N = x[n-2]/tensor.NumElements(p.Kernel[:]), tensor.NumElements(x[:n-2])
	p.result = append(slices.Clone(x[:n-2]), p.XC, size[0], size[1])
	return p, nil
}

func unfoldRun[T gemmType](c *op.Run) error {
	p, err := unfoldOf(c.Args)
	if err != nil {
		return err
	}
	x := asBatch(c.Tensor(arg.Input), 2)
	kernel.Unfold(&p.Conv, kernel.VolumeOf[T](x), tensor.Data[T](c.Out[0])[:c.Out[0].Len()])
	return nil
}

func foldRun[T gemmType](c *op.Run) error {
	p, err := foldOf(c.Args)
	if err != nil {
		return err
	}
	kernel.Fold(&p.Conv, contiguousData[T](c.Tensor(arg.Input)), tensor.Data[T](c.Out[0])[:c.Out[0].Len()])
	return nil
}

// samplePatches draws an image's shape and the window arguments after it.
func samplePatches(s *op.Sampler) (shape []int, args []any) {
	shape = s.Dims(4)
	var window [4][]int // kernel, dilation, padding, stride
	for i := range 2 {
		k, d, p := int(s.Int(1, 4)), int(s.Int(1, 3)), int(s.Int(0, 3))
		shape[2+i] = max(d*(k-1)+1-2*p, 1) + int(s.Int(0, 4))
		for j, v := range []int{k, d, p, int(s.Int(1, 4))} {
			window[j] = append(window[j], v)
		}
	}
	if s.Bool() {
		shape = shape[1:]
	}
	return shape, []any{window[0], window[1], window[2], window[3]}
}

func sampleFold(s *op.Sampler) []any {
	shape, args := samplePatches(s)
	a := op.Args{Sig: op.MustParseSig(unfoldSig), Vals: append([]any{tensor.New(s.DType, shape...)}, args...)}
	p, err := unfoldOf(a)
	if err != nil {
		panic(err)
	}
	return append([]any{s.Tensor(-2, 2, p.result...), shape[len(shape)-2:]}, args...)
}

func checkChannelFactor(name string, r int, x []int) error {
	if len(x) < 3 {
		return op.RuntimeError("expected input of at least 3 dimensions, but got size %s", tensor.ShapeString(x))
	}
	if r < 1 {
		return op.RuntimeError("%s must be positive, but is %d", name, r)
	}
	if r > 1<<24 {
		return op.RuntimeError("%s is too large: %d", name, r)
	}
	return nil
}

// inferShuffle infers a result of the input's dtype and memory format.
func inferShuffle(shape func(a op.Args, x []int) ([]int, error)) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		x := a.Value(arg.Input)
		out, err := shape(a, x.Shape())
		if err != nil {
			return nil, err
		}
		return one(x.DType(), out, suggestedStrides(x, out)), nil
	}
}

// split views t in a shape that divides its dimensions.
func split(t *tensor.Tensor, shape []int) *tensor.Tensor {
	v, ok := t.View(shape...)
	if !ok {
		panic(fmt.Sprintf("ops: %v cannot be divided into %v", t, shape))
	}
	return v
}

// movePixels copies between large pixels [c, y·r+i, x·r+j] and deep ones
// [(c·r+i)·r+j, y, x]: into the large ones when enlarge is set.
func movePixels(large, deep *tensor.Tensor, r int, enlarge bool) {
	if large.Len() == 0 {
		return
	}
	s := large.Shape()
	n := len(s)
	lead := s[:n-3]
	apart := func(dims ...int) []int { return append(slices.Clone(lead), dims...) }
	order := append(allDims(n-3), n-3, n, n-2, n+1, n-1)
	c, h, w := s[n-3], s[n-2]/r, s[n-1]/r
	to := split(large, apart(c, h, r, w, r))
	from := split(deep, apart(c, r, r, h, w)).Permute(order...)
	if enlarge {
		to.CopyFrom(from)
	} else {
		from.CopyFrom(to)
	}
}

func unpooledShape(a op.Args, n int) ([]int, error) {
	v, index := a.Value(arg.Input), a.Value(arg.Indices)
	x := v.Shape()
	if len(x) < n {
		return nil, op.IndexError("expected %dD or %dD (batch mode) input, but got size %s", n+1, n+2, tensor.ShapeString(x))
	}
	size, err := unpooledSize(a, x[len(x)-n:])
	if err != nil {
		return nil, err
	}
	if d := len(x); d != n+1 && d != n+2 || tensor.NumElements(x[1:]) == 0 {
		return nil, op.RuntimeError("expected %dD or %dD (batch mode) input, only its first dimension may be empty, but got size %s", n+1, n+2, tensor.ShapeString(x))
	}
	if index.DType() != tensor.I64 {
		return nil, op.RuntimeError("indices must be int64, but are %s", index.DType())
	}
	if !slices.Equal(index.Shape(), x) {
		return nil, op.RuntimeError("indices must have the shape %s of input, but have %s", tensor.ShapeString(x), tensor.ShapeString(index.Shape()))
	}
	if n == 3 {
		return append(slices.Clone(x[:len(x)-n]), size...), checkUnpoolStride(a)
	}
	return append(slices.Clone(x[:len(x)-n]), size...), nil
}

// checkUnpoolStride checks what the kernel over volumes alone demands.
func checkUnpoolStride(a op.Args) error {
	name := arg.KernelSize
	if a.Has(arg.Stride) {
		name = arg.Stride
	}
	stride, err := tuple(a, name, 3)
	if err != nil {
		return err
	}
	return checkAtLeast(1, arg.Stride, stride)
}

// unpooledSize is output_size, or the least size that max_pool maps to x.
func unpooledSize(a op.Args, x []int) ([]int, error) {
	n := len(x)
	kernel, err := tuple(a, arg.KernelSize, n)
	if err != nil {
		return nil, err
	}
	stride := kernel
	if a.Has(arg.Stride) {
		if stride, err = tuple(a, arg.Stride, n); err != nil {
			return nil, err
		}
	}
	padding, err := tuple(a, arg.Padding, n)
	if err != nil {
		return nil, err
	}
	size := make([]int, n)
	for i := range n {
		size[i] = (x[i]-1)*stride[i] + kernel[i] - 2*padding[i]
	}
	if !a.Has(arg.OutputSize) {
		if slices.ContainsFunc(size, func(n int) bool { return n < 0 }) {
			return nil, op.ValueError("the calculated output size must not be negative, but is %v", size)
		}
		return size, checkAtLeast(0, "the calculated output size", size)
	}
	want := a.Ints(arg.OutputSize)
	if len(want) == n+2 {
		want = want[2:]
	}
	if len(want) != n {
		return nil, op.ValueError("output_size must have %d or %d elements, but has %d", n, n+2, len(want))
	}
	for i := range n {
		if low, high := size[i]-stride[i], size[i]+stride[i]; want[i] <= low || want[i] >= high {
			return nil, op.ValueError("output_size %v: element %d must lie between %d and %d", want, i, low, high)
		}
	}
	return want, nil
}

func unpoolRun[T float32 | float64](c *op.Run) error {
	x, n := c.Tensor(arg.Input), c.Sig.Params[c.Sig.Index(arg.KernelSize)].Type.N
	planes := tensor.NumElements(x.Shape()[:x.Dim()-n])
	var err error
	writeTo(c.Out[0], func(y []T) {
		if bad, ok := kernel.PlacePlanes(planes, contiguousData[T](x), contiguousData[int64](c.Tensor(arg.Indices)), y); !ok {
			err = op.RuntimeError("indices has %d, which lies outside the %d elements of a plane", bad, len(y)/planes)
		}
	})
	return err
}

// sampleUnpool draws positions that differ within a plane.
func sampleUnpool(s *op.Sampler, n int) []any {
	shape := s.Dims(n + 2)
	if s.Bool() {
		shape = shape[1:]
	}
	window, size := make([]int, n), 1
	for i := range n {
		window[i] = int(s.Int(1, 4))
		size *= shape[len(shape)-n+i] * window[i]
	}
	indices := tensor.New(tensor.I64, shape...)
	plane := tensor.NumElements(shape[len(shape)-n:])
	for i := range indices.Len() {
		indices.SetInt(i, int64((i%plane*(size/plane)+i/plane)%size))
	}
	return []any{s.Tensor(-2, 2, shape...), indices, window}
}
