package script

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"
)

// What a class calls of its base by the base's name, with the instance as first argument:
// nn.Linear.__init__(self, 3, 4), nn.Linear.forward(self, x), unittest.TestCase.setUp(self).

// ourClass is the class of our files of Python that a class of torch or of Python is in test
// files; others are themselves.
func ourClass(v starlark.Value) starlark.Value {
	if v == pyTypes["dict"] {
		return dictBase()
	}
	if p, ok := asPath(v).(path); ok {
		if c, ok := p.inPrelude().(*class); ok {
			return c
		}
	}
	return v
}

// initOf is the constructor of a base that no file defines; nil for what is no such base.
func initOf(base starlark.Value) starlark.Value {
	switch b := ourClass(base).(type) {
	case *class:
		if init := b.lookup("__init__"); init != nil {
			return init
		}
	case foreign:
		if foreignBases[b] == nil {
			return nil
		}
	default:
		if inheritedFrom(base) == nil {
			return nil
		}
	}
	return starlark.NewBuiltin("__init__", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if len(args) > 0 {
			if o, ok := args[0].(*object); ok {
				return starlark.None, o.class.inherited.init(t, o, args[1:], kwargs)
			}
		}
		return nil, fmt.Errorf("%s.__init__ takes the instance first", str(base))
	})
}

// ofModule is nn.Linear.forward(m, x) and the like; nil for what is no method of a module.
func (p path) ofModule(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	i := strings.LastIndexByte(string(p), '.')
	if i < 0 || len(args) == 0 || !isModule(args[0]) {
		return nil, nil
	}
	if _, ok := inheritedFromTorch(p[:i]).(moduleClass); !ok {
		return nil, nil
	}
	name := string(p[i+1:])
	var method starlark.Value
	var err error
	switch m := args[0].(type) {
	case *object:
		method, err = m.class.inherited.attr(m, name)
	case *symbol:
		method = m
		if name != "forward" && name != "__call__" {
			method, err = m.Attr(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if method == nil {
		return nil, fmt.Errorf("%s has no method %s", p[:i], name)
	}
	return starlark.Call(t, method, args[1:], kwargs)
}

// ofTestCase is unittest.TestCase.setUp(self) and the like; nil for what is none of its methods.
func (f foreign) ofTestCase(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	i := strings.LastIndexByte(string(f), '.')
	if i < 0 || !strings.HasSuffix(string(f[:i]), "TestCase") || len(args) == 0 {
		return nil, nil
	}
	switch name := string(f[i+1:]); name {
	case "__init__", "setUp", "tearDown", "setUpClass", "tearDownClass":
		return starlark.None, nil
	default:
		self, ok := args[0].(testCase)
		if !ok {
			return nil, nil
		}
		method, err := self.Attr(name)
		if err != nil || method == nil {
			return nil, err
		}
		return starlark.Call(t, method, args[1:], kwargs)
	}
}
