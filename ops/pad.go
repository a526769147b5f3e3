package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// padOps add entries around a tensor.
var padOps = []*op.Def{
	{
		Sig:     "pad(Tensor input, int[] pad, str mode='constant', Scalar? value=None) -> Tensor",
		SBP:     anyOf(provided(padsZeros, linear(arg.Input)), padded),
		Names:   []string{"torch.nn.functional.pad"},
		Doc:     "Adds pad[0] entries before and pad[1] after the last dimension, pad[2] and pad[3] around the one before it, and so on; negative counts take entries away. The new entries are value, or by mode 'reflect' those mirrored at the edge, 'replicate' the edge, 'circular' those from the other end.",
		Reject:  checkPad,
		Infer:   inferPad,
		Kernels: []op.Kernel{{Name: "copy", Run: runPad}},
		Grad:    op.Gradient(padGrad),
		Saves:   func(a op.Args) bool { return a.Str(arg.Mode) != "constant" },
		Sample:  samplePad,
		Tol:     ownMagnitude(exactTol("copies its input")),
	},
	{
		Sig:     "constant_pad_nd(Tensor input, int[] pad, Scalar value=0) -> Tensor",
		Names:   []string{"torch.constant_pad_nd"},
		Doc:     "pad by a constant.",
		Compose: composeConstantPadNd,
		Sample:  sampleConstantPadNd,
		Tol:     exactTol("copies its input"),
	},
	{
		Sig:     "pad.back(Tensor input, int[] size, int[] pad, str mode) -> Tensor",
		SBP:     linear(arg.Input),
		Doc:     "The adjoint of a pad of a tensor of the size, by a mode other than 'constant': every entry is added where pad reads it.",
		Infer:   func(a op.Args) ([]op.Meta, error) { return one(a.Value(arg.Input).DType(), a.Ints(arg.Size), nil), nil },
		Kernels: []op.Kernel{{Name: "sum", When: op.DTypeIn(arg.Input, slices.Concat(float32Set, float64Set, complexTypes)...), Run: runPadBack}},
		Grad:    op.Gradient(func(g *op.Grad) op.Value { return g.Op("pad", g.G(), g.Ints(arg.Pad), g.Str(arg.Mode)) }),
		Sample:  samplePadBack,
		Tol: ownMagnitude(op.Tol{
			Class: op.Accumulating, Terms: func(a op.Args) int { return 1 << len(a.Ints(arg.Pad)) },
			Reason: "a sum of the few entries that pad copies from one place",
		}),
	},
}

func padGrad(g *op.Grad) op.Value {
	x, pad, mode := g.Value(arg.Input), g.Ints(arg.Pad), g.Str(arg.Mode)
	if mode == "constant" {
		return g.Op("pad", g.G(), negated(pad))
	}
	return g.Op("pad.back", g.G(), x.Shape(), pad, mode)
}

func composeConstantPadNd(b op.Builder, a op.Args) []op.Value {
	return vals(b.Op("pad", a.Value(arg.Input), a.Ints(arg.Pad), "constant", a.Scalar(arg.Value)))
}

func sampleConstantPadNd(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	return []any{s.Tensor(-2, 2, shape...), []int{s.Index(3), s.Index(3)}, 1.5}
}

func runPadBack(c *op.Run) error {
	maps := padMaps(c.Ints(arg.Size), c.Ints(arg.Pad), c.Str(arg.Mode))
	return summed(c, func(out, in *tensor.Tensor) { kernel.RemapAdd(out, in, maps) })
}

func samplePadBack(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, 2, 3, 8), []int{2, 3, 5}, []int{1, 2}, padModes[1+s.Index(3)]}
}

var padModes = []string{"constant", "reflect", "replicate", "circular"}

func negated(xs []int) []int {
	out := make([]int, len(xs))
	for i, x := range xs {
		out[i] = -x
	}
	return out
}

// edges returns the entries added before and after dimension d of n.
func edges(pad []int, d, n int) (low, high int) {
	if at := 2 * (n - 1 - d); at < len(pad) {
		return pad[at], pad[at+1]
	}
	return 0, 0
}

func checkPad(a op.Args) error {
	x, pad, mode := a.Value(arg.Input), a.Ints(arg.Pad), a.Str(arg.Mode)
	n := len(x.Shape())
	switch {
	case len(pad)%2 != 0:
		return op.RuntimeError("Padding length must be divisible by 2: argument 'pad' has %d", len(pad))
	case slices.ContainsFunc(pad, func(p int) bool { return p > tensor.MaxElements || p < -tensor.MaxElements }):
		return op.RuntimeError("can't allocate memory: argument 'pad' is %v", pad)
	case len(pad) > 2*n:
		return op.RuntimeError("Padding length too large: argument 'pad' has %d for %d dimensions", len(pad), n)
	case mode == "constant":
		if a.Has(arg.Value) {
			return fits(a.Scalar(arg.Value), x.DType())
		}
		return nil
	case a.Has(arg.Value) && a.Scalar(arg.Value).Complex() != 0:
		return op.RuntimeError("Padding mode \"%s\" doesn't take in value argument", mode)
	case len(pad) < 2 || len(pad) > 6 || n != len(pad)/2+1 && n != len(pad)/2+2:
		return padNotImplemented("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
	case !slices.Contains(padModes, mode):
		return padNotImplemented("Unrecognised padding mode " + mode)
	case mode == "circular":
		return checkCircular(x.Shape(), pad)
	}
	return checkMirror(a)
}

func padNotImplemented(msg string) error { return &op.Error{Class: "NotImplementedError", Msg: msg} }

func checkCircular(shape, pad []int) error {
	n := len(shape)
	if want := 2 * (n - 2); len(pad) != want {
		return op.RuntimeError("Invalid padding size, expected %d but got %d", want, len(pad))
	}
	for d := 2; d < n; d++ {
		low, high := edges(pad, d, n)
		if shape[d]+low+high < 0 {
			return op.RuntimeError("Negative padding value is resulting in an empty dimension")
		}
		if kept := shape[d] + min(low, 0) + min(high, 0); low > max(kept, 0) || high > max(kept, 0) {
			return op.RuntimeError("Padding value causes wrapping around more than once.")
		}
	}
	return nil
}

// checkMirror checks the modes reflect and replicate.
func checkMirror(a op.Args) error {
	x, pad, mode := a.Value(arg.Input), a.Ints(arg.Pad), a.Str(arg.Mode)
	shape := x.Shape()
	n, free := len(shape), 0
	if n == len(pad)/2+2 {
		free = 1
	}
	if slices.Contains(shape[free:], 0) {
		return op.RuntimeError("%s: expected a tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s", mode, tensor.ShapeString(shape))
	}
	for d, size := range shape {
		low, high := edges(pad, d, n)
		if mode == "reflect" && (low >= size && low > 0 || high >= size && high > 0) {
			return op.RuntimeError("Padding size should be less than the corresponding input dimension, but got: padding (%d, %d) at dimension %d of input %s", low, high, d, tensor.ShapeString(shape))
		}
		if size+low+high < 1 && 2*(n-d) <= len(pad) {
			return op.RuntimeError("input %s is too small for padding (%d, %d) at dimension %d", tensor.ShapeString(shape), low, high, d)
		}
	}
	if d := x.DType(); !d.IsDifferentiable() {
		return op.RuntimeError("\"%s\" not implemented for argument 'input' of dtype %s", mode, d)
	}
	return nil
}

func inferPad(a op.Args) ([]op.Meta, error) {
	x, pad := a.Value(arg.Input), a.Ints(arg.Pad)
	shape := slices.Clone(x.Shape())
	cropped := !slices.ContainsFunc(pad, func(n int) bool { return n > 0 })
	if a.Str(arg.Mode) == "constant" {
		if err := checkCropped(shape, pad); err != nil {
			return nil, err
		}
	}
	for d, size := range shape {
		low, high := edges(pad, d, len(shape))
		shape[d] = size + low + high
		if 2*(len(shape)-d) <= len(pad) && shape[d] < 0 {
			return nil, negativeSize(size, low, high, d)
		}
	}
	switch {
	case a.Str(arg.Mode) != "constant":
		return one(x.DType(), shape, nil), nil
	case cropped:
		return one(x.DType(), shape, denseStrides(resized{x, shape})), nil
	case len(shape) == 4 && !tensor.Contiguous.Matches(x.Shape(), x.Strides()) && tensor.ChannelsLast.Matches(x.Shape(), x.Strides()):
		return one(x.DType(), shape, tensor.ChannelsLast.Strides(shape)), nil
	}
	return one(x.DType(), shape, nil), nil
}

// checkCropped checks that the dimensions have the entries that negative pads take.
func checkCropped(shape, pad []int) error {
	for d, size := range shape {
		low, high := edges(pad, d, len(shape))
		if size+low < 0 {
			return op.RuntimeError("argument 'pad' takes %d entries from dimension %d of size %d", -low, d, size)
		}
		if size+min(low, 0)+min(high, 0) < 0 {
			return negativeSize(size, low, high, d)
		}
	}
	return nil
}

func negativeSize(size, low, high, d int) error {
	return op.RuntimeError("The input size %d, plus negative padding %d and %d, resulted in a negative output size, which is invalid: argument 'pad' at dimension %d", size, low, high, d)
}

// resized is a value cut down to a shape.
type resized struct {
	op.Value
	shape []int
}

// Shape returns the smaller shape.
func (r resized) Shape() []int { return r.shape }

func runPad(c *op.Run) error {
	out, in, pad := c.Out[0], c.Tensor(arg.Input), c.Ints(arg.Pad)
	if mode := c.Str(arg.Mode); mode != "constant" {
		if out.Len() > 0 {
			kernel.Remap(out, in, padMaps(in.Shape(), pad, mode))
		}
		return nil
	}
	low := make([]int, in.Dim())
	for d := range low {
		low[d], _ = edges(pad, d, in.Dim())
	}
	value := op.ScalarOf(int64(0))
	if c.Has(arg.Value) {
		value = c.Scalar(arg.Value)
	}
	return kernel.PadConstant(out, in, scalarTensor(value, out.DType()), low)
}

// padMaps returns, for every dimension, the entry of a tensor of the shape
// that each entry of its pad shows.
func padMaps(shape, pad []int, mode string) [][]int {
	maps := make([][]int, len(shape))
	for d, n := range shape {
		low, high := edges(pad, d, len(shape))
		m := make([]int, n+low+high)
		for i := range m {
			m[i] = padSource(i-low, n, low, high, mode)
		}
		maps[d] = m
	}
	return maps
}

// padSource returns the entry of n that stands for entry k, which may lie outside.
func padSource(k, n, low, high int, mode string) int {
	switch mode {
	case "reflect":
		if k < 0 {
			return -k
		}
		if k >= n {
			return 2*(n-1) - k
		}
		return k
	case "replicate":
		return min(max(k, 0), n-1)
	}
	first := max(-low, 0)
	kept := max(n-first-max(-high, 0), 1)
	return first + ((k-first)%kept+kept)%kept
}

func samplePad(s *op.Sampler) []any {
	mode := padModes[s.Index(4)]
	if mode == "constant" {
		shape := s.Shape(1, 4)
		var pad []int
		for i := range 1 + s.Index(len(shape)) {
			shape[len(shape)-1-i]++ // so that a negative edge leaves something
			pad = append(pad, int(s.Int(0, 3)), int(s.Int(-1, 3)))
		}
		return []any{s.Tensor(-2, 2, shape...), pad, mode, float64(s.Index(3)) - 0.5}
	}
	k := 1 + s.Index(3)
	shape := s.Dims(k + 2)
	var pad []int
	for d := k + 1; d >= 2; d-- {
		pad = append(pad, s.Index(shape[d]), s.Index(shape[d]))
	}
	return []any{s.Tensor(-2, 2, shape...), pad, mode}
}
