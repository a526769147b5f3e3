package opcheck

import (
	"errors"
	"math"
	"math/cmplx"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// rejection reports whether an error is the operator's refusal.
func rejection(err error) bool {
	var e *op.Error
	return errors.As(err, &e)
}

// run executes a call on copies of its tensors, as kernels may update some in place.
func (c *checker) run(call *op.Call) ([]*tensor.Tensor, error) {
	return with(call, sameLayout).Execute()
}

// with returns the call with every tensor replaced by f of it.
func with(call *op.Call, f func(*tensor.Tensor) *tensor.Tensor) *op.Call {
	return &op.Call{Def: call.Def, Key: call.Key, Draw: call.Draw, Limit: call.Limit, Args: call.Args.MapValues(func(v op.Value) op.Value { return f(v.(*tensor.Tensor)) })}
}

// replaced returns the call with another value of a parameter.
func replaced(call *op.Call, param int, v any) *op.Call {
	own := op.Args{Sig: call.Args.Sig, Vals: slices.Clone(call.Args.Vals)}
	own.Vals[param] = v
	return &op.Call{Def: call.Def, Key: call.Key, Draw: call.Draw, Limit: call.Limit, Args: own}
}

func tensorsOf(call *op.Call) []*tensor.Tensor {
	var ts []*tensor.Tensor
	for _, v := range call.Args.AllValues() {
		ts = append(ts, v.(*tensor.Tensor))
	}
	return ts
}

// mapElements returns a copy of a call with f of every element of its real
// floating-point tensors.
func mapElements(call *op.Call, f func(float64) float64) *op.Call {
	return with(call, func(x *tensor.Tensor) *tensor.Tensor {
		u := sameLayout(x)
		for i := range u.Len() {
			if u.DType().IsFloat() {
				u.Set(i, complex(f(u.Float(i)), 0))
			}
		}
		return u
	})
}

// alike reports equal bits, up to the payload of NaN, or for sums a difference
// that another order of additions explains.
func alike(d *op.Def, got, want *tensor.Tensor) bool {
	if !slices.Equal(got.Shape(), want.Shape()) || got.DType() != want.DType() {
		return false
	}
	if got.SameBits(want) { // of large calls mostly so
		return true
	}
	limit := 0.0
	if d.Tol.Class == op.Accumulating {
		scale := 1.0
		for i := range want.Len() {
			if m := cmplx.Abs(want.At(i)); !math.IsInf(m, 0) {
				scale = max(scale, m)
			}
		}
		limit = 64 * roundoff(want.DType()) * scale
	}
	for i := range want.Len() {
		g, w := got.At(i), want.At(i)
		if want.DType().IsInt() {
			if got.Int(i) != want.Int(i) {
				return false
			}
			continue
		}
		if g != w && !sameNaN(g, w) && !(cmplx.Abs(g-w) <= limit) {
			return false
		}
	}
	return true
}

func sameNaN(a, b complex128) bool {
	same := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }
	return same(real(a), real(b)) && same(imag(a), imag(b))
}

// allAlike is alike of every result.
func allAlike(d *op.Def, got, want []*tensor.Tensor) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if !alike(d, got[i], want[i]) {
			return false
		}
	}
	return true
}

func roundoff(d tensor.DType) float64 {
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

// sameLayout copies a tensor with its storage.
func sameLayout(x *tensor.Tensor) *tensor.Tensor {
	u, err := tensor.FromBytes(x.DType(), x.Shape(), x.Strides(), x.Offset(), slices.Clone(x.Storage()))
	if err != nil {
		panic(err)
	}
	return u
}

// layout is another way in which a tensor may lie in memory.
type layout struct {
	name string
	of   func(*tensor.Tensor) *tensor.Tensor
}

var layoutsOf = []layout{
	{"strided", spaced},
	{"with the first dimension innermost", reversed},
	{"sliced, at an offset", offset},
	{"strided by 4096", huge},
}

// junk fills memory between elements: a kernel that reads it gives junk.
const junk = 77

func laid(x *tensor.Tensor, strides []int, offset int) *tensor.Tensor {
	n := tensor.Extent(x.Shape(), strides) + 2*offset
	store := tensor.New(x.DType(), max(n, 1))
	for i := range store.Len() {
		store.Set(i, junk)
	}
	u, err := tensor.FromBytes(x.DType(), x.Shape(), strides, offset, store.Storage())
	if err != nil {
		panic(err)
	}
	u.CopyFrom(x)
	return u
}

func spaced(x *tensor.Tensor) *tensor.Tensor {
	return laid(x, tensor.SpacedStrides(x.Shape(), 2), 0)
}

func reversed(x *tensor.Tensor) *tensor.Tensor {
	order := make([]int, x.Dim())
	for i := range order {
		order[i] = x.Dim() - 1 - i
	}
	return laid(x, tensor.PermutedStrides(x.Shape(), order), 0)
}

func offset(x *tensor.Tensor) *tensor.Tensor {
	return laid(x, tensor.ContiguousStrides(x.Shape()), 3)
}

func huge(x *tensor.Tensor) *tensor.Tensor {
	strides := tensor.ContiguousStrides(x.Shape())
	if len(strides) > 0 && x.Shape()[0] < 64 {
		strides[0] += 4096
	}
	return laid(x, strides, 0)
}

// refit gives a tensor another shape, its elements repeated as needed.
func refit(x *tensor.Tensor, shape []int) *tensor.Tensor {
	u := tensor.New(x.DType(), shape...)
	for i := range u.Len() {
		if x.Len() > 0 {
			u.Set(i, x.At(i%x.Len()))
		}
	}
	return u
}

// elementwise reports whether a call is known to be a function of numbers
// applied to each element of its tensors, broadcast.
func elementwise(call *op.Call) bool {
	return call.Def.Exact != nil && len(call.Def.Sigs()[0].Results) == 1 && !call.Args.Sig.Many
}

// broadcastShape is the shape to which the tensors of a call broadcast.
func broadcastShape(call *op.Call) ([]int, error) {
	var shapes [][]int
	for _, v := range call.Args.AllValues() {
		shapes = append(shapes, v.Shape())
	}
	return tensor.BroadcastShapes(shapes...)
}
