package graph_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"plumb/graph"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var dtypes = []tensor.DType{tensor.F32, tensor.F64, tensor.F16, tensor.BF16, tensor.I64, tensor.U8, tensor.Bool, tensor.C64}

// everySample calls f with legal calls of every operator of the table.
func everySample(t *testing.T, perDType int, f func(t *testing.T, call *op.Call)) {
	for _, d := range ops.Table().Defs() {
		drawer := opcase.Drawer{Table: ops.Table(), Def: d}
		if d.Sample == nil {
			continue
		}
		t.Run(d.ID(), func(t *testing.T) {
			for _, dt := range drawer.DTypes(dtypes...) {
				for i := range perDType {
					call, err := drawer.Bind(choice.New(choice.Derive(uint64(i), uint64(dt))), dt)
					if err == nil {
						f(t, call)
					}
				}
			}
		})
	}
}

// traced is a call, its results and the gradients of its first result's sum,
// as a graph of its tensor arguments.
func traced(call *op.Call) (f graph.Func, inputs []*tensor.Tensor) {
	var at []op.Value
	for _, v := range call.Args.AllValues() {
		if t, ok := v.(*tensor.Tensor); ok && !slices.Contains(at, v) {
			at, inputs = append(at, v), append(inputs, t)
		}
	}
	return func(b *graph.Builder, x ...op.Value) []op.Value {
		c := *call
		c.Args = call.Args.MapValues(func(v op.Value) op.Value {
			if i := slices.Index(at, v); i >= 0 {
				return x[i]
			}
			return v
		})
		out, err := b.Execute(&c)
		if err != nil {
			op.Fail(err)
		}
		return append(out, gradients(b, out, x)...)
	}, inputs
}

func gradients(b *graph.Builder, out, x []op.Value) []op.Value {
	wrt := slices.DeleteFunc(slices.Clone(x), func(v op.Value) bool { return !v.DType().IsDifferentiable() })
	if len(wrt) == 0 || !out[0].DType().IsDifferentiable() {
		return nil
	}
	grads, err := b.Grads(out[:1], []op.Value{nil}, wrt)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(grads, func(v op.Value) bool { return v == nil })
}

// eagerly computes what traced's graph does, operator by operator, without
// graphs.
func eagerly(t *testing.T, call *op.Call) ([]*tensor.Tensor, error) {
	t.Helper()
	s := eager.New(ops.Table())
	s.Seed(7)
	vars := map[op.Value]*eager.Var{}
	var leaves []op.Value
	c := *call
	c.Args = call.Args.MapValues(func(v op.Value) op.Value {
		x, ok := v.(*tensor.Tensor)
		if !ok {
			return v
		}
		if vars[v] == nil {
			vars[v] = s.Leaf(copied(x), x.DType().IsDifferentiable())
			leaves = append(leaves, vars[v])
		}
		return vars[v]
	})
	out, err := s.Execute(&c)
	if err != nil {
		return nil, err
	}
	ts := make([]*tensor.Tensor, 0, len(out))
	for _, v := range out {
		ts = append(ts, v.(*eager.Var).Tensor)
	}
	if !eager.RequiresGrad(out[0]) || call.Def.Traits.Has(op.NoGrad) {
		return ts, nil
	}
	ones, err := s.Apply("ones_like", []any{out[0]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	grads, err := s.Backward(out[:1], ones, false)
	if err != nil {
		return ts, nil
	}
	for _, l := range leaves {
		if g, ok := grads[l].(*eager.Var); ok && eager.RequiresGrad(l) {
			ts = append(ts, g.Tensor)
		}
	}
	return ts, nil
}

func copied(t *tensor.Tensor) *tensor.Tensor {
	u := tensor.NewStrided(t.DType(), t.Shape(), t.Strides())
	u.CopyFrom(t)
	return u
}

// TestTableAsGraph runs every operator, and its gradient, as a graph, with and
// without passes, in blocks that cut results into uneven parts.
func TestTableAsGraph(t *testing.T) {
	plain := graph.Options{Without: []string{graph.All}}
	all := graph.Options{Block: 3}
	count, captured := 0, 0
	everySample(t, 2, func(t *testing.T, call *op.Call) {
		for _, o := range []graph.Options{plain, all} {
			f, inputs := traced(call)
			g := graph.New(ops.Table(), call.Def.ID(), f, o)
			g.Seed = 7
			got, err := g.Run(inputs...)
			var capture *graph.CaptureError
			if errors.As(err, &capture) {
				captured++
				continue
			}
			want, refused := eagerly(t, call)
			if (err == nil) != (refused == nil) {
				t.Fatalf("%s: the graph: %v; eager: %v", describeCall(call), err, refused)
			}
			if err != nil {
				continue
			}
			count++
			if len(got) != len(want) {
				t.Fatalf("%d results and gradients, eager has %d", len(got), len(want))
			}
			for i := range got {
				if !got[i].SameBits(want[i]) || !slices.Equal(got[i].Strides(), want[i].Strides()) {
					t.Errorf("%s: result %d with passes left out %v:\n%v strides %v\neager %v strides %v", describeCall(call), i, o.Without, elements(got[i]), got[i].Strides(), elements(want[i]), want[i].Strides())
				}
			}
		}
	})
	if count < 2000 || captured > count/10 {
		t.Errorf("%d graphs, %d not captured", count, captured)
	}
}

// TestBlocksAndMemory runs every operator between copies, its arguments dead
// after it, with nothing but reused memory, and with every elementwise call in
// a loop of its own over small blocks: where a kernel may not be cut into
// blocks or may not write over its argument, elements differ.
func TestBlocksAndMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	blocks, inPlace, spreads, heads := 0, 0, 0, 0
	everySample(t, 3, func(t *testing.T, call *op.Call) {
		if call.Def.Compose != nil {
			return
		}
		want, err := call.Execute()
		if err != nil || len(call.Def.Mutates) > 0 || call.Def.Traits.Has(op.Random) {
			return
		}
		for _, o := range []graph.Options{{Passes: []graph.Pass{}}, {Passes: []graph.Pass{graph.FuseAlone, graph.Epilogue}, Block: 3}} {
			g := graph.New(ops.Table(), call.Def.ID(), between(call), o)
			c, err := g.Compile()
			var capture *graph.CaptureError
			if errors.As(err, &capture) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Run(0, nil)
			if err != nil {
				t.Fatal(err)
			}
			inPlace += c.Memory().InPlace
			spreads, heads = spreads+graph.Spreads(c), heads+graph.Heads(c)
			blocks += strings.Count(c.Code.String(), "fused")
			for i := range got {
				if !got[i].SameBits(want[i]) {
					t.Errorf("%s: result %d\n%v\neager %v\n%s", describeCall(call), i, elements(got[i]), elements(want[i]), c.Code)
				}
			}
		}
	})
	if blocks < 1000 || inPlace < 200 || spreads < 200 || heads < 30 {
		t.Errorf("%d fused calls, %d results in place, %d broadcast arguments, %d epilogues: the test tests little", blocks, inPlace, spreads, heads)
	}
}

// between applies a call to copies of its arguments and returns copies of its results.
func between(call *op.Call) graph.Func {
	return func(b *graph.Builder, _ ...op.Value) []op.Value {
		c := *call
		c.Args = call.Args.MapValues(func(v op.Value) op.Value {
			if v == nil {
				return nil
			}
			return b.Op("clone", v)
		})
		out, err := b.Execute(&c)
		if err != nil {
			op.Fail(err)
		}
		for i := range out {
			out[i] = b.Op("clone", out[i])
		}
		return out
	}
}

func describeCall(c *op.Call) string {
	var parts []string
	for _, v := range c.Args.AllValues() {
		parts = append(parts, fmt.Sprintf("%s%v/%v", v.DType(), v.Shape(), v.Strides()))
	}
	return c.Def.ID() + "(" + strings.Join(parts, ", ") + ")"
}

func elements(t *tensor.Tensor) []complex128 {
	var out []complex128
	for i := range min(t.Len(), 24) {
		out = append(out, t.At(i))
	}
	return out
}
