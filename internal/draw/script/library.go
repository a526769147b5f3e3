package script

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/internal/draw/gen"
	"plumb/tensor"
)

// predeclared are the names that every test file has; import statements for
// them are accepted and not needed.
var predeclared = func() starlark.StringDict {
	m := starlark.StringDict{
		"torch": path("torch"), "Ellipsis": ellipsis{}, "__name__": starlark.String("plumb"), "__file__": starlark.String("test.py"),
		fnTruth: builtin(fnTruth, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return truth(t, a[0]) }),
		fnAnd:   builtin(fnAnd, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return junction(t, a, true) }),
		fnOr:    builtin(fnOr, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return junction(t, a, false) }),
		fnSlice: builtin(fnSlice, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return getslice(a[0], a[1], a[2], a[3])
		}),
		fnItem: builtin(fnItem, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return getitem(a[0], a[1]) }),
		fnIndex: builtin(fnIndex, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if _, list := a[0].(*starlark.List); !list {
				return a[1], nil
			}
			i, err := position(a[1])
			return starlark.MakeInt(i), err
		}),
		fnParts: builtin(fnParts, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if l, ok := a[0].(*starlark.List); ok {
				return listParts{l, t}, nil
			}
			return a[0], nil
		}),
		fnIs: builtin(fnIs, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return starlark.Bool(same(a[0], a[1])), nil
		}),
		fnIsNot: builtin(fnIsNot, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return starlark.Bool(!same(a[0], a[1])), nil
		}),
		fnDecorate: builtin(fnDecorate, decorate), fnClass: starlark.NewBuiltin(fnClass, beginClass),
		fnEndClass: builtin(fnEndClass, endClass), fnDef: builtin(fnDef, define),
		"range": starlark.NewBuiltin("range", boundedRange), "len": builtin("len", length), "abs": builtin("abs", absolute),
		"pow":   builtin("pow", func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return pair("pow", t, a) }),
		"sum":   builtin("sum", sum),
		"round": builtin("round", round),
		"slice": builtin("slice", makeSlice),
	}
	for name, o := range operators {
		m["__"+name+"__"] = builtin("__"+name+"__", func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return o.call(t, a[0], a[1]) })
	}
	for token, name := range unaryNames {
		m["__"+name+"__"] = builtin("__"+name+"__", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return unary(name, token, a[0]) })
	}
	for name, t := range pyTypes {
		m[name] = t
	}
	for name, v := range vocabulary {
		m[name] = v
	}
	return m
}()

// builtin makes a function of positional arguments.
func builtin(name string, f func(*starlark.Thread, starlark.Tuple) (starlark.Value, error)) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(kwargs) > 0 {
			return nil, fmt.Errorf("%s: unknown keyword argument %s", name, kwargs[0][0])
		}
		v, err := f(t, args)
		if err != nil {
			return nil, err
		}
		return v, spend(t, v)
	})
}

// ofOne is builtin of a function of one argument.
func ofOne(name string, f func(*starlark.Thread, starlark.Value) (starlark.Value, error)) *starlark.Builtin {
	return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) != 1 {
			return nil, fmt.Errorf("%s takes one argument, not %d", name, len(a))
		}
		return f(t, a[0])
	})
}

// loading makes a function that only a module body calls.
func loading(name string, f func(*starlark.Thread, *loader, starlark.Tuple) (starlark.Value, error)) *starlark.Builtin {
	return builtin(name, func(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
		l, err := loaderOf(t)
		if err != nil {
			return nil, err
		}
		return f(t, l, args)
	})
}

// vocabulary is what "from plumb import *" gives.
var vocabulary = map[string]starlark.Value{
	"autotest":          declare("autotest", autotestParams, makeAutotest),
	"globaltest":        starlark.NewBuiltin("globaltest", notADecorator),
	"profile":           declare("profile", []string{"op"}, makeProfile),
	"random":            declare("random", []string{"low", "high"}, func(_ *starlark.Thread, a arguments) (starlark.Value, error) { return a.bounds(gen.Random) }),
	"random_or_nothing": declare("random_or_nothing", []string{"low", "high"}, func(_ *starlark.Thread, a arguments) (starlark.Value, error) { return a.bounds(gen.RandomOrNothing) }),
	"random_bool": declare("random_bool", nil, func(*starlark.Thread, arguments) (starlark.Value, error) {
		return &generator{node: gen.RandomBool()}, nil
	}),
	"random_device": declare("random_device", nil, func(*starlark.Thread, arguments) (starlark.Value, error) {
		return &generator{node: gen.RandomDevice()}, nil
	}),
	"cpu_device": declare("cpu_device", nil, func(*starlark.Thread, arguments) (starlark.Value, error) {
		return &generator{node: gen.Constant("cpu")}, nil
	}),
	"gpu_device":            declare("gpu_device", nil, makeGPUDevice),
	"nothing":               declare("nothing", nil, func(*starlark.Thread, arguments) (starlark.Value, error) { return &generator{node: gen.Nothing()}, nil }),
	"constant":              declare("constant", []string{"x"}, makeConstant),
	"generator":             &pyType{name: "generator"},
	"pack":                  builtin("pack", pack),
	"oneof":                 starlark.NewBuiltin("oneof", makeOneOf),
	"random_dtype":          declare("random_dtype", []string{"groups"}, makeRandomDType),
	"random_pytorch_dtype":  declare("random_pytorch_dtype", []string{"groups"}, makeRandomDType),
	"random_tensor":         declare("random_tensor", tensorParams, tensorNode(randomTensor).now),
	"random_pytorch_tensor": declare("random_pytorch_tensor", tensorParams, tensorNode(randomTensor).now),
	"choice_tensor":         declare("choice_tensor", choiceParams, tensorNode(choiceTensor).now),
	"choice_pytorch_tensor": declare("choice_pytorch_tensor", choiceParams, tensorNode(choiceTensor).now),
	"all_placement":         placements("all_placement", true, true),
	"all_cpu_placement":     placements("all_cpu_placement", true, false),
	"all_cuda_placement":    placements("all_cuda_placement", false, true),
	"random_placement":      randomPlacement("random_placement", true, true),
	"random_cpu_placement":  randomPlacement("random_cpu_placement", true, false),
	"random_gpu_placement":  randomPlacement("random_gpu_placement", false, true),
	"all_sbp":               declare("all_sbp", sbpParams, makeAllSBP),
	"random_sbp":            declare("random_sbp", sbpParams, makeRandomSBP),
}

// arguments are those of a function of the vocabulary, by parameter; nil when
// not given.
type arguments struct {
	fn     string
	params []string
	values []starlark.Value
}

// declare makes a function with named parameters, all optional.
func declare(name string, params []string, f func(*starlark.Thread, arguments) (starlark.Value, error)) *starlark.Builtin {
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		a := arguments{name, params, make([]starlark.Value, len(params))}
		if err := a.bind(args, kwargs); err != nil {
			return nil, err
		}
		return f(t, a)
	})
}

func (a arguments) bind(args starlark.Tuple, kwargs []starlark.Tuple) error {
	if len(args) > len(a.params) {
		return &argumentError{len(a.params), "", fmt.Sprintf("%s takes at most %d arguments, not %d", a.fn, len(a.params), len(args))}
	}
	copy(a.values, args)
	for _, kw := range kwargs {
		name := string(kw[0].(starlark.String))
		i := slices.Index(a.params, name)
		switch {
		case i < 0 && len(a.params) == 0:
			return &argumentError{-1, name, fmt.Sprintf("%s: unknown keyword argument '%s'; it takes none", a.fn, name)}
		case i < 0:
			return &argumentError{-1, name, fmt.Sprintf("%s: unknown keyword argument '%s'; it takes %s", a.fn, name, strings.Join(a.params, ", "))}
		case a.values[i] != nil:
			return &argumentError{-1, name, fmt.Sprintf("%s: argument '%s' is given twice", a.fn, name)}
		}
		a.values[i] = kw[1]
	}
	return nil
}

// wrong is a mistake in a parameter's value.
func (a arguments) wrong(param, want string) error {
	i := slices.Index(a.params, param)
	return &argumentError{i, param, fmt.Sprintf("%s: argument '%s' must be %s, not %s", a.fn, param, want, describeValue(a.values[i]))}
}

func describeValue(v starlark.Value) string {
	switch v := v.(type) {
	case starlark.String:
		return "str"
	case starlark.NoneType:
		return "None"
	case *symbol:
		return v.Type()
	}
	return v.Type()
}

func (a arguments) get(param string) starlark.Value { return a.values[slices.Index(a.params, param)] }

// number returns a parameter that is a number or a generator; nil when not given.
func (a arguments) number(param string) (any, error) {
	v, err := settled(a.get(param))
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return nil, nil
	case *generator:
		return v.node, nil
	case starlark.Int:
		if i, ok := v.Int64(); ok {
			return i, nil
		}
	case starlark.Float:
		return float64(v), nil
	}
	return nil, a.wrong(param, "a number or a generator")
}

func (a arguments) bounds(f func(low, high any) *gen.Node) (starlark.Value, error) {
	low, err := a.number("low")
	if err != nil {
		return nil, err
	}
	high, err := a.number("high")
	if err != nil {
		return nil, err
	}
	if low == nil {
		low = 1
	}
	if high == nil {
		high = 6
	}
	return &generator{node: f(low, high)}, nil
}

func makeConstant(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	v := a.get("x")
	if v == nil {
		return nil, fmt.Errorf("constant needs a value")
	}
	n, err := operand(v)
	if err != nil {
		return nil, err
	}
	return &generator{node: gen.Constant(n)}, nil
}

func makeOneOf(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"oneof", []string{"possibility"}, make([]starlark.Value, 1)}
	if err := a.bind(nil, kwargs); err != nil {
		return nil, err
	}
	alternatives := make([]any, len(args))
	for i, v := range args {
		var err error
		if alternatives[i], err = operand(v); err != nil {
			return nil, err
		}
	}
	n, err := a.oneOf(alternatives)
	if err != nil {
		return nil, err
	}
	return &generator{node: n}, nil
}

func (a arguments) oneOf(alternatives []any) (*gen.Node, error) {
	if g, ok := a.values[0].(*generator); ok {
		return gen.OneOfDrawn(g.node, func(v any) ([]float64, error) {
			drawn, err := (*draw)(nil).fromProgram(v)
			if err != nil {
				return nil, err
			}
			a := arguments{a.fn, a.params, []starlark.Value{drawn}}
			return a.weights(len(alternatives))
		}, alternatives...)
	}
	weights, err := a.weights(len(alternatives))
	if err != nil {
		return nil, err
	}
	return gen.OneOf(weights, alternatives...)
}

// weights reads oneof's possibility: that of the first of two alternatives, or
// one for each.
func (a arguments) weights(n int) ([]float64, error) {
	switch v := a.values[0].(type) {
	case nil, starlark.NoneType:
		return nil, nil
	case starlark.Int, starlark.Float:
		p, _ := starlark.AsFloat(v)
		if n != 2 {
			return nil, &argumentError{-1, "possibility", fmt.Sprintf("oneof: argument 'possibility' is one number, which needs two alternatives, not %d", n)}
		}
		return []float64{p, 1 - p}, nil
	case starlark.Sequence:
		var out []float64
		for e := range starlark.Elements(v) {
			p, ok := starlark.AsFloat(e)
			if !ok {
				return nil, a.wrong("possibility", "a number or a list of numbers")
			}
			out = append(out, p)
		}
		return out, nil
	}
	return nil, a.wrong("possibility", "a number or a list of numbers")
}

func makeRandomDType(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	seq, ok := a.get("groups").(starlark.Sequence)
	if !ok {
		return nil, fmt.Errorf("random_dtype needs a list of groups, such as [\"float\", \"int\"]")
	}
	var groups []string
	for e := range starlark.Elements(seq) {
		s, _ := starlark.AsString(e)
		groups = append(groups, s)
	}
	n, err := gen.RandomDType(groups...)
	if err != nil {
		return nil, err
	}
	return &generator{node: n}, nil
}

var tensorParams = []string{"ndim", "dim0", "dim1", "dim2", "dim3", "dim4", "low", "high", "dtype", "requires_grad", "pin_memory", "special", "layout"}

// tensorNode describes a tensor to draw.
type tensorNode func(t *starlark.Thread, a arguments) (*draw, *gen.Node, error)

// now draws the tensor.
func (f tensorNode) now(t *starlark.Thread, a arguments) (starlark.Value, error) {
	d, n, err := f(t, a)
	if err != nil {
		return nil, err
	}
	v, err := n.Value(d.gen)
	if err != nil {
		return nil, err
	}
	return d.fromProgram(v)
}

func randomTensor(t *starlark.Thread, a arguments) (*draw, *gen.Node, error) {
	d, err := drawOf(t, a.fn)
	if err != nil {
		return nil, nil, err
	}
	var spec gen.TensorSpec
	for i, field := range []*any{&spec.NDim, &spec.Dims[0], &spec.Dims[1], &spec.Dims[2], &spec.Dims[3], &spec.Dims[4], &spec.Low, &spec.High} {
		if *field, err = a.number(a.params[i]); err != nil {
			return nil, nil, err
		}
	}
	if spec.DType, err = d.elementType(a); err != nil {
		return nil, nil, err
	}
	if spec.RequiresGrad, err = a.flag("requires_grad"); err != nil {
		return nil, nil, err
	}
	if _, err = a.flag("pin_memory"); err != nil {
		return nil, nil, err
	}
	if spec.Special, err = a.special(); err != nil {
		return nil, nil, err
	}
	if spec.Layouts, err = d.layouts(a, "layout"); err != nil {
		return nil, nil, err
	}
	return d, gen.RandomTensor(spec), nil
}

// elementType reads random_tensor's dtype: float, int, complex or a dtype of torch.
func (d *draw) elementType(a arguments) (tensor.DType, error) {
	v := a.get("dtype")
	if g, ok := v.(*generator); ok {
		drawn, err := g.draw(d.thread, (*gen.Node).Value)
		if err != nil {
			return tensor.Invalid, err
		}
		v = drawn
	}
	switch v := v.(type) {
	case nil:
		return tensor.F32, nil
	case dtype:
		return tensor.DType(v), nil
	case *pyType:
		switch v.name {
		case "float":
			return tensor.F32, nil
		case "int":
			return tensor.I64, nil
		case "complex":
			return tensor.C64, nil
		case "bool":
			return tensor.Bool, nil
		}
	}
	return tensor.Invalid, a.wrong("dtype", "float, int, complex or a dtype such as torch.float64")
}

func (a arguments) switches(into map[string]*bool) error {
	for _, param := range a.params {
		field, ok := into[param]
		if !ok || a.get(param) == nil {
			continue
		}
		switch v := a.get(param).(type) {
		case starlark.Bool:
			*field = bool(v)
		default:
			if v != starlark.String("ValidatedFalse") { // False, and somebody looked at why
				return a.wrong(param, "True or False")
			}
			*field = false
		}
	}
	return nil
}

func boundedRange(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	ends := slices.Clone(args)
	for i, v := range ends {
		switch v.(type) {
		case *symbol, *attr, *array:
			n, err := position(v)
			if err != nil {
				return nil, err
			}
			ends[i] = starlark.MakeInt(n)
		}
	}
	v, err := starlark.Call(t, starlark.Universe["range"], ends, kwargs)
	if err == nil && starlark.Len(v) > maxElements {
		return nil, fmt.Errorf("range of more than %d elements", maxElements)
	}
	return v, err
}

func length(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 {
		if n, ok, err := special(t, args[0], "__len__"); ok {
			return n, err
		}
		if o, ok := args[0].(*object); ok && isModule(o) {
			return starlark.MakeInt(len(o.children())), nil
		}
		if c, ok := args[0].(*class); ok && c.members != nil {
			return starlark.MakeInt(len(c.members)), nil
		}
		v := memberValue(args[0])
		if a, ok := v.(*attr); ok {
			s, err := a.resolve()
			if err != nil {
				return nil, err
			}
			v = s
		}
		if s, ok := v.(*symbol); ok {
			return s.length()
		}
		args = starlark.Tuple{v}
	}
	return starlark.Call(t, starlark.Universe["len"], args, nil)
}

func (s *symbol) length() (starlark.Value, error) {
	kind, err := s.known()
	if err != nil {
		return nil, err
	}
	if kind == kindTuple {
		return starlark.MakeInt(len(s.names)), nil
	}
	if s.hosted != nil {
		return starlark.MakeInt(len(s.hosted.children())), nil
	}
	if s.children != nil {
		return starlark.MakeInt(len(s.children)), nil
	}
	shape, err := s.shape()
	if err != nil {
		return nil, err
	}
	if len(shape) == 0 {
		return nil, fmt.Errorf("len() of %s, which has no dimension", s.ref)
	}
	return starlark.MakeInt(shape[0]), nil
}

func absolute(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 {
		switch v := args[0].(type) {
		case *symbol:
			return v.d.call("operator.abs", nil, args, nil)
		case *attr:
			return v.s.d.call("operator.abs", nil, args, nil)
		case complexNumber:
			return starlark.Float(cmplx.Abs(complex128(v))), nil
		case *array:
			return v.abs().scalar(), nil
		case starlark.Bool:
			return number(v), nil
		}
	}
	return starlark.Call(t, starlark.Universe["abs"], args, nil)
}

func pair(name string, t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("%s takes two arguments, not %d", name, len(args))
	}
	return operators[name].call(t, args[0], args[1])
}

func sum(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("sum takes one or two arguments, not %d", len(args))
	}
	vs, err := iterate(t, args[0])
	if err != nil {
		return nil, err
	}
	var total starlark.Value = starlark.MakeInt(0)
	if len(args) == 2 {
		total = args[1]
	}
	for _, v := range vs {
		next, err := operators["add"].call(t, total, v)
		if err != nil {
			return nil, err
		}
		total = next
	}
	return total, nil
}

func round(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("round takes one argument, not %d", len(args))
	}
	f, ok := starlark.AsFloat(number(args[0]))
	if !ok {
		return nil, fmt.Errorf("round of %s", args[0].Type())
	}
	return starlark.NumberToInt(starlark.Float(math.RoundToEven(f)))
}

func makeSlice(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	s := &slice{starlark.None, starlark.None, starlark.None}
	switch len(args) {
	case 1:
		s.stop = args[0]
	case 2:
		s.start, s.stop = args[0], args[1]
	case 3:
		s.start, s.stop, s.step = args[0], args[1], args[2]
	default:
		return nil, fmt.Errorf("slice takes one to three arguments, not %d", len(args))
	}
	return s, nil
}

// same is Python's "is".
func same(x, y starlark.Value) bool {
	if sides := []starlark.Value{x, y}; (isBool(x) || isBool(y)) && plainSides(sides) == nil { // torch.equal(a, b) is True
		x, y = sides[0], sides[1]
	}
	switch x := x.(type) {
	case starlark.NoneType, starlark.Bool, starlark.String, starlark.Int, starlark.Float, dtype, format, ellipsis, path, numpyType:
		if x.Type() != y.Type() {
			return x == starlark.None && isNone(y)
		}
		eq, err := starlark.Compare(syntax.EQL, x, y)
		return err == nil && eq
	}
	if y == starlark.None {
		return isNone(x)
	}
	if a, b := identity(x), identity(y); a != "" && b != "" {
		return a == b || handedOn(x, y)
	}
	return identical(x, y)
}

// library is a module that test files import from, with its names.
type library struct {
	name  string
	names starlark.StringDict
	lacks bool // has names in Python that test files do not have
}

func (l *library) String() string        { return l.name }
func (l *library) Type() string          { return "module" }
func (l *library) Freeze()               {}
func (l *library) Truth() starlark.Bool  { return true }
func (l *library) Hash() (uint32, error) { return hashString(l.name) }
func (l *library) AttrNames() []string   { return nil }

func (l *library) Attr(name string) (starlark.Value, error) {
	if v, ok := l.names[name]; ok {
		return v, nil
	}
	if v := l.fromPrelude(name); v != nil {
		return v, nil
	}
	if l.lacks || standard[l.name] == l || strings.HasPrefix(l.name, "oneflow.") {
		return foreign(l.name + "." + name), nil
	}
	return nil, fmt.Errorf("%s has no name %s", l.name, name)
}
