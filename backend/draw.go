package backend

import (
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
// value tells; nil when its arguments are not all known.
func (d *Draw) Law(value func(program.Ref) *tensor.Tensor) *op.Law {
	args := op.Args{Sig: d.Args.Sig, Vals: append([]any(nil), d.Args.Vals...)}
	for i, r := range d.Refs {
		if _, ok := args.Vals[i].(op.Value); !ok {
			continue
		}
		t := value(r)
		if t == nil {
			return nil
		}
		args.Vals[i] = t
	}
	return d.Def.Law(args)
}
