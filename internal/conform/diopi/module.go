package diopi

import (
	"slices"

	"plumb/internal/conform/config"
	"plumb/program"
	"plumb/tensor"
)

// module makes a module and calls it: the call takes the arguments that the key
// call names, without it the tensors, and the constructor all others. With
// train=False it is made an evaluating one in between. Its initial parameters
// are the reference's.
func (b *build) module() ([]any, error) {
	called, err := b.calledWith()
	if err != nil {
		return nil, err
	}
	b.p.DType = b.parameters()
	m := b.call(b.c.Interface+"."+b.c.Function, b.without(called...))
	if b.c.Item.Get("train") == config.Bool(false) {
		m = b.call("Module.eval", m)
	}
	args := []any{m}
	for i, name := range called {
		v, _ := b.get(name)
		if list, ok := v.(program.List); ok && isRefs(list) {
			v = program.Tuple(list) // a state of several tensors
		}
		if i == 0 {
			args = append(args, v)
			continue
		}
		args = append(args, program.Kwarg{Name: name, Value: v})
	}
	return []any{b.call("Module.__call__", args...)}, nil
}

func isRefs(list program.List) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(program.Ref); return !ok })
}

// calledWith are the arguments of a module's call.
func (b *build) calledWith() ([]string, error) {
	names, given := config.Items(b.c.Item.Get("call"))
	var called []string
	for _, v := range names {
		name, _ := v.(config.String)
		if _, ok := b.get(string(name)); !ok {
			return nil, b.fail("call names %s, which is no argument", config.Show(v))
		}
		called = append(called, string(name))
	}
	for _, kw := range b.args {
		if given {
			break
		}
		list, _ := kw.Value.(program.List)
		if _, ok := kw.Value.(program.Ref); ok || isRefs(list) {
			called = append(called, kw.Name)
		}
	}
	if len(called) == 0 {
		return nil, b.fail("the call of the module has no argument")
	}
	return called, nil
}

// parameters is the dtype of the module's parameters: that of the inputs.
func (b *build) parameters() tensor.DType {
	for i := range b.p.Inputs {
		if d := b.p.Inputs[i].DType; d.IsFloat() && d != tensor.F32 {
			return d
		}
	}
	return tensor.Invalid
}

// trains reports whether a module's parameters are differentiated though no
// input is: requires_backward says so.
func (b *build) trains() bool {
	names, _ := config.Items(b.c.Item.Get("requires_backward"))
	return len(names) > 0 && program.IsModule(b.c.Interface+"."+b.c.Function)
}
