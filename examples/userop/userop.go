// Package userop adds three operators to Plumb's from outside of its repository.
package userop

import (
	"math"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// Table has this package's operators before Plumb's own.
func Table() (*op.Table, error) {
	return op.NewTable(append([]*op.Def{leakyRelu, bent, peaks}, ops.All()...)...)
}

var leakyRelu = &op.Def{
	Sig:   "leaky_relu_yzh(Tensor x, float alpha=0.01) -> Tensor",
	Names: []string{"torch.nn.functional.leaky_relu(input, negative_slope)"},
	Doc:   "Leaky rectified linear unit: x for x > 0, alpha·x elsewhere.", Infer: like, SBP: ops.ShardEachAxis,
	Kernels: each(func(x float64, a op.Args) float64 {
		if x > 0 {
			return x
		}
		return x * a.Float("alpha")
	}),
	Grad: func(g *op.Grad) {
		positive := g.Op("gt", g.Value("x"), 0)
		g.To("x", func() op.Value { return g.Op("where", positive, g.G(), g.Mul(g.G(), g.Float("alpha"))) })
	},
	Sample: func(s *op.Sampler) []any { return []any{s.Distinct(s.Shape(0, 4)...), s.Float(0, 1)} },
	Tol:    op.Tol{Class: op.Pointwise, ULP: 1, Reason: "one product, rounded once"},
}

var bent = &op.Def{
	Sig: "bent_identity(Tensor x) -> Tensor",
	Doc: "Bent identity: (√(x² + 1) - 1)/2 + x. PyTorch has none.", Infer: like, SBP: ops.ShardEachAxis,
	Kernels: each(func(x float64, _ op.Args) float64 { return x*x/(math.Sqrt(x*x+1)+1)/2 + x }),
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

func each(f func(x float64, a op.Args) float64) []op.Kernel {
	run := func(c *op.Run) error {
		for i := range c.Out[0].Len() {
			c.Out[0].Set(i, complex(f(c.Tensor("x").Float(i), c.Args), 0))
		}
		return nil
	}
	return []op.Kernel{{When: op.DTypeIn("x", tensor.F32, tensor.F64, tensor.BF16), Run: run}}
}
