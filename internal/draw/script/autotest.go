package script

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

var autotestParams = []string{
	"n", "auto_backward", "rtol", "atol", "check_graph", "check_allclose", "check_dtype", "check_grad_use_random_data", "include_complex",
	"seed", "dtypes", "layouts", "order", "tolerance", "special", "random", "refusals",
}

// The tolerance of AutoTest.
const (
	AutotestRTol = 1e-4
	AutotestATol = 1e-5
)

// makeAutotest reads the arguments of the decorator.
func makeAutotest(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	o := options
	for _, read := range []func(arguments, *Options) error{
		readCount, readBackward, readTolerance, readSeed, readDTypes, readInputs, readOrder, readRandom,
	} {
		if err := read(a, &o); err != nil {
			return nil, err
		}
	}
	err := a.switches(map[string]*bool{
		"check_graph": &o.CheckGraph, "check_allclose": &o.CheckAllClose, "check_dtype": &o.CheckDType,
		"check_grad_use_random_data": &o.RandomGrad, "include_complex": &o.IncludeComplex,
		"refusals": &o.Refusals,
	})
	return &autotest{o}, err
}

func readCount(a arguments, o *Options) error {
	v := a.get("n")
	if v == nil {
		return nil
	}
	n, ok := v.(starlark.Int)
	i, fits := n.Int64()
	if !ok || !fits || i < 1 || i > 1<<30 {
		return a.wrong("n", "a positive int")
	}
	o.N = int(i)
	return nil
}

func readBackward(a arguments, o *Options) error {
	switch v := a.get("auto_backward").(type) {
	case nil:
	case starlark.Bool:
		if !v {
			o.AutoBackward = NoBackward
		}
	default:
		if v == starlark.String("ValidatedFalse") {
			o.AutoBackward = NoBackward
			return nil
		}
		if v != starlark.String("auto") {
			return a.wrong("auto_backward", "True, False or \"auto\"")
		}
		o.AutoBackward = AutoBackward
	}
	return nil
}

func readTolerance(a arguments, o *Options) error {
	rtol, atol := AutotestRTol, AutotestATol
	switch v := a.get("tolerance"); v {
	case nil, starlark.None:
	case starlark.String("autotest"):
		o.RTol, o.ATol = &rtol, &atol
	case starlark.String("exact"):
		rtol, atol = 0, 0
		o.RTol, o.ATol = &rtol, &atol
	case starlark.String(program.Default):
		o.Tolerance = program.Default
	case starlark.String(op.Pointwise), starlark.String(op.Accumulating):
		return &argumentError{slices.Index(a.params, "tolerance"), "tolerance", fmt.Sprintf(`autotest: argument 'tolerance' is "autotest", "exact" or "default"; %s limits are the operators' own, which decide when it is not given`, v.(starlark.String).GoString())}
	default:
		return a.wrong("tolerance", `"autotest", "exact" or "default"`)
	}
	for param, into := range map[string]**float64{"rtol": &o.RTol, "atol": &o.ATol} {
		if v := a.get(param); v != nil {
			f, ok := starlark.AsFloat(v)
			if !ok || !(f >= 0) || math.IsInf(f, 0) {
				return a.wrong(param, "a number that is not negative")
			}
			*into = &f
		}
	}
	return nil
}

func readSeed(a arguments, o *Options) error {
	v := a.get("seed")
	if v == nil || v == starlark.None {
		return nil
	}
	n, ok := v.(starlark.Int)
	seed, fits := n.Uint64()
	if !ok || !fits {
		return a.wrong("seed", "an int from 0 to 2**64-1")
	}
	o.Seed = &seed
	return nil
}

func readDTypes(a arguments, o *Options) error {
	v := a.get("dtypes")
	if v == nil || v == starlark.None {
		return nil
	}
	seq, ok := v.(starlark.Iterable)
	if !ok {
		return a.wrong("dtypes", "a list of dtypes")
	}
	for e := range starlark.Elements(seq) {
		d, ok := dtypeOf(e)
		if !ok || slices.Contains(o.DTypes, d) {
			return a.wrong("dtypes", "a list of different dtypes such as torch.float64")
		}
		o.DTypes = append(o.DTypes, d)
	}
	if o.DTypes == nil {
		return a.wrong("dtypes", "a list with at least one dtype")
	}
	return nil
}

func readInputs(a arguments, o *Options) (err error) {
	if o.Special, err = a.special(); err != nil {
		return err
	}
	o.Layouts, err = (*draw)(nil).layouts(a, "layouts")
	return err
}

func readOrder(a arguments, o *Options) error {
	if v := a.get("order"); v != nil {
		n, err := starlark.AsInt32(v)
		if err != nil || n != 1 && n != 2 {
			return a.wrong("order", "1 or 2")
		}
		o.Order = n
	}
	if o.Order == 2 && o.AutoBackward == NoBackward {
		return fmt.Errorf("autotest: order=2 differentiates twice, but auto_backward is False")
	}
	return nil
}

func readRandom(a arguments, o *Options) error {
	switch a.get("random") {
	case nil, starlark.String("distribution"):
	case starlark.String("shape"):
		o.Draws = true
	default:
		return a.wrong("random", `"distribution" or "shape"`)
	}
	return nil
}

// dtypeOf returns the element type that random tensors have for a value:
// float means float32, as in random_tensor.
func dtypeOf(v starlark.Value) (tensor.DType, bool) {
	switch v := v.(type) {
	case dtype:
		return tensor.DType(v), true
	case *pyType:
		switch v.name {
		case "float":
			return tensor.F32, true
		case "int":
			return tensor.I64, true
		case "complex":
			return tensor.C64, true
		case "bool":
			return tensor.Bool, true
		}
	}
	return tensor.Invalid, false
}

// special returns the kinds of edge values that the parameter special names:
// True, False, one name or a list of names.
func (a arguments) special() (program.Special, error) {
	names, err := a.names("special", func(all bool) []string {
		if all {
			return program.SpecialNames()
		}
		return nil
	})
	var s program.Special
	for _, name := range names {
		kind, err := program.ParseSpecial(name)
		if err != nil {
			return 0, &argumentError{slices.Index(a.params, "special"), "special", fmt.Sprintf("%s: argument 'special': %v", a.fn, err)}
		}
		s |= kind
	}
	return s, err
}

// layouts returns the layouts that a parameter names: True for all, one name
// or a list of names; a generator of a name where d draws.
func (d *draw) layouts(a arguments, param string) ([]gen.Layout, error) {
	if g, ok := a.get(param).(*generator); ok && d != nil {
		v, err := g.draw(d.thread, (*gen.Node).Value)
		if err != nil {
			return nil, err
		}
		a.values = slices.Clone(a.values)
		a.values[slices.Index(a.params, param)] = v
	}
	names, err := a.names(param, func(all bool) []string {
		if !all {
			return []string{string(gen.Contiguous)}
		}
		var names []string
		for _, l := range gen.Layouts {
			names = append(names, string(l))
		}
		return names
	})
	var out []gen.Layout
	for _, name := range names {
		ls, err := gen.ParseLayout(name)
		if err != nil {
			return nil, &argumentError{slices.Index(a.params, param), param, fmt.Sprintf("%s: argument '%s': %v", a.fn, param, err)}
		}
		out = append(out, ls...)
	}
	return out, err
}

// names returns the strings of a parameter: one, a list, or what a bool stands for.
func (a arguments) names(param string, of func(bool) []string) ([]string, error) {
	switch v := a.get(param).(type) {
	case nil, starlark.NoneType:
		return nil, nil
	case starlark.Bool:
		return of(bool(v)), nil
	case starlark.String:
		return []string{string(v)}, nil
	case starlark.Iterable:
		var names []string
		for e := range starlark.Elements(v) {
			s, ok := starlark.AsString(e)
			if !ok {
				return nil, a.wrong(param, "a list of strings")
			}
			names = append(names, s)
		}
		return names, nil
	}
	return nil, a.wrong(param, "True, a string or a list of strings")
}

// flag returns a parameter that is a bool or a generator; nil when not given.
func (a arguments) flag(param string) (any, error) {
	switch v := a.get(param).(type) {
	case nil:
		return nil, nil
	case starlark.Bool:
		return bool(v), nil
	case *generator:
		return v.node, nil
	}
	return nil, a.wrong(param, "bool or a generator")
}

func notADecorator(_ *starlark.Thread, b *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return nil, fmt.Errorf("@%s is a decorator without arguments", b.Name())
}

// Name is that of the decorator, which is called in autotest(n=1)(f).
func (*autotest) Name() string { return "autotest" }

// CallInternal decorates a function that has been defined before.
func (a *autotest) CallInternal(_ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 && len(kwargs) == 0 {
		switch f := args[0].(type) {
		case *starlark.Function:
			return &decorated{fn: f, auto: a}, nil
		case *decorated:
			return &decorated{f.fn, a, f.global}, nil
		}
	}
	return nil, fmt.Errorf("autotest(…) decorates one function")
}

// decorated is a test function as its module sees it: a test that is called by
// another one runs there.
type decorated struct {
	fn     *starlark.Function
	auto   *autotest
	global bool
}

func (d *decorated) String() string        { return d.fn.String() }
func (d *decorated) Type() string          { return "function" }
func (d *decorated) Freeze()               { d.fn.Freeze() }
func (d *decorated) Truth() starlark.Bool  { return true }
func (d *decorated) Hash() (uint32, error) { return d.fn.Hash() }
func (d *decorated) Name() string          { return d.fn.Name() }

// CallInternal runs the function, or notes the call when the test that calls
// it takes the calls one by one.
func (d *decorated) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	draw, err := drawOf(t, d.Name())
	if err != nil {
		return nil, err
	}
	if draw.turn == nil {
		return starlark.Call(t, d.fn, args, kwargs)
	}
	return draw.turn.take(draw, d, args, kwargs)
}

// turn runs one of the calls that a test makes of decorated functions: each
// case is one of them.
type turn struct {
	want  int // index of the call to run; negative runs none
	made  []taken
	done  bool
	value starlark.Value
}

// taken is a call of a decorated function.
type taken struct {
	*decorated
	args   starlark.Tuple
	kwargs []starlark.Tuple
}

// run makes the call the case of the draw.
func (c taken) run(d *draw) (starlark.Value, error) {
	d.turn = nil
	d.options = c.decorated.options()
	d.adopt()
	return starlark.Call(d.thread, c.fn, c.args, c.kwargs)
}

// errTurn ends a test after the call that was its turn.
var errTurn = fmt.Errorf("the call has been run")

func (w *turn) take(d *draw, f *decorated, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	w.made = append(w.made, taken{f, args, kwargs})
	if len(w.made) > maxElements {
		return nil, fmt.Errorf("the test makes more than %d calls of %s", maxElements, f.Name())
	}
	if len(w.made)-1 != w.want {
		return starlark.None, nil
	}
	v, err := w.made[w.want].run(d)
	if err != nil {
		return nil, err
	}
	w.done, w.value = true, v
	return nil, errTurn
}

// calling reports whether a function mentions one of the names.
func calling(mentions []string, names map[string]bool) bool {
	return slices.ContainsFunc(mentions, func(m string) bool { return names[m] })
}

// enlist makes tests of the undecorated test functions: those that call
// decorated functions have their cases, others one.
func (l *loader) enlist() {
	for _, t := range l.shared {
		if !l.called(t) {
			l.include(t)
		}
	}
	for _, u := range l.plain {
		switch {
		case calling(l.file.mentions[int(u.fn.Position().Line)], l.wrapped):
			u.test.drives = true
			u.test.count()
			l.include(u.test)
		default:
			if l.helps(u.test) {
				continue
			}
			if name := l.missing(u.test); name != "" && u.test.lacks == "" {
				u.test.lacks = fmt.Sprintf("the fixture %s is not in test files, and the file has none of that name", name)
			}
			u.test.plain = !u.test.global
			u.test.Options.N, u.test.Options.AutoBackward, u.test.Options.CheckGraph = u.test.endings(), NoBackward, false
			u.test.Options.N = max(u.test.Options.N, u.test.examples)
			l.include(u.test)
		}
	}
	slices.SortStableFunc(l.file.tests, func(a, b *Test) int { return a.Line - b.Line })
	slices.SortStableFunc(l.file.Notes, func(a, b Note) int { return a.Line - b.Line })
}

// receivers are what tests call the test case.
var receivers = []string{"self", "test_case", "cls"}

// missing is a parameter of a test that nobody gives; "" for none.
func (l *loader) missing(t *Test) string {
	if t.handed() {
		return ""
	}
	from, to := 0, t.signature().NumParams()
	if t.class != nil {
		from = 1
	}
	for _, more := range []bool{t.signature().HasVarargs(), t.signature().HasKwargs()} {
		if more {
			to--
		}
	}
	for i := from; i < to; i++ {
		name, _ := t.signature().Param(i)
		given := slices.ContainsFunc(t.given, func(kw starlark.Tuple) bool { return kw[0] == starlark.Value(starlark.String(name)) })
		if !given && l.fixtures[name] == nil && t.signature().ParamDefault(i) == nil {
			return name
		}
	}
	return ""
}

// helps reports whether a function whose name is a test's, and which takes more than it is
// given, is one that others call.
func (l *loader) helps(t *Test) bool {
	takes := t.signature().NumParams() - len(t.given) - len(t.fixtures.of(t.signature()))
	if t.class != nil {
		takes--
	}
	if takes <= 0 {
		return false
	}
	first, _ := t.signature().Param(0)
	return l.called(t) || t.class == nil && slices.Contains(receivers, first)
}

// called reports whether another function mentions the test's.
func (l *loader) called(t *Test) bool {
	for line, names := range l.file.mentions {
		if line != t.Line && slices.Contains(names, shortName(t.head)) {
			return true
		}
	}
	return false
}

// count finds out how many calls the test makes, and takes the options of the
// first. A test that cannot be run without being drawn has one case.
func (t *Test) count() {
	d := newDraw(t, choice.New(0), Env{})
	d.turn = &turn{want: -1}
	_ = d.setUp()
	_, _ = d.body()
	t.Calls = len(d.turn.made)
	t.Options = options
	t.Options.N = 1
	if t.Calls == 0 {
		return
	}
	t.Options, t.Options.N = d.turn.made[0].options(), 0
	for _, f := range d.turn.made {
		t.Options.N += f.options().N
	}
}

// endings is the number of cases that the blocks with an expected exception
// make: each ends the program of one, and what follows the last has another.
func (t *Test) endings() int { return max(t.file.endings[t.Line], 1) }

func (d *decorated) options() Options {
	if d.auto == nil {
		return options
	}
	return d.auto.options
}

// undecorated is a test function that has no @autotest.
type undecorated struct {
	fn   *starlark.Function
	test *Test
}

// isTest reports whether a function is one by its name.
func isTest(name string) bool { return strings.HasPrefix(name, "test") }
