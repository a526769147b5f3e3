//go:build unix

package worker

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

const ownSources = "../../examples/ownworker/"

// compile runs a compiler, and skips the test where there is none.
func compile(t *testing.T, compiler string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("no %s here: the worker that it compiles is not tested", compiler)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ownSources
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// ownBinaries are the workers that are compiled, by source and flags.
var ownBinaries = map[string]string{}

// ownBinary compiles a worker of examples/ownworker by the name of its source.
func ownBinary(t *testing.T, source string, flags ...string) string {
	t.Helper()
	key := fmt.Sprint(source, flags)
	if path := ownBinaries[key]; path != "" {
		return path
	}
	dir, err := os.MkdirTemp("", "plumb-ownworker-*")
	if err != nil {
		t.Fatal(err)
	}
	ended = append(ended, func() { os.RemoveAll(dir) })
	binary := filepath.Join(dir, "ownworker")
	flags = append(flags, "-O2", "-Wall", "-Wextra", "-Werror")
	switch filepath.Ext(source) {
	case ".c":
		compile(t, "cc", append(flags, "-o", binary, source, "plumb_worker.c", "-lm")...)
	case ".cpp":
		compile(t, "c++", append(flags, "-o", binary, source, "plumb_worker.c", "-lm")...)
	case ".rs":
		kit := filepath.Join(dir, "plumb_worker.o")
		compile(t, "cc", append(flags, "-c", "-o", kit, "plumb_worker.c")...)
		compile(t, "rustc", "-O", "-D", "warnings", "-o", binary, source, "-C", "link-arg="+kit, "-C", "link-arg=-lm")
	}
	ownBinaries[key] = binary
	return binary
}

func openOwn(t *testing.T, binary string, env ...string) *Worker {
	t.Helper()
	w, err := Open(t.Context(), Config{Command: []string{binary}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func equal(a, b *tensor.Tensor) bool {
	return slices.Equal(a.Shape(), b.Shape()) && slices.Equal(tensor.Data[float32](a), tensor.Data[float32](b))
}

// TestOwnWorkersCompute: the kit serves C, C++ and Rust alike.
func TestOwnWorkersCompute(t *testing.T) {
	x := f32([]int{2, 2}, 1, -2, 3, -4)
	for _, source := range []string{"worker.c", "worker.cpp", "worker.rs"} {
		t.Run(source, func(t *testing.T) {
			w := openOwn(t, ownBinary(t, source))
			if !w.Info().ForwardOnly {
				t.Error("it has gradients")
			}
			out := runOK(t, w, new(builder).in("x", x, true).call("z", "torch.relu", program.Ref("x")).back("z", program.Fill{}))
			if z := out.Values[0].Tensor; !equal(z, f32([]int{2, 2}, 1, 0, 3, 0)) {
				t.Errorf("%v", z)
			}
			if out := run(t, w, new(builder).in("x", x, false).call("z", "torch.sort", program.Ref("x"))); out.Status != backend.Unsupported || out.Message != "there is no torch.sort" {
				t.Errorf("%s %q", out.Status, out.Message)
			}
		})
	}
}

// TestOwnWorkerInCpp: what a function of C++ throws is an exception of the call.
func TestOwnWorkerInCpp(t *testing.T) {
	w := openOwn(t, ownBinary(t, "worker.cpp"))
	pick := func(i float64) *builder {
		index := tensor.New(tensor.I64, 1)
		index.Set(0, complex(i, 0))
		return new(builder).in("x", f32([]int{2, 1}, 5, 6), false).in("i", index, false).call("z", "torch.index_select", program.Ref("x"), int64(0), program.Ref("i"))
	}
	if out := runOK(t, w, pick(1)); !equal(out.Values[0].Tensor, f32([]int{1, 1}, 6)) {
		t.Errorf("%v", out.Values[0].Tensor)
	}
	if out := run(t, w, pick(2)); out.Status != backend.Raised || out.Class != "IndexError" {
		t.Errorf("%s %s", out.Status, out.Class)
	}
}

// TestOwnWorkerKit: arguments of all kinds, layouts, promotion, tuples and
// changes in place.
func TestOwnWorkerKit(t *testing.T) {
	w := openOwn(t, ownBinary(t, "worker.c"))
	x, y := f32([]int{2, 2}, 1, -2, 3, -4), f32([]int{2, 2}, 10, 20, 30, 40)
	turned := tensor.New(tensor.F32, 2, 2).Transpose(0, 1)
	for i, v := range []float64{1, -2, 3, -4} {
		turned.Set(i, complex(v, 0))
	}
	job := func() *builder { return new(builder).in("x", x, false).in("y", y, false).in("t", turned, false) }
	ref := func(name string) program.Ref { return program.Ref(name) }
	for _, c := range []struct {
		name string
		job  *builder
		want *tensor.Tensor
	}{
		{"two tensors", job().call("z", "torch.add", ref("x"), ref("y")), f32([]int{2, 2}, 11, 18, 33, 36)},
		{"keywords", job().call("z", "torch.add").kw("other", ref("y")).kw("input", ref("x")), f32([]int{2, 2}, 11, 18, 33, 36)},
		{"a layout with gaps", job().call("z", "torch.sub", ref("t"), ref("x")), f32([]int{2, 2}, 0, 0, 0, 0)},
		{"an operator and a number", job().call("z", "operator.mul", ref("x"), 0.5), f32([]int{2, 2}, .5, -1, 1.5, -2)},
		{"the number first", job().call("z", "operator.sub", int64(1), ref("x")), f32([]int{2, 2}, 0, 3, -2, 5)},
		{"a float with a name", job().call("z", "torch.nn.functional.leaky_relu", ref("x")).kw("negative_slope", -0.5), f32([]int{2, 2}, 1, 1, 3, 2)},
		{"an infinite one", job().call("z", "torch.nn.functional.hardtanh", ref("x"), -1.0).kw("max_val", math.Inf(1)), f32([]int{2, 2}, 1, -1, 3, -1)},
		{"sizes one by one", job().call("z", "Tensor.view", ref("x"), int64(-1), int64(1)), f32([]int{4, 1}, 1, -2, 3, -4)},
		{"a list of sizes", job().call("z", "torch.reshape", ref("x"), program.List{int64(4)}), f32([]int{4}, 1, -2, 3, -4)},
		{"broadcast", job().call("s", "torch.sum", ref("y"), int64(1)).call("z", "torch.add", ref("x"), ref("s")), f32([]int{2, 2}, 31, 68, 33, 66)},
		{"an element of a tuple", job().call("m", "torch.max", ref("x"), int64(1)).call("z", "operator.getitem", ref("m"), int64(0)), f32([]int{2}, 1, 3)},
		{"an index", job().call("z", "operator.getitem", ref("t"), int64(-1)), f32([]int{2}, 3, -4)},
		{"a slice", job().call("z", "operator.getitem", ref("x"), program.Tuple{program.Ellipsis{}, program.Slice{Start: int64(1)}}), f32([]int{2, 1}, -2, -4)},
		{"a view in place", job().call("v", "operator.getitem", ref("x"), program.Tuple{program.Slice{}, int64(0)}).call("w", "Tensor.neg_", ref("v")).call("z", "torch.clone", ref("x")), f32([]int{2, 2}, -1, -2, -3, -4)},
		{"a list of tensors", job().call("z", "torch.cat", program.List{ref("x"), ref("y")}, int64(-1)), f32([]int{2, 4}, 1, -2, 10, 20, 3, -4, 30, 40)},
		{"in place", job().call("a", "Tensor.relu_", ref("x")).call("z", "torch.neg", ref("x")), f32([]int{2, 2}, -1, 0, -3, 0)},
		{"in place over gaps", job().call("a", "Tensor.add_", ref("t"), ref("y")).call("z", "torch.neg", ref("t")), f32([]int{2, 2}, -11, -18, -33, -36)},
		{"without gradients", job().call("z", "torch.neg", ref("x")), f32([]int{2, 2}, -1, 2, -3, 4)},
	} {
		out := runOK(t, w, c.job)
		if z := out.Values[len(out.Values)-1].Tensor; !equal(z, c.want) {
			t.Errorf("%s: %v, want %v", c.name, z, c.want)
		}
	}
	out := runOK(t, w, job().call("a", "torch.relu", ref("x")).call("b", "Tensor.neg_", ref("a")))
	if !equal(out.Values[0].Tensor, f32([]int{2, 2}, 1, 0, 3, 0)) || !equal(out.Values[1].Tensor, f32([]int{2, 2}, -1, 0, -3, 0)) {
		t.Errorf("a value is not as it was right after its call: %v", out.Values)
	}
}

// TestOwnWorkerDTypes: the kit's dtypes are PyTorch's, 16 bits included.
func TestOwnWorkerDTypes(t *testing.T) {
	w := openOwn(t, ownBinary(t, "worker.c"))
	for _, dt := range []tensor.DType{tensor.U8, tensor.I8, tensor.I16, tensor.I32, tensor.I64, tensor.F16, tensor.BF16, tensor.F32, tensor.F64} {
		x := tensor.New(dt, 4)
		for i, v := range []float64{0, 1, 3, 120} {
			x.Set(i, complex(v, 0))
		}
		if dt.IsDifferentiable() {
			x.Set(3, 1e-7) // subnormal in float16
		}
		out := runOK(t, w, new(builder).in("x", x, false).call("z", "torch.mul", program.Ref("x"), int64(1)).call("y", "torch.sum", program.Ref("x")))
		if z := out.Values[0].Tensor; !z.SameBits(x) {
			t.Errorf("%s: %v, want %v", dt, z, x)
		}
		if want := tensor.I64; !dt.IsDifferentiable() && out.Values[1].Tensor.DType() != want {
			t.Errorf("the sum of %s is %s", dt, out.Values[1].Tensor.DType())
		}
	}
}

func TestOwnWorkerGrowsTheRegion(t *testing.T) {
	w := openOwn(t, ownBinary(t, "worker.c"))
	n := startMemory/4 - 1024 // the input fits, the result does not
	x := tensor.New(tensor.F32, n)
	x.Set(n-1, 7)
	out := runOK(t, w, new(builder).in("x", x, false).call("z", "torch.relu", program.Ref("x")).call("y", "torch.relu", program.Ref("x")))
	for _, v := range out.Values {
		if !equal(v.Tensor, x) {
			t.Error("relu of a large tensor is wrong")
		}
	}
}

// TestOwnWorkerNamesItsReasons: what the kit and the functions lack, by name.
func TestOwnWorkerNamesItsReasons(t *testing.T) {
	w := openOwn(t, ownBinary(t, "worker.c"))
	x := f32([]int{2}, 1, 2)
	ref := func(name string) program.Ref { return program.Ref(name) }
	in := func() *builder { return new(builder).in("x", x, false) }
	for _, c := range []struct {
		reason string
		job    *builder
	}{
		{"there is no torch.nn.Linear", in().call("z", "torch.nn.Linear", int64(1), int64(2))},
		{"the argument alpha", in().call("z", "torch.add", ref("x"), ref("x")).kw("alpha", int64(2))},
		{"an argument at position 1", in().call("z", "torch.nn.functional.relu", ref("x"), true)},
		{"a call without the argument other", in().call("z", "torch.add", ref("x"))},
		{"the argument other is no tensor", in().call("z", "torch.add", ref("x"), "2")},
		{"the argument dim is no whole number", in().call("z", "torch.softmax", ref("x"), 0.5)},
		{"complex64", new(builder).in("x", tensor.New(tensor.C64, 2), false).call("z", "torch.relu", ref("x"))},
		{"a change in place of memory that another value may share", in().call("v", "torch.reshape", ref("x"), program.List{int64(2)}).call("z", "Tensor.neg_", ref("x"))},
		{"a change in place of memory that another value may share", in().call("v", "torch.reshape", ref("x"), program.List{int64(2)}).call("z", "Tensor.neg_", ref("v"))},
	} {
		out := run(t, w, c.job)
		if out.Status != backend.Unsupported || out.Message != c.reason {
			t.Errorf("%s %q, want unsupported %q", out.Status, out.Message, c.reason)
		}
	}
	for class, job := range map[string]*builder{
		"IndexError":   in().call("z", "torch.softmax", ref("x"), int64(1)),
		"RuntimeError": in().in("y", f32([]int{3}, 1, 2, 3), false).call("z", "torch.add", ref("x"), ref("y")),
	} {
		if out := run(t, w, job); out.Status != backend.Raised || out.Class != class {
			t.Errorf("%s %s %s, want %s", out.Status, out.Class, out.Message, class)
		}
	}
}

// TestOwnWorkerHasManyFunctions: the example is one that judges.
func TestOwnWorkerHasManyFunctions(t *testing.T) {
	source, err := os.ReadFile(ownSources + "worker.c")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), `{"torch.`); n < 30 {
		t.Errorf("%d functions", n)
	}
}
