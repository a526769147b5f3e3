package verdict

import (
	"slices"

	"plumb/backend"
	"plumb/op"
	"plumb/tensor"
)

// inOrder returns the value of a call in the one order in which both sides are
// compared where its operator leaves the order open. Where the sides chose several,
// what reads the value is compared as what depends on draws is.
func (j *judge) inOrder(i int, v *backend.Value) *backend.Value {
	if j.policy.Table == nil || !slices.ContainsFunc(j.policy.Table.Lookup(j.p.Calls[i].Target), func(d *op.Def) bool { return d.Canonical != nil }) {
		return v
	}
	call, err := j.bound(i, j.ref)
	if err != nil || call.Def.Canonical == nil {
		return v
	}
	var out []*tensor.Tensor
	parts := []backend.Value{*v}
	if v.IsTuple {
		parts = v.Tuple
	}
	for _, p := range parts {
		if p.Tensor == nil {
			return v
		}
		out = append(out, p.Tensor)
	}
	if !fits(call, out) {
		return v
	}
	ordered := call.Def.Canonical(call.Args, out)
	if slices.Equal(ordered, out) {
		return v
	}
	own := *v
	if !v.IsTuple {
		own.Tensor = ordered[0]
		return &own
	}
	own.Tuple = slices.Clone(v.Tuple)
	for k := range own.Tuple {
		own.Tuple[k].Tensor = ordered[k]
	}
	return &own
}

// fits reports whether tensors are as the call's results have to be.
func fits(call *op.Call, out []*tensor.Tensor) bool {
	metas, err := call.Infer()
	if err != nil || len(metas) != len(out) {
		return false
	}
	for k, m := range metas {
		if m.DType != out[k].DType() || !slices.Equal(m.Shape, out[k].Shape()) {
			return false
		}
	}
	return true
}
