package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var normOps = []*op.Def{
	softmaxDef("softmax", "(Tensor input, int? dim, dtype? dtype=None) -> Tensor", []string{"torch.softmax", "Tensor.softmax", "torch.special.softmax"}, false),
	softmaxDef("softmax.functional", "(Tensor input, int? dim=None, int _stacklevel=3, dtype? dtype=None) -> Tensor", []string{"torch.nn.functional.softmax"}, false),
	softmaxDef("log_softmax", "(Tensor input, int? dim, dtype? dtype=None) -> Tensor", []string{"torch.log_softmax", "Tensor.log_softmax", "torch.special.log_softmax"}, true),
	softmaxDef("log_softmax.functional", "(Tensor input, int? dim=None, int _stacklevel=3, dtype? dtype=None) -> Tensor", []string{"torch.nn.functional.log_softmax"}, true),
	{
		Sig:     "softmax.backward(Tensor grad, Tensor output, int dim) -> Tensor",
		Doc:     "Gradient of softmax from its result y: y·(grad − Σ grad·y).",
		SBP:     anyOf(linear(arg.Grad), alongOthers(arg.Grad, arg.Output)),
		Infer:   inferLike(arg.Grad),
		Kernels: floatKernels(arg.Grad, softmaxBackwardRun[float32](false), softmaxBackwardRun[float64](false)),
		Formula: softmaxBackwardFormula(false),
		Grad:    softmaxBackwardGrad,
		Sample:  sampleSoftmaxBackward,
		Tol:     accumulating(softmaxTerms(arg.Grad), "each element sums one product per entry of the dimension"),
	},
	{
		Sig:     "log_softmax.backward(Tensor grad, Tensor output, int dim) -> Tensor",
		Doc:     "Gradient of log_softmax from its result y: grad − exp(y)·Σ grad.",
		SBP:     anyOf(linear(arg.Grad), alongOthers(arg.Grad, arg.Output)),
		Infer:   inferLike(arg.Grad),
		Kernels: floatKernels(arg.Grad, softmaxBackwardRun[float32](true), softmaxBackwardRun[float64](true)),
		Formula: softmaxBackwardFormula(true),
		Grad:    logSoftmaxBackwardGrad,
		Sample:  sampleSoftmaxBackward,
		Tol:     accumulating(softmaxTerms(arg.Grad), "each element sums one gradient per entry of the dimension"),
	},
	{
		Sig:     "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor",
		Names:   []string{"torch.nn.functional.layer_norm", "torch.layer_norm"},
		Doc:     "Normalises over the last dimensions: out = (input − mean)/√(var + eps)·weight + bias, var the biased variance.",
		SBP:     anyOf(besidesNormalised(arg.Input), affinely),
		Reject:  checkLayerNorm,
		Infer:   inferLike(arg.Input),
		Kernels: floatKernels(arg.Input, layerNormRun[float32], layerNormRun[float64]),
		Formula: layerNormFormula,
		Grad:    layerNormGrad,
		Sample:  sampleLayerNorm,
		Tol:     accumulating(func(a op.Args) int { return tensor.NumElements(a.Ints(arg.NormalizedShape)) }, "mean and variance sum one term per normalised element"),
	},
	{
		Sig:     "layer_norm.backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> (Tensor input, Tensor weight, Tensor bias)",
		Doc:     "Gradients of layer_norm with respect to input, weight and bias.",
		SBP:     anyOf(linear(arg.Grad), normalisedBackward, gradientOfWeighted),
		Infer:   inferLayerNormBackward,
		Kernels: floatKernels(arg.Input, layerNormBackwardRun[float32], layerNormBackwardRun[float64]),
		Formula: func(b op.Builder, a op.Args) []op.Value { return rowNormal(b, a).backward(a) },
		Grad:    layerNormSecond,
		Sample:  sampleLayerNormBackward,
		Tol:     accumulating(func(a op.Args) int { return tensor.NumElements(a.Value(arg.Input).Shape()) }, "sums over the normalised elements, and over the rows"),
	},
	{
		Sig:     "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> Tensor",
		Names:   []string{"torch.nn.functional.batch_norm"},
		Doc:     "Normalises each channel, dimension 1: out = (input − mean)/√(var + eps)·weight + bias, with the batch's mean and biased variance in training, else the running ones; training updates those given: running = (1 − momentum)·running + momentum·batch, with the unbiased variance.",
		SBP:     anyOf(perChannel("nc*", ".c~", func(a op.Args) bool { return !a.Bool(arg.Training) }), affinely),
		Mutates: []op.TensorArg{arg.RunningMean, arg.RunningVar},
		Fixed:   []op.Handle{arg.RunningMean, arg.RunningVar},
		Reject:  checkBatchNorm,
		Infer:   inferBatchNorm,
		Kernels: batchNormKernels,
		Formula: batchNormFormula,
		Grad:    batchNormGrad,
		Sample:  sampleBatchNorm,
		Tol:     accumulating(channelTerms, "mean and variance sum one term per element of the channel"),
	},
	{
		Sig:     "batch_norm.backward(Tensor grad, Tensor input, Tensor? weight, float eps) -> (Tensor input, Tensor weight, Tensor bias)",
		Doc:     "Gradients of batch_norm in training with respect to input, weight and bias.",
		SBP:     anyOf(linear(arg.Grad), axes("grad .c~, input .c~, weight c -> .c~, c, c"), gradientOfWeighted),
		Infer:   inferBatchNormBackward,
		Kernels: floatKernels(arg.Input, batchNormBackwardRun[float32], batchNormBackwardRun[float64]),
		Formula: func(b op.Builder, a op.Args) []op.Value { return channelNormal(b, a).backward(a) },
		Grad:    batchNormSecond,
		Sample:  sampleBatchNormBackward,
		Tol:     accumulating(channelTerms, "sums over the elements of the channel"),
	},
	{
		Sig:     "batch_norm.moments(Tensor input, float eps) -> (Tensor mean, Tensor scale)",
		Doc:     "Mean and 1/√(var + eps) of each channel, dimension 1 of 3, which stay with size 1.",
		SBP:     axes("input .c. -> .c."),
		Infer:   inferBatchNormMoments,
		Kernels: floatKernels(arg.Input, momentsRun[float32], momentsRun[float64]),
		Formula: momentsFormula,
		Grad:    op.Gradient(momentsGrad),
		Sample:  sampleBatchNormMoments,
		Tol:     accumulating(channelTerms, "mean and variance sum one term per element of the channel"),
	},
	{
		Sig:     "batch_norm.update(Tensor input, Tensor running_mean, Tensor running_var, Tensor? batches, float? momentum) -> (Tensor running_mean, Tensor running_var)",
		Doc:     "The running statistics after a batch in training: (1 − momentum)·running + momentum·batch, with the unbiased variance; without momentum it is 1/batches, so that they are averages.",
		Traits:  op.NoGrad,
		SBP:     axes("input .c~, running_mean c, running_var c -> c"),
		Infer:   inferBatchNormUpdate,
		Kernels: floatKernels(arg.Input, updateRun[float32], updateRun[float64]),
		Sample:  sampleBatchNormUpdate,
		Formula: runningFormula(false),
		Tol:     accumulating(channelTerms, "mean and variance sum one term per element of the channel"),
	},
}

func layerNormGrad(g *op.Grad) {
	x := g.Value(arg.Input)
	cot := g.Cast(g.G(), x.DType())
	d := g.All("layer_norm.backward", cot, x, g.Ints(arg.NormalizedShape), g.Any(arg.Weight), g.Float(arg.Eps))
	for i, name := range []op.TensorArg{arg.Input, arg.Weight, arg.Bias} {
		g.To(name, func() op.Value { return d[i] })
	}
}

func inferLayerNormBackward(a op.Args) ([]op.Meta, error) {
	x, n, d := a.Value(arg.Input), a.Ints(arg.NormalizedShape), weightType(a)
	return []op.Meta{{DType: x.DType(), Shape: x.Shape()}, {DType: d, Shape: n}, {DType: d, Shape: n}}, nil
}

func sampleLayerNormBackward(s *op.Sampler) []any {
	args := sampleLayerNorm(s)
	x := args[0].(*tensor.Tensor)
	return []any{s.Tensor(-2, 2, x.Shape()...), x, args[1], args[2], args[4]}
}

func inferBatchNorm(a op.Args) ([]op.Meta, error) {
	x := a.Value(arg.Input)
	return one(x.DType(), x.Shape(), suggestedStrides(x, x.Shape())), nil
}

func inferBatchNormBackward(a op.Args) ([]op.Meta, error) {
	x, d := a.Value(arg.Input), weightType(a)
	c := x.Shape()[1:2]
	return []op.Meta{{DType: x.DType(), Shape: x.Shape()}, {DType: d, Shape: c}, {DType: d, Shape: c}}, nil
}

// weightType is the dtype of the gradients of weight and bias: that of weight, without
// one that of input.
func weightType(a op.Args) tensor.DType {
	if w := a.Value(arg.Weight); w != nil {
		return w.DType()
	}
	return a.Value(arg.Input).DType()
}

func sampleBatchNormBackward(s *op.Sampler) []any {
	x, w := sampleChannels(s)
	return []any{s.Tensor(-2, 2, x.Shape()...), x, w, s.Float(1e-5, 0.1)}
}

func inferBatchNormMoments(a op.Args) ([]op.Meta, error) {
	x := a.Value(arg.Input)
	m := op.Meta{DType: x.DType(), Shape: []int{1, x.Shape()[1], 1}}
	return []op.Meta{m, m}, nil
}

func sampleBatchNormMoments(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, int(s.Int(1, 4)), int(s.Int(1, 4)), int(s.Int(2, 5))), s.Float(1e-5, 0.1)}
}

func inferBatchNormUpdate(a op.Args) ([]op.Meta, error) {
	m, v := a.Value(arg.RunningMean), a.Value(arg.RunningVar)
	return []op.Meta{{DType: m.DType(), Shape: m.Shape()}, {DType: v.DType(), Shape: v.Shape()}}, nil
}

func sampleBatchNormUpdate(s *op.Sampler) []any {
	x, _ := sampleChannels(s)
	c := x.Shape()[1]
	return []any{x, s.Tensor(-1, 1, c), s.Tensor(0.1, 1, c), nil, s.Float(0, 1)}
}

// inferLike infers one contiguous result of the dtype and shape of the named tensor.
func inferLike(name op.TensorArg) func(op.Args) ([]op.Meta, error) {
	return func(a op.Args) ([]op.Meta, error) {
		v := a.Value(name)
		return one(v.DType(), v.Shape(), nil), nil
	}
}

func checkLayerNorm(a op.Args) error {
	x, n := a.Value(arg.Input), a.Ints(arg.NormalizedShape)
	lead := len(x.Shape()) - len(n)
	if len(n) == 0 || lead < 0 || !slices.Equal(x.Shape()[lead:], n) {
		return op.RuntimeError("normalized_shape=%s must be the last dimensions, at least one, of the input's size %s", tensor.ShapeString(n), tensor.ShapeString(x.Shape()))
	}
	for _, name := range []op.TensorArg{arg.Weight, arg.Bias} {
		v := a.Value(name)
		switch {
		case v == nil:
		case !slices.Equal(v.Shape(), n):
			return op.RuntimeError("expected %s to be of the shape %s of normalized_shape, but got %s", name, tensor.ShapeString(n), tensor.ShapeString(v.Shape()))
		}
	}
	return checkAffineTypes(a)
}

// checkAffineTypes rejects a weight and a bias that have not the dtype of input, nor,
// beside a half type, float32 both.
func checkAffineTypes(a op.Args) error {
	d := a.Value(arg.Input).DType()
	other := func(than tensor.DType) op.TensorArg {
		for _, name := range []op.TensorArg{arg.Weight, arg.Bias} {
			if v := a.Value(name); v != nil && v.DType() != than {
				return name
			}
		}
		return ""
	}
	name, half := other(d), d == tensor.F16 || d == tensor.BF16
	switch {
	case name == "" || half && other(tensor.F32) == "":
		return nil
	case half:
		return op.RuntimeError("expected arguments 'weight' and 'bias' to have the dtype %s of input, or float32 both, but '%s' has %s", d, name, a.Value(name).DType())
	}
	return op.RuntimeError("expected argument '%s' to have the dtype %s of input, but got %s", name, d, a.Value(name).DType())
}

// rowGroups are the rows that layer_norm normalises.
func rowGroups(a op.Args) kernel.Groups {
	n := a.Ints(arg.NormalizedShape)
	x := a.Value(arg.Input).Shape()
	return kernel.Groups{Outer: 1, Count: tensor.NumElements(x[:len(x)-len(n)]), Inner: tensor.NumElements(n)}
}

// channelGroups are the channels that batch_norm normalises.
func channelGroups(x op.Value) kernel.Groups {
	s := x.Shape()
	return kernel.Groups{Outer: s[0], Count: s[1], Inner: tensor.NumElements(s[2:])}
}

func channelTerms(a op.Args) int { return channelSize(a.Value(arg.Input).Shape()) }

// moments returns the mean and the variance of each group.
func moments[T float32 | float64](d kernel.Groups, x []T) (mean, variance []float64) {
	mean, variance = make([]float64, d.Count), make([]float64, d.Count)
	kernel.Moments(d, x, mean, variance)
	return mean, variance
}

// statistics returns the mean and 1/√(var + eps) of each group.
func statistics[T float32 | float64](d kernel.Groups, x []T, eps float64) (mean, scale []float64) {
	mean, scale = moments(d, x)
	kernel.InverseDeviation[float64](scale, eps)
	return mean, scale
}

func affineOf[T float32 | float64](c *op.Run) kernel.Affine[T] {
	return kernel.Affine[T]{Weight: contiguousData[T](c.Tensor(arg.Weight)), Bias: contiguousData[T](c.Tensor(arg.Bias))}
}

func layerNormRun[T float32 | float64](c *op.Run) error {
	d, x := rowGroups(c.Args), contiguousData[T](c.Tensor(arg.Input))
	mean, scale := moments(d, x)
	kernel.InverseDeviation[T](scale, c.Float(arg.Eps)) // as PyTorch, which has float64 here in batch_norm alone
	kernel.NormaliseRows(d, x, mean, scale, affineOf[T](c), tensor.Data[T](c.Out[0]))
	return nil
}

func layerNormBackwardRun[T float32 | float64](c *op.Run) error {
	d, x, gy := rowGroups(c.Args), contiguousData[T](c.Tensor(arg.Input)), contiguousData[T](c.Tensor(arg.Grad))
	mean, scale := moments(d, x)
	kernel.InverseDeviation[T](scale, c.Float(arg.Eps))
	kernel.RowGrads(d, gy, x, mean, scale, contiguousData[T](c.Tensor(arg.Weight)), tensor.Data[T](c.Out[0]))
	sumG, sumGX := make([]float64, d.Inner), make([]float64, d.Inner)
	kernel.RowSums(d, gy, x, mean, scale, sumG, sumGX)
	store(c.Out[1], sumGX)
	store(c.Out[2], sumG)
	return nil
}

// store rounds the values into a tensor.
func store(out *tensor.Tensor, values []float64) {
	out.CopyFrom(tensor.Of(tensor.F64, out.Shape(), values))
}

func sampleLayerNorm(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, append(s.Shape(0, 2), int(s.Int(2, 6)))...)
	n := x.Shape()[s.Index(x.Dim()):]
	var weight, bias any
	if s.Bool() {
		weight = s.Tensor(-2, 2, n...)
	}
	if s.Bool() {
		bias = s.Tensor(-2, 2, n...)
	}
	return []any{x, n, weight, bias, s.Float(1e-5, 0.1)}
}

// checkBatchNorm follows PyTorch in the order of its rules, which decides the
// class of a rejection, and in what it does not look at when there are no elements.
func checkBatchNorm(a op.Args) error {
	x := a.Value(arg.Input)
	s := x.Shape()
	switch {
	case a.Bool(arg.Training) && len(s) == 0:
		return op.IndexError("expected an input of at least 2 dimensions, but got size []")
	case a.Bool(arg.Training) && channelSize(s) == 1:
		return op.ValueError("expected more than 1 value per channel when training, got input size %s", tensor.ShapeString(s))
	case tensor.NumElements(s) == 0:
		return checkFirstValues(a)
	}
	for _, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar} {
		if !a.Has(name) && !a.Bool(arg.Training) {
			return op.RuntimeError("%s must be defined in evaluation mode", name)
		}
		if v := a.Value(name); v != nil && len(v.Shape()) != 1 {
			return op.RuntimeError("%s must have 1 dimension, but has size %s", name, tensor.ShapeString(v.Shape()))
		}
	}
	for _, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar, arg.Weight, arg.Bias} {
		if err := checkChannelValues(x, name, a.Value(name)); err != nil {
			return err
		}
	}
	if len(s) < 2 {
		return op.IndexError("expected an input of at least 2 dimensions, but got size %s", tensor.ShapeString(s))
	}
	return nil
}

// channelSize is the number of elements of one channel, dimension 1 if there is one.
func channelSize(shape []int) int { return shape[0] * tensor.NumElements(shape[min(2, len(shape)):]) }

// checkFirstValues rejects an affine parameter without a first element.
func checkFirstValues(a op.Args) error {
	for _, name := range []op.TensorArg{arg.Weight, arg.Bias} {
		if v := a.Value(name); v != nil && (len(v.Shape()) == 0 || v.Shape()[0] == 0) {
			return op.IndexError("%s must have a first element, but has size %s", name, tensor.ShapeString(v.Shape()))
		}
	}
	return nil
}

// checkChannelValues checks one of the tensors with a value per channel. Those
// of an input in half precision may be float32.
func checkChannelValues(x op.Value, name op.TensorArg, v op.Value) error {
	channels := 0
	if len(x.Shape()) > 1 {
		channels = x.Shape()[1]
	}
	switch {
	case v == nil:
	case tensor.NumElements(v.Shape()) != channels:
		return op.RuntimeError("%s should contain %d elements, not %d", name, channels, tensor.NumElements(v.Shape()))
	case v.DType() != x.DType() && !(slices.Contains(halfTypes, x.DType()) && v.DType() == tensor.F32):
		return op.RuntimeError("expected %s to have the dtype %s of input, but got %s", name, x.DType(), v.DType())
	}
	return nil
}

var batchNormKernels = []op.Kernel{
	{Name: "float32", When: op.DTypeIn(arg.Input, tensor.F32), Run: batchNormRun[float32]},
	{Name: "float64", When: op.DTypeIn(arg.Input, tensor.F64), Run: batchNormRun[float64]},
	{Name: "bfloat16", When: op.DTypeIn(arg.Input, tensor.BF16), Run: batchNormHalf},
	{Name: "float16", When: op.DTypeIn(arg.Input, tensor.F16), Run: batchNormHalf, Since: "2"},
	{Name: "no elements", When: emptyInput, Priority: 1, Run: zeroResults},
}

var emptyInput = op.Pred{
	Text:  "input without elements",
	Holds: func(a op.Args) bool { return tensor.NumElements(a.Value(arg.Input).Shape()) == 0 },
}

// batchNormHalf runs in float32 and rounds the running statistics back.
func batchNormHalf(c *op.Run) error {
	mean, variance := c.Tensor(arg.RunningMean), c.Tensor(arg.RunningVar)
	return inFloat32(func(w *op.Run) error {
		if err := batchNormRun[float32](w); err != nil {
			return err
		}
		if mean != nil && c.Bool(arg.Training) {
			mean.CopyFrom(w.Tensor(arg.RunningMean))
		}
		if variance != nil && c.Bool(arg.Training) {
			variance.CopyFrom(w.Tensor(arg.RunningVar))
		}
		return nil
	})(c)
}

func batchNormRun[T float32 | float64](c *op.Run) error {
	d, x := channelGroups(c.Tensor(arg.Input)), contiguousData[T](c.Tensor(arg.Input))
	var mean, scale []float64
	if c.Bool(arg.Training) {
		mean, scale = moments(d, x)
		blend(c.Tensor(arg.RunningMean), c.Tensor(arg.RunningMean), mean, c.Float(arg.Momentum))
		blend(c.Tensor(arg.RunningVar), c.Tensor(arg.RunningVar), unbiased(d, scale), c.Float(arg.Momentum))
	} else {
		mean, scale = floats(c.Tensor(arg.RunningMean)), floats(c.Tensor(arg.RunningVar))
	}
	kernel.InverseDeviation[float64](scale, c.Float(arg.Eps))
	writeTo(c.Out[0], func(y []T) { kernel.NormaliseGroups(d, x, mean, scale, affineOf[T](c), y) })
	return nil
}

// unbiased returns the variances as estimates: times n/(n−1).
func unbiased(d kernel.Groups, variance []float64) []float64 {
	n := float64(d.Outer * d.Inner)
	out := make([]float64, len(variance))
	for i, v := range variance {
		out[i] = v * n / (n - 1)
	}
	return out
}

// blend sets out, unless nil, to (1 − momentum)·old + momentum·batch.
func blend(out, old *tensor.Tensor, batch []float64, momentum float64) {
	if out == nil {
		return
	}
	values := floats(old)
	for i, v := range values {
		values[i] = (1-momentum)*v + momentum*batch[i]
	}
	store(out, values)
}

func floats(t *tensor.Tensor) []float64 {
	return tensor.Data[float64](t.Convert(tensor.F64))[:t.Len()]
}

func updateRun[T float32 | float64](c *op.Run) error {
	d, x := channelGroups(c.Tensor(arg.Input)), contiguousData[T](c.Tensor(arg.Input))
	mean, variance := moments(d, x)
	momentum := c.Float(arg.Momentum)
	if !c.Has(arg.Momentum) {
		momentum = 1 / c.Tensor(arg.Batches).Float(0)
	}
	if len(x) == 0 {
		c.Out[0].CopyFrom(c.Tensor(arg.RunningMean))
		c.Out[1].CopyFrom(c.Tensor(arg.RunningVar))
		return nil
	}
	blend(c.Out[0], c.Tensor(arg.RunningMean), mean, momentum)
	blend(c.Out[1], c.Tensor(arg.RunningVar), unbiased(d, variance), momentum)
	return nil
}

func batchNormBackwardRun[T float32 | float64](c *op.Run) error {
	d, x, gy := channelGroups(c.Tensor(arg.Input)), contiguousData[T](c.Tensor(arg.Input)), contiguousData[T](c.Tensor(arg.Grad))
	mean, scale := statistics(d, x, c.Float(arg.Eps))
	sumG, sumGX := make([]float64, d.Count), make([]float64, d.Count)
	kernel.GroupGrads(d, gy, x, mean, scale, contiguousData[T](c.Tensor(arg.Weight)), tensor.Data[T](c.Out[0])[:len(x)], sumG, sumGX)
	store(c.Out[1], sumGX)
	store(c.Out[2], sumG)
	return nil
}

func momentsRun[T float32 | float64](c *op.Run) error {
	mean, scale := statistics(channelGroups(c.Tensor(arg.Input)), contiguousData[T](c.Tensor(arg.Input)), c.Float(arg.Eps))
	store(c.Out[0], mean)
	store(c.Out[1], scale)
	return nil
}

func batchNormGrad(g *op.Grad) {
	x := g.Value(arg.Input)
	if tensor.NumElements(x.Shape()) == 0 {
		zeroGrads(arg.Input, arg.Weight, arg.Bias)(g)
		return
	}
	cot := g.Cast(g.G(), x.DType())
	if g.Bool(arg.Training) {
		d := g.All("batch_norm.backward", cot, x, g.Any(arg.Weight), g.Float(arg.Eps))
		g.To(arg.Input, func() op.Value { return d[0] })
		g.To(arg.Weight, func() op.Value { return g.Reshape(d[1], g.Value(arg.Weight).Shape()) })
		g.To(arg.Bias, func() op.Value { return g.Reshape(d[2], g.Value(arg.Bias).Shape()) })
		return
	}
	batchNormEvalGrad(g, x, cot)
}

// batchNormEvalGrad is the gradient where mean and variance are given.
func batchNormEvalGrad(g *op.Grad, x, cot op.Value) {
	channel := make([]int, len(x.Shape()))
	for i := range channel {
		channel[i] = 1
	}
	channel[1] = x.Shape()[1]
	others := slices.DeleteFunc(allDims(len(channel)), func(d int) bool { return d == 1 })
	scale := g.Div(1.0, g.Op("sqrt", g.Add(wide(g, g.Value(arg.RunningVar)), g.Float(arg.Eps))))
	g.To(arg.Input, func() op.Value {
		factor := scale
		if w := g.Value(arg.Weight); w != nil {
			factor = g.Mul(scale, g.Reshape(wide(g, w), scale.Shape()))
		}
		return g.Mul(wide(g, cot), g.Reshape(factor, channel))
	})
	g.To(arg.Weight, func() op.Value {
		centred := g.Sub(wide(g, x), g.Reshape(wide(g, g.Value(arg.RunningMean)), channel))
		d := g.Mul(g.Op("sum", g.Mul(wide(g, cot), centred), op.Kw("dim", others)), scale)
		return g.Reshape(d, g.Value(arg.Weight).Shape())
	})
	g.To(arg.Bias, func() op.Value {
		return g.Reshape(g.Op("sum", wide(g, cot), op.Kw("dim", others)), g.Value(arg.Bias).Shape())
	})
}

// groups3 returns v, grouped as d says, in 3 dimensions.
func groups3(g *op.Grad, v op.Value, d kernel.Groups) op.Value {
	return g.Reshape(v, []int{d.Outer, d.Count, d.Inner})
}

// momentsGrad uses ∂mean/∂x = 1/n and ∂s/∂x = −s²·x̂/n.
func momentsGrad(g *op.Grad) op.Value {
	x := g.Value(arg.Input)
	n := float64(x.Shape()[0] * x.Shape()[2])
	var terms []op.Value
	if g.Cot[0] != nil {
		terms = append(terms, g.Expand(g.Div(g.Cot[0], n), x.Shape()))
	}
	if g.Cot[1] != nil {
		mean, s := g.Out[0], g.Out[1]
		slope := g.Mul(g.Cot[1], g.Mul(s, g.Mul(s, s)))
		terms = append(terms, g.Neg(g.Mul(g.Sub(x, mean), g.Div(slope, n))))
	}
	return addAll(g, terms)
}

func sampleChannels(s *op.Sampler) (x, weight *tensor.Tensor) {
	shape := append([]int{int(s.Int(2, 5)), int(s.Int(1, 4))}, s.Shape(0, 2)...)
	return s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape[1])
}

func sampleBatchNorm(s *op.Sampler) []any {
	x, w := sampleChannels(s)
	c := x.Shape()[1]
	args := []any{x, nil, nil, nil, nil, true, s.Float(0, 1), s.Float(1e-5, 0.1)}
	if s.Bool() {
		args[1], args[2], args[5] = s.Tensor(-1, 1, c), s.Tensor(0.1, 2, c), false
	}
	if s.Bool() {
		args[3] = w
	}
	if s.Bool() {
		args[4] = s.Tensor(-2, 2, c)
	}
	return args
}
