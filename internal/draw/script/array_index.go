package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

// part resolves an index.
func (a *array) part(k starlark.Value) (part, error) {
	if m, ok := k.(*array); ok {
		return a.gather(m)
	}
	if l, ok := k.(*starlark.List); ok {
		m, err := toArray(nil, l, tensor.Invalid)
		if err != nil {
			return part{}, err
		}
		return a.gather(m)
	}
	items := starlark.Tuple{k}
	if t, ok := k.(starlark.Tuple); ok {
		items = t
	}
	if one, isBool := k.(starlark.Bool); isBool { // a new axis with one entry or none
		n := map[starlark.Bool]int{true: 1}[one]
		return part{view: a.t.Reshape(append([]int{1}, a.t.Shape()...)...).Narrow(0, 0, n, 1)}, nil
	}
	if slices.ContainsFunc(items, isFancy) {
		return a.fancy(items)
	}
	used := dimsUsed(items)
	if used > a.t.Dim() {
		return part{}, fmt.Errorf("too many indices for array: array is %d-dimensional, but %d were indexed", a.t.Dim(), used)
	}
	view, dim := a.t, 0
	for _, item := range items {
		switch item := item.(type) {
		case starlark.NoneType:
			view = view.Reshape(slices.Insert(slices.Clone(view.Shape()), dim, 1)...)
			dim++
		case ellipsis:
			dim += a.t.Dim() - used
		case *slice:
			start, stop, step, err := sliceBounds(item.start, item.stop, item.step, view.Shape()[dim])
			if err != nil {
				return part{}, err
			}
			view = view.Narrow(dim, min(start, view.Shape()[dim]), (max(stop-start, 0)+step-1)/step, step)
			dim++
		default:
			i, err := starlark.AsInt32(number(item))
			if err != nil {
				return part{}, fmt.Errorf("only integers, slices, ellipsis and None are valid indices, not %s", item.Type())
			}
			n := view.Shape()[dim]
			if i < -n || i >= n {
				return part{}, fmt.Errorf("index %d is out of bounds for axis %d with size %d", i, dim, n)
			}
			view = view.Select(dim, (i+n)%max(n, 1))
		}
	}
	return part{view: view}, nil
}

// gather resolves a mask, or an array of indices into the first dimension.
func (a *array) gather(k *array) (part, error) {
	shape := a.t.Shape()
	if k.t.DType() == tensor.Bool {
		n := k.t.Dim()
		if n > len(shape) || !slices.Equal(k.t.Shape(), shape[:n]) {
			return part{}, fmt.Errorf("boolean index of shape %s did not match indexed array of shape %s", tensor.ShapeString(k.t.Shape()), tensor.ShapeString(shape))
		}
		inner := tensor.NumElements(shape[n:])
		p := part{at: []int{}}
		count := 0
		for i := range k.t.Len() {
			if k.t.Int(i) != 0 {
				count++
				for j := range inner {
					p.at = append(p.at, i*inner+j)
				}
			}
		}
		p.shape = append([]int{count}, shape[n:]...)
		return p, nil
	}
	if !k.t.DType().IsInt() || len(shape) == 0 {
		return part{}, fmt.Errorf("arrays used as indices must be of integer or boolean type")
	}
	inner := tensor.NumElements(shape[1:])
	p := part{at: []int{}, shape: append(slices.Clone(k.t.Shape()), shape[1:]...)}
	if k.t.Len()*inner > maxElements {
		return p, errLarge
	}
	for i := range k.t.Len() {
		at := int(k.t.Int(i))
		if at < -shape[0] || at >= shape[0] {
			return p, fmt.Errorf("index %d is out of bounds for axis 0 with size %d", at, shape[0])
		}
		for j := range inner {
			p.at = append(p.at, (at+shape[0])%shape[0]*inner+j)
		}
	}
	return p, nil
}

// dimsUsed counts the dimensions of an array that an index speaks of.
func dimsUsed(items starlark.Tuple) int {
	used := 0
	for _, item := range items {
		switch item := item.(type) {
		case starlark.NoneType, ellipsis:
		case *array:
			used++
			if item.t.DType() == tensor.Bool {
				used += item.t.Dim() - 1
			}
		default:
			used++
		}
	}
	return used
}

// isFancy reports whether a part of an index picks elements that are no view.
func isFancy(item starlark.Value) bool {
	switch item := item.(type) {
	case *array, *starlark.List:
		return true
	case *slice:
		step, err := starlark.AsInt32(item.step)
		return err == nil && step < 0
	}
	return false
}

// fancy resolves an index with arrays, or with slices that go backwards, as
// NumPy's "Indexing on ndarrays" has it: the arrays are broadcast together, and
// their dimensions take the place of those that they index, or come first
// where a slice stands between them.
func (a *array) fancy(items starlark.Tuple) (part, error) {
	if used := dimsUsed(items); used > a.t.Dim() {
		return part{}, fmt.Errorf("too many indices for array: array is %d-dimensional, but %d were indexed", a.t.Dim(), used)
	}
	x := &picking{at: tensor.New(tensor.I64, a.t.Shape()...)}
	for i := range x.at.Len() {
		x.at.SetInt(i, int64(i))
	}
	left := a.t.Dim() - dimsUsed(items)
	for _, item := range items {
		if err := x.add(item, left); err != nil {
			return part{}, err
		}
	}
	return x.part()
}

// picking is an index that is being resolved: the positions of the elements
// that are left, and the arrays that pick among them, each for a dimension.
type picking struct {
	at     *tensor.Tensor
	dim    int
	dims   []int
	arrays []*array
	apart  bool // something stands between the arrays
}

func (x *picking) add(item starlark.Value, left int) error {
	switch item := item.(type) {
	case starlark.NoneType:
		x.at = x.at.Reshape(slices.Insert(slices.Clone(x.at.Shape()), x.dim, 1)...)
		x.dim++
	case ellipsis:
		x.dim += left
	case *slice:
		return x.slice(item)
	case *array, *starlark.List:
		k, err := toArray(nil, item, tensor.Invalid)
		if err != nil {
			return err
		}
		if k.t.DType() != tensor.Bool {
			return x.pick(k)
		}
		for i, where := range nonzero(k) {
			if n := x.at.Shape()[x.dim]; n != k.t.Shape()[i] {
				return fmt.Errorf("boolean index did not match indexed array along dimension %d; dimension is %d but corresponding boolean dimension is %d", x.dim, n, k.t.Shape()[i])
			}
			if err := x.pick(where); err != nil {
				return err
			}
		}
	default:
		i, err := starlark.AsInt32(number(item))
		if err != nil {
			return fmt.Errorf("only integers, slices, ellipsis and None are valid indices, not %s", item.Type())
		}
		k := tensor.New(tensor.I64)
		k.SetInt(0, int64(i))
		return x.pick(&array{k})
	}
	return nil
}

func (x *picking) slice(s *slice) error {
	n := x.at.Shape()[x.dim]
	start, stop, step, err := sliceBounds(s.start, s.stop, s.step, n)
	if err != nil {
		return err
	}
	if step > 0 {
		x.at = x.at.Narrow(x.dim, min(start, n), (max(stop-start, 0)+step-1)/step, step)
		x.dim++
		return nil
	}
	shape := slices.Clone(x.at.Shape())
	shape[x.dim] = (max(start-stop, 0) - step - 1) / -step
	out := tensor.New(tensor.I64, shape...)
	for i := range shape[x.dim] {
		out.Select(x.dim, i).CopyFrom(x.at.Select(x.dim, start+i*step))
	}
	x.at = out
	x.dim++
	return nil
}

// pick takes an array of integers for the next dimension.
func (x *picking) pick(k *array) error {
	if !k.t.DType().IsInt() && k.t.Len() > 0 {
		return fmt.Errorf("arrays used as indices must be of integer or boolean type")
	}
	if n := len(x.dims); n > 0 && x.dims[n-1] != x.dim-1 {
		x.apart = true
	}
	x.dims, x.arrays = append(x.dims, x.dim), append(x.arrays, k)
	x.dim++
	return nil
}

func (x *picking) part() (part, error) {
	if len(x.arrays) == 0 {
		return positions(x.at), nil
	}
	ks, shape, err := broadcastAll(x.arrays...)
	if err != nil {
		return part{}, fmt.Errorf("shape mismatch: indexing arrays could not be broadcast together")
	}
	first := x.dims[0]
	if x.apart {
		first = 0
	}
	var order, rest []int // the dimensions that are picked from come first
	for i := range x.at.Dim() {
		if !slices.Contains(x.dims, i) {
			rest = append(rest, i)
		}
	}
	order = append(slices.Clone(x.dims), rest...)
	sizes := x.at.Shape()
	from := x.at.Permute(order...)
	var inner []int
	for _, i := range rest {
		inner = append(inner, sizes[i])
	}
	whole := append(slices.Clone(shape), inner...)
	if tensor.NumElements(whole) > maxElements {
		return part{}, errLarge
	}
	out := tensor.New(tensor.I64, append([]int{tensor.NumElements(shape)}, inner...)...)
	for i := range tensor.NumElements(shape) {
		one := from
		for j, k := range ks {
			at, n := int(k.Int(i)), sizes[x.dims[j]]
			if at < -n || at >= n {
				return part{}, fmt.Errorf("index %d is out of bounds for axis %d with size %d", at, x.dims[j], n)
			}
			one = one.Select(0, (at+n)%n)
		}
		out.Select(0, i).CopyFrom(one)
	}
	out = out.Reshape(whole...)
	var back []int // the dimensions of the arrays between the others
	for i := range first {
		back = append(back, len(shape)+i)
	}
	for i := range shape {
		back = append(back, i)
	}
	for i := first; i < len(inner); i++ {
		back = append(back, len(shape)+i)
	}
	return positions(out.Permute(back...)), nil
}

func positions(at *tensor.Tensor) part {
	p := part{at: make([]int, at.Len()), shape: at.Shape()}
	for i := range p.at {
		p.at[i] = int(at.Int(i))
	}
	return p
}

// nonzero lists, for each dimension, where the elements are that are not zero.
func nonzero(a *array) []*array {
	shape := a.t.Shape()
	at := make([][]int64, len(shape))
	for i := range a.t.Len() {
		if a.t.At(i) == 0 {
			continue
		}
		rest := i
		for d := len(shape) - 1; d >= 0; d-- {
			at[d] = append(at[d], int64(rest%shape[d]))
			rest /= shape[d]
		}
	}
	out := make([]*array, len(shape))
	for d := range out {
		t := tensor.New(tensor.I64, len(at[d]))
		for i, v := range at[d] {
			t.SetInt(i, v)
		}
		out[d] = &array{t}
	}
	return out
}
