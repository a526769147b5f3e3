package reffaults

import (
	"slices"
	"strings"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

// later are differences of PyTorch 2 from 1.13, which Plumb's operators follow:
// what it changed on purpose, and faults that came with it.
var later = slices.Concat(each([]string{"fmax", "fmin"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 2.15",
		Target:    target,
		Kinds:     grads,
		When:      sharesElement,
		Reason:    "of two equal elements each has half of the gradient, as in maximum and minimum; before, the first has all of it",
		Proof:     "x, y = torch.ones(2, 1, requires_grad=True).unbind(); torch.autograd.grad(torch.fmax(x, y), (x, y)) is 0.5 and 0.5 in 2.15, 1 and 0 in 1.13 and 2.9",
	}
}), each([]string{"clamp", "clamp_", "clip", "clip_", "clamp_min", "clamp_min_", "clamp_max", "clamp_max_"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch 2.15",
		Target:    target,
		Kinds:     grads,
		When:      atBound,
		Reason:    "an element at a bound has no gradient, or half of it where the bound is a tensor; before, it has all of it",
		Proof:     "x = torch.tensor([0., 1.], requires_grad=True); torch.clamp(x, 0).sum().backward() gives x.grad = [0, 1] in 2.15, [1, 1] in 1.13 and 2.9",
	}
}), []verdict.KnownFault{{
	Reference: "torch 2",
	Target:    "bernoulli",
	Kinds:     []verdict.Kind{verdict.RequiresGrad},
	Reason:    "bernoulli(p) of a tensor that requires a gradient requires one, which is 0; in 1.13 it requires none",
	Proof:     "torch.bernoulli(torch.ones(1, requires_grad=True), p=0.5).requires_grad is True in 2.9 and 2.15, False in 1.13",
}, {
	Reference: "torch 2.15",
	Target:    "ldexp",
	Kinds:     raises,
	When:      complexInput,
	Reason:    "the gradient of a real exponent stays complex where the number is, which autograd refuses; before, its real part was taken",
	Proof:     "v = torch.zeros(1, requires_grad=True); w = torch.ldexp(torch.ones(1, dtype=torch.complex64), v); w.backward(torch.ones_like(w)) raises RuntimeError in 2.15, and gives 0.6931 in 1.13 and 2.9",
}, {
	Reference: "torch 2.15",
	Target:    "torch.cholesky",
	Kinds:     raises,
	Reason:    "the function was removed; torch.linalg.cholesky takes its place",
	Proof:     "torch.cholesky(torch.eye(2)) raises RuntimeError: This function was deprecated since version 1.9 and is now removed; 2.9 warns",
}, {
	Reference: "torch 2",
	Target:    "interpolate",
	Kinds:     slices.Concat(values, grads),
	When: func(p *program.Program) bool {
		shape := first(p).Shape
		size, _ := keyword(p, "size").(program.Tuple)
		return keyword(p, "antialias") == true && len(shape) == 4 && (shape[3] == 1 || len(size) == 2 && size[1] == int64(1))
	},
	Reason: "where an image is one element wide, before or after, the antialiased kernel repeats a row",
	Proof: "x = torch.tensor([[[[1.], [0.], [0.]]]]); torch.nn.functional.interpolate(x, size=(2, 1), mode='bicubic', antialias=True) is [[0.65], [0.65]] in 2.9 and 2.15, " +
		"of x.expand(1, 1, 3, 3) with size=(2, 3) the rows are 0.65 and -0.04, as in 1.13",
}})

// earlier are what PyTorch did otherwise before the version that Plumb's operators
// follow, and faults that it has mended since.
var earlier = slices.Concat([]verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "unique",
	Kinds:     values,
	When:      func(p *program.Program) bool { return len(first(p).Shape) > 2 },
	Reason:    "entries of a dimension beyond the second are compared with the first dimension in that one's place, later with the others in their order",
	Proof:     "x = torch.tensor([[[0, 0], [1, 0]], [[0, 1], [0, 0]]]); torch.unique(x, dim=2)[..., 0] is [[0, 0], [1, 0]] in 2.9 and 2.15, [[0, 1], [0, 0]] in 1.13",
}, {
	Reference: "torch 1.13",
	Target:    "tensordot",
	Kinds:     raises,
	When: func(p *program.Program) bool {
		dims := argument(p, 2, "dims")
		n, ok := dims.(int64)
		if dims == nil {
			n, ok = 2, true
		}
		return ok && slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return int64(len(in.Shape)) < n })
	},
	Reason: "a number of dims that an argument does not have is an IndexError, later a RuntimeError",
	Proof:  "torch.tensordot(torch.zeros(3), torch.zeros(3), 2) raises IndexError in 1.13, RuntimeError in 2.9 and 2.15",
}}, each([]string{"torch 1.13", "torch 2.9"}, func(reference string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: reference,
		Target:    "group_norm",
		Kinds:     []verdict.Kind{verdict.Exception},
		When: func(p *program.Program) bool {
			return len(p.Backward) > 0 && argument(p, 2, "weight") == nil && argument(p, 3, "bias") != nil
		},
		Reason: "the gradient fails with a bias and no weight",
		Proof: "b = torch.zeros(4, requires_grad=True); torch.nn.functional.group_norm(torch.randn(2, 4), 2, None, b).sum().backward() " +
			"raises RuntimeError: tensor does not have a device",
	}
}))

// sharesElement reports an element of the first input that another input has too.
func sharesElement(p *program.Program) bool {
	return slices.ContainsFunc(p.Inputs[min(1, len(p.Inputs)):], func(in program.Input) bool {
		return hasElement(&in, func(bound float64) bool { return anyElement(p, 0, func(v float64) bool { return v == bound }) })
	})
}

// atBound reports an element of the first input that a bound is equal to.
func atBound(p *program.Program) bool {
	isBound := func(v any) bool {
		var bound float64
		switch v := v.(type) {
		case int64:
			bound = float64(v)
		case float64:
			bound = v
		default:
			return false
		}
		return anyElement(p, 0, func(v float64) bool { return v == bound })
	}
	return sharesElement(p) || slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return strings.Contains(c.Target, ".cl") && (slices.ContainsFunc(c.Args, isBound) || slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool { return isBound(kw.Value) }))
	})
}
