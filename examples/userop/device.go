package userop

import (
	"plumb/device/sim"
	"plumb/op"
	"plumb/tensor"
)

// onSim computes leaky_relu_yzh on the simulated device.
var onSim = op.Kernel{
	Name: "each on sim", Device: sim.Name, When: op.DTypeIn("x", tensor.F32, tensor.F64),
	Run: func(c *op.Run) error {
		return sim.Launch(c, leakyRelu.Kernels[0].Run) // of tensors whose elements are there
	},
}
