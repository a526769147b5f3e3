package ops

import (
	"math"

	"plumb/kernel"
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
		x := b.Cast(a.Value("input"), softmaxType(a))
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
		c, y, dim := a.Value("grad"), a.Value("output"), []int{a.Int("dim")}
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
	x, c := a.Value("input"), n.in3(a.Value("grad"))
	centred, s := n.moments(n.in3(x), a.Float("eps"))
	hat, u := n.Mul(centred, s), c
	if w := a.Value("weight"); w != nil {
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
	return normal{b, d, a.Ints("normalized_shape"), []int{1, 1, d.Inner}, []int{0, 1}}
}

func channelNormal(b op.Builder, a op.Args) normal {
	d := channelGroups(a.Value("input"))
	return normal{b, d, []int{d.Count}, []int{1, d.Count, 1}, []int{0, 2}}
}

func layerNormFormula(b op.Builder, a op.Args) []op.Value {
	n := rowNormal(b, a)
	centred, s := n.moments(n.in3(a.Value("input")), a.Float("eps"))
	return n.affine(n.Mul(centred, s), a.Value("weight"), a.Value("bias"), a.Value("input"))
}

func batchNormFormula(b op.Builder, a op.Args) []op.Value {
	n := channelNormal(b, a)
	x := n.in3(a.Value("input"))
	var centred, s op.Value
	if a.Bool("training") {
		centred, s = n.moments(x, a.Float("eps"))
	} else {
		centred = n.Sub(x, n.Reshape(a.Value("running_mean"), n.param))
		s = n.scale(n.Reshape(a.Value("running_var"), n.param), a.Float("eps"))
	}
	return n.affine(n.Mul(centred, s), a.Value("weight"), a.Value("bias"), a.Value("input"))
}

func momentsFormula(b op.Builder, a op.Args) []op.Value {
	n := normal{Builder: b, d: channelGroups(a.Value("input"))}
	x := n.in3(a.Value("input"))
	_, s := n.moments(x, a.Float("eps"))
	return []op.Value{n.mean(x), s}
}

func geluFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value("input")
	cdf := b.Op("erf", b.Mul(x, math.Sqrt2/2))
	if a.Str("approximate") == "tanh" {
		cubic := b.Mul(b.Mul(b.Mul(x, x), x), 0.044715)
		cdf = b.Op("tanh", b.Mul(b.Add(x, cubic), math.Sqrt(2/math.Pi)))
	}
	return []op.Value{b.Mul(b.Mul(x, 0.5), b.Add(cdf, 1))}
}

func tanhshrinkFormula(b op.Builder, a op.Args) []op.Value {
	x := a.Value("input")
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
	s := a.Value("input").Shape()
	kept := a.Sig.Index("keepdim") >= 0 && a.Bool("keepdim")
	r := reduction{dims: dims, shape: reducedShape(s, dims, kept), length: 1}
	for _, d := range dims {
		r.length *= s[d]
	}
	return r
}

// logSumExpFormula is m + log Σ exp(x − m), m the largest of a row.
func logSumExpFormula(b op.Builder, a op.Args) []op.Value {
	r, x := reductionAt(a), b.Cast(a.Value("input"), floatResult(statInputType(a)))
	most := b.Op("amax", x, r.dims, true)
	sum := b.Op("sum", b.Op("exp", b.Sub(x, most)), r.dims, true)
	return []op.Value{b.Reshape(b.Add(b.Op("log", sum), most), r.shape)}
}

// momentFormula is Σ(x − mean)²/(n − correction) of reals, or its root.
func momentFormula(root, mean bool) func(op.Builder, op.Args) []op.Value {
	return func(b op.Builder, a op.Args) []op.Value {
		r, x := reductionAt(a), a.Value("input")
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
	r, p := reductionAt(a), a.Float("p")
	x := b.Op("abs", a.Value("input"))
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
