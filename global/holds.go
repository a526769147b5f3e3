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

// Holds runs a bound call, whose tensors are local, by one of its signatures on
// ranks in a row, and returns how what they hold is not what the call computes;
// ran is false where the ranks do not fit. Arguments lie as the signature says
// before, so that nothing is boxed and summands are such that no function but a
// linear one takes them for the whole.
func Holds(ctx context.Context, call *op.Call, s op.Sharding, ranks int) (ran bool, err error) {
	p, err := NewPlacement("cpu", []int{ranks})
	if err != nil {
		return false, err
	}
	want, err := call.Execute()
	if err != nil {
		return false, err
	}
	whole := *call
	names, next := call.Args.ArgNames(), -1
	whole.Args = call.Args.MapValues(func(v op.Value) op.Value {
		next++
		t, failure := FromLocal(v.(*tensor.Tensor), p, SBP{s.Args[names[next]]})
		if failure != nil {
			err = fmt.Errorf("argument %s: %w", names[next], failure)
		}
		return t
	})
	if err != nil {
		return true, err
	}
	rt := &Runtime{Placement: p, Choose: func(_ *op.Call, legal []Option) int {
		i := slices.IndexFunc(legal, func(o Option) bool { return o.String() == s.String() })
		ran = i >= 0
		return max(i, 0)
	}}
	got, err := rt.Execute(ctx, &whole)
	if err != nil || !ran {
		return ran, err
	}
	exact := call.Def.Tol.Class == op.Exact && !s.Partial()
	for i, t := range got {
		x, err := t.Logical()
		if err == nil {
			err = near(x, want[i], exact)
		}
		if err != nil {
			return true, fmt.Errorf("result %d: %w", i, err)
		}
	}
	return true, nil
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
