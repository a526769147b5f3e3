package script

import (
	"fmt"
	"maps"
	"strings"

	"go.starlark.net/starlark"
)

// loadKey is the thread-local name of the loader.
const loadKey = "plumb.load"

// loader collects the tests while a module body runs.
type loader struct {
	file    *File
	pending []starlark.Value // decorators
	class   *class
	plain   []undecorated
	wrapped map[string]bool // names of decorated functions outside of classes
	shared  []*Test         // of decorated functions with parameters, for other tests to call
}

// class is a test class.
type class struct {
	name    string
	isTest  bool
	skip    string
	members map[string]*starlark.Function
	values  map[string]starlark.Value // what its body assigns
	outer   *class
	lacks   string // why it cannot be used
	static  map[string]bool
}

func (c *class) String() string        { return c.name }
func (c *class) Type() string          { return "class" }
func (c *class) Freeze()               {}
func (c *class) Truth() starlark.Bool  { return true }
func (c *class) Hash() (uint32, error) { return hashString(c.name) }

func (c *class) Name() string        { return c.name }
func (c *class) AttrNames() []string { return nil }

// CallInternal is what only test classes' runners do.
func (c *class) CallInternal(*starlark.Thread, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	if c.lacks != "" {
		return nil, lack("%s", c.lacks)
	}
	return nil, lack("making an instance of %s is not supported in test files", c.name)
}

// Attr returns a function or value of the class.
func (c *class) Attr(name string) (starlark.Value, error) {
	if fn, ok := c.members[name]; ok {
		return fn, nil
	}
	if v, ok := c.values[name]; ok {
		return v, nil
	}
	return nil, lack("class %s has no attribute %s", c.name, name)
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
		if fn, ok := t.class.members[name]; ok {
			if t.class.static[name] {
				return fn, nil
			}
			return starlark.NewBuiltin(name, func(th *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
				return starlark.Call(th, fn, append(starlark.Tuple{t}, args...), kwargs)
			}), nil
		}
		if v, ok := t.class.values[name]; ok {
			return v, nil
		}
	}
	switch name {
	case "assertRaises", "assertRaisesRegex":
		return starlark.NewBuiltin(name, assertRaises), nil
	case "subTest":
		return starlark.NewBuiltin(name, subTest), nil
	case "setUp", "tearDown", "setUpClass":
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

func decorate(t *starlark.Thread, l *loader, args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("want one decorator")
	}
	v := args[0]
	switch d := v.(type) {
	case *autotest, profiled:
	case *starlark.Builtin:
		switch d.Name() {
		case "autotest":
			v = &autotest{options}
		case "staticmethod":
			v = &static{}
		case "globaltest":
			v = globalMark{}
		default:
			v = lacked(fmt.Sprintf("the decorator %s is not supported in test files", d.Name()))
		}
	case ignored:
		if d.skip == "" {
			l.note(t, "@%s has no effect", d.name)
		}
	case foreign:
		if name, err := callForeign(d, nil); err == nil {
			return decorate(t, l, starlark.Tuple{name})
		}
		v = lacked(d.unavailable().Error())
	case *static:
	default:
		v = lacked(fmt.Sprintf("the decorator %s is not supported in test files", v))
	}
	l.pending = append(l.pending, v)
	return starlark.None, nil
}

// static is the decorator staticmethod.
type static struct{}

func (*static) String() string        { return "staticmethod" }
func (*static) Type() string          { return "decorator" }
func (*static) Freeze()               {}
func (*static) Truth() starlark.Bool  { return true }
func (*static) Hash() (uint32, error) { return 0, nil }

// lacked is a decorator that test files do not have, and why.
type lacked string

func (l lacked) String() string        { return string(l) }
func (l lacked) Type() string          { return "decorator" }
func (l lacked) Freeze()               {}
func (l lacked) Truth() starlark.Bool  { return true }
func (l lacked) Hash() (uint32, error) { return 0, nil }

// beginClass is the condition of the if statement that a class became.
func beginClass(_ *starlark.Thread, l *loader, args starlark.Tuple) (starlark.Value, error) {
	name := string(args[0].(starlark.String))
	c := &class{name: name, isTest: strings.HasPrefix(name, "Test"), members: map[string]*starlark.Function{}, values: map[string]starlark.Value{}, static: map[string]bool{}, outer: l.class}
	for _, base := range args[1:] {
		switch b := base.(type) {
		case foreign:
			c.isTest = c.isTest || strings.HasSuffix(string(b), ".TestCase") || b == "TestCase"
		case *class:
			c.isTest = c.isTest || b.isTest
			maps.Copy(c.members, b.members)
			maps.Copy(c.values, b.values)
			maps.Copy(c.static, b.static)
		}
	}
	if !c.isTest || c.outer != nil {
		c.isTest = false
		c.lacks = fmt.Sprintf("class %s is not supported: only test classes, class %s(unittest.TestCase), are in test files", name, name)
	}
	for _, d := range l.pending {
		switch d := d.(type) {
		case ignored:
			c.skip = d.skip
		case *autotest:
			return nil, fmt.Errorf("@autotest belongs to a test function, not to class %s", name)
		}
	}
	l.pending, l.class = nil, c
	return starlark.True, nil
}

// endClass returns the class for its name to be bound to.
func endClass(_ *starlark.Thread, l *loader, _ starlark.Tuple) (starlark.Value, error) {
	c := l.class
	l.class = c.outer
	return c, nil
}

// globalMark is what @globaltest gives.
type globalMark struct{}

func (globalMark) String() string        { return "globaltest" }
func (globalMark) Type() string          { return "decorator" }
func (globalMark) Freeze()               {}
func (globalMark) Truth() starlark.Bool  { return true }
func (globalMark) Hash() (uint32, error) { return 0, nil }

// define registers a function that was just defined, and returns what its name
// is bound to.
func define(t *starlark.Thread, l *loader, args starlark.Tuple) (starlark.Value, error) {
	fn, ok := args[0].(*starlark.Function)
	if !ok {
		return args[0], nil
	}
	decorators := l.pending
	l.pending = nil
	if l.class != nil {
		l.class.members[fn.Name()] = fn
	}
	wrapped := &decorated{fn: fn}
	skip, lacks := "", ""
	profile := false
	for _, d := range decorators {
		switch d := d.(type) {
		case *autotest:
			wrapped.auto = d
		case globalMark:
			wrapped.global = true
		case profiled:
			profile = true
		case ignored:
			if d.skip != "" {
				skip = d.skip
			}
		case *static:
			if l.class != nil {
				l.class.static[fn.Name()] = true
			}
		case lacked:
			lacks = string(d)
		}
	}
	var out starlark.Value = fn
	if l.class != nil && !l.class.isTest {
		return out, nil
	}
	if l.class == nil && (wrapped.auto != nil || wrapped.global) {
		out = wrapped
		l.wrapped[fn.Name()] = true
	}
	test := l.test(fn, wrapped, skip)
	test.lacks = lacks
	switch {
	case profile:
		test.Skip = skipProfile
		return out, l.include(test)
	case !isTest(fn.Name()) || l.class == nil && required(fn) > 1 && (wrapped.auto != nil || wrapped.global):
		if isTest(fn.Name()) {
			l.shared = append(l.shared, test)
		}
		return out, nil
	case wrapped.auto == nil:
		l.plain = append(l.plain, undecorated{fn, test, int(l.file.out.source(l.file.top(t)).line)})
		return out, nil
	}
	return out, l.include(test)
}

func (l *loader) test(fn *starlark.Function, d *decorated, skip string) *Test {
	f := l.file
	test := &Test{
		Name: f.Name + "::" + fn.Name(), File: f.Name, Line: int(fn.Position().Line), Options: d.options(), Skip: skip,
		file: f, fn: fn, class: l.class, global: d.global,
	}
	if l.class != nil {
		test.Name = f.Name + "::" + l.class.name + "::" + fn.Name()
		if test.Skip == "" {
			test.Skip = l.class.skip
		}
	}
	return test
}

// include adds a test to the file's.
func (l *loader) include(test *Test) error {
	fn := test.fn
	if required(fn) > 1 || test.class != nil && fn.NumParams() == 0 {
		return fmt.Errorf("%s must have one parameter, the test case, not %d", fn.Name(), fn.NumParams())
	}
	for _, other := range l.file.tests {
		if other.Name == test.Name {
			return fmt.Errorf("%s is defined twice; the first is at line %d", fn.Name(), other.Line)
		}
	}
	l.file.tests = append(l.file.tests, test)
	return nil
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

// callForeign gives the decorators of unittest their meaning.
func callForeign(f foreign, args starlark.Tuple) (starlark.Value, error) {
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
		return ignored{name, reason(args, 0)}, nil
	case last == "skipIf", last == "skipUnless":
		if len(args) > 0 && bool(args[0].Truth()) == (last == "skipIf") {
			return ignored{name, reason(args, 1)}, nil
		}
		return ignored{name, ""}, nil
	case strings.HasPrefix(last, "skip_unless_") && last != "skip_unless_1n1d":
		return ignored{name, "it needs several devices: " + last}, nil
	}
	return ignored{name, ""}, nil
}

func reason(args starlark.Tuple, i int) string {
	if i < len(args) {
		if s, ok := starlark.AsString(args[i]); ok && s != "" {
			return s
		}
	}
	return "skipped"
}
