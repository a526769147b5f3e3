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
}}
