package nn

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// All returns the definitions of this package.
func All() []*Def {
	return slices.Concat(basics(), containers, activations, distanceModules, paddingModules, windowModules, groupNormModules, dropoutModules, lossModules, recurrentModules, attentionModules, transformerModules, bilinearModules, embeddingModules)
}

func basics() []*Def {
	return []*Def{
		pointwise("ReLU", "(bool inplace=False)", "Applies relu.", func(b op.Builder, x op.Value, a op.Args) op.Value { return b.Op("relu", x) }),
		pointwise("LeakyReLU", "(float negative_slope=0.01, bool inplace=False)", "Applies leaky_relu.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("leaky_relu", x, a.Float(arg.NegativeSlope))
		}),
		pointwise("GELU", "(str approximate='none')", "Applies gelu.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("gelu", x, op.Kw("approximate", a.Str(arg.Approximate)))
		}),
		pointwise("Sigmoid", "()", "Applies sigmoid.", func(b op.Builder, x op.Value, a op.Args) op.Value { return b.Op("sigmoid", x) }),
		pointwise("Tanh", "()", "Applies tanh.", func(b op.Builder, x op.Value, a op.Args) op.Value { return b.Op("tanh", x) }),
		pointwise("Softmax", "(int? dim=None)", "Applies softmax along dim.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("softmax.functional", x, a.Any(arg.Dim))
		}),
		pointwise("LogSoftmax", "(int? dim=None)", "Applies log_softmax along dim.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("log_softmax.functional", x, a.Any(arg.Dim))
		}),
		pointwise("Flatten", "(int start_dim=1, int end_dim=-1)", "Flattens a range of dimensions into one.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("flatten", x, a.Int(arg.StartDim), a.Int(arg.EndDim))
		}),
		pointwise("Unflatten", "(int dim, int[] unflattened_size)", "Makes several dimensions of one.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("unflatten", x, a.Int(arg.Dim), a.Ints(arg.UnflattenedSize))
		}),
		anyArguments(pointwise("Identity", "()", "Returns its input, whatever arguments it was made with.", func(b op.Builder, x op.Value, a op.Args) op.Value { return x })),
		linearModule,
		batchNorm("BatchNorm1d", 2, 3),
		batchNorm("BatchNorm2d", 4, 4),
		layerNormModule,
	}
}

var linearModule = &Def{
	Names: []string{"torch.nn.Linear", "torch.nn.modules.linear.Linear"},
	Sig:   "Linear(int in_features, int out_features, bool? bias=True, device? device=None, dtype? dtype=None)",
	Doc:   "Applies an affine map to the last dimension: input·weightᵀ + bias.",
	State: func(a op.Args) []Slot {
		return weights(a, []int{a.Int(arg.OutFeatures), a.Int(arg.InFeatures)}, a.Int(arg.OutFeatures))
	},
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		return one(b.Op("linear", a.Value(arg.Input), m.param("weight"), m.param("bias")))
	},
}

var layerNormModule = &Def{
	Names: []string{"torch.nn.LayerNorm"},
	Sig:   "LayerNorm(int[] normalized_shape, float eps=1e-05, bool elementwise_affine=True, device? device=None, dtype? dtype=None)",
	More:  []string{"LayerNorm(int normalized_shape, float eps=1e-05, bool elementwise_affine=True, device? device=None, dtype? dtype=None)"},
	Doc:   "Applies layer_norm over the last dimensions.",
	State: func(a op.Args) []Slot {
		if !a.Bool(arg.ElementwiseAffine) {
			return nil
		}
		return affine(a, normalizedShape(a))
	},
	Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
		return one(b.Op("layer_norm", a.Value(arg.Input), normalizedShape(m.Args), m.param("weight"), m.param("bias"), m.Args.Float(arg.Eps)))
	},
}

// inPlace applies operators by their argument inplace.
type inPlace struct{ op.Applier }

// Apply applies an operator in place.
func (p inPlace) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	return p.Applier.Apply(id, args, append(kwargs, op.Kw("inplace", true)))
}

// pointwise is a module without state that applies one operator.
func pointwise(name, params, doc string, apply func(b op.Builder, x op.Value, a op.Args) op.Value) *Def {
	return &Def{
		Names: []string{"torch.nn." + name},
		Sig:   name + params,
		Doc:   doc,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			if m.Args.Sig.Takes(arg.Inplace) && m.Args.Bool(arg.Inplace) {
				b = op.Builder{Applier: inPlace{b.Applier}}
			}
			return one(apply(b, a.Value(arg.Input), m.Args))
		},
	}
}

// anyArguments makes the constructor ignore its arguments.
func anyArguments(d *Def) *Def {
	d.AnyArguments = true
	return d
}

func unsupported(m *Module, param string, v any) error {
	return fmt.Errorf("%s: argument %s=%v is %w", m.Def.Name(), param, v, ErrUnsupported)
}

// stateType is the dtype that the dtype argument asks for.
func stateType(a op.Args) tensor.DType {
	if a.Has(arg.DType) {
		return a.DType(arg.DType)
	}
	return tensor.F32
}

// weights are a weight and, unless the bias argument is false, a bias.
func weights(a op.Args, shape []int, out int) []Slot {
	s := []Slot{{Name: "weight", Kind: Param, DType: stateType(a), Shape: shape}}
	if a.Bool(arg.BiasBool) {
		s = append(s, Slot{Name: "bias", Kind: Param, DType: stateType(a), Shape: []int{out}})
	}
	return s
}

// affine are the weight and the bias of a normalisation.
func affine(a op.Args, shape []int) []Slot {
	return []Slot{
		{Name: "weight", Kind: Param, DType: stateType(a), Shape: shape, Fill: new(1.0)},
		{Name: "bias", Kind: Param, DType: stateType(a), Shape: shape, Fill: new(0.0)},
	}
}

func normalizedShape(a op.Args) []int {
	if n, ok := a.Any(arg.NormalizedShape).(int); ok {
		return []int{n}
	}
	return a.Ints(arg.NormalizedShape)
}

func checkGroups(a op.Args) error {
	groups := a.Int(arg.Groups)
	if groups < 1 {
		return op.ValueError("groups must be a positive integer, but is %d", groups)
	}
	for _, name := range []op.IntArg{arg.InChannels, arg.OutChannels} {
		if a.Int(name)%groups != 0 {
			return op.ValueError("%s=%d must be divisible by groups=%d", name, a.Int(name), groups)
		}
	}
	return nil
}

var paddingModes = []string{"zeros", "reflect", "replicate", "circular"}

func checkConv(a op.Args) error {
	if err := checkGroups(a); err != nil {
		return err
	}
	if text, ok := a.Any(arg.Padding).(string); ok {
		switch {
		case text != "same" && text != "valid":
			return op.ValueError("padding must be 'same', 'valid' or integers, but is '%s'", text)
		case text == "same" && slices.ContainsFunc(a.Ints(arg.Stride), func(s int) bool { return s != 1 }):
			return op.ValueError("padding='same' is not supported for strided convolutions")
		}
	}
	if mode := a.Str(arg.PaddingMode); !slices.Contains(paddingModes, mode) {
		return op.ValueError("padding_mode must be one of %v, but is '%s'", paddingModes, mode)
	}
	return nil
}

func checkConvTranspose(a op.Args) error {
	if mode := a.Str(arg.PaddingMode); mode != "zeros" {
		return op.ValueError("padding_mode must be 'zeros', but is '%s'", mode)
	}
	return checkGroups(a)
}

// outputPadding returns the output_padding that gives the output_size of a
// call, or the constructor's without one.
func outputPadding(c, a op.Args) ([]int, error) {
	if !a.Has(arg.OutputSize) {
		return c.Ints(arg.OutputPadding), nil
	}
	in, want := a.Value(arg.Input).Shape(), a.Ints(arg.OutputSize)
	stride, pad, kernel, dilation := c.Ints(arg.Stride), c.Ints(arg.Padding), c.Ints(arg.KernelSize), c.Ints(arg.Dilation)
	n := len(stride)
	if len(want) == len(in) && len(in) > n {
		want = want[len(in)-n:]
	}
	if len(want) != n || len(in) <= n {
		return nil, op.ValueError("output_size must have %d or %d elements, but has %d", n, len(in), len(a.Ints(arg.OutputSize)))
	}
	extra := make([]int, n)
	for i, n := range in[len(in)-n:] {
		low := (n-1)*stride[i] - 2*pad[i] + dilation[i]*(kernel[i]-1) + 1
		if want[i] < low || want[i] > low+stride[i]-1 {
			return nil, op.ValueError("output_size %v asks for %d, but valid sizes range from %d to %d", want, want[i], low, low+stride[i]-1)
		}
		extra[i] = want[i] - low
	}
	return extra, nil
}

// batchNorm is batch normalisation of inputs with lo to hi dimensions.
func batchNorm(name string, lo, hi int) *Def {
	return &Def{
		Names: []string{"torch.nn." + name},
		Sig:   name + "(int num_features, float eps=1e-05, float? momentum=0.1, bool affine=True, bool track_running_stats=True, device? device=None, dtype? dtype=None)",
		Doc:   "Applies batch_norm per channel, and keeps running statistics in training; without momentum they are averages over all batches.",
		State: batchNormState,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			if n := len(a.Value(arg.Input).Shape()); n < lo || n > hi {
				op.Fail(op.ValueError("expected an input of %d to %d dimensions, but got %d", lo, hi, n))
			}
			return one(batchNormForward(b, m, a.Value(arg.Input)))
		},
	}
}

func batchNormState(a op.Args) []Slot {
	shape := []int{a.Int(arg.NumFeatures)}
	var s []Slot
	if a.Bool(arg.Affine) {
		s = affine(a, shape)
	}
	if a.Bool(arg.TrackRunningStats) {
		s = append(s,
			Slot{Name: "running_mean", Kind: Buffer, DType: stateType(a), Shape: shape, Fill: new(0.0)},
			Slot{Name: "running_var", Kind: Buffer, DType: stateType(a), Shape: shape, Fill: new(1.0)},
			Slot{Name: "num_batches_tracked", Kind: Buffer, DType: tensor.I64, Shape: []int{}, Fill: new(0.0)},
		)
	}
	return s
}

// batchNormForward checks the running statistics against the input through
// the operator's own rules, and updates them by values, not in place.
func batchNormForward(b op.Builder, m *Module, x op.Value) op.Value {
	mean, variance := m.param("running_mean"), m.param("running_var")
	tracked := mean != nil
	train := m.Training || !tracked
	if !train || !tracked {
		return b.Op("batch_norm", x, mean, variance, m.param("weight"), m.param("bias"), train, 0.0, m.Args.Float(arg.Eps))
	}
	features := m.Args.Int(arg.NumFeatures)
	if s := x.Shape(); s[1] != features && tensor.NumElements(s) > 0 {
		op.Fail(op.RuntimeError("running_mean should contain %d elements, not %d", s[1], features))
	}
	out := b.Op("batch_norm", x, nil, nil, m.param("weight"), m.param("bias"), true, 0.0, m.Args.Float(arg.Eps))
	batches := m.values["num_batches_tracked"]
	if batches != nil { // as in PyTorch, where a module may have lost it
		batches = b.Add(batches, 1)
		m.values["num_batches_tracked"] = batches
	}
	updated := b.All("batch_norm.update", x, mean, variance, batches, m.Args.Any(arg.Momentum))
	m.values["running_mean"], m.values["running_var"] = updated[0], updated[1]
	return out
}
