package conform

import (
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// TestCostly: what sums few products a byte is predicted, what sums many is
// stored; a batch of products is no larger product.
func TestCostly(t *testing.T) {
	product := func(target string, gradient bool, a, b, c []int) bool {
		p := &program.Program{
			Inputs: []program.Input{{Name: "a"}, {Name: "b"}},
			Calls:  []program.Call{{Result: "result", Target: target, Args: []any{program.Ref("a"), program.Ref("b")}}},
		}
		if gradient {
			p.Backward = []program.Backward{{}}
		}
		return Costly(
			&backend.Job{Program: p, Inputs: []*tensor.Tensor{tensor.New(tensor.F32, a...), tensor.New(tensor.F32, b...)}},
			&backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.F32, c...)}}})
	}
	for _, one := range []struct {
		name     string
		target   string
		gradient bool
		a, b, c  []int
		want     bool
	}{
		{"64 products an element", "torch.matmul", false, []int{128, 64}, []int{64, 128}, []int{128, 128}, false},
		{"512 products an element", "torch.matmul", false, []int{64, 512}, []int{512, 64}, []int{64, 64}, true},
		{"a batch of 64 products an element", "torch.matmul", false, []int{32, 64, 64}, []int{32, 64, 64}, []int{32, 64, 64}, false},
		{"128 products an element", "torch.matmul", false, []int{64, 128}, []int{128, 64}, []int{64, 64}, false},
		{"and their gradients", "torch.matmul", true, []int{64, 128}, []int{128, 64}, []int{64, 64}, true},
		{"no contraction", "torch.add", true, []int{64, 512}, []int{512, 64}, []int{64, 64}, false},
	} {
		if got := product(one.target, one.gradient, one.a, one.b, one.c); got != one.want {
			t.Errorf("%s: costly is %v", one.name, got)
		}
	}
}
