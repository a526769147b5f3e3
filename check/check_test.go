package check_test

import (
	"strings"
	"testing"

	"plumb/check"
	"plumb/eager"
	"plumb/op"
	"plumb/ops"
)

// TestWrongGradientIsSeen takes a factor out of a gradient, and then cuts off
// what the gradient depends on.
func TestWrongGradientIsSeen(t *testing.T) {
	right := func(g *op.Grad) op.Value { return g.Mul(g.Value("input"), 2) }
	for want, slope := range map[string]func(g *op.Grad) op.Value{
		"":                      right,
		": gradient":            func(g *op.Grad) op.Value { return g.Value("input") },
		"second-order gradient": func(g *op.Grad) op.Value { return g.Add(g.Value("input"), g.Value("input").(*eager.Var).Tensor) },
	} {
		square := *ops.Table().Def("square")
		square.Sig, square.Names = "my_square(Tensor input) -> Tensor", nil
		square.Grad = func(g *op.Grad) { g.To("input", func() op.Value { return g.Mul(g.G(), slope(g)) }) }
		table, err := op.NewTable(append([]*op.Def{&square}, ops.All()...)...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = check.FirstOrder(table, table.Def("my_square"), 1)
		if err == nil {
			err = check.SecondOrder(table, table.Def("my_square"), 1)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
