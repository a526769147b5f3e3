package ops_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// TestCastMemoryFormat: a conversion may say in which order its result lies.
func TestCastMemoryFormat(t *testing.T) {
	image := tensor.New(tensor.I32, 2, 3, 4, 5)
	for _, c := range []struct {
		name   string
		x      *tensor.Tensor
		format tensor.MemoryFormat
		want   []int // strides; nil for a rejection
	}{
		{"Tensor.float", image, tensor.Contiguous, []int{60, 20, 5, 1}},
		{"Tensor.float", image, tensor.ChannelsLast, []int{60, 1, 15, 3}},
		{"Tensor.int", image, tensor.ChannelsLast, []int{60, 1, 15, 3}},
		{"Tensor.int", image, tensor.Preserve, []int{60, 20, 5, 1}},
		{"Tensor.bool", tensor.New(tensor.F32, 3), tensor.ChannelsLast, nil},
	} {
		call, err := ops.Table().Resolve(c.name, []any{c.x}, []op.Kwarg{op.Kw("memory_format", c.format)})
		if err != nil {
			t.Fatal(err)
		}
		out, err := call.Execute()
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), "required rank 4 tensor") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(out[0].Strides(), c.want) {
			t.Errorf("%s(memory_format=%s): %v, %v, want strides %v", c.name, c.format, out, err, c.want)
		}
	}
}

// TestTriangleOfHermitian: of a matrix that is not Hermitian one triangle is read.
func TestTriangleOfHermitian(t *testing.T) {
	x := tensor.New(tensor.F64, 2, 2)
	for i, v := range []float64{1, 9, 2, 3} {
		x.Set(i, complex(v, 0))
	}
	for uplo, want := range map[string][2]float64{"L": {-0.2361, 4.2361}, "U": {-7.0554, 11.0554}} { // torch.linalg.eigvalsh
		call, err := ops.Table().Resolve("torch.linalg.eigvalsh", []any{x, uplo}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := call.Execute()
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if d := out[0].Float(i) - w; d*d > 1e-7 {
				t.Errorf("UPLO=%s: eigenvalue %d is %v, want %v", uplo, i, out[0].Float(i), w)
			}
		}
	}
}

// TestNuclearNorm: torch.norm takes the sum of singular values too.
func TestNuclearNorm(t *testing.T) {
	x := tensor.New(tensor.F32, 2, 2)
	for i, v := range []float64{1, 2, 3, 4} {
		x.Set(i, complex(v, 0))
	}
	for _, name := range []string{"torch.norm", "Tensor.norm"} {
		call, err := ops.Table().Resolve(name, []any{x, "nuc"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out, err := call.Execute()
		if err != nil || math.Abs(out[0].Float(0)-5.8310) > 1e-4 {
			t.Errorf("%s: %v, %v, want 5.8310", name, out, err)
		}
	}
	call, err := ops.Table().Resolve("torch.norm", []any{tensor.New(tensor.F32, 2, 2, 2), "nuc"}, nil)
	if err == nil {
		_, err = call.Execute()
	}
	if err == nil || !strings.Contains(err.Error(), "must have 2 dimensions") {
		t.Errorf("of three dimensions: %v", err)
	}
}

// TestIntegerSteps: start and end of an integer dtype are truncated before steps are counted.
func TestIntegerSteps(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end float64
		want       []int64
	}{
		{"torch.linspace", 0.9, 5.9, []int64{0, 1, 3, 5}},
		{"torch.linspace", -0.9, -5.9, []int64{0, -1, -3, -5}},
		{"torch.logspace", 0.5, 3.7, []int64{1, 10, 100, 1000}},
	} {
		call, err := ops.Table().Resolve(c.name, []any{c.start, c.end, int64(4)}, []op.Kwarg{op.Kw("dtype", tensor.I64)})
		if err != nil {
			t.Fatal(err)
		}
		out, err := call.Execute()
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range c.want {
			if out[0].Int(i) != w {
				t.Errorf("%s(%v, %v, 4)[%d] is %d, want %d", c.name, c.start, c.end, i, out[0].Int(i), w)
			}
		}
	}
}
