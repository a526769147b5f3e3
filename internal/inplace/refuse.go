package inplace

import (
	"fmt"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// structured are operators that compute their result in place, with no
// conversion of it.
var structured = []string{"addmv", "baddbmm"}

// fits rejects a result that v cannot hold.
func fits(v, out op.Value, c *op.Call) error {
	i := c.Args.Sig.Index("dtype")
	switch given := i >= 0 && c.Args.Vals[i] != nil; {
	case given && c.Args.Vals[i] != v.DType(), slices.Contains(structured, c.Def.ID()) && out.DType() != v.DType():
		return op.RuntimeError("Bad in-place call: input tensor dtype %s and output tensor dtype %s should match", v.DType(), out.DType())
	case c.Def.ID() == "float_power" && out.DType() != v.DType():
		return op.RuntimeError("the base given to float_power_ has dtype %s but the operation's result requires dtype %s", v.DType(), out.DType())
	case c.Def.ID() == "abs" && v.DType().IsComplex():
		return op.RuntimeError("In-place abs is not supported for complex tensors.")
	case !op.Castable(out.DType(), v.DType()):
		return op.RuntimeError("result type %s can't be cast to the desired output type %s", out.DType(), v.DType())
	case c.Def.ID() == "addbmm" && !slices.Equal(out.Shape(), v.Shape()):
		return fmt.Errorf("%w: addbmm_ that changes its tensor's shape", ErrUnsupported)
	case !slices.Equal(out.Shape(), v.Shape()):
		return op.RuntimeError("output with shape %s doesn't match the broadcast shape %s", tensor.ShapeString(v.Shape()), tensor.ShapeString(out.Shape()))
	}
	return nil
}

// Differentiable reports whether PyTorch differentiates a bound in-place call.
func Differentiable(c *op.Call) bool { return c.Def.ID() != "ldexp" && refusal(c) == "" }

// refusal is what PyTorch says when it is to differentiate an in-place call
// that it has only a pure gradient for; "" where it has both.
func refusal(c *op.Call) string {
	switch id := c.Def.ID(); id {
	case "asinh", "acosh", "atanh":
		return "the derivative for 'inplace version of " + id + "' is not implemented."
	case "leaky_relu":
		return negative(c, "negative_slope", "leakyReLu")
	case "elu", "celu":
		return negative(c, "alpha", "elu")
	}
	return ""
}

// negative refuses a negative slope: the gradient could not tell by the result
// which side of the kink the input was on.
func negative(c *op.Call, arg, name string) string {
	var slope float64
	switch v := c.Args.Any(arg).(type) {
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
