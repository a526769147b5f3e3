package script

import "go.starlark.net/starlark"

// modulesSetUp are functions of a file that are called before each test, the last of those
// outside of classes, and may change names of the file.
var modulesSetUp = []string{"setUpModule", "setup_module", "setup_function"}

// setUp prepares the call of the test: the values that the file makes outside of it are
// the draw's own, and what its module and its class have to be called before it has run.
func (d *draw) setUp() error {
	if d.test.file.again {
		now, err := d.test.file.rerun(d, d.test)
		if err != nil {
			return err
		}
		d.test = now
	}
	t := d.test
	globals := t.signature().Globals()
	for _, name := range modulesSetUp[:2] {
		if err := d.before(globals[name], nil, starlark.None); err != nil {
			return err
		}
	}
	if t.class == nil {
		return d.before(globals[modulesSetUp[2]], nil, t.signature())
	}
	if t.signature().NumParams() == 0 {
		return nil
	}
	for _, name := range []string{"setUpClass", "setup_class", "setUp", "setup_method"} {
		fn := t.class.lookup(name)
		if m, ok := fn.(*wrappedMethod); ok { // of the class: what it assigns is the case's own
			fn = m.Callable
		}
		if err := d.before(fn, t.receiver(d.fields), t.signature()); err != nil {
			return err
		}
	}
	return nil
}

// before calls a function that is called before each test; one that takes an argument more
// is given what it is called for.
func (d *draw) before(v starlark.Value, args starlark.Tuple, of starlark.Value) error {
	fn, ok := v.(starlark.Callable)
	if !ok {
		return nil
	}
	if f, ok := v.(*starlark.Function); ok && f.NumParams() > len(args) && f.ParamDefault(len(args)) == nil {
		args = append(args[:len(args):len(args)], of)
	}
	_, err := starlark.Call(d.thread, fn, args, nil)
	return err
}
