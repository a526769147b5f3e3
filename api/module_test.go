package api_test

import (
	"slices"
	"strings"
	"testing"

	"plumb/api"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// ownModule is a module of a user's own, of an operator of their table.
var ownModule = nn.Must(&nn.Def{
	Names: []string{"mylib.Scaled"}, Sig: "Scaled(int features)", Doc: "twice(x) times a weight.",
	State: func(a op.Args) []nn.Slot {
		return []nn.Slot{{Name: "weight", Kind: nn.Param, DType: tensor.F32, Shape: []int{a.Int("features"), 3}, Initial: nn.KaimingUniform(0)}}
	},
	Forward: func(b op.Builder, m *nn.Module, a op.Args) []op.Value {
		return []op.Value{b.Mul(b.Op("twice", a.Value("input")), m.Value("weight"))}
	},
})

// TestModuleOfOnesOwn: its parameters are drawn by the session's seed, are trained, and
// its forward uses an operator of the session's table.
func TestModuleOfOnesOwn(t *testing.T) {
	table, err := op.NewTable(append([]*op.Def{{
		Sig: "twice(Tensor x) -> Tensor", Doc: "2x.", Compose: func(b op.Builder, a op.Args) []op.Value { return []op.Value{b.Mul(a.Value("x"), 2)} },
		Tol: op.Tol{Class: op.Exact, Reason: "a power of two"},
	}}, ops.All()...)...)
	if err != nil {
		t.Fatal(err)
	}
	session := func(seed uint64) (*api.Session, []*api.Module) {
		s := api.NewSessionOn(table)
		s.Seed(seed)
		var ms []*api.Module
		for range 2 {
			m, err := s.ModuleOf(ownModule, 4)
			if err != nil {
				t.Fatal(err)
			}
			ms = append(ms, m)
		}
		return s, ms
	}
	s, ms := session(1)
	_, again := session(1)
	_, others := session(2)
	weights := func(m *api.Module) []float64 { return m.Get("weight").Float64s() }
	if !slices.Equal(weights(ms[0]), weights(again[0])) || slices.Equal(weights(ms[0]), weights(ms[1])) || slices.Equal(weights(ms[0]), weights(others[0])) {
		t.Error("the parameters do not follow from the session's seed and the module's number")
	}
	x, err := api.FromSlice(s, []float32{1, 2, 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ms[0].Call(x)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := api.Sum(out[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := sum.Backward(); err != nil {
		t.Fatal(err)
	}
	if got := ms[0].Get("weight").Grad().Float64s(); !slices.Equal(got[:4], []float64{2, 4, 6, 2}) {
		t.Errorf("the gradient of the weight is %v", got)
	}
	if _, err := s.ModuleOf(&nn.Def{Names: []string{"mylib.Raw"}}); err == nil || !strings.Contains(err.Error(), "nn.Must") {
		t.Errorf("a definition that is in no table gives %v", err)
	}
}
