package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var groupNormOps = []*op.Def{
	groupNorm("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor", "torch.nn.functional.group_norm", checkGroupValues),
	groupNorm("group_norm.torch(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor", "torch.group_norm", nil),
	instanceNorm("instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor", "torch.nn.functional.instance_norm", checkSpatialValues),
	instanceNorm("instance_norm.torch(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor", "torch.instance_norm", nil),
	{
		Sig:     "instance_norm.update(Tensor input, Tensor running_mean, Tensor running_var, float momentum) -> (Tensor running_mean, Tensor running_var)",
		Doc:     "The running statistics after a batch: (1 − momentum)·running + momentum·batch, with the means over the batch of each sample's mean and unbiased variance.",
		Traits:  op.NoGrad,
		SBP:     axes("input .c~, running_mean c, running_var c -> c"),
		Infer:   inferInstanceNormUpdate,
		Kernels: floatKernels(arg.Input, instanceUpdateRun[float32], instanceUpdateRun[float64]),
		Sample:  sampleInstanceNormUpdate,
		Formula: runningFormula(true),
		Tol:     accumulating(channelTerms, "mean and variance sum one term per element of the channel"),
	},
	stepwise(&op.Def{
		Sig:    "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
		Names:  []string{"torch.nn.functional.rms_norm", "torch.rms_norm"},
		Doc:    "Divides by the root mean square over the last dimensions: input/√(mean(input²) + eps)·weight, eps by default the distance from 1 to the next number of the dtype.",
		Reject: firstError(rejectTypes(arg.Input, integralSet...), checkTrailing),
		Sample: sampleRMSNorm,
		Tol:    accumulating(trailingTerms, "the mean sums one square per normalised element"),
	}, func(b op.Builder, a op.Args) op.Value {
		x, eps := a.Value(arg.Input), a.Float(arg.Eps)
		if !a.Has(arg.Eps) {
			eps = finfoEps(x.DType())
		}
		return b.Op("rms_norm.scaled", x, a.Ints(arg.NormalizedShape), a.Any(arg.Weight), eps)
	}),
	composed(&op.Def{
		Sig:    "rms_norm.scaled(Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> Tensor",
		Doc:    "rms_norm with a given eps.",
		Sample: func(s *op.Sampler) []any { return append(sampleRMSNorm(s)[:3], 0.01) },
		Tol:    accumulating(trailingTerms, "the mean sums one square per normalised element"),
	}, rootMeanSquare),
	composed(&op.Def{
		Sig:    "local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.0) -> Tensor",
		Names:  []string{"torch.nn.functional.local_response_norm"},
		Doc:    "Divides by the squares of size channels around each: input/(k + alpha·Σ input²/size)^beta.",
		Reject: checkLocalResponse,
		Sample: sampleLocalResponseNorm,
		Tol:    accumulating(func(a op.Args) int { return 8 + a.Int(arg.SizeInt) }, "a sum of one square per channel of the window, a power and a quotient"),
	}, localResponse),
	composed(&op.Def{
		Sig:    "prelu(Tensor input, Tensor weight) -> Tensor",
		Names:  append(both("prelu"), "torch.nn.functional.prelu"),
		Doc:    "Rectifier with a learned slope, one for all or one per channel, dimension 1: input where it is positive, else weight·input.",
		SBP:    axes("input nc*, weight c -> nc* | input *, weight . -> * | input *, weight -> *"),
		Reject: checkPrelu,
		Infer:  inferPrelu,
		Sample: samplePrelu,
		Exact:  exactPrelu,
		Tol:    ulpTol(1, "a multiplication, correctly rounded"),
	}, func(b op.Builder, a op.Args) op.Value {
		x, w := a.Value(arg.Input), a.Value(arg.Weight)
		positive := b.Op("gt", x, 0)
		rest := b.Op("where", positive, b.Op("zeros_like", x), x) // an infinity has no part in weight's gradient
		return b.Op("where", positive, x, b.Mul(rest, b.Reshape(w, preluShape(x, w))))
	}),
	composed(&op.Def{
		Sig:    "glu(Tensor input, int dim=-1) -> Tensor",
		Names:  []string{"torch.nn.functional.glu"},
		Doc:    "Gated linear unit: the first half of a dimension times the logistic function of the second.",
		SBP:    alongOthers(arg.Input),
		Reject: firstError(floatsOnly, checkHalves),
		Sample: sampleGlu,
		Tol:    ulpTol(6, "exp 3 ULP, an addition, a division of 2.5 and a multiplication: "+openCL),
	}, func(b op.Builder, a op.Args) op.Value {
		x, d := a.Value(arg.Input), a.Int(arg.Dim)
		w, _ := wrapDim(d, len(x.Shape()))
		n := x.Shape()[w] / 2
		return b.Mul(b.Op("narrow", x, d, 0, n), b.Op("sigmoid", b.Op("narrow", x, d, n, n)))
	}),
	composed(&op.Def{
		Sig:    "softmin(Tensor input, int? dim=None, int _stacklevel=3, dtype? dtype=None) -> Tensor",
		Names:  []string{"torch.nn.functional.softmin"},
		Doc:    "softmax of the negated input along a dimension.",
		Sample: sampleSoftmin,
		Tol:    accumulating(softmaxTerms(arg.Input), "each element sums one exponential per entry of the dimension"),
	}, func(b op.Builder, a op.Args) op.Value {
		return b.Op("softmax.functional", b.Neg(a.Value(arg.Input)), op.Kw("dim", a.Any(arg.Dim)), op.Kw("dtype", a.Any(arg.DType)))
	}),
}

func inferInstanceNormUpdate(a op.Args) ([]op.Meta, error) {
	m, v := a.Value(arg.RunningMean), a.Value(arg.RunningVar)
	return []op.Meta{{DType: m.DType(), Shape: m.Shape()}, {DType: v.DType(), Shape: v.Shape()}}, nil
}

func sampleInstanceNormUpdate(s *op.Sampler) []any {
	x := sampleInstances(s)
	c := x.Shape()[1]
	return []any{x, s.Tensor(-1, 1, c), s.Tensor(0.1, 1, c), s.Float(0, 1)}
}

func sampleLocalResponseNorm(s *op.Sampler) []any {
	return []any{s.Tensor(-2, 2, s.Shape(3, 4)...), s.Int(1, 5), 0.5, 0.75, s.Float(1, 2)}
}

func inferPrelu(a op.Args) ([]op.Meta, error) {
	x := a.Value(arg.Input)
	return one(x.DType(), x.Shape(), suggestedStrides(x, x.Shape())), nil
}

func samplePrelu(s *op.Sampler) []any {
	x := s.Distinct(s.Shape(0, 4)...)
	n := 1
	if x.Dim() > 1 && s.Bool() {
		n = x.Shape()[1]
	}
	return []any{x, s.Tensor(-1, 1, n)}
}

func sampleGlu(s *op.Sampler) []any {
	shape := s.Shape(1, 4)
	d := s.Index(len(shape))
	shape[d] *= 2
	return []any{s.Tensor(-3, 3, shape...), d}
}

func sampleSoftmin(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 3)...)
	n := int64(max(x.Dim(), 1))
	return []any{x, int(s.Int(-n, n))}
}

// groupNorm is group_norm under one of its signatures.
func groupNorm(sig, name string, check func(op.Args) error) *op.Def {
	d := &op.Def{
		Sig:     sig,
		Names:   []string{name},
		Doc:     "Normalises each of num_groups groups of channels of each sample: (input − mean)/√(var + eps)·weight + bias, var the biased variance, weight and bias per channel.",
		SBP:     anyOf(axes("input n~ -> n~"), affinely),
		Reject:  checkGroupNorm,
		Infer:   inferGroupNorm,
		Kernels: floatKernels(arg.Input, groupNormRun[float32], groupNormRun[float64]),
		Sample:  sampleGroupNorm,
		Tol:     accumulating(groupNormTerms, "mean and variance sum one term per element of the group"),
	}
	if check != nil {
		d.Reject = firstError(check, checkGroupNorm)
	}
	return composed(d, func(b op.Builder, a op.Args) op.Value {
		x := a.Value(arg.Input)
		return affineChannels(b, a, normalised(b, x, x.Shape()[0]*a.Int(arg.NumGroups), a.Float(arg.Eps)))
	})
}

func inferGroupNorm(a op.Args) ([]op.Meta, error) {
	x := a.Value(arg.Input)
	return one(x.DType(), x.Shape(), suggestedStrides(x, x.Shape())), nil
}

func sampleGroupNorm(s *op.Sampler) []any {
	groups, per := int(s.Int(1, 4)), int(s.Int(1, 4))
	x := s.Tensor(-2, 2, append([]int{int(s.Int(1, 4)), groups * per, 2}, s.Shape(0, 2)...)...)
	return append([]any{x, groups}, sampleAffine(s, groups*per, s.Float(0.001, 0.1))...)
}

func groupNormTerms(a op.Args) int {
	x := a.Value(arg.Input).Shape()
	return tensor.NumElements(x[1:]) / a.Int(arg.NumGroups)
}

// checkGroupValues is what the functional form checks before.
func checkGroupValues(a op.Args) error {
	s, groups := a.Value(arg.Input).Shape(), a.Int(arg.NumGroups)
	switch {
	case len(s) < 2:
		return op.RuntimeError("expected argument 'input' of at least 2 dimensions, but got size %s", tensor.ShapeString(s))
	case groups == 0:
		return &op.Error{Class: "ZeroDivisionError", Msg: "argument 'num_groups' is 0"}
	case s[0]*s[1]/groups*tensor.NumElements(s[2:]) == 1 && (s[0]*s[1])%groups == 0:
		return op.ValueError("expected more than 1 value per channel of argument 'input', but got size %s in %d groups", tensor.ShapeString(s), groups)
	}
	return nil
}

func checkGroupNorm(a op.Args) error {
	s, groups := a.Value(arg.Input).Shape(), a.Int(arg.NumGroups)
	switch {
	case len(s) < 2:
		return op.IndexError("expected argument 'input' of at least 2 dimensions, but got size %s", tensor.ShapeString(s))
	case groups <= 0:
		return op.RuntimeError("argument 'num_groups' must be greater than 0, but is %d", groups)
	case s[1] == 0 || tensor.NumElements(s[2:]) == 0:
		return op.RuntimeError("argument 'input' must have channels, and elements in each, but has the size %s", tensor.ShapeString(s))
	case s[1]%groups != 0:
		return op.RuntimeError("the %d channels of argument 'input' must be divisible by num_groups=%d", s[1], groups)
	}
	for _, name := range []op.TensorArg{arg.Weight, arg.Bias} {
		switch v := a.Value(name); {
		case v == nil:
		case !slices.Equal(v.Shape(), s[1:2]):
			return op.RuntimeError("argument '%s' must be a vector of the %d channels of input, but has the shape %s", name, s[1], tensor.ShapeString(v.Shape()))
		}
	}
	return checkAffineTypes(a)
}

// tiled repeats values, one per channel, for every sample; nil stays nil.
func tiled[T any](values []T, samples int) []T {
	if values == nil {
		return nil
	}
	return slices.Repeat(values, samples)
}

// stretched repeats each value for every channel of its group.
func stretched(values []float64, channels int) []float64 {
	out := make([]float64, 0, len(values)*channels)
	for _, v := range values {
		for range channels {
			out = append(out, v)
		}
	}
	return out
}

func groupNormRun[T float32 | float64](c *op.Run) error {
	in := c.Tensor(arg.Input)
	if in.Len() == 0 {
		return nil
	}
	s, groups := in.Shape(), c.Int(arg.NumGroups)
	x, space := contiguousData[T](in), tensor.NumElements(s[2:])
	per := s[1] / groups
	mean, scale := moments(kernel.Groups{Outer: 1, Count: s[0] * groups, Inner: per * space}, x)
	kernel.InverseDeviation[T](scale, c.Float(arg.Eps))
	affine := affineOf[T](c)
	affine.Weight, affine.Bias = tiled(affine.Weight, s[0]), tiled(affine.Bias, s[0])
	d := kernel.Groups{Outer: 1, Count: s[0] * s[1], Inner: space}
	writeTo(c.Out[0], func(y []T) { kernel.NormaliseGroups(d, x, stretched(mean, per), stretched(scale, per), affine, y) })
	return nil
}

// normalised returns (x − mean)/√(var + eps) of each of count groups of consecutive elements.
func normalised(b op.Builder, x op.Value, count int, eps float64) op.Value {
	if tensor.NumElements(x.Shape()) == 0 {
		return x
	}
	rows := b.Reshape(x, []int{1, count, -1})
	m := b.All("batch_norm.moments", rows, eps)
	return b.Reshape(b.Mul(b.Sub(rows, m[0]), m[1]), x.Shape())
}

// channelShape is the shape of a vector of channels, dimension 1, beside x.
func channelShape(x op.Value) []int {
	shape := make([]int, len(x.Shape()))
	for i := range shape {
		shape[i] = 1
	}
	shape[1] = x.Shape()[1]
	return shape
}

// affineChannels multiplies by weight and adds bias, where they are given.
func affineChannels(b op.Builder, a op.Args, x op.Value) op.Value {
	if w := a.Value(arg.Weight); w != nil {
		x = b.Mul(x, ofChannels(b, w, x))
	}
	if v := a.Value(arg.Bias); v != nil {
		x = b.Add(x, ofChannels(b, v, x))
	}
	return x
}

// ofChannels is a weight or a bias in the shape of the channels of x: of no channels
// PyTorch takes one of any size, whose gradient is 0.
func ofChannels(b op.Builder, v, x op.Value) op.Value {
	if n := tensor.NumElements(v.Shape()); n > 0 && x.Shape()[1] == 0 {
		v = b.Op("narrow", b.Reshape(v, []int{n}), 0, 0, 0)
	}
	return b.Reshape(v, channelShape(x))
}

// sampleAffine draws a weight and a bias, or nil for either, and ends with eps.
func sampleAffine(s *op.Sampler, channels int, eps float64) []any {
	args := []any{nil, nil, eps}
	for i := range 2 {
		if s.Bool() {
			args[i] = s.Tensor(-2, 2, channels)
		}
	}
	return args
}

// instanceNorm is instance_norm under one of its signatures.
func instanceNorm(sig, name string, check func(op.Args) error) *op.Def {
	d := &op.Def{
		Sig:     sig,
		Names:   []string{name},
		Doc:     "Normalises each channel of each sample: (input − mean)/√(var + eps)·weight + bias, with the channel's own mean and biased variance or, without use_input_stats, the running ones. Those given are updated: running = (1 − momentum)·running + momentum·batch, with the unbiased variance, averaged over the batch.",
		SBP:     anyOf(perChannel("nc~", ".c~", func(a op.Args) bool { return !a.Bool(arg.UseInputStats) || !a.Has(arg.RunningMean) }), affinely),
		Mutates: []op.TensorArg{arg.RunningMean, arg.RunningVar},
		Fixed:   []op.Handle{arg.RunningMean, arg.RunningVar},
		Reject:  checkInstanceNorm,
		Infer:   inferLike(arg.Input),
		Kernels: []op.Kernel{
			{Name: "float32", When: op.DTypeIn(arg.Input, tensor.F32), Run: instanceNormRun[float32]},
			{Name: "float64", When: op.DTypeIn(arg.Input, tensor.F64), Run: instanceNormRun[float64]},
			{Name: "bfloat16", When: op.DTypeIn(arg.Input, tensor.BF16), Run: instanceNormHalf},
			{Name: "float16", When: op.DTypeIn(arg.Input, tensor.F16), Run: instanceNormHalf, Since: "2"},
		},
		Sample: func(s *op.Sampler) []any {
			x := sampleInstances(s)
			c := x.Shape()[1]
			args := []any{x, op.Kw("running_mean", nil), op.Kw("running_var", nil), op.Kw("weight", nil), op.Kw("bias", nil),
				op.Kw("use_input_stats", true), op.Kw("momentum", 0.1), op.Kw("eps", s.Float(0.001, 0.1))}
			if s.Bool() {
				args[1], args[2] = op.Kw("running_mean", s.Tensor(-1, 1, c)), op.Kw("running_var", s.Tensor(0.1, 2, c))
				args[5] = op.Kw("use_input_stats", false)
			}
			if s.Bool() {
				args[3] = op.Kw("weight", s.Tensor(-2, 2, c))
			}
			if s.Bool() {
				args[4] = op.Kw("bias", s.Tensor(-2, 2, c))
			}
			if check == nil {
				args = append(args, op.Kw("cudnn_enabled", false))
			}
			return args
		},
		Tol: accumulating(channelTerms, "mean and variance sum one term per element of the channel"),
	}
	if check != nil {
		d.Reject = firstError(check, checkInstanceNorm)
	}
	return composed(d, instances)
}

// checkSpatialValues is what the functional form checks before.
func checkSpatialValues(a op.Args) error {
	s := a.Value(arg.Input).Shape()
	if a.Bool(arg.UseInputStats) && tensor.NumElements(s[min(2, len(s)):]) == 1 {
		return op.ValueError("expected more than 1 spatial element in argument 'input' when its own statistics are used, but got size %s", tensor.ShapeString(s))
	}
	return nil
}

func checkInstanceNorm(a op.Args) error {
	x := a.Value(arg.Input)
	s := x.Shape()
	if len(s) < 2 {
		return op.IndexError("expected argument 'input' of at least 2 dimensions, but got size %s", tensor.ShapeString(s))
	}
	if !a.Bool(arg.UseInputStats) && (!a.Has(arg.RunningMean) || !a.Has(arg.RunningVar)) {
		return op.RuntimeError("arguments 'running_mean' and 'running_var' must be defined when use_input_stats is false")
	}
	for _, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar} {
		if v := a.Value(name); v != nil && len(v.Shape()) == 1 && v.Shape()[0] > 1 && v.Strides()[0] == 0 {
			return op.RuntimeError("argument '%s' is written to, but its elements share one place in memory", name)
		}
	}
	if tensor.NumElements(s) == 0 {
		return checkNoInstances(a)
	}
	for _, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar} {
		if v := a.Value(name); v != nil && len(v.Shape()) == 0 {
			return op.RuntimeError("argument '%s' must have 1 dimension, but has none", name)
		}
	}
	for _, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar, arg.Weight, arg.Bias} {
		if v := a.Value(name); v != nil && len(v.Shape()) > 1 {
			return op.RuntimeError("argument '%s' must have 1 dimension, but has %d", name, len(v.Shape()))
		}
		if err := checkChannelValues(x, name, a.Value(name)); err != nil {
			return err
		}
	}
	return nil
}

// checkNoInstances compares the sizes for an input without elements: PyTorch
// repeats each vector for every sample, takes the first of weight's and bias's
// elements, and views or sums the running statistics as samples by channels.
func checkNoInstances(a op.Args) error {
	x := a.Value(arg.Input).Shape()
	for _, name := range []op.TensorArg{arg.Weight, arg.Bias, arg.RunningMean, arg.RunningVar} {
		if v := a.Value(name); v != nil && len(v.Shape()) > 1 {
			return op.RuntimeError("argument '%s' must have 1 dimension, but has %d", name, len(v.Shape()))
		}
	}
	for _, name := range []op.TensorArg{arg.Weight, arg.Bias} {
		if v := a.Value(name); v != nil && tensor.NumElements(v.Shape())*x[0] == 0 {
			return op.IndexError("argument '%s' has no elements for the %d samples", name, x[0])
		}
	}
	for _, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar} {
		v := a.Value(name)
		if v == nil {
			continue
		}
		if spread := x[0] == 0 && x[1] == 1; len(v.Shape()) == 0 || v.Shape()[0] != x[1] && !spread {
			return op.RuntimeError("argument '%s' must have an element for each of %d channels, but has size %s", name, x[1], tensor.ShapeString(v.Shape()))
		}
	}
	return nil
}

// sampleGroups are the channels of each sample.
func sampleGroups(x op.Value) kernel.Groups {
	s := x.Shape()
	return kernel.Groups{Outer: 1, Count: s[0] * s[1], Inner: tensor.NumElements(s[2:])}
}

func instanceNormRun[T float32 | float64](c *op.Run) error {
	in := c.Tensor(arg.Input)
	if in.Len() == 0 {
		return nil
	}
	d, x, samples := sampleGroups(in), contiguousData[T](in), in.Shape()[0]
	var mean, scale []float64
	if c.Bool(arg.UseInputStats) {
		mean, scale = moments(d, x)
		blend(c.Tensor(arg.RunningMean), c.Tensor(arg.RunningMean), overSamples(mean, samples), c.Float(arg.Momentum))
		blend(c.Tensor(arg.RunningVar), c.Tensor(arg.RunningVar), overSamples(unbiased(d, scale), samples), c.Float(arg.Momentum))
	} else {
		mean, scale = tiled(floats(c.Tensor(arg.RunningMean)), samples), tiled(floats(c.Tensor(arg.RunningVar)), samples)
	}
	kernel.InverseDeviation[float64](scale, c.Float(arg.Eps))
	affine := affineOf[T](c)
	affine.Weight, affine.Bias = tiled(affine.Weight, samples), tiled(affine.Bias, samples)
	kernel.NormaliseGroups(d, x, mean, scale, affine, tensor.Data[T](c.Out[0]))
	return nil
}

// instanceNormHalf runs in float32 and rounds the running statistics back.
func instanceNormHalf(c *op.Run) error {
	return inFloat32(func(w *op.Run) error {
		if err := instanceNormRun[float32](w); err != nil {
			return err
		}
		for _, name := range []op.TensorArg{arg.RunningMean, arg.RunningVar} {
			if v := c.Tensor(name); v != nil && c.Bool(arg.UseInputStats) {
				v.CopyFrom(w.Tensor(name))
			}
		}
		return nil
	})(c)
}

// overSamples averages values of samples × channels over the samples.
func overSamples(values []float64, samples int) []float64 {
	out := make([]float64, len(values)/samples)
	for i, v := range values {
		out[i%len(out)] += v / float64(samples)
	}
	return out
}

func instanceUpdateRun[T float32 | float64](c *op.Run) error {
	in := c.Tensor(arg.Input)
	c.Out[0].CopyFrom(c.Tensor(arg.RunningMean))
	c.Out[1].CopyFrom(c.Tensor(arg.RunningVar))
	if in.Len() == 0 {
		return nil
	}
	d, samples := sampleGroups(in), in.Shape()[0]
	mean, variance := moments(d, contiguousData[T](in))
	blend(c.Out[0], c.Tensor(arg.RunningMean), overSamples(mean, samples), c.Float(arg.Momentum))
	blend(c.Out[1], c.Tensor(arg.RunningVar), overSamples(unbiased(d, variance), samples), c.Float(arg.Momentum))
	return nil
}

// instances is the rule of instance_norm.
func instances(b op.Builder, a op.Args) op.Value {
	x := a.Value(arg.Input)
	if a.Bool(arg.UseInputStats) {
		return affineChannels(b, a, normalised(b, x, x.Shape()[0]*x.Shape()[1], a.Float(arg.Eps)))
	}
	shape := channelShape(x)
	scale := b.Div(1, b.Op("sqrt", b.Add(a.Value(arg.RunningVar), a.Float(arg.Eps))))
	centred := b.Sub(x, b.Reshape(a.Value(arg.RunningMean), shape))
	return affineChannels(b, a, b.Mul(centred, b.Reshape(scale, shape)))
}

func sampleInstances(s *op.Sampler) *tensor.Tensor {
	return s.Tensor(-2, 2, append([]int{int(s.Int(1, 4)), int(s.Int(1, 4)), int(s.Int(2, 6))}, s.Shape(0, 2)...)...)
}

func trailingTerms(a op.Args) int { return tensor.NumElements(a.Ints(arg.NormalizedShape)) }

func checkTrailing(a op.Args) error {
	x, n := a.Value(arg.Input), a.Ints(arg.NormalizedShape)
	lead := len(x.Shape()) - len(n)
	if len(n) == 0 || lead < 0 || !slices.Equal(x.Shape()[lead:], n) {
		return op.RuntimeError("normalized_shape=%s must be the last dimensions, at least one, of the input's size %s", tensor.ShapeString(n), tensor.ShapeString(x.Shape()))
	}
	if w := a.Value(arg.Weight); w != nil && !slices.Equal(w.Shape(), n) {
		return op.RuntimeError("expected argument 'weight' of the shape %s of normalized_shape, but got %s", tensor.ShapeString(n), tensor.ShapeString(w.Shape()))
	}
	return nil
}

// finfoEps is torch.finfo(d).eps.
func finfoEps(d tensor.DType) float64 {
	switch d {
	case tensor.F16:
		return 0x1p-10
	case tensor.BF16:
		return 0x1p-7
	case tensor.F64, tensor.C128:
		return 0x1p-52
	}
	return 0x1p-23
}

func rootMeanSquare(b op.Builder, a op.Args) op.Value {
	x, n := a.Value(arg.Input), len(a.Ints(arg.NormalizedShape))
	dims := allDims(len(x.Shape()))[len(x.Shape())-n:]
	square := b.Op("mean", b.Op("square", x), op.Kw("dim", dims), op.Kw("keepdim", true))
	out := b.Mul(x, b.Op("rsqrt", b.Add(square, a.Float(arg.Eps))))
	if w := a.Value(arg.Weight); w != nil {
		return b.Cast(b.Mul(out, w), x.DType())
	}
	return out
}

func sampleRMSNorm(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, append(s.Shape(0, 2), int(s.Int(2, 6)))...)
	n := x.Shape()[s.Index(x.Dim()):]
	args := []any{x, n, nil, 0.01}
	if s.Bool() {
		args[2] = s.Tensor(-2, 2, n...)
	}
	return args
}

func checkLocalResponse(a op.Args) error {
	s := a.Value(arg.Input).Shape()
	switch {
	case len(s) < 3:
		return op.ValueError("expected argument 'input' of 3 or more dimensions, but got %d", len(s))
	case tensor.NumElements(s) > 0 && a.Int(arg.SizeInt) < 0 && (1-a.Int(arg.SizeInt))/2 > s[1]:
		return op.RuntimeError("argument 'size' is %d, which cuts off more than %d channels", a.Int(arg.SizeInt), s[1])
	case tensor.NumElements(s) > 0 && a.Int(arg.SizeInt) < 1:
		return op.RuntimeError("argument 'size' must be greater than zero, but is %d", a.Int(arg.SizeInt))
	}
	return nil
}

func localResponse(b op.Builder, a op.Args) op.Value {
	x, size := a.Value(arg.Input), a.Int(arg.SizeInt)
	if tensor.NumElements(x.Shape()) == 0 {
		return b.Op("clone", x)
	}
	squares := b.Mul(x, x)
	padding := func(n int) op.Value {
		shape := slices.Clone(x.Shape())
		shape[1] = n
		return b.Op("zeros_like", b.Expand(b.Op("narrow", squares, 1, 0, 1), shape))
	}
	left, right := min(size/2, x.Shape()[1]), min((size-1)/2, x.Shape()[1])
	padded := b.Op("cat", []op.Value{padding(left), squares, padding(right)}, 1)
	window := b.Op("narrow", padded, 1, 0, x.Shape()[1])
	for i := 1; i <= left+right; i++ {
		window = b.Add(window, b.Op("narrow", padded, 1, i, x.Shape()[1]))
	}
	mean := b.Op("div", window, size, op.Kw("rounding_mode", roundingOf(x.DType())))
	base := b.Add(b.Mul(mean, a.Float(arg.AlphaFloat)), a.Float(arg.KFloat))
	return b.Div(x, b.Op("pow", base, a.Float(arg.BetaFloat)))
}

// roundingOf is how the mean of a window is rounded: integers stay integers.
func roundingOf(d tensor.DType) any {
	if d.IsInt() {
		return "trunc"
	}
	return nil
}

func checkPrelu(a op.Args) error {
	x, w := a.Value(arg.Input), a.Value(arg.Weight)
	n := tensor.NumElements(w.Shape())
	channels := 1
	if len(x.Shape()) > 1 {
		channels = x.Shape()[1]
	}
	switch {
	case len(w.Shape()) > 1:
		return op.RuntimeError("argument 'weight' must have at most 1 dimension, but has %d", len(w.Shape()))
	case n != 1 && n != channels:
		return op.RuntimeError("argument 'weight' has %d elements for %d channels of input", n, channels)
	case !x.DType().IsDifferentiable() || x.DType().IsComplex():
		return op.RuntimeError("not implemented for argument 'input' of dtype %s", x.DType())
	case w.DType() != x.DType():
		return op.RuntimeError("expected argument 'weight' of the dtype %s of input, but found %s", x.DType(), w.DType())
	}
	return nil
}

// preluShape is the shape of the slopes beside the input.
func preluShape(x, w op.Value) []int {
	shape := make([]int, len(x.Shape()))
	for i := range shape {
		shape[i] = 1
	}
	if len(shape) > 1 {
		shape[1] = tensor.NumElements(w.Shape())
	}
	return shape
}

func checkHalves(a op.Args) error {
	s := a.Value(arg.Input).Shape()
	if len(s) == 0 {
		return op.RuntimeError("argument 'input' must have a dimension to halve")
	}
	d, err := wrapDim(a.Int(arg.Dim), len(s))
	switch {
	case err != nil:
		return err
	case s[d]%2 != 0:
		return op.RuntimeError("dimension %d of argument 'input' must be even, but has size %d", d, s[d])
	}
	return nil
}
