package script

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

// tolerance reads rtol, atol and equal_nan.
func (a arguments) tolerance(rtol, atol float64, nan bool) (float64, float64, bool, error) {
	for _, p := range []struct {
		name string
		into *float64
	}{{"rtol", &rtol}, {"atol", &atol}} {
		if v := a.get(p.name); v != nil {
			f, ok := starlark.AsFloat(number(v))
			if !ok {
				return 0, 0, false, a.wrong(p.name, "a number")
			}
			*p.into = f
		}
	}
	if v := a.get("equal_nan"); v != nil {
		nan = bool(v.Truth())
	}
	return rtol, atol, nan, nil
}

// near compares two arrays element by element; worst is the largest excess.
func near(t *starlark.Thread, a arguments, rtol, atol float64, nan bool) (*array, error) {
	rtol, atol, nan, err := a.tolerance(rtol, atol, nan)
	if err != nil {
		return nil, err
	}
	x, err := toArray(t, a.values[0], tensor.Invalid)
	if err != nil {
		return nil, err
	}
	y, err := toArray(t, a.values[1], tensor.Invalid)
	if err != nil {
		return nil, err
	}
	ts, shape, err := broadcastAll(x, y)
	if err != nil {
		return nil, err
	}
	out := tensor.New(tensor.Bool, shape...)
	for i := range out.Len() {
		out.SetInt(i, truthInt(isNear(ts[0].At(i), ts[1].At(i), rtol, atol, nan)))
	}
	return &array{out}, nil
}

func isNear(p, q complex128, rtol, atol float64, nan bool) bool {
	switch {
	case cmplx.IsNaN(p) || cmplx.IsNaN(q):
		return nan && cmplx.IsNaN(p) && cmplx.IsNaN(q)
	case p == q:
		return true
	case cmplx.IsInf(p) || cmplx.IsInf(q):
		return false
	}
	return cmplx.Abs(p-q) <= atol+float64(rtol*cmplx.Abs(q))
}

func closeArray(t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := near(t, a, 1e-5, 1e-8, false)
	if err != nil {
		return nil, err
	}
	return x.scalar(), nil
}

func (a *array) every() bool {
	for i := range a.t.Len() {
		if a.t.Int(i) == 0 {
			return false
		}
	}
	return true
}

func allClose(t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := near(t, a, 1e-5, 1e-8, false)
	if err != nil {
		return nil, err
	}
	return starlark.Bool(x.every()), nil
}

func sameArrays(t *starlark.Thread, x, y starlark.Value, nan bool) (bool, error) {
	a, err := toArray(t, x, tensor.Invalid)
	if err != nil {
		return false, err
	}
	b, err := toArray(t, y, tensor.Invalid)
	if err != nil || !slices.Equal(a.t.Shape(), b.t.Shape()) {
		return false, err
	}
	for i := range a.t.Len() {
		p, q := a.t.At(i), b.t.At(i)
		if p != q && !(nan && cmplx.IsNaN(p) && cmplx.IsNaN(q)) {
			return false, nil
		}
	}
	return true, nil
}

func arrayEqual(t *starlark.Thread, a arguments) (starlark.Value, error) {
	eq, err := sameArrays(t, a.values[0], a.values[1], false)
	return starlark.Bool(eq), err
}

func assertClose(t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := near(t, a, 1e-7, 0, true)
	if err != nil {
		return nil, err
	}
	return starlark.None, a.asserted(x.every())
}

func assertAlmost(t *starlark.Thread, a arguments) (starlark.Value, error) {
	decimal := 7.0
	if v := a.get("decimal"); v != nil {
		decimal, _ = starlark.AsFloat(v)
	}
	b := arguments{a.fn, []string{"a", "b", "rtol", "atol", "equal_nan"}, []starlark.Value{a.values[0], a.values[1], starlark.Float(0), starlark.Float(1.5 * math.Pow(10, -decimal)), nil}}
	x, err := near(t, b, 0, 0, true)
	if err != nil {
		return nil, err
	}
	return starlark.None, a.asserted(x.every())
}

func assertSame(t *starlark.Thread, a arguments) (starlark.Value, error) {
	eq, err := sameArrays(t, a.values[0], a.values[1], true)
	if err != nil {
		return nil, err
	}
	return starlark.None, a.asserted(eq)
}

// asserted is the error of an assertion of numpy.testing that does not hold.
func (a arguments) asserted(ok bool) error {
	if ok {
		return nil
	}
	return &assertionError{fmt.Sprintf("the test's assertion failed: %s(%s, %s)", a.fn, shortened(a.values[0]), shortened(a.values[1]))}
}
