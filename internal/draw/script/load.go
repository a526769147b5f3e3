package script

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// loadKey is the thread-local name of the loader.
const loadKey = "plumb.load"

// loader collects the tests while a module body runs.
type loader struct {
	file    *File
	plain   []undecorated
	wrapped map[string]bool // names of decorated functions outside of classes
	shared  []*Test         // of decorated functions with parameters, for other tests to call
	lines   map[string]int  // of functions and classes so far, by name
	drew    bool            // something outside of a test belongs to a draw

	fixtures fixtures
}

func newLoader(f *File) *loader {
	return &loader{file: f, wrapped: map[string]bool{"autotest": true}, lines: map[string]int{}, fixtures: fixtures{}}
}

// autotest is what @autotest(…) gives.
type autotest struct{ options Options }

func (*autotest) String() string        { return "autotest" }
func (*autotest) Type() string          { return "decorator" }
func (*autotest) Freeze()               {}
func (*autotest) Truth() starlark.Bool  { return true }
func (*autotest) Hash() (uint32, error) { return 0, nil }

// ignored is a decorator without effect, or one that skips.
type ignored struct {
	name string
	skip string
	lost bool        // it has an effect in Python
	mark *pytestMark // that it is; nil for others
}

func (i ignored) String() string        { return i.name }
func (i ignored) Type() string          { return "decorator" }
func (i ignored) Freeze()               {}
func (i ignored) Truth() starlark.Bool  { return true }
func (i ignored) Hash() (uint32, error) { return hashString(i.name) }

// testCase is the first argument of a test: the class's functions.
type testCase struct {
	class  *class
	fields map[string]starlark.Value
}

func (t testCase) String() string        { return "test_case" }
func (t testCase) Type() string          { return "TestCase" }
func (t testCase) Freeze()               {}
func (t testCase) Truth() starlark.Bool  { return true }
func (t testCase) Hash() (uint32, error) { return 0, nil }
func (t testCase) AttrNames() []string   { return nil }

// SetField is self.name = v.
func (t testCase) SetField(name string, v starlark.Value) error {
	if t.fields == nil {
		return fmt.Errorf("self.%s can only be assigned inside a test", name)
	}
	t.fields[name] = v
	return nil
}

// Attr returns a function of the class, bound to the test case.
func (t testCase) Attr(name string) (starlark.Value, error) {
	if v, ok := t.fields[name]; ok {
		return v, nil
	}
	if t.class != nil {
		switch v := t.class.lookup(name).(type) {
		case nil:
		case *starlark.Function:
			return bindTo(v, t), nil
		case *decorated:
			return bindTo(v, t), nil
		case *wrappedMethod:
			return v.bind(t, t.class), nil
		default:
			return v, nil
		}
	}
	if name == "assertEqual" || name == "assertNotEqual" {
		if t.class != nil && t.class.close {
			return torchPrelude()[name], nil
		}
	}
	switch name {
	case "assertRtolEqual":
		return npuPrelude()[name], nil
	case "assertRaises", "assertRaisesRegex":
		return starlark.NewBuiltin(name, assertRaises), nil
	case "assertWarns", "assertWarnsRegex":
		return starlark.NewBuiltin(name, expectWarning), nil
	case "skipTest":
		return builtin(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return nil, skipsItself(a) }), nil
	case "subTest":
		return starlark.NewBuiltin(name, subTest), nil
	case "setUp", "tearDown", "setUpClass", "addCleanup", "addClassCleanup":
		return ignoredCall(name), nil
	case "__class__":
		return t.class, nil
	}
	if v := assertion(name); v != nil {
		return v, nil
	}
	if strings.HasPrefix(name, "assert") {
		return nil, lack("%s is not supported in test files", name)
	}
	return nil, lack("the test case has no attribute %s", name)
}

func loaderOf(t *starlark.Thread) (*loader, error) {
	if l, ok := t.Local(loadKey).(*loader); ok {
		return l, nil
	}
	return nil, fmt.Errorf("this is only possible at the top of a file")
}

func (l *loader) note(t *starlark.Thread, format string, args ...any) {
	p := l.file.out.source(l.file.top(t))
	l.file.Notes = append(l.file.Notes, Note{int(p.line), fmt.Sprintf(format, args...)})
}

// decorate notes a decorator of the function or class that comes next. It is
// given as a function; at the top of a file a mistake in it is one of the test
// that follows.
func decorate(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("want one decorator")
	}
	l, loads := t.Local(loadKey).(*loader)
	v, err := starlark.Call(t, args[0], nil, nil)
	switch {
	case err == nil:
		v = decoratorOf(v)
	case loads:
		v = mistaken{err}
	default:
		return nil, err
	}
	if i, ok := v.(ignored); ok && i.lost && loads {
		l.note(t, "@%s has no effect", i.name)
	}
	b := bodiesOf(t)
	b.pending = append(b.pending, v)
	return starlark.None, nil
}

// decoratorOf returns what a value does as a decorator.
func decoratorOf(v starlark.Value) starlark.Value {
	switch d := v.(type) {
	case *autotest, *fixture, profiled, dataclass, *parametrize, *expanded, *drawn, examples, expander, *starlark.Function, *manager, *object, ignored:
		return v
	case *starlark.Builtin:
		switch d.Name() {
		case "autotest":
			return &autotest{options}
		case "globaltest":
			return globalMark{}
		}
		return v
	case path:
		if slices.Contains(compiled, d) {
			return unchanged
		}
	case foreign:
		if known, err := callForeign(nil, d, nil, nil); err == nil {
			return known
		}
		return lacked(d.unavailable().Error())
	}
	return lacked(fmt.Sprintf("the decorator %s is not supported in test files", v))
}

// mistaken is a decorator that cannot be evaluated.
type mistaken struct{ err error }

func (m mistaken) String() string      { return m.err.Error() }
func (mistaken) Type() string          { return "decorator" }
func (mistaken) Freeze()               {}
func (mistaken) Truth() starlark.Bool  { return true }
func (mistaken) Hash() (uint32, error) { return 0, nil }

// lacked is a decorator that test files do not have, and why.
type lacked string

func (l lacked) String() string        { return string(l) }
func (l lacked) Type() string          { return "decorator" }
func (l lacked) Freeze()               {}
func (l lacked) Truth() starlark.Bool  { return true }
func (l lacked) Hash() (uint32, error) { return 0, nil }

// globalMark is what @globaltest gives.
type globalMark struct{}

func (globalMark) String() string        { return "globaltest" }
func (globalMark) Type() string          { return "decorator" }
func (globalMark) Freeze()               {}
func (globalMark) Truth() starlark.Bool  { return true }
func (globalMark) Hash() (uint32, error) { return 0, nil }

// marks are what the decorators of a function say of it.
type marks struct {
	decorated
	skip, lacks string
	wrong       error              // of a decorator
	profile     string             // what @profile names; empty without it
	by          []*parametrize     // the innermost first
	fixture     *fixture           // that the function is; nil for none
	given       []starlark.Tuple   // arguments that hypothesis draws
	head        *starlark.Function // below the decorators of the file
	examples    int                // cases that hypothesis is asked for; 0: as many as it likes
	marked      []*pytestMark      // the innermost first
}

// define returns what the name of a function that was just defined is bound
// to; the second argument says whether it belongs to a class.
func define(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	b := bodiesOf(t)
	decorators := b.pending
	b.pending = nil
	fn, ok := args[0].(*starlark.Function)
	if !ok {
		return args[0], nil
	}
	var in *class
	if bool(args[1].Truth()) {
		in = b.class
	}
	out, m, err := decoratedBy(t, fn, decorators)
	if err != nil {
		return nil, err
	}
	l, loads := t.Local(loadKey).(*loader)
	if m.fixture != nil && loads {
		l.fixture(*m.fixture, fn, in)
		return fn, nil
	}
	f, ok := out.(*starlark.Function)
	if lost := m.lacks != "" && isTest(shortName(fn)); lost && !ok {
		f, ok = fn, true // to be counted among those that are not supported
	}
	if ok {
		m.fn, m.head = f, fn
		if in != nil && isTest(shortName(fn)) {
			in.methods = append(in.methods, m)
		}
		if loads && (in == nil || in.isTest && in.outer == nil) {
			out = l.enter(t, m, shortName(fn), in)
		}
	}
	if in != nil {
		in.define(shortName(fn), out)
	}
	return out, nil
}

// decoratedBy applies the decorators that are functions, the innermost first,
// and collects what the others say.
func decoratedBy(t *starlark.Thread, fn *starlark.Function, decorators []starlark.Value) (starlark.Value, marks, error) {
	m := marks{decorated: decorated{fn: fn}}
	var out starlark.Value = fn
	for _, d := range slices.Backward(decorators) {
		switch d := d.(type) {
		case *autotest:
			m.auto = d
		case globalMark:
			m.global = true
		case profiled:
			m.profile = string(d)
		case *parametrize:
			m.by = append(m.by, d)
		case *expanded:
			if p, err := d.of(fn); err == nil {
				m.by = append(m.by, p)
			} else {
				m.auto, m.wrong = &autotest{options}, err
			}
		case *drawn:
			var err error
			if m.given, err = d.of(fn); err != nil {
				m.auto, m.wrong = &autotest{options}, err
			}
		case examples:
			m.examples = int(d)
		case *fixture:
			m.fixture = d
		case ignored:
			if d.skip != "" {
				m.skip = d.skip
			}
			if d.mark != nil {
				m.marked = append(m.marked, d.mark)
			}
		case lacked:
			m.lacks = string(d)
		case mistaken:
			m.auto, m.wrong = &autotest{options}, d.err
		case *manager:
			out = d.decorating(out.(starlark.Callable))
		default:
			v, err := starlark.Call(t, d, starlark.Tuple{out}, nil)
			if err != nil {
				return nil, m, err
			}
			out = v
		}
	}
	if m.lacks != "" && m.auto == nil {
		return lackedFunction(fn, m.lacks), m, nil
	}
	return out, m, nil
}

// lackedFunction is a function whose decorator test files do not have.
func lackedFunction(fn *starlark.Function, why string) starlark.Value {
	return starlark.NewBuiltin(fn.Name(), func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
		return nil, lack("%s", why)
	})
}

// signature is the function whose parameters a decorated one has: one that hands on all of
// its arguments has those of the one that it is around.
func signature(fn, head *starlark.Function) *starlark.Function {
	if head != nil && (fn.HasVarargs() || fn.HasKwargs()) {
		return head
	}
	return fn
}

func (m *marks) signature() *starlark.Function { return signature(m.fn, m.head) }
func (t *Test) signature() *starlark.Function  { return signature(t.fn, t.head) }

// handed reports whether a decorator of the test's may give it arguments: a TestCase has no
// fixtures that would.
func (t *Test) handed() bool { return t.class != nil && t.class.unittest && t.fn != t.signature() }

// shortName is a function's name within its class.
func shortName(fn *starlark.Function) string {
	return fn.Name()[strings.LastIndexByte(fn.Name(), '.')+1:]
}

// enter registers a function of the module or of a test class.
func (l *loader) enter(t *starlark.Thread, m marks, name string, in *class) starlark.Value {
	l.redefine(t, l.testName(name, in), name)
	if in != nil {
		m.by = append(slices.Clip(m.by), in.by...)
	}
	var out starlark.Value = m.fn
	auto := m.auto != nil || m.global
	called := !isTest(name) || m.by == nil && m.given == nil && m.lacks == "" && required(m.signature())-len(l.fixtures.of(m.signature())) > 1 // by other tests
	if auto && (in == nil || called) {
		out = &m.decorated
		l.wrapped[name] = true
	}
	for _, chosen := range l.test(name, &m, in).chosen() {
		for _, test := range parametrized(chosen, m.by) {
			l.take(test, &m, called)
		}
	}
	return out
}

// forget takes the tests of a class out.
func (l *loader) forget(c *class) {
	of := func(t *Test) bool { return t.class == c }
	l.file.tests = slices.DeleteFunc(l.file.tests, of)
	l.shared = slices.DeleteFunc(l.shared, of)
	l.plain = slices.DeleteFunc(l.plain, func(u undecorated) bool { return of(u.test) })
}

// inherit registers the tests that a class has of its bases.
func (l *loader) inherit(t *starlark.Thread, c *class) {
	seen := map[string]bool{}
	for i, k := range c.order {
		for _, m := range k.methods {
			name := shortName(m.head)
			if _, hidden := c.attrs[name]; i > 0 && !seen[name] && !hidden {
				l.enter(t, m, name, c)
			}
			seen[name] = true
		}
	}
}

// take registers a test; called says that other tests call it.
func (l *loader) take(test *Test, m *marks, called bool) {
	switch {
	case m.profile != "":
		test.Profile, test.Skip = m.profile, skipProfile
		l.include(test)
	case called:
		if !isTest(shortName(m.head)) {
			return
		}
		if m.auto != nil || m.global {
			l.shared = append(l.shared, test)
		} else {
			l.plain = append(l.plain, undecorated{m.head, test})
		}
	case m.auto == nil:
		l.plain = append(l.plain, undecorated{m.head, test})
	default:
		l.include(test)
	}
}

// redefine notes that a function or class of the full name has that of an
// earlier one, whose place it takes.
func (l *loader) redefine(t *starlark.Thread, full, name string) {
	if line, ok := l.lines[full]; ok {
		l.note(t, "%s takes the place of the one at line %d", name, line)
	}
	replaced := func(n string) bool {
		return n == full || strings.HasPrefix(n, full+"::") || strings.HasPrefix(n, full+"[")
	}
	maps.DeleteFunc(l.lines, func(n string, _ int) bool { return replaced(n) })
	l.lines[full] = int(l.file.out.source(l.file.top(t)).line)
	l.file.tests = slices.DeleteFunc(l.file.tests, func(t *Test) bool { return replaced(t.Name) })
	l.shared = slices.DeleteFunc(l.shared, func(t *Test) bool { return replaced(t.Name) })
	l.plain = slices.DeleteFunc(l.plain, func(u undecorated) bool { return replaced(u.test.Name) })
	if full == l.testName(name, nil) {
		delete(l.wrapped, name)
	}
}

// testName is the full name of a test of the module or of a class.
func (l *loader) testName(name string, in *class) string {
	if in != nil {
		name = in.name + "::" + name
	}
	return l.file.Name + "::" + name
}

func (l *loader) test(name string, m *marks, in *class) *Test {
	f := l.file
	test := &Test{
		Name: l.testName(name, in), File: f.Name, Line: int(m.head.Position().Line), Options: m.options(), Skip: m.skip,
		file: f, fn: m.fn, head: m.head, class: in, fixtures: l.fixtures, global: m.global, lacks: m.lacks, wrong: m.wrong,
		given: slices.Clone(m.given), marked: slices.Clone(m.marked),
	}
	if m.given != nil {
		test.examples = cmp.Or(m.examples, options.N)
	}
	if in != nil {
		test.marked = append(test.marked, in.marked...)
		if test.Skip == "" {
			test.Skip = in.skip
		}
	}
	if m.global && strings.HasPrefix(test.Skip, severalDevices) { // ranks are no devices
		test.Skip = ""
	}
	return test
}

// include adds a test to the file's.
func (l *loader) include(test *Test) {
	if fn := test.signature(); test.wrong == nil && test.lacks == "" && !test.handed() && (required(fn)-len(test.given)-len(test.fixtures.of(fn)) > 1 || test.class != nil && fn.NumParams() == 0) {
		test.wrong = &positioned{point{int32(test.Line), 1}, fmt.Errorf("%s must have one parameter, the test case, not %d", shortName(fn), fn.NumParams())}
	}
	l.file.tests = append(l.file.tests, test)
}

// required counts the parameters without default.
func required(fn *starlark.Function) int {
	n := 0
	for i := range fn.NumParams() {
		if fn.ParamDefault(i) == nil {
			n++
		}
	}
	if fn.HasVarargs() {
		n--
	}
	if fn.HasKwargs() {
		n--
	}
	return n
}

// severalDevices begins why a test is skipped that OneFlow runs on several devices.
const severalDevices = "it needs several devices: "

// callForeign gives the decorators of unittest, and pytest, their meaning.
func callForeign(t *starlark.Thread, f foreign, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if strings.HasPrefix(string(f), torchTesting) {
		if v := callTorchTesting(string(f)); v != nil {
			return v, nil
		}
	}
	if strings.HasPrefix(string(f), "pytest.") {
		if v, err := callPytest(t, f, args, kwargs); v != nil || err != nil {
			return v, err
		}
	}
	name := string(f)
	dir, last := name, name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		dir, last = name[:i], name[i+1:]
	}
	if dir != "unittest" && !strings.HasSuffix(dir, ".unittest") {
		return nil, f.unavailable()
	}
	switch {
	case last == "skip":
		return ignored{name: name, skip: reason(args, 0)}, nil
	case last == "skipIf", last == "skipUnless":
		if len(args) > 0 && bool(args[0].Truth()) == (last == "skipIf") {
			return ignored{name: name, skip: reason(args, 1)}, nil
		}
		return ignored{name: name}, nil
	case last == "expectedFailure":
		return ignored{name: name, skip: "it is expected to fail"}, nil
	case last == "skip_unless_1n1d":
		return ignored{name: name}, nil
	case strings.HasPrefix(last, "skip_unless_"):
		return ignored{name: name, skip: severalDevices + last}, nil
	}
	return ignored{name: name, lost: true}, nil
}

func reason(args starlark.Tuple, i int) string {
	if i < len(args) {
		if s, ok := starlark.AsString(args[i]); ok && s != "" {
			return s
		}
	}
	return "skipped"
}
