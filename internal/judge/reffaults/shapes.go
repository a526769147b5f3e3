package reffaults

import (
	"errors"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

var (
	raises = []verdict.Kind{verdict.Exception}
	values = []verdict.Kind{verdict.Kind(backend.PartValue)}
	grads  = []verdict.Kind{verdict.Kind(backend.PartGrad)}
)

// shapeFaults are the faults around shapes, indices, products and windows.
var shapeFaults = slices.Concat(untypedShapes, equals, unordered, leniencies, scalarSorts, emptyKinds, emptyGradients, emptyOddities, meanPools, unpools, nearestScales, idle, emptyGrads, integrals, unwritten, []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "masked_select",
	Kinds:     grads,
	When:      func(p *program.Program) bool { return len(p.Inputs) > 0 && first(p).Strides != nil },
	Reason:    "the gradient of masked_select is laid out in the order of memory, not of elements",
	Proof: "x = torch.arange(6.).reshape(3, 2).t().detach().requires_grad_(); m = torch.tensor([[True, False, True], [True, True, False]]); " +
		"torch.masked_select(x, m).backward(torch.tensor([1., 2, 3, 4])) gives x.grad = [[1, 0, 4], [2, 3, 0]], of x.contiguous() [[1, 0, 2], [3, 4, 0]]",
}, {
	Reference: "torch 1.13",
	Target:    "masked_scatter_",
	Kinds:     values,
	When: func(p *program.Program) bool {
		return len(p.Inputs) > 0 && permuted(first(p)) && slices.ContainsFunc(p.Calls, func(c program.Call) bool { return strings.HasSuffix(c.Target, ".masked_scatter_") })
	},
	Reason: "the elements of source are placed in the order of memory, not of elements",
	Proof: "x = torch.zeros(3, 2).t(); x.masked_scatter_(torch.ones(2, 3, dtype=torch.bool), torch.arange(1., 7)) is [[1, 3, 5], [2, 4, 6]], " +
		"of x.contiguous(), and of masked_scatter on x itself, [[1, 2, 3], [4, 5, 6]]",
}, {
	Reference: "torch 1.13",
	Target:    "baddbmm",
	Kinds:     values,
	When:      func(p *program.Program) bool { return len(p.Calls) == 1 && keyword(p, "beta") == int64(0) },
	Reason:    "with beta=0 the result is multiplied by 0 before it is written: NaN and infinities that happen to lie in fresh memory stay",
	Proof: "after x = torch.full((3, 4, 4), float('nan')); del x, torch.baddbmm(torch.tensor(1.), a, b, beta=0) of finite a [3, 4, 3] and b [3, 3, 4] " +
		"has NaN: 517 elements in 3000 calls in float32, 19466 in bfloat16",
}, {
	Reference: "torch 1.13",
	Target:    "conv2d",
	DType:     tensor.F64,
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return len(p.Inputs) > 1 && first(p).Strides != nil && p.Inputs[1].Strides != nil
	},
	Reason: "the weight gradient of a grouped convolution in float64, input and weight in channels-last, takes the gradient of one group for that of another",
	Proof: "x = torch.randn(4, 4, 4, dtype=torch.float64) with strides (1, 16, 4), w [2, 2, 2, 2] with strides (8, 1, 4, 2): the weight gradient of torch.nn.functional.conv2d(x, w, None, (1, 2), (2, 1), (1, 1), 2) " +
		"is not that of x.contiguous() and w.contiguous(); with either of them contiguous, or without groups, it is",
}, {
	Reference: "torch 1.13",
	Target:    "pixel_unshuffle",
	Kinds:     []verdict.Kind{verdict.Kind("shape")},
	When:      emptyInput,
	Reason:    "an input without elements is returned in its own shape",
	Proof:     "torch.nn.functional.pixel_unshuffle(torch.zeros(2, 2, 4, 0), 2).shape is [2, 2, 4, 0], not [2, 8, 2, 0]",
}, {
	Reference: "torch 1.13",
	Target:    "pad",
	Kinds:     raises,
	When:      wrapsNothing,
	Reason:    "a circular pad of nothing, all entries being cropped, gives fresh memory",
	Proof:     "torch.nn.functional.pad(torch.ones(1, 1, 2), (-3, 2), mode='circular') is a number that is none of the input's; (-1, 2) raises RuntimeError",
}, {
	Reference: "torch 1.13",
	Target:    "addmv",
	Kinds:     []verdict.Kind{verdict.Kind("shape")},
	When: func(p *program.Program) bool {
		return len(p.Inputs) > 1 && len(p.Inputs[1].Shape) == 2 && slices.Contains(p.Inputs[1].Shape, 0)
	},
	Reason: "a matrix without elements gives a result of the shape of input",
	Proof:  "torch.addmv(torch.zeros(1), torch.zeros(0, 1), torch.zeros(1)).shape is [1]; of torch.zeros(3, 4) and torch.zeros(()) it is [3]",
}, {
	Reference: "torch 1.13",
	Target:    "linspace",
	Kinds:     values,
	When: func(p *program.Program) bool {
		d, ok := keyword(p, "dtype").(tensor.DType)
		return ok && !d.IsDifferentiable()
	},
	Reason: "integers are the truncation of end - step*i by one fused multiplication and addition, which falls short of whole numbers",
	Proof:  "torch.linspace(-3., 1., 7, dtype=torch.int32)[3] is 0; the number is -1 exactly, and 1 - (4/6)*3 is -1 in float64",
}})

// viewed: kron lays its result out by view, which some layouts of the inputs
// do not allow.
var viewed = []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "kron",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Strides != nil })
	},
	Reason: "kron takes a view of a product in another memory order and raises",
	Proof:  "torch.kron(torch.ones(2, 3, 2).transpose(0, 2), torch.ones(3, 2, 2).transpose(0, 1)) raises RuntimeError: view size is not compatible with input tensor's size and stride",
}}

// untypedShapes are Python functions of PyTorch, and torch.tensor, which do not
// check the types of their arguments as a signature does.
var untypedShapes = each([]string{
	"embedding", "max_unpool1d", "max_unpool2d", "max_unpool3d", "interpolate", "upsample", "grid_sample", "affine_grid", "lp_pool1d", "lp_pool2d", "tensor",
}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return illegal(p) && unbound(p) },
		Reason:    "the function does not check the types of its arguments: whether it raises, and what, depends on how far it comes with them",
		Proof: "torch.nn.functional.grid_sample(x, grid, True) raises ValueError: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'True'; " +
			"torch.nn.functional.max_unpool1d(x, i, True) takes the kernel size 1; torch.tensor(torch.float32) raises RuntimeError: Could not infer dtype of torch.dtype",
	}
})

// equals are operators that name the position of one of equal elements, of
// which the documentation says that any may be named.
var equals = each([]string{"topk", "kthvalue"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return hasEqual(p) },
		Reason:    "which of equal elements is named is not defined",
		Proof:     "torch.zeros(4, dtype=torch.int32).topk(4) names 2 first; the documentation of kthvalue says that the index of any of them is returned",
	}
})

// unordered are sorts that do not promise the order of equal elements.
var unordered = each([]string{"argsort", "sort"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return !stable(p) && hasEqual(p) },
		Reason:    "which of equal elements comes first is not defined",
		Proof:     "the documentation of torch.sort promises the order of equal elements for stable=True only; argsort of 64 float16 numbers with ties gives another",
	}
})

// stable reports whether a call of the program asks for stable=True.
func stable(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.Contains(c.Kwargs, program.Kwarg{Name: "stable", Value: true})
	})
}

// idle are operators that ask for the dtype in a kernel, which a call with
// nothing to compute does not reach.
var idle = each([]string{
	"argmax", "argmin", "nansum", "median", "nanmedian", "mode", "logcumsumexp", "cummax", "cummin",
	"sort", "argsort", "msort", "topk", "kthvalue", "searchsorted", "bucketize", "cross", "det", "linalg_det",
	"solve", "cholesky", "multi_margin_loss", "multilabel_margin_loss", "cov", "corrcoef",
}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return nothingToDo(p) && refusesDType(p) },
		Reason:    "the dtype is asked for by a kernel that a tensor without elements, a scalar, or rows of one element do not reach, or after the dimension",
		Proof: "torch.median(torch.zeros(0, dtype=torch.bool)), torch.cummax(torch.tensor(1j), 0), torch.cholesky(torch.zeros(0, 0, dtype=torch.int8)) and torch.det(torch.zeros(0, 0).half()) are accepted; " +
			"of two elements, or a matrix of one, they raise RuntimeError: not implemented for that dtype",
	}
})

// nothingToDo reports an input without elements, of no dimensions, or with
// rows of one element.
func nothingToDo(p *program.Program) bool {
	if len(p.Inputs) == 0 {
		return false
	}
	shape := first(p).Shape
	return len(shape) == 0 || slices.Contains(shape, 0) || slices.Contains(shape, 1)
}

// refusesDType reports a first call that Plumb refuses for a dtype.
func refusesDType(p *program.Program) bool {
	inputs := map[program.Ref]any{}
	for i := range p.Inputs {
		s := p.Inputs[i].Symbol()
		inputs[s.Ref] = s
	}
	args, kwargs, err := p.Calls[0].OpArgs(func(r program.Ref) (any, error) { return inputs[r], nil })
	if err != nil {
		return false
	}
	call, err := program.Resolve(ops.Table(), p.Calls[0].Target, args, kwargs)
	if err == nil {
		_, err = call.Infer()
	}
	return err != nil && strings.Contains(err.Error(), "not implemented for")
}

// emptyGrads are gradients of tensors without elements.
var emptyGrads = slices.Concat(each([]string{"det", "linalg.det"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind("structure")},
		When:      emptyInput,
		Reason:    "a tensor without elements is left without a gradient",
		Proof:     "x = torch.zeros(0, 5, 5, requires_grad=True); torch.det(x).sum().backward() leaves x.grad None; torch.inverse(x).sum().backward() makes it empty",
	}
}), []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "group_norm",
	Kinds:     grads,
	When:      emptyInput,
	Reason:    "the gradient of weight, a sum of no terms, is NaN",
	Proof:     "w = torch.ones(6, requires_grad=True); torch.group_norm(torch.zeros(2, 6, 0, 3), 2, w).sum().backward() makes w.grad NaN; the gradient of bias is 0",
}, {
	Reference: "torch 1.13",
	Target:    "block_diag",
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return len(in.Shape) == 1 && in.Shape[0] == 0 })
	},
	Reason: "the gradient passes over the row that a vector without elements makes, and so takes the wrong rows for those behind it",
	Proof: "x = torch.ones(1, 2, requires_grad=True); torch.block_diag(torch.zeros(0, requires_grad=True), x).backward(torch.tensor([[1., 2], [3, 4]])) gives [[1, 2]]; " +
		"the result's second row is x",
}, {
	Reference: "torch 1.13",
	Target:    "nanquantile",
	Kinds:     grads,
	When:      func(p *program.Program) bool { return hasEqual(p) },
	Reason:    "which of equal elements has the gradient is not defined",
	Proof:     "nanquantile sorts, and the documentation of torch.sort promises the order of equal elements for stable=True only",
}, {
	Reference: "torch 1.13",
	Target:    "mean",
	Kinds:     values,
	When: func(p *program.Program) bool {
		in := first(p)
		return in.DType == tensor.F16 && tensor.NumElements(in.Shape) >= 65520
	},
	Reason: "the sum is divided by the number of elements in float16, which is infinite from 65520 on",
	Proof:  "torch.full((65536,), 2.0**-12, dtype=torch.half).mean() is 0, and that of 65504 such numbers is 2.4414e-04",
}})

// integrals are those of no places.
var integrals = each([]string{"trapezoid", "trapz"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind("requires_grad"), verdict.Kind("structure")},
		When:      emptyInput,
		Reason:    "the integral over no places is zeros made anew, without a gradient",
		Proof: "torch.trapezoid(torch.zeros(0, requires_grad=True), dim=0).requires_grad is False; " +
			"of cumulative_trapezoid, and of torch.sum, it is True",
	}
})

// unwritten are losses that leave the sum over no samples as they found it.
var unwritten = each([]string{"multi_margin_loss", "multilabel_margin_loss"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     values,
		When:      emptyInput,
		Reason:    "of no samples nothing is written into the result, which is what lay in fresh memory",
		Proof: "torch.nn.functional.multi_margin_loss(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)) is 1.3200590842643578e-08, then 1.325351206560299e-08; " +
			"with reduction='sum' multilabel_margin_loss(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.int64)) is 8.967110609603424e-09, then -2.0937297879921717e-18",
	}
})

func emptyInput(p *program.Program) bool {
	return len(p.Inputs) > 0 && slices.Contains(first(p).Shape, 0)
}

// leniencies are calls that PyTorch 1.13 accepts by oversight.
var leniencies = []verdict.KnownFault{
	lenientIf("index_add", misfitSource, "shapes of source are compared slice by slice, by broadcasting, and not at all for an empty index",
		"torch.index_add(torch.zeros(2, 1, 3), 1, torch.tensor([0]), torch.ones(1, 1)) is accepted; PyTorch 2 raises RuntimeError: source tensor shape must match self tensor shape"),
	lenientIf("index_reduce", misfitSource, "shapes of source are compared slice by slice, by broadcasting, and not at all for an empty index",
		"torch.index_reduce(torch.zeros(1, 4), 0, torch.zeros(0, dtype=torch.int64), torch.zeros(0), 'amin') is accepted"),
	lenientIf("conv1d", otherBias, "the kernels outside of oneDNN convert a bias of another dtype",
		"torch.nn.functional.conv1d(torch.ones(1, 2), torch.ones(1, 1, 1), torch.tensor([3])) is [[4., 4.]]; torch.ones(4, 2, 9) and torch.ones(3, 2, 3) refuse torch.tensor([3, 2, 1])"),
	lenientIf("conv2d", otherBias, "the kernels outside of oneDNN convert a bias of another dtype", "as of conv1d"),
	lenientIf("conv3d", otherBias, "the kernels outside of oneDNN convert a bias of another dtype", "as of conv1d"),
	lenient("max_pool1d", "a kernel that is longer than the image by one gives a result without elements",
		"torch.nn.functional.max_pool1d(torch.ones(4, 2, 1), 2) has shape [4, 2, 0]; with requires_grad it raises RuntimeError: Output size is too small"),
	{
		Reference: "torch", Target: "linalg.vecdot", Kinds: raises,
		When: func(p *program.Program) bool {
			d, ok := keyword(p, "dim").(int64)
			return ok && len(first(p).Shape) == 1 && (d < -1 || d > 0)
		},
		Reason: "of two vectors dim is not looked at",
		Proof:  "torch.linalg.vecdot(torch.ones(1), torch.ones(1), dim=1) is 1; of torch.ones(1, 1) dim=2 raises IndexError",
	},
	lenientIf("masked_scatter", otherMask, "masks of any dtype are accepted, and their memory is read as booleans",
		"torch.zeros(4).masked_scatter(torch.tensor([1., 0, 1, 0]), torch.arange(1., 9)) is all zeros; of torch.tensor([1, 0, 256, 0], dtype=torch.int32) the 256 does not count"),
	{
		Reference: "torch 1.13", Target: "scatter_reduce", Kinds: raises, When: complexInput,
		Reason: "sums, products and means of complex numbers are accepted, but have no gradient; extremes are refused where there are elements",
		Proof: "x = torch.ones(3, dtype=torch.complex64); torch.scatter_reduce(x, 0, torch.tensor([0]), x, 'sum') is accepted, 'amin' raises RuntimeError: not implemented for 'ComplexFloat'; " +
			"with requires_grad 'sum' raises RuntimeError: scatter_reduce does not support automatic differentiation for outputs with complex dtype",
	},
	{
		Reference: "torch 1.13", Target: "index_reduce", Kinds: raises, When: complexInput,
		Reason: "complex matrices are accepted, slice by slice, and complex vectors refused",
		Proof: "torch.index_reduce(x, 0, torch.tensor([0]), x[:1], 'prod') is accepted for x = torch.ones(3, 2, dtype=torch.complex64); " +
			"of torch.ones(3, dtype=torch.complex64) it raises RuntimeError: \"index_func_\" not implemented for 'ComplexFloat'",
	},
	{
		Reference: "torch 1.13", Target: "linspace", Kinds: raises,
		When: func(p *program.Program) bool {
			return keyword(p, "dtype") == tensor.Bool && argument(p, 2, "steps") == int64(1)
		},
		Reason: "one step is filled in, whatever the dtype",
		Proof:  "torch.linspace(-3., -2., 1, dtype=torch.bool) is [True]; with 2 steps it raises RuntimeError: \"linspace_cpu\" not implemented for 'Bool'",
	},
	lenientIf("index_select", selectsNothing, "an empty index of a scalar gives a scalar of fresh memory",
		"torch.index_select(torch.tensor(1.), -1, torch.zeros(0, dtype=torch.int64)) returns a number that is none of the input's"),
}

// misfitSource reports a source whose shape is not the input's but in dim.
func misfitSource(p *program.Program) bool {
	if len(p.Inputs) < 3 {
		return false
	}
	dim := indexedDim(p)
	x, src := first(p).Shape, p.Inputs[2].Shape
	if dim < 0 {
		dim += int64(len(x))
	}
	if len(x) != len(src) {
		return true
	}
	for d := range x {
		if x[d] != src[d] && int64(d) != dim {
			return true
		}
	}
	return false
}

// indexedDim returns the argument dim of the first call that has one.
func indexedDim(p *program.Program) int64 {
	for _, c := range p.Calls {
		if len(c.Args) > 1 {
			if d, ok := c.Args[1].(int64); ok {
				return d
			}
		}
		for _, k := range c.Kwargs {
			if d, ok := k.Value.(int64); ok && k.Name == "dim" {
				return d
			}
		}
	}
	return 0
}

func otherBias(p *program.Program) bool {
	return len(p.Inputs) > 2 && p.Inputs[2].DType != first(p).DType
}

func otherMask(p *program.Program) bool {
	return len(p.Inputs) > 1 && p.Inputs[1].DType != tensor.Bool
}

func selectsNothing(p *program.Program) bool {
	return len(p.Inputs) > 1 && len(first(p).Shape) == 0 && tensor.NumElements(p.Inputs[1].Shape) == 0
}

// scalarSorts sort nothing of one element, and so take any dtype of it.
var scalarSorts = each([]string{"sort", "argsort", "msort", "topk", "kthvalue"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return len(p.Inputs) > 0 && (illegal(p) || orderless(first(p))) && tensor.NumElements(first(p).Shape) <= 1
		},
		Reason: "one element is returned as it is, whatever its dtype; more of them raise",
		Proof:  "torch.tensor(1j).sort() is accepted, torch.tensor([1j, 2j]).sort() raises RuntimeError: \"sorting_kernel_method_name\" not implemented for 'ComplexFloat'",
	}
})

// meanPools are computed by mean where the result is one element a plane.
var meanPools = each([]string{"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return illegal(p) && allOnes(p) && meanOnly(first(p), int(target[len(target)-2]-'0'))
		},
		Reason: "an output of one element is computed by mean, which also takes complex numbers, empty images and any number of dimensions",
		Proof: "torch.nn.functional.adaptive_avg_pool1d(torch.zeros(2, 2, dtype=torch.complex64), n) is accepted for n = 1, and raises for n = 2 RuntimeError: \"adaptive_avg_pool2d\" not implemented for 'ComplexFloat'; " +
			"of torch.zeros(2, 2, 2, 0) adaptive_avg_pool2d is NaN for (1, 1) and raises for (2, 2)",
	}
})

// unpools are the gradients of max_unpool.
var unpools = each([]string{"max_unpool2d", "max_unpool3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Strides != nil })
		},
		Reason: "the gradient of max_unpool views the indices as planes, which their strides do not allow",
		Proof: "indices = torch.zeros(2, 3, 2, dtype=torch.int64).permute(0, 2, 1): torch.nn.functional.max_unpool2d(x, indices, 1).sum().backward() raises " +
			"RuntimeError: view size is not compatible with input tensor's size and stride; of indices.contiguous() it does not",
	}
})

// nearestScales are upsample and interpolate, by neighbours or cubics, by a factor
// that leaves or doubles a size though it is neither 1 nor 2.
var nearestScales = each([]string{"interpolate", "upsample", "UpsamplingNearest2d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     slices.Concat(values, grads),
		When:      scaledOdd,
		Reason: "the gradient, and the result in the memory format channels-last, ignore a scale_factor where it leaves or doubles a size: " +
			"they do not agree with the result of contiguous images",
		Proof: "x = torch.arange(3.).reshape(1, 1, 3, 1).repeat(1, 2, 1, 2).requires_grad_(): y = torch.nn.functional.interpolate(x, scale_factor=(1.25, 1.)) has y[0, 0, :, 0] = [0, 0, 1]; " +
			"the gradient of y[0, 0, 2, 0] lies at [0, 0, 2, 0], and of x in channels-last the same is [0, 1, 2] (1.13); of x of shape [1, 1, 2] and scale_factor=1.13 y is [x0, x0], its gradient [1, 1], and in mode bicubic likewise (1.13 and 2.15)",
	}
})

// scaledOdd reports a scale factor that leaves or doubles a size, but is not 1 or 2.
func scaledOdd(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		at := 2 // after input and size, which a module is not made with
		if program.IsModule(c.Target) {
			at = 1
		}
		mode, given := argumentOf(&c, at+1, "mode").(string)
		return (!given || mode == "nearest" || mode == "bicubic") && oddScales(argumentOf(&c, at, "scale_factor"), first(p).Shape)
	})
}

// oddScales reports a factor, or one for each dimension but the first two, by
// which a size stays or doubles though it is neither 1 nor 2.
func oddScales(factors any, shape []int) bool {
	scales, several := factors.(program.Tuple)
	for i, n := range shape[min(2, len(shape)):] {
		factor, _ := factors.(float64)
		if several && i < len(scales) {
			factor, _ = scales[i].(float64)
		}
		if size := int(factor * float64(n)); size == n && factor != 1 || size == 2*n && factor != 2 {
			return true
		}
	}
	return false
}

// wrapsNothing reports a circular pad that takes all entries of a dimension
// and adds some.
func wrapsNothing(p *program.Program) bool {
	pad, ok := argument(p, 1, "pad").(program.Tuple)
	shape := first(p).Shape
	if mode, _ := argument(p, 2, "mode").(string); !ok || mode != "circular" {
		return false
	}
	for i := 0; i+1 < len(pad) && i/2 < len(shape); i += 2 {
		low, _ := pad[i].(int64)
		high, _ := pad[i+1].(int64)
		if kept := int64(shape[len(shape)-1-i/2]) + min(low, 0) + min(high, 0); kept <= 0 && max(low, high) > 0 {
			return true
		}
	}
	return false
}

// allOnes reports a size argument of ones.
func allOnes(p *program.Program) bool {
	size, ok := argument(p, 1, "output_size").(program.Tuple)
	if argument(p, 1, "output_size") == int64(1) {
		return true
	}
	return ok && !slices.ContainsFunc(size, func(v any) bool { return v != int64(1) })
}

// meanOnly reports a tensor that has a mean, but is no batch of real images of
// n dimensions.
func meanOnly(in program.Input, n int) bool {
	extra := len(in.Shape) - n
	return in.DType.IsComplex() || extra < 1 || extra > 2 || slices.Contains(in.Shape[extra:], 0)
}

// argument returns an argument of the first call; nil when it is not given.
func argument(p *program.Program, at int, name string) any { return argumentOf(&p.Calls[0], at, name) }

func argumentOf(c *program.Call, at int, name string) any {
	if at < len(c.Args) {
		return c.Args[at]
	}
	for _, kw := range c.Kwargs {
		if kw.Name == name {
			return kw.Value
		}
	}
	return nil
}

func lenient(target, reason, proof string) verdict.KnownFault {
	return verdict.KnownFault{Reference: "torch 1.13", Target: target, Kinds: raises, When: illegal, Reason: reason, Proof: proof}
}

// illegal reports a call that was drawn to break a rule.
func illegal(p *program.Program) bool { return strings.HasSuffix(p.Name, "[illegal]") }

// unbound reports a call that no signature accepts.
func unbound(p *program.Program) bool {
	symbols := map[program.Ref]*program.Symbol{}
	for i := range p.Inputs {
		s := p.Inputs[i].Symbol()
		symbols[s.Ref] = s
	}
	c := p.Calls[0]
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) { return symbols[r], nil })
	if err != nil {
		return false
	}
	_, err = program.Resolve(ops.Table(), c.Target, args, kwargs)
	var refused *op.Error
	return errors.As(err, &refused)
}

// keyword returns a keyword argument of the first call; nil when it is not given.
func keyword(p *program.Program, name string) any {
	return argumentOf(&p.Calls[0], len(p.Calls[0].Args), name)
}

// permuted reports an input whose memory is in another order than its elements.
func permuted(in program.Input) bool {
	last := -1
	for i, n := range in.Shape {
		if in.Strides == nil || n < 2 {
			continue
		}
		if last >= 0 && in.Strides[i] > in.Strides[last] {
			return true
		}
		last = i
	}
	return false
}

// first returns the program's first input; one of no dtype where there is none.
func first(p *program.Program) program.Input {
	if len(p.Inputs) == 0 {
		return program.Input{}
	}
	return p.Inputs[0]
}

// hasEqual reports whether the first input has an element twice.
func hasEqual(p *program.Program) bool {
	in := first(p)
	if in.DType == tensor.Invalid {
		return false
	}
	t := in.Materialize()
	seen := map[complex128]bool{}
	for i := range t.Len() {
		if v := t.At(i); seen[v] {
			return true
		} else {
			seen[v] = true
		}
	}
	return false
}
