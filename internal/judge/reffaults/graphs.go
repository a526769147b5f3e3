package reffaults

import (
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Graphs are faults of PyTorch's own graph modes, each with its proof.
var Graphs = slices.Concat(scriptFaults, symbolicFaults)

// scripted are the modes that run TorchScript.
var scripted = []string{"jit.trace", "jit.script"}

var scriptFaults = []verdict.CandidateFault{{Modes: scripted, KnownFault: verdict.KnownFault{
	Reference: "torch <2.15",
	Kinds:     []verdict.Kind{verdict.Kind(backend.PartValue)},
	Shows:     func(reference complex128) bool { return reference == 0 },
	When:      bothZeros,
	Reason:    "TorchScript keeps one of the constants 0.0 and -0.0, which it takes for equal",
	Proof: `f = lambda c, x: (torch.where(c, 0.0, x), torch.where(~c, -0.0, x))
c, x = torch.tensor([False]), torch.tensor([3.])
not torch.jit.trace(f, (c, x), check_trace=False)(c, x)[1].signbit().item()`,
}}, {Modes: scripted, KnownFault: verdict.KnownFault{
	Reference: "torch",
	Kinds:     slices.Concat(grads, []verdict.Kind{verdict.Kind(backend.PartParamGrad), verdict.Kind(backend.PartSecondGrad), verdict.Kind(backend.PartStep)}),
	When:      anyComplex,
	Reason:    "the gradients of TorchScript's own derivatives, which it takes from the second run on, are not conjugated for complex numbers",
	Proof: `h = torch.jit.CompilationUnit("def h(x):\n    return x * x + 0 * x\n").h
x = torch.tensor(1j, requires_grad=True)
h(x)
h(x).backward(torch.ones((), dtype=torch.complex64))
not same(x.grad, -2j)`,
}}, {Modes: []string{"jit.script"}, KnownFault: verdict.KnownFault{
	Reference: "torch",
	Target:    "unique_consecutive",
	Kinds:     []verdict.Kind{verdict.Kind(compare.Structure), verdict.Kind(compare.Shape), verdict.Kind(backend.PartValue)},
	Reason:    "as a method, TorchScript's unique_consecutive gives all three results, whatever is asked for: the second is the empty inverse, not the counts",
	Proof: `x = torch.tensor([5, 5, 6])
f = torch.jit.CompilationUnit("def f(x):\n    return x.unique_consecutive(return_counts=True)\n").f
len(f(x)) == 3 and len(f(x)[1]) == 0`,
}}, scalarFirst("lshift", "<<"), scalarFirst("rshift", ">>"), scalarFirst("floordiv", "//"), scalarFirst("or_", "|"), scalarFirst("xor", "^"), scalarFirst("and_", "&")}

// scalarFirst are operators of a number and a tensor, in this order.
func scalarFirst(target, sign string) verdict.CandidateFault {
	return verdict.CandidateFault{Modes: []string{"jit.script"}, KnownFault: verdict.KnownFault{
		Reference: "torch",
		Kinds:     []verdict.Kind{verdict.Exception},
		When: func(p *program.Program) bool {
			return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
				if c.Target != "operator."+target || len(c.Args) != 2 {
					return false
				}
				_, isTensor := c.Args[0].(program.Ref)
				return !isTensor
			})
		},
		Reason: "TorchScript has the operator for two numbers alone when the first is one, and converts the tensor, which must then have one element",
		Proof: `f = torch.jit.CompilationUnit("def f(x):\n    return 9 ` + sign + ` x\n").f
raises(lambda: f(torch.ones(2, dtype=torch.int64)), "RuntimeError", "Cannot input a tensor of dimension other than 0 as a scalar argument")`,
	}}
}

var symbolicFaults = inFX("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift", "imatmul")

// inFX are the augmented assignments of Python, which a proxy does not have.
func inFX(targets ...string) (all []verdict.CandidateFault) {
	for _, target := range targets {
		all = append(all, verdict.CandidateFault{Modes: []string{"fx"}, KnownFault: verdict.KnownFault{
			Reference: "torch",
			Target:    target,
			Kinds:     []verdict.Kind{verdict.Kind(backend.PartChange)},
			Reason:    "torch.fx records x += y as x = x + y: the tensor itself, and its views, stay as they were",
			Proof: of(target, `import operator, torch.fx
x = torch.full((1,), 6, dtype=torch.int64)
y = torch.full((1,), 2, dtype=torch.int64)
if "TARGET" == "imatmul":
    x, y = torch.full((1, 1), 6.), torch.full((1, 1), 2.)
if "TARGET" == "itruediv":
    x, y = x.double(), y.double()
g = torch.fx.symbolic_trace(lambda x, y: operator.TARGET(x, y))
g(x, y)
x.item() == 6`),
		}})
	}
	return all
}

// bothZeros reports whether a program has 0.0 and -0.0 among its arguments.
func bothZeros(p *program.Program) bool {
	var plus, minus bool
	for _, c := range p.Calls {
		note := func(v any) {
			if f, ok := v.(float64); ok && f == 0 {
				minus = minus || math.Signbit(f)
				plus = plus || !math.Signbit(f)
			}
		}
		for _, a := range c.Args {
			note(a)
		}
		for _, kw := range c.Kwargs {
			note(kw.Value)
		}
	}
	return plus && minus
}

func anyComplex(p *program.Program) bool {
	return p.DType.IsComplex() || slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType.IsComplex() }) ||
		slices.ContainsFunc(p.Calls, func(c program.Call) bool {
			return slices.ContainsFunc(c.Args, func(a any) bool {
				d, ok := a.(tensor.DType)
				_, number := a.(complex128)
				return number || ok && d.IsComplex()
			})
		})
}
