package config

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// dtypes are the scalar types by the names that numpy's classes have.
var dtypes = []string{
	"bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
	"float16", "float32", "float64", "complex64", "complex128",
}

// genfuncs are the generators of DIOPI.
var genfuncs = []string{
	"rand", "randn", "uniform", "empty", "ones", "zeros", "mask", "randint", "positive",
	"sym_mat", "randn_int", "randn_complx", "log_softmax",
}

// operators are the names by which checked source calls its operators.
var operators = map[syntax.Token]string{
	syntax.PLUS: "__add__", syntax.MINUS: "__sub__", syntax.STAR: "__mul__", syntax.SLASH: "__truediv__",
	syntax.SLASHSLASH: "__floordiv__", syntax.PERCENT: "__mod__",
	syntax.EQL: "__eq__", syntax.NEQ: "__ne__", syntax.LT: "__lt__", syntax.LE: "__le__", syntax.GT: "__gt__", syntax.GE: "__ge__",
}

// predeclared are the names that a config has without importing them.
var predeclared = declare()

func declare() starlark.StringDict {
	np := module{name: "np", members: starlark.StringDict{
		"inf": starlark.Float(math.Inf(1)), "nan": starlark.Float(math.NaN()), "pi": starlark.Float(math.Pi),
		"half": dtypeValue("float16"), "single": dtypeValue("float32"), "double": dtypeValue("float64"),
	}}
	own := module{name: "Dtype", members: starlark.StringDict{"bool": dtypeValue("bool_")}}
	for _, name := range dtypes {
		np.members[name], own.members[name] = dtypeValue(name), dtypeValue(name)
	}
	gen := module{name: "Genfunc", members: starlark.StringDict{}}
	for _, name := range genfuncs {
		gen.members[name] = starlark.String("Genfunc." + name)
	}
	out := starlark.StringDict{
		"np": np, "numpy": np, "Dtype": own, "Genfunc": gen,
		"dict":  starlark.NewBuiltin("dict", makeDict),
		"slice": starlark.NewBuiltin("slice", makeSlice),
		"Skip":  starlark.NewBuiltin("Skip", makeSkip),
		"int":   starlark.NewBuiltin("int", makeInt),
		"range": starlark.NewBuiltin("range", makeRange),
	}
	for op, name := range operators {
		out[name] = starlark.NewBuiltin(op.String(), operate(op))
	}
	return out
}

func isModule(name string) bool {
	_, ok := predeclared[name].(module)
	return ok
}

func isUniverse(name string) bool { return starlark.Universe.Has(name) }

// module is a namespace of the names that configs import.
type module struct {
	name    string
	members starlark.StringDict
}

func (m module) String() string        { return m.name }
func (m module) Type() string          { return "module" }
func (m module) Freeze()               {}
func (m module) Truth() starlark.Bool  { return true }
func (m module) Hash() (uint32, error) { return 0, errors.New("a module has no hash") }

// Attr returns a member.
func (m module) Attr(name string) (starlark.Value, error) {
	if v, ok := m.members[name]; ok {
		return v, nil
	}
	return nil, starlark.NoSuchAttrError(fmt.Sprintf("%s has no %s; it has %s", m.name, name, strings.Join(m.AttrNames(), " ")))
}

// AttrNames lists the members.
func (m module) AttrNames() []string { return m.members.Keys() }

// dtypeValue is a DType in Starlark.
type dtypeValue string

func (d dtypeValue) String() string        { return "np." + string(d) }
func (d dtypeValue) Type() string          { return "dtype" }
func (d dtypeValue) Freeze()               {}
func (d dtypeValue) Truth() starlark.Bool  { return true }
func (d dtypeValue) Hash() (uint32, error) { return starlark.String(d).Hash() }

// tupled is a Slice or a Skip in Starlark.
type tupled struct {
	name  string
	parts starlark.Tuple
}

func (v *tupled) String() string        { return v.name }
func (v *tupled) Type() string          { return v.name }
func (v *tupled) Freeze()               {}
func (v *tupled) Truth() starlark.Bool  { return true }
func (v *tupled) Hash() (uint32, error) { return 0, fmt.Errorf("a %s has no hash", v.name) }

func makeDict(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) > 0 {
		return nil, errors.New("dict takes keywords only: dict(key=value)")
	}
	d := starlark.NewDict(len(kwargs))
	for _, kv := range kwargs {
		if err := d.SetKey(kv[0], kv[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func makeSlice(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 || len(args) < 1 || len(args) > 3 {
		return nil, errors.New("want slice(stop) or slice(start, stop[, step])")
	}
	parts := starlark.Tuple{starlark.None, starlark.None, starlark.None}
	if len(args) == 1 {
		parts[1] = args[0]
	} else {
		copy(parts, args)
	}
	return &tupled{"slice", parts}, nil
}

func makeSkip(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 || len(args) != 1 {
		return nil, errors.New("want Skip(value)")
	}
	return &tupled{"Skip", args}, nil
}

func makeInt(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 || len(args) != 1 {
		return nil, errors.New("want int(x)")
	}
	if s, ok := args[0].(starlark.String); ok && len(s) > maxNumber {
		return nil, errors.New("int: the string is too long")
	}
	return starlark.Call(t, starlark.Universe["int"], args, nil)
}

// makeRange is Python's range over as many integers as a config may hold, which
// are counted at once: what runs over them takes a step for each.
func makeRange(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Call(t, starlark.Universe["range"], args, kwargs)
	if err != nil {
		return nil, err
	}
	return v, spend(t, starlark.Len(v))
}

// spend counts elements that are made.
func spend(t *starlark.Thread, n int) error {
	spent, _ := t.Local(spentKey).(int)
	if n > maxValues-spent {
		return fmt.Errorf("this makes more than %d elements", maxValues)
	}
	t.SetLocal(spentKey, spent+n)
	return nil
}

// spentKey is the thread-local count of the elements that operators have made.
const spentKey = "conform.spent"

// maxBits bounds the integers that operators make.
const maxBits = 256

// operate is an operator on scalars, and + and * on lists, tuples and strings.
func operate(op syntax.Token) func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		x, y := args[0], args[1]
		size, err := resultSize(op, x, y)
		if err != nil {
			return nil, err
		}
		if err := spend(t, size); err != nil {
			return nil, err
		}
		if op == syntax.EQL || op == syntax.NEQ || op == syntax.LT || op == syntax.LE || op == syntax.GT || op == syntax.GE {
			ok, err := starlark.Compare(op, x, y)
			return starlark.Bool(ok), err
		}
		v, err := starlark.Binary(op, x, y)
		if n, ok := v.(starlark.Int); ok && n.BigInt().BitLen() > maxBits {
			return nil, fmt.Errorf("this integer needs more than %d bits", maxBits)
		}
		return v, err
	}
}

// resultSize is an upper bound of the elements that an operator makes.
func resultSize(op syntax.Token, x, y starlark.Value) (int, error) {
	n, m := starlark.Len(x), starlark.Len(y)
	switch {
	case n < 0 && m < 0:
		return 1, nil
	case op == syntax.PLUS && n >= 0 && m >= 0:
		return n + m, nil
	case op == syntax.STAR && (n < 0 || m < 0):
		times := x
		if n >= 0 {
			times = y
		}
		k, err := starlark.AsInt32(times)
		if err != nil {
			return 0, errors.New("a list is repeated by an integer only")
		}
		return max(0, k) * max(n, m), nil
	case isScalar(x) && isScalar(y) && op != syntax.PERCENT:
		return n + m + 2, nil
	}
	return 0, fmt.Errorf("%s has no place between %s and %s in a config", op, x.Type(), y.Type())
}

func isScalar(v starlark.Value) bool {
	switch v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float, starlark.String, dtypeValue:
		return true
	}
	return false
}
