package global_test

import (
	"slices"
	"testing"

	"plumb/global"
	"plumb/graph"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// grid is x + 1 of which the ranks of a hierarchy may have tiles, and no rank rows alone.
func grid(t *testing.T) *op.Table {
	t.Helper()
	tiles := []op.Sharding{ops.ShardAxis(map[op.TensorArg]int{"x": 0}, op.S(0)), ops.ShardAxis(map[op.TensorArg]int{"x": 1}, op.S(1))}
	table, err := op.NewTable(append([]*op.Def{{
		Sig: "grid(Tensor x) -> Tensor", Doc: "x + 1.", Traits: op.NoGrad,
		Infer: func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: a.Value("x").DType(), Shape: a.Value("x").Shape()}}, nil
		},
		NdSBP: func(_ op.Args, hierarchy []int) [][]op.Sharding {
			if len(hierarchy) != 2 {
				return nil
			}
			return [][]op.Sharding{tiles}
		},
		Kernels: []op.Kernel{{Name: "each", Run: func(c *op.Run) error {
			for i := range c.Out[0].Len() {
				c.Out[0].Set(i, c.Tensor("x").At(i)+1)
			}
			return nil
		}}},
		Tol: op.Tol{Class: op.Exact, Reason: "test"},
	}}, ops.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestStatedSignatures: a signature that an operator states over a hierarchy is
// offered, and once its first entry is chosen nothing but the rest of it.
func TestStatedSignatures(t *testing.T) {
	table, p := grid(t), place(t, 2, 2)
	want := [][]global.SBP{{{op.B, op.B}}, {{op.S(0), op.S(1)}}}
	var seen [][]global.SBP
	for _, choice := range []int{0, 1, 2, 3} {
		x, err := global.FromLocal(counted(tensor.F32, 4, 6), p, global.Broadcast(2))
		if err != nil {
			t.Fatal(err)
		}
		call, err := table.ResolveID("grid", []any{x}, nil)
		if err != nil {
			t.Fatal(err)
		}
		dimension := -1
		rt := &global.Runtime{Placement: p, Choose: func(_ *op.Call, legal []global.Option) int {
			dimension++
			return min(choice>>dimension&1, len(legal)-1)
		}}
		out, err := rt.Execute(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := out[0].Logical()
		if err != nil || whole.Float(5) != 7 {
			t.Fatalf("%v, %v", whole, err)
		}
		if s := []global.SBP{out[0].SBP()}; !slices.ContainsFunc(seen, func(q []global.SBP) bool { return slices.Equal(q[0], s[0]) }) {
			seen = append(seen, s)
		}
	}
	if len(seen) != 2 || !slices.EqualFunc(seen, want, func(a, b []global.SBP) bool { return slices.Equal(a[0], b[0]) }) {
		t.Errorf("the results lie by %v, want %v", seen, want)
	}
}

// TestSearchTakesStated: where tiles cost nothing, a plan of the whole graph has them.
func TestSearchTakesStated(t *testing.T) {
	table, p := grid(t), place(t, 2, 2)
	compiled, err := graph.New(table, "grid", func(b *graph.Builder, x ...op.Value) []op.Value {
		return []op.Value{b.Op("grid", x[0])}
	}, graph.Options{}).Compile(tensor.New(tensor.F32, 4, 6))
	if err != nil {
		t.Fatal(err)
	}
	rt := &global.Runtime{Placement: p}
	plan, err := rt.Search(compiled.Code, func(*graph.Value) global.SBP { return global.SBP{op.S(0), op.S(1)} }, 8)
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.Outputs[0].SBP; !slices.Equal(got, global.SBP{op.S(0), op.S(1)}) || plan.Bytes() != 0 {
		t.Errorf("the result lies by %s, and %d bytes travel", got, plan.Bytes())
	}
}
