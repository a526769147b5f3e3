package worker

import (
	"math"
	"math/cmplx"
	"regexp"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// onnxCalls are calls that ONNX has no operator of, written in several of its nodes.
var onnxCalls = []string{
	"torch.floor_divide(f, 0.5)", "torch.floor_divide(n, 3)", "torch.div(n, -2, rounding_mode=\"floor\")", "torch.remainder(f, -0.7)",
	"torch.nan_to_num(odd)", "torch.nan_to_num(odd, 1.0, 2.0, -3.0)", "torch.nansum(holes, 1)", "torch.nanmean(holes, 0)",
	"torch.nn.functional.normalize(f, 3.0, 0)", "torch.nn.functional.cosine_similarity(f, g, 1)", "torch.nn.functional.pairwise_distance(f, g)",
	"torch.cdist(f, g)", "torch.cdist(f, g, 1.0)", "torch.dist(f, g, 3)", "torch.norm(f, 3.0, 1)", "torch.linalg.norm(v, 0)", "torch.norm(f, float(\"inf\"), 0)",
	"torch.nn.functional.bilinear(f, g, cube)", "torch.nn.functional.binary_cross_entropy(p, q)", "torch.nn.functional.binary_cross_entropy_with_logits(f, p, pos_weight=w)",
	"torch.nn.functional.kl_div(f, p, reduction=\"batchmean\")", "torch.nn.functional.kl_div(f, g, log_target=True)", "torch.nn.functional.huber_loss(f, g, delta=0.3)",
	"torch.nn.functional.smooth_l1_loss(f, g, beta=0.5)", "torch.nn.functional.poisson_nll_loss(f, big, full=True)", "torch.nn.functional.gaussian_nll_loss(f, g, pair, full=True)",
	"torch.nn.functional.hinge_embedding_loss(f, signs, 0.5)", "torch.nn.functional.cosine_embedding_loss(f, g, turn, 0.1)",
	"torch.nn.functional.triplet_margin_loss(f, g, p, swap=True)", "torch.nn.functional.multi_margin_loss(f, to, p=2)", "torch.nn.functional.multilabel_soft_margin_loss(f, q)",
	"torch.nn.functional.cross_entropy(f, to, label_smoothing=0.2, weight=w)", "torch.nn.functional.cross_entropy(f, to, label_smoothing=0.2, ignore_index=2)",
	"torch.nn.functional.cross_entropy(f, p, label_smoothing=0.2)", "torch.log1p(small)", "torch.isclose(odd, odd, equal_nan=True)", "torch.isclose(f, g, 1.0)",
	"torch.nn.functional.unfold(image, (2, 3), padding=(1, 0), stride=2)", "torch.logspace(0.0, 2.0, 5)", "torch.tril_indices(3, 4, 1)", "torch.triu_indices(3, 2, -1)",
	"torch.cartesian_prod(v, w)", "torch.combinations(v, 2)", "torch.combinations(v, 2, True)", "torch.baddbmm(cube, cube, cube, beta=0.5, alpha=2)",
	"torch.addbmm(f, slab, cube, beta=0)", "torch.addmv(v, square, w)", "torch.addr(square, v, w)", "torch.kron(f, square)",
	"torch.tensordot(f, cube, 1)", "torch.tensordot(f, slab, ((0, 1), (1, 2)))", "torch.inner(f, g)", "torch.linalg.multi_dot((f, square, square))",
	"torch.block_diag(f, v)", "torch.cross(f, g, 1)", "torch.diag_embed(f, -1)", "torch.diag_embed(f, 1, 0, 2)", "torch.diff(f, 2, 1, prepend=g)",
	"torch.kthvalue(f, 2, 1)", "torch.median(f)", "torch.median(f, 0)", "torch.quantile(f, 0.3, 1, True)", "torch.mode(n, 1)", "torch.cummax(f, 1)",
	"torch.cumprod(f, 0)", "torch.logcumsumexp(f, 1)", "torch.searchsorted(steps, f, right=True)", "torch.bucketize(f, steps)", "torch.bincount(to, pair, 5)", "torch.bincount(byte, pair, 5)", "torch.randint(1, (3,))", "torch.randint_like(f, 1)", "torch.nn.functional.softmax(f)",
	"torch.nn.functional.log_softmax(cube)", "torch.meshgrid(v, v)", "torch.nn.functional.softmin(v)",
	"torch.index_add(square, 0, to, f, alpha=0.5)", "torch.index_copy(square, -2, to, f)", "torch.index_fill(f, 1, to, 2.5)",
	"torch.index_reduce(square, 0, to, f, \"amax\")",
	"torch.histc(f, 4, -1.0, 1.0)", "torch.unique_consecutive(n, True, True)", "torch.masked_scatter(f, above, g)", "f.scatter_reduce(0, bits, g, \"mean\", include_self=False)",
	"torch.nn.functional.pad(image, (1, 2, 0, 1), \"circular\")", "torch.nn.functional.adaptive_avg_pool2d(image, (2, 3))", "torch.nn.functional.adaptive_max_pool2d(image, 3)",
	"torch.nn.functional.adaptive_max_pool1d(f, 2, True)", "torch.nn.functional.avg_pool2d(image, 2, 2, 1, True, divisor_override=3)",
	"torch.nn.functional.conv2d(image, kernel, padding=\"same\", dilation=2)", "torch.bitwise_left_shift(bits, 2)", "torch.bitwise_right_shift(n, 1)",
	"f[:, mask]", "torch.nn.functional.one_hot(to)", "torch.arange(3, dtype=torch.uint8)", "torch.tensor([whole, 2.0])", "torch.embedding(square, to, 1)",
	"torch.full((2,), -2, dtype=torch.uint8)", "torch.combinations(v, 0)", "torch.combinations(v, 0, True)", "torch.take_along_dim(cube, column, 1)",
	"torch.take_along_dim(row, column, -1)", "torch.einsum(\"ij->i\", [few])",
}

const onnxGiven = `f = tensor((2, 3), torch.float32, [0.5, -1.25, 0.75, -0.125, 2.0, -0.625])
g = tensor((2, 3), torch.float32, [1.5, -1.0, 0.25, -0.5, -1.75, 0.375])
p = tensor((2, 3), torch.float32, [0.25, 0.5, 0.125, 0.75, 0.375, 0.875])
q = tensor((2, 3), torch.float32, [0.0, 1.0, 1.0, 0.5, 1.0, 0.0])
big = tensor((2, 3), torch.float32, [3.0, 1.0, 5.0, 2.0, 0.5, 4.0])
signs = tensor((2, 3), torch.float32, [1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
small = tensor((4,), torch.float32, [1e-6, -1e-7, 0.5, 300.0])
odd = tensor((4,), torch.float32, [float("nan"), 2.0, float("inf"), float("-inf")])
steps = tensor((4,), torch.float32, [-1.0, -0.125, 0.5, 1.0])
n = tensor((2, 3), torch.int64, [4, 4, -7, 3, -2, 3])
to = tensor((2,), torch.int64, [2, 0])
byte = tensor((2,), torch.uint8, [2, 0])
mask = tensor((3,), torch.bool, [True, False, True])
cube = tensor((3, 3, 3), torch.float32, [0.5, 1.0, -0.5, 0.25, 2.0, -1.0, 0.75, -0.25, 1.5, 1.0, -2.0, 0.5, 0.125, 1.25, -0.75, 2.5, 0.5, -1.5, -0.5, 0.25, 1.0, 1.75, -1.0, 0.5, -0.125, 0.75, 2.0])
v = tensor((3,), torch.float32, [0.5, -1.25, 0.75])
w = tensor((3,), torch.float32, [0.25, 1.5, 0.5])
few = tensor((2, 3), torch.int32, [1, 0, 2, -1, 1, 0])
column = tensor((1, 2, 1), torch.int64, [2, 0])
row = tensor((2, 1, 3), torch.float32, [0.5, 1.0, -0.5, 0.25, 2.0, -1.0])
pair = tensor((2,), torch.float32, [0.25, 0.75])
turn = tensor((2,), torch.float32, [1.0, -1.0])
whole = tensor((), torch.float32, [0.5])
holes = tensor((2, 2), torch.float32, [float("nan"), 2.0, 3.0, 0.5])
bits = tensor((2, 3), torch.int64, [1, 0, 1, 1, 0, 0])
above = tensor((2, 3), torch.bool, [True, False, True, False, True, True])
square = tensor((3, 3), torch.float32, [0.5, 1.0, -0.5, 0.25, 2.0, -1.0, 0.75, -0.25, 1.5])
slab = tensor((3, 2, 3), torch.float32, [0.5, 1.0, -0.5, 0.25, 2.0, -1.0, 0.75, -0.25, 1.5, 1.0, -2.0, 0.5, 0.125, 1.25, -0.75, 2.5, 0.5, -1.5])
image = tensor((1, 1, 4, 5), torch.float32, [0.5, 1.0, -0.5, 0.25, 2.0, -1.0, 0.75, -0.25, 1.5, 1.0, -2.0, 0.5, 0.125, 1.25, -0.75, 2.5, 0.5, -1.5, -0.5, 0.25])
kernel = tensor((1, 1, 2, 2), torch.float32, [0.5, -1.0, 2.0, 0.25])
`

// TestONNXCompositions: what ONNX has no operator of, written in several of its
// nodes, gives what PyTorch does, call by call and as one model.
func TestONNXCompositions(t *testing.T) {
	w := hosted(t, "onnx:ort", "")
	reference := torch(t)
	graph, err := w.In("graph")
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range onnxCalls {
		p, err := program.Parse("p.py", onnxGiven+"y = "+call+"\n")
		if err != nil {
			t.Errorf("%s: %v", call, err)
			continue
		}
		job := backend.NewJob(p)
		want, err := reference.Run(t.Context(), job)
		if err != nil || want.Status != backend.OK {
			t.Errorf("%s: PyTorch: %v, %+v", call, err, want)
			continue
		}
		for _, of := range []backend.Backend{w, graph} {
			got, err := of.Run(t.Context(), job)
			if err != nil || got.Status != backend.OK {
				t.Errorf("%s: %v, %s %s", call, err, got.Status, got.Message)
				continue
			}
			if x, y := lastOf(got), lastOf(want); !slices.EqualFunc(x, y, fewRoundings) {
				t.Errorf("%s: %v, want %v", call, x, y)
			}
		}
	}
}

// TestONNXPartsHaveNamesApart: the adapter is made of several classes, of which one would
// hide the other's method.
func TestONNXPartsHaveNamesApart(t *testing.T) {
	seen := map[string]string{}
	for _, part := range []string{"words", "losses", "order", "rules"} {
		text, err := sources.ReadFile("py/plumb_onnx" + part + ".py")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^    def (\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			if was := seen[m[1]]; was != "" {
				t.Errorf("%s is in %s and %s", m[1], was, part)
			}
			seen[m[1]] = part
		}
	}
	if len(seen) < 50 {
		t.Errorf("%d methods are found", len(seen))
	}
}

// TestONNXTruncates: toward zero, whose sign is kept, though ONNX has neither an
// operator for it nor in this engine a Where that tells zeros apart.
func TestONNXTruncates(t *testing.T) {
	x := []float64{-0.5, math.Copysign(0, -1), 0, 0.5, -2.75, 3.25, 1e-40, -1e-40, math.Inf(1), math.Inf(-1), 3e38}
	out := run(t, hosted(t, "onnx:ort", ""), new(builder).in("x", f32([]int{len(x)}, x...), false).call("y", "torch.trunc", program.Ref("x")))
	if out.Status != backend.OK {
		t.Fatalf("%+v", out)
	}
	for i, got := range tensor.Data[float32](out.Values[0].Tensor) {
		if want := float32(math.Trunc(x[i])); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("trunc(%g) is %g, want %g", x[i], got, want)
		}
	}
}

// TestONNXFloorDividesZeros: 0 divided has the sign of the quotient.
func TestONNXFloorDividesZeros(t *testing.T) {
	x, y := []float64{0, math.Copysign(0, -1), 0, math.Copysign(0, -1), 1, -1, 5}, []float64{-2, 2, 2, -2, 2, 2, 0}
	b := new(builder).in("x", f32([]int{len(x)}, x...), false).in("y", f32([]int{len(y)}, y...), false)
	out := run(t, hosted(t, "onnx:ort", ""), b.call("z", "torch.floor_divide", program.Ref("x"), program.Ref("y")))
	if out.Status != backend.OK {
		t.Fatalf("%+v", out)
	}
	for i, got := range tensor.Data[float32](out.Values[0].Tensor) {
		if want := float32(math.Floor(x[i] / y[i])); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%g // %g is %g, want %g", x[i], y[i], got, want)
		}
	}
}

// TestONNXAttributesAreSingle: a float64 that ONNX would round to the float32 of an
// attribute is none of its calls.
func TestONNXAttributesAreSingle(t *testing.T) {
	w := hosted(t, "onnx:ort", "")
	x := tensor.New(tensor.F64, 2, 3)
	copy(tensor.Data[float64](x), []float64{0.5, 1, -2, 3, 0.25, 1})
	for eps, want := range map[float64]backend.Status{0.5: backend.OK, 0.1: backend.Unsupported} {
		out := run(t, w, new(builder).in("x", x, false).call("y", "torch.nn.functional.layer_norm", program.Ref("x"), program.List{int64(3)}).kw("eps", eps))
		if out.Status != want {
			t.Errorf("eps %g: %+v, want %s", eps, out, want)
		}
	}
}

// lastOf returns the tensors that the last call gave.
func lastOf(o *backend.Outcome) []*tensor.Tensor {
	v := o.Values[len(o.Values)-1]
	found := []*tensor.Tensor{v.Tensor}
	for _, part := range v.Tuple {
		found = append(found, part.Tensor)
	}
	return found
}

// fewRoundings reports whether tensors have one dtype and shape, and elements that differ
// by a few roundings of float32.
func fewRoundings(x, y *tensor.Tensor) bool {
	if x == nil || y == nil {
		return x == y
	}
	if x.DType() != y.DType() || !slices.Equal(x.Shape(), y.Shape()) {
		return false
	}
	for i := range y.Len() {
		a, b := x.At(i), y.At(i)
		if a != b && !(cmplx.IsNaN(a) && cmplx.IsNaN(b)) && !(cmplx.Abs(a-b) <= 4e-6*math.Max(cmplx.Abs(b), 1e-3)) {
			return false
		}
	}
	return true
}
