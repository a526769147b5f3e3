package userop

import (
	"math"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var bent = &op.Def{
	Sig: "bent_identity(Tensor x) -> Tensor",
	Doc: "Bent identity: (√(x² + 1) - 1)/2 + x. PyTorch has none.", Infer: like, SBP: ops.ShardEachAxis,
	Kernels: each(func(x float64) float64 { return x*x/(math.Sqrt(x*x+1)+1)/2 + x }),
	Grad: func(g *op.Grad) {
		x := g.Value("x")
		g.To("x", func() op.Value { return g.Mul(g.G(), g.Add(g.Mul(g.Op("sin", g.Op("atan", x)), 0.5), 1)) })
	},
	Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-3, 3, s.Shape(0, 4)...)} },
	Exact: func(op.Args) op.Truth {
		return op.InFloat64(func(x ...float64) float64 { return x[0]*math.Tan(math.Atan(x[0])/2)/2 + x[0] })
	},
	Tol: op.Tol{Class: op.Pointwise, ULP: 4, Reason: "six roundings of positive terms"},
}

func like(a op.Args) ([]op.Meta, error) {
	x := a.Value("x")
	return []op.Meta{{DType: x.DType(), Shape: x.Shape(), Strides: ops.ResultStrides(x.Shape(), x)}}, nil
}

func each(f func(x float64) float64) []op.Kernel {
	run := func(c *op.Run) error {
		for i := range c.Out[0].Len() {
			c.Out[0].Set(i, complex(f(c.Tensor("x").Float(i)), 0))
		}
		return nil
	}
	return []op.Kernel{{Name: "each", When: op.DTypeIn("x", tensor.F32, tensor.F64, tensor.BF16), Run: run}}
}
