package gradcheck_test

import (
	"math/cmplx"
	"strings"
	"testing"

	"plumb/internal/gradcheck"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// rewrite changes an operator of the table into what it could wrongly be.
type rewrite func(d *op.Def)

// table returns the operators with some of them rewritten.
func table(t *testing.T, changes map[string]rewrite, more ...*op.Def) *op.Table {
	t.Helper()
	var defs []*op.Def
	for _, d := range ops.All() {
		copied := *d
		for id, change := range changes {
			if strings.HasPrefix(d.Sig, id+"(") {
				change(&copied)
			}
		}
		defs = append(defs, &copied)
	}
	tb, err := op.NewTable(append(defs, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// gradient replaces the gradient rule.
func gradient(rule func(g *op.Grad)) rewrite { return func(d *op.Def) { d.Grad = rule } }

var planted = []struct {
	name    string
	op      string
	plant   rewrite
	also    map[string]rewrite
	order   int // that finds it
	message string
}{
	{name: "a sign", op: "cos", order: 1, message: "by input (", plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Mul(g.G(), g.Op("sin", g.Value("input"))) })
	})},
	{name: "a factor of 2", op: "square", order: 1, plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Mul(g.G(), g.Op("conj", g.Value("input"))) })
	})},
	{name: "a gradient that is 1e-7 too large", op: "sin", order: 1, plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value {
			return g.Mul(g.G(), g.Mul(g.Op("conj", g.Op("cos", g.Value("input"))), 1+1e-7))
		})
	})},
	{name: "no gradient for the second argument", op: "mul", order: 1, message: "by other (", plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Mul(g.G(), g.Op("conj", g.Value("other"))) })
	})},
	{name: "a missing sum over a broadcast dimension", op: "mul", order: 1, plant: gradient(func(g *op.Grad) {
		part := func(to, factor op.TensorArg) {
			g.To(to, func() op.Value {
				v := g.Value(to)
				d := g.Mul(g.G(), g.Op("conj", g.Value(factor)))
				for i := range v.Shape() {
					at := len(d.Shape()) - len(v.Shape()) + i
					if v.Shape()[i] == 1 && d.Shape()[at] != 1 {
						d = g.Op("narrow", d, at, 0, 1) // the first instead of the sum
					}
				}
				return d
			})
		}
		part("input", "other")
		part("other", "input")
	})},
	{name: "a missing conjugate", op: "exp", order: 1, message: "complex128", plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Mul(g.G(), g.Out[0]) })
	})},
	{name: "the wrong result of several", op: "max.dim", order: 1, plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Mul(g.Value("input"), 0) })
	})},
	{name: "the wrong tensor of a list", op: "cat", order: 1, message: "by tensors[", plant: gradient(func(g *op.Grad) {
		vs := g.AllValues()
		g.ToValue(vs[0], func() op.Value { return g.Op("narrow", g.G(), g.Int("dim"), 0, vs[0].Shape()[g.Int("dim")]) })
	})},
	{name: "a second order without the argument", op: "tanh", order: 2, plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Op("frozen_tanh", g.G(), g.Value("input")) })
	})},
	{name: "a second order without the cotangent", op: "square", order: 2, message: "by the cotangent of result 0", plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Op("frozen_product", g.G(), g.Mul(g.Value("input"), 2)) })
	})},
	{name: "a rule that panics", op: "sin", order: 1, message: "the operator panicked: no such thing", plant: gradient(func(g *op.Grad) {
		panic("no such thing")
	})},
	{name: "a rule that fails", op: "sin", order: 1, message: "unknown operator cosine", plant: gradient(func(g *op.Grad) {
		g.To("input", func() op.Value { return g.Op("cosine", g.Value("input")) })
	})},
}

// frozen are operators with gradients that leave something out.
func frozen() []*op.Def {
	tol := op.Tol{Class: op.Pointwise, ULP: 1, Reason: "test"}
	like := func(a op.Args) ([]op.Meta, error) {
		v := a.Value("g")
		return []op.Meta{{DType: v.DType(), Shape: v.Shape()}}, nil
	}
	binary := func(f func(g, x complex128) complex128) []op.Kernel {
		return []op.Kernel{{Name: "test", Run: func(c *op.Run) error {
			g, x := c.Value("g").(*tensor.Tensor), c.Value("x").(*tensor.Tensor)
			for i := range g.Len() {
				c.Out[0].Set(i, f(g.At(i), x.At(i)))
			}
			return nil
		}}}
	}
	only := tensorsOf(tensor.F64)
	return []*op.Def{
		{
			Sig: "frozen_tanh(Tensor g, Tensor x) -> Tensor", Infer: like, Tol: tol, Reject: only,
			Kernels: binary(func(g, x complex128) complex128 { return g * (1 - tanh(x)*tanh(x)) }),
			Grad: func(g *op.Grad) {
				g.To("g", func() op.Value {
					y := g.Op("tanh", g.Value("x"))
					return g.Mul(g.G(), g.Sub(1.0, g.Mul(y, y)))
				})
			},
		},
		{
			Sig: "frozen_product(Tensor g, Tensor x) -> Tensor", Infer: like, Tol: tol, Reject: only,
			Kernels: binary(func(g, x complex128) complex128 { return g * x }),
			Grad: func(g *op.Grad) {
				g.To("x", func() op.Value { return g.Mul(g.G(), g.Value("g")) })
			},
		},
	}
}

func TestPlantedGradientsAreFound(t *testing.T) {
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sound, tb := table(t, nil), table(t, map[string]rewrite{p.op: p.plant}, frozen()...)
			if r := gradcheck.Check(sound, sound.Def(p.op), gradcheck.Options{}); len(r.Findings) > 0 || r.Orders[0].Checked == 0 {
				t.Fatalf("without the defect: %v", &r.Findings[0])
			}
			r := gradcheck.Check(tb, tb.Def(p.op), gradcheck.Options{})
			if len(r.Findings) == 0 {
				t.Fatal("not found")
			}
			f := &r.Findings[0]
			if f.Order != p.order || !strings.Contains(f.String(), p.message) {
				t.Errorf("found as: %v", f)
			}
			text := f.Program.String()
			parsed, err := program.Parse("finding", text)
			if err != nil || parsed.Validate() != nil || len(parsed.Backward) == 0 {
				t.Errorf("the finding's program is none: %v\n%s", err, text)
			}
		})
	}
}

func tanh(x complex128) complex128 { return cmplx.Tanh(x) }

// tensorsOf refuses tensors of other dtypes.
func tensorsOf(dt tensor.DType) func(a op.Args) error {
	return func(a op.Args) error {
		for _, v := range a.AllValues() {
			if v.DType() != dt {
				return op.RuntimeError("want %s", dt)
			}
		}
		return nil
	}
}

// step has a kink at 0.1, a jump at 0.2 and is smooth elsewhere.
func step(x float64) float64 {
	switch {
	case x < 0.1:
		return x * x
	case x < 0.2:
		return 0.01 - (x - 0.1)
	}
	return 3 + x*x*x
}

// TestKinksAreSkipped: at kinks and jumps, and within a step of them, no
// gradient is right; elsewhere each is checked.
func TestKinksAreSkipped(t *testing.T) {
	h := 0x1p-13
	var at []float64
	for _, kink := range []float64{0.1, 0.2} {
		for _, d := range []float64{0, 0.01, 0.1, 1. / 3, 0.49} {
			at = append(at, kink+d*h, kink-d*h)
		}
	}
	smooth := []float64{0, 0.05, 0.1 - 1.01*h, 0.1 + 1.01*h, 0.15, 0.2 + 1.01*h, 0.5, -3}
	tb, d := piecewise(t, func(x float64) float64 {
		switch {
		case x < 0.1:
			return 2 * x
		case x < 0.2:
			return -1
		}
		return 3 * x * x
	}, append(at, smooth...))
	r := gradcheck.Check(tb, d, gradcheck.Options{Calls: len(at) + len(smooth)})
	for _, f := range r.Findings {
		if f.Order == 1 {
			t.Error(&f)
		}
	}
	if o := r.Orders[0]; o.Kinks != len(at) || o.Checked != len(smooth) {
		t.Errorf("%d skipped, %d checked; want %d and %d", o.Kinks, o.Checked, len(at), len(smooth))
	}
	tb, d = piecewise(t, func(x float64) float64 { return 0 }, smooth)
	r = gradcheck.Check(tb, d, gradcheck.Options{Calls: len(smooth)})
	if len(r.Findings) != len(smooth)-1 {
		t.Errorf("a gradient of 0 is found at %d points of %d where it is wrong", len(r.Findings), len(smooth)-1)
	}
}

// piecewise returns a table with the function step, one of the points after
// the other for a sample.
func piecewise(t *testing.T, slope func(float64) float64, points []float64) (*op.Table, *op.Def) {
	apply := func(f func(float64) float64) []op.Kernel {
		return []op.Kernel{{Name: "test", Run: func(c *op.Run) error {
			c.Out[0].Set(0, complex(f(c.Value("x").(*tensor.Tensor).Float(0)), 0))
			return nil
		}}}
	}
	one := func(a op.Args) ([]op.Meta, error) { return []op.Meta{{DType: tensor.F64}}, nil }
	tol := op.Tol{Class: op.Pointwise, ULP: 1, Reason: "test"}
	next := 0
	d := &op.Def{
		Sig: "step(Tensor x) -> Tensor", Infer: one, Reject: tensorsOf(tensor.F64), Tol: tol, Kernels: apply(step),
		Grad: func(g *op.Grad) {
			g.To("x", func() op.Value { return g.Mul(g.G(), g.Op("step_slope", g.Value("x"))) })
		},
		Sample: func(s *op.Sampler) []any {
			x := points[next%len(points)]
			if s.DType == tensor.F64 {
				next++
			}
			return []any{tensor.Scalar(s.DType, complex(x, 0))}
		},
	}
	tb := table(t, nil, d, &op.Def{Sig: "step_slope(Tensor x) -> Tensor", Infer: one, Tol: tol, Traits: op.NoGrad, Kernels: apply(slope)})
	return tb, d
}
