package reffaults

import (
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// edgeFaults are the faults at infinities, NaN and overflow, and in memory
// that is not contiguous.
var edgeFaults = slices.Concat(fixedViews, expandedMedians, outOfWidth, noInverse, skippedPadding, ctcTargets, hugeSquares, nanSlopes, inversePoles, mixedBranches, infiniteMeans, singleVariances, steppedWeights, nanSigns, []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "logcumsumexp",
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return anyElement(p, 0, func(v float64) bool { return math.Abs(v) > 1e6 })
	},
	Reason: "the gradient is exp of a sum of the logarithm of the incoming one and two elements, in which large elements leave nothing of it",
	Proof:  "x = torch.tensor([3e38], requires_grad=True); torch.logcumsumexp(x, 0).backward(torch.tensor([0.25])) gives x.grad = 1; the function is the identity",
}, {
	Reference: "torch",
	Target:    "polygamma",
	Kinds:     values,
	Rule:      compare.NonFinite,
	When: func(p *program.Program) bool {
		return hasOrder(p, 1) && anyElement(p, 0, func(v float64) bool { return v < 0 && v == math.Trunc(v) })
	},
	Shows:  func(v complex128) bool { return !undefined(v) },
	Reason: "at its poles below 0 the function is (π/sin πx)² with a sine that rounding keeps from 0",
	Proof:  "torch.polygamma(1, torch.tensor([0., -1., -2.])) is [inf, 1.29e15, 3.2e14], in float64 [inf, 6.6e32, 1.6e32]",
}, {
	Reference: "torch",
	Target:    "cdist",
	Kinds:     values,
	Rule:      compare.NonFinite,
	When: func(p *program.Program) bool {
		isNaN := func(v float64) bool { return math.IsNaN(v) }
		return infiniteOrder(p) && (anyElement(p, 0, isNaN) || anyElement(p, 1, isNaN) || bothInfinite(p))
	},
	Shows:  func(v complex128) bool { return !cmplx.IsNaN(v) },
	Reason: "the largest difference leaves NaN out, where pdist and the distances of other orders do not",
	Proof:  "n = float('nan'): torch.cdist(torch.tensor([[0., 1.]]), torch.tensor([[n, 1.5]]), float('inf')) is 0.5; torch.pdist(torch.tensor([[0., 1.], [n, 1.5]]), float('inf')) is NaN",
}, {
	Reference: "torch",
	Target:    "cholesky_solve",
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return len(p.Inputs) > 1 && p.Inputs[1].RequiresGrad && p.Inputs[1].Shape[len(p.Inputs[1].Shape)-1] > 1
	},
	Reason: "the gradient by the elements of input2 beyond its triangle, which are not read, is not 0",
	Proof:  "l = torch.tensor([[1., 0.], [1., 1.]], requires_grad=True); torch.cholesky_solve(torch.ones(2, 1), l).sum().backward() gives l.grad[0, 1] = 1; the result is the same for any l[0, 1]",
}, {
	Reference: "torch 1.13",
	Target:    "embedding_bag",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		weights, ok := keyword(p, "per_sample_weights").(program.Ref)
		return ok && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(weights) && in.RequiresGrad }) &&
			!slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Name != string(weights) && in.RequiresGrad })
	},
	Reason: "with weights of the samples that require a gradient and a table that does not, an assertion of autograd fails",
	Proof: "torch.nn.functional.embedding_bag(torch.tensor([0, 0]), torch.zeros(1, 1), torch.tensor([0]), mode='sum', per_sample_weights=torch.zeros(2, requires_grad=True)) " +
		"raises RuntimeError: isDifferentiableType(variable.scalar_type()) INTERNAL ASSERT FAILED … please report a bug to PyTorch",
}, {
	Reference: "torch",
	Target:    "binary_cross_entropy",
	Kinds:     grads,
	Shows:     undefined,
	When: func(p *program.Program) bool {
		return anyElement(p, 0, func(v float64) bool { return v == 0 || v == 1 })
	},
	Reason: "the loss has logarithms of at least -100, as documented, so that its gradient with respect to the target is at most 100; it is infinite where the input is 0 or 1",
	Proof: "t = torch.tensor([0., 1.], requires_grad=True); torch.nn.functional.binary_cross_entropy(torch.tensor([0., 1.]), t, reduction='sum').backward() gives t.grad = [inf, -inf]; " +
		"the loss at t = [1e-3, 1.] is 0.1 more, at [0., 1 - 1e-3] too",
}, {
	Reference: "torch",
	Target:    "soft_margin_loss",
	Kinds:     slices.Concat(values, grads),
	Shows:     undefined,
	When: func(p *program.Program) bool {
		return len(p.Inputs) < 2 || largest(&p.Inputs[0])*largest(&p.Inputs[1]) > 80
	},
	Reason: "exp(-target·input) overflows: the loss is infinite where it is -target·input, its gradient NaN where it is -target",
	Proof: "x = torch.tensor(-100., requires_grad=True); torch.nn.functional.soft_margin_loss(x, torch.tensor(1.)) is inf and x.grad NaN; " +
		"in float64 they are 100 and -1",
}})

// fixedViews are operators that raise for some layouts of their arguments.
var fixedViews = []verdict.KnownFault{{
	Reference: "torch",
	Target:    "isin",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, strided) },
	Reason:    "isin takes a view of few test elements as a vector, which their strides may not allow, and sorts many",
	Proof: "torch.isin(torch.arange(3), torch.arange(4).reshape(2, 2).t()) raises RuntimeError: view size is not compatible with input tensor's size and stride; " +
		"of torch.arange(200).reshape(2, 100).t() it does not",
}, {
	Reference: "torch 1.13",
	Target:    "pixel_shuffle",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, strided) },
	Reason:    "the kernel refuses images of more than one batch dimension whose strides look like channels-last",
	Proof:     "as of pixel_unshuffle",
}, {
	Reference: "torch 1.13",
	Target:    "pixel_unshuffle",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, strided) },
	Reason:    "the kernel refuses images of more than one batch dimension whose strides look like channels-last",
	Proof: "x = torch.zeros(2, 4, 4, 4, 4): torch.nn.functional.pixel_unshuffle(x.contiguous(memory_format=torch.channels_last_3d), 2) " +
		"raises RuntimeError: Unsupported memory format. Supports only ChannelsLast, Contiguous; of x it does not",
}}

// expandedMedians are medians along a dimension of stride 0.
var expandedMedians = each([]string{"median", "nanmedian"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, repeated) || expands(p) },
		Reason:    "the kernel reads the rows of an expanded tensor from memory beside it",
		Proof: "x = torch.tensor([8, 5]).as_strided((2, 1), (0, 1)) is [[8], [8]], and x.median(0) gives 5, at index 1; x.contiguous().median(0) gives 8; " +
			"torch.tensor([[8., 5.]]).expand(3, 2).median(0) gives 5 and a number from fresh memory",
	}
})

// outOfWidth are shifts by a negative number of bits, or by all of them.
var outOfWidth = each([]string{
	"bitwise_left_shift", "bitwise_right_shift", "lshift", "rshift", "ilshift", "irshift",
}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     values,
		When:      shiftsTooFar,
		Reason:    "a shift by less than 0 or by all the bits is C++'s, undefined: the processor takes the number modulo the width",
		Proof:     "torch.tensor(5) << torch.tensor(-63) is 10, torch.tensor(1) << torch.tensor(64) is 1 and torch.tensor(-8) >> torch.tensor(64) is -8",
	}
})

// shiftsTooFar looks at the number of bits, the second operand; at every input of
// a program of several calls, which may compute it.
func shiftsTooFar(p *program.Program) bool {
	amounts := p.Inputs
	if len(p.Calls) == 1 {
		amounts = slices.DeleteFunc(slices.Clone(amounts), func(in program.Input) bool { return !isOperand(&p.Calls[0], 1, "other", in.Name) })
	}
	return slices.ContainsFunc(amounts, func(in program.Input) bool {
		return !in.DType.IsDifferentiable() && hasElement(&in, beyondWidth(in.DType))
	})
}

// isOperand says whether an argument, by its position or keyword, is an input.
func isOperand(c *program.Call, at int, keyword, input string) bool {
	if at < len(c.Args) {
		return c.Args[at] == any(program.Ref(input))
	}
	return slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool { return kw.Name == keyword && kw.Value == any(program.Ref(input)) })
}

// noInverse are functions of matrices that are solved by elimination.
var noInverse = each([]string{"inverse", "inv", "matrix_power", "solve", "det", "slogdet", "logdet"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     slices.Concat(values, grads),
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
				return hasElement(&in, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) })
			})
		},
		Reason: "elimination with an infinity or a NaN: which elements of the result, or pivots, are NaN depends on the products with 0 that BLAS skips",
		Proof: "a = torch.tensor([[1., float('inf')], [1., 0.]]): torch.linalg.inv(a) is [[0, 1], [0, 0]], which times a has NaN; " +
			"the factors [[1, inf], [1, -inf]] of torch.linalg.lu_factor give inf·0 = NaN in its first row",
	}
})

// hugeSquares are normalisations of numbers whose squares overflow.
var hugeSquares = each([]string{
	"group_norm", "layer_norm", "instance_norm", "batch_norm",
	"InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     slices.Concat(values, grads, []verdict.Kind{verdict.Kind(backend.PartParamGrad)}),
		Shows:     func(v complex128) bool { return undefined(v) || v == 0 },
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
				return in.DType.IsFloat() && hasElement(&in, func(v float64) bool { return math.Abs(v) > squareOverflows(in.DType) && !math.IsInf(v, 0) })
			})
		},
		Reason: "the variance overflows its dtype: results and gradients are NaN or 0",
		Proof: "x = torch.tensor([[[0., 1e25, 0., 0.]]]): of group_norm(x, 1) and layer_norm(x, (4,)) all elements are NaN, of instance_norm(x) and batch_norm(x, None, None, training=True) 0; " +
			"in float64 they are [-0.577, 1.732, -0.577, -0.577]",
	}
})

// nanSlopes are activations by pieces whose gradient at NaN, and at a bound,
// depends on the length of the tensor.
var nanSlopes = each([]string{"relu6", "hardtanh", "hardshrink", "softshrink", "elu", "celu", "selu", "hardswish"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
				return hasElement(&in, func(v float64) bool { return math.IsNaN(v) || target == "hardswish" && math.Abs(v) == 3 })
			})
		},
		Reason: "the vectorised kernel and the plain one that completes it disagree about the gradient at NaN, and of hardswish at 3",
		Proof: "x = torch.tensor([float('nan'), 3.]).repeat_interleave(n).requires_grad_(): the gradient at NaN of elu, celu and hardswish is 1 for n = 1 and NaN for n = 20, " +
			"of relu6, hardtanh and the shrinks 1 and 0; that of hardswish at 3 is 1.5 and 1",
	}
})

// inversePoles are functions near their poles.
var inversePoles = slices.Concat(each([]string{"digamma", "psi"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			return anyElement(p, 0, func(v float64) bool { return v < 0 && v == math.Trunc(v) })
		},
		Shows:  func(v complex128) bool { return !undefined(v) },
		Reason: "the gradient is trigamma, which at its poles below 0 is (π/sin πx)² with a sine that rounding keeps from 0",
		Proof:  "x = torch.tensor([-1., -2.], requires_grad=True); torch.digamma(x).sum().backward() gives x.grad = [1.29e15, 3.2e14], in float64 [6.6e32, 1.6e32]",
	}
}), []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "erfinv",
	DType:     tensor.F64,
	Kinds:     slices.Concat(values, grads),
	When: func(p *program.Program) bool {
		return anyElement(p, 0, func(v float64) bool { return math.Abs(v) > 0.99 && math.Abs(v) < 1 })
	},
	Reason: "towards ±1 the float64 inverse loses digits: its Newton steps divide by a slope that underflows to few of them",
	Proof: "torch.erfinv(1 - 2. ** -torch.tensor([10, 20, 30, 53], dtype=torch.float64)) is [2.33146777362194, 3.46550502580, 4.328028270, 5.8639], " +
		"mpmath.erfinv of the same numbers at 40 digits [2.33146777362195, 3.46550502580, 4.328028276, 5.8636]: up to 5.6e11 units of roundoff off",
}})

// mixedBranches is where of a complex and a real branch.
var mixedBranches = each([]string{"where"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			complexInput := func(in program.Input) bool { return in.DType.IsComplex() }
			realInput := func(in program.Input) bool { return in.DType.IsFloat() && in.RequiresGrad }
			return len(p.Backward) > 0 && slices.ContainsFunc(p.Inputs, complexInput) && slices.ContainsFunc(p.Inputs, realInput)
		},
		Reason: "the gradient of the real branch stays complex, which autograd refuses",
		Proof: "x = torch.ones(2, requires_grad=True); z = torch.where(torch.tensor([True, False]), x, torch.ones(2, dtype=torch.complex64)); z.backward(torch.ones_like(z)) " +
			"raises RuntimeError: Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true; x * torch.ones(2, dtype=torch.complex64) has a real gradient",
	}
})

// infiniteMeans are the means beside variances.
var infiniteMeans = each([]string{"var_mean", "std_mean"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		Shows:     cmplx.IsNaN,
		When: func(p *program.Program) bool {
			return anyElement(p, 0, func(v float64) bool { return math.IsInf(v, 0) })
		},
		Reason: "the running mean of Welford's method, once infinite, is NaN at the next element",
		Proof:  "torch.var_mean(torch.tensor([-float('inf'), 1., 2.]))[1] is NaN, torch.mean of the same -inf",
	}
})

// singleVariances are those of all elements, of which there are no more than
// the correction.
var singleVariances = each([]string{"var", "std", "var_mean", "std_mean"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     slices.Concat(raises, grads),
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
				correction, all := ofAll(&c)
				return strings.HasSuffix(c.Target, "."+target) && all && int64(tensor.NumElements(first(p).Shape)) <= correction
			})
		},
		Reason: "without degrees of freedom the gradient is that of the result times infinity: its shape is the result's, and at the mean, where 2(x - mean)/0 is NaN, it is infinite",
		Proof: "x = torch.ones(1, requires_grad=True); torch.var(x).backward() raises RuntimeError: Function VarBackward0 returned an invalid gradient at index 0 - got [] but expected shape compatible with [1]; " +
			"torch.var(x, 0).backward(), and PyTorch 2, give NaN",
	}
})

// ofAll returns the correction of a variance, and whether it is of all elements.
func ofAll(c *program.Call) (correction int64, all bool) {
	correction, all = 1, true
	given := slices.Clone(c.Args[min(1, len(c.Args)):])
	for _, kw := range c.Kwargs {
		switch kw.Name {
		case "dim", "axis", "unbiased":
			given = append(given, kw.Value)
		case "correction":
			correction, _ = kw.Value.(int64)
		}
	}
	for _, v := range given {
		switch unbiased, isBool := v.(bool); {
		case isBool && !unbiased:
			correction = 0
		case !isBool && v != nil:
			all = false
		}
	}
	return correction, all
}

// squareOverflows returns a number of the dtype near the largest with a square.
func squareOverflows(d tensor.DType) float64 {
	if d == tensor.F64 {
		return 1e150
	}
	return 1e18
}

// skippedPadding are convolutions by oneDNN.
var skippedPadding = each([]string{"conv1d", "conv2d", "conv3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When: func(p *program.Program) bool {
			return anyElement(p, 1, func(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) })
		},
		Reason: "oneDNN leaves out the products of the zeros of the padding with a weight that is infinite or NaN",
		Proof: "x = torch.ones(2, 2, 1, 1); w = torch.zeros(1, 2, 1, 2); w[0, 1, 0, 1] = float('nan'): torch.conv2d(x, w, padding=(0, 1))[0, 0, 0] is [nan, 0]; " +
			"with torch.backends.mkldnn.flags(enabled=False), and in float64, it is [nan, nan]",
	}
})

// steppedWeights are transposed convolutions, whose gradient is a convolution
// of padded cotangents.
var steppedWeights = each([]string{"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		Rule:      compare.NonFinite,
		When:      func(p *program.Program) bool { return anyElement(p, 1, notFinite) },
		Shows:     func(v complex128) bool { return cmplx.IsNaN(v) },
		Reason:    "the gradient multiplies the zeros of the padding with a weight that is infinite or NaN, where the result leaves these products out",
		Proof: "x = torch.zeros(1, 1, 2, requires_grad=True): torch.conv_transpose1d(x, torch.tensor([[[float('nan')]]]), None, 2, 1) has one element, which no element of x is a term of; " +
			"x.grad of it is [nan, nan]",
	}
})

// nanSigns are distances, whose gradient has the sign of each difference.
var nanSigns = each([]string{"pdist", "cdist"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		Rule:      compare.NonFinite,
		When:      func(p *program.Program) bool { return anyElement(p, 0, notFinite) || anyElement(p, 1, notFinite) },
		Shows:     func(v complex128) bool { return cmplx.IsNaN(v) },
		Reason:    "the gradient of a distance of order 1 or infinity is NaN where a difference is NaN, and at an infinite one of order infinity; that of a norm is 0, and the sign",
		Proof: "x = torch.tensor([[0., 1.], [float('nan'), 3.]], requires_grad=True); torch.pdist(x, 1.).backward() gives x.grad = [[nan, -1], [nan, 1]]; " +
			"v = torch.tensor([float('nan'), 1.], requires_grad=True); torch.linalg.vector_norm(v, 1.).backward() gives v.grad = [0, 1]",
	}
})

func notFinite(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }

// ctcTargets are targets that ctc_loss misreads, or that its documentation forbids.
var ctcTargets = []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "ctc_loss",
	Kinds:     slices.Concat(values, grads),
	When:      func(p *program.Program) bool { return len(p.Inputs) > 1 && slices.ContainsFunc(p.Inputs, gappedVector) },
	Reason:    "where the targets of all samples are one vector, a sample's begin is not multiplied by the vector's stride",
	Proof:     "t = torch.tensor([1, 2, 1, 2, 1]), s = torch.stack([t, 0 * t], 1)[:, 0], which equals t: of any x [5, 2, 3], torch.nn.functional.ctc_loss(x, t, (5, 5), (3, 2), reduction='none') and that of s differ in the second sample",
}, {
	Reference: "torch",
	Target:    "ctc_loss",
	Kinds:     grads,
	When:      blankTarget,
	Reason:    "the documentation forbids blanks in targets; of those that end with one, the gradient takes one of the two last states for both",
	Proof: "x = torch.zeros(2, 1, requires_grad=True): torch.nn.functional.ctc_loss(x, torch.tensor([0]), torch.tensor(2), torch.tensor(1)).backward() gives x.grad = [0, 1/3], " +
		"though both moments are alike",
}}

// blankTarget reports integers one of which is the label of blanks.
func blankTarget(p *program.Program) bool {
	blank, _ := argument(p, 4, "blank").(int64)
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
		return in.DType.IsInt() && hasElement(&in, func(v float64) bool { return v == float64(blank) })
	})
}

// strided reports an input that is not laid out as it would be by default.
func strided(in program.Input) bool { return in.Strides != nil }

// repeated reports an input of which several indices name one place.
func repeated(in program.Input) bool {
	for d, n := range in.Shape {
		if in.Strides != nil && n > 1 && in.Strides[d] == 0 {
			return true
		}
	}
	return false
}

// expands reports a program with a call that makes strides of 0.
func expands(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		name := verdict.OperatorName(c.Target)
		return strings.HasPrefix(name, "expand") || strings.HasPrefix(name, "broadcast") || name == "asstrided"
	})
}

// infiniteOrder reports a distance of infinite order.
func infiniteOrder(p *program.Program) bool {
	v, _ := argument(p, 2, "p").(float64)
	return math.IsInf(v, 1)
}

// bothInfinite reports two inputs with infinities, whose difference may be NaN.
func bothInfinite(p *program.Program) bool {
	isInf := func(v float64) bool { return math.IsInf(v, 0) }
	return anyElement(p, 0, isInf) && anyElement(p, 1, isInf)
}

// largest returns the largest magnitude among the elements.
func largest(in *program.Input) float64 {
	most := 0.0
	hasElement(in, func(v float64) bool {
		most = max(most, math.Abs(v))
		return false
	})
	return most
}

// undefined reports a NaN or an infinity.
func undefined(v complex128) bool { return cmplx.IsNaN(v) || cmplx.IsInf(v) }

// beyondWidth reports a number of bits that is negative or as large as the dtype.
func beyondWidth(d tensor.DType) func(float64) bool {
	return func(v float64) bool { return v < 0 || v >= float64(8*d.Size()) }
}

// anyElement reports whether f holds for an element of the input at an index,
// or of any input where an operator is a module or its arguments are computed.
func anyElement(p *program.Program, at int, f func(float64) bool) bool {
	if at >= len(p.Inputs) || len(p.Calls) > 1 {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return hasElement(&in, f) })
	}
	return hasElement(&p.Inputs[at], f)
}

func hasElement(in *program.Input, f func(float64) bool) bool {
	x := in.Materialize()
	for i := range x.Len() {
		v := x.At(i)
		if f(real(v)) || x.DType().IsComplex() && f(imag(v)) {
			return true
		}
	}
	return false
}
