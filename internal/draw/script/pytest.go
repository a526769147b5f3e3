package script

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// parametrize is what @pytest.mark.parametrize(…) gives: sets of arguments of
// the function that follows, each with its id.
type parametrize struct {
	names []string
	sets  []parameterSet
	// attributes says that the values are those of attributes of the class, as
	// parameterized_class has it.
	attributes bool
	indirect   []string // names of fixtures whose request.param the values are
}

// parameterSet are the values of one test. It is also what pytest.param gives.
type parameterSet struct {
	values starlark.Tuple
	whole  starlark.Value // what subtest was given, which is the value of a single parameter; nil for others
	id     string
	named  bool // the id is its own
	skip   string
}

func (*parametrize) String() string        { return "pytest.mark.parametrize" }
func (*parametrize) Type() string          { return "decorator" }
func (*parametrize) Freeze()               {}
func (*parametrize) Truth() starlark.Bool  { return true }
func (*parametrize) Hash() (uint32, error) { return hashString("pytest.mark.parametrize") }

func (*parameterSet) String() string        { return "pytest.param" }
func (*parameterSet) Type() string          { return "ParameterSet" }
func (p *parameterSet) Freeze()             { p.values.Freeze() }
func (*parameterSet) Truth() starlark.Bool  { return true }
func (*parameterSet) Hash() (uint32, error) { return hashString("pytest.param") }

// callPytest gives pytest's marks, param and raises their meaning; nil for what
// test files do not have.
func callPytest(t *starlark.Thread, f foreign, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	switch name := strings.TrimPrefix(string(f), "pytest."); name {
	case "raises":
		return assertRaises(t, nil, args, kwargs)
	case "warns":
		return expectWarning(t, nil, args, kwargs)
	case "skip":
		return nil, skipsItself(append(args, keyword(kwargs, "reason")...))
	case "importorskip":
		if len(args) == 0 {
			return nil, fmt.Errorf("pytest.importorskip takes the name of a module")
		}
		v := moduleOf(str(args[0]))
		if f, none := v.(foreign); none {
			return nil, skipsItself(starlark.Tuple{starlark.String("could not import " + string(f))})
		}
		return v, nil
	case "approx":
		return starlark.Call(t, inStdlib(name), args, kwargs)
	case "fixture":
		return makeFixture(t, kwargs)
	case "param":
		return makeParam(args, kwargs), nil
	case "mark.parametrize":
		return makeParametrize(t, args, kwargs)
	case "mark.skip":
		return ignored{name: string(f), skip: reason(append(args, keyword(kwargs, "reason")...), 0)}, nil
	case "mark.skipif":
		if len(args) == 0 || !bool(args[0].Truth()) {
			return ignored{name: string(f)}, nil
		}
		return ignored{name: string(f), skip: reason(append(args[:1:1], keyword(kwargs, "reason")...), 1)}, nil
	case "mark.xfail":
		if len(args) > 0 && !bool(args[0].Truth()) {
			return ignored{name: string(f)}, nil
		}
		why := "it is expected to fail"
		if given := keyword(kwargs, "reason"); given != nil {
			why += ": " + reason(given, 0)
		}
		return ignored{name: string(f), skip: why}, nil
	default:
		if mark, ok := strings.CutPrefix(name, "mark."); ok {
			return ignored{name: string(f), mark: &pytestMark{mark, args, kwargs}}, nil
		}
		return nil, nil
	}
}

// skipsItself is the end of a test that skips itself.
func skipsItself(args starlark.Tuple) error {
	return lack("the test skips itself: %s", reason(args, 0))
}

// keyword returns a keyword argument; nothing where it is not given.
func keyword(kwargs []starlark.Tuple, name string) starlark.Tuple {
	for _, kw := range kwargs {
		if kw[0] == starlark.Value(starlark.String(name)) {
			return starlark.Tuple{kw[1]}
		}
	}
	return nil
}

func makeParam(args starlark.Tuple, kwargs []starlark.Tuple) *parameterSet {
	p := &parameterSet{values: args}
	if id := keyword(kwargs, "id"); id != nil {
		p.id, p.named = starlark.AsString(id[0])
	}
	for _, marks := range keyword(kwargs, "marks") {
		list := []starlark.Value{marks}
		if some, several := sequence(marks); several {
			list = some
		}
		for _, m := range list {
			if i, ok := decoratorOf(m).(ignored); ok && i.skip != "" {
				p.skip = i.skip
			}
		}
	}
	return p
}

func makeParametrize(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	args = append(args[:len(args):len(args)], keyword(kwargs, "argnames")...)
	args = append(args, keyword(kwargs, "argvalues")...)
	if len(args) < 2 {
		return nil, fmt.Errorf("pytest.mark.parametrize takes argnames and argvalues")
	}
	p := &parametrize{}
	if s, ok := starlark.AsString(args[0]); ok {
		for name := range strings.SplitSeq(s, ",") {
			p.names = append(p.names, strings.TrimSpace(name))
		}
	} else if list, ok := sequence(args[0]); ok {
		for _, v := range list {
			p.names = append(p.names, str(v))
		}
	}
	for _, v := range keyword(kwargs, "indirect") {
		if list, several := sequence(v); several {
			for _, name := range list {
				p.indirect = append(p.indirect, str(name))
			}
		} else if v.Truth() {
			p.indirect = p.names
		}
	}
	values, err := iterate(t, args[1])
	if err != nil {
		return nil, fmt.Errorf("pytest.mark.parametrize: argvalues: %w", err)
	}
	for i, v := range values {
		set, err := p.set(i, v)
		if err != nil {
			return nil, err
		}
		p.sets = append(p.sets, set)
	}
	if ids := append(args[2:], keyword(kwargs, "ids")...); len(ids) > 0 {
		given, _ := sequence(ids[0])
		if namer, ok := ids[0].(starlark.Callable); ok {
			if err := p.named(t, namer); err != nil {
				return nil, err
			}
		}
		for i := range min(len(given), len(p.sets)) {
			if s, ok := starlark.AsString(given[i]); ok {
				p.sets[i].id = s
			}
		}
	}
	return p, nil
}

// named gives sets the ids that a function has for their values, where it has one.
func (p *parametrize) named(t *starlark.Thread, namer starlark.Callable) error {
	for i := range p.sets {
		if p.sets[i].named {
			continue
		}
		var ids []string
		for k, v := range p.sets[i].values {
			id, err := starlark.Call(t, namer, starlark.Tuple{v}, nil)
			if err != nil {
				return err
			}
			if id == starlark.None {
				ids = append(ids, parameterID(p.names[k], i, v))
			} else {
				ids = append(ids, str(id))
			}
		}
		p.sets[i].id = strings.Join(ids, "-")
	}
	return nil
}

// set reads the i-th of the argvalues. Its id is pytest's.
func (p *parametrize) set(i int, v starlark.Value) (parameterSet, error) {
	set := parameterSet{values: starlark.Tuple{v}}
	given, isParam := v.(*parameterSet)
	switch {
	case isParam:
		if set = *given; set.whole != nil && len(p.names) == 1 {
			set.values = starlark.Tuple{set.whole}
		}
	case len(p.names) != 1:
		set.values, _ = sequence(v)
	}
	if len(set.values) != len(p.names) {
		return set, fmt.Errorf("pytest.mark.parametrize: argvalues[%d] has not %d values: %s", i, len(p.names), strings.Join(p.names, ", "))
	}
	if set.id == "" {
		var ids []string
		for k, v := range set.values {
			ids = append(ids, parameterID(p.names[k], i, v))
		}
		set.id = strings.Join(ids, "-")
	}
	return set, nil
}

func parameterID(name string, i int, v starlark.Value) string {
	switch v := asPath(v).(type) {
	case starlark.String, starlark.Int, starlark.Float, starlark.Bool, starlark.NoneType:
		return str(v)
	case *starlark.Function:
		return shortName(v)
	case path:
		return string(v[strings.LastIndexByte(string(v), '.')+1:])
	}
	return fmt.Sprintf("%s%d", name, i)
}

// mark gives all tests of the file the marks that skip.
func (f *File) mark(v starlark.Value) {
	marks, several := sequence(v)
	if !several && v != nil {
		marks = []starlark.Value{v}
	}
	for _, m := range marks {
		i, ok := decoratorOf(m).(ignored)
		for _, t := range f.tests {
			if ok && i.skip != "" && t.Skip == "" {
				t.Skip = i.skip
			}
		}
	}
}

// parametrized returns the tests that the decorators make of one: all
// combinations, those of the decorator nearest to the function in the outer loop.
func parametrized(test *Test, by []*parametrize) []*Test {
	tests := []*Test{test}
	for _, p := range by {
		var next []*Test
		for _, t := range tests {
			for _, set := range p.sets {
				if p.attributes {
					next = append(next, t.of(p.names, set))
				} else {
					next = append(next, t.with(p, set))
				}
			}
		}
		tests = next
	}
	return tests
}

// with is the test with a set of arguments.
func (t *Test) with(p *parametrize, set parameterSet) *Test {
	one := *t
	one.given = slices.Clone(t.given)
	for i, name := range p.names {
		if slices.Contains(p.indirect, name) {
			one.params = maps.Clone(one.params)
			if one.params == nil {
				one.params = map[string]starlark.Value{}
			}
			one.params[name] = set.values[i]
			continue
		}
		one.given = append(one.given, starlark.Tuple{starlark.String(name), set.values[i]})
		if t.wrong == nil && !t.takes(name) {
			one.wrong = &positioned{point{int32(t.Line), 1}, fmt.Errorf("%s has no argument %q, which pytest.mark.parametrize gives", shortName(t.head), name)}
		}
	}
	one.Name = withID(t.Name, set.id)
	if set.skip != "" {
		one.Skip = set.skip
	}
	return &one
}

// of is the test of a class with a set of attributes.
func (t *Test) of(names []string, set parameterSet) *Test {
	one := *t
	one.attributes = maps.Clone(t.attributes)
	if one.attributes == nil {
		one.attributes = starlark.StringDict{}
	}
	text := ""
	for i, name := range names {
		one.attributes[name] = set.values[i]
		if s, ok := set.values[i].(starlark.String); ok && text == "" {
			text = "_" + unsafeInName.ReplaceAllString(string(s), "_")
		}
	}
	one.Name = strings.Replace(t.Name, "::"+t.class.name+"::", "::"+t.class.name+"_"+set.id+text+"::", 1)
	return &one
}

// unsafeInName is what parameterized makes an underscore in a name.
var unsafeInName = regexp.MustCompile("[^a-zA-Z0-9_]+")

// takes reports whether the test's function has an argument.
func (t *Test) takes(name string) bool {
	for i := range t.signature().NumParams() {
		if p, _ := t.signature().Param(i); p == name {
			return true
		}
	}
	return t.signature().HasKwargs()
}
