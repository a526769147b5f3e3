package api_test

import (
	"encoding/json"
	"math"
	"os/exec"
	"strings"
	"testing"

	"plumb/api"
	"plumb/backend/worker"
)

// onPyTorch are the functions of livelyFunctions as torch.autograd.Function, and what is
// printed of each: its first result, the gradients of Σ xᵢ³·yᵢ of its results by both
// inputs, those of the sum of the squares of these, and which gradients were wanted.
const onPyTorch = `
import json, torch
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y
    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        needed.append(list(ctx.needs_input_grad))
        return 10 * (g * y + h), 10 * (g * x + h) if ctx.needs_input_grad[1] else None
class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        e = torch.exp(x * y)
        ctx.save_for_backward(e, y)
        return e, e
    @staticmethod
    def backward(ctx, g, h):
        e, y = ctx.saved_tensors
        needed.append(list(ctx.needs_input_grad))
        return (g + h) * e * y, None
class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        up = torch.ceil(y)
        ctx.mark_non_differentiable(up)
        return torch.round(x), up
    @staticmethod
    def backward(ctx, g, h):
        needed.append(list(ctx.needs_input_grad))
        return g, None
def flat(g): return None if g is None else g.tolist()
for f in Scaled, Exp, Straight:
    for both in True, False:
        needed = []
        x = torch.tensor([0.3, -1.2, 2.5], dtype=torch.float64, requires_grad=True)
        y = torch.tensor([1.1, 0.4, -0.7], dtype=torch.float64, requires_grad=both)
        a, b = f.apply(x, y)
        loss = (a ** 3 * b).sum()
        inputs = [x, y] if both else [x]
        first = torch.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
        square = sum((g * g).sum() for g in first if g is not None)
        second = torch.autograd.grad(square, inputs, allow_unused=True)
        print(json.dumps([[flat(a), flat(b)] + [flat(g) for g in first] + [flat(g) for g in second], needed[0], [a.requires_grad, b.requires_grad]]))
`

// livelyFunctions are those of onPyTorch.
func livelyFunctions(needed *[]bool) []api.Function {
	must := func(t *api.Tensor, err error) *api.Tensor {
		if err != nil {
			panic(err)
		}
		return t
	}
	return []api.Function{
		scaled(needed),
		{
			Forward: func(c *api.Context, x ...*api.Tensor) ([]*api.Tensor, error) {
				e := must(api.Exp(must(api.Mul(x[0], x[1]))))
				c.Save(e, x[1])
				return []*api.Tensor{e, e}, nil
			},
			Backward: func(c *api.Context, g ...*api.Tensor) ([]*api.Tensor, error) {
				*needed = []bool{c.Needs(0), c.Needs(1)}
				e, y := c.Saved()[0], c.Saved()[1]
				return []*api.Tensor{must(api.Mul(must(api.Mul(must(api.Add(g[0], g[1])), e)), y)), nil}, nil
			},
		},
		{
			Forward: func(c *api.Context, x ...*api.Tensor) ([]*api.Tensor, error) {
				up := must(api.Ceil(x[1]))
				c.NonDifferentiable(up)
				return []*api.Tensor{must(api.Round(x[0])), up}, nil
			},
			Backward: func(c *api.Context, g ...*api.Tensor) ([]*api.Tensor, error) {
				*needed = []bool{c.Needs(0), c.Needs(1)}
				return []*api.Tensor{g[0], nil}, nil
			},
		},
	}
}

// TestFunctionIsPyTorchs: values, gradients of first and second order, and which of them
// are asked for, are those of the same functions as torch.autograd.Function.
func TestFunctionIsPyTorchs(t *testing.T) {
	path, _, err := worker.FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	text, err := exec.Command(path, "-c", onPyTorch).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(strings.NewReader(string(text)))
	for i := range livelyFunctions(nil) {
		for _, both := range []bool{true, false} {
			var values [][]float64
			var wanted, smooth []bool
			if err := lines.Decode(&[]any{&values, &wanted, &smooth}); err != nil {
				t.Fatal(err)
			}
			var needed []bool
			out, differentiable := function(t, livelyFunctions(&needed)[i], both)
			for k, want := range values {
				if !closeTo(out[k], want) {
					t.Errorf("function %d, both %v: tensor %d is %v, PyTorch %v", i, both, k, out[k], want)
				}
			}
			if len(needed) != 2 || needed[0] != wanted[0] || needed[1] != wanted[1] || differentiable[0] != smooth[0] || differentiable[1] != smooth[1] {
				t.Errorf("function %d, both %v: gradients wanted %v, of PyTorch %v; results differentiable %v, %v", i, both, needed, wanted, differentiable, smooth)
			}
		}
	}
}

// function is what onPyTorch prints of a function.
func function(t *testing.T, f api.Function, both bool) (out [][]float64, differentiable []bool) {
	s := api.NewSession()
	must := func(x *api.Tensor, err error) *api.Tensor {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x, y := slice(t, s, true, 0.3, -1.2, 2.5), slice(t, s, both, 1.1, 0.4, -0.7)
	results, err := f.Call(x, y)
	if err != nil {
		t.Fatal(err)
	}
	inputs := []*api.Tensor{x, y}[:1]
	if both {
		inputs = inputs[:2]
	}
	gradients := func(y *api.Tensor) []*api.Tensor {
		t.Helper()
		gs, err := s.Gradients(y, inputs, true)
		if err != nil {
			t.Fatal(err)
		}
		return gs
	}
	add := func(ts ...*api.Tensor) {
		for _, r := range ts {
			var elements []float64
			if r != nil {
				elements = r.Float64s()
			}
			out = append(out, elements)
		}
	}
	add(results...)
	first := gradients(must(api.Sum(must(api.Mul(must(api.Pow(results[0], api.Number(3))), results[1])))))
	add(first...)
	var square *api.Tensor
	for _, g := range first {
		if g == nil {
			continue
		}
		one := must(api.Sum(must(api.Mul(g, g))))
		if square == nil {
			square = one
		} else {
			square = must(api.Add(square, one))
		}
	}
	add(gradients(square)...)
	return out, []bool{results[0].RequiresGrad(), results[1].RequiresGrad()}
}

func closeTo(got, want []float64) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12*(1+math.Abs(want[i])) {
			return false
		}
	}
	return true
}
