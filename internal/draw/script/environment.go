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
var environmentGet = builtin("getenv", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("getenv takes a name and a default")
	}
	v, found, err := environment{}.Get(a[0])
	switch {
	case found || err != nil:
		return v, err
	case len(a) == 2:
		return a[1], nil
	}
	return starlark.None, nil
})

// environment is os.environ.
type environment struct{}

func (environment) String() string        { return "environ" }
func (environment) Type() string          { return "environ" }
func (environment) Freeze()               {}
func (environment) Truth() starlark.Bool  { return true }
func (environment) Hash() (uint32, error) { return 0, nil }
func (environment) AttrNames() []string   { return []string{"get", "pop", "setdefault"} }

// Attr returns get and what reads as it does.
func (environment) Attr(name string) (starlark.Value, error) {
	switch name {
	case "get", "pop", "setdefault":
		return environmentGet, nil
	case "update":
		return ignoredCall(name), nil
	}
	return nil, nil
}

// Get is os.environ[k].
func (environment) Get(k starlark.Value) (starlark.Value, bool, error) {
	name, ok := starlark.AsString(k)
	if !ok {
		return nil, false, fmt.Errorf("str expected, not %s", k.Type())
	}
	v, ok := switches[name]
	return starlark.String(v), ok, nil
}

// SetKey has no effect.
func (environment) SetKey(_, _ starlark.Value) error { return nil }

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
