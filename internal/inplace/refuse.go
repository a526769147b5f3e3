package inplace

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// fits rejects a result that v cannot hold.
func fits(v, out op.Value, c *op.Call) error {
	if fit := c.Def.InPlace.Fit; fit != nil {
		if err := fit(c.Args, out); err != nil {
			return err
		}
	}
	i := c.Args.Sig.Index(arg.DType)
	switch given := i >= 0 && c.Args.Vals[i] != nil; {
	case given && c.Args.Vals[i] != v.DType():
		return op.BadInPlaceDType(v.DType(), out.DType())
	case !op.Castable(out.DType(), v.DType()):
		return op.RuntimeError("result type %s can't be cast to the desired output type %s", out.DType(), v.DType())
	case c.Def.InPlace.Resizes && !slices.Equal(out.Shape(), v.Shape()):
		return fmt.Errorf("%w: %s_ that changes its tensor's shape", ErrUnsupported, c.Def.ID())
	case !slices.Equal(out.Shape(), v.Shape()):
		return op.RuntimeError("output with shape %s doesn't match the broadcast shape %s", tensor.ShapeString(v.Shape()), tensor.ShapeString(out.Shape()))
	}
	return nil
}
