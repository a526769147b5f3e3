package graph

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/optim"
	"plumb/tensor"
)

// lines returns what marks of this file stand for: <name> for the line that
// ends in // <name>.
func lines(t *testing.T) *strings.Replacer {
	t.Helper()
	text, err := os.ReadFile("errors_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for i, line := range strings.Split(string(text), "\n") {
		if _, mark, ok := strings.Cut(line, " // <"); ok && strings.HasSuffix(mark, ">") {
			pairs = append(pairs, "<"+mark, fmt.Sprintf("errors_test.go:%d", i+1))
		}
	}
	return strings.NewReplacer(pairs...)
}

// fussyTable has an operator whose gradient fails: while it is recorded, or
// when it runs.
func fussyTable(t *testing.T) *op.Table {
	t.Helper()
	var defs []*op.Def
	for _, d := range ops.All() {
		c := *d
		defs = append(defs, &c)
	}
	table, err := op.NewTable(append(defs, &op.Def{
		Sig:    "fussy(Tensor input, bool late=False) -> Tensor",
		Doc:    "Its argument; without a gradient.",
		Tol:    op.Tol{Class: op.Exact, Reason: "test"},
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(0, 1, 2)} },
		Infer: func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("input").DType(), Shape: a.Value("input").Shape()}}, nil
		},
		Kernels: []op.Kernel{{Name: "any", Run: func(c *op.Run) error { c.Out[0].CopyFrom(c.Tensor("input")); return nil }}},
		Grad: func(g *op.Grad) {
			g.To("input", func() op.Value {
				if g.Args.Bool("late") {
					return g.Op("index_select", g.G(), 0, tensor.Float64s(tensor.I64, []int{2}, 0, 9))
				}
				return g.Reshape(g.G(), []int{7})
			})
		},
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestErrorMessages: every error of a graph names the call, its line, the dtypes and
// shapes, what is differentiated and the pass.
func TestErrorMessages(t *testing.T) {
	table := fussyTable(t)
	x := tensor.Float64s(tensor.F32, []int{2, 3}, 1, 2, 3, 4, 5, 6)
	two := tensor.Float64s(tensor.F32, []int{2}, 1, 2)
	ints := tensor.Float64s(tensor.I64, []int{2}, 1, 0)
	far := tensor.Float64s(tensor.I64, []int{2}, 0, 9)
	gradient := func(b *Builder, y op.Value, x ...op.Value) []op.Value {
		grads, err := b.Grads([]op.Value{b.Op("sum", y)}, []op.Value{nil}, x) // <gradient>
		if err != nil {
			op.Fail(err)
		}
		return grads
	}
	drop := func(c *Code) (int, error) {
		for i, n := range c.Nodes {
			if n.op() == "exp" {
				c.Nodes = append(c.Nodes[:i:i], c.Nodes[i+1:]...)
				return 1, nil
			}
		}
		return 0, nil
	}
	for _, c := range []struct {
		what   string
		f      Func
		inputs []*tensor.Tensor
		o      Options
		want   string
	}{
		{"a call that is refused while it is recorded", func(b *Builder, x ...op.Value) []op.Value {
			return []op.Value{b.Op("matmul", x[0], b.Neg(x[0]))} // <refused>
		}, []*tensor.Tensor{x}, Options{}, "graph g: <refused>: matmul(float32[2, 3], float32[2, 3]): matmul: "},
		{"a composition that is refused", func(b *Builder, x ...op.Value) []op.Value {
			return []op.Value{b.Op("tensordot", x[0], x[0], 1)} // <composed>
		}, []*tensor.Tensor{x}, Options{}, "graph g: <composed>: tensordot(float32[2, 3], float32[2, 3]): "},
		{"a call that cannot be captured", func(b *Builder, x ...op.Value) []op.Value {
			return []op.Value{b.Op("nonzero", x[0])} // <captured>
		}, []*tensor.Tensor{x}, Options{}, "graph g: <captured>: nonzero(float32[2, 3]): nonzero cannot be captured in a graph: the shape of its result depends on elements"},
		{"a call that fails when it runs", func(b *Builder, x ...op.Value) []op.Value {
			return []op.Value{b.Op("index_select", x[0], 0, x[1])} // <late>
		}, []*tensor.Tensor{two, far}, Options{}, "graph g: <late>: index_select(float32[2], int64[2]): index_select: "},
		{"a gradient that cannot be recorded", func(b *Builder, x ...op.Value) []op.Value {
			y := b.Op("fussy", b.Op("exp", x[0])) // <forward>
			return gradient(b, y, x[0])
		}, []*tensor.Tensor{two}, Options{}, "graph g: <backward>: gradient of fussy(float32[2]) at <forward>: reshape(float32[2]): shape '[7]' is invalid for input of size 2"},
		{"a gradient that fails when it runs", func(b *Builder, x ...op.Value) []op.Value {
			y := b.Op("fussy", x[0], true) // <forward late>
			return gradient(b, y, x[0])
		}, []*tensor.Tensor{two}, Options{}, "graph g: <backward>: gradient of fussy(float32[2]) at <forward late>: index_select(float32[2], int64[2]): index_select: "},
		{"a call in a fused loop", func(b *Builder, x ...op.Value) []op.Value {
			y := b.Op("floor_divide", b.Neg(x[0]), x[0]) // <fused>
			return []op.Value{b.Neg(y)}
		}, []*tensor.Tensor{ints}, Options{}, "graph g: pass fuse: <fused>: floor_divide(int64[2], int64[2]): "},
		{"a pass that loses a node", func(b *Builder, x ...op.Value) []op.Value {
			return []op.Value{b.Op("sum", b.Op("exp", x[0]))} // <lost>
		}, []*tensor.Tensor{x}, Options{Passes: []Pass{{Name: "drop", Run: drop}}}, "graph g: pass drop: <lost>: sum(float32[2, 3]): it reads a value, %1, that is not made before"},
		{"a pass that changes a result", func(b *Builder, x ...op.Value) []op.Value {
			return []op.Value{b.Op("sum", b.Op("exp", x[0]))} // <changed>
		}, []*tensor.Tensor{x}, Options{Passes: []Pass{{Name: "change", Run: func(c *Code) (int, error) {
			c.Outputs[0] = c.Nodes[1].Out[0]
			return 1, nil
		}}}}, "graph g: pass change: <changed>: exp(float32[2, 3]): output 0 was float32[] and is float32[2, 3]"},
		{"a loss of several elements", func(b *Builder, x ...op.Value) []op.Value {
			b.Backward(x[0])
			return nil
		}, []*tensor.Tensor{x}, Options{}, "graph g: Backward needs an optimizer: see Graph.AddOptimizer"},
	} {
		_, err := New(table, "g", c.f, c.o).Run(c.inputs...)
		want := lines(t).Replace(strings.ReplaceAll(c.want, "<backward>", "<gradient>"))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", c.what, err, want)
		}
	}
}

// TestTrainingErrors: what a training graph refuses.
func TestTrainingErrors(t *testing.T) {
	x := tensor.Float64s(tensor.F32, []int{3}, 1, 2, 3)
	square := func(b *Builder, p *optim.Param, x op.Value) op.Value {
		return b.Op("sum", b.Mul(p.Value, x))
	}
	for _, c := range []struct {
		what  string
		f     func(b *Builder, p *optim.Param, x op.Value)
		parts int
		late  bool
		want  string
	}{
		{"no Backward", func(b *Builder, p *optim.Param, x op.Value) {}, 1, false, "graph g: there is an optimizer, but the function does not call Builder.Backward"},
		{"several elements", func(b *Builder, p *optim.Param, x op.Value) { b.Backward(b.Mul(p.Value, x)) }, 1, false, "graph g: grad can be implicitly created only for scalar outputs, not for float32[3]"},
		{"independent", func(b *Builder, p *optim.Param, x op.Value) { b.Backward(b.Op("sum", x)) }, 1, false, "graph g: no parameter of SGD has a gradient: the loss does not depend on them"},
		{"indivisible", func(b *Builder, p *optim.Param, x op.Value) { b.Backward(square(b, p, x)) }, 2, false, "graph g: input x0, float32[3], cannot be split along its first dimension into 2 micro-batches of equal size"},
		{"an update that is refused", func(b *Builder, p *optim.Param, x op.Value) { b.Backward(square(b, p, x)) }, 1, true, "graph g: parameter w: update by SGD: sgd.update(float32[3], float32[2], float64[]): sgd.update: argument 'grad' must be float32[3]"},
	} {
		p := &optim.Param{Name: "w", Value: tensor.Float64s(tensor.F32, []int{3}, 1, 1, 1)}
		o, err := optim.Lookup("SGD").New([]*optim.Param{p}, nil, op.Kw("lr", 0.1))
		if err != nil {
			t.Fatal(err)
		}
		g := New(ops.Table(), "g", func(b *Builder, x ...op.Value) []op.Value {
			c.f(b, p, x[0])
			return nil
		}, Options{})
		if err := g.AddOptimizer(o, nil); err != nil {
			t.Fatal(err)
		}
		if err := g.Accumulate(c.parts); err != nil {
			t.Fatal(err)
		}
		if c.late {
			g.BeforeUpdate(func(b op.Builder, ps []*optim.Param) error {
				ps[0].Grad = b.Op("narrow", ps[0].Grad, 0, 0, 2)
				return nil
			})
		}
		before := p.Value
		if _, err := g.Run(x); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.what, err, c.want)
		}
		if p.Value != before {
			t.Errorf("%s: the parameter is %v", c.what, p.Value)
		}
	}
	p := &optim.Param{Name: "w", Value: NewBuilder(ops.Table(), "b").Input("w", op.Meta{DType: tensor.F32, Shape: []int{1}})}
	o, err := optim.Lookup("SGD").New([]*optim.Param{p}, nil, op.Kw("lr", 0.1))
	if err != nil {
		t.Fatal(err)
	}
	g := New(ops.Table(), "g", nil, Options{})
	if err := g.AddOptimizer(o, nil); err == nil || err.Error() != "graph g: parameter w of SGD is *graph.Value, not a computed tensor" {
		t.Error(err)
	}
	if err := g.Accumulate(0); err == nil {
		t.Error("no micro-batches are accepted")
	}
}
