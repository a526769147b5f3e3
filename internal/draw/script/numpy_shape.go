package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

func arraysOf(t *starlark.Thread, v starlark.Value) ([]*array, tensor.DType, error) {
	vs, err := iterate(t, v)
	if err != nil {
		return nil, tensor.Invalid, err
	}
	if len(vs) == 0 {
		return nil, tensor.Invalid, fmt.Errorf("need at least one array")
	}
	out := make([]*array, len(vs))
	d := tensor.Bool
	total := 0
	for i, v := range vs {
		if out[i], err = toArray(t, v, tensor.Invalid); err != nil {
			return nil, d, err
		}
		d = promoteNumpy(d, out[i].t.DType())
		if total += out[i].t.Len(); total > maxElements {
			return nil, d, errLarge
		}
	}
	return out, d, nil
}

func oneAxis(v starlark.Value, dims int) (int, error) {
	if v == nil {
		return 0, nil
	}
	axes, _, err := axisOf(v, dims)
	if err != nil {
		return 0, err
	}
	if len(axes) != 1 {
		return 0, fmt.Errorf("want one axis")
	}
	return axes[0], nil
}

func concatenate(t *starlark.Thread, args arguments) (starlark.Value, error) {
	as, d, err := arraysOf(t, args.get("arrays"))
	if err != nil {
		return nil, err
	}
	axis, err := oneAxis(args.get("axis"), as[0].t.Dim())
	if err != nil || as[0].t.Dim() == 0 {
		return nil, fmt.Errorf("zero-dimensional arrays, or an axis outside of them, cannot be concatenated")
	}
	shape := slices.Clone(as[0].t.Shape())
	shape[axis] = 0
	for _, a := range as {
		s := slices.Clone(a.t.Shape())
		if len(s) != len(shape) {
			return nil, fmt.Errorf("all the input arrays must have same number of dimensions")
		}
		shape[axis] += s[axis]
		s[axis] = shape[axis]
		if !slices.Equal(s, shape) {
			return nil, fmt.Errorf("all the input array dimensions except for the concatenation axis must match exactly")
		}
	}
	out := tensor.New(d, shape...)
	from := 0
	for _, a := range as {
		n := a.t.Shape()[axis]
		out.Narrow(axis, from, n, 1).CopyFrom(a.t.Convert(d))
		from += n
	}
	return &array{out}, nil
}

func stackArrays(t *starlark.Thread, args arguments) (starlark.Value, error) {
	as, d, err := arraysOf(t, args.get("arrays"))
	if err != nil {
		return nil, err
	}
	axis, err := oneAxis(args.get("axis"), as[0].t.Dim()+1)
	if err != nil {
		return nil, err
	}
	out := tensor.New(d, slices.Insert(slices.Clone(as[0].t.Shape()), axis, len(as))...)
	for i, a := range as {
		if !slices.Equal(a.t.Shape(), as[0].t.Shape()) {
			return nil, fmt.Errorf("all input arrays must have the same shape")
		}
		out.Select(axis, i).CopyFrom(a.t.Convert(d))
	}
	return &array{out}, nil
}

func expandDims(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	axis, err := oneAxis(args.get("axis"), a.t.Dim()+1)
	if err != nil {
		return nil, err
	}
	return &array{a.t.Reshape(slices.Insert(slices.Clone(a.t.Shape()), axis, 1)...)}, nil
}

func squeeze(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	axes, all, err := axisOf(args.get("axis"), a.t.Dim())
	if err != nil {
		return nil, err
	}
	shape := []int{}
	for i, n := range a.t.Shape() {
		chosen := slices.Contains(axes, i)
		if chosen && n != 1 {
			return nil, fmt.Errorf("cannot select an axis to squeeze out which has size not equal to one")
		}
		if !chosen && !(all && n == 1) {
			shape = append(shape, n)
		}
	}
	return &array{a.t.Reshape(shape...)}, nil
}

// reshaped resolves one -1.
func (a *array) reshaped(shape []int) (*array, error) {
	free, n := -1, 1
	for i, s := range shape {
		switch {
		case s == -1 && free < 0:
			free = i
		case s < 0 || s > maxElements:
			return nil, fmt.Errorf("cannot reshape array of size %d into shape %s", a.t.Len(), tensor.ShapeString(shape))
		default:
			n *= s
		}
		if n > maxElements {
			return nil, fmt.Errorf("cannot reshape array of size %d into that shape", a.t.Len())
		}
	}
	if free >= 0 && n > 0 && a.t.Len()%n == 0 {
		shape = slices.Clone(shape)
		shape[free] = a.t.Len() / n
		n *= shape[free]
		free = -1
	}
	if free >= 0 || n != a.t.Len() {
		return nil, fmt.Errorf("cannot reshape array of size %d into shape %s", a.t.Len(), tensor.ShapeString(shape))
	}
	return &array{a.t.Reshape(shape...)}, nil
}

func signedDims(vs []starlark.Value) ([]int, error) {
	if len(vs) == 1 {
		if inner, ok := sequence(vs[0]); ok {
			vs = inner
		}
	}
	out := make([]int, len(vs))
	for i, v := range vs {
		n, err := starlark.AsInt32(number(v))
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

func reshapeCall(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	shape, err := signedDims([]starlark.Value{args.get("newshape")})
	if err != nil {
		return nil, err
	}
	return a.reshaped(shape)
}

func (a *array) permuted(vs []starlark.Value) (*array, error) {
	order := make([]int, a.t.Dim())
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	if len(vs) > 0 && !(len(vs) == 1 && vs[0] == starlark.None) {
		given, err := signedDims(vs)
		if err != nil {
			return nil, err
		}
		seen := make([]bool, len(order))
		if len(given) != len(order) {
			return nil, fmt.Errorf("axes don't match array")
		}
		for i, g := range given {
			if g < -len(order) || g >= len(order) || seen[(g+len(order))%len(order)] {
				return nil, fmt.Errorf("axes don't match array")
			}
			order[i] = (g + len(order)) % len(order)
			seen[order[i]] = true
		}
	}
	return &array{a.t.Permute(order...)}, nil
}

func transposeCall(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	if v := args.get("axes"); v != nil {
		return a.permuted([]starlark.Value{v})
	}
	return a.permuted(nil)
}

// broadcastAll gives arrays one shape.
func broadcastAll(as ...*array) ([]*tensor.Tensor, []int, error) {
	shapes := make([][]int, len(as))
	for i, a := range as {
		shapes[i] = a.t.Shape()
	}
	shape, err := tensor.BroadcastShapes(shapes...)
	if err != nil {
		return nil, nil, fmt.Errorf("operands could not be broadcast together")
	}
	if tensor.NumElements(shape) > maxElements {
		return nil, nil, errLarge
	}
	out := make([]*tensor.Tensor, len(as))
	for i, a := range as {
		if out[i], err = a.t.Expand(shape...); err != nil {
			return nil, nil, err
		}
	}
	return out, shape, nil
}

func flip(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "m")
	if err != nil {
		return nil, err
	}
	axes, all, err := axisOf(args.get("axis"), a.t.Dim())
	if err != nil {
		return nil, err
	}
	x := a.t
	for i, n := range a.t.Shape() {
		if !all && !slices.Contains(axes, i) {
			continue
		}
		next := tensor.New(x.DType(), x.Shape()...)
		for j := range n {
			next.Select(i, j).CopyFrom(x.Select(i, n-1-j))
		}
		x = next
	}
	return &array{x}, nil
}

func broadcastTo(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "array")
	if err != nil {
		return nil, err
	}
	shape, err := dims(args.get("shape"))
	if err != nil {
		return nil, err
	}
	x, err := a.t.Expand(shape...)
	if err != nil {
		return nil, err
	}
	return &array{x.Clone()}, nil
}

// reinterpreted is a.view(dtype): the bytes of a, as elements of another size along its
// last dimension.
func (a *array) reinterpreted(args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return a, nil
	}
	d, err := numpyDType(args[0])
	if err != nil {
		return nil, err
	}
	shape, bytes := slices.Clone(a.t.Shape()), a.t.Contiguous().Bytes()
	if d == tensor.Invalid {
		return a, nil
	}
	if from, to := a.t.DType().Size(), d.Size(); from != to {
		last := len(shape) - 1
		if last < 0 || shape[last]*from%to != 0 {
			return nil, fmt.Errorf("the last dimension, in bytes, has to be a multiple of the size of %s", d)
		}
		shape[last] = shape[last] * from / to
	}
	t, err := tensor.FromBytes(d, shape, nil, 0, bytes)
	if err != nil {
		return nil, err
	}
	return &array{t}, nil
}
