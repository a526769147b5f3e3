package typed

import (
	"strings"
	"testing"

	"plumb/op"
	"plumb/tensor"
)

func TestNames(t *testing.T) {
	for id, want := range map[string]string{
		"max.dim": "MaxDim", "conv2d": "Conv2D", "max_pool2d_with_indices": "MaxPool2DWithIndices", "clamp.Tensor": "ClampTensor", "log1p": "Log1P",
	} {
		if got := exported(id); got != want {
			t.Errorf("%s becomes %s, want %s", id, got, want)
		}
	}
	for name, want := range map[string]string{"kernel_size": "kernelSize", "var": "var_", "input": "input"} {
		if got := local(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}

// TestZeroValuesMeanDefaults holds the field types to it.
func TestZeroValuesMeanDefaults(t *testing.T) {
	kernel := op.Kernel{Run: func(*op.Run) error { return nil }}
	table, err := op.NewTable(&op.Def{
		Sig: "f(Tensor x, int a=0, int b=1, float c=0.0, float d=0.5, bool e=False, bool f=True, int? g=None, str h='none', int[2] i=1, " +
			"Scalar j=1, MemoryFormat k=contiguous_format, Tensor? l=None, float? m=None, int[][]? n=None) -> Tensor",
		More:   []string{"f(Tensor x, Scalar d) -> Tensor", "f(Tensor x, str i) -> Tensor"},
		Names:  []string{"torch.f"},
		Traits: op.NoGrad, Kernels: []op.Kernel{kernel}, Tol: op.Tol{Class: op.Exact, Reason: "toy"},
		Infer: func(op.Args) ([]op.Meta, error) { return []op.Meta{{DType: tensor.F32}}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newFunction(table.Def("f"))
	f.own = true
	want := map[string]string{
		"a": "int", "b": "*int", "c": "float64", "d": "Scalar", "e": "bool", "f": "*bool", "g": "*int", "h": "string", "i": "Arg",
		"j": "Scalar", "k": "MemoryFormat", "l": "*Tensor", "m": "*float64", "n": "[][]int",
	}
	for _, p := range f.optional {
		if f.goType(&p) != want[p.name] {
			t.Errorf("%s is %s, want %s", p.name, f.goType(&p), want[p.name])
		}
	}
	if len(f.required) != 1 || len(f.optional) != len(want) || f.Method {
		t.Errorf("%d required and %d optional parameters, method %v", len(f.required), len(f.optional), f.Method)
	}
}

// TestSource writes functions of another package: names of api are qualified, a
// session comes first where no tensor has one, five results are a slice.
func TestSource(t *testing.T) {
	table, err := op.NewTable(toy("noise(int n, *, dtype[] kinds, str mode='plain') -> Tensor", func(d *op.Def) {
		d.OneOf = map[op.StrArg][]string{"mode": {"plain", "double"}}
	}), toy("deep.parts(Tensor api, Tensor?[] rest=[], Scalar[] k=[1]) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"))
	if err != nil {
		t.Fatal(err)
	}
	fs, err := Declare(table.Defs())
	if err != nil {
		t.Fatal(err)
	}
	text, err := Source("a test", "mine", "plumb/api", fs)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"func Noise(s *api.Session, n int, kinds []api.DType, options ...NoiseOptions) (*api.Tensor, error) {",
		`return api.Apply(s, "noise",`,
		"Mode string // str, one of 'plain', 'double', default 'plain'",
		"func DeepParts(api_ *api.Tensor, options ...DeepPartsOptions) ([]*api.Tensor, error) {",
		"Rest []*api.Tensor // Tensor?[]", "K    []api.Scalar", `api.Optional("k", set.K)).All()`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestDeclareRefuses: two operators of one Go name, and none.
func TestDeclareRefuses(t *testing.T) {
	for _, sigs := range [][]string{
		{"f_options(Tensor x) -> Tensor", "f(Tensor x, int n=1) -> Tensor"},
		{"f.x(Tensor x) -> Tensor", "f_x(Tensor x) -> Tensor", "fX(Tensor x) -> Tensor"},
		{"f-x(Tensor x) -> Tensor"},
	} {
		var defs []*op.Def
		for _, sig := range sigs {
			defs = append(defs, toy(sig))
		}
		table, err := op.NewTable(defs...)
		if err != nil {
			t.Fatal(err)
		}
		if fs, err := Declare(table.Defs()); err == nil {
			t.Errorf("%v: %d functions", sigs, len(fs))
		}
	}
}

func toy(sig string, more ...func(d *op.Def)) *op.Def {
	d := &op.Def{
		Sig: sig, Traits: op.NoGrad, Tol: op.Tol{Class: op.Exact, Reason: "toy"},
		Kernels: []op.Kernel{{Run: func(*op.Run) error { return nil }}},
		Infer:   func(op.Args) ([]op.Meta, error) { return []op.Meta{{DType: tensor.F32}}, nil },
	}
	for _, f := range more {
		f(d)
	}
	return d
}
