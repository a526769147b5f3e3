package userop

import (
	"math"

	"plumb/api"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var leakyRelu = &op.Def{
	Sig:   "leaky_relu_yzh(Tensor x, float alpha=0.01) -> Tensor",
	Names: []string{"torch.nn.functional.leaky_relu(input, negative_slope)"},
	Doc:   "Leaky rectified linear unit: x for x > 0, alpha·x elsewhere.",
	Infer: func(a op.Args) ([]op.Meta, error) {
		x := a.Value("x")
		return []op.Meta{{DType: x.DType(), Shape: x.Shape(), Strides: ops.ResultStrides(x.Shape(), x)}}, nil
	},
	SBP: ops.ShardEachAxis,
	Kernels: []op.Kernel{{Name: "each", When: op.DTypeIn("x", tensor.F32, tensor.F64, tensor.BF16), Run: func(c *op.Run) error {
		x, y, alpha := c.Tensor("x"), c.Out[0], c.Float("alpha")
		for i := range y.Len() {
			v := x.Float(i)
			if !(v > 0) {
				v *= alpha
			}
			y.Set(i, complex(v, 0))
		}
		return nil
	}}},
	Grad: func(g *op.Grad) {
		positive := g.Op("gt", g.Value("x"), 0)
		g.To("x", func() op.Value { return g.Op("where", positive, g.G(), g.Mul(g.G(), g.Float("alpha"))) })
	},
	Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...), s.Float(0, 1)} },
	Exact: func(a op.Args) op.Truth {
		return op.InFloat64(func(x ...float64) float64 { return math.Max(x[0], 0) + a.Float("alpha")*math.Min(x[0], 0) })
	},
	Tol: op.Tol{Class: op.Pointwise, ULP: 1, Reason: "one product, rounded once"},
}

// LeakyReLU is the operator as a module.
type LeakyReLU struct{ Alpha float64 }

// Call applies the module.
func (m LeakyReLU) Call(x *api.Tensor) (*api.Tensor, error) {
	return LeakyReluYzh(x, LeakyReluYzhOptions{Alpha: &m.Alpha})
}
