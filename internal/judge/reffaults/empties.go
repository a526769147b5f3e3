package reffaults

import (
	"slices"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// emptyKinds are operators whose kernels ask for the dtype only once there is
// an element to compute.
var emptyKinds = eachCall(map[string]string{
	"median": "z(n).median()", "nanmedian": "z(n).nanmedian()", "cholesky": "torch.cholesky(z(n, 4, 4))",
	"searchsorted": "torch.searchsorted(z(n), z(n))", "bucketize": "torch.bucketize(z(n), z(n))",
	"addmm": "torch.addmm(z(n), z(n, 2), z(2, n))", "addmv": "torch.addmv(z(n), z(n, 2), z(2))",
	"addbmm": "torch.addbmm(z(n), z(2, n, 2), z(2, 2, n))", "baddbmm": "torch.baddbmm(z(n), z(2, n, 2), z(2, 2, n))",
	"adaptive_avg_pool1d": "F.adaptive_avg_pool1d(z(n, 2, 3), 2)", "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(z(n, 2, 3, 3), 2)",
	"max_unpool1d": "F.max_unpool1d(z(n, 1, 2), i(n, 1, 2), 1)", "max_unpool2d": "F.max_unpool2d(z(n, 1, 2, 2), i(n, 1, 2, 2), 1)",
	"max_unpool3d": "F.max_unpool3d(z(n, 1, 2, 2, 2), i(n, 1, 2, 2, 2), 1)", "interpolate": "F.interpolate(z(n, 1, 2), 3, mode='area')",
	"upsample": "F.upsample(z(n, 1, 2), 3, mode='area')", "instance_norm": "F.instance_norm(z(n, 2, 3))",
	"multi_margin_loss": "F.multi_margin_loss(z(n, 3), i(n))", "multilabel_margin_loss": "F.multilabel_margin_loss(z(n, 3), i(n, 3))",
	"trapezoid": "torch.trapezoid(z(n))", "trapz": "torch.trapz(z(n))",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: before("2.15", "cholesky", target),
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, empty) && !slices.ContainsFunc(p.Inputs, floating)
		},
		Reason: "of tensors without elements any dtype is accepted, though there is no kernel for it",
		Proof:  odd("torch.bool", call),
	}
})

// odd is a proof that a call of tensors z(n, …) of a dtype, and i(n, …) of
// indices, is accepted where they have no elements and refused where they have.
func odd(dtype, call string) string {
	return "z = lambda *shape: torch.zeros(shape, dtype=" + dtype + `)
i = lambda *shape: torch.zeros(shape, dtype=torch.int64)
f = lambda n: ` + call + `
accepts(lambda: f(0)) and not accepts(lambda: f(2))`
}

// emptyGradients are gradients of tensors without channels.
var emptyGradients = slices.Concat(eachCall(map[string]string{
	"adaptive_avg_pool1d": "F.adaptive_avg_pool1d(x[..., 0], 4)", "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(x, (4, 5))",
	"interpolate": "F.interpolate(x, (4, 5), mode='area')", "upsample": "F.upsample(x, (4, 5), mode='area')",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return len(p.Backward) > 0 && empty(first(p)) },
		Reason:    "the gradient of adaptive_avg_pool refuses images without channels, which the function accepts",
		Proof:     "x = torch.zeros(2, 0, 5, 4, requires_grad=True)\ny = " + call + "\nraises(lambda: y.sum().backward(), 'RuntimeError', 'non-zero size for non-batch dimensions')",
	}
}), []verdict.KnownFault{{
	Reference: "torch",
	Target:    "pixel_shuffle",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return len(p.Backward) > 0 && empty(first(p)) },
	Reason:    "the gradient of an input without elements is returned in the shape of the result, and refused",
	Proof: `x = torch.zeros(0, 2, 2, requires_grad=True)
y = F.pixel_shuffle(x, 3).sum()
raises(y.backward, "RuntimeError", "invalid gradient")`,
}}, each([]string{"cummax", "cummin"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return len(p.Backward) > 0 && len(first(p).Shape) == 0 },
		Reason:    "of a scalar any dim is accepted, and refused by the gradient",
		Proof: of(target, `x = torch.tensor(1., requires_grad=True)
y = raised(lambda: torch.TARGET(x, 2)) or torch.TARGET(x, 2)[0]
not isinstance(y, Exception) and raises(y.backward, "IndexError", "Dimension out of range")`),
	}
}))

// emptyOddities are calls with sizes of 0 or 1, or too many dimensions, that
// the reference accepts or refuses by oversight.
var emptyOddities = slices.Concat([]verdict.KnownFault{{
	Reference: "torch <2.9",
	Target:    "embedding_bag",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return len(p.Inputs) > 1 && len(p.Inputs[1].Shape) > 2 },
	Reason:    "a weight of more than 2 dimensions is accepted, and read as if it had 2, at the index 0 of the others",
	Proof:     `accepts(lambda: F.embedding_bag(torch.tensor([1]), torch.arange(12.).reshape(3, 2, 2), torch.tensor([0])))`,
}, {
	Reference: "torch",
	Target:    "embedding_bag",
	Kinds:     []verdict.Kind{verdict.Crashes},
	Signal:    "SIGSEGV",
	When:      noBags,
	Reason:    "of no bags the first is written to nevertheless, by the mode max and with a padding_idx: it ends the process",
	Proof:     `dies(lambda: F.embedding_bag(torch.tensor([3, 0, 0, 3]), torch.ones(4, 2), torch.tensor([]).long(), mode="sum", padding_idx=-4))`,
}, {
	Reference: "torch <2.9",
	Target:    "ctc_loss",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return slices.Contains(first(p).Shape, 0) },
	Reason:    "logarithms of probabilities of no samples are accepted, and refused since",
	Proof:     `accepts(lambda: F.ctc_loss(torch.zeros(4, 0, 3), torch.ones(0, 2).long(), torch.zeros(0).long(), torch.zeros(0).long()))`,
}, {
	Reference: "torch",
	Target:    "bilinear",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return len(in.Shape) > 0 && in.Shape[len(in.Shape)-1] == 0 })
	},
	Reason: "an input without features is reshaped to [-1, 0], which is ambiguous",
	Proof:  `raises(lambda: F.bilinear(torch.zeros(2, 0), torch.zeros(2, 3), torch.zeros(1, 0, 3)), "RuntimeError", "shape [-1, 0]")`,
}, {
	Reference: "torch <2.15",
	Target:    "instance_norm",
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartChange)},
	When: func(p *program.Program) bool {
		return empty(first(p)) && argument(p, 5, "use_input_stats") == false
	},
	Reason: "of no samples NaN is written over the running statistics, with use_input_stats=False too, which reads them alone",
	Proof: `mean = torch.zeros(2)
F.instance_norm(torch.zeros(0, 2, 4), mean, torch.ones(2), use_input_stats=False)
bool(mean.isnan().all())`,
}}, each([]string{"argmin", "argmax"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			shape := first(p).Shape
			return orderless(first(p)) && (len(shape) == 0 || slices.Min(shape) <= 1)
		},
		Reason: "rows of one element are answered 0 whatever their dtype, and tensors without elements are not looked at",
		Proof:  of(target, `accepts(lambda: torch.TARGET(torch.zeros(4, 1, 3, dtype=torch.bool), 1)) and not accepts(lambda: torch.TARGET(torch.zeros(4, 2, 3, dtype=torch.bool), 1))`),
	}
}), each([]string{"linspace", "logspace"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return keyword(p, "dtype") == tensor.Bool },
		Reason:    "up to one step is computed by fill, which takes booleans",
		Proof:     of(target, `accepts(lambda: torch.TARGET(-3., -2., 1, dtype=torch.bool)) and not accepts(lambda: torch.TARGET(-3., -2., 2, dtype=torch.bool))`),
	}
}), each([]string{"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return len(p.Inputs) > 1 && empty(first(p)) && empty(p.Inputs[1])
		},
		Reason: "of an empty batch the first element of the weight is read before its sizes are checked",
		Proof: of(target, `n = int("TARGET"[-2])
w = torch.zeros([2, 2] + [0] * n)
raises(lambda: F.TARGET(torch.zeros([0, 2] + [3] * n), w), "IndexError", "out of range for tensor of size [0]")`),
	}
}))

// noBags reports offsets without elements, where bags are written to nevertheless.
func noBags(p *program.Program) bool {
	offsets := tensorArgument(p, 2, "offsets")
	return offsets != nil && empty(*offsets) && len(first(p).Shape) == 1 && (keyword(p, "padding_idx") != nil || keyword(p, "mode") == "max")
}

func empty(in program.Input) bool { return tensor.NumElements(in.Shape) == 0 }

// floating reports a tensor of a floating dtype.
func floating(in program.Input) bool { return in.DType.IsFloat() }

// orderless reports a tensor of booleans or complex numbers.
func orderless(in program.Input) bool { return in.DType == tensor.Bool || in.DType.IsComplex() }
