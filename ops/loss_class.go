package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// Losses of scores against classes.
var classLosses = []*op.Def{
	composed(&op.Def{
		Sig:     "nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean') -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Weight: op.Constant},
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.nll_loss"},
		Doc:     "Negative log-likelihood of the class target in dimension 1 (0 of 1): −weight[target]·input[target], 0 where target is ignore_index. The mean is weighted.",
		Reject:  firstError(checkLossReduction, checkClasses),
		Long:    []op.Handle{arg.Target},
		Fixed:   []op.Handle{arg.Weight},
		Sample:  sampleNllLoss,
		Tol:     lossTol,
	}, nllLoss),
	{
		Sig:     "nll_loss.index(Tensor target, int classes, int ignore_index) -> Tensor",
		Doc:     "The classes as indices, 0 for ignore_index. Others must be in range.",
		Traits:  op.NoGrad,
		SBP:     axes("target * -> *"),
		Infer:   func(a op.Args) ([]op.Meta, error) { return one(tensor.I64, a.Value(arg.Target).Shape(), nil), nil },
		Kernels: []op.Kernel{{Name: "integer", Run: classIndex}},
		Sample:  sampleNllLossIndex,
		Tol:     exactTol("a copy of its input"),
	},
	composed(&op.Def{
		Sig:     "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, int ignore_index=-100, bool? reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor",
		Domains: map[op.TensorArg]op.Domain{arg.Weight: op.Constant},
		Choices: []string{"reduction"},
		Names:   []string{"torch.nn.functional.cross_entropy"},
		Doc:     "Cross entropy of softmax over the classes, dimension 1 (0 of 1), against the class target or, for a floating target of the input's shape, its probabilities; label_smoothing mixes those with the uniform distribution.",
		Reject:  firstError(checkLossReduction, checkCrossEntropy),
		Long:    []op.Handle{arg.Target},
		Sample:  sampleCrossEntropy,
		Tol:     lossTol,
	}, crossEntropy),
}

func sampleNllLoss(s *op.Sampler) []any {
	x, target, weight := sampleClasses(s)
	return []any{x, target, weight, op.Kw("ignore_index", 0), op.Kw("reduction", lossReductions[s.Index(3)])}
}

func sampleNllLossIndex(s *op.Sampler) []any {
	_, target, _ := sampleClasses(s)
	return []any{target, 6, 0}
}

func sampleCrossEntropy(s *op.Sampler) []any {
	x, target, weight := sampleClasses(s)
	smoothing := op.Kw("label_smoothing", []float64{0, 0.25}[s.Index(2)])
	how := op.Kw("reduction", lossReductions[s.Index(3)])
	if s.Bool() {
		return []any{x, s.Tensor(0, 1, x.Shape()...), weight, smoothing, how}
	}
	return []any{x, target, weight, op.Kw("ignore_index", 0), smoothing, how}
}

// classDim is the dimension of the classes.
func classDim(x op.Value) int { return min(len(x.Shape())-1, 1) }

func checkClasses(a op.Args) error {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	xs, ts := x.Shape(), t.Shape()
	n := len(xs)
	switch {
	case n == 0:
		return op.ValueError("expected argument 'input' of 1 or more dimensions, but got 0")
	case n > 1 && (len(ts) == 0 || xs[0] != ts[0]):
		return op.ValueError("the batch sizes of input %s and target %s must match", tensor.ShapeString(xs), tensor.ShapeString(ts))
	case n == 1 && len(ts) == 1 && ts[0] != 1 && (t.DType() == tensor.I64 || t.DType() == tensor.U8):
		return op.ValueError("a single sample has one target, but argument 'target' has %d", ts[0])
	case !slices.Equal(ts, slices.Delete(slices.Clone(xs), classDim(x), classDim(x)+1)):
		return op.RuntimeError("the size of argument 'target' must be that of input, %s, without the classes, but is %s", tensor.ShapeString(xs), tensor.ShapeString(ts))
	case (n == 3 || n > 4) && tensor.NumElements(xs) == 0 && tensor.NumElements(ts) > 0:
		return op.RuntimeError("size mismatch of input %s, without elements, and target %s", tensor.ShapeString(xs), tensor.ShapeString(ts))
	case t.DType() != tensor.I64 && (t.DType() != tensor.U8 || n > 2):
		return op.RuntimeError("expected argument 'target' of dtype int64, but found %s", t.DType())
	}
	if err := sameFloats(arg.Weight)(a); err != nil {
		return err
	}
	return checkClassWeight(a)
}

func checkClassWeight(a op.Args) error {
	x, w := a.Value(arg.Input), a.Value(arg.Weight)
	if classes := x.Shape()[classDim(x)]; w != nil && !slices.Equal(w.Shape(), []int{classes}) {
		return op.RuntimeError("argument 'weight' must have one value for each of %d classes, but has the shape %s", classes, tensor.ShapeString(w.Shape()))
	}
	return nil
}

func checkCrossEntropy(a op.Args) error {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	switch smoothing := a.Float(arg.LabelSmoothing); {
	case !slices.Equal(x.Shape(), t.Shape()):
		if smoothing > 1 {
			return op.RuntimeError("argument 'label_smoothing' must be between 0 and 1, but is %v", smoothing)
		}
		if t.DType() == tensor.U8 && smoothing > 0 && a.Has(arg.Weight) && chosenReduction(a) == "mean" {
			return op.RuntimeError("expected argument 'target' of dtype int64 to choose from argument 'weight', but found %s", t.DType())
		}
		if len(x.Shape()) == 0 {
			return op.IndexError("argument 'input' has no dimension of classes")
		}
		return checkClasses(a)
	case !t.DType().IsDifferentiable() || t.DType().IsComplex():
		return op.RuntimeError("expected argument 'target' of class probabilities of a floating dtype, but got %s", t.DType())
	case a.Int(arg.IgnoreIndex) >= 0:
		return op.RuntimeError("argument 'ignore_index' is not supported with class probabilities")
	case len(x.Shape()) == 0:
		return op.IndexError("argument 'input' has no dimension of classes")
	case smoothing > 1:
		return op.RuntimeError("argument 'label_smoothing' must be between 0 and 1, but is %v", smoothing)
	}
	if d := x.DType(); !d.IsDifferentiable() || d.IsComplex() {
		return op.RuntimeError("not implemented for argument 'input' of dtype %s", d)
	}
	return checkClassWeight(a)
}

func classIndex(c *op.Run) error {
	classes, ignore := int64(c.Int(arg.Classes)), int64(c.Int(arg.IgnoreIndex))
	in, out := c.Tensor(arg.Target), tensor.Data[int64](c.Out[0])
	for i := range c.Out[0].Len() {
		switch v := in.Int(i); {
		case v == ignore:
			out[i] = 0
		case v < 0 || v >= classes:
			return op.IndexError("Target %d is out of bounds of %d classes", v, classes)
		default:
			out[i] = v
		}
	}
	return nil
}

// picked are the classes of a loss: index, where they are ignored, and the
// weight of each element, 0 where it is ignored.
type picked struct {
	index, ignored, weight op.Value
}

func pickClasses(b op.Builder, a op.Args) picked {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	ignore := a.Int(arg.IgnoreIndex)
	p := picked{
		index:   b.Op("nll_loss.index", t, x.Shape()[classDim(x)], ignore),
		ignored: b.Op("eq", t, ignore),
	}
	if w := a.Value(arg.Weight); w != nil {
		each := b.Reshape(b.Op("gather", w, 0, b.Reshape(p.index, []int{-1})), t.Shape())
		p.weight = b.Op("where", p.ignored, 0.0, each)
	} else {
		p.weight = b.Cast(b.Op("where", p.ignored, 0.0, 1.0), x.DType())
	}
	return p
}

// lossOf returns −weight·x at the classes; x is finite or ignored.
func (p *picked) lossOf(b op.Builder, x op.Value) op.Value {
	dim := classDim(x)
	at := b.Op("squeeze", b.Op("gather", x, dim, b.Op("unsqueeze", p.index, dim)), dim)
	return b.Op("where", p.ignored, 0.0, b.Neg(b.Mul(at, p.weight)))
}

// mean is the weighted mean of losses that are multiplied by the weights.
func (p *picked) mean(b op.Builder, loss op.Value) op.Value {
	return b.Div(b.Op("sum", loss), b.Op("sum", p.weight))
}

func nllLoss(b op.Builder, a op.Args) op.Value {
	x := a.Value(arg.Input)
	if tensor.NumElements(x.Shape()) == 0 && tensor.NumElements(a.Value(arg.Target).Shape()) == 0 {
		return reduceLoss(b, b.Op("sum", x, op.Kw("dim", classDim(x))), chosenReduction(a))
	}
	if x.Shape()[classDim(x)] == 0 {
		return noClassesLoss(b, a)
	}
	p := pickClasses(b, a)
	loss := p.lossOf(b, x)
	if how := chosenReduction(a); how != "mean" {
		return reduceLoss(b, loss, how)
	}
	return p.mean(b, loss)
}

// noClassesLoss is the loss where every target has to be ignored: zeros, the mean NaN.
func noClassesLoss(b op.Builder, a op.Args) op.Value {
	x := a.Value(arg.Input)
	index := b.Op("nll_loss.index", a.Value(arg.Target), 0, a.Int(arg.IgnoreIndex))
	loss := b.Add(b.Op("sum", x, op.Kw("dim", classDim(x))), b.Cast(index, x.DType()))
	if how := chosenReduction(a); how != "mean" {
		return reduceLoss(b, loss, how)
	}
	return b.Div(b.Op("sum", loss), 0.0)
}

// chosenReduction is reductionOf where a rule runs.
func chosenReduction(a op.Args) string {
	how, err := reductionOf(a)
	if err != nil {
		op.Fail(err)
	}
	return how
}

func crossEntropy(b op.Builder, a op.Args) op.Value {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	logs := b.Op("log_softmax", x, classDim(x))
	if slices.Equal(x.Shape(), t.Shape()) {
		return probabilityLoss(b, a, logs)
	}
	likelihood := nllLoss(b, a.MapValues(func(v op.Value) op.Value {
		if v == x {
			return logs
		}
		return v
	}))
	smoothing := a.Float(arg.LabelSmoothing)
	if smoothing <= 0 {
		return likelihood
	}
	classes := x.Shape()[classDim(x)]
	return b.Add(b.Mul(likelihood, 1-smoothing), b.Mul(smoothLoss(b, a, logs), smoothing/float64(classes)))
}

// classWeights returns the weights in the input's number of dimensions.
func classWeights(b op.Builder, a op.Args) op.Value {
	x, w := a.Value(arg.Input), a.Value(arg.Weight)
	shape := make([]int, len(x.Shape()))
	for i := range shape {
		shape[i] = 1
	}
	shape[classDim(x)] = -1
	return b.Reshape(w, shape)
}

// smoothLoss is the loss against the uniform distribution, times the number of classes.
func smoothLoss(b op.Builder, a op.Args, logs op.Value) op.Value {
	if a.Has(arg.Weight) {
		logs = b.Mul(logs, classWeights(b, a))
	}
	p := pickClasses(b, a)
	loss := b.Neg(b.Op("sum", logs, op.Kw("dim", classDim(a.Value(arg.Input)))))
	loss = b.Op("where", p.ignored, 0.0, loss)
	if how := chosenReduction(a); how != "mean" {
		return reduceLoss(b, loss, how)
	}
	return p.mean(b, loss)
}

// probabilityLoss is cross_entropy against class probabilities; its mean is over the batch.
func probabilityLoss(b op.Builder, a op.Args, logs op.Value) op.Value {
	x, t := a.Value(arg.Input), a.Value(arg.Target)
	dim := classDim(x)
	classes := float64(x.Shape()[dim])
	if smoothing := a.Float(arg.LabelSmoothing); smoothing > 0 {
		t = b.Add(b.Mul(t, 1-smoothing), smoothing/classes)
	}
	terms := b.Mul(logs, t)
	if a.Has(arg.Weight) {
		terms = b.Mul(terms, classWeights(b, a))
	}
	switch chosenReduction(a) {
	case "mean":
		return b.Neg(b.Div(b.Op("sum", terms), float64(tensor.NumElements(x.Shape()))/classes))
	case "sum":
		return b.Neg(b.Op("sum", terms))
	}
	return b.Neg(b.Op("sum", terms, op.Kw("dim", dim)))
}

// sampleClasses draws scores, class indices, of which some are 0, and weights or nil.
func sampleClasses(s *op.Sampler) (x, target *tensor.Tensor, weight any) {
	shape := append([]int{int(s.Int(2, 5))}, s.Dims(s.Index(3))...)
	classes := int(s.Int(2, 6))
	target = tensor.New(tensor.I64, shape...)
	for i := range target.Len() {
		target.SetInt(i, int64((i+1)%classes))
	}
	x = s.Tensor(-2, 2, slices.Insert(slices.Clone(shape), 1, classes)...)
	if s.Bool() {
		weight = s.Tensor(0.5, 2, classes)
	}
	return x, target, weight
}
