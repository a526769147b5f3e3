package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// torchTesting are the modules with which PyTorch's own tests, and those of its
// devices, are written.
const torchTesting = "torch.testing._internal."

// testKit has the names of a package that tests are written with; nil for other modules.
func testKit(module string) starlark.StringDict {
	switch {
	case strings.HasPrefix(module, torchTesting+"common_") && !strings.Contains(module[len(torchTesting):], "."):
		return torchTestingNames()
	case module == "torch_npu" || strings.HasPrefix(module, "torch_npu.testing"):
		return npuTestingNames()
	case module == "parameterized":
		return starlark.StringDict{"parameterized": expander{}, "param": starlark.NewBuiltin("param", paramOf), "parameterized_class": starlark.NewBuiltin("parameterized_class", expandClass)}
	case module == "hypothesis":
		names := starlark.StringDict{
			"given": starlark.NewBuiltin("given", given), "settings": starlark.NewBuiltin("settings", hypothesisSettings),
			"strategies": moduleOf("hypothesis.strategies"), "HealthCheck": foreign("hypothesis.HealthCheck"),
		}
		for _, name := range []string{"note", "event", "example"} {
			names[name] = starlark.NewBuiltin(name, ignoreCall)
		}
		return names
	case module == "hypothesis.strategies":
		return strategyNames()
	}
	return nil
}

// ignoreCall is a decorator without effect, or a function that only tells.
func ignoreCall(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return ignored{name: "hypothesis"}, nil
}

// onlyElsewhere are the decorators of tests that other devices have.
var onlyElsewhere = []string{"onlyCUDA", "onlyMPS", "onlyXPU", "onlyHPU", "onlyPRIVATEUSE1", "onlyCUDAAndPRIVATEUSE1", "onlyAccelerator"}

// notOurs are decorators for devices and builds that are not those of the test.
var notOurs = []string{
	"onlyCPU", "onlyNativeDeviceTypes", "onlyNativeDeviceTypesAnd", "skipMeta", "skipXLA", "skipMPS", "skipHPU", "skipXPU", "skipLazy", "skipCUDAIf", "skipCUDAIfRocm", "skipCUDAIfNoMagma", "skipCUDAIfNoCusolver",
	"skipCUDAIfNoCudnn", "skipCUDAIfNotRocm", "skipCUDAIfNoMagmaAndNoCusolver", "skipCPUIfNoLapack", "skipCPUIfNoFFT", "skipCPUIfNoMkl", "skipIfNoSciPy", "skipIfTorchDynamo", "skipIfTorchInductor", "skipIfRocm", "skipIfCrossRef",
	"skipIfMPS", "skipIfXpu", "skipIfHpu", "skipIfSlowGradcheckEnv", "skipIfNoLapack", "skipPRIVATEUSE1", "slowTest", "slowAwareTest", "unMarkDynamoStrictTest", "markDynamoStrictTest", "xfailIfTorchDynamo", "serialTest",
	"dtypesIfCUDA", "dtypesIfMPS", "dtypesIfXPU", "dtypesIfPRIVATEUSE1", "suppress_warnings", "disableMkldnn", "tf32_on_and_off", "bf32_on_and_off", "wrapDeterministicFlagAPITest",
	"expectedFailureMeta", "expectedFailureXLA", "expectedFailureCUDA", "expectedFailureMPS", "expectedFailureHPU",
}

// lostHere are decorators that would have an effect: a note tells.
var lostHere = []string{"dtypesIfCPU", "toleranceOverride", "precisionOverride"}

// notHeld are those of tests that need more than a run has.
var notHeld = map[string]string{"largeTensorTest": "it needs large tensors", "deviceCountAtLeast": severalDevices + "deviceCountAtLeast"}

// ofDtypes are the functions of common_dtype, by the dtypes that they begin with.
var ofDtypes = map[string]string{
	"floating_types": "float32 float64", "integral_types": "uint8 int8 int16 int32 int64", "complex_types": "complex64 complex128", "floating_types_and_half": "float16 float32 float64",
	"all_types": "float32 float64 uint8 int8 int16 int32 int64", "floating_and_complex_types": "float32 float64 complex64 complex128",
	"all_types_and_complex": "float32 float64 uint8 int8 int16 int32 int64 complex64 complex128", "double_types": "float64 complex128",
}

func torchTestingNames() starlark.StringDict {
	names := starlark.StringDict{
		"TestCase": foreign(torchTesting + "common_utils.TestCase"), "NNTestCase": foreign(torchTesting + "common_nn.NNTestCase.TestCase"), "run_tests": ignoredCall("run_tests"),
		"parametrize": starlark.NewBuiltin("parametrize", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			return makeParametrize(t, args, kwargs)
		}),
		"subtest": starlark.NewBuiltin("subtest", subtestOf), "dtypes": builtin("dtypes", dtypesDecorator), "repeat_test_for_types": ofOne("repeat_test_for_types", func(t *starlark.Thread, list starlark.Value) (starlark.Value, error) {
			return makeParametrize(t, starlark.Tuple{starlark.String("dtype"), list}, nil)
		}), "make_tensor": path("torch.testing.make_tensor"), "gradcheck": path("torch.autograd.gradcheck"), "gradgradcheck": path("torch.autograd.gradgradcheck"),
		"instantiate_parametrized_tests": ofOne("instantiate_parametrized_tests", func(_ *starlark.Thread, c starlark.Value) (starlark.Value, error) { return c, nil }),
		"instantiate_device_type_tests": starlark.NewBuiltin("instantiate_device_type_tests", func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			return starlark.None, nil
		}),
	}
	for _, name := range slices.Concat(notOurs, onlyElsewhere, lostHere, slices.Collect(maps.Keys(notHeld))) {
		names[name] = foreign(torchTesting + name)
	}
	names["tol"] = ignoredCall("tol")
	for _, name := range []string{"TEST_WITH_ROCM", "TEST_WITH_ASAN", "TEST_WITH_UBSAN", "TEST_WITH_TORCHINDUCTOR", "TEST_WITH_TORCHDYNAMO", "TEST_WITH_CROSSREF", "TEST_WITH_SLOW", "TEST_CUDA", "TEST_MPS", "TEST_XPU", "TEST_MULTIGPU", "TEST_CUDNN", "TEST_MKL", "IS_WINDOWS", "IS_MACOS", "IS_ARM64", "IS_FBCODE", "IS_SANDCASTLE", "IS_JETSON"} {
		names[name] = starlark.False
	}
	names["IS_LINUX"], names["TEST_NUMPY"], names["TEST_SCIPY"] = starlark.True, starlark.True, starlark.True
	for name, list := range ofDtypes {
		with := dtypesNamed(list)
		names[name] = builtin(name, func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) { return with, nil })
		names[name+"_and"] = builtin(name+"_and", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return append(with[:len(with):len(with)], a...), nil
		})
	}
	return names
}

// npuTestingNames are those of torch_npu's testing package.
func npuTestingNames() starlark.StringDict {
	names := maps.Clone(npuPrelude())
	maps.Copy(names, starlark.StringDict{
		"TestCase": foreign(torchTesting + "common_utils.TestCase"), "run_tests": ignoredCall("run_tests"), "npu": path("torch.npu"),
		"Dtypes": builtin("Dtypes", dtypesDecorator), "instantiate_tests": ofOne("instantiate_tests", func(_ *starlark.Thread, c starlark.Value) (starlark.Value, error) { return c, nil }),
		"Formats": builtin("Formats", func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
			return makeParametrize(t, starlark.Tuple{starlark.String("npu_format"), a}, nil)
		}),
	})
	for _, name := range []string{"SupportedDevices", "SkipIfNotGteCANNVersion", "SkipIfRocm", "graph_mode"} {
		names[name] = starlark.NewBuiltin(name, ignoreCall)
	}
	return names
}

func dtypesNamed(list string) starlark.Tuple {
	var out starlark.Tuple
	for name := range strings.FieldsSeq(list) {
		out = append(out, torchConstants[name])
	}
	return out
}

// callTorchTesting is a decorator of PyTorch's tests; nil for those that are not here.
func callTorchTesting(name string) starlark.Value {
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case slices.Contains(onlyElsewhere, last):
		return ignored{name: name, skip: "it is for other devices: " + last}
	case notHeld[last] != "":
		return ignored{name: name, skip: notHeld[last]}
	case slices.Contains(notOurs, last), slices.Contains(lostHere, last):
		return ignored{name: last, lost: slices.Contains(lostHere, last)}
	}
	return nil
}

// dtypesDecorator is @dtypes of PyTorch's tests.
func dtypesDecorator(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	ids := make([]starlark.Value, len(a))
	for i, v := range a {
		ids[i] = starlark.String(strings.TrimPrefix(str(v), "torch."))
	}
	return makeParametrize(t, starlark.Tuple{starlark.String("dtype"), a, starlark.NewList(ids)}, nil)
}

// subtestOf is subtest(values, name=…).
func subtestOf(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	given := append(args[:len(args):len(args)], keyword(kwargs, "arg_values")...)
	if len(given) != 1 {
		return nil, fmt.Errorf("subtest takes the arguments of a test, and a name")
	}
	p := &parameterSet{values: given, whole: given[0]}
	if values, several := sequence(given[0]); several {
		p.values = values
	}
	if name := keyword(kwargs, "name"); name != nil {
		p.id, _ = starlark.AsString(name[0])
	}
	return p, nil
}

// expander is parameterized: what it, or expand of it, is called with are the arguments of
// the test that follows, by position.
type expander struct{}

func (expander) String() string        { return "parameterized" }
func (expander) Type() string          { return "function" }
func (expander) Freeze()               {}
func (expander) Truth() starlark.Bool  { return true }
func (expander) Hash() (uint32, error) { return 0, nil }
func (expander) Name() string          { return "parameterized" }
func (expander) AttrNames() []string   { return []string{"expand"} }

// Attr returns expand.
func (e expander) Attr(name string) (starlark.Value, error) {
	if name == "expand" {
		return e, nil
	}
	return nil, nil
}

// CallInternal returns the decorator.
func (expander) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	values := append(args[:len(args):len(args)], keyword(kwargs, "input")...)
	if len(values) == 0 {
		return nil, fmt.Errorf("parameterized.expand takes lists of arguments")
	}
	list := values[0]
	if fn, ok := list.(starlark.Callable); ok {
		var err error
		if list, err = starlark.Call(t, fn, nil, nil); err != nil {
			return nil, err
		}
	}
	sets, err := iterate(t, list)
	return &expanded{sets}, err
}

// expanded are lists of arguments by position.
type expanded struct{ sets []starlark.Value }

func (*expanded) String() string        { return "parameterized.expand" }
func (*expanded) Type() string          { return "decorator" }
func (*expanded) Freeze()               {}
func (*expanded) Truth() starlark.Bool  { return true }
func (*expanded) Hash() (uint32, error) { return 0, nil }

// of names the arguments by the parameters of a function.
func (e *expanded) of(fn *starlark.Function) (*parametrize, error) {
	var names []string
	for i := range fn.NumParams() {
		name, _ := fn.Param(i)
		if i > 0 || !slices.Contains(receivers, name) {
			names = append(names, name)
		}
	}
	p := &parametrize{names: names}
	for i, v := range e.sets {
		set := parameterSet{values: starlark.Tuple{v}}
		if given, ok := v.(*parameterSet); ok {
			set = *given
		} else if values, several := sequence(v); several {
			set.values = values
		}
		if len(set.values) > len(names) {
			return nil, fmt.Errorf("parameterized.expand: list %d has %d arguments, and %s takes %d", i, len(set.values), shortName(fn), len(names))
		}
		for k := len(set.values); k < len(names); k++ {
			def := fn.ParamDefault(fn.NumParams() - len(names) + k)
			if def == nil {
				return nil, fmt.Errorf("parameterized.expand: list %d has no %s", i, names[k])
			}
			set.values = append(set.values[:k:k], def)
		}
		if set.id == "" {
			ids := []string{fmt.Sprint(i)}
			for k, v := range set.values {
				ids = append(ids, parameterID(names[k], i, v))
			}
			set.id = strings.Join(ids, "-")
		}
		p.sets = append(p.sets, set)
	}
	return p, nil
}

// expandClass is parameterized_class: attributes that the tests of a class have, as names
// and lists of values, or as dictionaries.
func expandClass(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	given := arguments{b.Name(), []string{"attrs", "input_values", "class_name_func", "classname_func"}, make([]starlark.Value, 4)}
	if err := given.bind(args, kwargs); err != nil {
		return nil, err
	}
	p := &parametrize{attributes: true}
	names, several := sequence(given.values[0])
	if !several {
		names = []starlark.Value{given.values[0]}
	}
	if given.values[1] == nil {
		for i, one := range names {
			of, ok := one.(*starlark.Dict)
			if !ok {
				return nil, fmt.Errorf("parameterized_class takes names and values, or dictionaries, not %s", article(one.Type()))
			}
			set := parameterSet{id: fmt.Sprint(i)}
			for _, kv := range of.Items() {
				if i == 0 {
					p.names = append(p.names, str(kv[0]))
				}
			}
			for _, name := range p.names {
				v, found, err := of.Get(starlark.String(name))
				if err != nil || !found {
					return nil, fmt.Errorf("parameterized_class: dictionary %d has no %s", i, name)
				}
				set.values = append(set.values, v)
			}
			p.sets = append(p.sets, set)
		}
		return p, nil
	}
	for _, name := range names {
		p.names = append(p.names, str(name))
	}
	sets, err := iterate(t, given.values[1])
	if err != nil {
		return nil, err
	}
	for i, one := range sets {
		values, several := sequence(one)
		if !several {
			values = []starlark.Value{one}
		}
		if len(values) != len(names) {
			return nil, fmt.Errorf("parameterized_class: list %d has %d values for %d names", i, len(values), len(names))
		}
		p.sets = append(p.sets, parameterSet{values: values, id: fmt.Sprint(i)})
	}
	return p, nil
}

// paramOf is parameterized.param, without keywords.
func paramOf(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(kwargs) > 0 {
		return nil, lack("parameterized.param with keywords is not supported in test files")
	}
	return &parameterSet{values: args}, nil
}
