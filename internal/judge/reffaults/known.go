// Package reffaults holds the faults of references that were proved: what Plumb is
// not to be blamed for.
package reffaults

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// Faults are faults of references, each with its proof.
var Faults = slices.Concat(torchFaults, singularDets, transposedHalves, shapeFaults, edgeFaults, later, laterRefusals, vanishedNorms, viewed, complexDot, halfPlaces, overflownOrders, sharedMaxima, laterDefaults, earlier, earlierRefusals, complexTruths, truncatedInverses, complexPowers, lenientValues, zeroExtremes, trueOrders, untyped, unsignedZero, inaccurateArcs, shortCosines)

var torchFaults = []verdict.KnownFault{{
	Reference: "torch",
	Target:    "logcumsumexp",
	Kinds:     grads,
	Rule:      compare.NonFinite,
	Shows:     func(v complex128) bool { return !undefined(v) },
	Reason:    "the gradient takes the positive and the negative elements of the incoming one apart, and NaN is neither",
	Proof: `x = torch.tensor([1., 2.], requires_grad=True)
torch.logcumsumexp(x, 0).backward(torch.tensor([1., nan]))
not x.grad.isnan().any().item()`,
}, {
	Reference: "torch",
	Target:    "polygamma",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	When:      func(p *program.Program) bool { return hasOrder(p, 0) || hasOrder(p, 1) },
	Reason:    "float64 polygamma(1, x) is trigamma's asymptotic series after six steps, cut after three terms: ten digits are right; polygamma(0, x) is digamma, which cancels around its root",
	Proof: `x = torch.tensor([2.46, 1.463], dtype=torch.float64)
off(torch.polygamma(1, x[0]), 0.49998845243501455) > 1000 and off(torch.polygamma(0, x[1]), 0.0013228075888998775) > 1000`,
}, {
	Reference: "torch",
	Target:    "digamma",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	Places:    aroundDigammasRoots,
	Shows:     func(reference complex128) bool { return cmplx.Abs(reference) < 0.8 },
	Reason:    "float64 digamma cancels around its roots: it is 8 units of roundoff off at 1.25 and 3634 at 1.463",
	Proof:     `off(torch.digamma(torch.tensor(1.463, dtype=torch.float64)), 0.0013228075888998775) > 1000`,
}, {
	Reference: "torch",
	Target:    "psi",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	Places:    aroundDigammasRoots,
	Shows:     func(reference complex128) bool { return cmplx.Abs(reference) < 0.8 },
	Reason:    "float64 digamma cancels around its roots: it is 8 units of roundoff off at 1.25 and 3634 at 1.463",
	Proof:     `off(torch.special.psi(torch.tensor(1.463, dtype=torch.float64)), 0.0013228075888998775) > 1000`,
}, {
	Reference: "torch",
	Target:    "batch_norm",
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartGrad)},
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, gappedVector) },
	Reason:    "the CPU gradient of batch_norm reads weight and the running statistics as if they were contiguous",
	Proof: `w = torch.tensor([1., 5., 2., 7.])[::2].requires_grad_()
x = torch.tensor([[0., 0.], [1., 1.], [5., 5.]], requires_grad=True)
F.batch_norm(x, torch.zeros(2), torch.ones(2), w).backward(torch.ones(3, 2))
not near(x.grad, [[1, 2]] * 3)`,
}, {
	Reference: "torch",
	Target:    "to",
	Kinds:     []verdict.Kind{verdict.Exception},
	Reason:    "x.to(1.5) and x.to(True) are taken for x.to(), though no signature has them",
	Proof:     `accepts(lambda: torch.ones(2).to(1.5)) or accepts(lambda: torch.ones(2).to(True))`,
}, {
	Reference: "torch",
	Target:    "nll_loss",
	Kinds:     []verdict.Kind{verdict.Exception},
	When:      func(p *program.Program) bool { return len(p.Backward) > 0 && first(p).Strides != nil },
	Reason:    "the gradient of nll_loss over 3 or more dimensions fails for an input of another memory order: it is allocated in the input's, and then has to be contiguous",
	Proof: `x = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
loss = F.nll_loss(x, torch.zeros(2, 4, 5).long())
raises(loss.backward, "RuntimeError", "must be contiguous")`,
}, {
	Reference: "torch <2.9",
	Target:    "multi_margin_loss",
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind(backend.PartValue), verdict.Kind(backend.PartGrad)},
	When:      func(p *program.Program) bool { return len(p.Inputs) > 2 && misread(first(p), p.Inputs[2]) },
	Reason:    "the kernel reads weight as if it were contiguous and had an element for every class",
	Proof: `x, t = torch.tensor([[0.1, 0.5, 0.9]]), torch.tensor([1])
w = torch.tensor([1., 9., 2., 9., 3., 9.])[::2]
not near(F.multi_margin_loss(x, t, weight=w), 2 * (0.6 + 1.4) / 3) or accepts(lambda: F.multi_margin_loss(x, t, weight=w[:0]))`,
}, {
	Reference: "torch <2.9",
	Target:    "addcdiv",
	Kinds:     []verdict.Kind{verdict.Exception},
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType != first(p).DType })
	},
	Reason: "in place with tensors of several dtypes an internal assertion of the kernel fails, where out of place they are promoted",
	Proof: `one, two = torch.ones(()), torch.full((), 2, dtype=torch.float64)
raises(lambda: torch.ones(()).addcdiv_(one, two), "RuntimeError", "INTERNAL ASSERT FAILED")`,
}, {
	Reference: "torch <2.9",
	Target:    "slice_scatter",
	Kinds:     []verdict.Kind{verdict.Exception},
	Reason:    "a src of another size than the slice is broadcast, which later versions refuse",
	Proof:     `accepts(lambda: torch.slice_scatter(torch.zeros(4), torch.ones(1), 0, 0, 2))`,
}}

// aroundDigammasRoots reports the elements whose argument may be near a root of digamma: 1.46,
// and one between each two numbers below 0.
func aroundDigammasRoots(p *program.Program, _ []int) func(int) bool {
	if len(p.Calls) != 1 || len(p.Inputs) != 1 {
		return nil
	}
	x := p.Inputs[0].Materialize()
	return func(i int) bool { return x.Float(i) < 0 || x.Float(i) > 0.9 && x.Float(i) < 2.1 }
}

// singularDets are determinants of matrices without an inverse.
var singularDets = each([]string{"det"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, singular) },
		Shows:     func(v complex128) bool { return v == 0 },
		Reason:    "the gradient of a determinant that is 0 is the determinant times an inverse that is made up, 0; it is the matrix of cofactors",
		Proof: of(target, `
a = torch.tensor([[1., 2.], [2., 4.]], dtype=torch.float64, requires_grad=True)
torch.TARGET(a).backward()
not near(a.grad, [[4, -2], [-2, 1]])`),
	}
})

// transposedHalves are transposed convolutions in bfloat16.
var transposedHalves = each([]string{"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		DType:     tensor.BF16,
		Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(backend.PartValue)},
		Reason:    "on CPU it goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail; without oneDNN there is no kernel",
		Proof: of(target, `
n = int("TARGET"[-2])
x, w = torch.ones([1, 2] + [5] * n).bfloat16(), torch.ones([2, 2] + [2] * n).bfloat16()
try:
    shape = list(F.TARGET(x, w, stride=3).shape)
except RuntimeError as e: # its checks, or that there is no kernel
    shape = str(e)
shape != [1, 2] + [14] * n`),
	}
})

// complexDot: the complex dot product of Debian's build is zero, whatever the
// arguments, in every operator that uses it.
var complexDot = eachCall(map[string]string{
	"matmul": "torch.matmul(a, a)", "imatmul": "a.__matmul__(a)", "rmatmul": "a.__rmatmul__(a)", "dot": "a.dot(a)", "vdot": "a.vdot(a)",
	"vecdot": "torch.linalg.vecdot(a, a)",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue), verdict.Kind(backend.PartGrad)},
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType.IsComplex() && len(in.Shape) == 1 })
		},
		Reason: "dot products of complex vectors are 0: the build calls BLAS's cdotu and zdotu by another convention for complex results",
		Proof:  fmt.Sprintf("a = torch.ones(3, dtype=torch.complex64)\nsame(%s, 0)", call),
	}
})

var inaccurateArcs = slices.Concat(
	inaccurate("asin", 113, arcsineAt, arcsine), inaccurate("arcsin", 113, arcsineAt, arcsine),
	inaccurate("atan", 1849, arctangentAt, arctangent), inaccurate("arctan", 1849, arctangentAt, arctangent))

// Numbers and their functions, by mpmath at 40 digits.
const (
	arcsineAt    = "0.0016993682743907945-0.0054269595980157015j"
	arcsine      = "0.001699344067952898-0.005426940795132441j"
	arctangentAt = "-0.004680394049747988+0.0043171099739069685j"
	arctangent   = "-0.004680447102182176+0.00431704222171776j"
)

// inaccurate is a complex128 function that PyTorch computes with cancellation;
// there is no wider dtype to ask who is right.
func inaccurate(target string, ulp int, z, truth string) []verdict.KnownFault {
	return []verdict.KnownFault{{
		Reference: "torch <2.9",
		Target:    target,
		DType:     tensor.C128,
		Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
		Reason:    fmt.Sprintf("the vectorised complex function cancels: the largest error of 2,000 z with parts in ±0.18 is %d units of roundoff", ulp),
		Proof:     fmt.Sprintf("z = torch.full((16,), %s, dtype=torch.complex128)\noff(torch.%s(z), [%s] * 16) > 50", z, target, truth),
	}}
}

// eachCall is each of operators that are given with a call of theirs.
func eachCall(calls map[string]string, f func(target, call string) verdict.KnownFault) []verdict.KnownFault {
	return each(slices.Sorted(maps.Keys(calls)), func(target string) verdict.KnownFault { return f(target, calls[target]) })
}

// before returns the versions before one for the operators of a list, and all for others.
func before(version, targets, target string) string {
	if slices.Contains(strings.Fields(targets), target) {
		return "torch <" + version
	}
	return "torch"
}

// of returns a proof with an operator's name in it.
func of(target, proof string) string { return strings.ReplaceAll(proof, "TARGET", target) }

func each(targets []string, f func(string) verdict.KnownFault) []verdict.KnownFault {
	var list []verdict.KnownFault
	for _, t := range targets {
		list = append(list, f(t))
	}
	return list
}

// gappedVector reports a 1-d input whose elements are not neighbours.
func gappedVector(in program.Input) bool {
	return len(in.Shape) == 1 && in.Shape[0] > 1 && len(in.Strides) == 1 && in.Strides[0] != 1
}

// misread reports a vector of class weights that is not contiguous, or not of
// one element for each class of x.
func misread(x, weight program.Input) bool {
	classes := 1
	if n := len(x.Shape); n > 0 {
		classes = x.Shape[n-1]
	}
	return gappedVector(weight) || len(weight.Shape) == 1 && weight.Shape[0] != classes
}

// laterDefaults are calls that later versions take.
var laterDefaults = each([]string{"var", "std", "var_mean", "std_mean"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Exception},
		When:      func(p *program.Program) bool { return lacksDim(p.Calls[0]) || fractional(keyword(p, "correction")) },
		Reason:    "correction and keepdim are refused without dim, which has a default from PyTorch 2 on, and a correction that is no int",
		Proof:     of(target, `raises(lambda: torch.TARGET(torch.ones(3), correction=1), "TypeError") or raises(lambda: torch.TARGET(torch.ones(3), (0,), correction=1.5), "TypeError")`),
	}
})

// trueOrders are norms of the order True.
var trueOrders = eachCall(map[string]string{
	"norm":      `raises(lambda: torch.ones(2).norm(True), "RuntimeError", "expects norm to be integer or float")`,
	"dist":      `raises(lambda: torch.ones(2).dist(torch.ones(2), True), "RuntimeError", "expects norm to be integer or float")`,
	"normalize": `raises(lambda: F.normalize(torch.ones(2, 2), True), "RuntimeError", "expects norm to be integer or float")`,
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Exception},
		When:      func(p *program.Program) bool { return isBoolOrder(p.Calls[0]) },
		Reason:    "an order that is True is refused by the kernel, where linalg.vector_norm takes it for 1",
		Proof:     call,
	}
})

// fractional reports a number that is no int.
func fractional(v any) bool {
	switch v.(type) {
	case float64, bool:
		return true
	}
	return false
}

// complexTruths are comparisons of complex numbers in place.
var complexTruths = each([]string{"eq_", "ne_", "not_equal_"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch <2.9",
		Target:    target,
		Kinds:     values,
		When: func(p *program.Program) bool {
			return first(p).DType.IsComplex() && slices.ContainsFunc(p.Calls, func(c program.Call) bool { return strings.HasSuffix(c.Target, "."+target) })
		},
		Reason: "the vectorised comparison in place writes 1+1j for True, and compares the parts for themselves",
		Proof: of(target, `
x = torch.ones(30, dtype=torch.complex64)
x.TARGET(torch.arange(30) * 1j + torch.ones_like(x))
not same(x, [1] + [0] * 29 if "TARGET" == "eq_" else [0] + [1] * 29)`),
	}
})

// truncatedInverses are pseudoinverses that leave singular values out.
var truncatedInverses = eachCall(map[string]string{"pinv": "linalg.pinv", "pinverse": "pinverse"}, func(target, function string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     grads,
		When: func(p *program.Program) bool {
			return slices.ContainsFunc([]string{"rcond", "rtol", "atol"}, func(name string) bool { return numberOr(argument(p, 1, name), 0) > 1e-6 })
		},
		Reason: "the gradient takes the singular values that a tolerance leaves out for zeros: they turn the others' vectors, which it does not know",
		Proof: of(function, `x = torch.tensor([[1., 0.], [0., 0.5]], dtype=torch.float64, requires_grad=True)
torch.TARGET(x, 0.7)[0, 1].backward()
not near(x.grad[1, 0], 4 / 3)`),
	}
})

// complexPowers are powers of complex numbers, whose error grows with the exponent.
var complexPowers = each([]string{"pow", "float_power"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When: func(p *program.Program) bool {
			return complexInput(p) && anyElement(p, 1, func(v float64) bool { return math.Abs(v) > 4 })
		},
		Reason: "z^w is exp(w·log z), which multiplies the rounding of log z by |w|: (3+4j)^40.5 is 72 units of roundoff off",
		Proof:  of(target, `off(torch.TARGET(torch.tensor(3+4j, dtype=torch.complex128), 40.5), 2.012743485738195e+28-2.9114725377993837e+27j) > 40`),
	}
})

// lenientValues are calls that PyTorch accepts by oversight.
var lenientValues = []verdict.KnownFault{
	inAll(lenientIf("nll_loss", func(p *program.Program) bool { return len(p.Inputs) > 2 && len(p.Inputs[2].Shape) != 1 },
		"the kernel for 3 or more dimensions compares the number of weights, not their shape",
		`accepts(lambda: F.nll_loss(torch.rand(3, 3, 2), torch.ones(3, 2).long(), torch.ones(1, 3)))`)),
	{
		Reference: "torch <2.9",
		Target:    "nll_loss",
		Kinds:     raises,
		When:      vectorOfOneSample,
		Reason:    "of one sample, a target of as many elements as there are classes is accepted, and its first element read",
		Proof:     `accepts(lambda: F.nll_loss(torch.tensor([1., 2, 4]), torch.tensor([2, 0, 1])))`,
	},
	lenientIf("cosine_embedding_loss", func(p *program.Program) bool {
		if len(p.Inputs) < 3 {
			return false
		}
		x, y, t := len(first(p).Shape), len(p.Inputs[1].Shape), len(p.Inputs[2].Shape)
		return t < 2 && x == t+1 && (y > x || t == 0 && y == 0)
	},
		"the target's dimensions are compared with those of input1 only",
		`accepts(lambda: F.cosine_embedding_loss(torch.rand(4), torch.rand(2, 4), torch.tensor(1), reduction='none'))`),
	lenientIf("masked_fill", func(p *program.Program) bool { return len(p.Inputs) > 1 && p.Inputs[1].DType != tensor.Bool },
		"masks of any dtype are accepted, and their memory is read as booleans",
		`accepts(lambda: torch.zeros(3).masked_fill(torch.tensor([1., 0, 1]), 5.))`),
	lenientIf("prelu", func(p *program.Program) bool {
		return first(p).DType == tensor.BF16 && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType != tensor.BF16 })
	},
		"beside a bfloat16 input the weight may be of any dtype, where other inputs demand their own",
		`accepts(lambda: torch.prelu(torch.ones(2).bfloat16(), torch.ones(1)))`),
	inAll(lenientIf("multilabel_soft_margin_loss", complexInput,
		"the function, written in Python, computes on a complex target or weight, although a loss has no complex values",
		`accepts(lambda: F.multilabel_soft_margin_loss(torch.ones(1, 2), torch.ones(1, 2).cfloat()))`)),
	lenientIf("argmin", complexInput, "complex rows of one element are accepted, others refused",
		`accepts(lambda: torch.argmin(torch.ones(2, 1, dtype=torch.complex64), 1)) and not accepts(lambda: torch.argmin(torch.ones(2, 3, dtype=torch.complex64), 1))`),
	lenientIf("argmax", complexInput, "complex rows of one element are accepted, others refused", `accepts(lambda: torch.argmax(torch.ones(2, 1, dtype=torch.complex64), 1)) and not accepts(lambda: torch.argmax(torch.ones(2, 3, dtype=torch.complex64), 1))`),
	{
		Reference: "torch <2.9",
		Target:    "aminmax",
		Kinds:     []verdict.Kind{verdict.Kind("shape")},
		When: func(p *program.Program) bool {
			return len(first(p).Shape) == 0 && keyword(p, "dim") != nil && keyword(p, "keepdim") == true
		},
		Reason: "a scalar's extremes along a dimension that is kept have shape [1]",
		Proof:  `list(torch.tensor(3.).aminmax(dim=0, keepdim=True).min.shape) == [1] != list(torch.tensor(3.).amin(dim=0, keepdim=True).shape)`,
	},
}

// zeroExtremes are the choices between zeros of either sign.
var zeroExtremes = eachCall(map[string]string{
	"minimum": "a = torch.zeros(9, dtype=torch.float64)\ns = torch.minimum(a, -a).signbit()\ns.any().item() and not s.all().item()",
	"maximum": "a = torch.zeros(9, dtype=torch.float64)\ns = torch.maximum(a, -a).signbit()\ns.any().item() and not s.all().item()",
	"aminmax": "a = torch.tensor([0., -0., 0., -0.])\na.aminmax().max.signbit().item() != a.amax().signbit().item()",
	"mode":    "torch.tensor([0., -0., 0., -0.]).mode().values.signbit().item()",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, negativeZero) },
		Shows:     func(v complex128) bool { return v == 0 },
		Reason:    "of zeros of either sign the vectorised kernel takes the second, the plain one that completes it the first",
		Proof:     call,
	}
})

func complexInput(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType.IsComplex() })
}

func lenientIf(target string, when func(*program.Program) bool, reason, proof string) verdict.KnownFault {
	f := lenient(target, reason, proof)
	f.When = func(p *program.Program) bool { return illegal(p) && when(p) }
	return f
}

// unsignedZero are odd functions that give +0 at -0, and two whose zeros have another sign
// than their definitions'.
var unsignedZero = slices.Concat(each([]string{"i1", "i1e"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, negativeZero) },
		Reason:    "the odd function gives +0 at -0: it takes |x| and asks whether x < 0; I1(-x) = -I1(x), and IEEE 754-2019 §9.2.1 keeps the sign of zero for odd functions",
		Proof:     of(target, `not torch.special.TARGET(torch.tensor(-0.)).signbit().item()`),
	}
}), each(strings.Fields("neg neg_ negative negative_"), func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
		Rule:      compare.NonFinite,
		When:      complexInput,
		Shows:     func(v complex128) bool { return real(v) == 0 || imag(v) == 0 },
		Reason:    "the vectorised kernel subtracts complex numbers from 0, which leaves +0 as it is; the plain one that completes it gives -0, as of real numbers",
		Proof:     of(target, `not torch.view_as_real(torch.zeros(64, dtype=torch.complex64).TARGET()).signbit().any()`),
	}
}), []verdict.KnownFault{{
	Reference: "torch",
	Target:    "leaky_relu",
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	Rule:      compare.NonFinite,
	When: func(p *program.Program) bool {
		return numberOr(argument(p, 1, "negative_slope"), 0) < 0 && anyElement(p, 0, func(v float64) bool { return v == 0 && !math.Signbit(v) })
	},
	Reason: "with a negative slope +0 becomes -0: max(0, x) + slope * min(0, x), its definition, is +0 there",
	Proof:  `F.leaky_relu(torch.tensor(0.), -0.5).signbit().item()`,
}})

// negativeZero reports an input with an element -0.
func negativeZero(in program.Input) bool {
	return in.DType.IsFloat() && hasElement(&in, func(v float64) bool { return v == 0 && math.Signbit(v) })
}

// untyped are functions of PyTorch that are written in Python and ask for no
// types: whatever its arithmetic takes is computed on.
var untyped = eachCall(map[string]string{
	"gaussian_nll_loss": "F.gaussian_nll_loss(x, x, x, full=['a'])", "multilabel_soft_margin_loss": "F.multilabel_soft_margin_loss(x, x, True)",
	"normalize": "F.normalize(x, 'fro')", "tensordot": "torch.tensordot(x, x, True)",
}, func(target, call string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Exception},
		When:      mistyped,
		Reason:    "arguments of types that the documentation does not allow are used as they are",
		Proof:     "x = torch.ones(2, 2)\naccepts(lambda: " + call + ")",
	}
})

// mistyped reports a first call with an argument that is of none of the types
// of its signature.
func mistyped(p *program.Program) bool {
	inputs := map[program.Ref]any{}
	for i := range p.Inputs {
		s := p.Inputs[i].Symbol()
		inputs[s.Ref] = s
	}
	args, kwargs, err := p.Calls[0].OpArgs(func(r program.Ref) (any, error) { return inputs[r], nil })
	if err != nil {
		return false
	}
	_, err = program.Resolve(ops.Table(), p.Calls[0].Target, args, kwargs)
	var e *op.Error
	return errors.As(err, &e) && e.Class == "TypeError"
}

// lacksDim reports a call with an argument by keyword, but no dim nor unbiased.
func lacksDim(c program.Call) bool {
	named := func(name string) bool {
		return slices.ContainsFunc(c.Kwargs, func(k program.Kwarg) bool { return k.Name == name })
	}
	return len(c.Args) <= 1 && len(c.Kwargs) > 0 && !named("dim") && !named("axis") && !named("unbiased")
}

// hasOrder reports a call of polygamma of order n.
func hasOrder(p *program.Program, n int64) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.Contains(c.Args, any(n)) || slices.Contains(c.Kwargs, program.Kwarg{Name: "n", Value: n})
	})
}

// isBoolOrder reports True or False for an order, the first argument behind the tensors.
func isBoolOrder(c program.Call) bool {
	isTensor := func(v any) bool { _, is := v.(program.Ref); return is }
	tensors := 0
	for tensors < len(c.Args) && isTensor(c.Args[tensors]) {
		tensors++
	}
	_, is := argumentOf(&c, tensors, "p").(bool)
	return is
}
