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
var edgeFaults = slices.Concat(stayingGradients, fixedViews, planarPools, expandedMedians, outOfWidth, noInverse, skippedPadding, ctcTargets, hugeSquares, foldedScales, nanSlopes, inversePoles, mixedBranches, infiniteMeans, singleVariances, steppedWeights, nanSigns, lowestQuotients, distancesOfNone, masksOfNothing, []verdict.KnownFault{{
	Reference: "torch",
	Target:    "logcumsumexp",
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return anyElement(p, 0, func(v float64) bool { return math.Abs(v) > 1e6 })
	},
	Reason: "the gradient is exp of a sum of the logarithm of the incoming one and two elements, in which large elements leave nothing of it",
	Proof: `x = torch.tensor([3e38], requires_grad=True)
torch.logcumsumexp(x, 0).backward(torch.tensor([0.25]))
not same(x.grad, [0.25])`,
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
	Proof:  `not same(torch.polygamma(1, torch.tensor([-1., -2.])), [inf, inf])`,
}, {
	Reference: "torch",
	Target:    "hardswish",
	Kinds:     values,
	Rule:      compare.NonFinite,
	When: func(p *program.Program) bool {
		return anyElement(p, 0, func(v float64) bool { return math.IsInf(v, -1) })
	},
	Shows:  cmplx.IsNaN,
	Reason: "the function is 0 below -3, as documented, and computed as a product with a 0, which is NaN of -inf",
	Proof:  `same(F.hardswish(torch.tensor([-1e30])), [0]) and same(F.hardswish(torch.tensor([-inf])), [nan])`,
}, {
	Reference: "torch",
	Target:    "softsign",
	Kinds:     values,
	When: func(p *program.Program) bool {
		d := first(p).DType
		largest := math.Ldexp(1, 8*d.Size()-1) - 1
		if d == tensor.U8 {
			largest = 255
		}
		return d.IsInt() && anyElement(p, 0, func(v float64) bool { return math.Abs(v) >= largest })
	},
	Reason: "the magnitude of an integer, and one more, are computed in its dtype, where the largest overflow: softsign of 255 is infinite, of 127 below 0",
	Proof:  `not near(F.softsign(torch.tensor([255], dtype=torch.uint8)), [255 / 256]) and not near(F.softsign(torch.tensor([127], dtype=torch.int8)), [127 / 128])`,
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
	Proof: `x, y = torch.tensor([[0., 1.]]), torch.tensor([[nan, 1.5]])
same(torch.pdist(torch.cat([x, y]), inf), [nan]) and not same(torch.cdist(x, y, inf), [[nan]])`,
}, {
	Reference: "torch",
	Target:    "cholesky_solve",
	Kinds:     grads,
	When: func(p *program.Program) bool {
		return len(p.Inputs) > 1 && p.Inputs[1].RequiresGrad && p.Inputs[1].Shape[len(p.Inputs[1].Shape)-1] > 1
	},
	Reason: "the gradient by the elements of input2 beyond its triangle, which are not read, is not 0",
	Proof: `l = torch.tensor([[2., 0.], [1., 3.]], requires_grad=True)
y = torch.cholesky_solve(torch.ones(2, 1), l)
y.sum().backward()
same(torch.cholesky_solve(torch.ones(2, 1), torch.tensor([[2., 5.], [1., 3.]])), y) and l.grad[0, 1].item() != 0`,
}, {
	Reference: "torch <2.9",
	Target:    "embedding_bag",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		weights, ok := keyword(p, "per_sample_weights").(program.Ref)
		return ok && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(weights) && in.RequiresGrad }) &&
			!slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Name != string(weights) && in.RequiresGrad })
	},
	Reason: "with weights of the samples that require a gradient and a table that does not, an assertion of autograd fails",
	Proof: `f = lambda: F.embedding_bag(torch.tensor([0, 0]), torch.zeros(1, 1), torch.tensor([0]), mode='sum', per_sample_weights=torch.zeros(2, requires_grad=True))
raises(f, "RuntimeError", "INTERNAL ASSERT FAILED")`,
}, {
	Reference: "torch",
	Target:    "binary_cross_entropy",
	Kinds:     grads,
	Shows:     undefined,
	When: func(p *program.Program) bool {
		return anyElement(p, 0, func(v float64) bool { return v == 0 || v == 1 })
	},
	Reason: "the loss has logarithms of at least -100, as documented, so that its gradient with respect to the target is at most 100; it is infinite where the input is 0 or 1",
	Proof: `t = torch.tensor([0., 1.], requires_grad=True)
F.binary_cross_entropy(torch.tensor([0., 1.]), t, reduction='sum').backward()
not same(t.grad, [100, -100])`,
}, {
	Reference: "torch",
	Target:    "soft_margin_loss",
	Kinds:     slices.Concat(values, grads),
	Shows:     undefined,
	When: func(p *program.Program) bool {
		return len(p.Inputs) < 2 || largest(&p.Inputs[0])*largest(&p.Inputs[1]) > 80
	},
	Reason: "exp(-target·input) overflows: the loss is infinite where it is -target·input, its gradient NaN where it is -target",
	Proof: `x = torch.tensor(-100., requires_grad=True)
y = F.soft_margin_loss(x, torch.tensor(1.))
y.backward()
not near([y, x.grad], [100, -1])`,
}})

// fixedViews are operators that raise for some layouts of their arguments.
var fixedViews = []verdict.KnownFault{{
	Reference: "torch",
	Target:    "isin",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, strided) },
	Reason:    "isin takes a view of few test elements as a vector, which their strides may not allow, and sorts many",
	Proof:     `raises(lambda: torch.isin(torch.arange(3), torch.arange(4).reshape(2, 2).t()), "RuntimeError", "view size is not compatible")`,
}, {
	Reference: "torch",
	Target:    "pixel_shuffle",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, strided) },
	Reason:    "the kernel refuses images of more than one batch dimension whose strides look like channels-last",
	Proof: `x = torch.zeros(2, 4, 8, 4, 4)
f = lambda x: F.pixel_shuffle(x, 2)
accepts(lambda: f(x)) and raises(lambda: f(x.contiguous(memory_format=torch.channels_last_3d)), "RuntimeError", "Unsupported memory format")`,
}, {
	Reference: "torch",
	Target:    "pixel_unshuffle",
	Kinds:     raises,
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, strided) },
	Reason:    "the kernel refuses images of more than one batch dimension whose strides look like channels-last",
	Proof: `x = torch.zeros(2, 4, 4, 4, 4)
f = lambda x: F.pixel_unshuffle(x, 2)
accepts(lambda: f(x)) and raises(lambda: f(x.contiguous(memory_format=torch.channels_last_3d)), "RuntimeError", "Unsupported memory format")`,
}}

// planarPools are poolings of one image, whose layout may look like a batch of planes.
var planarPools = each([]string{"max_pool3d", "max_pool3d_with_indices"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch >=2.9",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, strided) },
		Reason:    "the kernel refuses an image without a batch dimension whose strides look like channels-last of planes",
		Proof: of(target, `
x = torch.zeros(2, 4, 4, 4)
f = lambda x: F.TARGET(x, 1)
accepts(lambda: f(x)) and raises(lambda: f(x.contiguous(memory_format=torch.channels_last)), "RuntimeError", "Unsupported memory format")`),
	}
})

// expandedMedians are medians along a dimension of stride 0.
var expandedMedians = each([]string{"median", "nanmedian"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, repeated) || expands(p) },
		Reason:    "the kernel reads the rows of an expanded tensor from memory beside it",
		Proof:     of(target, `not same(torch.tensor([8., 5.]).as_strided((2, 1), (0, 1)).TARGET(0).values, [8]) or not same(torch.tensor([[8., 5.]]).expand(3, 2).TARGET(0).values, [8, 5])`),
	}
})

// outOfWidth are shifts by a negative number of bits, or by all of them.
var outOfWidth = eachCall(map[string]string{
	"bitwise_left_shift": leftShift("torch.bitwise_left_shift(x, n)"), "lshift": leftShift("x << n"), "ilshift": leftShift("x.__ilshift__(n)"),
	"bitwise_right_shift": rightShift("torch.bitwise_right_shift(x, n)"), "rshift": rightShift("x >> n"), "irshift": rightShift("x.__irshift__(n)"),
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     values,
		When:      shiftsTooFar,
		Reason:    "a shift by less than 0 or by all the bits is C++'s, undefined: the processor takes the number modulo the width",
		Proof:     call,
	}
})

// leftShift and rightShift are proofs that a shift of x by n bits, all of them
// or less than 0, is not what is left of x where bits that are pushed out are lost.
func leftShift(call string) string {
	return "x = torch.ones(9).long()\nn = torch.full((9,), 64)\nnot same(" + call + ", [0] * 9)"
}

func rightShift(call string) string {
	return "x = torch.full((9,), -8)\nn = torch.full((9,), 64)\nnot same(" + call + ", [-1] * 9)"
}

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
var noInverse = eachCall(map[string]string{
	"inverse":      "not same(torch.inverse(a), [[nan, nan], [nan, nan]])",
	"inv":          "not same(torch.linalg.inv(a), [[nan, nan], [nan, nan]])",
	"matrix_power": "not same(torch.matrix_power(a, -1), [[nan, nan], [nan, nan]])",
	"solve":        "not same(torch.linalg.solve(a, torch.ones(2)), [nan, nan])",
	"det":          "torch.det(a).item() == -inf", "slogdet": "torch.slogdet(a)[1].item() == inf", "logdet": "torch.logdet(a[[1, 0]]).item() == inf",
}, func(target, call string) verdict.KnownFault {
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
		Proof:  "a = torch.tensor([[1., inf], [1., 0.]])\n" + call,
	}
})

// hugeSquares are normalisations of numbers whose squares overflow.
var hugeSquares = eachCall(map[string]string{
	"group_norm": "functional.group_norm(x, 1)", "layer_norm": "functional.layer_norm(x, (4,))",
	"instance_norm": "functional.instance_norm(x)", "batch_norm": "functional.batch_norm(x, None, None, training=True)",
	"InstanceNorm1d": "InstanceNorm1d(1)(x)", "InstanceNorm2d": "InstanceNorm2d(1)(x[..., None])[..., 0]", "InstanceNorm3d": "InstanceNorm3d(1)(x[..., None, None])[..., 0, 0]",
	"BatchNorm1d": "BatchNorm1d(1)(x)", "BatchNorm2d": "BatchNorm2d(1)(x[..., None])[..., 0]", "BatchNorm3d": "BatchNorm3d(1)(x[..., None, None])[..., 0, 0]",
}, func(target, call string) verdict.KnownFault {
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
		Proof:  "x = torch.tensor([[[0., 1e25, 0., 0.]]])\nnot near(torch.nn." + call + ", [[[-0.57735, 1.73205, -0.57735, -0.57735]]])",
	}
})

// foldedScales are normalisations by a weight that is infinite. Their weight is an argument
// at the given place.
var foldedScales = []verdict.KnownFault{
	foldedScale("group_norm", 2, "F.group_norm(x, 1, w)"),
	foldedScale("batch_norm", 3, "F.batch_norm(x, None, None, w, training=True)"),
	foldedScale("instance_norm", 3, "F.instance_norm(x, weight=w)"),
}

func foldedScale(target string, at int, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		Shows:     cmplx.IsNaN,
		Gives:     cmplx.IsInf,
		When: func(p *program.Program) bool {
			return len(p.Calls) == 1 && slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
				return isOperand(&p.Calls[0], at, "weight", in.Name) && hasElement(&in, func(v float64) bool { return math.IsInf(v, 0) })
			})
		},
		Reason: "mean and variance are folded into the weight, an infinite one: infinity less infinity is NaN where (input - mean) times it is infinite",
		Proof:  "x = torch.tensor([[[1., 3.]]])\nw = torch.tensor([inf])\nsame(" + call + ", [[[nan, nan]]])",
	}
}

// nanSlopes are activations by pieces whose gradient at NaN, and at a bound,
// depends on the length of the tensor.
var nanSlopes = each([]string{"relu6", "hardtanh", "hardshrink", "softshrink", "elu", "celu", "selu", "hardswish"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
				return hasElement(&in, func(v float64) bool { return math.IsNaN(v) || target == "hardswish" && math.Abs(v) == 3 })
			})
		},
		Reason: "the vectorised kernel and the plain one that completes it disagree about the gradient at NaN, and of hardswish at 3",
		Proof: of(target, `def at(v, n):
    x = torch.full((n,), v, requires_grad=True)
    F.TARGET(x).sum().backward()
    return x.grad[0]
not same(at(nan, 1), at(nan, 64)) or "TARGET" == "hardswish" and not same(at(3., 1), at(3., 64))`),
	}
})

// inversePoles are functions near their poles.
var inversePoles = slices.Concat(eachCall(map[string]string{"digamma": "torch.digamma(x)", "psi": "torch.special.psi(x)"}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			return anyElement(p, 0, func(v float64) bool { return v < 0 && v == math.Trunc(v) })
		},
		Shows:  func(v complex128) bool { return !undefined(v) },
		Reason: "the gradient is trigamma, which at its poles below 0 is (π/sin πx)² with a sine that rounding keeps from 0",
		Proof:  "x = torch.tensor([-1., -2.], requires_grad=True)\n" + call + ".sum().backward()\nx.grad.isfinite().any().item()",
	}
}), []verdict.KnownFault{{
	Reference: "torch <2.9",
	Target:    "erfinv",
	DType:     tensor.F64,
	Kinds:     slices.Concat(values, grads),
	When: func(p *program.Program) bool {
		return anyElement(p, 0, func(v float64) bool { return math.Abs(v) > 0.99 && math.Abs(v) < 1 })
	},
	Reason: "towards ±1 the float64 inverse loses digits: its Newton steps divide by a slope that underflows to few of them",
	Proof: `x = 1 - 2. ** -torch.tensor([10, 20, 30, 53], dtype=torch.float64)
off(torch.erfinv(x), [2.331467773621948, 3.465505025803331, 4.328028275800946, 5.8635847487551676]) > 1000`,
}})

// mixedBranches is where of a complex and a real branch.
var mixedBranches = each([]string{"where"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When: func(p *program.Program) bool {
			complexInput := func(in program.Input) bool { return in.DType.IsComplex() }
			realInput := func(in program.Input) bool { return in.DType.IsFloat() && in.RequiresGrad }
			return len(p.Backward) > 0 && slices.ContainsFunc(p.Inputs, complexInput) && slices.ContainsFunc(p.Inputs, realInput)
		},
		Reason: "the gradient of the real branch stays complex, which autograd refuses",
		Proof: `x = torch.ones(2, requires_grad=True)
z = torch.where(torch.tensor([True, False]), x, torch.ones(2, dtype=torch.complex64))
raises(lambda: z.backward(torch.ones_like(z)), "RuntimeError", "input_is_complex == grad_is_complex")`,
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
		Proof:  of(target, `torch.TARGET(torch.tensor([-inf, 1., 2.]))[1].isnan().item()`),
	}
})

// singleVariances are those of all elements, of which there are no more than
// the correction.
var singleVariances = each([]string{"var", "std", "var_mean", "std_mean"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     slices.Concat(raises, grads),
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
				correction, all := ofAll(&c)
				return strings.HasSuffix(c.Target, "."+target) && all && int64(tensor.NumElements(first(p).Shape)) <= correction
			})
		},
		Reason: "without degrees of freedom the gradient is that of the result times infinity: its shape is the result's, and at the mean, where 2(x - mean)/0 is NaN, it is infinite",
		Proof: of(target, `x = torch.ones(1, requires_grad=True)
y = torch.TARGET(x)
y = y[0] if isinstance(y, tuple) else y
raises(y.backward, "RuntimeError", "invalid gradient")`),
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
		Proof: of(target, `n = int("TARGET"[-2])
x, w = torch.ones([2, 2] + [1] * n), torch.zeros([1, 2] + [1] * (n - 1) + [2])
w[0, 1, ..., -1] = nan
not same(F.TARGET(x, w, padding=[0] * (n - 1) + [1]).flatten(), [nan] * 4)`),
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
		Proof: of(target, `n = int("TARGET"[-2])
x = torch.zeros([1, 1] + [1] * (n - 1) + [2], requires_grad=True)
y = F.TARGET(x, torch.full([1] * (n + 2), nan), None, 2, [0] * (n - 1) + [1])
y.sum().backward()
y.numel() == 1 and same(y.flatten(), [0]) and not same(x.grad.flatten(), [0, 0])`),
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
		Proof: of(target, `x = torch.tensor([[0., 1.], [nan, 3.]], requires_grad=True)
d = torch.pdist(x, 1.) if "TARGET" == "pdist" else torch.cdist(x[:1], x[1:], 1.)
v = torch.tensor([nan, 1.], requires_grad=True)
(d.sum() + torch.linalg.vector_norm(v, 1.)).backward()
same(v.grad, [0, 1]) and x.grad.isnan().any().item()`),
	}
})

// stayingGradients are functions that are not differentiable, and in place do not say so.
var stayingGradients = each(strings.Fields("logical_not_ logical_and_ logical_or_ logical_xor_"), func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		Reason:    "in place it leaves the gradient as it was, as though what it changes were the same; that of a comparison in place is 0",
		Proof: of(target, `x = torch.tensor([1., 0.], requires_grad=True)
y = x * 2
y.TARGET(*[torch.ones(2)] * ("TARGET" != "logical_not_"))
y.sum().backward()
same(x.grad, [2, 2])`),
	}
})

func notFinite(v float64) bool { return math.IsInf(v, 0) || math.IsNaN(v) }

// ctcTargets are targets that ctc_loss misreads, or that its documentation forbids.
var ctcTargets = []verdict.KnownFault{{
	Reference: "torch",
	Target:    "ctc_loss",
	Kinds:     slices.Concat(values, grads),
	When:      func(p *program.Program) bool { return len(p.Inputs) > 1 && slices.ContainsFunc(p.Inputs, gappedVector) },
	Reason:    "where the targets of all samples are one vector, a sample's begin is not multiplied by the vector's stride",
	Proof: `t = torch.tensor([1, 2, 1, 2, 1])
s = torch.stack([t, 0 * t], 1)[:, 0]
x = torch.randn(5, 2, 3)
f = lambda t: F.ctc_loss(x, t, (5, 5), (3, 2), reduction='none')
same(s, t) and not near(f(s), f(t))`,
}, {
	Reference: "torch",
	Target:    "ctc_loss",
	Kinds:     grads,
	When:      blankTarget,
	Reason:    "the documentation forbids blanks in targets; of those that end with one, the gradient takes one of the two last states for both",
	Proof: `x = torch.zeros(2, 1, requires_grad=True)
F.ctc_loss(x, torch.tensor([0]), torch.tensor(2), torch.tensor(1)).backward()
x.grad[0].item() != x.grad[1].item()`,
}}

// distancesOfNone are gradients of the distances between no points.
var distancesOfNone = []verdict.KnownFault{{
	Reference: "torch",
	Target:    "pdist",
	Kinds:     append([]verdict.Kind{verdict.Crashes}, grads...),
	Signal:    "SIGSEGV",
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.RequiresGrad && len(in.Shape) == 2 && in.Shape[0] == 0 })
	},
	Reason: "the gradient of the distances between no points ends the process",
	Proof:  "x = torch.zeros(0, 3, requires_grad=True)\ndies(lambda: torch.pdist(x).sum().backward())",
}}

// masksOfNothing are gradients of the mask of an attention without elements.
var masksOfNothing = []verdict.KnownFault{{
	Reference: "torch >=2.15",
	Target:    "scaled_dot_product_attention",
	Kinds:     []verdict.Kind{verdict.Kind(compare.Structure)},
	When: func(p *program.Program) bool {
		return len(p.Calls) == 1 && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return isOperand(&p.Calls[0], 3, "attn_mask", in.Name) && in.RequiresGrad }) &&
			slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return slices.Contains(in.Shape, 0) })
	},
	Reason: "the gradient of a mask does not arrive where there are no queries or keys; it is 0",
	Proof: `m = torch.tensor(0., requires_grad=True)
v = torch.ones(2, 4, 3, requires_grad=True)
F.scaled_dot_product_attention(torch.ones(2, 0, 3), torch.ones(2, 4, 3), v, attn_mask=m).sum().backward()
m.grad is None`,
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
