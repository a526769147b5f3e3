package main

import (
	"errors"
	"slices"
	"strings"

	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
	"plumb/verdict"
)

var (
	raises = []verdict.Kind{verdict.Exception}
	values = []verdict.Kind{verdict.Kind(verdict.Value)}
	grads  = []verdict.Kind{verdict.Kind(verdict.Grad)}
)

// shapeFaults are the faults around shapes, indices, products and windows.
var shapeFaults = slices.Concat(untyped, equals, leniencies, []verdict.KnownFault{{
	Reference: "torch 1.13",
	Target:    "masked_select",
	Kinds:     grads,
	When:      func(p *program.Program) bool { return len(p.Inputs) > 0 && p.Inputs[0].Strides != nil },
	Reason:    "the gradient of masked_select is laid out in the order of memory, not of elements",
	Proof: "x = torch.arange(6.).reshape(3, 2).t().detach().requires_grad_(); m = torch.tensor([[True, False, True], [True, True, False]]); " +
		"torch.masked_select(x, m).backward(torch.tensor([1., 2, 3, 4])) gives x.grad = [[1, 0, 4], [2, 3, 0]], of x.contiguous() [[1, 0, 2], [3, 4, 0]]",
}, {
	Reference: "torch 1.13",
	Target:    "baddbmm",
	Kinds:     values,
	When:      func(p *program.Program) bool { return len(p.Calls) == 1 && keyword(p, "beta") == int64(0) },
	Reason:    "with beta=0 the result is multiplied by 0 before it is written: NaN and infinities that happen to lie in fresh memory stay",
	Proof: "after x = torch.full((3, 4, 4), float('nan')); del x, torch.baddbmm(torch.tensor(1.), a, b, beta=0) of finite a [3, 4, 3] and b [3, 3, 4] " +
		"has NaN: 517 elements in 3000 calls in float32, 19466 in bfloat16",
}, {
	Reference: "torch 1.13",
	Target:    "linspace",
	Kinds:     values,
	When: func(p *program.Program) bool {
		d, ok := keyword(p, "dtype").(tensor.DType)
		return ok && !d.IsDifferentiable()
	},
	Reason: "integers are the truncation of end - step*i by one fused multiplication and addition, which falls short of whole numbers",
	Proof:  "torch.linspace(-3., 1., 7, dtype=torch.int32)[3] is 0; the number is -1 exactly, and 1 - (4/6)*3 is -1 in float64",
}})

// untyped are Python functions of PyTorch, and torch.tensor, which do not
// check the types of their arguments as a signature does.
var untyped = each([]string{
	"embedding", "max_unpool1d", "max_unpool2d", "max_unpool3d", "interpolate", "upsample", "grid_sample", "affine_grid", "lp_pool1d", "lp_pool2d", "tensor",
}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     raises,
		When:      func(p *program.Program) bool { return illegal(p) && unbound(p) },
		Reason:    "the function does not check the types of its arguments: whether it raises, and what, depends on how far it comes with them",
		Proof: "torch.nn.functional.grid_sample(x, grid, True) raises ValueError: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'True'; " +
			"torch.nn.functional.max_unpool1d(x, i, True) takes the kernel size 1; torch.tensor(torch.float32) raises RuntimeError: Could not infer dtype of torch.dtype",
	}
})

// equals are operators that name the position of one of equal elements, of
// which the documentation says that any may be named.
var equals = each([]string{"topk", "kthvalue"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		When:      func(p *program.Program) bool { return illegal(p) && hasEqual(p.Inputs[0].Fill.Data) },
		Reason:    "which of equal elements is named is not defined",
		Proof:     "torch.zeros(4, dtype=torch.int32).topk(4) names 2 first; the documentation of kthvalue says that the index of any of them is returned",
	}
})

// leniencies are calls that PyTorch 1.13 accepts by oversight.
var leniencies = []verdict.KnownFault{
	lenient("index_add", "shapes of source are compared slice by slice, by broadcasting, and not at all for an empty index",
		"torch.index_add(torch.zeros(2, 1, 3), 1, torch.tensor([0]), torch.ones(1, 1)) is accepted; PyTorch 2 raises RuntimeError: source tensor shape must match self tensor shape"),
	lenient("index_reduce", "shapes of source are not compared for an empty index",
		"torch.index_reduce(torch.zeros(1, 4), 0, torch.zeros(0, dtype=torch.int64), torch.zeros(0), 'amin') is accepted"),
	lenient("masked_scatter", "masks of any dtype are accepted, and their memory is read as booleans",
		"torch.zeros(4).masked_scatter(torch.tensor([1., 0, 1, 0]), torch.arange(1., 9)) is all zeros; of torch.tensor([1, 0, 256, 0], dtype=torch.int32) the 256 does not count"),
	lenient("index_select", "an empty index of a scalar gives a scalar of fresh memory",
		"torch.index_select(torch.tensor(1.), -1, torch.zeros(0, dtype=torch.int64)) returns a number that is none of the input's"),
}

func lenient(target, reason, proof string) verdict.KnownFault {
	return verdict.KnownFault{Reference: "torch 1.13", Target: target, Kinds: raises, When: illegal, Reason: reason, Proof: proof}
}

// illegal reports a call that was drawn to break a rule.
func illegal(p *program.Program) bool { return strings.HasSuffix(p.Name, "[illegal]") }

// unbound reports a call that no signature accepts.
func unbound(p *program.Program) bool {
	symbols := map[program.Ref]*program.Symbol{}
	for i := range p.Inputs {
		s := p.Inputs[i].Symbol()
		symbols[s.Ref] = s
	}
	c := p.Calls[0]
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) { return symbols[r], nil })
	if err != nil {
		return false
	}
	_, err = program.Resolve(ops.Table(), c.Target, args, kwargs)
	var refused *op.Error
	return errors.As(err, &refused)
}

// keyword returns a keyword argument of the first call; nil when it is not given.
func keyword(p *program.Program, name string) any {
	for _, kw := range p.Calls[0].Kwargs {
		if kw.Name == name {
			return kw.Value
		}
	}
	return nil
}

// hasEqual reports whether a tensor has an element twice.
func hasEqual(t *tensor.Tensor) bool {
	seen := map[complex128]bool{}
	for i := range t.Len() {
		if v := t.At(i); seen[v] {
			return true
		} else {
			seen[v] = true
		}
	}
	return false
}
