package script

import (
	"fmt"

	"go.starlark.net/starlark"
)

// switches is the environment that test files see: what makes most tests of a
// suite run, on one machine with one rank. Nothing of the real one is in it.
var switches = map[string]string{
	"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
	"ONEFLOW_TEST_CACHE_DIR": "data-test", "ONEFLOW_TEST_DEVICE_NUM": "1", "ONEFLOW_TEST_NODE_NUM": "1", "ONEFLOW_TEST_TENSOR_SIZE_LIMIT_MB": "32",
}

// environmentGet is os.getenv and os.environ.get.
var environmentGet = builtin("getenv", func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("getenv takes a name and a default")
	}
	v, found, err := environmentOf(t).Get(a[0])
	switch {
	case found || err != nil:
		return v, err
	case len(a) == 2:
		return a[1], nil
	}
	return starlark.None, nil
})

// environment is os.environ: what a draw has set, and the switches.
type environment struct{ d *draw }

// environmentOf is that of a thread, which a file that is being loaded cannot set.
func environmentOf(t *starlark.Thread) environment {
	d, _ := t.Local(drawKey).(*draw)
	return environment{d}
}

func (environment) String() string        { return "environ" }
func (environment) Type() string          { return "environ" }
func (environment) Freeze()               {}
func (environment) Truth() starlark.Bool  { return true }
func (environment) Hash() (uint32, error) { return 0, nil }
func (environment) AttrNames() []string   { return []string{"get", "pop", "setdefault", "update"} }

// Attr returns a method.
func (environment) Attr(name string) (starlark.Value, error) {
	switch name {
	case "get":
		return environmentGet, nil
	case "setdefault":
		return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			v, err := environmentGet.CallInternal(t, a, nil)
			if err == nil && v != starlark.None {
				err = environmentOf(t).SetKey(a[0], v)
			}
			return v, err
		}), nil
	case "pop":
		return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			v, err := environmentGet.CallInternal(t, a, nil)
			if err == nil {
				err = environmentOf(t).SetKey(a[0], starlark.None)
			}
			return v, err
		}), nil
	case "update":
		return ofOne(name, func(t *starlark.Thread, with starlark.Value) (starlark.Value, error) {
			dict, ok := with.(*starlark.Dict)
			if !ok {
				return nil, fmt.Errorf("update takes a dict, not %s", article(with.Type()))
			}
			for _, item := range dict.Items() {
				if err := environmentOf(t).SetKey(item[0], item[1]); err != nil {
					return nil, err
				}
			}
			return starlark.None, nil
		}), nil
	}
	return nil, nil
}

// Get is os.environ[k].
func (e environment) Get(k starlark.Value) (starlark.Value, bool, error) {
	name, ok := starlark.AsString(k)
	if !ok {
		return nil, false, fmt.Errorf("str expected, not %s", k.Type())
	}
	if e.d != nil {
		if v, set := e.d.environ[name]; set {
			return v, v != starlark.None, nil
		}
	}
	v, ok := switches[name]
	return starlark.String(v), ok, nil
}

// SetKey is os.environ[k] = v; None for what is no more there. Outside of tests it has no effect.
func (e environment) SetKey(k, v starlark.Value) error {
	if e.d == nil {
		return nil
	}
	if e.d.environ == nil {
		e.d.environ = map[string]starlark.Value{}
	}
	e.d.environ[str(k)] = v
	return nil
}

// osPath is os.path, of which test files have what computes with names alone.
var osPath = &library{name: "os.path", names: starlark.StringDict{
	"join":   builtin("os.path.join", joinPath),
	"exists": builtin("os.path.exists", fileExists), "isfile": builtin("os.path.isfile", fileExists),
}}

func joinPath(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	out := ""
	for _, part := range a {
		s, err := fileName(t, part)
		switch {
		case err != nil:
			return nil, err
		case out == "" || len(s) > 0 && s[0] == '/':
			out = s
		case out[len(out)-1] == '/':
			out += s
		default:
			out += "/" + s
		}
	}
	return starlark.String(out), nil
}
