package main

import (
	"plumb/tensor"
	"plumb/verdict"
)

// knownFaults are faults of references that were proved.
var knownFaults = []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "conv_transpose2d",
	DType:     tensor.BF16,
	Kinds:     []verdict.Kind{verdict.Exception, verdict.Kind("shape"), verdict.Kind(verdict.Value)},
	Reason:    "bfloat16 conv_transpose2d on CPU goes through a oneDNN path that runs the forward convolution: results have its shape, or its checks fail",
	Proof: "torch.nn.functional.conv_transpose2d(x, w, stride=3) on shapes [1, 2, 7, 6] and [2, 2, 2, 2] gives [1, 2, 20, 17] in float32 and [1, 2, 2, 2] in bfloat16; " +
		"under torch.backends.mkldnn.flags(enabled=False) it raises that slow_conv_transpose2d_out_cpu is not implemented for BFloat16",
}, {
	Reference: "torch",
	Target:    "polygamma",
	DType:     tensor.F64,
	Kinds:     []verdict.Kind{verdict.Kind(verdict.Value)},
	Reason:    "float64 polygamma(1, x) is trigamma's asymptotic series after six steps, cut after three terms: ten digits are right",
	Proof:     "torch.polygamma(1, torch.tensor(2.46, dtype=torch.float64)) differs from mpmath.psi(1, mpf(2.46)) by 1.5e-10, two million units in the last place",
}}
