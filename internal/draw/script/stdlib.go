package script

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/lib/json"
	"go.starlark.net/starlark"
)

// standard are the modules of Python's library, and those around OneFlow's
// tests, that test files may import.
var standard map[string]starlark.Value

func init() {
	standard = map[string]starlark.Value{
		"math": &library{name: "math", names: mathNames()}, "itertools": &library{name: "itertools", names: itertoolsNames()},
		"collections": &library{name: "collections", names: starlark.StringDict{"OrderedDict": pyTypes["dict"], "namedtuple": builtin("namedtuple", namedTuple)}},
		"functools":   &library{name: "functools", names: starlark.StringDict{"partial": starlark.NewBuiltin("partial", partial), "reduce": builtin("reduce", reduce), "cached_property": builtin("cached_property", makeProperty), "wraps": builtin("wraps", wraps), "cache": builtin("cache", uncached), "lru_cache": starlark.NewBuiltin("lru_cache", lruCache), "total_ordering": ofOne("total_ordering", totalOrdering)}},
		"time":        &library{name: "time", names: starlark.StringDict{"time": noTime, "perf_counter": noTime, "sleep": ignoredCall("sleep")}},
		"dataclasses": &library{name: "dataclasses", names: dataclassNames()}, "enum": &library{name: "enum", names: starlark.StringDict{"auto": builtin("auto", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return auto, nil })}},
		"abc":      &library{name: "abc", names: starlark.StringDict{"abstractmethod": ofOne("abstractmethod", func(_ *starlark.Thread, f starlark.Value) (starlark.Value, error) { return abstractMethod{f}, nil })}},
		"numbers":  &library{name: "numbers", names: starlark.StringDict{"Number": starlark.Tuple{pyTypes["int"], pyTypes["float"], pyTypes["complex"]}, "Real": starlark.Tuple{pyTypes["int"], pyTypes["float"]}, "Integral": pyTypes["int"]}},
		"gc":       &library{name: "gc", names: starlark.StringDict{"collect": ignoredCall("collect")}},
		"platform": &library{name: "platform", names: starlark.StringDict{"system": builtin("system", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return starlark.String("Linux"), nil })}},
		"string":   &library{name: "string", names: starlark.StringDict{"ascii_lowercase": starlark.String("abcdefghijklmnopqrstuvwxyz"), "ascii_uppercase": starlark.String("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), "ascii_letters": starlark.String("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"), "digits": starlark.String("0123456789")}},
		"types":    &library{name: "types", names: starlark.StringDict{}}, "heapq": &library{name: "heapq", names: starlark.StringDict{}}, "bisect": &library{name: "bisect", names: starlark.StringDict{}}, "statistics": &library{name: "statistics", names: starlark.StringDict{}}, "logging": &library{name: "logging", names: loggingNames()},
		"io": &library{name: "io", names: starlark.StringDict{}}, "pathlib": &library{name: "pathlib", names: starlark.StringDict{}}, "tempfile": &library{name: "tempfile", names: starlark.StringDict{"mktemp": builtin("tempfile.mktemp", freshName)}}, "re": &library{name: "re", names: regexNames()},
		"operator": &library{name: "operator", names: operatorNames()},
		"copy":     &library{name: "copy", names: starlark.StringDict{"copy": builtin("copy", shallowCopy), "deepcopy": builtin("deepcopy", deepCopy)}},
		"os":       &library{name: "os", names: starlark.StringDict{"getenv": environmentGet, "environ": environment{}, "path": osPath}}, "os.path": osPath,
		"sys":        &library{name: "sys", names: starlark.StringDict{"version_info": starlark.Tuple{starlark.MakeInt(3), starlark.MakeInt(11), starlark.MakeInt(2)}, "platform": starlark.String("linux"), "maxsize": starlark.MakeInt64(math.MaxInt64)}},
		"warnings":   &library{name: "warnings", names: warningsNames()},
		"contextlib": &library{name: "contextlib", names: starlark.StringDict{"contextmanager": ofOne("contextmanager", contextManager), "nullcontext": starlark.NewBuiltin("nullcontext", subTest), "suppress": builtin("suppress", suppress), "ExitStack": builtin("ExitStack", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return &exitStack{}, nil })}},
		"packaging":  &library{name: "packaging", names: starlark.StringDict{"version": versionLibrary}}, "packaging.version": versionLibrary,
		"json":   &library{name: "json", names: starlark.StringDict{"dumps": starlark.NewBuiltin("json.dumps", jsonText), "loads": starlark.NewBuiltin("json.loads", parseJSON)}},
		"random": randomModule{}, "numpy": numpy, "numpy.random": numpyRandom, "numpy.linalg": numpyLinalg, "scipy.special": scipySpecial, "scipy": &library{name: "scipy", names: starlark.StringDict{"special": scipySpecial}}, "numpy.testing": numpyTesting,
	}
}

// parseJSON is json.loads.
func parseJSON(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("%s takes one value", b.Name())
	}
	return starlark.Call(t, json.Module.Members["decode"], args, nil)
}

// loggingNames are those of the module logging: loggers say nothing.
func loggingNames() starlark.StringDict {
	names := starlark.StringDict{}
	for _, n := range []string{"debug", "info", "warning", "error", "critical", "exception", "log", "basicConfig", "disable"} {
		names[n] = ignoredCall(n)
	}
	for i, n := range []string{"NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"} {
		names[n] = starlark.MakeInt(10 * i)
	}
	return names
}

// real makes a function of one float.
func realFunc(name string, f func(float64) float64) *starlark.Builtin {
	return builtin("math."+name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		xs, err := realArgs(name, a, 1)
		if err != nil {
			return nil, err
		}
		y := f(xs[0])
		if math.IsNaN(y) && !math.IsNaN(xs[0]) {
			return nil, fmt.Errorf("math domain error")
		}
		return starlark.Float(y), nil
	})
}

func realFunc2(name string, f func(x, y float64) float64) *starlark.Builtin {
	return builtin("math."+name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		xs, err := realArgs(name, a, 2)
		if err != nil {
			return nil, err
		}
		return starlark.Float(f(xs[0], xs[1])), nil
	})
}

func realArgs(name string, a starlark.Tuple, n int) ([]float64, error) {
	if len(a) != n {
		return nil, fmt.Errorf("math.%s takes %d arguments, not %d", name, n, len(a))
	}
	out := make([]float64, n)
	for i, v := range a {
		v, err := settled(v)
		if err != nil {
			return nil, err
		}
		if x, isArray := v.(*array); isArray && x.t.Len() == 1 {
			v = scalarOf(x.t, 0)
		}
		f, ok := starlark.AsFloat(number(v))
		if !ok {
			return nil, fmt.Errorf("math.%s: must be a real number, not %s", name, v.Type())
		}
		out[i] = f
	}
	return out, nil
}

func mathNames() starlark.StringDict {
	m := starlark.StringDict{
		"pi": starlark.Float(math.Pi), "e": starlark.Float(math.E), "tau": starlark.Float(2 * math.Pi), "inf": starlark.Float(math.Inf(1)), "nan": starlark.Float(math.NaN()),
		"prod": builtin("math.prod", product), "log": builtin("math.log", logarithm), "isclose": starlark.NewBuiltin("math.isclose", isClose),
		"gcd": builtin("math.gcd", bigFold(func(z, x *big.Int) *big.Int {
			return new(big.Int).GCD(nil, nil, new(big.Int).Abs(z), new(big.Int).Abs(x))
		})),
		"factorial": builtin("math.factorial", factorial), "comb": builtin("math.comb", comb), "isqrt": builtin("math.isqrt", isqrt),
	}
	for name, f := range map[string]func(float64) float64{
		"sqrt": math.Sqrt, "exp": math.Exp, "expm1": math.Expm1, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan,
		"asin": math.Asin, "acos": math.Acos, "atan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "fabs": math.Abs, "erf": math.Erf, "erfc": math.Erfc, "gamma": math.Gamma, "lgamma": func(x float64) float64 { v, _ := math.Lgamma(x); return v },
		"degrees": func(x float64) float64 { return float64(x * (180 / math.Pi)) }, "radians": func(x float64) float64 { return float64(x * (math.Pi / 180)) },
	} {
		m[name] = realFunc(name, f)
	}
	for name, f := range map[string]func(x, y float64) float64{"pow": math.Pow, "atan2": math.Atan2, "hypot": math.Hypot, "fmod": math.Mod, "copysign": math.Copysign} {
		m[name] = realFunc2(name, f)
	}
	for name, f := range map[string]func(float64) float64{"ceil": math.Ceil, "floor": math.Floor, "trunc": math.Trunc} {
		m[name] = builtin("math."+name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) == 1 {
				if n, ok := number(a[0]).(starlark.Int); ok {
					return n, nil
				}
			}
			xs, err := realArgs(name, a, 1)
			if err != nil {
				return nil, err
			}
			return starlark.NumberToInt(starlark.Float(f(xs[0])))
		})
	}
	for name, f := range map[string]func(float64) bool{
		"isnan": math.IsNaN, "isinf": func(x float64) bool { return math.IsInf(x, 0) }, "isfinite": func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) },
	} {
		m[name] = builtin("math."+name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			xs, err := realArgs(name, a, 1)
			return starlark.Bool(err == nil && f(xs[0])), err
		})
	}
	return m
}

func product(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("math.prod takes one sequence, not %d", len(a))
	}
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	var out starlark.Value = starlark.MakeInt(1)
	for _, v := range vs {
		if out, err = operators["mul"].call(t, out, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func logarithm(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	xs, err := realArgs("log", a, max(1, min(len(a), 2)))
	if err != nil {
		return nil, err
	}
	for _, x := range xs {
		if x <= 0 {
			return nil, fmt.Errorf("math domain error")
		}
	}
	if len(xs) == 1 {
		return starlark.Float(math.Log(xs[0])), nil
	}
	if xs[1] == 1 {
		return nil, fmt.Errorf("division by zero")
	}
	return starlark.Float(math.Log(xs[0]) / math.Log(xs[1])), nil
}

func isClose(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"isclose", []string{"a", "b", "rel_tol", "abs_tol"}, []starlark.Value{nil, nil, starlark.Float(1e-9), starlark.Float(0)}}
	if err := a.rebind(args, kwargs); err != nil {
		return nil, err
	}
	xs, err := realArgs("isclose", a.values, 4)
	if err != nil {
		return nil, err
	}
	x, y := xs[0], xs[1]
	if x == y {
		return starlark.True, nil
	}
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return starlark.False, nil
	}
	return starlark.Bool(math.Abs(x-y) <= max(float64(xs[2]*max(math.Abs(x), math.Abs(y))), xs[3])), nil
}

// rebind is bind over defaults: what is not given keeps its value.
func (a arguments) rebind(args starlark.Tuple, kwargs []starlark.Tuple) error {
	given := arguments{a.fn, a.params, make([]starlark.Value, len(a.params))}
	if err := given.bind(args, kwargs); err != nil {
		return err
	}
	for i, v := range given.values {
		if v != nil {
			a.values[i] = v
		} else if a.values[i] == nil {
			return fmt.Errorf("%s needs the argument '%s'", a.fn, a.params[i])
		}
	}
	return nil
}

func bigFold(f func(z, x *big.Int) *big.Int) func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
	return func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		z := new(big.Int)
		for _, v := range a {
			n, ok := number(v).(starlark.Int)
			if !ok {
				return nil, fmt.Errorf("'%s' object cannot be interpreted as an integer", v.Type())
			}
			z = f(z, n.BigInt())
		}
		return starlark.MakeBigInt(z), nil
	}
}

// small returns arguments that are integers from 0 to a bound.
func small(name string, a starlark.Tuple, n, bound int) ([]int64, error) {
	if len(a) != n {
		return nil, fmt.Errorf("%s takes %d integers, not %d", name, n, len(a))
	}
	out := make([]int64, n)
	for i, v := range a {
		x, err := starlark.AsInt32(number(v))
		if err != nil || x < 0 || x > bound {
			return nil, fmt.Errorf("%s: argument must be an integer from 0 to %d", name, bound)
		}
		out[i] = int64(x)
	}
	return out, nil
}

func factorial(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	n, err := small("math.factorial", a, 1, 500)
	if err != nil {
		return nil, err
	}
	return starlark.MakeBigInt(new(big.Int).MulRange(1, n[0])), nil
}

func comb(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	n, err := small("math.comb", a, 2, 2000)
	if err != nil {
		return nil, err
	}
	return starlark.MakeBigInt(new(big.Int).Binomial(n[0], n[1])), nil
}

func isqrt(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) == 1 {
		if n, ok := number(a[0]).(starlark.Int); ok && n.Sign() >= 0 {
			return starlark.MakeBigInt(new(big.Int).Sqrt(n.BigInt())), nil
		}
	}
	return nil, fmt.Errorf("isqrt() argument must be nonnegative")
}

// uncached is functools.cache: functions give each call what they compute, as tests
// draw anew.
func uncached(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("functools.cache decorates one function")
	}
	return a[0], nil
}

// lruCache is functools.lru_cache, with arguments or without.
func lruCache(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 {
		if _, ok := args[0].(starlark.Callable); ok {
			return args[0], nil
		}
	}
	return builtin("lru_cache", uncached), nil
}

// wraps is a decorator that leaves the function as it is.
func wraps(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
	return builtin("wraps", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return a[0], nil }), nil
}

func partial(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("partial needs a function")
	}
	fn, first, named := args[0], slices.Clip(args[1:]), slices.Clone(kwargs)
	return starlark.NewBuiltin("partial", func(t *starlark.Thread, _ *starlark.Builtin, more starlark.Tuple, kws []starlark.Tuple) (starlark.Value, error) {
		all := slices.DeleteFunc(slices.Clone(named), func(kw starlark.Tuple) bool {
			return slices.ContainsFunc(kws, func(k starlark.Tuple) bool { return k[0] == kw[0] })
		})
		return starlark.Call(t, fn, append(slices.Clip(first), more...), append(all, kws...))
	}), nil
}

func reduce(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 2 || len(a) > 3 {
		return nil, fmt.Errorf("reduce takes a function, a sequence and a start")
	}
	vs, err := iterate(t, a[1])
	if err != nil {
		return nil, err
	}
	if len(a) == 3 {
		vs = append([]starlark.Value{a[2]}, vs...)
	}
	if len(vs) == 0 {
		return nil, fmt.Errorf("reduce() of empty sequence with no initial value")
	}
	out := vs[0]
	for _, v := range vs[1:] {
		if out, err = starlark.Call(t, a[0], starlark.Tuple{out, v}, nil); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func operatorNames() starlark.StringDict {
	m := starlark.StringDict{}
	for _, o := range operators {
		if o.inplace {
			continue
		}
		m[o.name] = builtin("operator."+o.name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 2 {
				return nil, fmt.Errorf("operator.%s takes two arguments, not %d", o.name, len(a))
			}
			return o.call(t, a[0], a[1])
		})
	}
	for token, name := range unaryNames {
		m[name] = builtin("operator."+name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 1 {
				return nil, fmt.Errorf("operator.%s takes one argument, not %d", name, len(a))
			}
			return unary(name, token, a[0])
		})
	}
	return m
}

func shallowCopy(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return copied(a, 1)
}

func deepCopy(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return copied(a, maxDepth)
}

func copied(a starlark.Tuple, depth int) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("copy takes one value, not %d", len(a))
	}
	left := maxElements
	return copyValue(a[0], depth, &left, map[starlark.Value]starlark.Value{})
}

func copyValue(v starlark.Value, depth int, left *int, memo map[starlark.Value]starlark.Value) (starlark.Value, error) {
	if depth == 0 {
		return v, nil
	}
	switch v := v.(type) {
	case *starlark.List, starlark.Tuple:
		vs, _ := sequence(v)
		if *left -= len(vs) + 1; *left < 0 {
			return nil, fmt.Errorf("a copy of too many elements")
		}
		out := make([]starlark.Value, len(vs))
		for i, e := range vs {
			c, err := copyValue(e, depth-1, left, memo)
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		if _, tuple := v.(starlark.Tuple); tuple {
			return starlark.Tuple(out), nil
		}
		return starlark.NewList(out), nil
	case *starlark.Dict:
		out := starlark.NewDict(v.Len())
		for _, item := range v.Items() {
			c, err := copyValue(item[1], depth-1, left, memo)
			if err != nil {
				return nil, err
			}
			if *left--; *left < 0 {
				return nil, fmt.Errorf("a copy of too many elements")
			}
			if err := out.SetKey(item[0], c); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *array:
		return v.clone(), nil
	case *attr:
		s, err := v.resolve()
		if err != nil {
			return nil, err
		}
		return copyValue(s, depth, left, memo)
	case *symbol, *object:
		if depth > 1 {
			return copyPart(v, memo)
		}
		return nil, lack("a copy of %s is not supported in test files: write x.clone()", article(v.Type()))
	}
	return v, nil
}

// namedType is a named tuple.
type namedType struct {
	name     string
	fields   []string
	defaults starlark.Tuple // nil for none
	class    *class         // with its methods; nil for none
}

func (n *namedType) String() string        { return n.name }
func (n *namedType) Type() string          { return "type" }
func (n *namedType) Freeze()               {}
func (n *namedType) Truth() starlark.Bool  { return true }
func (n *namedType) Hash() (uint32, error) { return hashString(n.name) }
func (n *namedType) Name() string          { return n.name }

// CallInternal makes an instance.
func (n *namedType) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{n.name, n.fields, make([]starlark.Value, len(n.fields))}
	copy(a.values, n.defaults)
	if err := a.rebind(args, kwargs); err != nil {
		return nil, err
	}
	return instance{n, a.values}, nil
}

func (n *namedType) AttrNames() []string { return []string{"_fields", "_make"} }

// Attr returns its fields, or what makes an instance of a list.
func (n *namedType) Attr(s string) (starlark.Value, error) {
	switch s {
	case "_fields":
		var fields starlark.Tuple
		for _, f := range n.fields {
			fields = append(fields, starlark.String(f))
		}
		return fields, nil
	case "_make":
		return builtin(s, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 1 {
				return nil, fmt.Errorf("%s._make takes one iterable", n.name)
			}
			values, err := iterate(t, a[0])
			if err != nil {
				return nil, err
			}
			return n.CallInternal(t, values, nil)
		}), nil
	}
	return nil, nil
}

type instance struct {
	of     *namedType
	values starlark.Tuple
}

// asTuple returns a named tuple as the tuple that it is, other values as they are.
func asTuple(v starlark.Value) starlark.Value {
	if i, ok := v.(instance); ok {
		return i.values
	}
	return v
}

func (i instance) String() string {
	var parts []string
	for j, f := range i.of.fields {
		parts = append(parts, f+"="+repr(i.values[j], 0))
	}
	return i.of.name + "(" + strings.Join(parts, ", ") + ")"
}

func (i instance) Type() string               { return i.of.name }
func (i instance) Freeze()                    { i.values.Freeze() }
func (i instance) Truth() starlark.Bool       { return len(i.values) > 0 }
func (i instance) Hash() (uint32, error)      { return i.values.Hash() }
func (i instance) Len() int                   { return len(i.values) }
func (i instance) Index(n int) starlark.Value { return i.values[n] }
func (i instance) Iterate() starlark.Iterator { return i.values.Iterate() }
func (i instance) AttrNames() []string        { return i.of.fields }

func (i instance) Attr(s string) (starlark.Value, error) {
	if n := slices.Index(i.of.fields, s); n >= 0 {
		return i.values[n], nil
	}
	switch s {
	case "_replace":
		return starlark.NewBuiltin(s, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			a := arguments{s, i.of.fields, slices.Clone(i.values)}
			return instance{i.of, a.values}, a.rebind(args, kwargs)
		}), nil
	case "_asdict":
		return builtin(s, func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
			d := starlark.NewDict(len(i.values))
			for j, f := range i.of.fields {
				_ = d.SetKey(starlark.String(f), i.values[j])
			}
			return d, nil
		}), nil
	case "_fields":
		return i.of.Attr(s)
	}
	if i.of.class != nil {
		if fn, ok := i.of.class.lookup(s).(*starlark.Function); ok {
			return bindTo(fn, i), nil
		}
	}
	return nil, nil
}

func namedTuple(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("namedtuple takes a name and fields")
	}
	name, ok := starlark.AsString(a[0])
	if !ok {
		return nil, fmt.Errorf("namedtuple: the name must be a string")
	}
	n := &namedType{name: name}
	if s, ok := starlark.AsString(a[1]); ok {
		n.fields = strings.Fields(strings.ReplaceAll(s, ",", " "))
		return n, nil
	}
	vs, err := iterate(t, a[1])
	for _, v := range vs {
		s, ok := starlark.AsString(v)
		if !ok {
			return nil, fmt.Errorf("namedtuple: fields must be strings")
		}
		n.fields = append(n.fields, s)
	}
	return n, err
}

// versionLibrary is packaging.version.
var versionLibrary = &library{name: "packaging.version", names: starlark.StringDict{"parse": builtin("parse", parseVersion), "Version": builtin("Version", parseVersion)}}

// version is a release such as 1.13.1; what follows the numbers is left out.
type version []int

func parseVersion(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("parse takes one version, not %d", len(a))
	}
	s, ok := starlark.AsString(a[0])
	if !ok {
		return nil, fmt.Errorf("a version is a string, not %s", a[0].Type())
	}
	s, _, _ = strings.Cut(s, "+")
	var v version
	for _, part := range strings.Split(s, ".") {
		digits := part
		if i := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
			digits = part[:i]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		v = append(v, n)
	}
	for len(v) > 0 && v[len(v)-1] == 0 {
		v = v[:len(v)-1]
	}
	return v, nil
}

func (v version) String() string {
	parts := make([]string, len(v))
	for i, n := range v {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ".")
}

func (v version) Type() string          { return "Version" }
func (v version) Freeze()               {}
func (v version) Truth() starlark.Bool  { return true }
func (v version) Hash() (uint32, error) { return hashString(v.String()) }

// noTime tells one time always: a test has no clock.
var noTime = builtin("time", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return starlark.Float(0), nil })
