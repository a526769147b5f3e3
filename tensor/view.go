package tensor

import (
	"fmt"
	"slices"
)

func (t *Tensor) with(shape, strides []int, offset int) *Tensor {
	return &Tensor{dtype: t.dtype, shape: shape, strides: strides, offset: offset, storage: t.storage, on: t.on}
}

// Permute returns a view whose dimension i is t's dimension order[i].
func (t *Tensor) Permute(order ...int) *Tensor {
	shape, strides := make([]int, len(order)), make([]int, len(order))
	for i, d := range order {
		shape[i], strides[i] = t.shape[d], t.strides[d]
	}
	return t.with(shape, strides, t.offset)
}

// Transpose returns a view with dimensions a and b exchanged.
func (t *Tensor) Transpose(a, b int) *Tensor {
	order := dims(0, t.Dim())
	order[a], order[b] = b, a
	return t.Permute(order...)
}

// Narrow returns the view of n entries of dimension dim, from start on, step apart.
func (t *Tensor) Narrow(dim, start, n, step int) *Tensor {
	shape, strides := slices.Clone(t.shape), slices.Clone(t.strides)
	shape[dim] = n
	strides[dim] *= step
	return t.with(shape, strides, t.offset+start*t.strides[dim])
}

// Select returns the view of one entry of dimension dim, without that dimension.
func (t *Tensor) Select(dim, i int) *Tensor {
	u := t.Narrow(dim, i, 1, 1)
	return u.with(slices.Delete(u.shape, dim, dim+1), slices.Delete(u.strides, dim, dim+1), u.offset)
}

// Expand returns a view of the given shape in which dimensions of size 1, and
// new leading ones, are repeated with stride 0.
func (t *Tensor) Expand(shape ...int) (*Tensor, error) {
	lead := len(shape) - t.Dim()
	if lead < 0 {
		return nil, fmt.Errorf("cannot expand %s to fewer dimensions %s", t, ShapeString(shape))
	}
	strides := make([]int, len(shape))
	for i, n := range t.shape {
		switch {
		case n == shape[lead+i]:
			strides[lead+i] = t.strides[i]
		case n != 1:
			return nil, fmt.Errorf("cannot expand %s to %s", t, ShapeString(shape))
		}
	}
	return t.with(slices.Clone(shape), strides, t.offset), nil
}

// View returns t with another shape of as many elements over the same
// storage; ok is false when its strides do not allow that.
func (t *Tensor) View(shape ...int) (view *Tensor, ok bool) {
	strides, ok := ViewStrides(t.shape, t.strides, shape)
	if !ok {
		return nil, false
	}
	return t.with(slices.Clone(shape), strides, t.offset), true
}

// Reshape returns a view when possible, else a contiguous copy, of the given shape.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	if v, ok := t.View(shape...); ok {
		return v
	}
	v, _ := t.Clone().View(shape...)
	return v
}

// AsStrided returns a view of t's storage; offset counts from t's storage start.
func (t *Tensor) AsStrided(shape, strides []int, offset int) (*Tensor, error) {
	return t.As(t.dtype, shape, strides, offset)
}

// As is AsStrided in another dtype, in whose elements strides and offset count.
func (t *Tensor) As(d DType, shape, strides []int, offset int) (*Tensor, error) {
	if t.on == nil {
		return FromBytes(d, shape, strides, offset, t.storage)
	}
	if err := inside(d, shape, strides, offset, t.on.bytes); err != nil {
		return nil, err
	}
	return &Tensor{dtype: d, shape: slices.Clone(shape), strides: slices.Clone(strides), offset: offset, on: t.on}, nil
}

// ViewStrides returns the strides with which a tensor of shape from and the
// given strides can be seen as shape to without a copy. The algorithm is that
// of PyTorch's at::detail::computeStride.
func ViewStrides(from, strides, to []int) ([]int, bool) {
	if NumElements(from) != NumElements(to) {
		return nil, false
	}
	if NumElements(from) == 0 || len(from) == 0 {
		return ContiguousStrides(to), true
	}
	out := make([]int, len(to))
	at := len(to) - 1
	base := strides[len(from)-1]
	chunk, viewed := 1, 1
	for d := len(from) - 1; d >= 0; d-- {
		chunk *= from[d]
		if d > 0 && (from[d-1] == 1 || strides[d-1] == chunk*base) {
			continue
		}
		for at >= 0 && (viewed < chunk || to[at] == 1) {
			out[at] = viewed * base
			viewed *= to[at]
			at--
		}
		if viewed != chunk {
			return nil, false
		}
		if d > 0 {
			base = strides[d-1]
			chunk, viewed = 1, 1
		}
	}
	return out, at < 0
}
