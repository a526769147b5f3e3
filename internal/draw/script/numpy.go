package script

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"sort"

	"go.starlark.net/starlark"

	"plumb/internal/draw/gen"
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
		"random": numpyRandom, "testing": numpyTesting, "ndarray": &pyType{name: "numpy.ndarray"},
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
	"reciprocal": func(x float64) float64 { return 1 / x },
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
			return nil, fmt.Errorf("an array of more than %d elements", maxElements)
		}
	}
	return out, nil
}

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
		"argmax": {reduceParams, 1, reduction("argmax")}, "argmin": {reduceParams, 1, reduction("argmin")}, "cumsum": {[]string{"a", "axis"}, 1, cumsum}, "sort": {[]string{"a", "axis"}, 1, sortCall}, "argsort": {[]string{"a", "axis"}, 1, argsortCall},
		"concatenate": {[]string{"arrays", "axis"}, 1, concatenate}, "stack": {[]string{"arrays", "axis"}, 1, stackArrays}, "expand_dims": {[]string{"a", "axis"}, 2, expandDims}, "squeeze": {[]string{"a", "axis"}, 1, squeeze},
		"reshape": {[]string{"a", "newshape"}, 2, reshapeCall}, "transpose": {[]string{"a", "axes"}, 1, transposeCall}, "where": {[]string{"condition", "x", "y"}, 3, where}, "maximum": {[]string{"x1", "x2"}, 2, extremum("gt")}, "minimum": {[]string{"x1", "x2"}, 2, extremum("lt")},
		"clip": {[]string{"a", "a_min", "a_max"}, 3, clip}, "flip": {[]string{"m", "axis"}, 1, flip}, "broadcast_to": {[]string{"array", "shape"}, 2, broadcastTo}, "repeat": {[]string{"a", "repeats"}, 2, repeatCall},
		"unique": {[]string{"ar"}, 1, unique}, "shape": {[]string{"a"}, 1, func(t *starlark.Thread, a arguments) (starlark.Value, error) {
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
		"round": {[]string{"a", "decimals"}, 1, roundArray}, "around": {[]string{"a", "decimals"}, 1, roundArray}, "sign": {[]string{"x"}, 1, signArray},
	}
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
		return nil, fmt.Errorf("an array of more than %d elements", maxElements)
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
	return x.mapped(x.t.DType(), func(out *tensor.Tensor, i int) { out.Set(i, complex(math.RoundToEven(x.t.Float(i)*p)/p, 0)) }).scalar(), nil
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

func reduction(name string) func(*starlark.Thread, arguments) (starlark.Value, error) {
	return func(t *starlark.Thread, a arguments) (starlark.Value, error) {
		x, err := a.array(t, "a")
		if err != nil {
			return nil, err
		}
		return x.reduce(name, a)
	}
}

// reduce applies a reduction over axes.
func (a *array) reduce(name string, args arguments) (starlark.Value, error) {
	if d, err := numpyDType(args.get("dtype")); err != nil {
		return nil, err
	} else if d != tensor.Invalid {
		a = &array{a.t.Convert(d)}
	}
	axes, all, err := axisOf(args.get("axis"), a.t.Dim())
	if err != nil {
		return nil, err
	}
	keep := args.get("keepdims") != nil && bool(args.get("keepdims").Truth())
	ddof := 0
	if v := args.get("ddof"); v != nil {
		if ddof, err = starlark.AsInt32(v); err != nil {
			return nil, err
		}
	}
	var order, kept []int
	n := 1
	for i, s := range a.t.Shape() {
		reduced := all || slices.Contains(axes, i)
		switch {
		case reduced:
			n *= s
			if keep {
				kept = append(kept, 1)
			}
		default:
			order, kept = append(order, i), append(kept, s)
		}
	}
	for i := range a.t.Shape() {
		if all || slices.Contains(axes, i) {
			order = append(order, i)
		}
	}
	x := a.t.Permute(order...).Contiguous()
	d := reducedType(name, a.t.DType())
	if n == 0 && (name == "max" || name == "min" || name == "argmax" || name == "argmin") {
		return nil, fmt.Errorf("zero-size array to reduction operation %s which has no identity", name)
	}
	out := tensor.New(d, kept...)
	for i := range out.Len() {
		reduceRow(name, out, i, x, i*n, n, ddof)
	}
	return (&array{out}).scalar(), nil
}

func reducedType(name string, d tensor.DType) tensor.DType {
	switch name {
	case "any", "all":
		return tensor.Bool
	case "argmax", "argmin":
		return tensor.I64
	case "sum", "prod":
		if d == tensor.Bool || d.IsInt() {
			return tensor.I64
		}
	case "mean", "std", "var":
		if d == tensor.Bool || d.IsInt() {
			return tensor.F64
		}
		if name != "mean" {
			return d.Real()
		}
	}
	return d
}

// reduceRow reduces the elements from..from+n of x into element i of out.
func reduceRow(name string, out *tensor.Tensor, i int, x *tensor.Tensor, from, n, ddof int) {
	whole := x.DType().IsInt() || x.DType() == tensor.Bool
	switch name {
	case "any", "all":
		hit := name == "all"
		for j := from; j < from+n; j++ {
			if (x.At(j) != 0) == (name == "any") {
				hit = name == "any"
			}
		}
		out.SetInt(i, truthInt(hit))
	case "max", "min", "argmax", "argmin":
		best := from
		for j := from; j < from+n; j++ {
			a, b := x.Float(j), x.Float(best)
			if b == b && (a != a || (name == "max" || name == "argmax") && a > b || (name == "min" || name == "argmin") && a < b) {
				best = j
			}
		}
		if name[0] == 'a' {
			out.SetInt(i, int64(best-from))
		} else if whole {
			out.SetInt(i, x.Int(best))
		} else {
			out.Set(i, x.At(best))
		}
	case "sum", "prod":
		if whole {
			acc := truthInt(name == "prod")
			for j := from; j < from+n; j++ {
				if name == "sum" {
					acc += x.Int(j)
				} else {
					acc *= x.Int(j)
				}
			}
			out.SetInt(i, acc)
			return
		}
		out.Set(i, fold(name, x, from, n))
	case "mean":
		out.Set(i, fold("sum", x, from, n)/complex(float64(n), 0))
	case "std", "var":
		mean := fold("sum", x, from, n) / complex(float64(n), 0)
		sum := 0.0
		for j := from; j < from+n; j++ {
			r := cmplx.Abs(x.At(j) - mean)
			sum += float64(r * r)
		}
		v := sum / float64(max(n-ddof, 0))
		if name == "std" {
			v = math.Sqrt(v)
		}
		out.Set(i, complex(v, 0))
	}
}

func fold(name string, x *tensor.Tensor, from, n int) complex128 {
	acc := complex(0, 0)
	if name == "prod" {
		acc = 1
	}
	for j := from; j < from+n; j++ {
		if name == "sum" {
			acc += x.At(j)
		} else {
			acc = gen.Product(acc, x.At(j))
		}
	}
	return acc
}

// alongLast calls f for each row of an axis, laid out last.
func (a *array) alongLast(v starlark.Value, f func(row []int, x *tensor.Tensor)) (*tensor.Tensor, int, error) {
	x := a.t
	axis := x.Dim() - 1
	if v == starlark.None || x.Dim() == 0 {
		x, axis = x.Reshape(x.Len()), 0
	} else if v != nil {
		axes, _, err := axisOf(v, x.Dim())
		if err != nil || len(axes) != 1 {
			return nil, 0, fmt.Errorf("the axis must be one of the array's")
		}
		axis = axes[0]
	}
	moved := x.Transpose(axis, x.Dim()-1).Contiguous()
	n := moved.Shape()[moved.Dim()-1]
	for from := 0; from < moved.Len(); from += max(n, 1) {
		row := make([]int, n)
		for i := range row {
			row[i] = from + i
		}
		f(row, moved)
	}
	return moved, axis, nil
}

func cumsum(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	axis := args.get("axis")
	if axis == nil {
		axis = starlark.None
	}
	src := &array{a.t.Convert(reducedType("sum", a.t.DType()))}
	moved, at, err := src.alongLast(axis, func(row []int, x *tensor.Tensor) {
		for i := 1; i < len(row); i++ {
			if x.DType().IsInt() {
				x.SetInt(row[i], x.Int(row[i])+x.Int(row[i-1]))
			} else {
				x.Set(row[i], x.At(row[i])+x.At(row[i-1]))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return &array{moved.Transpose(at, moved.Dim()-1).Clone()}, nil
}

// sortedRows returns the array sorted along an axis, and the indices that sort it.
func (a *array) sortedRows(axis starlark.Value) (values, indices *array, err error) {
	var at []int64
	var sorted *tensor.Tensor
	moved, dim, err := a.alongLast(axis, func(row []int, x *tensor.Tensor) {
		order := make([]int, len(row))
		for i := range order {
			order[i] = i
		}
		sort.SliceStable(order, func(i, j int) bool {
			p, q := x.Float(row[order[i]]), x.Float(row[order[j]])
			return p < q || q != q && p == p
		})
		for _, o := range order {
			at = append(at, int64(o))
		}
	})
	if err != nil {
		return nil, nil, err
	}
	sorted = tensor.New(moved.DType(), moved.Shape()...)
	n := moved.Shape()[moved.Dim()-1]
	for i, o := range at {
		from := i / n * n
		if moved.DType().IsInt() {
			sorted.SetInt(i, moved.Int(from+int(o)))
		} else {
			sorted.Set(i, moved.At(from+int(o)))
		}
	}
	index := tensor.Of(tensor.I64, moved.Shape(), at)
	last := moved.Dim() - 1
	return &array{sorted.Transpose(dim, last).Clone()}, &array{index.Transpose(dim, last).Clone()}, nil
}

func sortCall(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	v, _, err := a.sortedRows(args.get("axis"))
	return v, err
}

func argsortCall(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	_, i, err := a.sortedRows(args.get("axis"))
	return i, err
}

func unique(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "ar")
	if err != nil {
		return nil, err
	}
	v, _, err := a.sortedRows(starlark.None)
	if err != nil {
		return nil, err
	}
	at := []int{}
	for i := range v.t.Len() {
		if i == 0 || v.t.At(i) != v.t.At(i-1) {
			at = append(at, i)
		}
	}
	out := tensor.New(v.t.DType(), len(at))
	for i, j := range at {
		out.Set(i, v.t.At(j))
	}
	return &array{out}, nil
}

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
			return nil, d, fmt.Errorf("an array of more than %d elements", maxElements)
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
		return nil, nil, fmt.Errorf("an array of more than %d elements", maxElements)
	}
	out := make([]*tensor.Tensor, len(as))
	for i, a := range as {
		if out[i], err = a.t.Expand(shape...); err != nil {
			return nil, nil, err
		}
	}
	return out, shape, nil
}

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

func repeatCall(t *starlark.Thread, args arguments) (starlark.Value, error) {
	a, err := args.array(t, "a")
	if err != nil {
		return nil, err
	}
	n, err := starlark.AsInt32(args.get("repeats"))
	if err != nil || n < 0 || a.t.Len()*n > maxElements {
		return nil, fmt.Errorf("repeat: want a number that is not negative and not too large")
	}
	flat := a.t.Reshape(a.t.Len(), 1)
	x, err := flat.Expand(a.t.Len(), n)
	if err != nil {
		return nil, err
	}
	return &array{x.Clone().Reshape(a.t.Len() * n)}, nil
}

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
	return fmt.Errorf("the test's assertion failed: %s(%s, %s)", a.fn, shortened(a.values[0]), shortened(a.values[1]))
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
	case "tolist":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return a.list(), nil }), nil
	case "copy":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return a.clone(), nil }), nil
	case "item":
		return method(name, a.item), nil
	case "reshape":
		return starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			shape, err := signedDims(args)
			if err != nil {
				return nil, err
			}
			return a.reshaped(shape)
		}), nil
	case "flatten", "ravel":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return (&array{a.t.Clone()}).reshaped([]int{-1}) }), nil
	case "transpose":
		return method(name, func(args starlark.Tuple) (starlark.Value, error) { return a.permuted(args) }), nil
	case "astype":
		return numpyFunc{[]string{"dtype", "copy"}, 1, func(_ *starlark.Thread, args arguments) (starlark.Value, error) {
			d, err := numpyDType(args.values[0])
			if err != nil {
				return nil, err
			}
			return &array{a.t.Convert(d)}, nil
		}}.value(name), nil
	case "fill":
		return method(name, func(args starlark.Tuple) (starlark.Value, error) {
			if len(args) != 1 {
				return nil, fmt.Errorf("fill takes one value")
			}
			return starlark.None, a.SetKey(ellipsis{}, args[0])
		}), nil
	case "dot":
		return builtin(name, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
			if len(args) != 1 {
				return nil, fmt.Errorf("dot takes one array")
			}
			return operators["matmul"].arrays(t, a, args[0])
		}), nil
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

// arrayMethods are the functions that arrays have as methods.
var arrayMethods = map[string]bool{
	"sum": true, "prod": true, "mean": true, "max": true, "min": true, "any": true, "all": true, "std": true, "var": true, "argmax": true, "argmin": true,
	"cumsum": true, "argsort": true, "squeeze": true, "clip": true, "round": true, "repeat": true,
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
