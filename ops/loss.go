package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var lossOps = slices.Concat(pointLosses, classLosses, marginLosses, ctcLosses)

// lossTail are the parameters that most losses end with; size_average and
// reduce are the older way to say reduction.
const lossTail = "bool? size_average=None, bool? reduce=None, str reduction='mean'"

// Losses of pairs of elements.
var pointLosses = []*op.Def{
	pointLoss("mse_loss", ", "+lossTail, "Mean squared error: (input − target)².",
		func(b op.Builder, x, t op.Value, a op.Args) op.Value { return b.Op("mse_loss.square", b.Sub(x, t)) }),
	composed(&op.Def{
		Sig:    "mse_loss.square(Tensor input) -> Tensor",
		Doc:    "input², whose gradient takes a mean's divisor before it multiplies by input.",
		SBP:    pointwise,
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.Mul(g.Mul(g.G(), 2), conj(g, g.Value(arg.Input))) }),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 3)...)} },
		Tol:    ulpTol(1, "a multiplication, correctly rounded"),
	}, func(b op.Builder, a op.Args) op.Value { return b.Op("square", a.Value(arg.Input)) }),
	composed(&op.Def{
		Sig:     "l1_loss(Tensor input, Tensor target, " + lossTail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.l1_loss"},
		Doc:     "Mean absolute error: |input − target|.",
		Sample:  sampleLoss(),
		Tol:     lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		x, t := expandedPair(b, a)
		return b.Op("abs", b.Sub(x, t))
	})),
	pointLoss("smooth_l1_loss", ", "+lossTail+", float beta=1.0", "Squared error below beta, absolute error above: d²/(2·beta) where d = |input − target| < beta, else d − beta/2.", smoothL1, arg.BetaFloat),
	composed(&op.Def{
		Sig:    "smooth_l1_loss.zero(Tensor input, Tensor target) -> Tensor",
		Doc:    "|input − target|, with −1 for the gradient of either where they are equal.",
		SBP:    pointwise,
		Grad:   smoothL1LossZeroGrad,
		Sample: sampleSmoothL1LossZero,
		Tol:    lossTol,
	}, func(b op.Builder, a op.Args) op.Value {
		return b.Op("abs", b.Sub(a.Value(arg.Input), a.Value(arg.Target)))
	}),
	pointLoss("huber_loss", ", str reduction='mean', float delta=1.0", "Huber's loss: d²/2 where d = |input − target| ≤ delta, else delta·(d − delta/2).", huber, arg.Delta),
	composed(&op.Def{
		Sig:     "binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, " + lossTail + ") -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Input: op.UnitRange, arg.Target: op.UnitRange},
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.binary_cross_entropy"},
		Doc:     "Cross entropy of probabilities of two classes: −weight·(target·log(input) + (1 − target)·log(1 − input)), logarithms at least −100.",
		Reject:  firstError(checkLossReduction, sameSizes, sameFloats(arg.Target), weightFits(arg.Weight)),
		Fixed:   []op.Handle{arg.Weight},
		Sample:  sampleBinary(0.1, 0.9, arg.Weight),
		Tol:     lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		loss := b.Op("binary_cross_entropy.elements", a.Value(arg.Input), a.Value(arg.Target))
		if w := a.Value(arg.Weight); w != nil {
			return b.Cast(b.Mul(loss, w), loss.DType())
		}
		return loss
	})),
	composed(&op.Def{
		Sig:    "binary_cross_entropy.elements(Tensor input, Tensor target) -> Tensor",
		Doc:    "The elements of binary_cross_entropy. In the gradient, input·(1 − input) is at least 1e-12.",
		SBP:    pointwise,
		Reject: rejectOutside01,
		Grad:   binaryCrossEntropyElementsGrad,
		Sample: sampleBinaryCrossEntropyElements,
		Tol:    lossTol,
	}, func(b op.Builder, a op.Args) op.Value {
		x, t := a.Value(arg.Input), a.Value(arg.Target)
		return b.Sub(b.Mul(b.Sub(t, 1), cappedLog(b, "log1p", b.Neg(x))), b.Mul(t, cappedLog(b, "log", x)))
	}),
	composed(&op.Def{
		Sig:     "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, " + lossTail + ", Tensor? pos_weight=None) -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.binary_cross_entropy_with_logits"},
		Doc:     "Cross entropy of two classes from logits: −weight·(pos_weight·target·log σ(input) + (1 − target)·log(1 − σ(input))).",
		Reject:  firstError(checkLossReduction, sameSizes, logitsCheck, weightFits(arg.Weight, arg.PosWeight)),
		Fixed:   []op.Handle{arg.Weight, arg.PosWeight},
		Sample:  sampleBinary(-3, 3, arg.Weight, arg.PosWeight),
		Tol:     lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		loss := b.Op("binary_cross_entropy_with_logits.elements", a.Value(arg.Input), a.Value(arg.Target), a.Any(arg.PosWeight))
		if w := a.Value(arg.Weight); w != nil {
			return b.Cast(b.Mul(loss, w), loss.DType())
		}
		return loss
	})),
	composed(&op.Def{
		Sig:    "binary_cross_entropy_with_logits.elements(Tensor input, Tensor target, Tensor? pos_weight=None) -> Tensor",
		Doc:    "The elements of binary_cross_entropy_with_logits: (1 − target)·input + (1 + (pos_weight − 1)·target)·log(1 + e^−input).",
		SBP:    pointwise,
		Grad:   binaryCrossEntropyWithLogitsElementsGrad,
		Sample: sampleBinaryCrossEntropyWithLogitsElements,
		Tol:    lossTol,
	}, func(b op.Builder, a op.Args) op.Value {
		x, t := a.Value(arg.Input), a.Value(arg.Target)
		linear, entropy := b.Mul(b.Sub(1, t), x), b.Op("logsigmoid", x)
		if p := a.Value(arg.PosWeight); p != nil {
			entropy = b.Mul(b.Add(b.Mul(b.Sub(p, 1), t), 1), entropy)
		}
		return b.Cast(b.Sub(linear, entropy), t.DType())
	}),
	composed(&op.Def{
		Sig:     "kl_div(Tensor input, Tensor target, " + lossTail + ", bool log_target=False) -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.kl_div"},
		Doc:     "Kullback-Leibler divergence of log-probabilities: target·(log(target) − input), 0 where target is 0; exp(target)·(target − input) with log_target. The reduction 'batchmean' divides the sum by the size of dimension 0.",
		Reject:  firstError(checkDivergence, rejectTypes(arg.Input, slices.Concat(integralSet, complexTypes)...), rejectTypes(arg.Target, slices.Concat(integralSet, complexTypes)...)),
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(1, 3)
			return []any{s.Tensor(-3, 0, shape...), s.Tensor(0.1, 1, shape...), op.Kw("log_target", s.Bool()), op.Kw("reduction", []string{"none", "mean", "sum", "batchmean"}[s.Index(4)])}
		},
		Tol: lossTol,
	}, divergence),
	composed(&op.Def{
		Sig:     "soft_margin_loss(Tensor input, Tensor target, " + lossTail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.soft_margin_loss"},
		Doc:     "Logistic loss of two classes: log(1 + exp(−target·input)).",
		Reject:  firstError(checkLossReduction, fitsInput),
		Fixed:   []op.Handle{arg.Target},
		Sample:  sampleLoss(),
		Tol:     lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		x, t := a.Value(arg.Input), a.Value(arg.Target)
		z := b.Mul(b.Cast(t, x.DType()), x)
		if z.DType().IsComplex() {
			return b.Op("log", b.Add(b.Op("exp", b.Neg(z)), 1))
		}
		return b.Cast(b.Neg(b.Op("logsigmoid", z)), x.DType())
	})),
	composed(&op.Def{
		Sig:    "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, bool? size_average=None, float eps=1e-08, bool? reduce=None, str reduction='mean') -> Tensor",
		Names:  []string{"torch.nn.functional.poisson_nll_loss"},
		Doc:    "Negative log-likelihood of a Poisson distribution: exp(input) − target·input, or input − target·log(input + eps) without log_input; full adds Stirling's approximation target·log(target) − target + log(2π·target)/2 where target > 1.",
		Reject: strictReduction,
		Sample: samplePoissonNllLoss,
		Tol:    lossTol,
	}, reducing(poisson)),
	composed(&op.Def{
		Sig:     "gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, float eps=1e-06, str reduction='mean') -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Var: op.UnitRange},
		Names:   []string{"torch.nn.functional.gaussian_nll_loss"},
		Doc:     "Negative log-likelihood of normal distributions: (log(var) + (input − target)²/var)/2 with var at least eps, which the gradient does not see; full adds log(2π)/2.",
		Reject:  firstError(checkVariance, strictReduction),
		Kernels: []op.Kernel{{Name: "composition", Run: runGaussianNllLoss}},
		Sample:  sampleGaussianNllLoss,
		Tol:     lossTol,
	}, reducing(gaussianLoss)),
	composed(&op.Def{
		Sig:    "gaussian_nll_loss.floor(Tensor var, float eps) -> Tensor",
		Doc:    "max(var, eps) with the gradient of var.",
		SBP:    pointwise,
		Grad:   op.Gradient((*op.Grad).G),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(0.5, 2, s.Shape(0, 3)...), 0.25} },
		Tol:    exactTol("the input or a bound"),
	}, func(b op.Builder, a op.Args) op.Value { return b.Op("clamp_min", a.Value(arg.Var), a.Float(arg.Eps)) }),
}

func smoothL1LossZeroGrad(g *op.Grad) {
	x, t := g.Value(arg.Input), g.Value(arg.Target)
	slope := func(up, down op.Value) op.Value {
		d := g.Sub(up, down)
		return g.Op("where", g.Op("isnan", d), d, g.Op("where", g.Op("gt", up, down), g.G(), g.Neg(g.G())))
	}
	g.To(arg.Input, func() op.Value { return slope(x, t) })
	g.To(arg.Target, func() op.Value { return slope(t, x) })
}

func sampleSmoothL1LossZero(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	return []any{s.Distinct(shape...), s.Tensor(-0.02, 0.02, shape...)}
}

func binaryCrossEntropyElementsGrad(g *op.Grad) {
	x, t := g.Value(arg.Input), g.Value(arg.Target)
	g.To(arg.Input, func() op.Value {
		slope := g.Op("clamp_min", g.Mul(g.Sub(1, x), x), 1e-12)
		return g.Div(g.Mul(g.G(), g.Sub(x, t)), slope)
	})
	g.To(arg.Target, func() op.Value {
		return g.Mul(g.G(), g.Sub(cappedLog(g.Builder, "log1p", g.Neg(x)), cappedLog(g.Builder, "log", x)))
	})
}

func sampleBinaryCrossEntropyElements(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	return []any{s.Tensor(0.1, 0.9, shape...), s.Tensor(0, 1, shape...)}
}

func binaryCrossEntropyWithLogitsElementsGrad(g *op.Grad) {
	x, t, p := g.Value(arg.Input), g.Value(arg.Target), g.Value(arg.PosWeight)
	g.To(arg.Input, func() op.Value {
		if p == nil {
			return g.Mul(g.G(), g.Sub(g.Op("sigmoid", x), t))
		}
		pt := g.Mul(p, t)
		return g.Mul(g.G(), g.Sub(g.Mul(g.Sub(g.Add(pt, 1), t), g.Op("sigmoid", x)), pt))
	})
	g.To(arg.Target, func() op.Value {
		if p == nil {
			return g.Neg(g.Mul(g.G(), x))
		}
		return g.Mul(g.G(), g.Sub(g.Op("logsigmoid", g.Neg(x)), g.Mul(p, g.Op("logsigmoid", x))))
	})
	g.To(arg.PosWeight, func() op.Value { return g.Neg(g.Mul(g.G(), g.Mul(t, g.Op("logsigmoid", x)))) })
}

func sampleBinaryCrossEntropyWithLogitsElements(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	args := []any{s.Tensor(-3, 3, shape...), s.Tensor(0, 1, shape...)}
	if s.Bool() {
		args = append(args, s.Tensor(0.5, 2, shape[len(shape)-1]))
	}
	return args
}

func samplePoissonNllLoss(s *op.Sampler) []any {
	shape := s.Shape(0, 3)
	return []any{s.Tensor(0.5, 2, shape...), s.Tensor(1.5, 4, shape...), s.Bool(), s.Bool(), op.Kw("reduction", lossReductions[s.Index(3)])}
}

func runGaussianNllLoss(c *op.Run) error {
	if err := rejectNegative(c.Tensor(arg.Var)); err != nil {
		return err
	}
	return reducing(gaussianLoss).wide().run(c)
}

func sampleGaussianNllLoss(s *op.Sampler) []any {
	shape := s.Shape(1, 3)
	v := slices.Clone(shape)
	if s.Bool() {
		v = v[:len(v)-1]
	}
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape...), s.Tensor(0.5, 2, v...), s.Bool(), 1e-6, lossReductions[s.Index(3)]}
}

var lossReductions = []string{"none", "mean", "sum"}

var lossTol = accumulating(func(a op.Args) int {
	n := 4
	for _, v := range a.AllValues() {
		n = max(n, tensor.NumElements(v.Shape()))
	}
	return n
}, "a mean or sum of elements, each a few roundings")

// pointLoss is a loss of two tensors of floating dtype that are broadcast to each other.
func pointLoss(name, tail, doc string, f func(b op.Builder, x, t op.Value, a op.Args) op.Value, attributes ...op.FloatArg) *op.Def {
	return composed(&op.Def{
		Sig:     name + "(Tensor input, Tensor target" + tail + ") -> Tensor",
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional." + name},
		Doc:     doc,
		Reject:  firstError(checkLossReduction, lossTypes, checkThreshold(name, attributes), keepsType(name)),
		Sample:  sampleLoss(attributes...),
		Tol:     lossTol,
	}, reducing(func(b op.Builder, a op.Args) op.Value {
		x, t := expandedPair(b, a)
		d := tensor.Promote(x.DType(), t.DType())
		return f(b, b.Cast(x, d), b.Cast(t, d), a)
	}))
}

// reducing is the rule f followed by the reduction that the arguments ask for.
func reducing(f rule) rule {
	return func(b op.Builder, a op.Args) op.Value {
		how := chosenReduction(a)
		return reduceLoss(b, f(b, a), how)
	}
}

func reduceLoss(b op.Builder, loss op.Value, how string) op.Value {
	switch how {
	case "mean":
		return b.Op("mean", loss)
	case "sum":
		return b.Op("sum", loss)
	}
	return loss
}

// reductionOf returns "none", "mean" or "sum". The older arguments
// size_average and reduce go before reduction.
func reductionOf(a op.Args) (string, error) {
	if how := legacyReduction(a); how != "" {
		return how, nil
	}
	switch r := a.Str(arg.Reduction); r {
	case "none", "mean", "sum":
		return r, nil
	case "elementwise_mean":
		return "mean", nil
	default:
		return "", op.ValueError("%s is not a valid value for argument 'reduction'", r)
	}
}

func legacyReduction(a op.Args) string {
	if !a.Sig.Takes(arg.SizeAverage) || !a.Has(arg.SizeAverage) && !a.Has(arg.Reduce) {
		return ""
	}
	switch {
	case a.Has(arg.Reduce) && !a.Bool(arg.Reduce):
		return "none"
	case a.Has(arg.SizeAverage) && !a.Bool(arg.SizeAverage):
		return "sum"
	}
	return "mean"
}

func checkLossReduction(a op.Args) error {
	_, err := reductionOf(a)
	return err
}

// strictReduction is checkLossReduction for losses that do not know the old name of "mean".
func strictReduction(a op.Args) error {
	if legacyReduction(a) == "" && !slices.Contains(lossReductions, a.Str(arg.Reduction)) {
		return op.ValueError("%s is not valid for argument 'reduction'", a.Str(arg.Reduction))
	}
	return nil
}

// lossTypes wants a real floating dtype.
func lossTypes(a op.Args) error {
	if d := a.Promoted(arg.Input, arg.Target); !d.IsDifferentiable() || d.IsComplex() {
		return op.RuntimeError("not implemented for arguments 'input' and 'target' of result type %s", d)
	}
	return nil
}

func expandedPair(b op.Builder, a op.Args) (x, t op.Value) {
	x, t = a.Value(arg.Input), a.Value(arg.Target)
	shape, err := broadcastShape(x, t)
	if err != nil {
		op.Fail(err)
	}
	return b.Expand(x, shape), b.Expand(t, shape)
}

func checkThreshold(name string, attributes []op.FloatArg) func(op.Args) error {
	return func(a op.Args) error {
		for _, n := range attributes {
			switch v := a.Float(n); {
			case v < 0:
				return op.RuntimeError("%s does not support negative values for %s", name, n)
			case v == 0 && n == arg.Delta:
				return op.RuntimeError("%s does not support non-positive values for %s", name, n)
			}
		}
		return nil
	}
}

// keepsType rejects what huber_loss, whose result has the input's dtype, cannot convert to it.
func keepsType(name string) func(op.Args) error {
	return func(a op.Args) error {
		if d := a.Value(arg.Input).DType(); name == "huber_loss" && !d.IsDifferentiable() {
			return op.RuntimeError("the result type %s cannot be cast to the dtype %s of argument 'input'", a.Promoted(arg.Input, arg.Target), d)
		}
		return nil
	}
}

func smoothL1(b op.Builder, x, t op.Value, a op.Args) op.Value {
	beta := a.Float(arg.BetaFloat)
	if beta == 0 {
		return b.Op("smooth_l1_loss.zero", x, t)
	}
	d := b.Op("abs", b.Sub(x, t))
	far := b.Op("ge", d, beta)
	return b.Op("where", far, b.Sub(d, 0.5*beta), b.Div(halfSquare(b, far, d), beta))
}

func huber(b op.Builder, x, t op.Value, a op.Args) op.Value {
	delta := a.Float(arg.Delta)
	d := b.Op("abs", b.Sub(x, t))
	far := b.Op("gt", d, delta)
	loss := b.Op("where", far, b.Mul(b.Sub(d, 0.5*delta), delta), halfSquare(b, far, d))
	return b.Cast(loss, a.Value(arg.Input).DType())
}

// halfSquare is d²/2, and 0 where d is far: the gradient there must not meet
// an infinite d.
func halfSquare(b op.Builder, far, d op.Value) op.Value {
	d = b.Op("where", far, b.Op("zeros_like", d), d)
	return b.Mul(b.Mul(d, d), 0.5)
}

// cappedLog is a logarithm of at least −100.
func cappedLog(b op.Builder, id string, x op.Value) op.Value {
	return b.Op("clamp_min", b.Op(id, x), -100.0)
}

func sameSizes(a op.Args) error {
	if x, t := a.Value(arg.Input).Shape(), a.Value(arg.Target).Shape(); !slices.Equal(x, t) {
		return op.ValueError("the size %s of target must be the size %s of input", tensor.ShapeString(t), tensor.ShapeString(x))
	}
	return nil
}

// sameFloats wants the named tensors in the floating dtype of input.
func sameFloats(names ...op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		d := a.Value(arg.Input).DType()
		if !d.IsDifferentiable() || d.IsComplex() {
			return op.RuntimeError("not implemented for argument 'input' of dtype %s", d)
		}
		for _, n := range names {
			if v := a.Value(n); v != nil && v.DType() != d {
				return op.RuntimeError("expected argument '%s' of dtype %s, but found %s", n, d, v.DType())
			}
		}
		return nil
	}
}

// weightFits rejects named tensors that would make the result larger than the
// input, or complex.
func weightFits(names ...op.TensorArg) func(op.Args) error {
	return func(a op.Args) error {
		x := a.Value(arg.Input).Shape()
		for _, n := range names {
			w := a.Value(n)
			if w == nil {
				continue
			}
			if shape, err := broadcastShape(a.Value(arg.Input), w); err != nil {
				return err
			} else if !slices.Equal(shape, x) {
				return op.RuntimeError("the shape %s of input does not match its broadcast shape %s with argument '%s'", tensor.ShapeString(x), tensor.ShapeString(shape), n)
			}
			if w.DType().IsComplex() {
				return op.RuntimeError("argument '%s' is complex", n)
			}
		}
		return nil
	}
}

func logitsCheck(a op.Args) error {
	for _, n := range []op.TensorArg{arg.Input, arg.Target} {
		if d := a.Value(n).DType(); !d.IsDifferentiable() || d.IsComplex() {
			return op.RuntimeError("argument '%s' must be of a real floating dtype, but is %s", n, d)
		}
	}
	return nil
}

// fitsInput rejects a target that would make the result larger than the input.
func fitsInput(a op.Args) error {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	shape, err := broadcastShape(x, t)
	switch {
	case err != nil:
		return err
	case !slices.Equal(shape, x.Shape()):
		return op.RuntimeError("the shape %s of input does not match the broadcast shape %s with target", tensor.ShapeString(x.Shape()), tensor.ShapeString(shape))
	case !x.DType().IsDifferentiable():
		return op.RuntimeError("argument 'input' must be of a floating dtype, but is %s", x.DType())
	case t.DType().IsComplex() && !x.DType().IsComplex():
		return op.RuntimeError("the result type %s cannot be cast to the dtype %s of argument 'input'", t.DType(), x.DType())
	}
	return nil
}

func rejectOutside01(a op.Args) error {
	for _, name := range []op.TensorArg{arg.Input, arg.Target} {
		x, ok := a.Value(name).(*tensor.Tensor)
		if !ok {
			continue
		}
		for i := range x.Len() {
			if v := x.Float(i); !(v >= 0 && v <= 1) {
				return op.RuntimeError("all elements of argument '%s' should be between 0 and 1, but one is %v", name, v)
			}
		}
	}
	return nil
}

func checkDivergence(a op.Args) error {
	if a.Str(arg.Reduction) == "batchmean" {
		return nil
	}
	return checkLossReduction(a)
}

func divergence(b op.Builder, a op.Args) op.Value {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	var loss op.Value
	if a.Bool(arg.LogTarget) {
		loss = b.Mul(b.Op("exp", t), b.Sub(t, x))
	} else {
		entropy := b.Op("where", b.Op("eq", t, 0), 0.0, b.Mul(t, b.Op("log", t)))
		loss = b.Sub(entropy, b.Mul(t, x))
	}
	batch := a.Str(arg.Reduction) == "batchmean"
	if how := legacyReduction(a); how != "" || !batch {
		if how == "" {
			how, _ = reductionOf(a)
		}
		loss = reduceLoss(b, loss, how)
	} else {
		loss = b.Op("sum", loss)
	}
	if batch && len(x.Shape()) > 0 {
		return b.Div(loss, x.Shape()[0])
	}
	return loss
}

func poisson(b op.Builder, a op.Args) op.Value {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	var loss op.Value
	if a.Bool(arg.LogInput) {
		loss = b.Sub(b.Op("exp", x), b.Mul(t, x))
	} else {
		loss = b.Sub(x, b.Mul(t, b.Op("log", b.Add(x, a.Float(arg.Eps)))))
	}
	if !a.Bool(arg.Full) {
		return loss
	}
	half := b.Mul(b.Op("log", b.Mul(t, 2*math.Pi)), 0.5)
	stirling := b.Add(b.Sub(b.Mul(t, b.Op("log", t)), t), half)
	return b.Add(loss, b.Op("where", b.Op("le", t, 1), 0.0, stirling))
}

// varianceOf returns the shape of var beside input: var may lack the last
// dimension, or have it with size 1.
func varianceOf(a op.Args) ([]int, error) {
	x, v := a.Value(arg.Input).Shape(), a.Value(arg.Var).Shape()
	last := len(x) - 1
	switch {
	case slices.Equal(x, v):
		return v, nil
	case last >= 0 && slices.Equal(x[:last], v):
		return append(slices.Clone(v), 1), nil
	case last >= 0 && len(v) == len(x) && slices.Equal(x[:last], v[:last]) && v[last] == 1:
		return v, nil
	}
	return nil, op.ValueError("argument 'var' is of incorrect size %s beside input of size %s", tensor.ShapeString(v), tensor.ShapeString(x))
}

func checkVariance(a op.Args) error {
	if _, err := varianceOf(a); err != nil {
		return err
	}
	if d := a.Value(arg.Var).DType(); !d.IsDifferentiable() || d.IsComplex() {
		return op.RuntimeError("argument 'var' must be of a real floating dtype, but is %s", d)
	}
	return nil
}

func rejectNegative(v *tensor.Tensor) error {
	for i := range v.Len() {
		if v.Float(i) < 0 {
			return op.ValueError("argument 'var' has the negative entry %v", v.Float(i))
		}
	}
	return nil
}

func gaussianLoss(b op.Builder, a op.Args) op.Value {
	shape, err := varianceOf(a)
	if err != nil {
		op.Fail(err)
	}
	x, t, v, eps := a.Value(arg.Input), a.Value(arg.Target), b.Reshape(a.Value(arg.Var), shape), a.Float(arg.Eps)
	v = b.Op("gaussian_nll_loss.floor", v, eps)
	loss := b.Mul(b.Add(b.Op("log", v), b.Div(b.Op("square", b.Sub(x, t)), v)), 0.5)
	if a.Bool(arg.Full) {
		loss = b.Add(loss, 0.5*math.Log(2*math.Pi))
	}
	return loss
}

// sampleLoss draws a pair whose elements are apart, and a reduction.
func sampleLoss(attributes ...op.FloatArg) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		shape := s.Shape(0, 3)
		t := shape[s.Index(len(shape)+1):]
		args := []any{s.Distinct(shape...), s.Tensor(-0.02, 0.02, t...), op.Kw("reduction", lossReductions[s.Index(3)])}
		for _, n := range attributes {
			args = append(args, op.Kw(string(n), 0.375))
		}
		return args
	}
}

func sampleBinary(lo, hi float64, weights ...op.TensorArg) func(s *op.Sampler) []any {
	return func(s *op.Sampler) []any {
		shape := s.Shape(1, 3)
		args := []any{s.Tensor(lo, hi, shape...), s.Tensor(0, 1, shape...), op.Kw("reduction", lossReductions[s.Index(3)])}
		for _, n := range weights {
			if s.Bool() {
				args = append(args, op.Kw(string(n), s.Tensor(0.5, 2, shape[len(shape)-1])))
			}
		}
		return args
	}
}
