package opcheck_test

import (
	"plumb/op"
	"plumb/tensor"
)

// listed takes a list of each kind that there is: ±x·2ⁿ + Σ weight·addend + Σ shift.
func listed() *op.Def {
	return &op.Def{
		Sig: "listed(Tensor x, Tensor?[] addends, Scalar[] weights, bool[] skip, *, str[] modes=['plain'], dtype[]? shifted=None, float[] shifts=[0.5]) -> Tensor",
		Doc: "A sum of scaled tensors.", NotSplittable: "the test says so",
		OneOf: map[op.StrArg][]string{"modes": {"plain", "double", "negate"}},
		Tol:   op.Tol{Class: op.Accumulating, Terms: func(a op.Args) int { return 3 + len(a.Values("addends")) }, Reason: "a sum"},
		Infer: func(a op.Args) ([]op.Meta, error) {
			if n := len(a.Values("addends")); n != len(a.Scalars("weights")) || n != len(a.Bools("skip")) {
				return nil, op.RuntimeError("argument 'weights' and argument 'skip' have an entry for each of 'addends', %d", n)
			}
			for _, v := range a.AllValues()[1:] {
				if v.DType() != a.Value("x").DType() || len(v.Shape()) != len(a.Value("x").Shape()) {
					return nil, op.RuntimeError("argument 'addends' has to be like 'x'")
				}
				for i, n := range v.Shape() {
					if n != a.Value("x").Shape()[i] {
						return nil, op.RuntimeError("argument 'addends' has to have the shape of 'x'")
					}
				}
			}
			return like(a)
		},
		Kernels: []op.Kernel{{Name: "all", When: op.DTypeIn("x", float...), Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				v := c.Tensor("x").Float(i) * factor(c.Args)
				for k, t := range c.Tensors("addends") {
					if t != nil && !c.Bools("skip")[k] {
						v += t.Float(i) * c.Scalars("weights")[k].Float()
					}
				}
				c.Out[0].Set(i, complex(v+shift(c.Args), 0))
			}
			return nil
		}}},
		Grad: func(g *op.Grad) {
			g.To("x", func() op.Value { return g.Mul(g.G(), factor(g.Args)) })
			for k, v := range g.Values("addends") {
				if v != nil && !g.Bools("skip")[k] {
					g.ToValue(v, func() op.Value { return g.Mul(g.G(), g.Scalars("weights")[k].Float()) })
				}
			}
		},
		Formula: func(b op.Builder, a op.Args) []op.Value {
			sum := b.Mul(a.Value("x"), factor(a))
			for k, v := range a.Values("addends") {
				if v != nil && !a.Bools("skip")[k] {
					sum = b.Add(sum, b.Mul(v, a.Scalars("weights")[k].Float()))
				}
			}
			return []op.Value{b.Add(sum, shift(a))}
		},
		Sample: func(s *op.Sampler) []any {
			shape := s.Shape(0, 3)
			n := s.Index(3)
			addends, weights, skip := []any{}, []any{}, []any{}
			for range n {
				var addend any
				if s.Index(4) > 0 {
					addend = s.Distinct(shape...)
				}
				addends, weights = append(addends, addend), append(weights, []any{s.Float(0.5, 2), int(s.Int(1, 4))}[s.Index(2)])
				skip = append(skip, s.Index(4) == 0)
			}
			args := []any{s.Distinct(shape...), addends, weights, skip}
			if s.Bool() {
				args = append(args, op.Kw("modes", []any{"double", "negate", "plain"}[s.Index(3):]))
			}
			if s.Bool() {
				args = append(args, op.Kw("shifted", []any{tensor.F32, tensor.F64}[s.Index(3):]))
			}
			if s.Bool() {
				args = append(args, op.Kw("shifts", []any{s.Float(1, 2), s.Float(-2, -1)}[:s.Index(3)]))
			}
			return args
		},
	}
}

func factor(a op.Args) float64 {
	f := 1.0
	for _, mode := range a.Strs("modes") {
		f *= map[string]float64{"plain": 1, "double": 2, "negate": -1}[mode]
	}
	return f
}

// shift is the sum of shifts, where float32 is one of the dtypes that are shifted.
func shift(a op.Args) (sum float64) {
	for _, d := range a.DTypes("shifted") {
		if d == tensor.F32 {
			for _, f := range a.Floats("shifts") {
				sum += f
			}
			break
		}
	}
	return sum
}
