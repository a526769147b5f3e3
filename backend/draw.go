package backend

import (
	"slices"

	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Draw is the call of a random operator that a call of a program makes, itself
// or inside a module.
type Draw struct {
	Def  *op.Def
	Args op.Args
	// Refs name the tensors among the arguments that are values of the
	// program, by position; "" for others.
	Refs []program.Ref
	// Whole says that the operator's first result is the call's.
	Whole bool
}

// Law returns the law of the draw where the program's values are those that
// value tells; nil when its arguments are not all known, or other than expected.
func (d *Draw) Law(value func(program.Ref) *tensor.Tensor) *op.Law {
	args := op.Args{Sig: d.Args.Sig, Vals: slices.Clone(d.Args.Vals)}
	for i, r := range d.Refs {
		own, ok := args.Vals[i].(op.Value)
		if !ok {
			continue
		}
		t := value(r)
		if t == nil || t.DType() != own.DType() || !slices.Equal(t.Shape(), own.Shape()) {
			return nil
		}
		args.Vals[i] = t
	}
	return d.Def.Law(args)
}
