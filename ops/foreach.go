package ops

import (
	"plumb/internal/arg"
	"plumb/op"
)

// foreachOps apply an operator to each tensor of a list. Optimizers call them.
var foreachOps = []*op.Def{
	foreachNumber("add", "input + scalar"),
	foreachPair("add", ", *, Scalar alpha=1", "input + alpha·other", func(a op.Args) []any { return []any{op.Kw("alpha", a.Any(arg.Alpha))} }),
	foreachNumber("mul", "input·scalar"),
	foreachPair("mul", "", "input·other", func(op.Args) []any { return nil }),
}

// foreachNumber is an operator of each tensor of a list and one number.
func foreachNumber(id, formula string) *op.Def {
	d := foreach(id, "_foreach_"+id+"(Tensor[] self, Scalar scalar) -> Tensor[]", func(a op.Args, _ int) []any { return []any{a.Scalar(arg.Scalar)} })
	d.Doc = "Of each tensor and one number: " + formula + "."
	d.Fixed = []op.Handle{arg.Self}
	d.Reject = someTensors(id)
	d.Sample = func(s *op.Sampler) []any {
		return []any{sampleList(s, 1+s.Index(3), s.Shape(0, 4)...), s.Index(5) - 2}
	}
	return d
}

// foreachPair is an operator of the tensors of two lists, pair by pair; more are
// its parameters beyond the lists, and rest the arguments that they give.
func foreachPair(id, more, formula string, rest func(op.Args) []any) *op.Def {
	d := foreach(id, "_foreach_"+id+".list(Tensor[] self, Tensor[] other"+more+") -> Tensor[]", func(a op.Args, i int) []any {
		return append([]any{a.Values(arg.OtherTensors)[i]}, rest(a)...)
	})
	d.Doc = "Of the tensors of two lists, pair by pair: " + formula + "."
	d.Fixed = []op.Handle{arg.Self, arg.Other}
	d.Reject = firstError(someTensors(id), sameLengths)
	d.Sample = func(s *op.Sampler) []any {
		n, shape := 1+s.Index(3), s.Shape(0, 4)
		return []any{sampleList(s, n, shape...), sampleList(s, n, shape[s.Index(len(shape)+1):]...)}
	}
	return d
}

// foreach applies an operator to each tensor of self and to what comes with it.
// Its tensors are Fixed for PyTorch 1.13, which has no derivative of it.
func foreach(id, sig string, with func(a op.Args, i int) []any) *op.Def {
	return &op.Def{
		Sig:   sig,
		Names: []string{"torch._foreach_" + id},
		Compose: func(b op.Builder, a op.Args) []op.Value {
			var out []op.Value
			for i, v := range a.Values(arg.Self) {
				out = append(out, b.Op(id, append([]any{v}, with(a, i)...)...))
			}
			return out
		},
		Tol: ulpTol(1, "that of "+id),
	}
}

func someTensors(id string) func(op.Args) error {
	return func(a op.Args) error {
		if len(a.Values(arg.Self)) == 0 {
			return &op.Error{Class: "NotImplementedError", Msg: "_foreach_" + id + " needs a tensor in argument 'self'"}
		}
		return nil
	}
}

func sameLengths(a op.Args) error {
	if m, n := len(a.Values(arg.Self)), len(a.Values(arg.OtherTensors)); m != n {
		return op.RuntimeError("argument 'other' must have as many tensors as argument 'self', %d, not %d", m, n)
	}
	return nil
}
