package mutants

import (
	"slices"

	"plumb/internal/arg"
	"plumb/nn"
	"plumb/op"
)

// mode makes a module's calls believe in another mode.
func mode(f func(training bool) bool) func(*nn.Def) {
	return forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
		changed := *m
		changed.Training = f(m.Training)
		return call(b, &changed, a)
	})
}

// to gives an argument of a module always the value v.
func to(v any) func(op.Args) any { return func(op.Args) any { return v } }

// given makes a module's calls see another value of one of their own arguments.
func given(name op.Handle, v any) func(*nn.Def) {
	return forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
		return call(b, m, With(a, name, v))
	})
}

// without leaves an entry out of a module's state.
func without(name string) func(*nn.Def) {
	return slots(func(_ op.Args, s []nn.Slot) []nn.Slot {
		return slices.DeleteFunc(s, func(s nn.Slot) bool { return s.Name == name })
	})
}

// swap exchanges two arguments of a call.
func swap(i, j int) func(*nn.Module, []any) {
	return func(_ *nn.Module, args []any) { args[i], args[j] = args[j], args[i] }
}

var moduleMutants = []Mutant{
	{Name: "BatchNorm2d takes training for evaluation and back", In: "torch.nn.BatchNorm2d", Kind: State,
		Module: mode(func(training bool) bool { return !training }), Minimal: Minimal{1, 2}},
	{Name: "BatchNorm1d has no num_batches_tracked", In: "torch.nn.BatchNorm1d", Kind: State, Module: without("num_batches_tracked"), Minimal: Minimal{1, 2}},
	{Name: "BatchNorm3d keeps no running statistics", In: "torch.nn.BatchNorm3d", Kind: State, Minimal: Minimal{1, 2},
		Module: func(d *nn.Def) {
			state := d.State
			d.State = func(a op.Args) []nn.Slot { return state(With(a, arg.TrackRunningStats, false)) }
		}},
	{Name: "BatchNorm2d ignores momentum", In: "torch.nn.BatchNorm2d", Kind: Wiring, Module: configured(arg.Momentum, to(0.1)), Minimal: Minimal{1, 2}},
	{Name: "BatchNorm1d does not update its running mean", In: "torch.nn.BatchNorm1d", Kind: State, Minimal: Minimal{1, 2},
		Module: forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
			was := m.Value("running_mean")
			out := call(b, m, a)
			if was != nil {
				if err := m.Load("running_mean", was); err != nil {
					op.Fail(err)
				}
			}
			return out
		})},
	{Name: "InstanceNorm2d ignores eps", In: "torch.nn.InstanceNorm2d", Kind: Wiring, Module: configured(arg.Eps, to(1e-5)), Minimal: Minimal{1, 2}},
	{Name: "GroupNorm takes its weight for its bias", In: "torch.nn.GroupNorm", Kind: Wiring, Module: applies("group_norm", swap(2, 3)), Minimal: Minimal{1, 2}},
	{Name: "LayerNorm has weights with elementwise_affine=False", In: "torch.nn.LayerNorm", Kind: State, Minimal: Minimal{0, 0},
		Module: func(d *nn.Def) {
			state := d.State
			d.State = func(a op.Args) []nn.Slot { return state(With(a, arg.ElementwiseAffine, true)) }
		}},
	{Name: "Linear ignores bias=False", In: "torch.nn.Linear", Kind: State, Minimal: Minimal{1, 1},
		Module: func(d *nn.Def) {
			state := d.State
			d.State = func(a op.Args) []nn.Slot { return state(With(a, arg.Bias, true)) }
		}},
	{Name: "PReLU has one parameter for all channels", In: "torch.nn.PReLU", Kind: State, Minimal: Minimal{0, 0},
		Module: func(d *nn.Def) {
			state := d.State
			d.State = func(a op.Args) []nn.Slot { return state(With(a, arg.NumParameters, 1)) }
		}},
	{Name: "Embedding forgets padding_idx", In: "torch.nn.Embedding", Kind: Wiring, Minimal: Minimal{1, 1},
		Module: applies("embedding", func(_ *nn.Module, args []any) { args[2] = nil })},
	{Name: "Conv2d takes stride for dilation", In: "torch.nn.Conv2d", Kind: Wiring, Module: applies("conv2d", swap(3, 5)), Minimal: Minimal{1, 2}},
	{Name: "Conv1d ignores groups", In: "torch.nn.Conv1d", Kind: Wiring, Module: configured(arg.Groups, to(1)), Minimal: Minimal{1, 2}},
	{Name: "ConvTranspose2d ignores output_size", In: "torch.nn.ConvTranspose2d", Kind: Wiring, Module: given(arg.OutputSize, nil), Minimal: Minimal{1, 1}},
	{Name: "MaxPool2d takes padding for dilation", In: "torch.nn.MaxPool2d", Kind: Wiring, Minimal: Minimal{1, 6},
		Module: forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
			changed := *m
			changed.Args = With(m.Args, arg.Dilation, repeated(1, 2))
			return call(b, &changed, a)
		})},
	{Name: "AvgPool2d ignores ceil_mode", In: "torch.nn.AvgPool2d", Kind: Wiring, Module: configured(arg.CeilMode, to(false)), Minimal: Minimal{1, 6}},
	{Name: "Dropout drops in evaluation", In: "torch.nn.Dropout", Kind: State, Module: mode(func(bool) bool { return true }), Minimal: Minimal{2, 4}},
	{Name: "Flatten flattens the batch", In: "torch.nn.Flatten", Kind: Wiring, Module: configured(arg.StartDim, to(0)), Minimal: Minimal{1, 1}},
	{Name: "Softmax2d runs over the width", In: "torch.nn.Softmax2d", Kind: Axis, Minimal: Minimal{1, 2},
		Module: applies("softmax.functional", func(_ *nn.Module, args []any) { args[1] = -1 })},
	{Name: "Sequential leaves out its last module", In: "torch.nn.Sequential", Kind: Wiring, Minimal: Minimal{1, 1},
		Module: forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
			changed := *m
			changed.Children = m.Children[:max(len(m.Children)-1, 0)]
			return call(b, &changed, a)
		})},
	{Name: "a bidirectional LSTM puts the reverse direction first", In: "torch.nn.LSTM", Kind: Axis, Minimal: Minimal{1, 1},
		Module: applies("cat", func(_ *nn.Module, args []any) {
			if sides, ok := args[0].([]op.Value); ok && len(sides) == 2 {
				args[0] = []op.Value{sides[1], sides[0]}
			}
		})},
	{Name: "LSTM ignores batch_first", In: "torch.nn.LSTM", Kind: Wiring, Module: configured(arg.BatchFirst, to(false)), Minimal: Minimal{1, 2}},
	{Name: "LSTM takes its cell state for its hidden state", In: "torch.nn.LSTM", Kind: Wiring, Minimal: Minimal{1, 2},
		Module: applies("lstm_cell.projected", func(_ *nn.Module, args []any) {
			hx := args[1].([]op.Value)
			if slices.Equal(hx[0].Shape(), hx[1].Shape()) {
				args[1] = []op.Value{hx[1], hx[0]}
			}
		})},
	{Name: "GRU ignores hx", In: "torch.nn.GRU", Kind: Wiring, Module: given(arg.Hx, nil), Minimal: Minimal{1, 1}},
	{Name: "RNN ignores nonlinearity", In: "torch.nn.RNN", Kind: Wiring, Module: configured(arg.Nonlinearity, to("tanh")), Minimal: Minimal{1, 1}},
	{Name: "GRU returns the final state of the last layer for each", In: "torch.nn.GRU", Kind: State, Minimal: Minimal{1, 1},
		Module: forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
			out := call(b, m, a)
			if n := out[1].Shape()[0]; n > 1 {
				last := b.Op("narrow", out[1], 0, n-1, 1)
				out[1] = b.Op("cat", slices.Repeat([]op.Value{last}, n), 0)
			}
			return out
		})},
	{Name: "MultiheadAttention ignores average_attn_weights", In: "torch.nn.MultiheadAttention", Kind: Wiring, Module: given(arg.AverageAttnWeights, true), Minimal: Minimal{1, 2}},
	{Name: "MultiheadAttention ignores key_padding_mask", In: "torch.nn.MultiheadAttention", Kind: Wiring, Module: given(arg.KeyPaddingMask, nil), Minimal: Minimal{1, 2}},
	{Name: "CrossEntropyLoss ignores label_smoothing", In: "torch.nn.CrossEntropyLoss", Kind: Wiring, Module: configured(arg.LabelSmoothing, to(0.0)), Minimal: Minimal{1, 2}},
	{Name: "MSELoss ignores reduction", In: "torch.nn.MSELoss", Kind: Wiring, Module: configured(arg.Reduction, to("mean")), Minimal: Minimal{1, 2}},
	{Name: "Upsample ignores align_corners", In: "torch.nn.Upsample", Kind: Wiring, Minimal: Minimal{1, 2},
		Module: configured(arg.AlignCorners, func(a op.Args) any {
			if a.Has(arg.AlignCorners) {
				return false
			}
			return nil
		})},
	{Name: "ReLU ignores inplace", In: "torch.nn.ReLU", Kind: Aliasing, Module: configured(arg.Inplace, to(false)), Minimal: Minimal{2, 1}},
	{Name: "Identity drops the gradient", In: "torch.nn.Identity", Kind: Gradient, Minimal: Minimal{1, 1},
		Module: forward(func(b op.Builder, m *nn.Module, a op.Args, call moduleCall) []op.Value {
			return []op.Value{b.Op("detach", call(b, m, a)[0])}
		})},
}
