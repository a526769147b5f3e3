package ops

import (
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var predicateOps = []*op.Def{
	inPlace(op.InPlaceRules{Untracked: true}, predicate("logical_not", "Whether each element is 0.",
		func(x float64) bool { return x == 0 }, func(i int64) bool { return i == 0 }, func(z complex128) bool { return z == 0 })),
	classification("isnan", "Whether each element is NaN; of a complex number, whether a part is.",
		math.IsNaN, never, func(z complex128) bool { return math.IsNaN(real(z)) || math.IsNaN(imag(z)) }),
	classification("isinf", "Whether each element is infinite; of a complex number, whether a part is.",
		func(x float64) bool { return math.IsInf(x, 0) }, never, cmplx.IsInf),
	classification("isfinite", "Whether each element is neither infinite nor NaN; of a complex number, whether both parts are.",
		finite, func(int64) bool { return true }, func(z complex128) bool { return finite(real(z)) && finite(imag(z)) }),
	holding(op.NoNaN, predicate("signbit", "Whether the sign of each real element is set: that of -0 is.",
		math.Signbit, func(i int64) bool { return i < 0 }, nil)),
}

// predicate is an operator that results in bool; z is nil where complex
// numbers are rejected.
func predicate(id, doc string, x func(float64) bool, i func(int64) bool, z func(complex128) bool) *op.Def {
	d := &op.Def{
		Sig:    id + "(Tensor input) -> Tensor",
		Names:  both(id),
		Doc:    doc,
		Traits: op.NoGrad,
		SBP:    pointwise,
		Infer:  elementwise(func(op.Args) tensor.DType { return tensor.Bool }, arg.Input),
		Kernels: []op.Kernel{
			predicateKernel("integer", integralSet, i),
			predicateKernel("float", slices.Concat(float32Set, float64Set), x),
		},
		Sample: sampleDistinct,
		Tol:    exactTol("a truth value"),
	}
	if z == nil {
		d.Reject = refuseComplex(arg.Input)
		return d
	}
	d.Kernels = append(d.Kernels, predicateKernel("complex", complexTypes, z))
	return d
}

// classification is a predicate that is the same of all finite real elements.
func classification(id, doc string, x func(float64) bool, i func(int64) bool, z func(complex128) bool) *op.Def {
	d := predicate(id, doc, x, i, z)
	d.Traits |= op.Classifies
	return d
}

func predicateKernel[T float64 | int64 | complex128](name string, ds []tensor.DType, f func(T) bool) op.Kernel {
	return op.Kernel{Name: name, When: op.DTypeIn(arg.Input, ds...), Run: func(c *op.Run) error {
		kernel.Map1(c.Out[0], c.Tensor(arg.Input), kernel.Holds(f))
		return nil
	}}
}

func never(int64) bool { return false }

func finite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }
