package main

import (
	"plumb/tensor"
	"plumb/verdict"
)

// knownFaults are faults of references that were proved.
var knownFaults = append([]verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "conv_transpose2d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(verdict.Value)},
	Reason:    "bfloat16 conv_transpose2d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose2d(x, w, stride=3) on shapes [1, 2, 7, 6] and [2, 2, 2, 2] gives [1, 2, 20, 17] in float32 and [1, 2, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose2d_out_cpu is not implemented for BFloat16",
}}, complexDots()...)

// complexDots are the products of complex vectors, which a build of PyTorch
// gets wrong whose BLAS returns complex numbers by another convention.
func complexDots() []verdict.KnownFault {
	var faults []verdict.KnownFault
	for _, d := range []tensor.DType{tensor.C64, tensor.C128} {
		for _, target := range []string{"dot", "vdot", "matmul"} {
			faults = append(faults, verdict.KnownFault{
				Reference: "torch 1.13",
				Target:    target,
				DType:     d,
				Kinds:     []verdict.Kind{verdict.Kind(verdict.Value)},
				Reason:    "a product of two complex vectors is 0 where the BLAS returns complex numbers through a hidden argument and PyTorch was built for the other convention",
				Proof:     "torch.dot(x, y) is 0 for x = [1+2j, 3-1j] and y = [2-1j, 1+1j], whereas (x * y).sum() and torch.inner(x, y) are 8+5j",
			})
		}
	}
	return faults
}
