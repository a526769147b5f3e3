package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// fixture is a function with @pytest.fixture: what it returns, or yields, is
// the argument of its name of the tests that have one.
type fixture struct {
	name    string
	fn      *starlark.Function
	sets    []parameterSet // of params=; nil for none
	autouse bool
	class   *class                       // whose tests alone have it; nil for all
	of      func(d *draw) starlark.Value // what it is, without a function; nil where it has one
}

func (f *fixture) String() string      { return "pytest.fixture" }
func (*fixture) Type() string          { return "decorator" }
func (*fixture) Freeze()               {}
func (*fixture) Truth() starlark.Bool  { return true }
func (*fixture) Hash() (uint32, error) { return 0, nil }

// makeFixture is pytest.fixture(…).
func makeFixture(t *starlark.Thread, kwargs []starlark.Tuple) (starlark.Value, error) {
	f := &fixture{}
	if name := keyword(kwargs, "name"); name != nil {
		f.name, _ = starlark.AsString(name[0])
	}
	if auto := keyword(kwargs, "autouse"); auto != nil {
		f.autouse = bool(auto[0].Truth())
	}
	params := keyword(kwargs, "params")
	if params == nil || params[0] == starlark.None {
		return f, nil
	}
	var ids []starlark.Tuple
	if v := keyword(kwargs, "ids"); v != nil {
		ids = []starlark.Tuple{{starlark.String("ids"), v[0]}}
	}
	v, err := makeParametrize(t, starlark.Tuple{starlark.String(param), params[0]}, ids)
	if err != nil {
		return nil, err
	}
	f.sets = v.(*parametrize).sets
	return f, nil
}

// param is the attribute of request that holds a fixture's parameter, and what
// its ids begin with until the fixture has its name.
const param = "param"

// fixture registers a fixture of the file.
func (l *loader) fixture(f fixture, fn *starlark.Function, in *class) {
	if f.fn, f.class = fn, in; f.name == "" {
		f.name = shortName(fn)
	}
	for i := range f.sets {
		if f.sets[i].id == fmt.Sprint(param, i) {
			f.sets[i].id = fmt.Sprint(f.name, i)
		}
	}
	l.fixtures[f.name] = &f
}

// fixtures are those of a file, by name.
type fixtures map[string]*fixture

// of lists the fixtures that a function asks for by its parameters.
func (fs fixtures) of(fn *starlark.Function) []*fixture {
	var out []*fixture
	for i := range fn.NumParams() {
		name, _ := fn.Param(i)
		if f := fs[name]; f != nil {
			out = append(out, f)
		}
	}
	return out
}

// behind lists fixtures with those that they ask for themselves, each once.
func (fs fixtures) behind(list []*fixture) []*fixture {
	var out []*fixture
	for _, f := range list {
		if !slices.Contains(out, f) {
			out = append(out, f)
			if f.fn == nil {
				continue
			}
			for _, inner := range fs.behind(without(fs.of(f.fn), f)) {
				if !slices.Contains(out, inner) {
					out = append(out, inner)
				}
			}
		}
	}
	return out
}

func without(list []*fixture, f *fixture) []*fixture {
	return slices.DeleteFunc(list, func(other *fixture) bool { return other == f })
}

// used are the fixtures of a test that takes them as arguments, behind those
// that every test of the file has.
func (fs fixtures) used(t *Test) []*fixture {
	var out []*fixture
	for _, name := range slices.Sorted(maps.Keys(fs)) {
		f := fs[name]
		if f.autouse && (f.class == nil || t.class != nil && slices.Contains(t.class.order, f.class)) {
			out = append(out, f)
		}
	}
	for _, m := range t.marked {
		for _, v := range m.args {
			if used := fs[str(v)]; m.name == "usefixtures" && used != nil {
				out = append(out, used)
			}
		}
	}
	return fs.behind(append(out, fs.of(t.signature())...))
}

// chosen are the tests that the params of fixtures make of one, with pytest's ids.
func (t *Test) chosen() []*Test {
	tests := []*Test{t}
	for _, f := range t.fixtures.used(t) {
		if f.sets == nil {
			continue
		}
		var next []*Test
		for _, of := range tests {
			for _, set := range f.sets {
				one := *of
				one.params = maps.Clone(of.params)
				if one.params == nil {
					one.params = map[string]starlark.Value{}
				}
				one.params[f.name] = set.values[0]
				one.Name = withID(of.Name, set.id)
				if set.skip != "" {
					one.Skip = set.skip
				}
				next = append(next, &one)
			}
		}
		tests = next
	}
	return tests
}

// withID adds an id to a test's name: "name[first-second]".
func withID(name, id string) string {
	if open, ok := strings.CutSuffix(name, "]"); ok {
		return open + "-" + id + "]"
	}
	return name + "[" + id + "]"
}

// prepared are the fixtures that a draw has called.
type prepared struct {
	values map[*fixture]starlark.Value
	yields []*iterator // to be gone on with at the end
	// finalizers are functions that fixtures want called at the end.
	finalizers []starlark.Value
}

// arguments calls the test's fixtures and returns its arguments.
func (d *draw) arguments() ([]starlark.Tuple, error) {
	t := d.test
	d.prepared.values = map[*fixture]starlark.Value{}
	for _, f := range t.fixtures.used(t) {
		if _, err := d.prepare(f, 0); err != nil {
			return nil, err
		}
	}
	args := slices.Clone(t.given)
	for i, kw := range args {
		v, err := drawnOf(d.thread, kw[1])
		if err != nil {
			return nil, err
		}
		args[i] = starlark.Tuple{kw[0], v}
	}
	for _, f := range t.fixtures.of(t.signature()) {
		if !slices.ContainsFunc(args, func(kw starlark.Tuple) bool { return kw[0] == starlark.Value(starlark.String(f.name)) }) {
			args = append(args, starlark.Tuple{starlark.String(f.name), d.prepared.values[f]})
		}
	}
	return args, nil
}

// prepare returns the value of a fixture, which is called once a case.
func (d *draw) prepare(f *fixture, depth int) (starlark.Value, error) {
	if v, ok := d.prepared.values[f]; ok {
		return v, nil
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("the fixture %s asks for itself", f.name)
	}
	if f.of != nil {
		d.prepared.values[f] = f.of(d)
		return d.prepared.values[f], nil
	}
	var kwargs []starlark.Tuple
	for i := range f.fn.NumParams() {
		name, _ := f.fn.Param(i)
		var v starlark.Value
		var err error
		given := slices.IndexFunc(d.test.given, func(kw starlark.Tuple) bool { return kw[0] == starlark.Value(starlark.String(name)) })
		switch inner := d.test.fixtures[name]; {
		case given >= 0: // in the place of the fixture
			v = d.test.given[given][1]
		case name == "self" || name == "cls":
			v = testCase{d.test.class, d.fields}
		case name == "request":
			v = d.request(f)
		case inner == nil && f.fn.ParamDefault(i) != nil:
			continue
		case inner == nil:
			return nil, lack("the fixture %s asks for %s, which no fixture of the file gives", f.name, name)
		default:
			if v, err = d.prepare(inner, depth+1); err != nil {
				return nil, err
			}
		}
		kwargs = append(kwargs, starlark.Tuple{starlark.String(name), v})
	}
	v, err := starlark.Call(d.thread, f.fn, nil, kwargs)
	if i, ok := v.(*iterator); ok && err == nil && i.more != nil {
		d.prepared.yields = append(d.prepared.yields, i)
		v, err = i.next()
	}
	if err == nil && v == nil {
		err = fmt.Errorf("the fixture %s did not yield a value", f.name)
	}
	d.prepared.values[f] = v
	return v, err
}

// tearDown calls finalizers, and goes on with the fixtures that yielded, the last first.
func (d *draw) tearDown() error {
	for _, f := range slices.Backward(d.prepared.finalizers) {
		if _, err := starlark.Call(d.thread, f, nil, nil); err != nil {
			return err
		}
	}
	for _, i := range slices.Backward(d.prepared.yields) {
		if _, err := i.next(); err != nil {
			return err
		}
	}
	return nil
}
