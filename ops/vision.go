package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

const interpolateDoc = "Resamples images to a size, or to ⌊scale_factor·size⌋. Position o of m reads around (o + ½)·n/m − ½ of n positions, or o·(n−1)/(m−1) with align_corners: the nearest one, a linear or cubic curve through its neighbours, or the mean of an area."

var visionOps = slices.Concat(resampleOps, gridOps)

var resampleOps = []*op.Def{
	{
		Sig: "interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
		More: []string{
			"interpolate(Tensor input, int? size=None, float? scale_factor=None, str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
			"interpolate(Tensor input, int[]? size, float? scale_factor, str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
			"interpolate(Tensor input, int? size, float[]? scale_factor, str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
		},
		Names:   []string{"torch.nn.functional.interpolate", "torch.nn.functional.upsample(input, size, scale_factor, mode, align_corners)"},
		Doc:     interpolateDoc,
		SBP:     resampled,
		Infer:   inferInterpolate(interpolateOf),
		Kernels: resampleKernels(interpolateOf),
		Grad:    resampleGrad(interpolateOf),
		Saves:   func(a op.Args) bool { return a.Str(arg.Mode) == "area" },
		Sample:  sampleInterpolate,
		Formula: resampleFormula(interpolateOf),
		Tol:     weighted(resampleTerms(interpolateOf), "a weighted mean of a neighbourhood"),
	},
	fixedUpsample("upsample_nearest", "nearest", nil),
	fixedUpsample("upsample_bilinear", "bilinear", true),
	{
		Sig:     "resample(Tensor input, int[] size, str mode, bool align_corners, bool antialias, float[]? scale) -> Tensor",
		Doc:     "interpolate to a given size; scale, if there is one, relates positions in its place.",
		SBP:     anyOf(linear(arg.Input), planesBy(arg.Size, arg.Input)),
		Infer:   inferInterpolate(resampleOf),
		Kernels: resampleKernels(resampleOf),
		Grad:    resampleGrad(resampleOf),
		Sample:  sampleResample,
		Formula: resampleFormula(resampleOf),
		Tol:     weighted(resampleTerms(resampleOf), "a weighted mean of a neighbourhood"),
	},
	{
		Sig:     "resample.spread(Tensor grad, int[] size, str mode, bool align_corners, bool antialias, float[]? scale) -> Tensor",
		Doc:     "Gradient of resample for images of the given size.",
		SBP:     anyOf(linear(arg.Grad), planesBy(arg.Size, arg.Grad)),
		Infer:   inferResampleSpread,
		Kernels: windowKernels(arg.Grad, resampleSpreadRun[float32], resampleSpreadRun[float64]),
		Grad:    op.GradientOf(arg.Grad, resampleSpreadGrad),
		Sample:  sampleResampleSpread,
		Formula: resampleSpreadFormula,
		Tol:     weighted(func(a op.Args) int { return 2 * spreadOf(a).spreadTerms() }, "an element sums its share of every element that it is read for; PyTorch rounds each weight and each sum"),
	},
}

func sampleResample(s *op.Sampler) []any {
	r := sampleResampling(s)
	return []any{s.Tensor(-2, 2, append(s.Dims(2), r.in...)...), r.out, r.mode, r.align, r.antialias, r.scaleArg()}
}

func inferResampleSpread(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Grad).DType(), planesOf(a.Value(arg.Grad), a.Ints(arg.Size)), nil), nil
}

func resampleSpreadGrad(g *op.Grad) op.Value {
	return g.Op("resample", g.G(), g.Value(arg.Grad).Shape()[2:], g.Str(arg.Mode), g.Bool(arg.AlignCorners), g.Bool(arg.Antialias), g.Any(arg.Scale))
}

func sampleResampleSpread(s *op.Sampler) []any {
	r := sampleResampling(s)
	return []any{s.Tensor(-2, 2, append(s.Dims(2), r.out...)...), r.in, r.mode, r.align, r.antialias, r.scaleArg()}
}

// resampling is a checked interpolation of the last dimensions.
type resampling struct {
	in, out          []int
	mode             string
	align, antialias bool
	scale            []float64 // given in place of the ratio of the sizes; nil for none
}

func (r *resampling) scaleArg() any {
	if r.scale == nil {
		return nil
	}
	return r.scale
}

// modesOf are the dimensions that a mode needs; 0 stands for any.
var modesOf = map[string]int{"nearest": 0, "nearest-exact": 0, "area": 0, "linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}

func notImplemented(format string, args ...any) *op.Error {
	e := op.RuntimeError(format, args...)
	e.Class = "NotImplementedError"
	return e
}

// fixedUpsample is a deprecated name of one mode of interpolate.
func fixedUpsample(id, mode string, align any) *op.Def {
	of := func(a op.Args) (*resampling, error) {
		return readResampling(a, mode, align, false, false)
	}
	return &op.Def{
		Sig: id + "(Tensor input, int[]? size=None, float[]? scale_factor=None) -> Tensor",
		More: []string{
			id + "(Tensor input, int? size=None, float? scale_factor=None) -> Tensor",
			id + "(Tensor input, int[]? size, float? scale_factor) -> Tensor",
			id + "(Tensor input, int? size, float[]? scale_factor) -> Tensor",
		},
		Names:   []string{"torch.nn.functional." + id},
		Doc:     "interpolate in the mode " + mode + ".",
		SBP:     resampled,
		Infer:   inferInterpolate(of),
		Kernels: resampleKernels(of),
		Grad:    resampleGrad(of),
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Dims(4)...), s.Dims(2)} },
		Formula: resampleFormula(of),
		Tol:     weighted(resampleTerms(of), "a weighted mean of a neighbourhood"),
	}
}

func interpolateOf(a op.Args) (*resampling, error) {
	return readResampling(a, a.Str(arg.Mode), a.Any(arg.AlignCorners), a.Bool(arg.RecomputeScaleFactor), a.Bool(arg.Antialias))
}

func readResampling(a op.Args, mode string, align any, recompute, antialias bool) (*resampling, error) {
	x := a.Value(arg.Input).Shape()
	need, known := modesOf[mode]
	if align != nil && known && need == 0 {
		return nil, op.ValueError("align_corners can only be set with the modes linear, bilinear, bicubic and trilinear, not %s", mode)
	}
	r := &resampling{mode: mode, antialias: antialias}
	r.align, _ = align.(bool)
	if len(x) > 2 {
		r.in = x[2:]
	}
	if err := r.readSize(a, recompute); err != nil {
		return nil, err
	}
	if antialias && !(len(x) == 4 && (mode == "bilinear" || mode == "bicubic")) {
		return nil, op.ValueError("antialias is only supported for the modes bilinear and bicubic of 4D input")
	}
	if n := len(r.in); n < 1 || n > 3 || !known || need != 0 && need != n {
		return nil, notImplemented("mode='%s' does not support input of size %s", mode, tensor.ShapeString(x))
	}
	return r, r.check(a.Value(arg.Input))
}

// readSize reads size and scale_factor, of which exactly one is given.
func (r *resampling) readSize(a op.Args, recompute bool) error {
	sizes, scales := a.Has(arg.Size), a.Has(arg.ScaleFactor)
	switch {
	case sizes && scales:
		return op.ValueError("only one of size or scale_factor should be defined")
	case !sizes && !scales:
		return op.ValueError("either size or scale_factor should be defined")
	case sizes && recompute:
		return op.ValueError("recompute_scale_factor is not meaningful with an explicit size")
	case sizes:
		r.out = a.Ints(arg.Size)
		if n, ok := a.Any(arg.Size).(int); ok {
			r.out = slices.Repeat([]int{n}, len(r.in))
		}
		if len(r.out) != len(r.in) {
			return op.ValueError("expected a size of %d elements, but got size=%v", len(r.in), r.out)
		}
		return nil
	}
	factors, _ := a.Any(arg.ScaleFactor).([]float64)
	if f, ok := a.Any(arg.ScaleFactor).(float64); ok {
		factors = slices.Repeat([]float64{f}, len(r.in))
	}
	if len(factors) != len(r.in) {
		return op.ValueError("expected a scale_factor of %d elements, but got scale_factor=%v", len(r.in), factors)
	}
	for i, f := range factors {
		r.out = append(r.out, int(math.Floor(float64(r.in[i])*f)))
	}
	if !recompute && r.mode != "area" {
		r.scale = factors
	}
	return nil
}

func (r *resampling) check(v op.Value) error {
	x := v.Shape()
	if r.mode == "area" {
		if tensor.NumElements(r.in) == 0 || len(r.in) == 3 && x[1] == 0 {
			return op.RuntimeError("expected input with elements, but got size %s", tensor.ShapeString(x))
		}
		return checkAtLeast(0, arg.Size, r.out)
	}
	if tensor.NumElements(x[1:]) == 0 {
		return op.RuntimeError("expected input with elements, but got size %s", tensor.ShapeString(x))
	}
	return checkAtLeast(1, arg.Size, r.out)
}

func resampleOf(a op.Args) (*resampling, error) {
	r := spreadOf(a)
	r.in, r.out = a.Value(arg.Input).Shape()[2:], a.Ints(arg.Size)
	return r, nil
}

// spreadOf reads the arguments of resample.spread.
func spreadOf(a op.Args) *resampling {
	r := &resampling{in: a.Ints(arg.Size), mode: a.Str(arg.Mode), align: a.Bool(arg.AlignCorners), antialias: a.Bool(arg.Antialias)}
	r.scale, _ = a.Any(arg.Scale).([]float64)
	if a.Sig.Takes(arg.Grad) {
		r.out = a.Value(arg.Grad).Shape()[2:]
	}
	return r
}

func inferInterpolate(of func(op.Args) (*resampling, error)) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		r, err := of(a)
		if err != nil {
			return nil, err
		}
		x := a.Value(arg.Input)
		shape := append(slices.Clone(x.Shape()[:2]), r.out...)
		return one(x.DType(), shape, r.strides(x, shape)), nil
	}
}

// strides are those of PyTorch's kernels, of which bicubic and the area mean
// of volumes ignore the memory format.
func (r *resampling) strides(x op.Value, shape []int) []int {
	switch {
	case r.mode == "bicubic" || len(r.in) == 1 || r.mode == "area" && len(r.in) == 3:
		return nil
	case len(r.in) == 3:
		if tensor.ChannelsLast.Matches(x.Shape(), x.Strides()) && !tensor.Contiguous.Matches(x.Shape(), x.Strides()) {
			return tensor.ChannelsLast.Strides(shape)
		}
		return nil
	}
	return suggestedStrides(x, shape)
}

func resampleKernels(of func(op.Args) (*resampling, error)) []op.Kernel {
	nearest := op.Pred{Text: "a nearest mode", Holds: func(a op.Args) bool {
		r, err := of(a)
		return err == nil && (r.mode == "nearest" || r.mode == "nearest-exact")
	}}
	bytes := op.Kernel{Name: "nearest uint8", When: op.And(op.DTypeIn(arg.Input, tensor.U8), nearest), Run: func(c *op.Run) error {
		r, err := of(c.Args)
		if err != nil {
			return err
		}
		m := &kernel.Blend[uint8]{Boxes: resampleBlend[float32](r).Boxes}
		applyBlend(c.Out[0], c.Tensor(arg.Input), m, len(r.in))
		return nil
	}}
	return append(windowKernels(arg.Input, resampleRun[float32](of), resampleRun[float64](of)), bytes)
}

func resampleRun[T float32 | float64](of func(op.Args) (*resampling, error)) func(c *op.Run) error {
	return func(c *op.Run) error {
		r, err := of(c.Args)
		if err != nil {
			return err
		}
		applyBlend(c.Out[0], c.Tensor(arg.Input), resampleBlend[T](r), len(r.in))
		return nil
	}
}

func resampleSpreadRun[T float32 | float64](c *op.Run) error {
	r := spreadOf(c.Args)
	spreadBlend(c.Out[0], c.Tensor(arg.Grad), resampleBlend[T](r), len(r.in))
	return nil
}

func resampleGrad(of func(op.Args) (*resampling, error)) func(g *op.Grad) {
	return func(g *op.Grad) {
		r, err := of(g.Args)
		if err != nil {
			op.Fail(err)
		}
		g.To(arg.Input, func() op.Value {
			return g.Op("resample.spread", g.G(), r.in, r.mode, r.align, r.antialias, r.scaleArg())
		})
	}
}

func resampleTerms(of func(op.Args) (*resampling, error)) func(op.Args) int {
	return func(a op.Args) int {
		r, err := of(a)
		if err != nil {
			return 1
		}
		return r.terms()
	}
}

// terms is the largest number of elements that are read for one.
func (r *resampling) terms() int {
	n := 1
	for _, axis := range resampleBlend[float64](r).Axes {
		if len(axis.Count) > 0 {
			n *= slices.Max(axis.Count)
		}
	}
	return n
}

// spreadTerms is about the largest number of elements for which one is read.
func (r *resampling) spreadTerms() int {
	n := r.terms()
	for i, out := range r.out {
		n *= out/max(r.in[i], 1) + 1
	}
	return n
}

// resampleBlend is the separable map of an interpolation.
func resampleBlend[T float32 | float64](r *resampling) *kernel.Blend[T] {
	if r.mode == "area" {
		return boxMean[T](adaptiveBoxes(r.in, r.out))
	}
	m := &kernel.Blend[T]{Boxes: &kernel.Boxes{X: lifted(r.in, 1), Y: lifted(r.out, 1)}}
	for a := range m.Axes {
		i := a - 3 + len(r.in)
		if i < 0 {
			m.Axes[a] = kernel.Axis{First: []int{0}, Count: []int{1}, Step: 1}
			continue
		}
		axis := kernel.Axis{Step: 1}
		for o := range r.out[i] {
			first, w := resampleTaps[T](r, i, o)
			axis.First, axis.Count = append(axis.First, first), append(axis.Count, len(w))
			m.Weight[a] = append(m.Weight[a], w)
		}
		m.Axes[a] = axis
	}
	if r.mode == "nearest" || r.mode == "nearest-exact" {
		m.Weight = [3][][]T{}
	}
	return m
}

// step returns how far apart neighbours along dimension i lie in the image.
func resampleStep[T float32 | float64](r *resampling, i int) T {
	switch n, m := r.in[i], r.out[i]; {
	case r.align && m > 1:
		return T(n-1) / T(m-1)
	case r.align:
		return 0
	case r.scale != nil && r.scale[i] > 0:
		return T(1 / r.scale[i])
	default:
		return T(n) / T(m)
	}
}

// resampleTaps returns the first position that position o along dimension i
// reads, and the weights of it and those after it.
func resampleTaps[T float32 | float64](r *resampling, i, o int) (first int, w []T) {
	n, step := r.in[i], resampleStep[T](r, i)
	at := step*(T(o)+0.5) - 0.5
	if r.align {
		at = step * T(o)
	}
	switch {
	case r.antialias:
		return filterTaps(r.mode, n, step, o)
	case r.mode == "nearest":
		return min(int(float32(T(o)*step)), n-1), []T{1}
	case r.mode == "nearest-exact":
		return min(int(float32((T(o)+0.5)*step)), n-1), []T{1}
	case r.mode == "bicubic":
		low := min(int(math.Floor(float64(at))), n-1)
		cubic := kernel.CubicWeights(float64(min(max(at-T(low), 0), 1)), -0.75)
		return clampedTaps[T](low-1, cubic[:], n)
	case n == r.out[i]:
		return o, []T{1}
	}
	at = max(at, 0)
	low := min(int(at), n-1)
	up := min(max(at-T(low), 0), 1)
	return clampedTaps[T](low, []float64{float64(1 - up), float64(up)}, n)
}

// clampedTaps moves the weights of positions outside of n to the nearest one inside.
func clampedTaps[T float32 | float64](first int, weights []float64, n int) (int, []T) {
	low, high := min(max(first, 0), n-1), min(max(first+len(weights)-1, 0), n-1)
	w := make([]T, high-low+1)
	for k, v := range weights {
		w[min(max(first+k, 0), n-1)-low] += T(v)
	}
	return low, w
}

// filterTaps are the weights of an antialiased interpolation: a triangle or
// Keys' cubic with a = −½, stretched by the step when that is above one.
func filterTaps[T float32 | float64](mode string, n int, step T, o int) (first int, w []T) {
	reach, filter := T(1), func(x float64) float64 { return max(1-math.Abs(x), 0) }
	if mode == "bicubic" {
		reach, filter = 2, cubicFilter
	}
	stretch := max(step, 1)
	centre := step * (T(o) + 0.5)
	first = max(int(centre-reach*stretch+0.5), 0)
	last := min(int(centre+reach*stretch+0.5), n)
	sum := T(0)
	for j := first; j < last; j++ {
		v := T(filter(float64((T(j) - centre + 0.5) / stretch)))
		w = append(w, v)
		sum += v
	}
	for j := range w {
		w[j] /= sum
	}
	return first, w
}

func cubicFilter(x float64) float64 {
	if x = math.Abs(x); x >= 2 {
		return 0
	}
	low := math.Floor(x)
	return kernel.CubicWeights(x-low, -0.5)[1-int(low)]
}

func sampleInterpolate(s *op.Sampler) []any {
	r := sampleResampling(s)
	var size, scale, align any = r.out, nil, nil
	if r.scale != nil {
		size, scale = nil, r.scale
	}
	if modesOf[r.mode] > 0 {
		align = r.align
	}
	x := append(s.Dims(2), r.in...)
	return []any{s.Tensor(-2, 2, x...), size, scale, r.mode, align, scale != nil && s.Bool(), r.antialias}
}

// sampleResampling draws an interpolation.
func sampleResampling(s *op.Sampler) *resampling {
	n := 1 + s.Index(3)
	modes := [][]string{{"linear"}, {"bilinear", "bicubic"}, {"trilinear"}}[n-1]
	modes = append(modes, "nearest", "nearest-exact", "area")
	r := &resampling{in: s.Dims(n), mode: modes[s.Index(len(modes))]}
	r.align = modesOf[r.mode] > 0 && s.Bool()
	r.antialias = n == 2 && modesOf[r.mode] == 2 && s.Bool()
	scaled := r.mode != "area" && s.Bool()
	for i := range n {
		if scaled {
			r.scale = append(r.scale, 1+float64(s.Index(6))/4)
			r.out = append(r.out, int(math.Floor(float64(r.in[i])*r.scale[i])))
		} else {
			r.out = append(r.out, int(s.Int(1, 8)))
		}
	}
	return r
}
