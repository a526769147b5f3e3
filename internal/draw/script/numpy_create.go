package script

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

func filled(v complex128) numpyFunc {
	return numpyFunc{[]string{"shape", "dtype"}, 1, func(_ *starlark.Thread, a arguments) (starlark.Value, error) {
		return full(a.get("shape"), a.get("dtype"), tensor.F64, v)
	}}
}

func full(shape, dtype starlark.Value, d tensor.DType, v complex128) (starlark.Value, error) {
	dims, err := dims(shape)
	if err != nil {
		return nil, err
	}
	given, err := numpyDType(dtype)
	if err != nil {
		return nil, err
	}
	if given != tensor.Invalid {
		d = given
	}
	out := tensor.New(d, dims...)
	for i := range out.Len() {
		out.Set(i, v)
	}
	return &array{out}, nil
}

func filledLike(v complex128) numpyFunc {
	return numpyFunc{[]string{"a", "dtype"}, 1, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
		x, err := a.array(t, "a")
		if err != nil {
			return nil, err
		}
		return full(intTuple(x.t.Shape()), a.get("dtype"), x.t.DType(), v)
	}}
}

func makeArray(t *starlark.Thread, a arguments) (starlark.Value, error) {
	d, err := numpyDType(a.get("dtype"))
	if err != nil {
		return nil, err
	}
	x, err := toArray(t, a.values[0], d)
	if err != nil {
		return nil, err
	}
	return x.clone(), nil
}

func fullCall(t *starlark.Thread, a arguments) (starlark.Value, error) {
	v, err := a.array(t, "fill_value")
	if err != nil {
		return nil, err
	}
	if v.t.Dim() != 0 {
		return nil, lack("numpy.full with an array is not supported in test files")
	}
	return full(a.get("shape"), a.get("dtype"), v.t.DType(), v.t.At(0))
}

func arange(t *starlark.Thread, a arguments) (starlark.Value, error) {
	start, stop, step := a.get("start"), a.get("stop"), a.get("step")
	if stop == nil || stop == starlark.None {
		start, stop = starlark.MakeInt(0), start
	}
	if step == nil {
		step = starlark.MakeInt(1)
	}
	d, err := numpyDType(a.get("dtype"))
	if err != nil {
		return nil, err
	}
	natural := tensor.I64
	var xs [3]float64
	for i, v := range []starlark.Value{start, stop, step} {
		v, err := settled(v)
		if err != nil {
			return nil, err
		}
		f, ok := starlark.AsFloat(number(v))
		if !ok {
			return nil, fmt.Errorf("arange takes numbers, not %s", v.Type())
		}
		if _, isFloat := v.(starlark.Float); isFloat {
			natural = tensor.F64
		}
		xs[i] = f
	}
	if d == tensor.Invalid {
		d = natural
	}
	n := math.Ceil((xs[1] - xs[0]) / xs[2])
	if !(n <= maxElements) {
		return nil, errLarge
	}
	out := tensor.New(d, max(int(n), 0))
	delta := (xs[0] + xs[2]) - xs[0] // as numpy fills: from the difference of the first two
	for i := range out.Len() {
		v := xs[0] + float64(float64(i)*delta)
		if d.IsInt() {
			out.SetInt(i, int64(v))
		} else {
			out.Set(i, complex(v, 0))
		}
	}
	return &array{out}, nil
}

func linspace(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	xs, err := realArgs("linspace", starlark.Tuple(a.values[:2]), 2)
	if err != nil {
		return nil, err
	}
	n := 50
	if v := a.get("num"); v != nil {
		if n, err = starlark.AsInt32(v); err != nil || n < 0 || n > maxElements {
			return nil, fmt.Errorf("linspace: num must be from 0 to %d", maxElements)
		}
	}
	d, err := numpyDType(a.get("dtype"))
	if err != nil {
		return nil, err
	}
	if d == tensor.Invalid {
		d = tensor.F64
	}
	parts := n - 1
	if v := a.get("endpoint"); v != nil && !bool(v.Truth()) {
		parts = n
	}
	out := tensor.New(d, n)
	step := (xs[1] - xs[0]) / float64(max(parts, 1))
	for i := range n {
		v := float64(float64(i)*step) + xs[0]
		if i == parts && n > 1 {
			v = xs[1]
		}
		if d.IsInt() {
			out.SetInt(i, int64(math.Floor(v)))
		} else {
			out.Set(i, complex(v, 0))
		}
	}
	return &array{out}, nil
}

func eye(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	m := a.get("M")
	if m == nil || m == starlark.None {
		m = a.get("N")
	}
	v, err := full(starlark.Tuple{a.get("N"), m}, a.get("dtype"), tensor.F64, 0)
	if err != nil {
		return nil, err
	}
	k := 0
	if a.get("k") != nil {
		if k, err = starlark.AsInt32(a.get("k")); err != nil {
			return nil, err
		}
	}
	t := v.(*array).t
	for i := range t.Shape()[0] {
		if j := i + k; j >= 0 && j < t.Shape()[1] {
			t.Set(i*t.Shape()[1]+j, 1)
		}
	}
	return v, nil
}
