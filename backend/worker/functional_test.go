package worker

import (
	"fmt"
	"math/cmplx"
	"path/filepath"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// framework is a framework under one of its adapters, where it is installed.
func framework(t *testing.T, name, adapter string) *Worker {
	t.Helper()
	path, _, err := Find(name, "")
	if err != nil {
		t.Skip("needs a Python with it: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), Config{Framework: adapter, Python: path, Env: []string{"PYTHONPATH=" + dir}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// TestJAXVmap: a program that jax.vmap batches gives values and gradients of
// both orders as its calls do; a fault in its lanes is seen.
func TestJAXVmap(t *testing.T) {
	linear := func() *builder {
		return new(builder).in("x", f32([]int{2, 3}, 1, -2, 3, 0.5, 2, -1), true).in("w", f32([]int{2, 3}, 1, 2, 3, 4, 5, 6), true).
			call("y", "torch.nn.functional.linear", ref("x"), ref("w")).call("z", "Tensor.mul_", ref("y"), 2.0).
			call("v", "torch.max", ref("z"), int64(1)).call("s", "operator.getitem", ref("v"), int64(0)).back("s", program.Fill{})
	}
	for adapter, wrong := range map[string]bool{"jax": false, "wrongjax": true} {
		w := framework(t, "jax", adapter)
		for name, make := range map[string]func() *builder{"cubed": cubed, "linear": linear} {
			if names := differing(runOK(t, w, make()), inTransform(t, w, "vmap", make())); (names != nil) != wrong {
				t.Errorf("%s under vmap of %s: %v", name, adapter, names)
			}
		}
	}
}

// TestJAXVmapLacks demands a reason.
func TestJAXVmapLacks(t *testing.T) {
	w := framework(t, "jax", "jax")
	x := f32([]int{3}, 1, -2, 3)
	for reason, b := range map[string]*builder{
		"no random calls":     new(builder).in("x", x, false).call("y", "torch.rand_like", ref("x")),
		"concrete":            new(builder).in("x", x, false).call("y", "torch.nonzero", ref("x")),
		"no tensors to batch": new(builder).call("z", "torch.ones", int64(2)),
	} {
		if out := inTransform(t, w, "vmap", b); out.Status != backend.Unsupported || !strings.Contains(out.Message, reason) {
			t.Errorf("%s %s, want %s", out.Status, out.Message, reason)
		}
	}
}

// TestDrawnAlike: what a program draws is the same when it is differentiated.
func TestDrawnAlike(t *testing.T) {
	for _, name := range []string{"jax", "tensorflow"} {
		t.Run(name, func(t *testing.T) {
			w := framework(t, name, name)
			for _, mode := range []string{"eager", map[string]string{"jax": "jit", "tensorflow": "function"}[name]} {
				out := inTransform(t, w, mode, new(builder).in("x", f32([]int{3}, 1, 1, 1), true).call("r", "torch.rand_like", ref("x")).
					call("q", "torch.rand_like", ref("x")).call("y", "torch.mul", ref("r"), ref("x")).back("y", program.Fill{}))
				if out.Status != backend.OK {
					t.Fatal(out.Message)
				}
				first, second, grad := numbers(out.Values[0].Tensor), numbers(out.Values[1].Tensor), numbers(out.Slots[0].Tensor)
				if first != grad || first == second {
					t.Errorf("%s: %s and %s are drawn, the gradient is %s", mode, first, second, grad)
				}
			}
		})
	}
}

// counted is a tensor of small integers.
func counted(shape []int) *tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i%7 - 3)
	}
	return f32(shape, values...)
}

// TestTensorFlowLayouts: convolutions are the same with the channels of images first.
func TestTensorFlowLayouts(t *testing.T) {
	w := framework(t, "tensorflow", "tensorflow")
	for n := 1; n <= 3; n++ {
		image, kernel := []int{1, 2, 4, 5, 3}[:2+n], []int{3, 2, 2, 2, 2}[:2+n]
		b := func() *builder {
			return new(builder).in("x", counted(image), true).in("w", counted(kernel), true).in("b", counted([]int{3}), true).
				call("y", fmt.Sprintf("torch.nn.functional.conv%dd", n), ref("x"), ref("w"), ref("b")).kw("padding", int64(1)).kw("stride", int64(2)).back("y", program.Fill{})
		}
		if names := differing(runOK(t, w, b()), inTransform(t, w, "nchw", b())); names != nil {
			t.Errorf("conv%dd: %v", n, names)
		}
	}
}

// TestWordsOfTables: calls that a table has words for give what PyTorch's give.
func TestWordsOfTables(t *testing.T) {
	own := torch(t)
	whole := tensor.New(tensor.I64, 2, 2, 3)
	for i := range whole.Len() {
		whole.Set(i, complex(float64(i), 0))
	}
	x, index := f32([]int{2, 2, 3}, 1, -2, 3, 0.5, 2, -1, 4, 5, -6, 7, 0, 8), tensor.New(tensor.I64, 1, 2, 3)
	hermitian := tensor.New(tensor.C64, 2, 2)
	for i, v := range []complex128{2, 1i, -1i, 3} {
		hermitian.Set(i, v)
	}
	given := func() *builder { return new(builder).in("x", x, false).in("n", whole, false) }
	chosen := func() *builder { // the dimension of a softmax is not given
		return given().call("y", "torch.nn.functional.softmax", ref("x")).call("z", "torch.sum", ref("x"), int64(0)).
			call("v", "torch.nn.functional.log_softmax", ref("z")).call("w", "torch.nn.functional.softmin", ref("z"))
	}
	for name, programs := range map[string][]*builder{
		"jax": {
			new(builder).in("v", f32([]int{2}, 1, 2), false).in("w", f32([]int{3}, 3, 4, 5), false).
				call("y", "torch.meshgrid", ref("v"), ref("w")).call("z", "operator.getitem", ref("y"), int64(1)),
			given().in("q", f32([]int{2}, 0.25, 0.5), false).call("y", "torch.quantile", ref("x"), ref("q"), int64(1), true).call("z", "torch.nanquantile", ref("x"), 0.75),
			given().call("a", "operator.mul", ref("x"), ref("x")).call("y", "torch.cross", ref("a"), ref("x")),
		},
		"tensorflow": {
			chosen(),
			given().call("y", "Tensor.clone", ref("n")).call("s", "operator.setitem", ref("y"), int64(0), 1.5).call("z", "torch.add", ref("y"), int64(0)),
			given().call("y", "torch.constant_pad_nd", ref("n"), program.List{int64(1), int64(0)}, 1.5),
			new(builder).in("h", hermitian, false).call("y", "torch.linalg.eigvalsh", ref("h")),
			given().call("y", "torch.dsplit", ref("x"), program.List{int64(1), int64(2)}),
			given().call("y", "torch.hsplit", ref("x"), program.List{int64(1)}),
			given().call("y", "torch.vsplit", ref("x"), program.List{int64(1)}),
			given().call("y", "torch.atleast_1d", program.List{ref("x"), ref("n")}),
			given().call("y", "torch.atleast_3d", program.List{ref("x"), ref("n")}),
		},
		"mlx": {
			chosen(),
			given().call("y", "torch.dsplit", ref("x"), program.List{int64(1), int64(2)}).call("z", "torch.vsplit", ref("x"), program.List{int64(-1)}),
			given().call("y", "torch.take_along_dim", ref("x"), ref("n")),
			given().call("y", "torch.hsplit", ref("x"), program.List{int64(1), int64(5)}),
			new(builder).in("v", f32([]int{4}, 1, 2, 3, 4), false).call("y", "torch.hsplit", ref("v"), int64(2)).call("z", "torch.hsplit", ref("v"), program.List{int64(3), int64(1)}),
		},
		"mindspore": {
			chosen(),
			given().call("y", "torch.take_along_dim", ref("x"), ref("n")),
			given().call("y", "torch.bitwise_not", ref("n")).call("z", "operator.invert", ref("n")),
			given().call("y", "torch.nn.functional.pad", ref("x"), program.List{int64(1), int64(2)}, "circular"),
			given().call("y", "torch.nn.functional.lp_pool1d", ref("x"), 2.0, int64(2), program.List{int64(1)}),
			given().call("y", "torch.nn.functional.one_hot", ref("n")),
			given().in("v", f32([]int{3}, 1, 2, 3), false).call("y", "torch.broadcast_tensors", ref("v"), ref("x")),
			given().in("w", f32([]int{1, 2, 1, 2}, 1, -2, 0.5, 3), false).call("y", "torch.nn.functional.conv2d", ref("x"), ref("w")),
			given().in("w", f32([]int{2, 1, 2}, 1, -2, 0.5, 3), false).in("b", f32([]int{1}, 0.25), false).
				call("y", "torch.nn.functional.conv_transpose1d", ref("x"), ref("w"), ref("b"), int64(2)).kw("padding", int64(1)),
		},
		"tinygrad": {
			chosen(),
			given().call("y", "operator.eq", 2.0, ref("x")).call("l", "operator.ne", 2.0, ref("x")).call("m", "operator.lt", 2.0, ref("x")).call("o", "operator.ge", 2.0, ref("x")),
			given().call("y", "torch.clamp_min", ref("x"), 1.0).call("z", "torch.clamp_max", ref("y"), 4.0).call("v", "torch.clamp_max", ref("z"), ref("x")).call("w", "torch.clamp_min", ref("x"), ref("v")),
			given().call("y", "torch.constant_pad_nd", ref("x"), program.List{int64(1), int64(0)}, 1.5),
			new(builder).in("h", tensor.Float64s(tensor.BF16, []int{1, 1, 2, 3}, 1, -2, 0.5, 3, 4, -5), false).call("y", "Tensor.contiguous", ref("h")),
			given().in("i", tensor.New(tensor.I64, 2), false).call("y", "torch.index_select", ref("x"), int64(-1), ref("i")),
			given().call("y", "torch.group_norm", ref("x"), int64(1)).call("z", "torch.cummax", ref("x"), int64(2)),
			given().in("w", f32([]int{2, 1, 2}, 1, -2, 0.5, 3), false).call("y", "torch.conv_transpose1d", ref("x"), ref("w"), nil, int64(2)),
		},
		"oneflow": {
			given().call("y", "torch.broadcast_to", ref("x")).kw("size", program.List{int64(2), int64(2), int64(2), int64(3)}),
			given().in("i", index, false).call("y", "Tensor.clone", ref("x")).call("z", "Tensor.scatter_", ref("y"), int64(0), ref("i")).kw("value", 2.5),
			given().call("y", "Tensor.split", ref("x")).kw("split_size", int64(2)).kw("dim", int64(-1)).call("z", "torch.split").kw("tensor", ref("x")).kw("split_size_or_sections", program.List{int64(1), int64(2)}).kw("dim", int64(2)),
			given().call("y", "torch.constant_pad_nd", ref("x"), program.List{int64(1), int64(0)}, 1.5).call("z", "torch.ravel", ref("y")).
				call("v", "torch.split_with_sizes", ref("x"), program.List{int64(1), int64(2)}, int64(2)).
				call("w", "Tensor.split_with_sizes", ref("x")).kw("split_sizes", program.List{int64(1), int64(1)}).
				call("u", "torch.nn.functional.upsample_nearest", ref("x"), int64(5)),
			given().call("y", "torch.adaptive_max_pool1d", ref("x"), int64(2)),
			given().call("y", "torch.linalg.diagonal", ref("x")).kw("offset", int64(1)).call("z", "torch.linalg.diagonal", ref("x")).kw("dim1", int64(0)),
		},
		"paddle": {
			chosen(),
			given().call("y", "torch.mul", ref("x"), 2.0).call("z", "Tensor.detach_", ref("y")).call("v", "torch.transpose", ref("z"), int64(0), int64(-1)),
			given().call("y", "Tensor.transpose_", ref("x"), int64(0), int64(2)).call("z", "torch.sum", ref("x"), int64(0)),
			given().call("y", "torch.sum", ref("x")).call("z", "torch.mean", ref("x")).call("w", "Tensor.copy_", ref("y"), ref("z")),
			new(builder).in("i", tensor.Of(tensor.I64, []int{2}, []int64{3, -4}), false).call("y", "torch.addcmul", ref("i"), ref("i"), ref("i")).kw("value", 1.5),
			new(builder).in("a", f32([]int{2, 2}, 4, 0, 0, 0.5), false).call("y", "torch.linalg.pinv", ref("a")).kw("rtol", 0.25),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := framework(t, name, name)
			for _, b := range programs {
				got, want := runOK(t, w, b), runOK(t, own, b)
				for i, v := range want.Values {
					nearlyValue(t, got.Values[i], v)
				}
			}
		})
	}
}

// TestAttentionWithoutBatch: Paddle has none, and an error of its code is no finding.
func TestAttentionWithoutBatch(t *testing.T) {
	w := framework(t, "paddle", "paddle")
	for rank, status := range map[int]backend.Status{2: backend.Unsupported, 3: backend.OK} {
		q := tensor.New(tensor.F32, []int{1, 2, 3}[3-rank:]...)
		out := run(t, w, new(builder).in("q", q, false).call("y", "torch.nn.functional.scaled_dot_product_attention", ref("q"), ref("q"), ref("q")))
		if out.Status != status {
			t.Errorf("of %d dimensions: %+v, want %s", rank, out, status)
		}
	}
}

// TestPowersOfNumbers: Paddle's power of a number is another kernel than that of a tensor,
// whose gradient of complex numbers is wrong.
func TestPowersOfNumbers(t *testing.T) {
	own, w := torch(t), framework(t, "paddle", "paddle")
	z := tensor.New(tensor.C64, 2)
	z.Set(0, 0.75+1i)
	z.Set(1, -1+0.5i)
	b := new(builder).in("z", z, true).call("y", "torch.pow", ref("z"), 1.5).back("y", program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: 5})
	got, want := runOK(t, w, b).Grad("z"), runOK(t, own, b).Grad("z")
	for i := range want.Len() {
		if cmplx.Abs(got.At(i)-want.At(i)) > 1e-5 {
			t.Errorf("the gradient is %s, want %s", numbers(got), numbers(want))
		}
	}
}

// TestParametersOfWhatIsDetached: JAX detaches an array as itself, which has the
// gradient of the parameter made of it no less its own.
func TestParametersOfWhatIsDetached(t *testing.T) {
	w := framework(t, "jax", "jax")
	out := runOK(t, w, new(builder).in("x", f32([]int{2}, 3, 5), true).call("d", "Tensor.detach", ref("x")).call("p", "torch.nn.Parameter", ref("d")).
		call("z", "torch.mul", ref("p"), 3.0).call("y", "torch.add", ref("z"), ref("x")).back("y", program.Fill{}))
	if x, p := numbers(out.Grad("x")), numbers(out.Grad("p")); x != "1 1" || p != "3 3" {
		t.Errorf("x has the gradient %s, p %s", x, p)
	}
}

// TestSecondGradientsOfElements: MindSpore has none of an element, and afterwards in its
// process no first one.
func TestSecondGradientsOfElements(t *testing.T) {
	w := framework(t, "mindspore", "mindspore")
	x := func() *builder {
		return new(builder).in("x", f32([]int{2}, 3, 5), true).call("a", "operator.getitem", ref("x"), int64(0)).
			call("b", "operator.getitem", ref("x"), int64(-1)).call("y", "torch.mul", ref("a"), ref("b"))
	}
	second := x().call("g", "torch.autograd.grad", ref("y"), ref("x")).kw("create_graph", true).call("f", "operator.getitem", ref("g"), int64(0)).
		call("s", "torch.mul", ref("f"), ref("f")).back("s", program.Fill{})
	for name, c := range map[string]struct {
		b    *builder
		want string
	}{"second": {second, "6 10"}, "first": {x().back("y", program.Fill{}), "5 3"}} {
		if out := runOK(t, w, c.b); numbers(out.Slots[0].Tensor) != c.want {
			t.Errorf("%s: %s, want %s", name, numbers(out.Slots[0].Tensor), c.want)
		}
	}
}

// TestScalarsAreDrawn: a size without dimensions is one, not none.
func TestScalarsAreDrawn(t *testing.T) {
	w := framework(t, "mindspore", "mindspore")
	for _, target := range []string{"torch.rand", "torch.randn"} {
		out := runOK(t, w, new(builder).call("y", target, program.List{}))
		if n := out.Values[0].Tensor.Dim(); n != 0 {
			t.Errorf("%s of no dimensions has %d", target, n)
		}
	}
}

// TestCotangentsHaveTheirDType: tinygrad leaves out a cast that another follows, and the
// cotangent of a half is rounded nonetheless.
func TestCotangentsHaveTheirDType(t *testing.T) {
	w := framework(t, "tinygrad", "tinygrad")
	x := tensor.Float64s(tensor.F64, []int{3}, 1, 2, 3)
	out := runOK(t, w, new(builder).in("x", x, true).call("y", "Tensor.half", ref("x")).back("y", program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: 5}))
	g := out.Grad("x")
	for i := range g.Len() {
		if half := tensor.Float64s(tensor.F16, []int{1}, real(g.At(i))); half.At(0) != g.At(i) {
			t.Errorf("the gradient %v is no half", g.At(i))
		}
	}
}

// TestCorrelationsAreOfFloat32: mindspore.numpy.corrcoef returns float32 whatever it is
// given, as its documentation says: of another dtype it is not there.
func TestCorrelationsAreOfFloat32(t *testing.T) {
	w := framework(t, "mindspore", "mindspore")
	for d, want := range map[tensor.DType]backend.Status{tensor.F32: backend.OK, tensor.F64: backend.Unsupported} {
		x := tensor.Float64s(d, []int{2, 3}, 1, 2, 4, 3, 1, 0)
		if out := run(t, w, new(builder).in("x", x, false).call("y", "torch.corrcoef", ref("x"))); out.Status != want {
			t.Errorf("%s: %v, want %v", d, out.Status, want)
		}
	}
}

// TestSumsOfADType: sums and products have the integer dtype that is asked for, where a
// framework of its own accord has another, and a choice of two numbers that of numbers.
func TestSumsOfADType(t *testing.T) {
	for name, calls := range map[string]string{"mlx": "sum int16 prod int16 where int64", "tinygrad": "sum int16", "paddle": "sum int32", "mindspore": "sum int16 prod int32 cumprod int32"} {
		t.Run(name, func(t *testing.T) {
			w := framework(t, name, name)
			words := strings.Fields(calls)
			for i := 0; i < len(words); i += 2 {
				want, err := tensor.ParseDType(words[i+1])
				if err != nil {
					t.Fatal(err)
				}
				b := new(builder).in("x", tensor.Float64s(tensor.I64, []int{2}, -3, 2), false)
				switch words[i] {
				case "where":
					b.call("m", "torch.gt", ref("x"), int64(0)).call("y", "torch.where", ref("m"), int64(1), int64(0))
				case "cumprod":
					b.call("y", "torch.cumprod", ref("x"), int64(0)).kw("dtype", want)
				default:
					b.call("y", "torch."+words[i], ref("x")).kw("dtype", want)
				}
				out := run(t, w, b)
				if out.Status != backend.OK {
					t.Errorf("%s: %+v", words[i], out)
				} else if got := out.Values[len(out.Values)-1].Tensor.DType(); got != want {
					t.Errorf("%s has %s, want %s", words[i], got, want)
				}
			}
		})
	}
}
