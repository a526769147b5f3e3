package reffaults

import (
	"slices"

	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// emptyKinds are operators whose kernels ask for the dtype only once there is
// an element to compute.
var emptyKinds = each([]string{
	"median", "nanmedian", "cholesky", "searchsorted", "bucketize", "addmm", "addmv", "addbmm", "baddbmm",
	"adaptive_avg_pool1d", "adaptive_avg_pool2d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "interpolate", "upsample",
	"instance_norm", "multi_margin_loss", "multilabel_margin_loss", "trapezoid", "trapz",
}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, empty) && !slices.ContainsFunc(p.Inputs, floating)
		},
		Reason: "of tensors without elements any dtype is accepted, though there is no kernel for it",
		Proof: "torch.median(torch.zeros(0, dtype=torch.int32)) is a number, of the NaN that int32 has not; torch.cholesky(torch.zeros(0, 4, 4, dtype=torch.bool)) is accepted, " +
			"of torch.zeros(1, 4, 4, dtype=torch.bool) it raises; so do torch.trapz(torch.zeros(1, dtype=torch.bool)) and torch.nn.functional.max_unpool1d of int32 with elements, and not without",
	}
})

// emptyGradients are gradients of tensors without channels.
var emptyGradients = slices.Concat(each([]string{"adaptive_avg_pool1d", "adaptive_avg_pool2d", "interpolate", "upsample"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return len(p.Backward) > 0 && empty(first(p)) },
		Reason:    "the gradient of adaptive_avg_pool refuses images without channels, which the function accepts",
		Proof: "x = torch.zeros(2, 0, 5, 4, requires_grad=True): torch.nn.functional.adaptive_avg_pool2d(x, (4, 5)).sum().backward() raises RuntimeError: " +
			"adaptive_avg_pool2d_backward(): Expected grad_output to have non-zero size for non-batch dimensions",
	}
}), []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "pixel_shuffle",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return len(p.Backward) > 0 && empty(first(p)) },
	Reason:    "the gradient of an input without elements is returned in the shape of the result, and refused",
	Proof: "x = torch.zeros(0, 2, 2, requires_grad=True): torch.nn.functional.pixel_shuffle(x, 3).sum().backward() raises RuntimeError: " +
		"Function PixelShuffleBackward0 returned an invalid gradient at index 0 - got [0, 6, 6] but expected shape compatible with [0, 2, 2]",
}}, each([]string{"cummax", "cummin"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return len(p.Backward) > 0 && len(first(p).Shape) == 0 },
		Reason:    "of a scalar any dim is accepted, and refused by the gradient",
		Proof: "x = torch.tensor(1., requires_grad=True): torch.cummax(x, 2) is accepted, torch.cummax(x, 2)[0].backward() raises IndexError: " +
			"Dimension out of range (expected to be in range of [-1, 0], but got 2)",
	}
}))

// emptyOddities are calls with sizes of 0 or 1, or too many dimensions, that
// the reference accepts or refuses by oversight.
var emptyOddities = slices.Concat([]verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "embedding_bag",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return len(p.Inputs) > 1 && len(p.Inputs[1].Shape) > 2 },
	Reason:    "a weight of more than 2 dimensions is accepted, and read as if it had 2, at the index 0 of the others",
	Proof:     "torch.nn.functional.embedding_bag(torch.tensor([1]), torch.arange(12.).reshape(3, 2, 2), torch.tensor([0])) is [[4, 6]]; of torch.zeros(3) it raises IndexError",
}, {
	Reference: "torch 1.13",
	Target:    "bilinear",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return len(in.Shape) > 0 && in.Shape[len(in.Shape)-1] == 0 })
	},
	Reason: "an input without features is reshaped to [-1, 0], which is ambiguous",
	Proof: "torch.nn.functional.bilinear(torch.zeros(2, 0), torch.zeros(2, 3), torch.zeros(1, 0, 3)) raises RuntimeError: " +
		"cannot reshape tensor of 0 elements into shape [-1, 0]; of torch.zeros(2, 1) and a weight of torch.zeros(1, 1, 3) it is zeros",
}}, each([]string{"argmin", "argmax"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			shape := first(p).Shape
			return orderless(first(p)) && (len(shape) == 0 || slices.Min(shape) <= 1)
		},
		Reason: "rows of one element are answered 0 whatever their dtype, and tensors without elements are not looked at",
		Proof:  "torch.argmin(torch.zeros(4, 1, 3, dtype=torch.bool), 1) is all 0; of torch.zeros(4, 2, 3, dtype=torch.bool) it raises RuntimeError: \"argmin_cpu\" not implemented for 'Bool'",
	}
}), each([]string{"linspace", "logspace"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return keyword(p, "dtype") == tensor.Bool },
		Reason:    "up to one step is computed by fill, which takes booleans",
		Proof:     "torch.linspace(-3., -2., 1, dtype=torch.bool) is [True]; of 2 steps it raises RuntimeError: \"linspace_cpu\" not implemented for 'Bool'",
	}
}), each([]string{"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return len(p.Inputs) > 1 && empty(first(p)) && empty(p.Inputs[1])
		},
		Reason: "of an empty batch the first element of the weight is read before its sizes are checked",
		Proof: "torch.nn.functional.conv3d(torch.zeros(0, 2, 3, 2, 3), torch.zeros(4, 2, 0, 2, 3), None, 1, (1, 1, 0)) raises IndexError: select(): index 0 out of range for tensor of size [0]; " +
			"of torch.zeros(1, 2, 3, 2, 3) it raises RuntimeError",
	}
}))

func empty(in program.Input) bool { return tensor.NumElements(in.Shape) == 0 }

// floating reports a tensor of a floating dtype.
func floating(in program.Input) bool { return in.DType.IsFloat() }

// orderless reports a tensor of booleans or complex numbers.
func orderless(in program.Input) bool { return in.DType == tensor.Bool || in.DType.IsComplex() }
