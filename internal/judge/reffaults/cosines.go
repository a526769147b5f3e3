package reffaults

import (
	"math/cmplx"

	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// shortCosines are cosines of vectors that are shorter than eps.
var shortCosines = []verdict.KnownFault{{
	Reference: "torch <2.9",
	Target:    "cosine_similarity",
	Kinds:     grads,
	When:      shorterThanEps,
	Reason:    "what the gradient subtracts for a norm below eps is divided by eps, later by the norm itself",
	Proof: `x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
F.cosine_similarity(x, torch.ones(1, dtype=torch.float64), 0, 1.).backward()
near(x.grad, [0.75])`,
}}

// shorterThanEps reports a vector along the call's dimension, not of zeros alone, whose
// norm is below eps.
func shorterThanEps(p *program.Program) bool {
	at := 2
	if program.IsModule(p.Calls[0].Target) {
		at = 0
	}
	dim, eps := int(numberOr(argument(p, at, "dim"), 1)), numberOr(argument(p, at+1, "eps"), 1e-8)
	var shape []int
	for _, in := range p.Inputs {
		to, err := tensor.BroadcastShapes(shape, in.Shape)
		if err != nil {
			return false
		}
		shape = to
	}
	if dim < 0 {
		dim += len(shape)
	}
	if dim < 0 || dim >= len(shape) {
		return false
	}
	inner := tensor.NumElements(shape[dim+1:])
	for i := range p.Inputs {
		x := spread(&p.Inputs[i], shape)
		squares := map[int]float64{}
		for j := range tensor.NumElements(shape) {
			a := cmplx.Abs(x(j))
			squares[j/(inner*shape[dim])*inner+j%inner] += a * a
		}
		for _, s := range squares {
			if s > 0 && s < eps*eps {
				return true
			}
		}
	}
	return false
}
