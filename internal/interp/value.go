package interp

import (
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// value is what a name stands for: one of a tensor, a tuple, a module and a
// plain Python value.
type value struct {
	tensor *eager.Var
	tuple  []*value
	names  []string // of a named tuple's elements
	module *nn.Module
	plain  any
}

func wrap(call *op.Call, out []op.Value) *value {
	sig := call.Def.Sigs()[0]
	if sig.Plain {
		v, err := here(out[0].(*eager.Var).Tensor).Item()
		if err != nil {
			panic(fmt.Sprintf("interp: %s: %v", call.Def.ID(), err))
		}
		return &value{plain: v}
	}
	if !sig.Many && (len(sig.Results) == 1 || len(out) == 1 && len(sig.Results) == 2) { // return_indices=False
		return &value{tensor: out[0].(*eager.Var)}
	}
	t := &value{tuple: []*value{}}
	if !sig.Many {
		t.names = sig.Results
	}
	for _, o := range out {
		t.tuple = append(t.tuple, &value{tensor: o.(*eager.Var)})
	}
	return t
}

func intTuple(xs []int) *value {
	v := &value{tuple: []*value{}}
	for _, x := range xs {
		v.tuple = append(v.tuple, &value{plain: int64(x)})
	}
	return v
}

// outcome returns the value as it is now.
func (v *value) outcome(keep func(*tensor.Tensor) *tensor.Tensor) backend.Value {
	switch {
	case v.tensor != nil:
		return backend.Value{Tensor: keep(v.tensor.Tensor), RequiresGrad: v.tensor.RequiresGrad()}
	case v.tuple != nil:
		out := backend.Value{IsTuple: true}
		for _, e := range v.tuple {
			out.Tuple = append(out.Tuple, e.outcome(keep))
		}
		return out
	case v.module != nil:
		return backend.Value{Module: true}
	}
	return backend.Value{Plain: v.plain}
}

func (v *value) tensors() []*eager.Var {
	if v.tensor != nil {
		return []*eager.Var{v.tensor}
	}
	var out []*eager.Var
	for _, e := range v.tuple {
		out = append(out, e.tensors()...)
	}
	return out
}

func (v *value) holds(x *eager.Var) bool {
	if v.module == nil {
		return slices.Contains(v.tensors(), x)
	}
	return slices.ContainsFunc(v.module.State(), func(s nn.Slot) bool { return v.module.Value(s.Name) == op.Value(x) })
}
