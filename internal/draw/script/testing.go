package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

// closeParams are those of torch.testing.assert_close.
var closeParams = []string{"actual", "expected", "allow_subclasses", "rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride", "msg"}

// closeTolerances are the defaults of torch.testing.assert_close, rtol and
// atol; 0 for the dtypes that are not here.
var closeTolerances = map[tensor.DType][2]float64{
	tensor.F16: {1e-3, 1e-5}, tensor.BF16: {1.6e-2, 1e-5}, tensor.F32: {1.3e-6, 1e-5}, tensor.F64: {1e-7, 1e-7},
	tensor.C64: {1.3e-6, 1e-5}, tensor.C128: {1e-7, 1e-7},
}

// assertTensorsClose is torch.testing.assert_close: of tensors, numbers, and
// sequences of them. Devices, layouts and strides are not looked at.
func assertTensorsClose(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"torch.testing.assert_close", closeParams, make([]starlark.Value, len(closeParams))}
	if err := a.bind(args, kwargs); err != nil {
		return nil, err
	}
	for i, v := range a.values {
		if v == starlark.None { // the default
			a.values[i] = nil
		}
	}
	if a.values[0] == nil || a.values[1] == nil {
		return nil, fmt.Errorf("%s takes actual and expected", a.fn)
	}
	return starlark.None, a.assertClose(t)
}

func (a arguments) assertClose(t *starlark.Thread) error {
	actual, several := sequence(a.values[0])
	expected, both := sequence(a.values[1])
	switch {
	case several != both || len(actual) != len(expected):
		return a.asserted(false)
	case several:
		for i := range actual {
			each := arguments{a.fn, a.params, slices.Clone(a.values)}
			each.values[0], each.values[1] = actual[i], expected[i]
			if err := each.assertClose(t); err != nil {
				return err
			}
		}
		return nil
	}
	x, err := toArray(t, a.values[0], tensor.Invalid)
	if err != nil {
		return err
	}
	y, err := toArray(t, a.values[1], tensor.Invalid)
	if err != nil {
		return err
	}
	checked := a.get("check_dtype") == nil || bool(a.get("check_dtype").Truth())
	if !slices.Equal(x.t.Shape(), y.t.Shape()) || checked && x.t.DType() != y.t.DType() {
		return a.asserted(false)
	}
	rx, ry := closeTolerances[x.t.DType()], closeTolerances[y.t.DType()]
	close, err := near(t, a, max(rx[0], ry[0]), max(rx[1], ry[1]), false)
	if err != nil {
		return err
	}
	return a.asserted(close.every())
}
