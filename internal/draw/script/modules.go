package script

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
)

func init() {
	predeclared[fnImport] = builtin(fnImport, importModule)
	utilityNames = sync.OnceValue(loadUtilities)
	predeclared[fnFrom] = builtin(fnFrom, importName)
}

// oldNames are packages under which OneFlow's modules were imported once.
var oldNames = []string{"oneflow.compatible.single_client", "oneflow.experimental"}

// moduleOf returns what an import of a module binds.
func moduleOf(name string) starlark.Value {
	for _, old := range oldNames {
		if name == old || strings.HasPrefix(name, old+".") {
			name = "oneflow" + strings.TrimPrefix(name, old)
		}
	}
	if names := ownNames(name); names != nil {
		return &library{name: name, names: names, lacks: name == "typing" || testKit(name) != nil}
	}
	if v := standard[name]; v != nil {
		return v
	}
	switch {
	case name == "torch" || strings.HasPrefix(name, "torch."):
		return path(name)
	case name == "oneflow" || strings.HasPrefix(name, "oneflow."):
		return oneflow(strings.TrimPrefix(strings.TrimPrefix(name, "oneflow"), "."))
	}
	return foreign(name)
}

// ownNames are the names of a module around AutoTest's tests for which Plumb
// has its own; nil for other modules.
func ownNames(module string) starlark.StringDict {
	last := module[strings.LastIndexByte(module, '.')+1:]
	if names := testKit(module); names != nil {
		return names
	}
	switch {
	case module == "plumb":
		return vocabularyNames()
	case strings.Contains(module, "automated_test_util"):
		return automatedNames()
	case last == "test_util", strings.HasSuffix(module, "nn.modules.utils"):
		return utilityNames()
	case last == "common_types", module == "typing":
		return typeNames()
	case module == "einops", module == "einops.layers.torch":
		return einopsPrelude()
	case last == "broadcast_ops":
		return starlark.StringDict{"broadcast_shapes": path("torch.broadcast_shapes")}
	}
	return nil
}

// vocabularyNames are those of "from plumb import *".
func vocabularyNames() starlark.StringDict {
	names := starlark.StringDict{"torch": path("torch")}
	maps.Copy(names, vocabulary)
	return names
}

func typeNames() starlark.StringDict {
	names := starlark.StringDict{"TypeVar": ignoredCall("TypeVar")}
	for name, t := range pyTypes {
		names[name] = t
	}
	return names
}

// automatedNames are those that OneFlow's automated_test_util brings: beside
// the vocabulary what it imports itself.
func automatedNames() starlark.StringDict {
	names := starlark.StringDict{
		"flow": moduleOf("oneflow"), "oneflow": moduleOf("oneflow"), "np": moduleOf("numpy"), "unittest": moduleOf("unittest"),
		"OrderedDict": pyTypes["dict"], "broadcast_shapes": path("torch.broadcast_shapes"),
	}
	for _, module := range []string{"os", "sys", "math", "copy", "functools", "itertools", "collections", "numpy", "warnings"} {
		names[module] = moduleOf(module)
	}
	for name, f := range randomFuncs {
		names[name] = f.value("random." + name)
	}
	maps.Copy(names, utilityNames())
	maps.Copy(names, vocabularyNames())
	return names
}

//go:embed utilities.py
var utilitySource string

// utilityNames are those of OneFlow's test_util and of torch.nn.modules.utils.
var utilityNames func() starlark.StringDict

func loadUtilities() starlark.StringDict {
	names, err := (&File{Name: "utilities.py", src: utilitySource}).run()
	if err != nil {
		panic(err) // the source is part of this package
	}
	maps.Copy(names, starlark.StringDict{
		"GenArgList": builtin("GenArgList", genArgList), "GenArgDict": builtin("GenArgDict", genArgDict), "GenCartesianProduct": builtin("GenCartesianProduct", cartesianProduct),
		"type_name_to_flow_type": dtypesByName(func(d dtype) starlark.Value { return d }), "type_name_to_np_type": dtypesByName(func(d dtype) starlark.Value { return numpyType(d) }),
	})
	return names
}

func dtypesByName(f func(dtype) starlark.Value) *starlark.Dict {
	d := starlark.NewDict(16)
	for alias, name := range map[string]string{"float16": "float16", "float32": "float32", "float": "float32", "float64": "float64", "double": "float64", "int8": "int8", "int32": "int32", "int64": "int64", "uint8": "uint8", "bool": "bool", "complex64": "complex64", "complex128": "complex128"} {
		if err := d.SetKey(starlark.String(alias), f(torchConstants[name].(dtype))); err != nil {
			panic(err) // a string is hashable
		}
	}
	d.Freeze()
	return d
}

// exported returns the names that "from module import *" binds, and whether
// they are known.
func (f *File) exported(module string) (starlark.StringDict, bool) {
	switch m := moduleOf(module).(type) {
	case *library:
		return m.names, true
	case randomModule:
		names := starlark.StringDict{}
		for name, f := range randomFuncs {
			names[name] = f.value("random." + name)
		}
		return names, true
	case foreign:
		if found := f.near.module(f.Name, module); found != nil && found.err == nil {
			names := maps.Clone(found.names)
			maps.DeleteFunc(names, func(name string, _ starlark.Value) bool { return strings.HasPrefix(name, "_") })
			return names, true
		}
	}
	return nil, false
}

func importModule(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	name := string(args[0].(starlark.String))
	noteImport(t, name)
	if len(args) > 1 && isForeign(name) {
		if folder := nearFolder(t, name, string(args[1].(starlark.String))); folder != nil {
			return folder, nil
		}
	}
	return importedModule(t, name), nil
}

// isForeign reports whether Plumb knows nothing of a module.
func isForeign(name string) bool {
	_, is := moduleOf(name).(foreign)
	return is
}

// importedModule is a module, or one of the tests' own.
func importedModule(t *starlark.Thread, name string) starlark.Value {
	v := moduleOf(name)
	if _, none := v.(foreign); none {
		if own := nearModule(t, name); own != nil {
			return own
		}
	}
	return v
}

// noteImport notes that a file imports OneFlow, and gives tests the device of the run with
// PyTorch's kit for devices.
func noteImport(t *starlark.Thread, module string) {
	l, err := loaderOf(t)
	if err != nil {
		return
	}
	if module == "oneflow" || strings.HasPrefix(module, "oneflow.") {
		l.file.oneflow = true
	}
	if module == torchTesting+"common_device_type" { // before a conftest.py's, which has no part in a TestCase
		l.fixtures["device"] = &fixture{name: "device", of: func(d *draw) starlark.Value { return starlark.String(d.device()) }}
	}
}

func importName(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	module, name := string(args[0].(starlark.String)), string(args[1].(starlark.String))
	noteImport(t, module)
	if name == "*" {
		return starlark.None, nil
	}
	if v := standard[module+"."+name]; v != nil {
		return v, nil
	}
	if v := ownNames(module)[name]; v != nil {
		return v, nil
	}
	if names := ownNames(module + "." + name); names != nil {
		return moduleOf(module + "." + name), nil
	}
	of := importedModule(t, module)
	if _, none := of.(foreign); none {
		if own := nearModule(t, strings.TrimSuffix(module, ".")+"."+name); own != nil {
			return own, nil
		}
		if v := forked(t, module)[name]; v != nil {
			return v, nil
		}
	}
	v, err := of.(starlark.HasAttrs).Attr(name)
	if v == nil && err == nil {
		err = fmt.Errorf("%s has no name %s", module, name)
	}
	return v, err
}

// forked are the names of a module that nobody has and that a file imports autotest from: a
// fork of AutoTest, whose words are the same; nil for another module.
func forked(t *starlark.Thread, module string) starlark.StringDict {
	d, ok := t.Local(drawKey).(*draw)
	if !ok || !slices.Contains(d.test.file.out.imports, module+".autotest") {
		return nil
	}
	return automatedNames()
}
