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

var floatTypes = slices.Clip(slices.Concat(float32Set, float64Set))

var randomOps = slices.Concat(dropoutOps, noiseOps, creationDraws, discreteDraws, fillOps, emptyOps)

var noiseOps = []*op.Def{
	{
		Sig:           "rrelu(Tensor input, float lower=0.125, float upper=0.3333333333333333, bool training=False, bool inplace=False) -> Tensor",
		Names:         []string{"torch.nn.functional.rrelu", "torch.rrelu"},
		Doc:           "Randomised leaky relu: x for x > 0, r·x elsewhere, r uniform in [lower, upper) and drawn for each element in training, (lower + upper)/2 in evaluation.",
		Traits:        op.Random,
		NotSplittable: drawsAll,
		Reject:        firstError(rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...), checkRrelu),
		Infer:         inferRrelu,
		Kernels:       []op.Kernel{{Name: "noise", When: op.DTypeIn(arg.Input, floatTypes...), Run: runRrelu}},
		Grad:          op.Gradient(rreluGrad),
		Sample:        func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...), 0.1, 0.4, s.Bool()} },
		Law:           rreluLaw,
		Tol:           op.Tol{Class: op.Statistical, ULP: 5, Reason: "a slope for each negative element; in evaluation a product with the mean of two numbers: three roundings of one side, where they are of the dtype, two of the other"},
	},
	{
		Sig:           "rrelu_noise(Tensor like, float lower, float upper, int draw) -> Tensor",
		Doc:           "The slopes that the call of rrelu with a number has drawn.",
		Traits:        op.NoGrad | op.Random,
		NotSplittable: drawsAll,
		Infer:         inferRreluNoise,
		Kernels:       []op.Kernel{{Name: "noise", Run: runRreluNoise}},
		Law:           func(a op.Args) *op.Law { return nil },
		Tol:           drawn("repeats the draws of another call"),
	},
}

func inferRreluNoise(a op.Args) ([]op.Meta, error) {
	return one(a.Value(arg.Like).DType(), a.Value(arg.Like).Shape(), nil), nil
}

func runRreluNoise(c *op.Run) error {
	kernel.Fill(c.Out[0], c.Random, 1, kernel.UniformIn(c.Float(arg.Lower), c.Float(arg.UpperFloat)))
	return nil
}

func checkRrelu(a op.Args) error {
	if a.Float(arg.Lower) > a.Float(arg.UpperFloat) {
		return op.RuntimeError("argument 'lower' should be less than or equal to 'upper', but %v > %v", a.Float(arg.Lower), a.Float(arg.UpperFloat))
	}
	return nil
}

func inferRrelu(a op.Args) ([]op.Meta, error) {
	if a.Bool(arg.Training) {
		return one(a.Value(arg.Input).DType(), a.Value(arg.Input).Shape(), nil), nil
	}
	return sameAs(arg.Input)(a)
}

func runRrelu(c *op.Run) error {
	x := c.Tensor(arg.Input)
	if !c.Bool(arg.Training) {
		meanSlope(c.Out[0], x, (c.Float(arg.Lower)+c.Float(arg.UpperFloat))/2)
		return nil
	}
	slope := tensor.New(x.DType(), x.Shape()...)
	kernel.Fill(slope, c.Random, 1, kernel.UniformIn(c.Float(arg.Lower), c.Float(arg.UpperFloat)))
	if x.DType() == tensor.F64 {
		kernel.Map2(c.Out[0], x, slope, kernel.NoisyRelu[float64])
	} else {
		kernel.Map2(c.Out[0], x, slope, kernel.NoisyRelu[float32])
	}
	return nil
}

func rreluGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	slope := any((g.Float(arg.Lower) + g.Float(arg.UpperFloat)) / 2)
	if g.Bool(arg.Training) {
		slope = g.Op("rrelu_noise", x, g.Float(arg.Lower), g.Float(arg.UpperFloat), g.Draw)
	}
	return g.Op("where", g.Op("gt", x, 0), g.G(), g.Mul(g.G(), slope))
}

// meanSlope is rrelu in evaluation.
func meanSlope(out, x *tensor.Tensor, slope float64) {
	if x.DType() == tensor.F64 {
		kernel.Map1(out, x, kernel.LeakyRelu(slope))
		return
	}
	kernel.Map1(out, x, kernel.LeakyRelu(float32(slope)))
}

func rreluLaw(a op.Args) *op.Law {
	lo, hi := a.Float(arg.Lower), a.Float(arg.UpperFloat)
	x := a.Tensor(arg.Input)
	if !a.Bool(arg.Training) || lo == hi {
		return nil
	}
	slope := func(out *tensor.Tensor, i int) float64 {
		switch v := x.Float(i); {
		case v > 0:
			return 1
		case v < 0:
			return out.Float(i) / v
		}
		return math.NaN()
	}
	u := epsilonOf(x.DType())
	return &op.Law{
		Support: fmt.Sprintf("x, or x·r with r in [%v, %v]", lo, hi),
		Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
			var ds []op.Draw
			for i := range out.Len() {
				v, r := x.Float(i), slope(out, i)
				slack := 4*u*math.Abs(r) + smallestOf(x.DType())/math.Abs(v)
				switch {
				case math.IsNaN(r) || math.IsInf(v, 0):
				case v > 0 && out.Float(i) != v:
					return nil, outside(i, out, fmt.Sprintf("%v", v))
				case v < 0 && !(r >= lo-slack-4*u && r <= hi+slack+4*u):
					return nil, outside(i, out, fmt.Sprintf("between %v and %v", v*lo, v*hi))
				case v < 0 && 4*u*max(math.Abs(lo), math.Abs(hi))+smallestOf(x.DType())/-v < (hi-lo)/8:
					ds = append(ds, op.Draw{At: i, Below: unitInterval((r - u*r - lo) / (hi - lo)), Upto: unitInterval((r + u*r - lo) / (hi - lo))})
				}
			}
			return ds, nil
		},
		Slopes: func(out *tensor.Tensor) []float64 { return each(out, func(i int) float64 { return slope(out, i) }) },
	}
}

// creation completes a call that makes a tensor of numbers from nothing.
func creation(id, params, doc string, d op.Def) *op.Def {
	d.Sig = id + "(" + params + ", *, Generator? generator=None, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor"
	d.Doc = doc
	d.Traits = op.NoGrad | op.Random
	if d.Infer == nil {
		d.Infer = drawnSize
	}
	d.NotSplittable = drawsAll
	d.Tol = drawn("numbers from a random stream")
	return &d
}

// like completes a call that makes numbers in the shape of a tensor.
func drawnLike(id, params, doc string, d op.Def) *op.Def {
	d.Sig = id + "(Tensor input" + params + ", *, dtype? dtype=None, device? device=None, bool requires_grad=False, MemoryFormat? memory_format=None) -> Tensor"
	d.Doc = doc
	d.Traits = op.NoGrad | op.Random
	d.NotSplittable = drawsAll
	d.Infer = func(a op.Args) ([]op.Meta, error) {
		x := a.Value(arg.Input)
		dtype := x.DType()
		if a.Has(arg.DType) {
			dtype = a.DType(arg.DType)
		}
		strides := denseStrides(x)
		if f, ok := a.Any(arg.MemoryFormat).(tensor.MemoryFormat); ok && f != tensor.Preserve {
			strides = f.Strides(x.Shape())
		}
		return one(dtype, x.Shape(), strides), nil
	}
	d.NotSplittable = drawsAll
	d.Tol = drawn("numbers from a random stream")
	return &d
}

func drawnSize(a op.Args) ([]op.Meta, error) {
	for _, n := range a.Ints(arg.Size) {
		if n < 0 {
			return nil, op.RuntimeError("Trying to create tensor with negative dimension %d: %v", n, a.Ints(arg.Size))
		}
	}
	d := tensor.F32
	if a.Has(arg.DType) {
		d = a.DType(arg.DType)
	}
	return one(d, a.Ints(arg.Size), nil), nil
}

// resultKernel runs on results of one of the dtypes.
func resultKernel(ds []tensor.DType, run func(c *op.Run) error) []op.Kernel {
	return []op.Kernel{{Name: "draw", Run: run, When: op.Pred{
		Text:  "dtype of the result in {" + typeNames(ds) + "}",
		Holds: func(a op.Args) bool { return slices.Contains(ds, drawnType(a)) },
	}}}
}

// drawnType is the dtype that the arguments give to what is drawn.
func drawnType(a op.Args) tensor.DType {
	if a.Sig.Takes(arg.DType) && a.Has(arg.DType) {
		return a.DType(arg.DType)
	}
	if vs := a.AllValues(); len(vs) > 0 {
		return vs[0].DType()
	}
	return tensor.F32
}

var (
	uniformKernels = resultKernel(inexactTypes, func(c *op.Run) error {
		parts := realParts(c.Out[0])
		kernel.Fill(parts, c.Random, 1, kernel.Uniform(digitsOf(parts.DType())))
		return nil
	})
	normalKernels = resultKernel(inexactTypes, func(c *op.Run) error {
		fillNormal(c, func(int) float64 { return 0 }, func(int) float64 { return partDeviation(c.Out[0].DType()) })
		return nil
	})
)

// inexactTypes are the dtypes of rand and randn. A complex number is drawn as
// its two parts; in a normal one, of variance 1, each has the variance ½.
var inexactTypes = slices.Concat(floatTypes, complexTypes)

// realParts returns a complex tensor as pairs of reals, any other as it is.
func realParts(t *tensor.Tensor) *tensor.Tensor {
	if t.DType().IsComplex() {
		return asReal(t)
	}
	return t
}

// partDeviation is the standard deviation of the parts of a number of
// deviation 1.
func partDeviation(d tensor.DType) float64 {
	if d.IsComplex() {
		return math.Sqrt2 / 2
	}
	return 1
}

// fillNormal draws the real parts of the result around mean, with deviation std.
func fillNormal(c *op.Run, mean, std func(part int) float64) {
	kernel.Fill(realParts(c.Out[0]), c.Random, 2, func(dst []float64, words []uint64, at int) {
		kernel.Normal(dst, words, at)
		for i := range dst {
			dst[i] = mean(at+i) + std(at+i)*dst[i]
		}
	})
}

var creationDraws = []*op.Def{
	creation("rand", "int[] size", "Uniform numbers in [0, 1).", op.Def{
		Names: []string{"torch.rand"}, Kernels: uniformKernels, Law: uniformLaw,
		Sample: func(s *op.Sampler) []any { return []any{s.Shape(0, 3), op.Kw("dtype", s.DType)} },
	}),
	creation("randn", "int[] size", "Normal numbers of mean 0 and variance 1.", op.Def{
		Names: []string{"torch.randn"}, Kernels: normalKernels, Law: standardNormal,
		Sample: func(s *op.Sampler) []any { return []any{s.Shape(0, 3), op.Kw("dtype", s.DType)} },
	}),
	drawnLike("rand_like", "", "Uniform numbers in [0, 1) in the shape of the input.", op.Def{
		Names: []string{"torch.rand_like"}, Kernels: uniformKernels, Law: uniformLaw,
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Shape(0, 3)...)} },
	}),
	drawnLike("randn_like", "", "Normal numbers of mean 0 and variance 1 in the shape of the input.", op.Def{
		Names: []string{"torch.randn_like"}, Kernels: normalKernels, Law: standardNormal,
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-1, 1, s.Shape(0, 3)...)} },
	}),
	creation("normal.size", "float mean, float std, int[] size", "Normal numbers of a mean and a standard deviation.", op.Def{
		Names: []string{"torch.normal"}, Reject: checkStd, Law: normalLaw,
		Kernels: resultKernel(inexactTypes, drawNormal),
		Sample:  func(s *op.Sampler) []any { return []any{s.Float(-2, 2), s.Float(0, 2), s.Shape(0, 3)} },
	}),
	normalOf("normal", "Tensor mean, Tensor std"),
	normalOf("normal.mean", "Tensor mean, float std=1.0"),
	normalOf("normal.std", "float mean, Tensor std"),
}

func uniformLaw(a op.Args) *op.Law {
	return &op.Law{Support: "[0, 1)", Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		u := epsilonOf(realParts(out).DType())
		return eachDraw(out, func(i int, v float64) (below, upto float64, ok bool) {
			return unitInterval(v - u*v), unitInterval(v + u*v), v >= 0 && v < 1
		}, "a number in [0, 1)")
	}}
}

func standardNormal(a op.Args) *op.Law {
	return gaussian(func(int) float64 { return 0 }, func(int) float64 { return partDeviation(drawnType(a)) })
}

// normalLaw is that of the mean and std arguments, numbers or tensors.
func normalLaw(a op.Args) *op.Law { return gaussian(normalParameters(a)) }

// normalParameters returns the mean and the standard deviation of each real
// part of the result.
func normalParameters(a op.Args) (mean, std func(part int) float64) {
	mean, std = parameters(a, arg.Mean), parameters(a, arg.Std)
	d := drawnType(a)
	if !d.IsComplex() {
		return mean, std
	}
	if t := a.Tensor(arg.MeanTensor); t != nil {
		mean = asReal(spreadParameter(a, t)).Float
	} else {
		mean = func(part int) float64 { return a.Float(arg.Mean) * float64(1-part%2) }
	}
	whole, share := std, partDeviation(d)
	return mean, func(part int) float64 { return whole(part/2) * share }
}

// parameters returns the elements of a tensor argument, or a number for all.
func parameters(a op.Args, name op.Handle) func(i int) float64 {
	if t, ok := a.Any(name).(*tensor.Tensor); ok {
		return spreadParameter(a, t).Float
	}
	v := a.Any(name).(float64)
	return func(int) float64 { return v }
}

// spreadParameter broadcasts t to the common shape of mean and std.
func spreadParameter(a op.Args, t *tensor.Tensor) *tensor.Tensor {
	shape, err := broadcastShape(valuesOf(a, []op.Handle{arg.MeanTensor, arg.StdTensor})...)
	if err != nil {
		return t
	}
	u, err := t.Expand(shape...)
	if err != nil {
		return t
	}
	return u
}

func gaussian(mean, std func(int) float64) *op.Law {
	return &op.Law{Support: "real numbers", Draws: func(out *tensor.Tensor) ([]op.Draw, error) {
		var ds []op.Draw
		out, per := realParts(out), partsOf(out.DType())
		for i := range out.Len() {
			m, s, v := mean(i), std(i), out.Float(i)
			step := epsilonOf(out.DType())*math.Abs(v) + smallestOf(out.DType())
			switch {
			case math.IsNaN(m) || math.IsNaN(s) || math.IsInf(m, 0) || math.IsInf(s, 0) || s == 0 && v == m:
			case math.IsNaN(v) || math.IsInf(v, 0) && out.DType() != tensor.F16 || s == 0 && math.Abs(v-m) > 4*step:
				return nil, outside(i, out, fmt.Sprintf("a normal number of mean %v and deviation %v", m, s))
			case s > 0:
				ds = append(ds, op.Draw{At: i / per, Below: normalCDF((v - step - m) / s), Upto: normalCDF((v + step - m) / s)})
			}
		}
		return ds, nil
	}}
}

// partsOf is how many reals a number has.
func partsOf(d tensor.DType) int {
	if d.IsComplex() {
		return 2
	}
	return 1
}

func normalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// normalOf is a form of normal that takes its parameters from tensors.
func normalOf(id, params string) *op.Def {
	return &op.Def{
		Sig:           id + "(" + params + ", *, Generator? generator=None) -> Tensor",
		Names:         []string{"torch.normal"},
		Doc:           "Normal numbers, each of its own mean and standard deviation. They have no gradient: PyTorch's is 0.",
		Traits:        op.Random,
		NotSplittable: drawsAll,
		Fixed:         []op.Handle{arg.MeanTensor, arg.StdTensor},
		Reject:        checkStd,
		Infer:         inferNormalOf,
		Kernels:       resultKernel(inexactTypes, drawNormal),
		Grad:          zeroGrads(arg.MeanTensor, arg.StdTensor),
		Sample: func(s *op.Sampler) []any {
			switch x := s.Shape(0, 3); id {
			case "normal":
				return []any{s.Tensor(-1, 1, x...), s.Tensor(0, 2, x...)}
			case "normal.mean":
				return []any{s.Tensor(-1, 1, x...), s.Float(0, 2)}
			default:
				return []any{s.Float(-1, 1), s.Tensor(0, 2, x...)}
			}
		},
		Law: normalLaw,
		Tol: drawn("numbers from a random stream"),
	}
}

func inferNormalOf(a op.Args) ([]op.Meta, error) {
	vs := valuesOf(a, []op.Handle{arg.MeanTensor, arg.StdTensor})
	shape, err := broadcastShape(vs...)
	return one(vs[0].DType(), shape, nil), err
}

func checkStd(a op.Args) error {
	if v := a.Value(arg.StdTensor); v != nil && v.DType().IsComplex() {
		return op.RuntimeError("argument 'std' must not be complex, but is %s", v.DType())
	}
	if v, ok := a.Any(arg.Std).(float64); ok && !(v >= 0) {
		return op.RuntimeError("argument 'std' must not be negative, but is %v", v)
	}
	return nil
}

func drawNormal(c *op.Run) error {
	if std := c.Tensor(arg.StdTensor); std != nil {
		for i := range std.Len() {
			if !(std.Float(i) >= 0) {
				return op.RuntimeError("argument 'std' must have elements of at least 0, but has %v", std.Float(i))
			}
		}
	}
	mean, std := normalParameters(c.Args)
	fillNormal(c, mean, std)
	return nil
}

// digitsOf is how many binary digits a uniform number of a dtype has.
func digitsOf(d tensor.DType) int {
	switch d {
	case tensor.F16:
		return 11
	case tensor.BF16:
		return 8
	case tensor.F32:
		return 24
	}
	return 53
}

// epsilonOf is half the distance from 1 to the next number.
func epsilonOf(d tensor.DType) float64 { return math.Ldexp(1, -digitsOf(d)) }

// smallestOf is the least number of full precision.
func smallestOf(d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return 0x1p-14
	case tensor.F64:
		return 0x1p-1022
	}
	return 0x1p-126
}

func unitInterval(u float64) float64 { return min(max(u, 0), 1) }

func drawn(what string) op.Tol { return op.Tol{Class: op.Statistical, Reason: what} }

func outside(i int, out *tensor.Tensor, want string) error {
	return fmt.Errorf("element %d is %v, want %s", i, numberIn(out.DType(), out.At(i)), want)
}

// numberIn is v as a dtype has it: without an imaginary part in a real one.
func numberIn(d tensor.DType, v complex128) any {
	if d.IsComplex() {
		return v
	}
	return real(v)
}

// each returns f of every element's position.
func each(out *tensor.Tensor, f func(i int) float64) []float64 {
	vs := make([]float64, out.Len())
	for i := range vs {
		vs[i] = f(i)
	}
	return vs
}

// eachDraw makes a draw of every element whose value is in the support.
func eachDraw(out *tensor.Tensor, f func(i int, v float64) (below, upto float64, ok bool), support string) ([]op.Draw, error) {
	out, per := realParts(out), partsOf(out.DType())
	ds := make([]op.Draw, 0, out.Len())
	for i := range out.Len() {
		below, upto, ok := f(i, out.Float(i))
		if !ok {
			return nil, outside(i, out, support)
		}
		if below > 0 || upto < 1 {
			ds = append(ds, op.Draw{At: i / per, Below: below, Upto: upto})
		}
	}
	return ds, nil
}
