package verdict

import (
	"math"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// changing is a program that changes x in place, of which v is a view.
func changing() *program.Program {
	return &program.Program{
		Name:   "test_changing",
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{2}, Fill: program.Fill{Dist: program.Uniform, Hi: 1}, RequiresGrad: true}},
		Calls: []program.Call{
			{Result: "v", Target: "Tensor.view", Args: []any{program.Ref("x"), int64(2)}},
			{Result: "y", Target: "Tensor.mul_", Args: []any{program.Ref("x"), int64(2)}},
			{Result: "z", Target: "torch.exp", Args: []any{program.Ref("v")}},
		},
	}
}

// changed is what came of changing.
func changed(x, v, gradient *tensor.Tensor, z ...float64) *backend.Outcome {
	value := func(x *tensor.Tensor) backend.Value { return backend.Value{Tensor: x} }
	o := &backend.Outcome{Status: backend.OK, Watched: true, Values: []backend.Value{value(f32([]int{2}, 1, 2)), value(x), value(f32([]int{2}, z...))}}
	for name, t := range map[string]*tensor.Tensor{"x": x, "v": v} {
		if t != nil {
			o.Slots = append(o.Slots, backend.Slot{Place: backend.Place{Part: backend.PartChange, Call: 1, Owner: name}, Tensor: t})
		}
	}
	o.Slots = append(o.Slots, backend.Slot{Place: backend.Place{Part: backend.PartGrad, Owner: "x"}, Tensor: gradient})
	return o
}

// TestViewsOfItsOwn: which results are views, and whether a gradient that
// vanishes is there, is up to a subject with an interface of its own; what it
// changes has to be right.
func TestViewsOfItsOwn(t *testing.T) {
	twice, other, zeros := f32([]int{2}, 2, 4), f32([]int{2}, 2, 5), f32([]int{2}, 0, 0)
	ref := func() *backend.Outcome { return changed(twice, twice, zeros, 2, 4) }
	for name, c := range map[string]struct {
		cand       *backend.Outcome
		own, other Word
	}{
		"alike":            {changed(twice, twice, zeros, 2, 4), Aligned, Aligned},
		"copies":           {changed(twice, nil, zeros, 1, 2), Unsupported, Misaligned},
		"changed wrongly":  {changed(other, nil, zeros, 1, 2), Misaligned, Misaligned},
		"view is wrong":    {changed(twice, other, zeros, 2, 5), Misaligned, Misaligned},
		"not changed":      {changed(nil, nil, zeros, 1, 2), Misaligned, Misaligned},
		"no gradient":      {changed(twice, twice, nil, 2, 4), Aligned, Misaligned},
		"another gradient": {changed(twice, twice, twice, 2, 4), Misaligned, Misaligned},
	} {
		if v := Judge(changing(), ref(), c.cand, Policy{}); v.Word != c.other {
			t.Errorf("%s: %s (%s)", name, v.Word, v.Reason)
		}
		c.cand.Permissive = true
		if v := Judge(changing(), ref(), c.cand, Policy{}); v.Word != c.own {
			t.Errorf("%s, with an interface of its own: %s (%s)", name, v.Word, v.Reason)
		}
	}
}

// TestChangesUntold: what setitem wrote of an inexact value is as inexact, though
// the call returns nothing and the subject tells no changes.
func TestChangesUntold(t *testing.T) {
	p := &program.Program{
		Name:   "test_untold",
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{1}, Fill: program.Fill{Dist: program.Uniform, Hi: 1}}},
		Calls: []program.Call{
			{Result: "p", Target: "torch.clone", Args: []any{program.Ref("x")}},
			{Result: "c", Target: "torch.cos", Args: []any{program.Ref("x")}},
			{Result: "s", Target: "operator.setitem", Args: []any{program.Ref("p"), int64(0), program.Ref("c")}},
			{Result: "y", Target: "operator.getitem", Args: []any{program.Ref("p"), program.Slice{}}},
			{Result: "z", Target: "torch.clone", Args: []any{program.Ref("y")}},
		},
	}
	of := func(written, read float32) *backend.Outcome {
		value := func(v float32) backend.Value { return backend.Value{Tensor: f32([]int{1}, float64(v))} }
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{value(1), value(written), {}, value(read), value(read)}}
	}
	cos := float32(0.5403023)
	near := math.Nextafter32(cos, 1)
	if v := Judge(p, of(cos, cos), of(near, near), Policy{}); v.Word != Aligned {
		t.Errorf("%s: %s", v.Word, v.Reason)
	}
	if v := Judge(p, of(cos, cos), of(cos, near), Policy{}); v.Word != Misaligned {
		t.Error("a part of equal bits may round")
	}
}
