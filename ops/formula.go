package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// The formulas of operators that are neither elementwise nor sums of products,
// as textbooks write them: rounding-error bounds follow from them.

func softmaxFormula(logarithm bool) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		dim, err := softmaxDim(a)
		if err != nil {
			op.Fail(err)
		}
		x := b.Cast(a.Value(arg.Input), softmaxType(a))
		shifted := b.Sub(x, b.Op("max.dim", x, dim, true))
		e := b.Op("exp", shifted)
		sum := b.Op("sum", e, []int{dim}, true)
		if logarithm {
			return []op.Value{b.Sub(shifted, b.Op("log", sum))}
		}
		return []op.Value{b.Div(e, sum)}
	}
}

func softmaxBackwardFormula(logarithm bool) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		c, y, dim := a.Value(arg.Grad), a.Value(arg.Output), []int{a.Int(arg.Dim)}
		if logarithm {
			return []op.Value{b.Sub(c, b.Mul(b.Op("exp", y), b.Op("sum", c, dim, true)))}
		}
		return []op.Value{b.Mul(y, b.Sub(c, b.Op("sum", b.Mul(c, y), dim, true)))}
	}
}

// normal is a normalisation in 3 dimensions: one group at each middle index.
type normal struct {
	op.Builder
	d     kernel.Groups
	shape []int // of weight and bias
	param []int // the same in 3 dimensions
	over  []int // the dimensions along which they repeat
}

func (n normal) in3(v op.Value) op.Value {
	return n.Reshape(v, []int{n.d.Outer, n.d.Count, n.d.Inner})
}

func (n normal) mean(v op.Value) op.Value {
	return n.Op("mean", v, []int{0, 2}, true)
}

// moments returns x − mean and 1/√(var + eps).
func (n normal) moments(x op.Value, eps float64) (centred, scale op.Value) {
	centred = n.Sub(x, n.mean(x))
	return centred, n.scale(n.mean(n.Mul(centred, centred)), eps)
}

func (n normal) scale(variance op.Value, eps float64) op.Value {
	return n.Op("rsqrt", n.Add(variance, eps))
}

// affine returns x·weight + bias in x's dimensions, and like's shape.
func (n normal) affine(x, weight, bias, like op.Value) []op.Value {
	if weight != nil {
		x = n.Mul(x, n.Reshape(weight, n.param))
	}
	if bias != nil {
		x = n.Add(x, n.Reshape(bias, n.param))
	}
	return []op.Value{n.Reshape(x, like.Shape())}
}

// backward returns the gradients of input, weight and bias: s·(u − mean u − x̂·mean(x̂·u))
// with u = grad·weight, and the sums of grad·x̂ and of grad.
func (n normal) backward(a op.Args) []op.Value {
	x, c := a.Value(arg.Input), n.in3(a.Value(arg.Grad))
	centred, s := n.moments(n.in3(x), a.Float(arg.Eps))
	hat, u := n.Mul(centred, s), c
	if w := a.Value(arg.Weight); w != nil {
		u = n.Mul(c, n.Reshape(w, n.param))
	}
	inner := n.Sub(n.Sub(u, n.mean(u)), n.Mul(hat, n.mean(n.Mul(hat, u))))
	return []op.Value{
		n.Reshape(n.Mul(s, inner), x.Shape()),
		n.Reshape(n.Op("sum", n.Mul(c, hat), n.over), n.shape),
		n.Reshape(n.Op("sum", c, n.over), n.shape),
	}
}

func rowNormal(b op.Builder, a op.Args) normal {
	d := rowGroups(a)
	return normal{b, d, a.Ints(arg.NormalizedShape), []int{1, 1, d.Inner}, []int{0, 1}}
}

func channelNormal(b op.Builder, a op.Args) normal {
	d := channelGroups(a.Value(arg.Input))
	return normal{b, d, []int{d.Count}, []int{1, d.Count, 1}, []int{0, 2}}
}

func layerNormFormula(b op.Builder, a op.Args) []op.Value {
	n := rowNormal(b, a)
	centred, s := n.moments(n.in3(a.Value(arg.Input)), a.Float(arg.Eps))
	return n.affine(n.Mul(centred, s), a.Value(arg.Weight), a.Value(arg.Bias), a.Value(arg.Input))
}

func batchNormFormula(b op.Builder, a op.Args) []op.Value {
	n := channelNormal(b, a)
	x := n.in3(a.Value(arg.Input))
	var centred, s op.Value
	if a.Bool(arg.Training) {
		centred, s = n.moments(x, a.Float(arg.Eps))
	} else {
		centred = n.Sub(x, n.Reshape(a.Value(arg.RunningMean), n.param))
		s = n.scale(n.Reshape(a.Value(arg.RunningVar), n.param), a.Float(arg.Eps))
	}
	return n.affine(n.Mul(centred, s), a.Value(arg.Weight), a.Value(arg.Bias), a.Value(arg.Input))
}

func momentsFormula(b op.Builder, a op.Args) []op.Value {
	n := normal{Builder: b, d: channelGroups(a.Value(arg.Input))}
	x := n.in3(a.Value(arg.Input))
	_, s := n.moments(x, a.Float(arg.Eps))
	return []op.Value{n.mean(x), s}
}

func geluFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	cdf := b.Op("erf", b.Mul(x, math.Sqrt2/2))
	if a.Str(arg.Approximate) == "tanh" {
		cubic := b.Mul(b.Mul(b.Mul(x, x), x), 0.044715)
		cdf = b.Op("tanh", b.Mul(b.Add(x, cubic), math.Sqrt(2/math.Pi)))
	}
	return []op.Value{b.Mul(b.Mul(x, 0.5), b.Add(cdf, 1))}
}

func rsubFormula(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Op("sub", a.Any(arg.Other), a.Value(arg.Input), op.Kw("alpha", number(a, arg.Alpha)))}
}

// hardsigmoidFormula is what PyTorch documents, which loses more towards -3 than
// the sum with 3 that it computes.
func hardsigmoidFormula(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Op("clamp", b.Add(b.Div(a.Value(arg.Input), 6), 0.5), 0.0, 1.0)}
}

func tanhshrinkFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	return []op.Value{b.Sub(x, b.Op("tanh", x))}
}

// reduction says which dimensions an operator reduces, the shape of its
// results and how many elements each of them combines.
type reduction struct {
	dims   []int
	shape  []int
	length int
}

func reductionAt(a op.Args) reduction {
	dims, err := statDims(a)
	if err != nil {
		op.Fail(err)
	}
	s := a.Value(arg.Input).Shape()
	kept := a.Sig.Takes(arg.Keepdim) && a.Bool(arg.Keepdim)
	r := reduction{dims: dims, shape: reducedShape(s, dims, kept), length: 1}
	for _, d := range dims {
		r.length *= s[d]
	}
	return r
}

// logSumExpFormula is m + log Σ exp(x − m), m the largest of a row.
func logSumExpFormula(b op.Builder, a op.Args) []op.Value {
	r, x := reductionAt(a), b.Cast(a.Value(arg.Input), floatResult(statInputType(a)))
	height := x
	if x.DType().IsComplex() {
		height = b.Op("real", x)
	}
	most := b.Op("amax", height, r.dims, true)
	sum := b.Op("sum", b.Op("exp", b.Sub(x, most)), r.dims, true)
	return []op.Value{b.Reshape(b.Add(b.Op("log", sum), most), r.shape)}
}

// momentFormula is Σ(x − mean)²/(n − correction) of reals, or its root.
func momentFormula(root, mean bool) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		r, x := reductionAt(a), a.Value(arg.Input)
		if x.DType().IsComplex() {
			op.Fail(op.RuntimeError("no formula for complex numbers"))
		}
		m := b.Op("mean", x, r.dims, true)
		d := b.Sub(x, m)
		y := b.Div(b.Op("sum", b.Mul(d, d), r.dims, true), max(0, float64(r.length)-momentCorrection(a)))
		if root {
			y = b.Op("sqrt", y)
		}
		out := []op.Value{b.Reshape(y, r.shape)}
		if mean {
			out = append(out, b.Reshape(m, r.shape))
		}
		return out
	}
}

// normFormula is (Σ|x|ᵖ)^(1/p), or the largest or smallest |x|.
func normFormula(b op.Builder, a op.Args) []op.Value {
	r, p := reductionAt(a), a.Float(arg.P)
	x := b.Op("abs", a.Value(arg.Input))
	var y op.Value
	switch {
	case tensor.NumElements(x.Shape()) == 0 || p == 0:
		op.Fail(op.RuntimeError("no formula for counts"))
	case math.IsInf(p, 1):
		y = b.Op("amax", x, r.dims, true)
	case math.IsInf(p, -1):
		y = b.Op("amin", x, r.dims, true)
	case p == 1:
		y = b.Op("sum", x, r.dims, true)
	case p == 2:
		y = b.Op("sqrt", b.Op("sum", b.Mul(x, x), r.dims, true))
	default:
		y = b.Op("pow", b.Op("sum", b.Op("pow", x, p), r.dims, true), 1/p)
	}
	return []op.Value{b.Reshape(y, r.shape)}
}

func thresholdFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	return []op.Value{b.Op("where", b.Op("le", x, number(a, arg.Threshold)), number(a, arg.Value), x)}
}

// logAddExpFormula is m + log(1 + base^−|x − y|), m the larger one; unit is
// the logarithm of e.
func logAddExpFormula(exp, log string, unit float64) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		x, y := a.Value(arg.Input), a.Value(arg.Other)
		most, least := b.Op("maximum", x, y), b.Op("minimum", x, y)
		return []op.Value{b.Add(most, b.Mul(b.Op(log, b.Op(exp, b.Sub(least, most))), unit))}
	}
}

func sincFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	zero := b.Op("eq", x, 0.0)
	turn := b.Mul(b.Op("where", zero, 1.0, x), math.Pi)
	return []op.Value{b.Op("where", zero, 1.0, b.Div(b.Op("sin", turn), turn))}
}

func logitFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	if lo, hi := logitBounds(a); a.Has(arg.Eps) {
		x = b.Op("clamp", x, lo, hi)
	}
	return []op.Value{b.Op("log", b.Div(x, b.Sub(1.0, x)))}
}

func ndtrFormula(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Mul(b.Op("erfc", b.Mul(a.Value(arg.Input), -math.Sqrt2/2)), 0.5)}
}

func addcdivFormula(b op.Builder, a op.Args) []op.Value {
	return []op.Value{b.Add(a.Value(arg.Input), b.Mul(b.Div(a.Value(arg.Tensor1), a.Value(arg.Tensor2)), number(a, arg.Value)))}
}

// lerpFormula starts at the end that is nearer.
func lerpFormula(b op.Builder, a op.Args) []op.Value {
	from, to, w := a.Value(arg.Input), a.Value(arg.EndTensor), a.Any(arg.Weight)
	if v, ok := w.(op.Value); ok {
		d := lerpType(a)
		from, to, w = b.Cast(from, d), b.Cast(to, d), b.Cast(v, d)
	}
	step := b.Sub(to, from)
	if v, ok := w.(op.Scalar); ok {
		if c := v.Complex(); math.Hypot(real(c), imag(c)) < 0.5 {
			return []op.Value{b.Add(from, b.Mul(step, w))}
		}
		return []op.Value{b.Sub(to, b.Mul(step, op.ScalarOf(1-v.Complex())))}
	}
	near := b.Op("lt", b.Op("abs", w), 0.5)
	return []op.Value{b.Op("where", near, b.Add(from, b.Mul(step, w)), b.Sub(to, b.Mul(step, b.Sub(1.0, w))))}
}

// longestChain is how many steps a formula may take one after the other.
const longestChain = 256

// logCumSumExpFormula adds one element after the other, as an implementation may.
func logCumSumExpFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	if len(x.Shape()) == 0 || tensor.NumElements(x.Shape()) == 0 {
		return []op.Value{b.Op("clone", x)}
	}
	d := alongDim(a, x)
	n := x.Shape()[d]
	if n > longestChain {
		op.Fail(op.RuntimeError("no formula for rows of more than %d elements", longestChain))
	}
	sum := b.Op("narrow", x, d, 0, 1)
	sums := vals(sum)
	for i := 1; i < n; i++ {
		sum = b.Op("logaddexp", sum, b.Op("narrow", x, d, i, 1))
		sums = append(sums, sum)
	}
	return []op.Value{b.Op("cat", sums, d)}
}

// logCumSumExpBackFormula is Σ over k ≥ i of grad[k]·exp(input[i] − output[k]).
func logCumSumExpBackFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	if len(x.Shape()) == 0 || tensor.NumElements(x.Shape()) == 0 {
		op.Fail(op.RuntimeError("no formula without rows"))
	}
	d := alongDim(a, x)
	rows := func(name op.TensorArg, last int) op.Value {
		return b.Op("unsqueeze", b.Op("transpose", a.Value(name), d, -1), last)
	}
	slopes := b.Op("triu", b.Op("exp", b.Sub(rows(arg.Input, -1), rows(arg.Output, -2))))
	return []op.Value{b.Op("transpose", b.Op("sum", b.Mul(rows(arg.Grad, -2), slopes), []int{-1}), d, -1)}
}

// resampleFormula multiplies with the matrix of weights of each dimension.
// Positions are rounded before their weights are taken from them, so that
// these are as coarse as the positions are.
func resampleFormula(of func(op.Args) (*resampling, error)) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		r, err := of(a)
		if err != nil {
			op.Fail(err)
		}
		x := a.Value(arg.Input)
		for i := range r.in {
			x = resampledAlong(b, x, i+2, r.weights(b, i, x.DType()), false)
		}
		return []op.Value{x}
	}
}

func resampleSpreadFormula(b op.Builder, a op.Args) []op.Value {
	r, g := spreadOf(a), a.Value(arg.Grad)
	for i := range r.in {
		g = resampledAlong(b, g, i+2, r.weights(b, i, g.DType()), true)
	}
	return []op.Value{g}
}

// resampledAlong multiplies the lines along a dimension with a matrix that has
// a row for each result, or with its transpose.
func resampledAlong(b op.Builder, x op.Value, dim int, w op.Value, back bool) op.Value {
	if !back {
		w = b.Op("t", w)
	}
	return b.Op("transpose", b.Op("matmul", b.Op("transpose", x, dim, -1), w), dim, -1)
}

// mostWeights is how many weights of a dimension are written as a matrix, of which a bound
// takes some ten copies in float64.
const mostWeights = 1 << 22

// weights is the matrix of what each position along dimension i reads.
func (r *resampling) weights(b op.Builder, i int, d tensor.DType) op.Value {
	in, out := r.in[i], r.out[i]
	if out > mostWeights/max(in, 1) {
		op.Fail(op.RuntimeError("no formula for a matrix of %d × %d weights", out, in))
	}
	w, at := tensor.New(tensor.F64, out, in), tensor.New(tensor.F64, out, 1)
	for o := range out {
		first, taps := r.tapsAt(i, o)
		copy(tensor.Data[float64](w)[o*in+first:], taps)
		at.Set(o, complex(5*float64(o+1)*resampleStep[float64](r, i)+8, 0))
	}
	if modesOf[r.mode] == 0 {
		return b.Cast(w, d)
	}
	return coarse(b, b.Cast(w, d), b.Cast(at, d))
}

// tapsAt returns the first position that position o along dimension i reads,
// and the weights of it and those after it.
func (r *resampling) tapsAt(i, o int) (first int, w []float64) {
	if r.mode != "area" {
		return resampleTaps[float64](r, i, o)
	}
	in, out := r.in[i], r.out[i]
	first = o * in / out
	n := (o*in+in+out-1)/out - first
	return first, slices.Repeat([]float64{1 / float64(n)}, n)
}

// coarse is v with the roundings of v + at.
func coarse(b op.Builder, v op.Value, at any) op.Value { return b.Sub(b.Add(v, at), at) }

func affineGridFormula(b op.Builder, a op.Args) []op.Value {
	theta, size := a.Value(arg.Theta), a.Ints(arg.Size)
	grid := b.Op("matmul", gridBase(b, size[2:], a.Bool(arg.AlignCorners), theta.DType()), b.Op("transpose", theta, 1, 2))
	shape := append(append([]int{size[0]}, size[2:]...), len(size)-2)
	return []op.Value{b.Reshape(grid, shape)}
}

func affineThetaFormula(b op.Builder, a op.Args) []op.Value {
	g := a.Value(arg.Grad)
	s := g.Shape()
	n, size := s[len(s)-1], s[1:len(s)-1]
	rows := b.Reshape(g, []int{s[0], tensor.NumElements(size), n})
	base := gridBase(b, size, a.Bool(arg.AlignCorners), g.DType())
	return []op.Value{b.Op("matmul", b.Op("transpose", rows, 1, 2), base)}
}

// gridBase has a row (x, y[, z], 1) for every position of an image, as coarse
// as differences of numbers up to 2.
func gridBase(b op.Builder, size []int, align bool, d tensor.DType) op.Value {
	at := positions[float64](size, align)
	base := tensor.New(tensor.F64, tensor.NumElements(size), len(size)+1)
	copy(tensor.Data[float64](base), at)
	return coarse(b, b.Cast(base, d), 2.0)
}

// runningFormula blends running statistics with those of a batch, whose
// variance is unbiased: of each channel, or with samples the means over the
// samples of each one's own.
func runningFormula(samples bool) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		v := a.Value(arg.Input)
		d, c, first := channelGroups(v), v.Shape()[1], v.Shape()[0]
		shape, over, n := []int{d.Outer, d.Count, d.Inner}, []int{0, 2}, d.Outer*d.Inner
		if samples {
			shape, over, n = []int{first, c, tensor.NumElements(v.Shape()[2:])}, []int{2}, tensor.NumElements(v.Shape()[2:])
		}
		if n < 2 || first == 0 || !a.Has(arg.Momentum) {
			op.Fail(op.RuntimeError("no formula for one element, or without momentum"))
		}
		x, m := b.Reshape(v, shape), a.Float(arg.Momentum)
		mean := b.Op("mean", x, over, true)
		centred := b.Sub(x, mean)
		variance := b.Div(b.Op("sum", b.Mul(centred, centred), over, true), n-1)
		blended := func(name op.TensorArg, stat op.Value) op.Value {
			stat = b.Reshape(b.Op("mean", stat, []int{0}, true), []int{c})
			return b.Add(b.Mul(a.Value(name), 1-m), b.Mul(stat, m))
		}
		return []op.Value{blended(arg.RunningMean, mean), blended(arg.RunningVar, variance)}
	}
}
