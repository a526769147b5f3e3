package gen

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

func value(t *testing.T, n *Node, c *Case) any {
	t.Helper()
	v, err := n.Value(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// shares draws a generator, made anew for each of many cases, and returns how
// often each value came.
func shares(t *testing.T, make func() *Node) map[string]float64 {
	t.Helper()
	const n = 20000
	counts := map[string]float64{}
	src := choice.New(7)
	for range n {
		counts[fmt.Sprint(value(t, make(), NewCase(src)))] += 1.0 / n
	}
	return counts
}

func typed(t Type) func() *Node {
	return func() *Node {
		n := Random(1, 4)
		n.To(nil, t)
		return n
	}
}

func must(n *Node, err error) *Node {
	if err != nil {
		panic(err)
	}
	return n
}

func TestDistributions(t *testing.T) {
	third := 1.0 / 3
	for name, c := range map[string]struct {
		make func() *Node
		want map[string]float64
	}{
		"int is in [low, high)": {typed(Int), map[string]float64{"1": third, "2": third, "3": third}},
		"bool ignores bounds":   {typed(Bool), map[string]float64{"true": .5, "false": .5}},
		"None":                  {typed(None), map[string]float64{"<nil>": 1}},
		"| is uniform over leaves": {
			func() *Node { return Or(Or(Or("a", "b"), "c"), Nothing()) },
			map[string]float64{"a": .25, "b": .25, "c": .25, "{}": .25}},
		"| nested to the right": {
			func() *Node { return Or("a", Or("b", Or("c", "d"))) },
			map[string]float64{"a": .25, "b": .25, "c": .25, "d": .25}},
		"| counts oneof's leaves": {
			func() *Node { return Or(must(OneOf(nil, "a", "b", "c")), "d") },
			map[string]float64{"a": .25, "b": .25, "c": .25, "d": .25}},
		"oneof of nested | is uniform over its own alternatives": {
			func() *Node { return must(OneOf(nil, Or("a", "b"), "c")) },
			map[string]float64{"a": .25, "b": .25, "c": .5}},
		"possibility": {
			func() *Node { return must(OneOf([]float64{.7, .2, .1}, "a", "b", "c")) },
			map[string]float64{"a": .7, "b": .2, "c": .1}},
		"drawn possibility": {
			func() *Node { return must(OneOfDrawn(must(OneOf(nil, .1, .5)), both, "a", Nothing())) },
			map[string]float64{"a": .3, "{}": .7}},
		"possibility goes with its alternative when nothing comes first": {
			func() *Node { return must(OneOf([]float64{.9, .1}, "a", Nothing())) },
			map[string]float64{"a": .9, "{}": .1}},
		"random_or_nothing": {
			func() *Node {
				n := RandomOrNothing(1, 3)
				n.To(nil, Int)
				return n
			},
			map[string]float64{"1": third, "2": third, "{}": third}},
		"union": {
			func() *Node {
				n := Random(1, 2)
				n.To(nil, Size(2))
				return n
			},
			map[string]float64{"1": .5, "[1 1]": .5}},
		"random_dtype": {
			func() *Node { return must(RandomDType("index", "bool", "unsigned")) },
			map[string]float64{"int32": .25, "int64": .25, "bool": .25, "uint8": .25}},
	} {
		t.Run(name, func(t *testing.T) {
			got := shares(t, c.make)
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for v, p := range c.want {
				if math.Abs(got[v]-p) > 0.015 {
					t.Errorf("share of %s: got %.3f, want %.3f", v, got[v], p)
				}
			}
		})
	}
}

func TestFloatsFillTheirRange(t *testing.T) {
	src := choice.New(3)
	lo, hi, sum := math.Inf(1), math.Inf(-1), 0.0
	const n = 10000
	for range n {
		r := Random(-2, 6)
		r.To(nil, Float)
		v := value(t, r, NewCase(src)).(float64)
		lo, hi, sum = min(lo, v), max(hi, v), sum+v
	}
	if lo < -2 || lo > -1.9 || hi >= 6 || hi < 5.9 || math.Abs(sum/n-2) > 0.1 {
		t.Errorf("range [%v, %v], mean %v", lo, hi, sum/n)
	}
}

func TestComplexDrawsBothParts(t *testing.T) {
	r := Random(2, 3)
	r.To(nil, Complex)
	z := value(t, r, NewCase(choice.New(1))).(complex128)
	if real(z) < 2 || real(z) >= 3 || imag(z) < 2 || imag(z) >= 3 || real(z) == imag(z) {
		t.Error(z)
	}
}

func TestTypesOfParameters(t *testing.T) {
	for sig, want := range map[string]string{
		"int": "int", "float": "float", "bool": "bool", "Scalar": "Union[int, float]", "int?": "int",
		"int[2]": "Union[int, Tuple[int, int]]", "float[1]?": "Union[float, Tuple[float]]", "int[]": "List[int]",
		"Tensor": "", "str": "", "dtype": "", "Tensor[]": "",
	} {
		p := op.MustParseSig("f(" + sig + " x) -> Tensor").Params[0]
		got, ok := TypeOf(p.Type)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s: got %v %v, want %q", sig, got, ok, want)
		}
	}
}

func TestTupleElementsAreIndependent(t *testing.T) {
	src := choice.New(2)
	differ := false
	for range 20 {
		r := Random(0, 10)
		r.To(nil, Tuple(Int, Int))
		v := value(t, r, NewCase(src)).(program.Tuple)
		differ = differ || v[0] != v[1]
	}
	if !differ {
		t.Error("both elements were always equal")
	}
}

func TestFirstTypeWins(t *testing.T) {
	for name, types := range map[string][2]Type{"int": {Int, Float}, "float": {Float, Int}} {
		c := NewCase(choice.New(1))
		n := Random(1, 6)
		n.To(c, types[0])
		n.To(c, types[1])
		if got := op.TypeName(value(t, n, c)); got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
}

func TestTypeReachesIntoExpressions(t *testing.T) {
	c := NewCase(choice.New(1))
	a := Random(1, 6)
	n := Neg(Add(must(OneOf(nil, a)), 1))
	if n.Untyped(c) != a {
		t.Error("the untyped random is not found")
	}
	n.To(c, Int)
	if n.Untyped(c) != nil {
		t.Error("still untyped")
	}
	if v, ok := value(t, n, c).(int64); !ok || v > -2 || v < -6 {
		t.Error(v, ok)
	}
}

func TestOneGeneratorIsOneSample(t *testing.T) {
	src := choice.New(4)
	for range 50 {
		c := NewCase(src)
		d := Random(1, 100)
		x := value(t, RandomTensor(TensorSpec{NDim: 2, Dims: [5]any{d, Mul(d, 2)}}), c).(*Tensor)
		y := value(t, RandomTensor(TensorSpec{NDim: 1, Dims: [5]any{d}}), c).(*Tensor)
		if x.Shape[0] != y.Shape[0] || x.Shape[1] != 2*x.Shape[0] {
			t.Fatal(x.Shape, y.Shape)
		}
	}
}

func TestEvalDrawsAgain(t *testing.T) {
	c := NewCase(choice.New(5))
	inner := Random(0, 1000)
	inner.To(nil, Int)
	n := Add(inner, 0)
	first := value(t, n, c)
	if again := value(t, n, c); again != first {
		t.Error("a second Value differs")
	}
	second, err := n.Eval(c)
	if err != nil || second == first {
		t.Error(first, second, err)
	}
	if value(t, inner, c) != second {
		t.Error("Eval did not reset the part")
	}
}

func TestArithmetic(t *testing.T) {
	pairOf := func(a, b int64) *Node { return Constant(program.Tuple{a, b}) }
	for _, c := range []struct {
		n    *Node
		want any
	}{
		{Add(2, 3), int64(5)}, {Sub(2, 3), int64(-1)}, {Mul(2, 3), int64(6)}, {Neg(3), int64(-3)},
		{Add(2, 0.5), 2.5}, {Mul(2.0, 3), 6.0}, {Add(true, 1), int64(2)}, {Mul(2i, 2i), complex128(-4)},
		{Mul(Add(1, 2), Constant(3)), int64(9)},
		{Mul(pairOf(1, 2), 3), program.Tuple{int64(3), int64(6)}},
		{Sub(1, pairOf(1, 2)), program.Tuple{int64(0), int64(-1)}},
		{Add(pairOf(1, 2), pairOf(3, 4)), program.Tuple{int64(4), int64(6)}},
	} {
		if got := value(t, c.n, NewCase(choice.New(1))); fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", c.want, c.want) {
			t.Errorf("%s: got %T %v, want %T %v", c.n, got, got, c.want, c.want)
		}
	}
}

func TestRandomTensorDefaults(t *testing.T) {
	src := choice.New(6)
	ndims, sizes, kinks := map[int]bool{}, map[int]bool{}, 0
	const n = 2000
	for range n {
		x := value(t, RandomTensor(TensorSpec{}), NewCase(src)).(*Tensor)
		ndims[len(x.Shape)] = true
		if x.Shape[0] != 1 {
			t.Fatalf("dim0 is %d", x.Shape[0])
		}
		for _, d := range x.Shape[1:] {
			sizes[d] = true
		}
		if x.Fill.Kinks {
			kinks++
		}
		if x.DType != tensor.F32 || !x.RequiresGrad || x.Fill.Dist != program.Uniform || x.Fill.Lo != -1 || x.Fill.Hi != 1 {
			t.Fatalf("%+v", x)
		}
	}
	if len(ndims) != 5 || ndims[0] || len(sizes) != 7 || sizes[0] {
		t.Errorf("dimensions %v, sizes %v", ndims, sizes)
	}
	if share := float64(kinks) / n; share < 0.2 || share > 0.3 {
		t.Errorf("%.2f of the tensors have kinks, want a quarter", share)
	}
}

func TestRandomTensorKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		spec TensorSpec
		want string
	}{
		{"scalar", TensorSpec{NDim: 0}, "float32 [] uniform [-1 1] true"},
		{"zero size", TensorSpec{NDim: 2, Dims: [5]any{0, 3}}, "float32 [0 3] uniform [-1 1] true"},
		{"many dimensions", TensorSpec{NDim: 1, Dims: [5]any{9, 8, 7}}, "float32 [9] uniform [-1 1] true"},
		{"int", TensorSpec{NDim: 0, DType: tensor.I64}, "int64 [] integer [-10 11] false"},
		{"complex", TensorSpec{NDim: 0, DType: tensor.C64}, "complex64 [] uniform [-10 10] true"},
		{"bool", TensorSpec{NDim: 0, DType: tensor.Bool}, "bool [] integer [0 2] false"},
		{"range", TensorSpec{NDim: 0, Low: 2, High: Constant(3.5)}, "float32 [] uniform [2 3.5] true"},
		{"low alone", TensorSpec{NDim: 0, Low: 0}, "float32 [] uniform [0 1] true"},
		{"no gradient", TensorSpec{NDim: 0, RequiresGrad: Constant(false)}, "float32 [] uniform [-1 1] false"},
	} {
		x := value(t, RandomTensor(c.spec), NewCase(choice.New(1))).(*Tensor)
		got := fmt.Sprint(x.DType, " ", x.Shape, " ", x.Fill.Dist, " [", x.Fill.Lo, " ", x.Fill.Hi, "] ", x.RequiresGrad)
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if x.Fill.Kinks && !x.DType.IsFloat() {
			t.Errorf("%s has kinks", c.name)
		}
	}
	c := NewCase(choice.New(1))
	c.Complex = true
	if x := value(t, RandomTensor(TensorSpec{}), c).(*Tensor); x.DType != tensor.C64 {
		t.Errorf("a complex case drew %s", x.DType)
	}
	six := value(t, RandomTensor(TensorSpec{NDim: 6, Dims: [5]any{1, 1, 1, 1, 1}}), NewCase(choice.New(1))).(*Tensor)
	if d := six.Shape[5]; d < 1 || d > 7 {
		t.Errorf("the sixth dimension is %d", d)
	}
}

func TestRandomDevice(t *testing.T) {
	if v := value(t, RandomDevice(), NewCase(choice.New(1))); v != "cpu" {
		t.Error(v)
	}
	seen := map[any]bool{}
	src := choice.New(1)
	for range 50 {
		seen[value(t, RandomDevice(), NewCase(src, "cpu", "cuda"))] = true
	}
	if len(seen) != 2 {
		t.Error(seen)
	}
}

// everything draws values of all kinds.
func everything(t *testing.T, src *choice.Source) string {
	c := NewCase(src, "cpu", "cuda")
	d := Random(1, 6)
	size := Random(1, 5)
	size.To(nil, Size(2))
	list := Random(0, 9)
	list.To(nil, List(Float))
	var out []string
	for _, n := range []*Node{
		RandomTensor(TensorSpec{NDim: Add(1, d), Dims: [5]any{d}}), size, list, RandomBool(), RandomDevice(),
		Or(Or("a", "b"), Nothing()), RandomOrNothing(0, 1),
	} {
		n.To(c, Float)
		v := value(t, n, c)
		if x, ok := v.(*Tensor); ok {
			v = *x
		}
		out = append(out, fmt.Sprintf("%v", v))
	}
	return strings.Join(out, "\n")
}

func TestReplayGivesTheSameValues(t *testing.T) {
	for key := range uint64(50) {
		src := choice.New(key)
		want := everything(t, src)
		if got := everything(t, choice.Replay(key+1, src.Record())); got != want {
			t.Fatalf("replayed\n%s\ndrawn\n%s", got, want)
		}
	}
}

// TestLowestDecisionsAreTheSimplest sets every decision to its lowest value, as
// a shrinker may.
func TestLowestDecisionsAreTheSimplest(t *testing.T) {
	for _, c := range []struct {
		make func() *Node
		want any
	}{
		{func() *Node { return Or(Or("a", "b"), Nothing()) }, Missing{}},
		{func() *Node { return must(OneOf(nil, "a", "b", Nothing())) }, Missing{}},
		{func() *Node { return withType(RandomOrNothing(0, 1), Float) }, Missing{}},
		{RandomBool, false},
		{RandomDevice, "cpu"},
		{typed(Int), int64(1)},
		{typed(Float), 1.0},
		{typed(Size(2)), int64(1)},
	} {
		src := choice.New(9)
		value(t, c.make(), NewCase(src, "cpu", "cuda"))
		record := slices.Clone(src.Record())
		for i := range record {
			record[i].Value = math.Inf(-1)
		}
		if got := value(t, c.make(), NewCase(choice.Replay(1, record), "cpu", "cuda")); got != c.want {
			t.Errorf("%s: got %v, want %v", c.make(), got, c.want)
		}
	}
}

// both are the probabilities of two alternatives, from that of the first.
func both(v any) ([]float64, error) { return []float64{v.(float64), 1 - v.(float64)}, nil }

func TestErrors(t *testing.T) {
	for want, f := range map[string]func() error{
		"random(1, 6) has no type here; write random(1, 6).to(int), .to(float) or .to(bool)":                                 draws(Random(1, 6)),
		"random(3, 3): there is no int in [3, 3)":                                                                            draws(withType(Random(3, 3), Int)),
		"random: argument 'low' must be a finite number, not str":                                                            draws(withType(Random("a", 3), Int)),
		"random: argument 'high' must be a finite number, not +Inf":                                                          draws(withType(Random(0, math.Inf(1)), Float)),
		"* between generators needs numbers, not str and int":                                                                draws(Mul("a", 2)),
		"+ between generators needs numbers, not nothing() and int":                                                          draws(Add(Nothing(), 2)),
		"4611686018427387904 * 4 overflows":                                                                                  draws(Mul(1<<62, 4)),
		"random_tensor: argument 'ndim' must be int, not float":                                                              draws(RandomTensor(TensorSpec{NDim: 1.5})),
		"random_tensor: argument 'dim1' must be int, not nothing()":                                                          draws(RandomTensor(TensorSpec{NDim: 2, Dims: [5]any{1, Nothing()}})),
		"random_tensor: argument 'ndim' must be at most 64, not 65":                                                          draws(RandomTensor(TensorSpec{NDim: 65})),
		"random_tensor: argument 'requires_grad' must be bool, not int":                                                      draws(RandomTensor(TensorSpec{NDim: 0, RequiresGrad: 1})),
		"random_tensor: there is no int64 in [low=3, high=3)":                                                                draws(RandomTensor(TensorSpec{NDim: 0, DType: tensor.I64, Low: 3, High: 3})),
		"random_tensor: shape [100000, 1000] of float32 is above the limit of 33554432 bytes; --set tensor.max sets another": draws(RandomTensor(TensorSpec{NDim: 2, Dims: [5]any{100000, 1000}})),
		"oneof needs at least one alternative":                                                                               choice1(nil),
		"oneof: argument 'possibility' has 1 numbers for 2 alternatives":                                                     choice1([]float64{1}, 1, 2),
		"oneof: argument 'possibility' must hold numbers from 0 to 1, not 7": func() error {
			_, err := must(OneOfDrawn(Constant(7.), both, "a", "b")).Value(NewCase(choice.New(1)))
			return err
		},
		"oneof: argument 'possibility' must add up to 1, not 0.75":           choice1([]float64{.5, .25}, 1, 2),
		"oneof: argument 'possibility' must hold numbers from 0 to 1, not 2": choice1([]float64{2, -1}, 1, 2),
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	deep := Constant(1)
	for range 2000 {
		deep = Add(deep, 1)
	}
	if _, err := deep.Eval(NewCase(choice.New(1))); err == nil {
		t.Error("a generator of any depth is drawn")
	}
}

func draws(n *Node) func() error {
	return func() error {
		_, err := n.Value(NewCase(choice.New(1)))
		return err
	}
}

func choice1(weights []float64, xs ...any) func() error {
	return func() error {
		_, err := OneOf(weights, xs...)
		return err
	}
}

func withType(n *Node, t Type) *Node {
	n.To(nil, t)
	return n
}
