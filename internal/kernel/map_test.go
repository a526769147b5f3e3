package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plumb/tensor"
)

// arranged returns a tensor of the shape whose elements are small integers, in
// one of several layouts: contiguous, permuted, with gaps, or expanded.
func arranged(rng *rand.Rand, d tensor.DType, shape []int) *tensor.Tensor {
	big := slices.Clone(shape)
	step := 1 + rng.IntN(2)
	expand := rng.IntN(4) == 0
	for i := range big {
		big[i] *= step
		if expand && rng.IntN(2) == 0 {
			big[i] = 1
		}
	}
	order := rng.Perm(len(shape))
	inverse := make([]int, len(shape))
	stored := make([]int, len(shape))
	for i, o := range order {
		stored[i], inverse[o] = big[o], i
	}
	t := tensor.New(d, stored...)
	for i := range t.Len() {
		t.Set(i, complex(float64(rng.IntN(9)-4), 0))
	}
	t = t.Permute(inverse...)
	for i, n := range shape {
		if t.Shape()[i] == n*step {
			t = t.Narrow(i, 0, n, step)
		}
	}
	t, err := t.Expand(shape...)
	if err != nil {
		panic(err)
	}
	return t
}

func randomShape(rng *rand.Rand) []int {
	shape := make([]int, rng.IntN(5))
	for i := range shape {
		shape[i] = 1 + rng.IntN(4)
	}
	if len(shape) > 0 && rng.IntN(3) == 0 {
		shape[rng.IntN(len(shape))] = []int{0, 70, 1100}[rng.IntN(3)]
	}
	return shape
}

func TestMap2EqualsElementLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	types := []tensor.DType{tensor.I8, tensor.I64, tensor.F16, tensor.BF16, tensor.F32}
	for range 1000 {
		shape := randomShape(rng)
		a := arranged(rng, types[rng.IntN(len(types))], shape)
		b := arranged(rng, types[rng.IntN(len(types))], shape)
		out := arranged(rng, types[2+rng.IntN(3)], shape)
		if !hasOwnPlaces(out) {
			continue
		}
		Map2(out, a, b, Sub[float32])
		for i := range out.Len() {
			if want := a.Float(i) - b.Float(i); out.Float(i) != want {
				t.Fatalf("%s%v = %s%v - %s%v: element %d is %v, want %v", out, out.Strides(), a, a.Strides(), b, b.Strides(), i, out.Float(i), want)
			}
		}
	}
}

// hasOwnPlaces reports whether no two elements share a place.
func hasOwnPlaces(t *tensor.Tensor) bool {
	for i, n := range t.Shape() {
		if n > 1 && t.Strides()[i] == 0 {
			return false
		}
	}
	return true
}

func TestIntegersWrapAround(t *testing.T) {
	a := tensor.Of(tensor.I8, []int{2}, []int8{127, -128})
	out := tensor.New(tensor.I8, 2)
	Map2(out, a, a, Add[int64])
	if out.Int(0) != -2 || out.Int(1) != 0 {
		t.Errorf("127+127, -128-128 = %d, %d in int8", out.Int(0), out.Int(1))
	}
}

func TestFoldsEqualElementLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 800 {
		shape := randomShape(rng)
		in := arranged(rng, []tensor.DType{tensor.F32, tensor.BF16, tensor.I32}[rng.IntN(3)], shape)
		var dims, kept []int
		for i, n := range shape {
			if rng.IntN(2) == 0 {
				dims = append(dims, i)
			} else {
				kept = append(kept, n)
			}
		}
		checkFold(t, in, dims, kept)
	}
}

func checkFold(t *testing.T, in *tensor.Tensor, dims, kept []int) {
	t.Helper()
	sums, largest := tensor.New(tensor.F64, kept...), tensor.New(tensor.F64, kept...)
	for i := range largest.Len() {
		largest.Set(i, complex(math.Inf(-1), 0))
	}
	for i := range in.Len() {
		at := outputOf(in.Shape(), dims, i)
		sums.Set(at, sums.At(at)+in.At(i))
		largest.Set(at, complex(max(largest.Float(at), in.Float(i)), 0))
	}
	got := tensor.New(tensor.F64, kept...)
	Sum[float64](got, in, dims, 1.0)
	if !got.SameBits(sums) {
		t.Fatalf("Sum of %s%v over %v", in, in.Strides(), dims)
	}
	if in.Len() == 0 {
		return
	}
	Max[float64](got, nil, in, dims)
	if !got.SameBits(largest) {
		t.Fatalf("Max of %s%v over %v", in, in.Strides(), dims)
	}
}

// outputOf returns the row-major output that element i of a tensor belongs to.
func outputOf(shape, dims []int, i int) int {
	at, step := 0, 1
	for d := len(shape) - 1; d >= 0; d-- {
		k := i % shape[d]
		i /= shape[d]
		if !slices.Contains(dims, d) {
			at += k * step
			step *= shape[d]
		}
	}
	return at
}

func TestMaxIndexIsTheFirst(t *testing.T) {
	nan := math.NaN()
	rows := [][]float64{{1, 3, 3, 2}, {nan, 5, nan, 0}, {0, nan, 9, nan}, {-1, -1, -1, -1}}
	want := []int64{1, 0, 1, 0}
	in := tensor.New(tensor.F32, 4, 4)
	for i, row := range rows {
		for j, v := range row {
			in.Set(4*i+j, complex(v, 0))
		}
	}
	columns := tensor.New(tensor.F32, 4, 64)
	for i := range 64 {
		columns.Narrow(1, i, 1, 1).CopyFrom(in.Narrow(0, i%4, 1, 1).Transpose(0, 1))
	}
	values, indices := tensor.New(tensor.F32, 4), tensor.New(tensor.I64, 4)
	Max[float32](values, indices, in, []int{1})
	wideValues, wide := tensor.New(tensor.F32, 64), tensor.New(tensor.I64, 64)
	Max[float32](wideValues, wide, columns, []int{0})
	for i := range 64 {
		if indices.Int(i%4) != want[i%4] || wide.Int(i) != want[i%4] {
			t.Errorf("row %d: index %d, as a column %d, want %d", i%4, indices.Int(i%4), wide.Int(i), want[i%4])
		}
	}
}

func TestLongSumsAreAccurate(t *testing.T) {
	const n = 3 << 20
	in := tensor.New(tensor.F32, n, 1)
	data := tensor.Data[float32](in)
	for i := range data {
		data[i] = 0.1
	}
	for _, shape := range [][]int{{n, 1}, {n / 8, 8}} {
		v, _ := in.View(shape...)
		out := tensor.New(tensor.F32, shape[1])
		Sum[float32](out, v, []int{0}, 1.0)
		if want := float32(float64(float32(0.1)) * float64(shape[0])); float32(out.Float(0)) != want {
			t.Errorf("sum over %v is %v, want %v", shape, out.Float(0), want)
		}
	}
}

var functionCases = []struct {
	name  string
	block func(dst, a []float32)
	lane  func(float64) float64
	exact func(float64) float64
	ulp   float64
}{
	{"exp", Exp32, expLane, math.Exp, 0.5003},
	{"exp2", Exp2Of32, exp2Lane, math.Exp2, 0.5003},
	{"expm1", Expm1Of32, expm1Lane, Expm1, 0.5003},
	{"sigmoid", Sigmoid32, sigmoidLane, Sigmoid, 0.5003},
	{"silu", Silu32, siluLane, Silu, 0.5003},
	{"mish", Mish32, mishLane, Mish, 0.5003},
	{"tanh", Tanh32, tanhLane, math.Tanh, 0.5003},
	{"sinh", Sinh32, sinhLane, Sinh, 0.5003},
	{"cosh", Cosh32, coshLane, Cosh, 0.5003},
	{"erf", Erf32, erfLane, math.Erf, 0.503},
	{"erfc", Erfc32, erfcLane, math.Erfc, 0.503},
	{"gelu", Gelu32, geluLane, geluErf, 0.503},
	{"gelu tanh", GeluTanh32, geluTanhLane, geluTanhExact, 1},
	{"log", Log32, logLane, Log, 0.5003},
	{"log2", Log2Of32, log2Lane, Log2, 0.5003},
	{"log10", Log10Of32, log10Lane, Log10, 0.5003},
	{"log1p", Log1pOf32, log1pLane, math.Log1p, 0.5003},
	{"log sigmoid", LogSigmoid32, logSigmoidLane, logSigmoidExact, 0.5003},
	{"asinh", Asinh32, asinhLane, math.Asinh, 0.5003},
	{"acosh", Acosh32, acoshLane, math.Acosh, 0.5003},
	{"atanh", Atanh32, atanhLane, math.Atanh, 0.5003},
	{"sin", Sin32, turningLane(sinLane, math.Sin), Sin, 0.5003},
	{"cos", Cos32, turningLane(cosLane, math.Cos), Cos, 0.5003},
	{"tan", Tan32, turningLane(tanLane, math.Tan), Tan, 0.5003},
	{"asin", Asin32, asinLane, Asin, 0.5003},
	{"acos", Acos32, acosLane, Acos, 0.5003},
	{"atan", Atan32, atanLane, math.Atan, 0.5003},
	{"rsqrt", Rsqrt32, rsqrtLane, Rsqrt, 0.5003},
}

// TestFloat32FunctionsRoundOnce holds the passes to the functions of package
// math, and to the bits of their Go twins.
func TestFloat32FunctionsRoundOnce(t *testing.T) {
	in := functionArguments()
	out := make([]float32, len(in))
	for _, c := range functionCases {
		t.Run(c.name, func(t *testing.T) {
			c.block(out, in)
			for i, x := range in {
				if twin := float32(c.lane(float64(x))); math.Float32bits(twin) != math.Float32bits(out[i]) {
					t.Fatalf("f(%v) = %v (%#x), in Go %v (%#x)", x, out[i], math.Float32bits(out[i]), twin, math.Float32bits(twin))
				}
				if c.name == "gelu tanh" && x < -2 {
					continue // 1 + tanh cancels in the formula that checks
				}
				want := c.exact(float64(x))
				if !within(float64(out[i]), want, c.ulp) {
					t.Fatalf("f(%v) = %v, want %v", x, out[i], want)
				}
				if math.Signbit(float64(out[i])) != math.Signbit(want) && want == want {
					t.Fatalf("f(%v) = %v, want %v: the signs differ", x, out[i], want)
				}
			}
		})
	}
}

var functionCases64 = []struct {
	name  string
	block func(dst, a []float64)
	lane  func(float64) float64
	exact func(float64) float64
}{
	{"exp", Exp64, exp64Lane, Exp},
	{"expm1", Expm1Of64, expm1Of64Lane, Expm1},
	{"sigmoid", Sigmoid64, sigmoid64Lane, Sigmoid},
	{"silu", Silu64, silu64Lane, Silu},
	{"tanh", Tanh64, tanh64Lane, math.Tanh},
	{"sinh", Sinh64, sinh64Lane, Sinh},
	{"cosh", Cosh64, cosh64Lane, Cosh},
	{"log", Log64, log64Lane, Log},
	{"log2", Log2Of64, log2Of64Lane, Log2},
	{"log10", Log10Of64, log10Of64Lane, Log10},
	{"log1p", Log1pOf64, log1pOf64Lane, math.Log1p},
	{"log sigmoid", LogSigmoid64, logSigmoid64Lane, Logsigmoid},
	{"asinh", Asinh64, asinh64Lane, math.Asinh},
	{"acosh", Acosh64, acosh64Lane, math.Acosh},
	{"atanh", Atanh64, atanh64Lane, math.Atanh},
	{"pow 1.7", powerOf(1.7), laneOf(1.7), func(x float64) float64 { return Power(x, 1.7) }},
	{"pow -31.1", powerOf(-31.1), laneOf(-31.1), func(x float64) float64 { return Power(x, -31.1) }},
	{"pow 3", powerOf(3), laneOf(3), func(x float64) float64 { return Power(x, 3) }},
	{"pow -2", powerOf(-2), laneOf(-2), func(x float64) float64 { return Power(x, -2) }},
	{"pow 1e250", powerOf(1e250), laneOf(1e250), func(x float64) float64 { return Power(x, 1e250) }},
	{"pow 4294967297", powerOf(4294967297), laneOf(4294967297), func(x float64) float64 { return Power(x, 4294967297) }},
}

func laneOf(y float64) func(x float64) float64 {
	return func(x float64) float64 { return pow64Lane(x, y) }
}

func powerOf(y float64) func(dst, a []float64) {
	return func(dst, a []float64) {
		b := make([]float64, len(dst))
		for i := range b {
			b[i] = y
		}
		Pow64(dst, a, b)
	}
}

// TestFloat64Functions holds the passes to the functions of package math, and
// to the bits of their Go twins or of the function for what these leave out.
// The functions of package math are off by as much as 2.6 units themselves.
func TestFloat64Functions(t *testing.T) {
	var in []float64
	rng := rand.New(rand.NewPCG(5, 6))
	for _, x := range functionArguments() {
		v := float64(x)
		in = append(in, v, v*(1+rng.Float64()*0x1p-24))
	}
	in = append(in, math.SmallestNonzeroFloat64, -1e-310, math.MaxFloat64, -math.MaxFloat64, 709.78, 709.79, 710.4, -708.5, -744, -745.2, -746, 1e160, 0x1p-1022)
	for range 20000 {
		in = append(in, math.Float64frombits(rng.Uint64()))
	}
	out := make([]float64, len(in))
	for _, c := range functionCases64 {
		t.Run(c.name, func(t *testing.T) {
			c.block(out, in)
			for i, x := range in {
				got, twin, want := out[i], c.lane(x), c.exact(x)
				if math.Float64bits(twin) != math.Float64bits(got) && math.Float64bits(want) != math.Float64bits(got) {
					t.Fatalf("f(%v) = %v, in Go %v, want %v", x, got, twin, want)
				}
				if !near64(got, want, 5) || math.Signbit(got) != math.Signbit(want) && want == want {
					t.Fatalf("f(%v) = %v, want %v", x, got, want)
				}
			}
		})
	}
}

func TestPow32(t *testing.T) {
	in := functionArguments()
	out, exponents := make([]float32, len(in)), make([]float32, len(in))
	for _, y := range []float32{0, 1.7, -31.1, 3, -2, 1e30, 4294967296, float32(math.Inf(-1)), float32(math.NaN())} {
		for i := range exponents {
			exponents[i] = y
		}
		Pow32(out, in, exponents)
		for i, x := range in {
			got, want := float64(out[i]), Power(float64(x), float64(y))
			if math.Abs(math.Log(want)) < 50 && !within(got, want, 0.503) || !within(got, want, 1) || math.Signbit(got) != math.Signbit(want) && want == want {
				t.Fatalf("%v to the power %v is %v, want %v", x, y, got, want)
			}
			if twin := float32(powLane(float64(x), float64(y))); x-x == 0 && x != 0 && math.Abs(float64(y)) < 1<<31 && math.Float32bits(twin) != math.Float32bits(out[i]) {
				t.Fatalf("%v to the power %v is %v, in Go %v", x, y, got, twin)
			}
		}
	}
}

// near64 reports whether got is so many units in the last place from want.
func near64(got, want, ulp float64) bool {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return math.IsNaN(got) == math.IsNaN(want) && (math.IsNaN(got) || got == want)
	}
	_, exp := math.Frexp(want)
	return math.Abs(got-want) <= ulp*math.Ldexp(1, max(exp-53, -1074))
}

func functionArguments() []float32 {
	rng := rand.New(rand.NewPCG(5, 6))
	in := []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -1e-40, math.MaxFloat32, -math.MaxFloat32, 1, -1, 1e-30, -1e-30, 88.7, 104, -104, -87.4, 1e30, -1e30, 700, -700, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0xffc12345), math.Float32frombits(0x7fc54321)}
	for _, v := range []float32{-1, 1, 8, 1000, 0.5, math.Pi / 2, math.Pi, 1 << 28, 3 << 27, 1e10} {
		in = append(in, v, math.Nextafter32(v, 0), math.Nextafter32(v, 2*v), -v)
	}
	for range 50000 {
		in = append(in, float32(rng.NormFloat64()*math.Exp(rng.Float64()*8-5)), float32(2*rng.Float64()-1), float32(math.Ldexp(rng.NormFloat64(), rng.IntN(60)-30)))
		in = append(in, math.Float32frombits(rng.Uint32()))
	}
	return in
}

func turningLane(lane, f func(float64) float64) func(float64) float64 {
	return func(x float64) float64 {
		if math.Abs(x) < 1<<28 {
			return lane(x)
		}
		return f(x)
	}
}

func logSigmoidExact(x float64) float64 {
	if x > 104 {
		return 0
	}
	return Logsigmoid(x)
}

func geluTanhExact(x float64) float64 { return 0.5 * x * (1 + math.Tanh(geluInner(x))) }

// within reports whether a float32 result is at most ulp units in the last place off.
func within(got, want, ulp float64) bool {
	if math.IsNaN(want) || math.IsInf(float64(float32(want)), 0) {
		return math.IsNaN(got) == math.IsNaN(want) && (math.IsNaN(got) || got == float64(float32(want)))
	}
	_, exp := math.Frexp(want)
	unit := math.Ldexp(1, max(exp-24, -149))
	return math.Abs(got-want) <= ulp*unit
}

func TestScatterAndGatherAreInverse(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		shape := []int{1 + rng.IntN(4), 1 + rng.IntN(5), 1 + rng.IntN(4)}
		dim := rng.IntN(3)
		src, index := arranged(rng, tensor.F16, shape), tensor.New(tensor.I64, shape...)
		shift := rng.IntN(shape[dim])
		for i := range shape[dim] {
			entry := index.Select(dim, i)
			for j := range entry.Len() {
				entry.SetInt(j, int64((i+shift)%shape[dim]))
			}
		}
		scattered, back := tensor.New(tensor.F16, shape...), tensor.New(tensor.F16, shape...)
		if err := Scatter(scattered, src, index, dim); err != nil {
			t.Fatal(err)
		}
		if err := Gather(back, scattered, index, dim); err != nil {
			t.Fatal(err)
		}
		if !back.SameBits(src) {
			t.Fatalf("shape %v, dim %d, shift %d", shape, dim, shift)
		}
	}
}

func TestBadIndexIsAnError(t *testing.T) {
	in, index := tensor.New(tensor.F32, 3), tensor.Of(tensor.I64, []int{2}, []int64{0, 3})
	err := Gather(tensor.New(tensor.F32, 2), in, index, 0)
	if bad, ok := err.(*BadIndex); !ok || *bad != (BadIndex{3, 0, 3}) {
		t.Errorf("got %v", err)
	}
}
