package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

func transposed(v op.Value, dim0, dim1 int) (layout, error) {
	n := len(v.Shape())
	a, err := wrapDim(dim0, n)
	if err != nil {
		return layout{}, err
	}
	b, err := wrapDim(dim1, n)
	if err != nil {
		return layout{}, err
	}
	l := layout{shape: slices.Clone(v.Shape()), strides: slices.Clone(v.Strides())}
	if n > 0 {
		l.shape[a], l.shape[b] = l.shape[b], l.shape[a]
		l.strides[a], l.strides[b] = l.strides[b], l.strides[a]
	}
	return l, nil
}

// permutation returns the wrapped dims of a permute.
func permutation(a op.Args) ([]int, error) {
	dims, n := a.Ints(arg.Dims), len(a.Value(arg.Input).Shape())
	if len(dims) != n {
		return nil, op.RuntimeError("permute: argument 'dims' names %d dimensions but the input has %d", len(dims), n)
	}
	out := make([]int, n)
	for i, d := range dims {
		w, err := wrapDim(d, n)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out[:i], w) {
			return nil, op.RuntimeError("permute(): duplicate dims are not allowed: %s", tensor.ShapeString(dims))
		}
		out[i] = w
	}
	return out, nil
}

func permuted(a op.Args) (layout, error) {
	dims, err := permutation(a)
	if err != nil {
		return layout{}, err
	}
	v := a.Value(arg.Input)
	var l layout
	for _, d := range dims {
		l.shape, l.strides = append(l.shape, v.Shape()[d]), append(l.strides, v.Strides()[d])
	}
	return l, nil
}

// expanded is PyTorch's infer_expand_geometry.
func expanded(a op.Args) (layout, error) {
	v, size := a.Value(arg.Input), a.Ints(arg.Size)
	lead := len(size) - len(v.Shape())
	if lead < 0 {
		return layout{}, op.RuntimeError("expand: the number of sizes provided (%d) must be greater or equal to the number of dimensions in the tensor (%d)", len(size), len(v.Shape()))
	}
	l := layout{shape: slices.Clone(size), strides: make([]int, len(size))}
	for i := len(size) - 1; i >= 0; i-- {
		have := 1
		switch {
		case i >= lead:
			have, l.strides[i] = v.Shape()[i-lead], v.Strides()[i-lead]
		case i+1 < len(size):
			l.strides[i] = l.shape[i+1] * l.strides[i+1]
		}
		switch {
		case size[i] == -1 && i >= lead:
			l.shape[i] = have
		case size[i] < 0 || size[i] != have && have != 1:
			return layout{}, op.RuntimeError("The expanded size of the tensor (%d) must match the existing size (%d) at non-singleton dimension %d", size[i], have, i)
		case size[i] != have:
			l.strides[i] = 0
		}
	}
	return l, nil
}

func unsqueezed(a op.Args) (layout, error) {
	v := a.Value(arg.Input)
	d, err := wrapDim(a.Int(arg.Dim), len(v.Shape())+1)
	if err != nil {
		return layout{}, err
	}
	step := 1
	if d < len(v.Shape()) {
		step = v.Shape()[d] * v.Strides()[d]
	}
	return layout{shape: slices.Insert(slices.Clone(v.Shape()), d, 1), strides: slices.Insert(slices.Clone(v.Strides()), d, step)}, nil
}

// squeezedDims returns the dimensions that squeeze removes where their size is 1.
func squeezedDims(a op.Args) ([]int, error) {
	if dims, list := a.Any(arg.Dim).([]int); list && len(dims) == 0 {
		return nil, nil
	}
	return statDims(a)
}

func squeezed(a op.Args) (layout, error) {
	v := a.Value(arg.Input)
	drop, err := squeezedDims(a)
	if err != nil {
		return layout{}, err
	}
	l := layout{shape: []int{}, strides: []int{}}
	for i, n := range v.Shape() {
		if n != 1 || !slices.Contains(drop, i) {
			l.shape, l.strides = append(l.shape, n), append(l.strides, v.Strides()[i])
		}
	}
	return l, nil
}

// narrowRange returns the wrapped dimension and the checked range of a narrow.
func narrowRange(a op.Args) (dim, start, n int, err error) {
	shape := a.Value(arg.Input).Shape()
	if len(shape) == 0 {
		return 0, 0, 0, op.RuntimeError("narrow() cannot be applied to a 0-dim tensor")
	}
	if dim, err = wrapDim(a.Int(arg.Dim), len(shape)); err != nil {
		return
	}
	start, n = a.Int(arg.Start), a.Int(arg.Length)
	if start != shape[dim] {
		if start, err = wrapDim(start, shape[dim]); err != nil {
			return
		}
	}
	if n < 0 || start+n > shape[dim] {
		err = op.RuntimeError("start (%d) + length (%d) exceeds dimension size (%d)", start, n, shape[dim])
	}
	return
}

func narrowed(a op.Args) (layout, error) {
	d, start, n, err := narrowRange(a)
	if err != nil {
		return layout{}, err
	}
	return cut(a.Value(arg.Input), d, start, n, 1), nil
}

// cut is the layout of n entries of a dimension, step apart.
func cut(v op.Value, d, start, n, step int) layout {
	l := layout{shape: slices.Clone(v.Shape()), strides: slices.Clone(v.Strides()), offset: start * v.Strides()[d]}
	l.shape[d] = n
	l.strides[d] *= step
	return l
}

// slicing is a Python slice of one dimension, brought into range.
type slicing struct{ dim, start, end, n, step int }

func checkSlice(a op.Args) error {
	shape := a.Value(arg.Input).Shape()
	if len(shape) == 0 {
		return op.IndexError("slice() cannot be applied to a 0-dim tensor")
	}
	if a.Int(arg.StepInt) <= 0 {
		return op.RuntimeError("slice step must be positive, not %d", a.Int(arg.StepInt))
	}
	_, err := wrapDim(a.Int(arg.Dim), len(shape))
	return err
}

// sliceOf clips start and end as Python does.
func sliceOf(a op.Args) slicing {
	shape := a.Value(arg.Input).Shape()
	d, _ := wrapDim(a.Int(arg.Dim), len(shape))
	size := shape[d]
	clip := func(name op.IntArg, v int) int {
		if a.Has(name) {
			v = a.Int(name)
		}
		if v < 0 {
			v += size
		}
		return min(max(v, 0), size)
	}
	s := slicing{dim: d, start: clip(arg.Start, 0), step: a.Int(arg.StepInt)}
	s.end = max(clip(arg.EndInt, size), s.start)
	s.n = (s.end - s.start + s.step - 1) / s.step
	return s
}

func sliced(a op.Args) (layout, error) {
	s := sliceOf(a)
	return cut(a.Value(arg.Input), s.dim, s.start, s.n, s.step), nil
}
