package script

import (
	"fmt"
	slash "path"
	"strings"

	"go.starlark.net/starlark"
)

// ownFixtures are those of pytest itself that a test without files and a terminal can use.
func ownFixtures() fixtures {
	all := fixtures{}
	for name, names := range map[string]starlark.StringDict{
		"monkeypatch": {
			"setenv": starlark.NewBuiltin("setenv", setEnvironment), "delenv": starlark.NewBuiltin("delenv", setEnvironment), "chdir": ignoredCall("chdir"), "syspath_prepend": ignoredCall("syspath_prepend"), "undo": ignoredCall("undo"),
			"setattr": builtin("monkeypatch.setattr", patchAttr),
		},
		"caplog": {"at_level": starlark.NewBuiltin("caplog.at_level", subTest), "set_level": ignoredCall("set_level"), "clear": ignoredCall("clear")},
	} {
		all[name] = &fixture{name: name, of: func(*draw) starlark.Value { return &library{name: name, names: names, lacks: true} }}
	}
	all["capsys"] = &fixture{name: "capsys", of: func(d *draw) starlark.Value {
		read := 0
		return &library{name: "capsys", names: starlark.StringDict{"readouterr": builtin("capsys.readouterr", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
			out := d.printed.String()[read:]
			read = d.printed.Len()
			return &library{name: "CaptureResult", names: starlark.StringDict{"out": starlark.String(out), "err": starlark.String("")}}, nil
		})}, lacks: true}
	}}
	for _, name := range []string{"tmp_path", "tmpdir"} {
		all[name] = &fixture{name: name, of: func(d *draw) starlark.Value {
			made, err := starlark.Call(d.thread, stdlibPrelude()["Path"], starlark.Tuple{starlark.String("/tmp/" + name)}, nil)
			if err != nil {
				return foreign(name)
			}
			return made
		}}
	}
	return all
}

// patchAttr is monkeypatch.setattr of an object of the test's own.
func patchAttr(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if o, ok := append(a, nil)[0].(*object); !ok || o.frozen || len(a) != 3 {
		return nil, lack("monkeypatch.setattr is not supported in test files but of an object and a name")
	}
	return setAttr(t, a)
}

// request is what a fixture is told of who asks for it.
func (d *draw) request(f *fixture) starlark.Value {
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
	return &library{name: "request", names: starlark.StringDict{param: d.test.params[f.name], "config": config}, lacks: true}
}

// optionName is the name under which pytest keeps an option.
func optionName(flag string) string {
	return strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_")
}

// option is the default of an option that a conftest.py beside the file, or above, adds to
// pytest's; nil where none does.
func (n *neighbours) option(t *starlark.Thread, from, name string) (starlark.Value, error) {
	if n == nil || n.read == nil {
		return nil, nil
	}
	dir := slash.Dir(from)
	for range foldersAbove + 1 {
		if found := n.file(slash.Join(dir, conftest)); found != nil {
			if add, ok := found.names["pytest_addoption"].(starlark.Callable); ok {
				options := starlark.StringDict{}
				if _, err := starlark.Call(t, add, starlark.Tuple{parserOf(options)}, nil); err != nil || options[name] != nil {
					return options[name], err
				}
			}
		}
		dir = slash.Join(dir, "..")
	}
	return nil, nil
}

// parserOf is what pytest_addoption is given: it keeps the defaults.
func parserOf(options starlark.StringDict) starlark.Value {
	parser := &library{name: "parser", lacks: true}
	add := starlark.NewBuiltin("addoption", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var v starlark.Value = starlark.None
		for _, action := range keyword(kwargs, "action") {
			switch action {
			case starlark.String("store_true"):
				v = starlark.False
			case starlark.String("store_false"):
				v = starlark.True
			}
		}
		for _, given := range keyword(kwargs, "default") {
			v = given
		}
		for _, flag := range append(args[:len(args):len(args)], keyword(kwargs, "dest")...) {
			options[optionName(str(flag))] = v
		}
		return starlark.None, nil
	})
	group := builtin("getgroup", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return parser, nil })
	parser.names = starlark.StringDict{"addoption": add, "_addoption": add, "addini": ignoredCall("addini"), "getgroup": group}
	return parser
}
