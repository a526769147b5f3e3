package script

import (
	"fmt"
	"math"
	"math/cmplx"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

// numpy, numpyRandom and numpyTesting are the modules; init fills them.
var (
	numpy        = &library{name: "numpy", lacks: true}
	numpyRandom  = &library{name: "numpy.random", lacks: true}
	numpyTesting = &library{name: "numpy.testing", lacks: true}
)

// numpyFunc is a function of numpy with its parameters; those from required on
// may be left out.
type numpyFunc struct {
	params   []string
	required int
	f        func(t *starlark.Thread, a arguments) (starlark.Value, error)
}

func init() {
	fillNumpyFuncs()
	names := starlark.StringDict{
		"pi": starlark.Float(math.Pi), "e": starlark.Float(math.E), "inf": starlark.Float(math.Inf(1)), "nan": starlark.Float(math.NaN()), "newaxis": starlark.None,
		"random": numpyRandom, "linalg": numpyLinalg, "testing": numpyTesting, "ndarray": &pyType{name: "numpy.ndarray"},
		"bool_": numpyType(tensor.Bool), "bool8": numpyType(tensor.Bool), "half": numpyType(tensor.F16), "single": numpyType(tensor.F32), "double": numpyType(tensor.F64),
		"int_": numpyType(tensor.I64), "float_": numpyType(tensor.F64), "int": pyTypes["int"], "float": pyTypes["float"], "bool": pyTypes["bool"],
		"dtype": builtin("dtype", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) != 1 {
				return nil, fmt.Errorf("dtype takes one type")
			}
			d, err := numpyDType(a[0])
			return numpyType(d), err
		}),
	}
	for _, d := range tensor.DTypes {
		if d != tensor.Bool && d != tensor.BF16 {
			names[d.String()] = numpyType(d)
		}
	}
	for name, f := range numpyFuncs {
		names[name] = f.value("numpy." + name)
	}
	for name, f := range elementFuncs {
		names[name] = elementFunc(name, f)
	}
	for name, o := range map[string]string{
		"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv", "floor_divide": "floordiv", "power": "pow", "mod": "mod", "remainder": "mod", "equal": "eq", "not_equal": "ne",
		"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "matmul": "matmul", "logical_and": "and", "logical_or": "or", "logical_xor": "xor", "dot": "matmul",
	} {
		names[name] = arrayOperator(name, o)
	}
	numpy.names = names
	numpyTesting.names = starlark.StringDict{"assert_allclose": numpyFuncs["assert_allclose"].value("assert_allclose"), "assert_almost_equal": numpyFuncs["assert_almost_equal"].value("assert_almost_equal"), "assert_array_almost_equal": numpyFuncs["assert_almost_equal"].value("assert_array_almost_equal"), "assert_array_equal": numpyFuncs["assert_array_equal"].value("assert_array_equal"), "assert_equal": numpyFuncs["assert_array_equal"].value("assert_equal")}
}

func (f numpyFunc) value(name string) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		a := arguments{name, f.params, make([]starlark.Value, len(f.params))}
		if err := a.bind(args, kwargs); err != nil {
			return nil, err
		}
		for i := range f.required {
			if a.values[i] == nil {
				return nil, fmt.Errorf("%s needs the argument '%s'", name, f.params[i])
			}
		}
		v, err := f.f(t, a)
		if err != nil {
			return nil, err
		}
		return v, spend(t, v)
	})
}

func arrayOperator(name, o string) *starlark.Builtin {
	return builtin("numpy."+name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) != 2 {
			return nil, fmt.Errorf("numpy.%s takes two arrays, not %d", name, len(a))
		}
		x, err := toArray(t, a[0], tensor.Invalid)
		if err != nil {
			return nil, err
		}
		y, err := toArray(t, a[1], tensor.Invalid)
		if err != nil {
			return nil, err
		}
		if o == "and" || o == "or" || o == "xor" {
			x, y = isTrue(x), isTrue(y)
		}
		if name == "dot" && y.t.Dim() > 2 {
			return nil, lack("numpy.dot of an array of more than 2 dimensions on the right is not supported in test files")
		}
		return operators[o].arrays(t, x, y)
	})
}

func isTrue(a *array) *array {
	out := tensor.New(tensor.Bool, a.t.Shape()...)
	for i := range out.Len() {
		out.SetInt(i, truthInt(a.t.At(i) != 0))
	}
	return &array{out}
}

// elementFuncs are functions of one float; integers become float64.
var elementFuncs = map[string]func(float64) float64{
	"sqrt": math.Sqrt, "exp": math.Exp, "log": math.Log, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p, "expm1": math.Expm1, "sin": math.Sin, "cos": math.Cos, "tan": math.Tan,
	"arcsin": math.Asin, "arccos": math.Acos, "arctan": math.Atan, "sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc, "rint": math.RoundToEven,
	"cbrt": math.Cbrt, "reciprocal": func(x float64) float64 { return 1 / x },
}

func elementFunc(name string, f func(float64) float64) *starlark.Builtin {
	return builtin("numpy."+name, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		if len(args) != 1 {
			return nil, fmt.Errorf("numpy.%s takes one array, not %d", name, len(args))
		}
		a, err := toArray(t, args[0], tensor.Invalid)
		if err != nil {
			return nil, err
		}
		d := a.t.DType()
		if d.IsComplex() {
			return nil, lack("numpy.%s of complex numbers is not supported in test files", name)
		}
		if !d.IsFloat() {
			d = tensor.F64
		}
		out := tensor.New(d, a.t.Shape()...)
		for i := range out.Len() {
			out.Set(i, complex(f(a.t.Float(i)), 0))
		}
		return (&array{out}).scalar(), nil
	})
}

// mapped applies f to every element, in a dtype.
func (a *array) mapped(d tensor.DType, f func(out *tensor.Tensor, i int)) *array {
	out := tensor.New(d, a.t.Shape()...)
	for i := range out.Len() {
		f(out, i)
	}
	return &array{out}
}

func (a arguments) array(t *starlark.Thread, param string) (*array, error) {
	return toArray(t, a.get(param), tensor.Invalid)
}

// dims reads a shape.
func dims(v starlark.Value) ([]int, error) {
	items := []starlark.Value{v}
	if vs, ok := sequence(v); ok {
		items = vs
	}
	out := make([]int, len(items))
	n := 1
	for i, e := range items {
		k, err := starlark.AsInt32(number(e))
		if err != nil || k < 0 {
			return nil, fmt.Errorf("a shape is made of integers that are not negative, not %s", repr(e, 0))
		}
		out[i] = k
		if n *= max(k, 1); n > maxElements {
			return nil, errLarge
		}
	}
	return out, nil
}

// numpyFuncs are the functions of numpy that test files know.
var numpyFuncs map[string]numpyFunc

func fillNumpyFuncs() {
	numpyFuncs = map[string]numpyFunc{
		"array": {[]string{"object", "dtype", "copy", "ndmin"}, 1, makeArray}, "asarray": {[]string{"a", "dtype"}, 1, makeArray}, "ascontiguousarray": {[]string{"a", "dtype"}, 1, makeArray},
		"ones": filled(1), "zeros": filled(0), "empty": filled(0), "ones_like": filledLike(1), "zeros_like": filledLike(0),
		"full": {[]string{"shape", "fill_value", "dtype"}, 2, fullCall}, "arange": {[]string{"start", "stop", "step", "dtype"}, 1, arange}, "linspace": {[]string{"start", "stop", "num", "endpoint", "dtype"}, 2, linspace},
		"eye": {[]string{"N", "M", "k", "dtype"}, 1, eye}, "identity": {[]string{"N", "dtype"}, 1, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
			return eye(t, arguments{a.fn, []string{"N", "M", "k", "dtype"}, []starlark.Value{a.values[0], nil, nil, a.values[1]}})
		}},
		"allclose": {[]string{"a", "b", "rtol", "atol", "equal_nan"}, 2, allClose}, "isclose": {[]string{"a", "b", "rtol", "atol", "equal_nan"}, 2, closeArray},
		"array_equal": {[]string{"a1", "a2"}, 2, arrayEqual}, "assert_allclose": {[]string{"actual", "desired", "rtol", "atol", "equal_nan", "err_msg", "verbose"}, 2, assertClose},
		"assert_array_equal": {[]string{"x", "y", "err_msg", "verbose"}, 2, assertSame}, "assert_almost_equal": {[]string{"actual", "desired", "decimal", "err_msg", "verbose"}, 2, assertAlmost},
		"abs": {[]string{"x"}, 1, absArray}, "absolute": {[]string{"x"}, 1, absArray}, "negative": {[]string{"x"}, 1, func(t *starlark.Thread, a arguments) (starlark.Value, error) { return unaryArray("neg", t, a) }},
		"square": {[]string{"x"}, 1, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
			return operators["mul"].call(t, a.values[0], a.values[0])
		}},
		"isnan":       {[]string{"x"}, 1, testElements(func(c complex128) bool { return cmplx.IsNaN(c) })},
		"isinf":       {[]string{"x"}, 1, testElements(func(c complex128) bool { return cmplx.IsInf(c) })},
		"isfinite":    {[]string{"x"}, 1, testElements(func(c complex128) bool { return !cmplx.IsInf(c) && !cmplx.IsNaN(c) })},
		"logical_not": {[]string{"x"}, 1, testElements(func(c complex128) bool { return c == 0 })},
		"sum":         {reduceParams, 1, reduction("sum")}, "prod": {reduceParams, 1, reduction("prod")}, "mean": {reduceParams, 1, reduction("mean")}, "max": {reduceParams, 1, reduction("max")}, "min": {reduceParams, 1, reduction("min")},
		"amax": {reduceParams, 1, reduction("max")}, "amin": {reduceParams, 1, reduction("min")}, "any": {reduceParams, 1, reduction("any")}, "all": {reduceParams, 1, reduction("all")}, "std": {reduceParams, 1, reduction("std")}, "var": {reduceParams, 1, reduction("var")},
		"argmax": {reduceParams, 1, reduction("argmax")}, "argmin": {reduceParams, 1, reduction("argmin")}, "cumsum": {[]string{"a", "axis"}, 1, cumsum}, "sort": {[]string{"a", "axis", "kind"}, 1, sortCall}, "argsort": {[]string{"a", "axis", "kind"}, 1, argsortCall},
		"concatenate": {[]string{"arrays", "axis"}, 1, concatenate}, "stack": {[]string{"arrays", "axis"}, 1, stackArrays}, "expand_dims": {[]string{"a", "axis"}, 2, expandDims}, "squeeze": {[]string{"a", "axis"}, 1, squeeze},
		"reshape": {[]string{"a", "newshape"}, 2, reshapeCall}, "transpose": {[]string{"a", "axes"}, 1, transposeCall}, "where": {[]string{"condition", "x", "y"}, 1, where}, "maximum": {[]string{"x1", "x2"}, 2, extremum("gt")}, "minimum": {[]string{"x1", "x2"}, 2, extremum("lt")},
		"clip": {[]string{"a", "a_min", "a_max"}, 3, clip}, "flip": {[]string{"m", "axis"}, 1, flip}, "broadcast_to": {[]string{"array", "shape"}, 2, broadcastTo},
		"unique": {[]string{"ar", "return_index", "return_inverse", "return_counts"}, 1, unique}, "shape": {[]string{"a"}, 1, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
			x, err := a.array(t, "a")
			if err != nil {
				return nil, err
			}
			return intTuple(x.t.Shape()), nil
		}}, "ravel": {[]string{"a"}, 1, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
			x, err := a.array(t, "a")
			if err != nil {
				return nil, err
			}
			return x.reshaped([]int{-1})
		}},
		"nonzero": {[]string{"a"}, 1, nonzeroCall}, "finfo": {[]string{"dtype"}, 1, numpyLimits("torch.finfo")}, "iinfo": {[]string{"type"}, 1, numpyLimits("torch.iinfo")},
		"arctan2": {[]string{"x1", "x2"}, 2, pairwise(math.Atan2)}, "hypot": {[]string{"x1", "x2"}, 2, pairwise(math.Hypot)}, "fmod": {[]string{"x1", "x2"}, 2, pairwise(math.Mod)}, "copysign": {[]string{"x1", "x2"}, 2, pairwise(math.Copysign)},
		"issubdtype": {[]string{"arg1", "arg2"}, 2, isSubtype},
		"round":      {[]string{"a", "decimals"}, 1, roundArray}, "around": {[]string{"a", "decimals"}, 1, roundArray}, "sign": {[]string{"x"}, 1, signArray},
	}
}

func absArray(t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := a.array(t, "x")
	if err != nil {
		return nil, err
	}
	return x.abs().scalar(), nil
}

func (a *array) abs() *array {
	d := a.t.DType()
	return a.mapped(d.Real(), func(out *tensor.Tensor, i int) {
		if d.IsInt() {
			out.SetInt(i, max(a.t.Int(i), -a.t.Int(i)))
		} else {
			out.Set(i, complex(cmplx.Abs(a.t.At(i)), 0))
		}
	})
}

func signArray(t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := a.array(t, "x")
	if err != nil {
		return nil, err
	}
	return x.mapped(x.t.DType(), func(out *tensor.Tensor, i int) {
		switch v := x.t.Float(i); {
		case v > 0:
			out.Set(i, 1)
		case v < 0:
			out.Set(i, -1)
		default:
			out.Set(i, complex(v, 0))
		}
	}).scalar(), nil
}

func roundArray(t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := a.array(t, "a")
	if err != nil {
		return nil, err
	}
	digits := 0
	if v := a.get("decimals"); v != nil {
		if digits, err = starlark.AsInt32(v); err != nil {
			return nil, err
		}
	}
	if !x.t.DType().IsFloat() {
		return x, nil
	}
	p := math.Pow(10, float64(digits))
	return x.mapped(x.t.DType(), func(out *tensor.Tensor, i int) { out.Set(i, complex(math.RoundToEven(float64(x.t.Float(i)*p))/p, 0)) }).scalar(), nil
}

func unaryArray(name string, t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := a.array(t, a.params[0])
	if err != nil {
		return nil, err
	}
	return x.unary(name)
}

// unary is -a, +a and ~a.
func (a *array) unary(name string) (starlark.Value, error) {
	d := a.t.DType()
	switch {
	case name == "pos":
		return a.clone().scalar(), nil
	case name == "neg" && d != tensor.Bool:
		return a.mapped(d, func(out *tensor.Tensor, i int) {
			if d.IsInt() {
				out.SetInt(i, -a.t.Int(i))
			} else {
				out.Set(i, -a.t.At(i))
			}
		}).scalar(), nil
	case name == "invert" && d == tensor.Bool:
		return a.mapped(d, func(out *tensor.Tensor, i int) { out.SetInt(i, 1-a.t.Int(i)) }).scalar(), nil
	case name == "invert" && d.IsInt():
		return a.mapped(d, func(out *tensor.Tensor, i int) { out.SetInt(i, ^a.t.Int(i)) }).scalar(), nil
	}
	return nil, fmt.Errorf("ufunc %s is not supported for %s", name, d)
}

func testElements(f func(complex128) bool) func(*starlark.Thread, arguments) (starlark.Value, error) {
	return func(t *starlark.Thread, a arguments) (starlark.Value, error) {
		x, err := a.array(t, "x")
		if err != nil {
			return nil, err
		}
		return x.mapped(tensor.Bool, func(out *tensor.Tensor, i int) { out.SetInt(i, truthInt(f(x.t.At(i)))) }).scalar(), nil
	}
}

var reduceParams = []string{"a", "axis", "keepdims", "ddof", "dtype"}

func (a arguments) arrays(t *starlark.Thread) ([]*array, error) {
	out := make([]*array, len(a.values))
	for i, v := range a.values {
		x, err := toArray(t, v, tensor.Invalid)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

func where(t *starlark.Thread, args arguments) (starlark.Value, error) {
	if args.values[1] == nil && args.values[2] == nil {
		return nonzeroCall(t, arguments{args.fn, []string{"a"}, args.values[:1]})
	}
	as, err := args.arrays(t)
	if err != nil {
		return nil, err
	}
	d := resultType(as[1], as[2])
	ts, shape, err := broadcastAll(as[0], &array{as[1].t.Convert(d)}, &array{as[2].t.Convert(d)})
	if err != nil {
		return nil, err
	}
	out := tensor.New(d, shape...)
	for i := range out.Len() {
		from := ts[2]
		if ts[0].At(i) != 0 {
			from = ts[1]
		}
		if d.IsInt() {
			out.SetInt(i, from.Int(i))
		} else {
			out.Set(i, from.At(i))
		}
	}
	return (&array{out}).scalar(), nil
}

// extremum is maximum, with gt, or minimum; a NaN wins.
func extremum(op string) func(*starlark.Thread, arguments) (starlark.Value, error) {
	return func(t *starlark.Thread, args arguments) (starlark.Value, error) {
		as, err := args.arrays(t)
		if err != nil {
			return nil, err
		}
		return extremes(op, as[0], as[1])
	}
}

func extremes(op string, x, y *array) (starlark.Value, error) {
	d := resultType(x, y)
	ts, shape, err := broadcastAll(&array{x.t.Convert(d)}, &array{y.t.Convert(d)})
	if err != nil {
		return nil, err
	}
	out := tensor.New(d, shape...)
	for i := range out.Len() {
		a, b := ts[0].Float(i), ts[1].Float(i)
		from := ts[1]
		if a != a || op == "gt" && a > b || op == "lt" && a < b {
			from = ts[0]
		}
		if d.IsInt() {
			out.SetInt(i, from.Int(i))
		} else {
			out.Set(i, from.At(i))
		}
	}
	return (&array{out}).scalar(), nil
}

func clip(t *starlark.Thread, args arguments) (starlark.Value, error) {
	v := args.get("a")
	for i, op := range []string{"gt", "lt"} {
		bound := args.values[i+1]
		if bound == starlark.None {
			continue
		}
		x, err := toArray(t, v, tensor.Invalid)
		if err != nil {
			return nil, err
		}
		y, err := toArray(t, bound, tensor.Invalid)
		if err != nil {
			return nil, err
		}
		if v, err = extremes(op, x, y); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Attr returns the attributes and methods of an array.
func (a *array) Attr(name string) (starlark.Value, error) {
	switch name {
	case "shape":
		return intTuple(a.t.Shape()), nil
	case "ndim":
		return starlark.MakeInt(a.t.Dim()), nil
	case "size":
		return starlark.MakeInt(a.t.Len()), nil
	case "itemsize":
		return starlark.MakeInt(a.t.DType().Size()), nil
	case "nbytes":
		return starlark.MakeInt(a.t.Len() * a.t.DType().Size()), nil
	case "dtype":
		return numpyType(a.t.DType()), nil
	case "T":
		return a.permuted(nil)
	case "real", "imag":
		return a.mapped(a.t.DType().Real(), func(out *tensor.Tensor, i int) {
			v := real(a.t.At(i))
			if name == "imag" {
				v = imag(a.t.At(i))
			}
			out.Set(i, complex(v, 0))
		}), nil
	}
	if m := a.method(name); m != nil {
		return m, nil
	}
	if m := a.boundTo(name); m != nil {
		return m, nil
	}
	f, ok := numpyFuncs[name]
	if !ok || len(f.params) == 0 || !arrayMethods[name] {
		return nil, nil
	}
	bound := numpyFunc{f.params[1:], f.required - 1, func(t *starlark.Thread, args arguments) (starlark.Value, error) {
		return f.f(t, arguments{args.fn, f.params, append([]starlark.Value{a}, args.values...)})
	}}
	return bound.value(name), nil
}

// method returns a method that is no function of numpy; nil where there is none.
func (a *array) method(name string) starlark.Value {
	switch name {
	case "tolist":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return a.list(), nil })
	case "copy":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return a.clone(), nil })
	case "item":
		return method(name, a.item)
	case "sort":
		return numpyFunc{[]string{"axis"}, 0, func(_ *starlark.Thread, args arguments) (starlark.Value, error) {
			v, _, err := a.sortedRows(args.values[0])
			if err != nil {
				return nil, err
			}
			a.t.CopyFrom(v.t)
			return starlark.None, nil
		}}.value(name)
	case "reshape":
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			shape, err := signedDims(args)
			if err != nil {
				return nil, err
			}
			return a.reshaped(shape)
		})
	case "flatten", "ravel":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return (&array{a.t.Clone()}).reshaped([]int{-1}) })
	case "transpose":
		return method(name, func(args starlark.Tuple) (starlark.Value, error) { return a.permuted(args) })
	case "astype":
		return numpyFunc{[]string{"dtype", "copy"}, 1, func(_ *starlark.Thread, args arguments) (starlark.Value, error) {
			d, err := numpyDType(args.values[0])
			if err != nil {
				return nil, err
			}
			return &array{a.t.Convert(d)}, nil
		}}.value(name)
	case "view":
		return method(name, func(args starlark.Tuple) (starlark.Value, error) { return a.reinterpreted(args) })
	case "fill":
		return method(name, func(args starlark.Tuple) (starlark.Value, error) {
			if len(args) != 1 {
				return nil, fmt.Errorf("fill takes one value")
			}
			return starlark.None, a.SetKey(ellipsis{}, args[0])
		})
	case "dot":
		return builtin(name, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			if len(args) != 1 {
				return nil, fmt.Errorf("dot takes one array")
			}
			return starlark.Call(t, numpy.names["dot"], starlark.Tuple{a, args[0]}, nil)
		})
	}
	return nil
}

// arrayMethods are the functions that arrays have as methods.
var arrayMethods = map[string]bool{
	"sum": true, "prod": true, "mean": true, "max": true, "min": true, "any": true, "all": true, "std": true, "var": true, "argmax": true, "argmin": true,
	"cumsum": true, "argsort": true, "nonzero": true, "squeeze": true, "clip": true, "round": true,
}

func (a *array) item(args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 && a.t.Len() == 1 {
		return scalarOf(a.t, 0), nil
	}
	if len(args) == 1 {
		if i, err := starlark.AsInt32(args[0]); err == nil && i >= 0 && i < a.t.Len() {
			return scalarOf(a.t, i), nil
		}
	}
	return nil, fmt.Errorf("can only convert an array of size 1 to a Python scalar")
}
