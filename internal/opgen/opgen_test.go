package main

import (
	"os"
	"path/filepath"
	"testing"

	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func TestOutputsAreFresh(t *testing.T) {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := outputs(ops.Table(), nn.Modules())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is stale; run go generate ./api", path)
		}
	}
}

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
			"Scalar j=1, MemoryFormat k=contiguous_format, Tensor? l=None, float? m=None) -> Tensor",
		More:   []string{"f(Tensor x, Scalar d) -> Tensor", "f(Tensor x, str i) -> Tensor"},
		Names:  []string{"torch.f"},
		Traits: op.NoGrad, Kernels: []op.Kernel{kernel}, Tol: op.Tol{Class: op.Exact, Reason: "toy"},
		Infer: func(op.Args) ([]op.Meta, error) { return []op.Meta{{DType: tensor.F32}}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	f := newFunction(table.Def("f"))
	want := map[string]string{
		"a": "int", "b": "*int", "c": "float64", "d": "Scalar", "e": "bool", "f": "*bool", "g": "*int", "h": "string", "i": "Arg",
		"j": "Scalar", "k": "MemoryFormat", "l": "*Tensor", "m": "*float64",
	}
	for _, p := range f.optional {
		if p.goType() != want[p.name] {
			t.Errorf("%s is %s, want %s", p.name, p.goType(), want[p.name])
		}
	}
	if len(f.required) != 1 || len(f.optional) != len(want) || f.method {
		t.Errorf("%d required and %d optional parameters, method %v", len(f.required), len(f.optional), f.method)
	}
}
