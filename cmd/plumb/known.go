package main

import (
	"fmt"
	"slices"

	"plumb/program"
	"plumb/tensor"
	"plumb/verdict"
)

// knownFaults are faults of references that were proved.
var knownFaults = slices.Concat(torchFaults, shapeFaults, complexDot, inaccurate("asin", 113), inaccurate("arcsin", 113), inaccurate("atan", 1849), inaccurate("arctan", 1849))

var torchFaults = []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "conv_transpose2d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(verdict.Value)},
	Reason:    "bfloat16 conv_transpose2d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose2d(x, w, stride=3) on shapes [1, 2, 7, 6] and [2, 2, 2, 2] gives [1, 2, 20, 17] in float32 and [1, 2, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose2d_out_cpu is not implemented for BFloat16",
}, {
	Reference: "torch 1.13",
	Target:    "conv_transpose1d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(verdict.Value)},
	Reason:    "bfloat16 conv_transpose1d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose1d(x, w, stride=3) on shapes [1, 2, 5] and [2, 2, 2] gives [1, 2, 14] in float32 and [1, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose1d_out_cpu is not implemented for BFloat16",
}, {
	Reference: "torch 1.13",
	Target:    "conv_transpose3d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(verdict.Value)},
	Reason:    "bfloat16 conv_transpose3d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose3d(x, w, stride=3) on shapes [1, 2, 5, 5, 5] and [2, 2, 2, 2, 2] gives [1, 2, 14, 14, 14] in float32 and [1, 2, 2, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose3d_out_cpu is not implemented for BFloat16",
}, {
	Reference: "torch",
	Target:    "polygamma",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(verdict.Value)},
	Reason:    "float64 polygamma(1, x) is trigamma's asymptotic series after six steps, cut after three terms: ten digits are right",
	Proof:     "torch.polygamma(1, torch.tensor(2.46, dtype=torch.float64)) differs from mpmath.psi(1, mpf(2.46)) by 1.5e-10, two million units in the last place",
}, {
	Reference: "torch 1.13",
	Target:    "batch_norm",
	Kinds:     []verdict.Kind{verdict.Kind(verdict.Grad)},
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
	Reference: "torch 1.13",
	Target:    "slice_scatter",
	Kinds:     []verdict.Kind{verdict.Exception},
	Reason:    "a src of another size than the slice is broadcast, which later versions refuse",
	Proof:     "torch.slice_scatter(torch.zeros(4), torch.ones(1), 0, 0, 2) is accepted; PyTorch 2 raises RuntimeError: expected src to have a size equal to the slice of self",
}}

// complexDot: the complex dot product of Debian's build is zero, whatever the
// arguments, in every operator that uses it.
var complexDot = each([]string{"matmul", "dot", "vdot", "inner", "tensordot", "einsum"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 1.13",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind(verdict.Value), verdict.Kind(verdict.Grad)},
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
		Kinds:     []verdict.Kind{verdict.Kind(verdict.Value)},
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
