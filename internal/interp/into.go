package interp

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
)

// into runs a call whose keyword out is a tensor: it takes the elements of the result. One of
// another shape, which PyTorch gives other memory, or of another dtype is not supported.
func (r *Run) into(c *program.Call, call *op.Call, out *eager.Var) (*value, error) {
	if c.Grad() && slices.ContainsFunc(append(call.Args.AllValues(), out), eager.RequiresGrad) {
		name := c.Target[strings.LastIndexByte(c.Target, '.')+1:]
		return nil, op.RuntimeError("%s(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.", name)
	}
	results, err := r.execute(call)
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || results[0].DType() != out.DType() || !slices.Equal(results[0].Shape(), out.Shape()) {
		return nil, fmt.Errorf("%w: out of another shape or dtype than the result", errUnsupported)
	}
	store, err := program.Resolve(r.table, "Tensor.copy_", []any{out, results[0]}, nil)
	if err != nil {
		return nil, err
	}
	if _, err := r.execute(store); err != nil {
		return nil, err
	}
	v := r.env[c.Out()]
	return v, r.refresh(v)
}
