package script

import (
	slash "path"
	"strings"

	"go.starlark.net/starlark"
)

// ownFixtures are those of pytest itself that a test without files and a terminal can use.
func ownFixtures() fixtures {
	all := fixtures{}
	for name, names := range map[string]starlark.StringDict{
		"caplog": {"at_level": starlark.NewBuiltin("caplog.at_level", subTest), "set_level": ignoredCall("set_level"), "clear": ignoredCall("clear")},
	} {
		all[name] = &fixture{name: name, of: func(*draw) starlark.Value { return &library{name: name, names: names, lacks: true} }}
	}
	all["capsys"] = &fixture{name: "capsys", of: func(d *draw) starlark.Value {
		read := 0
		return &library{name: "capsys", names: starlark.StringDict{"readouterr": builtin("capsys.readouterr", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
			out := d.printed.String()[read:]
			read = d.printed.Len()
			return starlark.Call(d.thread, &namedType{name: "CaptureResult", fields: []string{"out", "err"}}, starlark.Tuple{starlark.String(out), starlark.String("")}, nil)
		})}, lacks: true}
	}}
	all["monkeypatch"] = &fixture{name: "monkeypatch", of: func(d *draw) starlark.Value {
		made, err := starlark.Call(d.thread, stdlibPrelude()["MonkeyPatch"], nil, nil)
		if err != nil {
			return foreign("monkeypatch")
		}
		return made
	}}
	all["request"] = &fixture{name: "request", of: func(d *draw) starlark.Value { return d.request(nil) }}
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
