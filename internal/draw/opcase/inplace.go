package opcase

import (
	"errors"
	"slices"

	"plumb/op"
	"plumb/program"
)

// errUnstorable says that a drawn call results in what its tensor cannot hold.
var errUnstorable = errors.New("the tensor cannot hold the result")

// recordInPlace writes an in-place call down: it changes a copy of its first
// tensor, a view of which is compared and differentiated too.
func (c *call) recordInPlace(written program.Call, bound *op.Call) error {
	metas, err := bound.Pure().Infer()
	if err != nil {
		return err
	}
	x := bound.Args.Vals[0].(op.Value)
	if bound.Def.View == nil && (!slices.Equal(metas[0].Shape, x.Shape()) || !op.Castable(metas[0].DType, x.DType())) {
		return errUnstorable
	}
	if !bound.Def.InPlace.Differentiable(bound.Args) {
		for i := range c.Inputs {
			c.Inputs[i].RequiresGrad = false
		}
	}
	c.changing(written)
	if x.DType().IsDifferentiable() && c.wantsGrad() {
		c.backward("x")
		c.backward("part")
	}
	return nil
}

// changing writes a call down on a copy of its first argument. A view that was
// taken before shows the change: seen compares it with the tensor, where the
// call leaves the shape.
func (c *call) changing(written program.Call) {
	written.Args = slices.Clone(written.Args)
	copied := program.Call{Result: "x", Target: "torch.clone", Args: []any{written.Args[0]}}
	written.Args[0] = program.Ref("x")
	seen := program.Call{Result: "seen", Target: "torch.eq", Args: []any{program.Ref("part"), program.Ref("x")}}
	if c.def.View != nil {
		seen = program.Call{Result: "seen", Target: "Tensor.reshape", Args: []any{program.Ref("part"), int64(-1)}}
	}
	c.Calls = append(c.Calls, copied,
		program.Call{Result: "part", Target: "operator.getitem", Args: []any{program.Ref("x"), program.Ellipsis{}}},
		written, seen,
		program.Call{Result: "shape", Target: "getattr", Args: []any{program.Ref("x"), "shape"}},
	)
}
