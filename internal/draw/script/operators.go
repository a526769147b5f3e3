package script

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/internal/draw/gen"
)

// operator is a Python operator: its name in the module operator, and the
// token by which Starlark computes it on plain values.
type operator struct {
	name    string
	token   syntax.Token
	compare bool
	inplace bool
}

// operators maps the engine's names of binary operators.
var operators = func() map[string]operator {
	m := map[string]operator{}
	for token, name := range binaryNames {
		m[name] = operator{name: pythonName(name), token: token, compare: token >= syntax.LT && token <= syntax.LE || token == syntax.EQL || token == syntax.NEQ}
		if !m[name].compare {
			m["i"+name] = operator{name: "i" + name, token: token, inplace: true}
		}
	}
	m["pow"], m["ipow"] = operator{name: "pow", token: syntax.STARSTAR}, operator{name: "ipow", token: syntax.STARSTAR, inplace: true}
	m["matmul"], m["imatmul"] = operator{name: "matmul", token: syntax.ILLEGAL}, operator{name: "imatmul", token: syntax.ILLEGAL, inplace: true}
	return m
}()

// pythonName returns the name in the module operator; and_ and or_ are keywords.
func pythonName(name string) string {
	if name == "and" || name == "or" {
		return name + "_"
	}
	return name
}

// Limits on what plain values may grow to.
const (
	maxElements = 1 << 20
	maxIntBits  = 1 << 12
)

func (o operator) call(t *starlark.Thread, x, y starlark.Value) (starlark.Value, error) {
	if v, ok, err := o.ofObjects(t, x, y); ok {
		return v, err
	}
	x, y = memberValue(settings(x)), memberValue(settings(y))
	if _, ok := x.(starlark.String); ok && o.token == syntax.PERCENT {
		v, err := o.plain(x, y)
		if err != nil {
			return nil, err
		}
		return v, spend(t, v)
	}
	for _, v := range []starlark.Value{x, y} {
		switch v := v.(type) {
		case *symbol:
			return v.d.call("operator."+o.name, nil, starlark.Tuple{x, y}, nil)
		case *attr:
			return v.s.d.call("operator."+o.name, nil, starlark.Tuple{x, y}, nil)
		case foreign:
			if _, loads := t.Local(loadKey).(*loader); loads {
				return v, nil
			}
			return nil, v.unavailable()
		}
	}
	_, xa := x.(*array)
	_, ya := y.(*array)
	if xa || ya {
		v, err := o.arrays(t, x, y)
		if err != nil {
			return nil, err
		}
		return v, spend(t, v)
	}
	_, xg := x.(*generator)
	_, yg := y.(*generator)
	if xg || yg {
		return o.lazy(x, y)
	}
	v, err := o.plain(x, y)
	if err != nil {
		return nil, err
	}
	return v, spend(t, v)
}

// ofObjects calls the method of a class that the file defines.
func (o operator) ofObjects(t *starlark.Thread, x, y starlark.Value) (starlark.Value, bool, error) {
	name := strings.TrimSuffix(o.name, "_")
	if v, ok, err := special(t, x, "__"+name+"__", y); ok {
		return v, ok, err
	}
	if o.inplace {
		name = name[1:]
		if v, ok, err := special(t, x, "__"+name+"__", y); ok {
			return v, ok, err
		}
	}
	if a, b, ok := twoData(x, y, name != "eq" && name != "ne"); ok && o.compare {
		v, err := o.call(t, a, b)
		return v, true, err
	}
	if mirrored, ok := mirrors[name]; ok {
		return special(t, y, "__"+mirrored+"__", x)
	}
	return special(t, y, "__r"+name+"__", x)
}

// mirrors are the comparisons that the right operand makes.
var mirrors = map[string]string{"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}

// lazy combines generators.
func (o operator) lazy(x, y starlark.Value) (starlark.Value, error) {
	a, err := operand(x)
	if err != nil {
		return nil, err
	}
	b, err := operand(y)
	if err != nil {
		return nil, err
	}
	switch o.token {
	case syntax.PLUS:
		return &generator{node: gen.Add(a, b)}, nil
	case syntax.MINUS:
		return &generator{node: gen.Sub(a, b)}, nil
	case syntax.STAR:
		return &generator{node: gen.Mul(a, b)}, nil
	case syntax.PIPE:
		return &generator{node: gen.Or(a, b)}, nil
	}
	return nil, fmt.Errorf("a generator knows the operators +, -, * and |, not %s; use .value() to compute with what it drew", o.name)
}

// operand returns the gen value of a plain value or generator.
func operand(v starlark.Value) (any, error) {
	switch v := v.(type) {
	case *generator:
		return v.node, nil
	case starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case starlark.Int:
		i, ok := v.Int64()
		if !ok {
			return nil, fmt.Errorf("the integer %s is too large", v)
		}
		return i, nil
	case starlark.Float:
		return float64(v), nil
	case complexNumber:
		return complex128(v), nil
	case starlark.String:
		return string(v), nil
	case missing:
		return gen.Missing{}, nil
	}
	return v, nil
}

func (o operator) plain(x, y starlark.Value) (starlark.Value, error) {
	if a, b, ok := complexes(x, y); ok {
		return o.complex(a, b)
	}
	if v, err := o.calculate(x, y); v != nil || err != nil {
		return v, err
	}
	x, y = number(x), number(y)
	if o.token == syntax.STARSTAR {
		return pow(x, y)
	}
	if o.token == syntax.ILLEGAL {
		return nil, fmt.Errorf("@ needs tensors, not %s and %s", x.Type(), y.Type())
	}
	if err := o.bounded(x, y); err != nil {
		return nil, err
	}
	if list, ok := x.(*starlark.List); ok && o.inplace && o.token == syntax.PLUS {
		return list, extend(list, y)
	}
	z, err := starlark.Binary(o.token, x, y)
	if z == nil && err == nil {
		err = fmt.Errorf("unsupported operands for %s: %s and %s", o.token, x.Type(), y.Type())
	}
	return z, err
}

// number turns a bool into the int that Python computes with.
func number(v starlark.Value) starlark.Value {
	v = memberValue(v)
	if b, ok := v.(starlark.Bool); ok {
		if b {
			return starlark.MakeInt(1)
		}
		return starlark.MakeInt(0)
	}
	return v
}

// bounded rejects results that would not fit in memory.
func (o operator) bounded(x, y starlark.Value) error {
	xi, xInt := x.(starlark.Int)
	yi, yInt := y.(starlark.Int)
	tooLarge := fmt.Errorf("the result of %s is too large", o.token)
	switch o.token {
	case syntax.STAR:
		if xInt && yInt && xi.BigInt().BitLen()+yi.BigInt().BitLen() > maxIntBits {
			return tooLarge
		}
		for _, p := range []struct {
			seq starlark.Value
			n   starlark.Int
		}{{x, yi}, {y, xi}} {
			if size := starlark.Len(p.seq); size > 0 {
				if n, ok := p.n.Int64(); !ok || n > 0 && int64(size) > maxElements/n {
					return tooLarge
				}
			}
		}
	case syntax.PLUS:
		if max(starlark.Len(x), 0)+max(starlark.Len(y), 0) > maxElements {
			return tooLarge
		}
	}
	return nil
}

func extend(list *starlark.List, y starlark.Value) error {
	it, ok := y.(starlark.Iterable)
	if !ok {
		return fmt.Errorf("cannot add %s to a list", y.Type())
	}
	var items []starlark.Value
	for v := range starlark.Elements(it) {
		items = append(items, v)
	}
	for _, v := range items {
		if err := list.Append(v); err != nil {
			return err
		}
	}
	return nil
}

func pow(x, y starlark.Value) (starlark.Value, error) {
	xi, xInt := x.(starlark.Int)
	yi, yInt := y.(starlark.Int)
	if n, ok := yi.Int64(); xInt && yInt && ok && n >= 0 {
		if bits := int64(xi.BigInt().BitLen()); bits > 1 && n > maxIntBits/bits || n > 1<<40 {
			return nil, fmt.Errorf("the result of ** is too large")
		}
		b := xi.BigInt()
		return starlark.MakeBigInt(b.Exp(b, yi.BigInt(), nil)), nil
	}
	a, okA := starlark.AsFloat(x)
	b, okB := starlark.AsFloat(y)
	switch {
	case !okA || !okB:
		return nil, operands("**", x, y)
	case a == 0 && b < 0:
		return nil, fmt.Errorf("0.0 cannot be raised to a negative power")
	case a < 0 && b != math.Trunc(b) && !math.IsInf(a, 0):
		return complexNumber(cmplx.Pow(complex(a, 0), complex(b, 0))), nil
	}
	return starlark.Float(math.Pow(a, b)), nil
}

// complexes returns both operands as complex numbers when one of them is.
func complexes(x, y starlark.Value) (a, b complex128, ok bool) {
	_, xc := x.(complexNumber)
	_, yc := y.(complexNumber)
	if !xc && !yc {
		return 0, 0, false
	}
	a, okA := asComplex(x)
	b, okB := asComplex(y)
	return a, b, okA && okB
}

func asComplex(v starlark.Value) (complex128, bool) {
	if c, ok := v.(complexNumber); ok {
		return complex128(c), true
	}
	f, ok := starlark.AsFloat(number(v))
	return complex(f, 0), ok
}

func (o operator) complex(a, b complex128) (starlark.Value, error) {
	switch o.token {
	case syntax.PLUS:
		return complexNumber(a + b), nil
	case syntax.MINUS:
		return complexNumber(a - b), nil
	case syntax.STAR:
		return complexNumber(gen.Product(a, b)), nil
	case syntax.SLASH:
		if b == 0 {
			return nil, fmt.Errorf("complex division by zero")
		}
		return complexNumber(a / b), nil
	case syntax.STARSTAR:
		return complexNumber(cmplx.Pow(a, b)), nil
	case syntax.EQL:
		return starlark.Bool(a == b), nil
	case syntax.NEQ:
		return starlark.Bool(a != b), nil
	}
	return nil, fmt.Errorf("complex numbers do not know %s", o.name)
}

// unary computes -x, +x and ~x.
func unary(name string, token syntax.Token, x starlark.Value) (starlark.Value, error) {
	switch x := x.(type) {
	case *symbol:
		return x.d.call("operator."+name, nil, starlark.Tuple{x}, nil)
	case *attr:
		return x.s.d.call("operator."+name, nil, starlark.Tuple{x}, nil)
	case foreign:
		return nil, x.unavailable()
	case *generator:
		if name == "neg" {
			return &generator{node: gen.Neg(x.node)}, nil
		}
		return nil, fmt.Errorf("a generator does not know %s", name)
	case complexNumber:
		if name == "neg" {
			return -x, nil
		}
	case *array:
		return x.unary(name)
	}
	v, err := starlark.Unary(token, number(x))
	if v == nil && err == nil {
		err = fmt.Errorf("%s does not know %s", x.Type(), name)
	}
	return v, err
}

// truth is what decides an if: a tensor's value is observed.
func truth(t *starlark.Thread, v starlark.Value) (starlark.Value, error) {
	switch v := v.(type) {
	case *symbol:
		b, err := v.truth()
		return starlark.Bool(b), err
	case *attr:
		s, err := v.resolve()
		if err != nil {
			return nil, err
		}
		return truth(t, s)
	case *generator:
		d, err := drawOf(t, "the truth of a generator")
		if err != nil {
			return nil, err
		}
		drawn, err := d.settled(v, gen.Bool)
		if err != nil {
			return nil, err
		}
		return truth(t, drawn)
	case foreign:
		if _, loads := t.Local(loadKey).(*loader); loads {
			return starlark.False, nil
		}
		return nil, v.unavailable()
	case *array:
		if v.t.Len() != 1 {
			return nil, fmt.Errorf("the truth value of an array with more than one element is ambiguous: use a.any() or a.all()")
		}
		return starlark.Bool(v.t.At(0) != 0), nil
	case *object:
		if b, ok, err := special(t, v, "__bool__"); ok {
			return b, err
		}
		n, ok, err := special(t, v, "__len__")
		return starlark.Bool(!ok || n != nil && bool(n.Truth())), err
	}
	return v, nil
}

// junction is a[0] where its truth is not on, else what the function a[1] gives.
func junction(t *starlark.Thread, a starlark.Tuple, on bool) (starlark.Value, error) {
	v, err := truth(t, a[0])
	if err != nil {
		return nil, err
	}
	if bool(v.Truth()) == on {
		return starlark.Call(t, a[1], nil, nil)
	}
	return a[0], nil
}
