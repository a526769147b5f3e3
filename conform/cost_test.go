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

// TestNearLimit: of many elements, the largest error has to be more than half of its
// limit for the truth to be asked for, of few or of a half type a quarter.
func TestNearLimit(t *testing.T) {
	for _, one := range []struct {
		worst    float64
		elements int
		half     bool
		want     bool
	}{
		{0.2, 100, false, false},
		{0.25, 100, false, true},
		{0.5, 1 << 20, false, false}, // one unit in the last place where two are allowed
		{0.51, 1 << 20, false, true},
		{0.25, 1 << 20, true, true},
	} {
		if got := nearLimit(one.worst, one.elements, one.half); got != one.want {
			t.Errorf("%v of the limit over %d elements: %v", one.worst, one.elements, got)
		}
	}
}
