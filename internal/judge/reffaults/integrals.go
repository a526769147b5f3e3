package reffaults

import (
	"math"
	"math/cmplx"

	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// integrals are those of no places.
var integrals = each([]string{"trapezoid", "trapz"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     []verdict.Kind{verdict.Kind("requires_grad"), verdict.Kind("structure")},
		When:      emptyInput,
		Reason:    "the integral over no places is zeros made anew, without a gradient",
		Proof:     of(target, `not torch.TARGET(torch.zeros(0, requires_grad=True), dim=0).requires_grad`),
	}
})

// infiniteEnds are integrals over evenly spaced places.
var infiniteEnds = each([]string{"trapezoid", "trapz"}, func(target string) verdict.KnownFault {
	return verdict.KnownFault{
		Reference: "torch",
		Target:    target,
		Kinds:     values,
		Shows:     cmplx.IsNaN,
		When:      func(p *program.Program) bool { return argument(p, 1, "x") == nil },
		Places: func(p *program.Program, _ []int) func(int) bool {
			y := p.Inputs[0].Materialize()
			return endsOf(p, y, func(v complex128) bool { return math.IsInf(real(v), 0) || math.IsInf(imag(v), 0) })
		},
		Reason: "half of the ends is subtracted from the sum of all: ∞ − ∞ where one is infinite, of one place too",
		Proof:  of(target, `torch.TARGET(torch.tensor([inf, 1.])).isnan().item() and torch.TARGET(torch.tensor([inf])).isnan().item()`),
	}
})

// endsOf reports of a result without the dimension of the call whether the first
// or the last element along it, of y, is such.
func endsOf(p *program.Program, y *tensor.Tensor, is func(complex128) bool) func(int) bool {
	shape, d := y.Shape(), len(y.Shape())-1
	if given, ok := keyword(p, "dim").(int64); ok {
		d = int(given)
	}
	if d < 0 {
		d += len(shape)
	}
	if d < 0 || d >= len(shape) || shape[d] == 0 {
		return func(int) bool { return false }
	}
	inner := 1
	for _, n := range shape[d+1:] {
		inner *= n
	}
	return func(i int) bool {
		first := i/inner*shape[d]*inner + i%inner
		return is(y.At(first)) || is(y.At(first+(shape[d]-1)*inner))
	}
}
