package script

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// request is what a fixture is told of who asks for it.
func (d *draw) request(f *fixture) starlark.Value {
	t := d.test
	getoption := starlark.NewBuiltin("getoption", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		given := arguments{b.Name(), []string{"name", "default"}, make([]starlark.Value, 2)}
		if err := given.bind(args, kwargs); err != nil {
			return nil, err
		}
		if given.values[0] == nil {
			return nil, fmt.Errorf("getoption takes the name of an option")
		}
		switch v, err := d.test.file.near.option(t, d.test.File, optionName(str(given.values[0]))); {
		case v != nil || err != nil:
			return v, err
		case given.values[1] != nil:
			return given.values[1], nil
		}
		return nil, lack("no conftest.py has an option %s", str(given.values[0]))
	})
	config := &library{name: "request.config", names: starlark.StringDict{"getoption": getoption, "getvalue": getoption}, lacks: true}
	names := starlark.StringDict{
		"config": config, "node": t.node(), "function": t.signature(), "cls": starlark.None, "fixturename": starlark.None,
		"addfinalizer": builtin("request.addfinalizer", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			d.prepared.finalizers = append(d.prepared.finalizers, a...)
			return starlark.None, nil
		}),
		"getfixturevalue": builtin("request.getfixturevalue", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) == 1 {
				if asked := t.fixtures[str(a[0])]; asked != nil {
					return d.prepare(asked, 0)
				}
			}
			return nil, lack("request.getfixturevalue of what no fixture of the file gives")
		}),
	}
	if t.class != nil {
		names["cls"], names["instance"] = t.class, testCase{t.class, d.fields}
	}
	if f != nil {
		names["fixturename"] = starlark.String(f.name)
		if v := t.params[f.name]; v != nil {
			names[param] = v
		}
	}
	return &library{name: "request", names: names, lacks: true}
}

// node is request.node: the test by its name and marks.
func (t *Test) node() starlark.Value {
	full := t.Name[strings.LastIndex(t.Name, "::")+len("::"):]
	original, _, _ := strings.Cut(full, "[")
	find := func(name string) starlark.Value {
		for _, m := range t.marked {
			if m.name == name {
				return m
			}
		}
		return starlark.None
	}
	return &library{name: "request.node", names: starlark.StringDict{
		"name": starlark.String(full), "originalname": starlark.String(original), "nodeid": starlark.String(t.Name),
		"get_closest_marker": builtin("get_closest_marker", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			if len(a) == 0 {
				return nil, fmt.Errorf("get_closest_marker takes the name of a mark")
			}
			if m := find(str(a[0])); m != starlark.Value(starlark.None) || len(a) == 1 {
				return m, nil
			}
			return a[1], nil
		}),
		"iter_markers": starlark.NewBuiltin("iter_markers", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			var all starlark.Tuple
			for _, m := range t.marked {
				if name := append(args[:len(args):len(args)], keyword(kwargs, "name")...); len(name) == 0 || str(name[0]) == m.name {
					all = append(all, m)
				}
			}
			return all, nil
		}),
	}, lacks: true}
}

// pytestMark is a mark that a test has: @pytest.mark.NAME(…).
type pytestMark struct {
	name   string
	args   starlark.Tuple
	kwargs []starlark.Tuple
}

func (m *pytestMark) String() string        { return "Mark(name=" + m.name + ")" }
func (*pytestMark) Type() string            { return "Mark" }
func (m *pytestMark) Freeze()               { m.args.Freeze() }
func (*pytestMark) Truth() starlark.Bool    { return true }
func (m *pytestMark) Hash() (uint32, error) { return hashString(m.name) }
func (*pytestMark) AttrNames() []string     { return []string{"args", "kwargs", "name"} }

// Attr returns the name of the mark, or what it was given.
func (m *pytestMark) Attr(name string) (starlark.Value, error) {
	switch name {
	case "name":
		return starlark.String(m.name), nil
	case "args":
		return m.args, nil
	case "kwargs":
		d := starlark.NewDict(len(m.kwargs))
		for _, kw := range m.kwargs {
			if err := d.SetKey(kw[0], kw[1]); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return nil, nil
}
