// Package reffaults holds the faults of references that were proved: what Plumb is
// not to be blamed for.
package reffaults

import (
	"errors"
	"fmt"
	"math"
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
var Faults = slices.Concat(torchFaults, shapeFaults, edgeFaults, later, viewed, complexDot, laterDefaults, earlier, complexTruths, lenientValues, zeroExtremes, trueOrders, untyped, unsignedZero, inaccurate("asin", 113), inaccurate("arcsin", 113), inaccurate("atan", 1849), inaccurate("arctan", 1849))

var torchFaults = []verdict.KnownFault{{
	Reference: "torch",
	Target:    "logcumsumexp",
	Kinds:     grads,
	Rule:      compare.NonFinite,
	Shows:     func(v complex128) bool { return !undefined(v) },
	Reason:    "the gradient takes the positive and the negative elements of the incoming one apart, and NaN is neither",
	Proof:     "x = torch.tensor([1., 2.], requires_grad=True); torch.logcumsumexp(x, 0).backward(torch.tensor([1., float('nan')])) gives x.grad = [1, 0]",
}, {
	Reference: "torch 1.13",
	Target:    "conv_transpose2d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(backend.PartValue)},
	Reason:    "bfloat16 conv_transpose2d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose2d(x, w, stride=3) on shapes [1, 2, 7, 6] and [2, 2, 2, 2] gives [1, 2, 20, 17] in float32 and [1, 2, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose2d_out_cpu is not implemented for BFloat16",
}, {
	Reference: "torch 1.13",
	Target:    "conv_transpose1d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(backend.PartValue)},
	Reason:    "bfloat16 conv_transpose1d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose1d(x, w, stride=3) on shapes [1, 2, 5] and [2, 2, 2] gives [1, 2, 14] in float32 and [1, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose1d_out_cpu is not implemented for BFloat16",
}, {
	Reference: "torch 1.13",
	Target:    "conv_transpose3d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(backend.PartValue)},
	Reason:    "bfloat16 conv_transpose3d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose3d(x, w, stride=3) on shapes [1, 2, 5, 5, 5] and [2, 2, 2, 2, 2] gives [1, 2, 14, 14, 14] in float32 and [1, 2, 2, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose3d_out_cpu is not implemented for BFloat16",
}, {
	Reference: "torch",
	Target:    "polygamma",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	When:      func(p *program.Program) bool { return hasOrder(p, 0) || hasOrder(p, 1) },
	Reason:    "float64 polygamma(1, x) is trigamma's asymptotic series after six steps, cut after three terms: ten digits are right; polygamma(0, x) is digamma, which cancels around its root",
	Proof:     "torch.polygamma(1, torch.tensor(2.46, dtype=torch.float64)) differs from mpmath.psi(1, mpf(2.46)) by 1.5e-10, two million units in the last place",
}, {
	Reference: "torch",
	Target:    "digamma",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	Reason:    "float64 digamma cancels around its root at 1.46: it is 8 units of roundoff off at 1.25 and 3634 at 1.463",
	Proof:     "torch.digamma(torch.linspace(1.3, 1.7, 401, dtype=torch.float64)) compared with mpmath.psi(0, x) at 40 digits",
}, {
	Reference: "torch",
	Target:    "psi",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	Reason:    "float64 digamma cancels around its root at 1.46: it is 8 units of roundoff off at 1.25 and 3634 at 1.463",
	Proof:     "torch.special.psi(torch.linspace(1.3, 1.7, 401, dtype=torch.float64)) compared with mpmath.psi(0, x) at 40 digits",
}, {
	Reference: "torch",
	Target:    "batch_norm",
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartGrad)},
	When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, gappedVector) },
	Reason:    "the CPU gradient of batch_norm reads weight and the running statistics as if they were contiguous",
	Proof: "w = torch.randn(4)[::2].requires_grad_(); x = torch.randn(3, 2, requires_grad=True); " +
		"torch.nn.functional.batch_norm(x, torch.zeros(2), torch.ones(2), w).sum().backward() gives x.grad[:, 1] = the element of the storage between w[0] and w[1], not w[1]",
}, {
	Reference: "torch 1.13",
	Target:    "to",
	Kinds:     []verdict.Kind{verdict.Exception},
	Reason:    "x.to(1.5) and x.to(True) are taken for x.to(), where later versions raise TypeError",
	Proof:     "torch.ones(2).to(1.5) returns the tensor",
}, {
	Reference: "torch",
	Target:    "nll_loss",
	Kinds:     []verdict.Kind{verdict.Exception},
	When:      func(p *program.Program) bool { return len(p.Backward) > 0 && first(p).Strides != nil },
	Reason:    "the gradient of nll_loss over 3 or more dimensions fails for an input of another memory order: it is allocated in the input's, and then has to be contiguous",
	Proof: "x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_(); " +
		"torch.nn.functional.nll_loss(x, torch.zeros(2, 4, 5).long()).backward() raises RuntimeError: grad_input must be contiguous",
}, {
	Reference: "torch 1.13",
	Target:    "multi_margin_loss",
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind(backend.PartValue), verdict.Kind(backend.PartGrad)},
	When:      func(p *program.Program) bool { return len(p.Inputs) > 2 && misread(first(p), p.Inputs[2]) },
	Reason:    "the kernel reads weight as if it were contiguous and had an element for every class",
	Proof: "F = torch.nn.functional.multi_margin_loss; x = torch.rand(1, 3); t = torch.tensor([1]); w = torch.tensor([1., 9., 2., 9., 3., 9.]); " +
		"F(x, t, weight=w[::2]) equals F(x, t, weight=torch.tensor([1., 9., 2.])), and F(x, t, weight=w[:0]) is accepted",
}, {
	Reference: "torch 1.13",
	Target:    "addcdiv",
	Kinds:     []verdict.Kind{verdict.Exception},
	When: func(p *program.Program) bool {
		return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType != first(p).DType })
	},
	Reason: "in place with tensors of several dtypes an internal assertion of the kernel fails, where out of place they are promoted",
	Proof: "torch.zeros(()).addcdiv_(torch.zeros(()), torch.zeros((), dtype=torch.float64)) raises RuntimeError: " +
		"!needs_dynamic_casting<func_t>::check(iter) INTERNAL ASSERT FAILED … please report a bug to PyTorch",
}, {
	Reference: "torch 1.13",
	Target:    "slice_scatter",
	Kinds:     []verdict.Kind{verdict.Exception},
	Reason:    "a src of another size than the slice is broadcast, which later versions refuse",
	Proof:     "torch.slice_scatter(torch.zeros(4), torch.ones(1), 0, 0, 2) is accepted; PyTorch 2 raises RuntimeError: expected src to have a size equal to the slice of self",
}}

// complexDot: the complex dot product of Debian's build is zero, whatever the
// arguments, in every operator that uses it.
var complexDot = each([]string{"matmul", "imatmul", "rmatmul", "dot", "vdot", "inner", "tensordot", "einsum", "vecdot"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue), verdict.Kind(backend.PartGrad)},
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType.IsComplex() && len(in.Shape) == 1 })
		},
		Reason: "dot products of complex vectors are 0: the build calls BLAS's cdotu and zdotu by another convention for complex results",
		Proof:  "torch.dot(a, b) and (a * b).sum() for a = b = torch.ones(3, dtype=torch.complex64) give 0 and 3",
	}
})

// inaccurate is a complex128 function that PyTorch computes with cancellation;
// there is no wider dtype to ask who is right.
func inaccurate(target string, ulp int) []verdict.KnownFault {
	return []verdict.KnownFault{{
		Reference: "torch 1.13",
		Target:    target,
		DType:     tensor.C128,
		Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
		Reason:    fmt.Sprintf("the vectorised complex function cancels: it is up to %d units of roundoff off for |z| < 0.25", ulp),
		Proof:     "compared with mpmath at 40 digits on 2,000 random z with parts in ±0.18; the largest |error| / |result| / 2^-53",
	}}
}

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

// laterDefaults are calls that PyTorch 1.13 refuses and later versions take.
var laterDefaults = each([]string{"var", "std", "var_mean", "std_mean"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Exception},
		When:      func(p *program.Program) bool { return lacksDim(p.Calls[0]) || fractional(keyword(p, "correction")) },
		Reason:    "correction and keepdim are refused without dim, which has a default from PyTorch 2 on, and a correction that is no int",
		Proof:     "torch.var(torch.ones(3), correction=1) and torch.var(torch.ones(3), (0,), correction=1.5) raise TypeError; PyTorch 2 declares var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)",
	}
})

// trueOrders are norms of the order True.
var trueOrders = each([]string{"norm", "normalize"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Exception},
		When:      func(p *program.Program) bool { return hasBool(p.Calls[0]) },
		Reason:    "an order that is True is refused by the kernel, where linalg.vector_norm takes it for 1",
		Proof:     "torch.ones(2).norm(True) raises RuntimeError: norm_kernel_tensor_iterator_impl expects norm to be integer or float; torch.linalg.vector_norm(torch.ones(2), True) is 2",
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
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     values,
		When: func(p *program.Program) bool {
			return first(p).DType.IsComplex() && slices.ContainsFunc(p.Calls, func(c program.Call) bool { return strings.HasSuffix(c.Target, "."+target) })
		},
		Reason: "the vectorised comparison in place writes 1+1j for True, and compares the parts for themselves",
		Proof:  "x = torch.ones(30, dtype=torch.complex64); x.eq_(torch.arange(30) + torch.ones_like(x)) begins with 1+1j, 0+1j; x.eq_(1) is all 1+0j",
	}
})

// lenientValues are calls that PyTorch 1.13 accepts by oversight.
var lenientValues = []verdict.KnownFault{
	lenientIf("nll_loss", func(p *program.Program) bool { return len(p.Inputs) > 2 && len(p.Inputs[2].Shape) != 1 },
		"the kernel for 3 or more dimensions compares the number of weights, not their shape",
		"torch.nn.functional.nll_loss(torch.rand(3, 3, 2), torch.ones(3, 2).long(), torch.ones(1, 3)) is a number; "+
			"of torch.rand(3, 3) and torch.ones(3).long() it raises RuntimeError: weight tensor should be defined either for all 3 classes or no classes"),
	{
		Reference: "torch",
		Target:    "nll_loss",
		Kinds:     raises,
		When: func(p *program.Program) bool {
			return illegal(p) && len(p.Inputs) > 1 && len(first(p).Shape) == 1 && len(p.Inputs[1].Shape) == 1
		},
		Reason: "of one sample, a target of as many elements as there are classes is accepted, and its first element read",
		Proof:  "torch.nn.functional.nll_loss(torch.tensor([1., 2, 4]), torch.tensor([2, 0, 1])) is -4; of torch.tensor([2, 0]) it raises RuntimeError: size mismatch (got input: [3], target: [2])",
	},
	lenientIf("cosine_embedding_loss", func(p *program.Program) bool {
		if len(p.Inputs) < 3 {
			return false
		}
		x, y, t := len(first(p).Shape), len(p.Inputs[1].Shape), len(p.Inputs[2].Shape)
		return t < 2 && x == t+1 && (y > x || t == 0 && y == 0)
	},
		"the target's dimensions are compared with those of input1 only",
		"F = torch.nn.functional.cosine_embedding_loss; F(torch.rand(4), torch.rand(2, 4), torch.tensor(1), reduction='none') has shape [4], sums over the batch; "+
			"F(torch.rand(2, 4), torch.rand(4), torch.tensor(1)) raises RuntimeError: 0D target tensor expects 1D input tensors"),
	lenientIf("masked_fill", func(p *program.Program) bool { return len(p.Inputs) > 1 && p.Inputs[1].DType != tensor.Bool },
		"masks of any dtype are accepted, and their memory is read as booleans",
		"torch.zeros(3).masked_fill(torch.tensor([1., 0, 1]), 5.) is all zeros; PyTorch 2 raises RuntimeError: masked_fill_ only supports boolean masks"),
	lenientIf("prelu", func(p *program.Program) bool {
		return first(p).DType == tensor.BF16 && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType != tensor.BF16 })
	},
		"beside a bfloat16 input the weight may be of any dtype, where other inputs demand their own",
		"torch.prelu(torch.ones(2).bfloat16(), torch.ones(1)) is a bfloat16 tensor; torch.prelu(torch.ones(2), torch.ones(1).double()) raises RuntimeError: Found dtype Double but expected Float"),
	lenientIf("multilabel_soft_margin_loss", complexInput,
		"the function, written in Python, computes on a complex target or weight, although a loss has no complex values",
		"torch.nn.functional.multilabel_soft_margin_loss(torch.ones(1, 2), torch.ones(1, 2).cfloat()) is 0.3133+0j"),
	lenientIf("argmin", complexInput, "complex rows of one element are accepted, others refused",
		"torch.argmin(torch.ones(2, 1, dtype=torch.complex64), 1) is [0, 0]; of torch.ones(2, 3, dtype=torch.complex64) it raises RuntimeError: \"argmin_cpu\" not implemented for 'ComplexFloat'"),
	lenientIf("argmax", complexInput, "complex rows of one element are accepted, others refused", "as of argmin"),
	{
		Reference: "torch 1.13",
		Target:    "aminmax",
		Kinds:     []verdict.Kind{verdict.Kind("shape")},
		When: func(p *program.Program) bool {
			return len(first(p).Shape) == 0 && keyword(p, "dim") != nil && keyword(p, "keepdim") == true
		},
		Reason: "a scalar's extremes along a dimension that is kept have shape [1]",
		Proof: "torch.tensor(3.).aminmax(dim=0, keepdim=True) gives shapes [1], with a warning that results of shape [] were resized; " +
			"torch.tensor(3.).amin(dim=0, keepdim=True) has shape []",
	},
}

// zeroExtremes are the choices between zeros of either sign.
var zeroExtremes = each([]string{"minimum", "maximum", "aminmax", "mode"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, negativeZero) },
		Shows:     func(v complex128) bool { return v == 0 },
		Reason:    "of zeros of either sign the vectorised kernel takes the second, the plain one that completes it the first",
		Proof: "torch.minimum(a, b) for a = torch.zeros(9, dtype=torch.float64) and b = -a is eight times -0, and then 0; " +
			"of z = torch.tensor([0., -0., 0., -0.]) torch.aminmax(z).max and z.max() are -0, z.amax() is 0, z.mode().values -0",
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

// unsignedZero are odd functions that give +0 at -0.
var unsignedZero = each([]string{"i1", "i1e"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
		When:      func(p *program.Program) bool { return slices.ContainsFunc(p.Inputs, negativeZero) },
		Reason:    "the odd function gives +0 at -0: it takes |x| and asks whether x < 0",
		Proof:     "torch.signbit(torch.special.i1(torch.tensor(-0.))) is False; I1(-x) = -I1(x), and IEEE 754-2019 §9.2.1 keeps the sign of zero for odd functions",
	}
})

// negativeZero reports an input with an element -0.
func negativeZero(in program.Input) bool {
	return in.DType.IsFloat() && hasElement(&in, func(v float64) bool { return v == 0 && math.Signbit(v) })
}

// untyped are functions of PyTorch that are written in Python and ask for no
// types: whatever its arithmetic takes is computed on.
var untyped = each([]string{"gaussian_nll_loss", "multilabel_soft_margin_loss", "normalize", "tensordot"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Exception},
		When:      mistyped,
		Reason:    "arguments of types that the documentation does not allow are used as they are",
		Proof:     "torch.nn.functional.gaussian_nll_loss(x, x, x, full=['a']) and multilabel_soft_margin_loss(x, x, True) return tensors, as do normalize(x, 'fro') and torch.tensordot(x, x, True)",
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

// hasBool reports an argument that is True or False where an order may stand.
func hasBool(c program.Call) bool {
	isBool := func(v any) bool { _, ok := v.(bool); return ok }
	return len(c.Args) > 1 && isBool(c.Args[1]) || slices.ContainsFunc(c.Kwargs, func(k program.Kwarg) bool { return k.Name == "p" && isBool(k.Value) })
}
