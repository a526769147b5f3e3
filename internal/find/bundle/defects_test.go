package bundle_test

import (
	"math"

	"plumb/internal/judge/verdict"
	"plumb/internal/mutants"
	"plumb/op"
	"plumb/tensor"
)

// defect is one that a program shows.
type defect struct {
	name  string
	text  string
	plant func(map[string]*op.Def)
	word  verdict.Word
	kind  verdict.Kind
}

var defects = []defect{
	{"value", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
y = torch.tanh(x)
`, after("tanh", first(plus1)), verdict.Misaligned, "value"},
	{"pointwise ulp", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
y = torch.exp(x)
`, after("exp", first(func(v complex128) complex128 { return v * (1 + 1e-5) })), verdict.Misaligned, "value"},
	{"accumulating", `
x = tensor((2, 3), torch.float32, uniform(-1.0, 1.0, key=5))
z = tensor((3, 4), torch.float32, uniform(-1.0, 1.0, key=6))
y = x @ z
`, after("matmul", first(func(v complex128) complex128 { return v * (1 + 1e-4) })), verdict.Misaligned, "value"},
	{"large accumulating", `
x = tensor((20, 30), torch.float32, uniform(-1.0, 1.0, key=5))
z = tensor((30, 20), torch.float32, uniform(-1.0, 1.0, key=6))
y = x @ z
`, after("matmul", first(func(v complex128) complex128 { return v + 1e-3 })), verdict.Misaligned, "value"},
	{"explicit tolerance", `
case("t", seed=1, rtol=0.001, atol=0.01)
x = tensor((3,), torch.float32, [1.0, 2.5, -3.1])
y = torch.tanh(x)
`, after("tanh", first(plus1)), verdict.Misaligned, "value"},
	{"gradient", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0], requires_grad=True)
y = torch.tanh(x)
z = y * 3
z.backward(uniform(-1.0, 1.0, key=9), auto=True)
`, doubled("tanh", "input"), verdict.Misaligned, "grad"},
	{"gradient of two", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0], requires_grad=True)
y = torch.tanh(x)
z = y.sum()
y.backward(uniform(-1.0, 1.0, key=9))
z.backward()
`, doubled("tanh", "input"), verdict.Misaligned, "grad"},
	{"parameter gradient", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
m = torch.nn.Linear(3, 2)
y = m(x)
z = torch.tanh(y)
z.backward(uniform(-1.0, 1.0, key=9))
`, doubled("tanh", "input"), verdict.Misaligned, "param_grad"},
	{"module in float64", `
case("t", seed=5, dtype=torch.float64)
x = tensor((2, 3), torch.float64, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
m = torch.nn.Linear(3, 2)
n = torch.nn.Sequential(m)
y = n(x)
z = torch.tanh(y)
z.backward(uniform(-1.0, 1.0, key=9))
`, doubled("tanh", "input"), verdict.Misaligned, "param_grad"},
	{"input that is written into", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
y = torch.tanh(x)
`, after("tanh", func(c *op.Run) { c.Tensor("input").Set(1, 7) }), verdict.Misaligned, "change"},
	{"change in place", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
v = x[0]
y = operator.setitem(x, 0, 3.0)
`, after("full_like", first(plus1)), verdict.Misaligned, "change"},
	{"gradient of the second order", `
case("t", seed=5, second=uniform(0.0, 1.0, key=12))
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0], requires_grad=True)
y = torch.tanh(x)
y.backward(uniform(-1.0, 1.0, key=9), auto=True)
`, func(defs map[string]*op.Def) {
		defs["tanh"].Grad = func(g *op.Grad) {
			g.To("input", func() op.Value {
				y := g.Op("detach", g.Op("tanh", g.Value("input")))
				return g.Mul(g.G(), g.Op("sub", 1, g.Mul(y, y)))
			})
		}
	}, verdict.Misaligned, "grad2"},
	{"buffer", `
x = tensor((4, 3), torch.float32, uniform(0.0, 1.0, key=2))
m = torch.nn.BatchNorm1d(3)
y = m(x)
`, after("add", first(plus1)), verdict.Misaligned, "state"},
	{"dtype", `
x = tensor((2,), torch.float64, [1.0, 2.5])
y = torch.sigmoid(x)
`, func(defs map[string]*op.Def) {
		d := defs["sigmoid"]
		infer := d.Infer
		d.Infer = func(a op.Args) ([]op.Meta, error) {
			out, err := infer(a)
			out[0].DType = tensor.F32
			return out, err
		}
		for i := range d.Kernels {
			d.Kernels[i].Run = func(*op.Run) error { return nil }
		}
	}, verdict.Misaligned, "dtype"},
	{"shape", `
x = tensor((2,), torch.float32, [1.0, 2.5])
y = torch.tanh(x)
`, func(defs map[string]*op.Def) {
		d := defs["tanh"]
		d.Infer = func(a op.Args) ([]op.Meta, error) { return []op.Meta{{DType: tensor.F32, Shape: []int{1, 2}}}, nil }
		for i := range d.Kernels {
			d.Kernels[i].Run = func(*op.Run) error { return nil }
		}
	}, verdict.Misaligned, "shape"},
	{"exception", `
x = tensor((), torch.float32, [1.0])
y = torch.sum(x)
`, func(defs map[string]*op.Def) {
		defs["sum"].Reject = func(op.Args) error { return op.RuntimeError("expected a tensor with dimensions") }
	}, verdict.Misaligned, "exception"},
	{"no exception", `
x = tensor((2, 3), torch.float32, uniform(0.0, 1.0, key=1))
y = torch.softmax(x, 5)
`, func(defs map[string]*op.Def) {
		d := defs["softmax"]
		d.Reject, d.Infer = nil, func(a op.Args) ([]op.Meta, error) { return []op.Meta{{DType: tensor.F32, Shape: []int{2, 3}}}, nil }
		for i := range d.Kernels {
			d.Kernels[i].Run = func(*op.Run) error { return nil }
		}
	}, verdict.Misaligned, "exception"},
	{"class of the exception", `
x = tensor((2, 3), torch.float32, uniform(0.0, 1.0, key=1))
y = torch.softmax(x, 5)
`, func(defs map[string]*op.Def) {
		defs["softmax"].Reject = func(op.Args) error { return op.TypeError("no") }
	}, verdict.Misaligned, "exception"},
	{"crash", `
x = tensor((2, 3), torch.float32, uniform(0.0, 1.0, key=1))
y = torch.softmax(x, 1)
`, func(defs map[string]*op.Def) {
		for i := range defs["softmax"].Kernels {
			defs["softmax"].Kernels[i].Run = func(c *op.Run) error { panic("planted") }
		}
	}, verdict.Crash, ""},
	{"complex", `
x = tensor((3,), torch.complex64, [complex(1.0, -0.0), complex(0.1, float("inf")), complex(2.0, 3.0)])
y = x * 2
`, after("mul", func(c *op.Run) { c.Out[0].Set(2, c.Out[0].At(2)+1i) }), verdict.Misaligned, "value"},
	{"complex128 gradient", `
x = tensor((2,), torch.complex128, [complex(1.0, -0.5), complex(0.1, 0.2)], requires_grad=True)
y = torch.tanh(x)
y.backward(uniform(-1.0, 1.0, key=9))
`, doubled("tanh", "input"), verdict.Misaligned, "grad"},
	{"bool", `
x = tensor((3,), torch.float32, [1.0, 2.0, 3.0])
y = x > 1.5
`, after("gt", first(func(v complex128) complex128 { return 1 - v })), verdict.Misaligned, "value"},
	{"int64", `
x = tensor((3,), torch.int64, [9223372036854775807, -9223372036854775808, 3])
y = torch.neg(x)
`, after("neg", func(c *op.Run) { c.Out[0].SetInt(2, 4) }), verdict.Misaligned, "value"},
	{"float16", `
x = tensor((3,), torch.float16, [1.0, 0.10009765625, 65504.0])
y = torch.neg(x)
`, after("neg", first(plus1)), verdict.Misaligned, "value"},
	{"bfloat16", `
x = tensor((3,), torch.bfloat16, [1.0, 0.10009765625, 3e38])
y = torch.exp(x)
`, after("exp", first(plus1)), verdict.Misaligned, "value"},
	{"strides", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0], strides=(1, 4))
y = torch.neg(x)
`, after("neg", func(c *op.Run) {
		if !c.Tensor("input").IsContiguous() {
			c.Out[0].Set(0, 77)
		}
	}), verdict.Misaligned, "value"},
	{"overlapping strides", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, 4.0, 1.0, 2.5, 4.0], strides=(0, 1), requires_grad=True)
y = torch.neg(x)
`, after("neg", func(c *op.Run) { c.Out[0].Set(0, 77) }), verdict.Misaligned, "value"},
	{"large and strided", `
x = tensor((20, 30), torch.float32, uniform(-1.0, 1.0, key=4), strides=(1, 20))
y = torch.neg(x)
`, after("neg", func(c *op.Run) { c.Out[0].Set(5, 77) }), verdict.Misaligned, "value"},
	{"not finite", `
x = tensor((5,), torch.float32, [float("nan"), float("inf"), float("-inf"), -0.0, 1.0])
y = torch.neg(x)
`, after("neg", func(c *op.Run) { c.Out[0].Set(0, 1) }), verdict.Misaligned, "value"},
	{"finite for infinity", `
x = tensor((5,), torch.float32, [float("nan"), float("inf"), float("-inf"), -0.0, 1.0])
y = torch.abs(x)
`, after("abs", func(c *op.Run) { c.Out[0].Set(1, 1) }), verdict.Misaligned, "value"},
	{"sign of zero", `
x = tensor((2,), torch.float32, [-0.0, 1.0])
y = torch.neg(x)
`, after("neg", first(func(complex128) complex128 { return complex(math.Copysign(0, -1), 0) })), verdict.Misaligned, "value"},
	{"tuple", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
y = torch.max(x, 1)
v = y[0]
`, after("max.dim", func(c *op.Run) { c.Out[1].SetInt(1, 0) }), verdict.Misaligned, "value"},
	{"in place", `
x = tensor((2, 3), torch.float32, [1.0, 2.5, -3.1, 0.1, 5.0, 6.0])
y = x[0]
z = y.add_(1.0)
w = torch.neg(x)
`, after("neg", first(plus1)), verdict.Misaligned, "value"},
	{"shape changed in place", `
x = tensor((4, 3), torch.float32, uniform(0.5, 1.0, key=3), requires_grad=True)
u = x * 2
y = u.t_()
w = torch.tanh(u)
u.backward(uniform(0.5, 1.0, key=4))
w.backward(uniform(0.5, 1.0, key=9))
`, doubled("tanh", "input"), verdict.Misaligned, "grad"},
	{"detached in place", `
x = tensor((4, 3), torch.float32, uniform(0.5, 1.0, key=3), requires_grad=True)
u = x * 2
w = torch.tanh(u)
v = u.detach_()
t = v.add_(1)
t.backward(uniform(0.5, 1.0, key=4), auto=True)
w.backward(uniform(0.5, 1.0, key=9), auto=True)
`, doubled("tanh", "input"), verdict.Misaligned, "grad"},
	{"index", `
x = tensor((2, 3), torch.float32, [1.0, 2.0, -3.0, 4.0, 5.0, 6.0])
i = tensor((2,), torch.int64, [1, 0])
y = x[:, 0:2]
u = y[i]
w = -2.0 ** u
`, after("pow", first(plus1)), verdict.Misaligned, "value"},
	{"bool value", `
x = tensor((), torch.float32, [2.5])
y = torch.neg(x)
z = torch.allclose(y, x)
`, after("allclose", first(func(v complex128) complex128 { return 1 - v })), verdict.Misaligned, "value"},
	{"zero size", `
x = tensor((0, 3), torch.float32, [])
y = torch.sum(x, 0)
`, after("sum", first(plus1)), verdict.Misaligned, "value"},
	{"second order", `
case("t", seed=1, second=uniform(0.5, 1.0, key=11))
x = tensor((3,), torch.float32, [0.5, 1.0, 2.0], requires_grad=True)
y = torch.sin(x)
y.backward(uniform(0.5, 1.0, key=9))
`, doubled("cos", "input"), verdict.Misaligned, "grad2"},
	{"second order of a parameter", `
case("t", seed=1, second=uniform(0.5, 1.0, key=11))
x = tensor((2, 3), torch.float32, uniform(0.5, 1.0, key=3), requires_grad=True)
m = torch.nn.Linear(3, 2)
u = m(x)
y = torch.sin(u)
y.backward(uniform(0.5, 1.0, key=9))
`, doubled("cos", "input"), verdict.Misaligned, "grad2"},
	{"optimizer's step", `
case("t", seed=1, sgd=(0.5, 0.9))
x = tensor((2, 3), torch.float32, uniform(0.5, 1.0, key=3), requires_grad=True)
m = torch.nn.Linear(3, 2)
y = m(x)
y.backward(uniform(0.5, 1.0, key=9))
`, func(defs map[string]*op.Def) {
		mutants.RewriteArgs(defs["sgd.update"], func(a op.Args) op.Args { return mutants.With(a, op.AnyArg("lr"), op.ScalarOf(0.25)) })
	}, verdict.Misaligned, "step"},
	{"requires_grad", `
x = tensor((2,), torch.float32, [1.0, 2.0], requires_grad=True)
y = torch.neg(x)
`, func(defs map[string]*op.Def) { defs["neg"].Grad = nil; defs["neg"].Traits |= op.NoGrad }, verdict.Misaligned, "requires_grad"},
}
