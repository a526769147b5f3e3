package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

var logicOps = slices.Concat([]*op.Def{
	logical("logical_and", "Whether both elements are non-zero.", kernel.And[int64], kernel.And[float32], kernel.And[float64], kernel.And[complex128]),
	logical("logical_or", "Whether at least one of two elements is non-zero.", kernel.Or[int64], kernel.Or[float32], kernel.Or[float64], kernel.Or[complex128]),
	logical("logical_xor", "Whether exactly one of two elements is non-zero.", kernel.Xor[int64], kernel.Xor[float32], kernel.Xor[float64], kernel.Xor[complex128]),
	bitwise("bitwise_and", "The bits that two integers share; of bools, whether both hold.", kernel.BitAnd, "operator.and_", "Tensor.__and__"),
	bitwise("bitwise_or", "The bits of two integers together; of bools, whether one holds.", kernel.BitOr, "operator.or_", "Tensor.__or__"),
	bitwise("bitwise_xor", "The bits in which two integers differ; of bools, whether exactly one holds.", kernel.BitXor, "operator.xor", "Tensor.__xor__"),
	shift("bitwise_left_shift", "Shifts the bits of an integer: input·2^other, and 0 for an other beyond the width.", kernel.ShiftLeft, "operator.lshift", "Tensor.__lshift__"),
	shift("bitwise_right_shift", "Shifts the bits of an integer: ⌊input/2^other⌋; an other beyond the width leaves the sign.", kernel.ShiftRight, "operator.rshift", "Tensor.__rshift__"),
	complement("bitwise_not", op.RuntimeError, both("bitwise_not")...),
	complement("invert", op.TypeError, "operator.invert", "Tensor.__invert__"),
	{
		Sig:     "isclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
		Names:   both("isclose"),
		Doc:     "Whether |input - other| ≤ atol + rtol·|other|, or both are equal; with equal_nan, two NaN are close. Integers are compared in float32.",
		Traits:  op.NoGrad,
		SBP:     pointwise,
		Reject:  checkClose,
		Infer:   zipped(boolResult, promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: closeKernels,
		Sample:  sampleClose,
		Tol:     exactTol("a truth value"),
	},
	{
		Sig:           "allclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
		Names:         both("allclose"),
		Doc:           "Whether isclose holds for all elements, as a Python bool.",
		Traits:        op.NoGrad,
		NotSplittable: dependsOnAll,
		Reject:        checkAllclose,
		Infer:         truthValue,
		Kernels:       []op.Kernel{everywhere(closeKernels)},
		Sample:        sampleClose,
		Tol:           exactTol("a truth value"),
	},
	{
		Sig:           "equal(Tensor input, Tensor other) -> bool",
		Names:         both("equal"),
		Doc:           "Whether two tensors have one shape and equal elements, as a Python bool.",
		Traits:        op.NoGrad,
		NotSplittable: dependsOnAll,
		Infer:         truthValue,
		Kernels: []op.Kernel{
			{Name: "different shapes", When: differentShapes, Priority: 1, Run: zeroResults},
			everywhere(equalKernels),
		},
		Sample: sampleEqual,
		Tol:    exactTol("a truth value"),
	},
	classification("isposinf", "Whether each real element is ∞.", func(x float64) bool { return math.IsInf(x, 1) }, never, nil),
	classification("isneginf", "Whether each real element is -∞.", func(x float64) bool { return math.IsInf(x, -1) }, never, nil),
	classification("isreal", "Whether each element has no imaginary part.",
		func(float64) bool { return true }, func(int64) bool { return true }, func(z complex128) bool { return imag(z) == 0 }),
})

func checkAllclose(a op.Args) error {
	if err := checkClose(a); err != nil {
		return err
	}
	_, err := broadcastShape(a.Value(arg.Input), a.Value(arg.Other))
	return err
}

func sampleEqual(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 4)...)
	if s.Bool() {
		return []any{x, x}
	}
	return []any{x, s.Tensor(-2, 2, s.Shape(0, 4)...)}
}

var closeKernels = []op.Kernel{
	closeKernel("float32", []tensor.DType{tensor.F32}, func(a op.Args) func(dst []uint8, x, y []float32) {
		return closeness(a).Close32(func(v float32) float32 { return v })
	}),
	closeKernel("half", halfTypes, func(a op.Args) func(dst []uint8, x, y []float32) {
		return closeness(a).Close32(roundHalf(a.Value(arg.Input).DType()))
	}),
	closeKernel("integer", integralSet, func(a op.Args) func(dst []uint8, x, y []float32) {
		return closeness(a).Close32(func(v float32) float32 { return v })
	}),
	closeKernel("float64", float64Set, func(a op.Args) func(dst []uint8, x, y []float64) { return closeness(a).Close64 }),
	closeKernel("complex", complexTypes, func(a op.Args) func(dst []uint8, x, y []complex128) { return closeness(a).CloseComplex }),
}

var equalKernels = []op.Kernel{
	compareKernel("integer", integralSet, kernel.Eq[int64]),
	compareKernel("float32", float32Set, kernel.Eq[float32]),
	compareKernel("float64", float64Set, kernel.Eq[float64]),
	compareKernel("complex", complexTypes, kernel.Eq[complex128]),
}

func boolResult(op.Args) tensor.DType { return tensor.Bool }

// truthValue infers one bool.
func truthValue(op.Args) ([]op.Meta, error) { return one(tensor.Bool, []int{}, nil), nil }

func logical(id, doc string, i64 compare[int64], f32 compare[float32], f64 compare[float64], c128 compare[complex128]) *op.Def {
	return &op.Def{
		Sig:     id + "(Tensor input, Tensor other) -> Tensor",
		InPlace: op.InPlaceRules{Untracked: true},
		Names:   both(id),
		Doc:     doc,
		Traits:  op.NoGrad | op.Commutative,
		SBP:     pointwise,
		Infer:   zipped(boolResult, promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: []op.Kernel{
			compareKernel("integer", integralSet, i64),
			compareKernel("float32", float32Set, f32),
			compareKernel("float64", float64Set, f64),
			compareKernel("complex", complexTypes, c128),
		},
		Sample: sampleLogical,
		Tol:    exactTol("a truth value"),
	}
}

func sampleLogical(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{sampleMask(s, a), sampleMask(s, b)}
}

func bitwise(id, doc string, f func(dst, a, b []int64), names ...string) *op.Def {
	return &op.Def{
		Sig:     id + "(Tensor input, Tensor other) -> Tensor",
		More:    scalarForms(id),
		Names:   append(both(id), names...),
		Doc:     doc,
		Traits:  op.NoGrad | op.Commutative,
		SBP:     pointwise,
		Reject:  integralOnly,
		Infer:   zipped(promoted(arg.Input, arg.Other), promoted(arg.Input, arg.Other), arg.Input, arg.Other),
		Kernels: zip{i64: f}.kernels(promoted(arg.Input, arg.Other)),
		Sample:  sampleIntegers,
		Tol:     exactTol("bits"),
	}
}

func integralOnly(a op.Args) error {
	if d := a.Promoted(arg.Input, arg.Other); !slices.Contains(integralSet, d) {
		return op.RuntimeError("arguments must be integers or bools, not %s", d)
	}
	return nil
}

func shift(id, doc string, f func(width int64) func(dst, a, b []int64), names ...string) *op.Def {
	to := promoted(arg.Input, arg.Other)
	return &op.Def{
		Sig:    id + "(Tensor input, Tensor other) -> Tensor",
		More:   scalarForms(id),
		Names:  append(both(id), names...),
		Doc:    doc,
		Traits: op.NoGrad,
		SBP:    pointwise,
		Reject: integersOnly(arg.Input, arg.Other),
		Infer:  zipped(to, to, arg.Input, arg.Other),
		Kernels: []op.Kernel{
			zipKernel("integer", integerTypes, arg.Input, arg.Other, to, func(a op.Args) func(dst, a, b []int64) {
				return f(int64(8 * to(a).Size()))
			}),
		},
		Sample: sampleShift,
		Tol:    exactTol("bits"),
	}
}

func sampleShift(s *op.Sampler) []any {
	a, b := twoShapes(s)
	by := someIntegers(s, b)
	for i := range by.Len() {
		by.SetInt(i, max(by.Int(i), -by.Int(i)))
	}
	return []any{someIntegers(s, a), by}
}

// complement is the operator ~, which refuses other dtypes by an error of its own class.
func complement(id string, refuse func(string, ...any) *op.Error, names ...string) *op.Def {
	return &op.Def{
		Sig:    id + "(Tensor input) -> Tensor",
		Names:  names,
		Doc:    "Complement of the bits of each integer: -x - 1; of a bool, its opposite.",
		Traits: op.NoGrad | op.Involution,
		SBP:    pointwise,
		Reject: func(a op.Args) error {
			if d := a.Value(arg.Input).DType(); !slices.Contains(integralSet, d) {
				return refuse("argument 'input' must be of integers or bools, not %s", d)
			}
			return nil
		},
		Infer: sameAs(arg.Input),
		Kernels: []op.Kernel{
			mapKernel("integer", integerTypes, fixed(kernel.BitNot)),
			predicateKernel("bool", []tensor.DType{tensor.Bool}, func(i int64) bool { return i == 0 }),
		},
		Sample: func(s *op.Sampler) []any { return []any{someIntegers(s, s.Shape(0, 4))} },
		Tol:    exactTol("bits"),
	}
}

func checkClose(a op.Args) error {
	if x, y := a.Value(arg.Input).DType(), a.Value(arg.Other).DType(); x != y {
		return op.RuntimeError("argument 'other' must have input's dtype %s, not %s", x, y)
	}
	for _, name := range []op.FloatArg{arg.Rtol, arg.Atol} {
		if v := a.Float(name); v < 0 {
			return op.RuntimeError("argument '%s' must be at least 0, but got %v", name, v)
		}
	}
	return nil
}

func closeness(a op.Args) kernel.Closeness {
	return kernel.Closeness{Rel: a.Float(arg.Rtol), Abs: a.Float(arg.Atol), EqualNaN: a.Bool(arg.EqualNan)}
}

func closeKernel[T kernel.Lane](name string, ds []tensor.DType, f func(a op.Args) func(dst []uint8, x, y []T)) op.Kernel {
	return zipKernel(name, ds, arg.Input, arg.Other, promoted(arg.Input, arg.Other), f)
}

// everywhere is a kernel that results in whether the elementwise one of ks
// that fits the arguments holds for all elements.
func everywhere(ks []op.Kernel) op.Kernel {
	return op.Kernel{Name: "all elements", Run: func(c *op.Run) error {
		shape, err := broadcastShape(c.Value(arg.Input), c.Value(arg.Other))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(ks, func(k op.Kernel) bool { return k.When.Holds(c.Args) })
		each := tensor.New(tensor.Bool, shape...)
		if err := ks[i].Run(&op.Run{Args: c.Args, Out: []*tensor.Tensor{each}}); err != nil {
			return err
		}
		setTruth(c.Out[0], !kernel.AnyZero(each))
		return nil
	}}
}

var differentShapes = op.Pred{
	Text: "input and other of different shapes",
	Holds: func(a op.Args) bool {
		return !slices.Equal(a.Value(arg.Input).Shape(), a.Value(arg.Other).Shape())
	},
}

func setTruth(t *tensor.Tensor, v bool) {
	t.SetInt(0, 0)
	if v {
		t.SetInt(0, 1)
	}
}

// sampleClose draws two tensors of which about half the elements are close.
func sampleClose(s *op.Sampler) []any {
	a, b := twoShapes(s)
	return []any{s.Tensor(0.5, 1.5, a...), s.Tensor(0.9, 1.1, b...), op.Kw("rtol", s.Float(0, 0.5)), op.Kw("equal_nan", s.Bool())}
}
