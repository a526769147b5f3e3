package global

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// Holds runs a bound call, whose tensors are local, by a signature on ranks in a
// row, and returns how what they hold is not what the call computes; ran is false
// where the ranks cannot share it so. Arguments lie as the signature says before,
// so that nothing is boxed and summands are such that no function but a linear one
// takes them for the whole.
func Holds(ctx context.Context, call *op.Call, s op.Sharding, ranks int) (ran bool, err error) {
	if metas, err := call.Infer(); err != nil || !s.Fits(call.Args, metas, ranks) {
		return false, err
	}
	return HoldsOver(ctx, call, []op.Sharding{s}, []int{ranks})
}

// HoldsOver is Holds of a signature that fits a hierarchy of ranks, with an entry for
// each of its dimensions.
func HoldsOver(ctx context.Context, call *op.Call, signature []op.Sharding, hierarchy []int) (ran bool, err error) {
	p, err := NewPlacement("cpu", hierarchy)
	if err != nil {
		return false, err
	}
	partial := slices.ContainsFunc(signature, op.Sharding.Partial)
	l, err := (&Runtime{Placement: p}).launch(call, p, func(op.Value) (SBP, error) { return nil, nil })
	if err != nil {
		return false, err
	}
	if l.metas, err = call.Infer(); err != nil {
		return false, err
	}
	if call.Def.NotSplittable != "" || call.Def.Traits.Has(op.Random) || l.halved() && partial {
		return false, nil
	}
	l.signature = signature
	for i, v := range call.Args.AllValues() {
		t, err := FromLocal(v.(*tensor.Tensor), p, l.wants(i))
		if err != nil {
			return false, fmt.Errorf("argument %s: %w", l.names[i], err)
		}
		l.boxed = append(l.boxed, t)
	}
	whole := *call
	if len(call.Def.Mutates) > 0 {
		whole.Args = call.Args.MapValues(func(v op.Value) op.Value { return v.(*tensor.Tensor).Clone() })
	}
	want, err := whole.Execute()
	if err != nil {
		return false, err
	}
	got, err := l.compute(ctx)
	if err != nil {
		return true, err
	}
	exact := call.Def.Tol.Class == op.Exact && !partial
	for i, t := range got {
		if err := t.isNear(want[i], exact); err != nil {
			return true, fmt.Errorf("result %d: %w", i, err)
		}
	}
	for _, name := range call.Def.Mutates {
		if i := slices.Index(l.names, name.Name()); i >= 0 {
			if err := l.boxed[i].isNear(whole.Args.Tensor(name), exact); err != nil {
				return true, fmt.Errorf("%s afterwards: %w", name, err)
			}
		}
	}
	return true, nil
}

// Repeats reports whether the pieces that n ranks in a row have of a call, shared by a
// signature, may be shared by it again.
func Repeats(call *op.Call, s op.Sharding, n int) bool {
	if call.Def.Traits.Has(op.Dynamic) {
		return false
	}
	corners := nextCorners([]*op.Call{call}, s, n)
	return len(corners) > 0 && slices.ContainsFunc(common(corners, n), func(t op.Sharding) bool { return t.String() == s.String() })
}

// isNear compares the whole that the ranks hold.
func (t *Tensor) isNear(want *tensor.Tensor, exact bool) error {
	x, err := t.Logical()
	if err != nil {
		return err
	}
	return near(x, want, exact)
}

// reordered is how many units of the last place, of the largest element, sums in
// another order may differ by.
const reordered = 64

// near compares what ranks hold with the whole.
func near(got, want *tensor.Tensor, exact bool) error {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("%s, not %s", got, want)
	}
	limit := 0.0
	if !exact {
		limit = reordered * largest(want) * unit(want.DType())
	}
	for i := range want.Len() {
		g, w := got.At(i), want.At(i)
		if g != w && !(cmplx.IsNaN(g) && cmplx.IsNaN(w)) && !(cmplx.Abs(g-w) <= limit) {
			return fmt.Errorf("element %d is %v, not %v", i, g, w)
		}
	}
	return nil
}

// largest is the largest finite modulus of an element, or 1.
func largest(t *tensor.Tensor) float64 {
	scale := 1.0
	for i := range t.Len() {
		if m := cmplx.Abs(t.At(i)); !math.IsInf(m, 0) && !math.IsNaN(m) {
			scale = max(scale, m)
		}
	}
	return scale
}

// unit is the distance from 1 to the next number; 0 for exact types.
func unit(d tensor.DType) float64 {
	switch d.Real() {
	case tensor.F64:
		return 0x1p-52
	case tensor.F32:
		return 0x1p-23
	case tensor.F16:
		return 0x1p-10
	case tensor.BF16:
		return 0x1p-7
	}
	return 0
}
