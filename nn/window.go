package nn

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
)

var windowModules = slices.Concat(
	[]*Def{convModule(1), convModule(2), convModule(3), convTransposeModule(1), convTransposeModule(2), convTransposeModule(3)},
	poolModules(1), poolModules(2), poolModules(3),
	[]*Def{
		maxPoolModule(1), maxPoolModule(2), maxPoolModule(3), lpPoolModule(1), lpPoolModule(2),
		pointwise("Unfold", "(int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1)", "Applies unfold.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("im2col", x, a.Ints(arg.KernelSize), a.Ints(arg.Dilation), a.Ints(arg.Padding), a.Ints(arg.Stride))
		}),
		pointwise("Fold", "(int[2] output_size, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, int[2] stride=1)", "Applies fold.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("col2im", x, a.Ints(arg.OutputSize), a.Ints(arg.KernelSize), a.Ints(arg.Dilation), a.Ints(arg.Padding), a.Ints(arg.Stride))
		}),
		pointwise("PixelShuffle", "(int upscale_factor)", "Applies pixel_shuffle.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("pixel_shuffle", x, a.Int(arg.UpscaleFactor))
		}),
		pointwise("PixelUnshuffle", "(int downscale_factor)", "Applies pixel_unshuffle.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("pixel_unshuffle", x, a.Int(arg.DownscaleFactor))
		}),
		pointwise("ChannelShuffle", "(int groups)", "Applies channel_shuffle.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op("channel_shuffle", x, a.Int(arg.Groups))
		}),
		upsampleModule("Upsample", ", str mode='nearest', bool? align_corners=None, bool? recompute_scale_factor=None", func(a op.Args) []any {
			return []any{a.Str(arg.Mode), a.Any(arg.AlignCorners), a.Any(arg.RecomputeScaleFactor)}
		}),
		upsampleModule("UpsamplingNearest2d", "", func(op.Args) []any { return []any{"nearest"} }),
		upsampleModule("UpsamplingBilinear2d", "", func(op.Args) []any { return []any{"bilinear", true} }),
	},
)

// convModule is the convolution over n dimensions.
func convModule(n int) *Def {
	id := fmt.Sprintf("conv%dd", n)
	sig := func(padding string) string {
		return fmt.Sprintf("Conv%[1]dd(int in_channels, int out_channels, int[%[1]d] kernel_size, int[%[1]d] stride=1, %[2]s, int[%[1]d] dilation=1, int groups=1, bool? bias=True, str padding_mode='zeros', device? device=None, dtype? dtype=None)", n, padding)
	}
	return &Def{
		Names:  []string{fmt.Sprintf("torch.nn.Conv%dd", n)},
		Sig:    sig(fmt.Sprintf("int[%d] padding=0", n)),
		More:   []string{sig("str padding='valid'")},
		Doc:    "Applies " + id + ".",
		Reject: checkConv,
		State: func(a op.Args) []Slot {
			shape := append([]int{a.Int(arg.OutChannels), a.Int(arg.InChannels) / a.Int(arg.Groups)}, a.Ints(arg.KernelSize)...)
			return weights(a, shape, a.Int(arg.OutChannels))
		},
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			c := m.Args
			x, padding := a.Value(arg.Input), c.Any(arg.Padding)
			if mode := c.Str(arg.PaddingMode); mode != "zeros" {
				x, padding = b.Op("pad", x, aroundInput(c), mode), 0
			}
			return one(b.Op(id, x, m.param("weight"), m.param("bias"), c.Ints(arg.Stride), padding, c.Ints(arg.Dilation), c.Int(arg.Groups)))
		},
	}
}

// aroundInput is the padding of a convolution as pad takes it: the last
// dimension first, each with what goes before and after it.
func aroundInput(c op.Args) []int {
	kernel, dilation := c.Ints(arg.KernelSize), c.Ints(arg.Dilation)
	var out []int
	for i := len(kernel) - 1; i >= 0; i-- {
		before, after := 0, 0
		switch padding := c.Any(arg.Padding).(type) {
		case []int:
			before, after = padding[i], padding[i]
		case string:
			if padding == "same" {
				before = dilation[i] * (kernel[i] - 1) / 2
				after = dilation[i]*(kernel[i]-1) - before
			}
		}
		out = append(out, before, after)
	}
	return out
}

// convTransposeModule is the transposed convolution over n dimensions.
func convTransposeModule(n int) *Def {
	id := fmt.Sprintf("conv_transpose%dd", n)
	return &Def{
		Names:  []string{fmt.Sprintf("torch.nn.ConvTranspose%dd", n)},
		Sig:    fmt.Sprintf("ConvTranspose%[1]dd(int in_channels, int out_channels, int[%[1]d] kernel_size, int[%[1]d] stride=1, int[%[1]d] padding=0, int[%[1]d] output_padding=0, int groups=1, bool? bias=True, int[%[1]d] dilation=1, str padding_mode='zeros', device? device=None, dtype? dtype=None)", n),
		Doc:    "Applies " + id + "; output_size of a call takes the place of output_padding.",
		Reject: checkConvTranspose,
		State: func(a op.Args) []Slot {
			shape := append([]int{a.Int(arg.InChannels), a.Int(arg.OutChannels) / a.Int(arg.Groups)}, a.Ints(arg.KernelSize)...)
			return weights(a, shape, a.Int(arg.OutChannels))
		},
		ForwardSig: "forward(Tensor input, int[]? output_size=None)",
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			extra, err := outputPadding(m.Args, a)
			if err != nil {
				op.Fail(err)
			}
			c := m.Args
			return one(b.Op(id, a.Value(arg.Input), m.param("weight"), m.param("bias"), c.Ints(arg.Stride), c.Ints(arg.Padding), extra, c.Int(arg.Groups), c.Ints(arg.Dilation)))
		},
	}
}

// maxPoolModule is max_pool over n dimensions.
func maxPoolModule(n int) *Def {
	return &Def{
		Names: []string{fmt.Sprintf("torch.nn.MaxPool%dd", n)},
		Sig:   fmt.Sprintf("MaxPool%[1]dd(int[%[1]d] kernel_size, int[%[1]d]? stride=None, int[%[1]d] padding=0, int[%[1]d] dilation=1, bool return_indices=False, bool ceil_mode=False)", n),
		Doc:   "Applies max_pool.",
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			id, c := fmt.Sprintf("max_pool%dd", n), m.Args
			if c.Bool(arg.ReturnIndices) {
				id += "_with_indices"
			}
			return b.All(id, a.Value(arg.Input), c.Ints(arg.KernelSize), c.Any(arg.Stride), c.Ints(arg.Padding), c.Ints(arg.Dilation), c.Bool(arg.CeilMode))
		},
	}
}

// poolModules are the other poolings over n dimensions.
func poolModules(n int) []*Def {
	size := fmt.Sprintf("(int?[%d] output_size", n)
	if n == 1 {
		size = "(int[1] output_size"
	}
	avg := fmt.Sprintf("(int[%[1]d] kernel_size, int[%[1]d]? stride=None, int[%[1]d] padding=0, bool ceil_mode=False, bool count_include_pad=True", n)
	if n > 1 {
		avg += ", int? divisor_override=None"
	}
	return []*Def{
		pointwise(fmt.Sprintf("AvgPool%dd", n), avg+")", "Applies avg_pool.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			args := []any{x, a.Ints(arg.KernelSize), a.Any(arg.Stride), a.Ints(arg.Padding), a.Bool(arg.CeilMode), a.Bool(arg.CountIncludePad)}
			if n > 1 {
				args = append(args, a.Any(arg.DivisorOverride))
			}
			return b.Op(fmt.Sprintf("avg_pool%dd", n), args...)
		}),
		pointwise(fmt.Sprintf("AdaptiveAvgPool%dd", n), size+")", "Applies adaptive_avg_pool.", func(b op.Builder, x op.Value, a op.Args) op.Value {
			return b.Op(fmt.Sprintf("adaptive_avg_pool%dd", n), x, a.Ints(arg.OutputSize))
		}),
		{
			Names: []string{fmt.Sprintf("torch.nn.AdaptiveMaxPool%dd", n)},
			Sig:   fmt.Sprintf("AdaptiveMaxPool%dd", n) + size + ", bool return_indices=False)",
			Doc:   "Applies adaptive_max_pool.",
			Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
				id := fmt.Sprintf("adaptive_max_pool%dd", n)
				if m.Args.Bool(arg.ReturnIndices) {
					id += ".indices"
				}
				return b.All(id, a.Value(arg.Input), m.Args.Ints(arg.OutputSize))
			},
		},
		{
			Names:      []string{fmt.Sprintf("torch.nn.MaxUnpool%dd", n)},
			Sig:        fmt.Sprintf("MaxUnpool%[1]dd(int[%[1]d] kernel_size, int[%[1]d]? stride=None, int[%[1]d] padding=0)", n),
			Doc:        "Applies max_unpool.",
			ForwardSig: "forward(Tensor input, Tensor indices, int[]? output_size=None)",
			Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
				c := m.Args
				return one(b.Op(fmt.Sprintf("max_unpool%dd", n), a.Value(arg.Input), a.Value(arg.Indices), c.Ints(arg.KernelSize), c.Any(arg.Stride), c.Ints(arg.Padding), a.Any(arg.OutputSize)))
			},
		},
	}
}

// lpPoolModule is lp_pool over n dimensions.
func lpPoolModule(n int) *Def {
	params := fmt.Sprintf("(float norm_type, int[%[1]d] kernel_size, int[%[1]d]? stride=None, bool ceil_mode=False)", n)
	if n == 1 { // whose kernel_size PyTorch takes as a number alone
		params = strings.Replace(params, "int[1] kernel_size", "int kernel_size", 1)
	}
	return pointwise(fmt.Sprintf("LPPool%dd", n), params, "Applies lp_pool.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		return b.Op(fmt.Sprintf("lp_pool%dd", n), x, a.Float(arg.NormType), a.Any(arg.KernelSize), a.Any(arg.Stride), a.Bool(arg.CeilMode))
	})
}

// upsampleModule applies interpolate with the arguments after scale_factor that rest gives.
func upsampleModule(name, params string, rest func(a op.Args) []any) *Def {
	sig := func(size, scale string) string {
		return fmt.Sprintf("%s(%s? size=None, %s? scale_factor=None%s)", name, size, scale, params)
	}
	d := pointwise(name, "", "Applies interpolate.", func(b op.Builder, x op.Value, a op.Args) op.Value {
		return b.Op("interpolate", append([]any{x, a.Any(arg.Size), a.Any(arg.ScaleFactor)}, rest(a)...)...)
	})
	d.Sig = sig("int[]", "float[]")
	d.More = []string{sig("int", "float"), sig("int[]", "float"), sig("int", "float[]")}
	return d
}
