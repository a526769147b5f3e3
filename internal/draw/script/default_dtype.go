package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"plumb/program"
	"plumb/tensor"
)

// setDefault is torch.set_default_dtype, for what follows: what a test makes without a dtype
// of floats, and its modules. At the top of a file it is for all of its tests. What the
// framework makes of integers, as 1 / 2, stays float32.
func (p path) setDefault(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value = starlark.None
	if len(args) == 1 {
		v = args[0]
	}
	to, ok := v.(dtype)
	if !ok || !tensor.DType(to).IsFloat() {
		return nil, fmt.Errorf("%s takes a dtype of floats, not %s", p, str(v))
	}
	d, err := drawOf(t, string(p))
	if err != nil {
		return nil, err
	}
	if l, loads := t.Local(loadKey).(*loader); loads {
		l.file.floats = tensor.DType(to)
	}
	return starlark.None, d.setDefault(tensor.DType(to))
}

// setDefault keeps a default dtype, and has the program's modules made in it. The dtype in
// which a run draws all of its floats goes before it.
func (d *draw) setDefault(to tensor.DType) error {
	if d.env.Float.IsFloat() {
		return nil
	}
	modules := tensor.Invalid
	if d.floats = to; to != tensor.F32 {
		modules = to
	}
	if modules != d.prog.DType && slices.ContainsFunc(d.prog.Calls, func(c program.Call) bool { return program.IsModule(c.Target) }) {
		return lack("torch.set_default_dtype between modules is not supported in test files")
	}
	d.prog.DType = modules
	return nil
}

// defaultDType is torch.get_default_dtype.
func defaultDType(t *starlark.Thread) starlark.Value {
	if d, ok := t.Local(drawKey).(*draw); ok && d.floats != tensor.Invalid {
		return dtype(d.floats)
	}
	return dtype(tensor.F32)
}

// makesFloats are the calls that make tensors of floats where nobody says otherwise.
var makesFloats = map[path]bool{
	"torch.zeros": true, "torch.ones": true, "torch.empty": true, "torch.rand": true, "torch.randn": true, "torch.eye": true,
	"torch.linspace": true, "torch.logspace": true, "torch.empty_strided": true,
}

// madeOf are those that do where floats are among their arguments.
var madeOf = map[path]bool{"torch.full": true, "torch.arange": true, "torch.range": true, "torch.tensor": true, "torch.as_tensor": true, "torch.scalar_tensor": true}

// inDefault adds the default dtype to the keywords of a call that makes a tensor.
func (p path) inDefault(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) []starlark.Tuple {
	d, ok := t.Local(drawKey).(*draw)
	if !ok || d.floats == tensor.Invalid || d.floats == tensor.F32 || !makesFloats[p] && !madeOf[p] {
		return kwargs
	}
	at := slices.IndexFunc(kwargs, func(kw starlark.Tuple) bool { return kw[0] == starlark.Value(starlark.String("dtype")) })
	if at >= 0 && kwargs[at][1] != starlark.None {
		return kwargs
	}
	values := slices.Clone(args)
	for _, kw := range kwargs {
		values = append(values, kw[1])
	}
	if madeOf[p] && (!anyWithin(values, 0, isFloat) || anyWithin(values, 0, isComplex)) {
		return kwargs
	}
	out := slices.Clone(kwargs)
	if at >= 0 {
		out = slices.Delete(out, at, at+1)
	}
	return append(out, starlark.Tuple{starlark.String("dtype"), dtype(d.floats)})
}

// anyWithin reports whether a value, or an element of a sequence that it is, is such.
func anyWithin(v starlark.Value, depth int, such func(starlark.Value) bool) bool {
	if vs, ok := sequence(v); ok && depth < maxDepth {
		return slices.ContainsFunc(vs, func(e starlark.Value) bool { return anyWithin(e, depth+1, such) })
	}
	return such(v)
}

func isFloat(v starlark.Value) bool { _, ok := v.(starlark.Float); return ok }

func isComplex(v starlark.Value) bool { _, ok := v.(complexNumber); return ok }
