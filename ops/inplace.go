package ops

import (
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// The names behind which PyTorch has an in-place form, NAME_, of an operator
// that answers to NAME. Methods are the rule, functions the exception.
// TestInPlaceNames compares them with PyTorch's.
var (
	inPlaceMethods = strings.Fields(`
		abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv addr arccos arccosh arcsin arcsinh arctan
		arctan2 arctanh as_strided asin asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not
		bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip conj_physical copysign cos
		cosh cumprod cumsum deg2rad detach digamma div divide eq erf erfc erfinv exp exp2 expm1 fix
		float_power floor floor_divide fmod frac gcd ge greater greater_equal gt heaviside hypot i0 igamma igammac
		index_add index_copy index_fill index_put index_reduce lcm ldexp le lerp less less_equal lgamma log log10
		log1p log2 logical_and logical_not logical_or logical_xor logit lt masked_fill masked_scatter mul multiply
		mvlgamma nan_to_num ne neg negative nextafter not_equal polygamma pow put rad2deg reciprocal relu remainder
		renorm round rsqrt scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc sinh sqrt square squeeze sub
		subtract swapaxes swapdims t tan tanh transpose tril triu true_divide trunc unsqueeze xlogy`)
	inPlaceFunctions = strings.Fields(`
		abs acos acosh addmv alpha_dropout arccos arccosh arcsin arcsinh arctan arctanh as_strided asin asinh atan atanh
		ceil celu clamp clamp_max clamp_min clip conj_physical cos cosh deg2rad detach dropout erf erfc exp
		exp2 expm1 feature_alpha_dropout feature_dropout fill fix floor frac gcd i0 index_put lcm ldexp log log10 log1p
		log2 logit nan_to_num neg negative rad2deg reciprocal relu round rrelu rsqrt selu sigmoid sin sinc sinh sqrt
		square tan tanh threshold trunc xlogy`)
	inPlaceFunctionals = strings.Fields("celu hardtanh leaky_relu relu rrelu selu threshold")
)

// inPlace gives an operator the rules of its in-place form.
func inPlace(r op.InPlaceRules, d *op.Def) *op.Def {
	d.InPlace = r
	return d
}

// fitAbs rejects complex tensors: the absolute values are real.
func fitAbs(a op.Args, _ op.Value) error {
	if a.Value(arg.Input).DType().IsComplex() {
		return op.RuntimeError("In-place abs is not supported for complex tensors.")
	}
	return nil
}

func fitFloatPower(a op.Args, result op.Value) error {
	if own := a.Value(arg.Input).DType(); own != result.DType() {
		return op.RuntimeError("the base given to float_power_ has dtype %s but the operation's result requires dtype %s", own, result.DType())
	}
	return nil
}

// fitUnconverted is the rule of operators that compute their result in place,
// with no conversion of it.
func fitUnconverted(a op.Args, result op.Value) error {
	if own := a.Value(arg.Input).DType(); own != result.DType() {
		return op.BadInPlaceDType(own, result.DType())
	}
	return nil
}

func noInPlaceBackward(name string) func(op.Args) string {
	return func(op.Args) string {
		return "the derivative for 'inplace version of " + name + "' is not implemented."
	}
}

// negativeSlope refuses a negative slope: the gradient could not tell by the
// result which side of the kink the input was on.
func negativeSlope(arg op.Handle, name string) func(op.Args) string {
	return func(a op.Args) string {
		var slope float64
		switch v := a.Any(arg).(type) {
		case float64:
			slope = v
		case op.Scalar:
			slope = v.Float()
		}
		if slope >= 0 {
			return ""
		}
		return "In-place " + name + " backward calculation is triggered with a negative slope which is not supported."
	}
}

// withInPlace gives the operators the names of their in-place forms.
func withInPlace(defs []*op.Def) []*op.Def {
	for _, d := range defs {
		for _, n := range slices.Clone(d.Names) {
			if form := inPlaceName(n); form != "" && !slices.Contains(d.Names, form) {
				d.Names = append(d.Names, form)
			}
		}
	}
	return defs
}

// inPlaceName returns the in-place form of a public name, with the names that
// its parameters have there; "" for none.
func inPlaceName(name string) string {
	if form := op.Assigning(name); form != "" {
		return form
	}
	name, params, own := strings.Cut(name, "(")
	if own {
		params = "(" + params
	}
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return ""
	}
	has := map[string][]string{"Tensor": inPlaceMethods, "torch": inPlaceFunctions, "torch.nn.functional": inPlaceFunctionals}[name[:at]]
	if !slices.Contains(has, name[at+1:]) {
		return ""
	}
	return name + "_" + params
}

// storeOps are the operators of which PyTorch has hardly more than the
// in-place form.
var storeOps = []*op.Def{
	{
		Sig:     "copy(Tensor input, Tensor other, bool non_blocking=False) -> Tensor",
		More:    []string{"copy(Tensor input, Scalar other, bool non_blocking=False) -> Tensor"},
		Names:   []string{"Tensor.copy_"},
		Doc:     "The elements of other, broadcast to input's shape and converted to its dtype.",
		Compose: composeCopy,
		Unread:  unread(arg.Input),
		Sample:  sampleCopy,
		Tol:     exactTol("copies its input"),
	},
	{
		Sig:     "fill(Tensor input, Tensor value) -> Tensor",
		InPlace: op.InPlaceRules{Expanded: true},
		More:    []string{"fill(Tensor input, Scalar value) -> Tensor"},
		Names:   []string{"Tensor.fill_", "torch.fill", "torch.fill_"},
		Doc:     "A tensor like input with one value everywhere.",
		Reject:  checkFill,
		Compose: composeFill,
		Unread:  unread(arg.Input),
		Sample:  sampleFill,
		Tol:     exactTol("copies a number"),
	},
	{
		Sig:           "fill_diagonal(Tensor input, Scalar fill_value, bool wrap=False) -> Tensor",
		InPlace:       op.InPlaceRules{Expanded: true},
		Names:         []string{"Tensor.fill_diagonal_"},
		NotSplittable: "the diagonal goes through all dimensions",
		Doc:           "The elements of input with one value where all indices are equal; wrap goes on in the rows of a matrix that is taller than wide, leaving one between.",
		Reject:        checkFillDiagonal,
		Compose:       composeFillDiagonal,
		Sample:        sampleFillDiagonal,
		Tol:           exactTol("copies its input"),
	},
	{
		Sig:     "zero(Tensor input) -> Tensor",
		InPlace: op.InPlaceRules{Expanded: true},
		Names:   []string{"Tensor.zero_", "torch.zero_"},
		Doc:     "Zeros like input.",
		Compose: composeZero,
		Unread:  unread(arg.Input),
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 4)...)} },
		Tol:     exactTol("zeros"),
	},
	viewOp(&op.Def{
		Sig:    "alias(Tensor input) -> Tensor",
		SBP:    linearly,
		Doc:    "The same tensor as another object.",
		Grad:   op.Gradient(func(g *op.Grad) op.Value { return g.G() }),
		Sample: func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 4)...)} },
	}, sameLayout),
	viewOp(&op.Def{
		Sig:    "no_gradient(Tensor input, str reason) -> Tensor",
		SBP:    linearly,
		Doc:    "The same tensor, which refuses to be differentiated.",
		Fixed:  []op.Handle{arg.Input},
		Sample: func(*op.Sampler) []any { return []any{tensor.New(tensor.I64, 2), "it has none"} },
		Grad:   op.Gradient(func(g *op.Grad) op.Value { op.Fail(op.RuntimeError("%s", g.Str(arg.Reason))); return nil }),
	}, sameLayout),
	viewOp(&op.Def{
		Sig:     "detach(Tensor input) -> Tensor",
		InPlace: op.InPlaceRules{Detaches: true},
		SBP:     linearly,
		Names:   both("detach"),
		Doc:     "A view of input that is not differentiated.",
		Traits:  op.NoGrad,
		Sample:  func(s *op.Sampler) []any { return []any{s.Tensor(-2, 2, s.Shape(0, 4)...)} },
	}, sameLayout),
}

// unread says of every call that it reads no element of an argument.
func unread(p op.TensorArg) func(op.Args) []op.TensorArg {
	return func(op.Args) []op.TensorArg { return []op.TensorArg{p} }
}

func composeCopy(b op.Builder, a op.Args) []op.Value {
	x, src := a.Value(arg.Input), a.Value(arg.Other)
	if src == nil {
		return vals(b.Replace(x, b.Op("full_like", x, a.Scalar(arg.OtherScalar))))
	}
	return vals(b.Replace(x, b.Op("clone", b.Expand(b.Cast(src, x.DType()), x.Shape()))))
}

func sampleCopy(s *op.Sampler) []any {
	shape := s.Shape(0, 4)
	return []any{s.Tensor(-2, 2, shape...), s.Tensor(-2, 2, shape[s.Index(len(shape)+1):]...)}
}

func checkFill(a op.Args) error {
	if v := a.Value(arg.ValueTensor); v != nil && len(v.Shape()) > 0 {
		return op.RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", len(v.Shape()))
	}
	return nil
}

func composeFill(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	if v := a.Value(arg.ValueTensor); v != nil {
		return vals(b.Replace(x, b.Op("clone", b.Expand(b.Cast(v, x.DType()), x.Shape()))))
	}
	return vals(b.Replace(x, b.Op("full_like", x, a.Scalar(arg.Value))))
}

func sampleFill(s *op.Sampler) []any {
	x := s.Tensor(-2, 2, s.Shape(0, 4)...)
	if s.Bool() {
		return []any{x, s.Tensor(-2, 2)}
	}
	return []any{x, s.Index(3)}
}

func checkFillDiagonal(a op.Args) error {
	shape := a.Value(arg.Input).Shape()
	if len(shape) < 2 {
		return op.RuntimeError("dimensions must larger than 1")
	}
	if len(shape) > 2 && slices.Min(shape) != slices.Max(shape) {
		return op.RuntimeError("all dimensions of input must be of equal length")
	}
	return nil
}

func composeFillDiagonal(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	shape := x.Shape()
	places := make([]op.Value, len(shape))
	for d, n := range shape {
		along := slices.Repeat([]int{1}, len(shape))
		along[d] = n
		places[d] = b.Reshape(b.Op("arange", 0, n, op.Kw("dtype", tensor.I64)), along)
	}
	if a.Bool(arg.Wrap) && len(shape) == 2 {
		places[0] = b.Op("remainder", places[0], shape[1]+1)
	}
	diagonal := b.Op("eq", places[0], places[1])
	for _, p := range places[2:] {
		diagonal = b.Op("logical_and", diagonal, b.Op("eq", places[0], p))
	}
	return vals(b.Op("masked_fill", x, diagonal, a.Scalar(arg.FillValue)))
}

func sampleFillDiagonal(s *op.Sampler) []any {
	if s.Bool() {
		return []any{s.Tensor(-2, 2, slices.Repeat(s.Dims(1), 3)...), s.Index(3)}
	}
	return []any{s.Tensor(-2, 2, int(s.Int(1, 10)), int(s.Int(1, 4))), s.Index(3), s.Bool()}
}

func composeZero(b op.Builder, a op.Args) []op.Value {
	x := a.Value(arg.Input)
	return vals(b.Replace(x, b.Op("zeros_like", x)))
}

func sameLayout(a op.Args) (layout, error) {
	v := a.Value(arg.Input)
	return layout{shape: v.Shape(), strides: v.Strides()}, nil
}
