package program

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"plumb/op"
	"plumb/tensor"
)

func f(v float64) *float64 { return &v }

func example() *Program {
	return &Program{
		Name: "suites/conv.py::test_x", Seed: 1<<63 + 5, DType: tensor.F64, RTol: f(1e-4), ATol: f(0), Tolerance: Default, Shapes: true, Draws: true,
		Second: Fill{Dist: Uniform, Hi: 1, Key: 9},
		Inputs: []Input{
			{Name: "x0", DType: tensor.F32, Shape: []int{2, 3}, Strides: []int{1, 2}, Fill: Fill{Dist: Uniform, Lo: -1, Hi: 1, Key: math.MaxUint64, Kinks: true}, RequiresGrad: true},
			{Name: "x1", DType: tensor.I64, Shape: []int{}, Fill: Fill{Dist: Integer, Lo: -10, Hi: 11, Key: 7, Special: AllSpecials}},
			{Name: "x5", DType: tensor.F16, Shape: []int{9}, Fill: Fill{Dist: Uniform, Hi: 1, Key: 7, Special: Infs | Extremes}},
			{Name: "x2", DType: tensor.BF16, Shape: []int{3}, Fill: Fill{Dist: Literal, Data: tensor.Float64s(tensor.BF16, []int{3}, 1, math.Inf(-1), 0.10009765625)}},
			{Name: "x3", DType: tensor.Bool, Shape: []int{2}, Fill: Fill{Dist: Literal, Data: tensor.Float64s(tensor.Bool, []int{2}, 1, 0)}},
			{Name: "x4", DType: tensor.C64, Shape: []int{1}, Fill: Fill{Dist: Literal, Data: tensor.Of(tensor.C64, []int{1}, []complex64{complex(0.1, -2)})}},
		},
		Calls: []Call{
			{Result: "m0", Target: "torch.nn.Conv2d", Args: []any{int64(3), int64(4)}, Kwargs: []Kwarg{{"kernel_size", Tuple{int64(3), int64(1)}}, {"bias", false}}},
			{Result: "t0", Target: "Module.train", Args: []any{Ref("m0"), true}},
			{Result: "y0", Target: "Module.__call__", Args: []any{Ref("m0"), Ref("x0")}},
			{Result: "y1", Target: "operator.mul", Args: []any{-2.0, Ref("y0")}},
			{Result: "y2", Target: "operator.getitem", Args: []any{Ref("y1"), Tuple{Slice{nil, int64(-1), nil}, nil, Ellipsis{}, Slice{nil, nil, int64(2)}}}},
			{Result: "y3", Target: "operator.getitem", Args: []any{Ref("y1"), Tuple{int64(0)}}},
			{Result: "y4", Target: "operator.getitem", Args: []any{Ref("y1"), int64(0)}},
			{Result: "y5", Target: "Tensor.sum", Args: []any{Ref("y1")}, Kwargs: []Kwarg{{"dim", List{int64(0), int64(1)}}, {"dtype", tensor.F64}}},
			{Result: "y6", Target: "torch.cat", Args: []any{List{Ref("y5"), Ref("y4")}, int64(-1)}},
			{Result: "y7", Target: "getattr", Args: []any{Ref("y6"), "values"}},
			{Result: "y8", Target: "operator.neg", Args: []any{Ref("y7")}},
			{Result: "y9", Target: "torch.full", Args: []any{Tuple{int64(2)}, math.NaN()}, Kwargs: []Kwarg{{"v", complex(1, math.Inf(-1))}, {"memory_format", tensor.ChannelsLast}, {"s", "a\"'\n€"}}},
			{Result: "y10", Target: "Module.__call__", Args: []any{Ref("y7"), Tuple(nil), Slice{int64(1), nil, nil}, int64(math.MinInt64)}},
			{Result: "y11", Target: "operator.pow", Args: []any{Ref("y7"), 1e300}},
			{Result: "y12", Target: "operator.neg", Args: []any{int64(3)}},
			{Result: "m1", Target: "torch.nn.Parameter", Args: []any{Ref("x0")}},
			{Result: "y13", Target: "Tensor.sum", Args: []any{Ref("m1")}},
		},
		Backward: []Backward{{Value: "y6", Cotangent: Fill{Dist: Uniform, Hi: 1, Key: 3, Round: tensor.F16}}, {Value: "y8", Auto: true}, {Value: "y1"}},
	}
}

func TestTextRoundTrip(t *testing.T) {
	p := example()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	text := p.String()
	q, err := Parse("p.py", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got := q.String(); got != text {
		t.Fatalf("second text differs:\n%s\n---\n%s", text, got)
	}
	if p.ID() == (&Program{}).ID() || len(p.ID()) != 16 {
		t.Errorf("ID %s", p.ID())
	}
	for i := range p.Inputs {
		if !p.Inputs[i].Materialize().SameBits(q.Inputs[i].Materialize()) {
			t.Errorf("input %d has other bits after a round trip", i)
		}
		q.Inputs[i].Fill.Data, p.Inputs[i].Fill.Data = nil, nil
	}
	q.Calls[11], p.Calls[11] = Call{}, Call{} // holds a NaN
	for i := range q.Calls {
		q.Calls[i].Place = ""
	}
	if !reflect.DeepEqual(p, q) {
		t.Errorf("round trip changed the program:\n%#v\n%#v", p, q)
	}
}

// TestShapesRoundTrip: a list of shapes is written, read and handed to an operator.
func TestShapesRoundTrip(t *testing.T) {
	sig, err := op.ParseSig("f(int[][] shapes) -> Tensor")
	if err != nil {
		t.Fatal(err)
	}
	shapes := [][]int{{1, 2}, {}, {3}}
	p := &Program{Calls: []Call{{Result: "y", Target: "plumb.f", Args: []any{FromOp(shapes)}}}}
	q, err := Parse("p.py", p.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	args, _, err := q.Calls[0].OpArgs(nil)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := sig.Bind(args, nil, false)
	if err != nil || !reflect.DeepEqual(bound.Shapes("shapes"), shapes) {
		t.Errorf("%v, %v of\n%s", bound, err, p)
	}
}

// TestStepRoundTrip keeps the optimizer's step in the text.
func TestStepRoundTrip(t *testing.T) {
	p := &Program{Name: "t", Step: Step{LR: 0.125, Momentum: 0}}
	q, err := Parse("p.py", p.String())
	if err != nil || q.Step != p.Step || !strings.Contains(p.String(), "sgd=(0.125, 0.0)") {
		t.Errorf("%v, %v of\n%s", q, err, p)
	}
	for _, bad := range []string{"3", "(0.5,)", "(0.0, 0.5)", "(0.5, 1.0)", `("a", 0.5)`} {
		if _, err := Parse("p.py", "case(\"t\", sgd="+bad+")\n"); err == nil || !strings.Contains(err.Error(), "expected a learning rate") {
			t.Errorf("sgd=%s: %v", bad, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"x = 3", "p.py:1:5: expected a call"},
		{"\nx0 = torch.relu(x1)", "p.py:2:17: x1 is not defined"},
		{"y = torch.relu()\ny = torch.relu()", "p.py:2:1: y is already defined"},
		{"x = tensor((2,), torch.float32)", "p.py:1:5: tensor takes a shape, a dtype and a fill"},
		{"x = tensor((-2,), torch.float32, uniform(0, 1))", "p.py:1:12: shape [-2] has a negative dimension"},
		{"x = tensor((2,), torch.float32, [1.0])", "p.py:1:33: 1 elements for shape [2]"},
		{"x = tensor((2,), torch.float32, uniform(0, 1, kez=3))", "p.py:1:51: uniform has no argument kez; it takes key, kinks, scales, special, round, real, density"},
		{"x = os.system()", "p.py:1:5: os.system is not defined"},
		{"y = torch.relu(torch.abs(1))", "p.py:1:16: give this expression a name first: arguments are names and literals"},
		{"y = torch.relu(1", `p.py:1:17: expected ")" or ",", found "end of line"`},
		{"y = torch.relu(\"a)", "p.py:1:16: string without an end"},
		{"y = torch.relu(1) 2", `p.py:1:19: unexpected "2"`},
		{"# plumb program v9\n", `p.py:1:1: "# plumb program v9" was written by a newer Plumb; this one reads "# plumb program v1"`},
		{"y = torch.relu(" + strings.Repeat("(", 100), "p.py:1:79: expression is nested too deeply"},
	} {
		_, err := Parse("p.py", c.text)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	relu := func(arg any) Call { return Call{Result: "y", Target: "torch.relu", Args: []any{arg}} }
	for _, c := range []struct {
		p    Program
		want string
	}{
		{Program{Calls: []Call{relu(Ref("x"))}}, "y: x is not defined"},
		{Program{Calls: []Call{relu(1.0), relu(1.0)}}, `"y" is not a new name`},
		{Program{Inputs: []Input{{Name: "x", DType: tensor.I64, RequiresGrad: true}}}, "input x: int64 cannot require a gradient"},
		{Program{Inputs: []Input{{Name: "x", DType: tensor.F32, Shape: []int{1 << 35}}}}, "input x: float32[34359738368] is larger than 17179869184 bytes"},
		{Program{Calls: []Call{{Result: "y", Target: "Tensor.sum"}}}, "y: Tensor.sum has no receiver"},
		{Program{Backward: []Backward{{Value: "z"}}}, "backward of z, which is not defined"},
	} {
		if err := c.p.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// TestFillIsStable pins the bits of the generator: they are part of every
// recorded case.
func TestFillIsStable(t *testing.T) {
	in := Input{DType: tensor.F64, Shape: []int{3}, Fill: Fill{Dist: Uniform, Lo: -1, Hi: 1, Key: 42}}
	got := in.Materialize()
	in.DType = tensor.F32
	for i, v := range []float64{got.Float(0), got.Float(1), got.Float(2)} {
		if v < -1 || v >= 1 {
			t.Errorf("element %d is %v", i, v)
		}
		if r := in.Materialize().Float(i); r != float64(float32(v)) {
			t.Errorf("element %d: float32 %v is not the rounded float64 %v", i, r, v)
		}
	}
	in.Strides = []int{2}
	if !in.Materialize().Contiguous().SameBits(got.Convert(tensor.F32)) {
		t.Error("strides change the elements")
	}
	cot := in.Fill.Cotangent(2)
	if cot[0] != got.Float(0) || cot[1] != got.Float(1) {
		t.Error("a cotangent is not a prefix of its stream")
	}
}

func TestKinksOccur(t *testing.T) {
	in := Input{DType: tensor.F32, Shape: []int{4096}, Fill: Fill{Dist: Uniform, Lo: -1, Hi: 1, Key: 1, Kinks: true}}
	x := in.Materialize()
	count := map[float64]int{}
	for i := range x.Len() {
		count[x.Float(i)]++
	}
	recurring := 0
	for v, n := range count {
		if n > 50 && v != 0 && v != 1 && v != -1 {
			recurring++
		}
	}
	if count[0] < 50 || count[1] < 50 || count[-1] < 50 || recurring != 1 {
		t.Errorf("zeros %d, ones %d, minus ones %d, recurring values %d", count[0], count[1], count[-1], recurring)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example().String())
	f.Add("x = tensor((2,), torch.float32, [1.0, -2e5])\ny = x[..., 1:2, None] # c\ny.backward()")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("f", text)
		if err != nil || p.Validate() != nil {
			return
		}
		again, err := Parse("f", p.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, p.String())
		}
		if again.String() != p.String() {
			t.Fatalf("not canonical:\n%s\n---\n%s", p.String(), again.String())
		}
	})
}
