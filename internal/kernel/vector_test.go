package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// portably computes f without the processor's passes.
func portably(f func()) {
	kept := vectors
	vectors = vectorPasses{}
	defer func() { vectors = kept }()
	f()
}

func numbers(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 3)
	}
	return x
}

// agree wants results of passes within a few units in the last place of scale.
func agree(t *testing.T, what string, got, want []float32, scale float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= 2e-6*(scale+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: element %d of %d is %v, portably %v", what, i, len(want), got[i], want[i])
		}
	}
}

func TestPassesAgreeWithPortableLoops(t *testing.T) {
	if vectors.exp == nil {
		t.Skip("this processor has no passes")
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for n := 1; n < 70; n++ {
		x, g, w, b := numbers(rng, testRows*n), numbers(rng, testRows*n), numbers(rng, n), numbers(rng, n)
		for name, f := range passUsers(n, x, g, w, b) {
			got, want := make([]float32, testRows*n), make([]float32, testRows*n)
			f(got)
			portably(func() { f(want) })
			agree(t, fmt.Sprintf("%s of rows of %d", name, n), got, want, 1)
		}
	}
}

const testRows = 6

// passUsers compute on testRows rows of n elements.
func passUsers(n int, x, g, w, b []float32) map[string]func(out []float32) {
	d := Groups{Outer: 1, Count: testRows, Inner: n}
	mean, scale := []float64{0.5, -0.25, 0, 1, 2, -3}, []float64{0.75, 1.5, 1, 0.5, 0.25, 2}
	unused := make([]float64, 2*testRows)
	each := func(f func(row []float32) float64) func(out []float32) {
		return func(out []float32) {
			for i := range testRows {
				out[i] = float32(f(x[i*n:][:n]))
			}
		}
	}
	return map[string]func(out []float32){
		"softmax":                func(out []float32) { Softmax(testRows, n, 1, x, out, false) },
		"log softmax":            func(out []float32) { Softmax(testRows, n, 1, x, out, true) },
		"rows":                   func(out []float32) { NormaliseRows(d, x, mean, scale, Affine[float32]{}, out) },
		"affine rows":            func(out []float32) { NormaliseRows(d, x, mean, scale, Affine[float32]{w, b}, out) },
		"weighted rows":          func(out []float32) { NormaliseRows(d, x, mean, scale, Affine[float32]{Weight: w}, out) },
		"shifted rows":           func(out []float32) { NormaliseRows(d, x, mean, scale, Affine[float32]{Bias: b}, out) },
		"row gradients":          func(out []float32) { RowGrads(d, g, x, mean, scale, nil, out) },
		"weighted row gradients": func(out []float32) { RowGrads(d, g, x, mean, scale, w, out) },
		"group gradients": func(out []float32) {
			GroupGrads(d, g, x, mean, scale, []float32{1.5, -0.5, 2, 1, -1, 3}, out, unused[:testRows], unused[testRows:])
		},
		"row sums": func(out []float32) {
			s, sx := make([]float64, n), make([]float64, n)
			RowSums(d, g, x, mean, scale, s, sx)
			for i := range n {
				out[i], out[n+i] = float32(s[i]), float32(sx[i])
			}
		},
		"sum":      each(func(row []float32) float64 { return sumRow(0.0, row, 0) }),
		"mean":     each(func(row []float32) float64 { return sumOf(row) }),
		"variance": each(func(row []float32) float64 { return deviation(row, 0.3) }),
		"max":      each(func(row []float32) float64 { return float64(rowMax(row)) }),
	}
}

var special = []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1}

// first makes a block function of two operands that reads one.
func first(f func(dst, a []float32)) func(dst, a, b []float32) {
	return func(dst, a, _ []float32) { f(dst, a) }
}

func TestArithmeticPassesGiveTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	cases := []struct {
		name            string
		block, portable func(dst, a, b []float32)
	}{
		{"add", Add32, Add[float32]}, {"sub", Sub32, Sub[float32]}, {"mul", Mul32, Mul[float32]}, {"div", Div32, Div[float32]},
		{"maximum", Maximum32, Maximum[float32]}, {"minimum", Minimum32, Minimum[float32]},
		{"abs", first(Abs32), first(abs32)}, {"neg", first(Neg32), first(Neg[float32])}, {"sqrt", first(Sqrt32), first(Sqrt[float32])}, {"relu", first(Relu32), first(Relu[float32])},
	}
	for n := range 80 {
		a, b := numbers(rng, n), numbers(rng, n)
		for i := range n / 4 {
			a[rng.IntN(n)] = special[i%len(special)]
			b[rng.IntN(n)] = special[rng.IntN(len(special))]
		}
		for _, c := range cases {
			got, want := make([]float32, n+1), make([]float32, n+1)
			got[n], want[n] = 7, 7
			c.block(got[:n], a, b)
			c.portable(want[:n], a, b)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
					t.Fatalf("%s of %d elements: element %d is %v, want %v", c.name, n, i, got[i], want[i])
				}
			}
		}
	}
}

// TestFunctionsDoNotDependOnPlace keeps the tails of passes the same as their loops.
func TestFunctionsDoNotDependOnPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, f := range []func(dst, a []float32){Exp32, Sigmoid32, Tanh32, Erf32, Log32, Gelu32, GeluTanh32} {
		a := numbers(rng, 40)
		whole := make([]float32, len(a))
		f(whole, a)
		for n := range a {
			part := make([]float32, n+1)
			part[n] = 7
			f(part[:n], a)
			for i, v := range part[:n] {
				if math.Float32bits(v) != math.Float32bits(whole[i]) {
					t.Fatalf("f(%v) is %v among %d elements and %v among %d", a[i], v, n, whole[i], len(a))
				}
			}
			if part[n] != 7 {
				t.Fatalf("f of %d elements wrote another", n)
			}
		}
	}
}

func TestPower(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range [][3]float64{
		{2, 10, 1024}, {3, 2, 9}, {-3, 3, -27}, {-2, 2, 4}, {-8, 1.0 / 3, nan}, {10, 22, 1e22}, {4, 0.5, 2},
		{2, -1074, 0x1p-1074}, {0x1p-1074, 1, 0x1p-1074}, {2, 1024, inf}, {-2, 1025, -inf}, {2, -1080, 0}, {1, nan, 1}, {nan, 0, 1}, {-1, inf, 1}, {0, -1, inf},
		{1.0000000001, 1e12, 2.6881393700484107e43}, {0.999, 7e5, 6.946374402185022e-305},
	} {
		got := Power(c[0], c[1])
		if got != c[2] && !(got != got && c[2] != c[2]) {
			t.Errorf("%v to the power %v is %v, want %v", c[0], c[1], got, c[2])
		}
	}
}

// TestLargePowers takes arguments at which the logarithm needs all its parts.
func TestLargePowers(t *testing.T) {
	for _, c := range [][3]float64{{1.4, 2100.0, 7.393923012997723e+306}, {0.72, 2150.0, 1.8402097492734815e-307}, {1.37, -2300.0, 3.488956385e-315}, {0.7072, 1900.5, 1.1351413276459867e-286}} {
		got := Power(c[0], c[1])
		if got < math.Nextafter(c[2], 0) || got > math.Nextafter(c[2], math.Inf(1)) {
			t.Errorf("%v to the power %v is %v, want %v", c[0], c[1], got, c[2])
		}
	}
}

// TestDepthwiseConvolution compares single channels with the matrix product in float64.
func TestDepthwiseConvolution(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range 400 {
		c := &Conv{N: 1 + rng.IntN(2), Groups: 1 + rng.IntN(3), XC: 1, YC: 1 + rng.IntN(2)}
		for a := range 3 {
			c.Kernel[a], c.Stride[a], c.Dilation[a], c.Padding[a] = 1+rng.IntN(3), 1+rng.IntN(2), 1+rng.IntN(2), rng.IntN(3)
			reach := (c.Kernel[a]-1)*c.Dilation[a] + 1
			c.X[a] = max(1, reach-2*c.Padding[a]) + rng.IntN(4+20*(a/2))
			c.Y[a] = (c.X[a]+2*c.Padding[a]-reach)/c.Stride[a] + 1
		}
		across := 1 + rng.IntN(2)
		image := volume(c.X) * across
		strides := [5]int{c.Groups * image, image, c.X[1] * c.X[2] * across, c.X[2] * across, across}
		x, w, b := numbers(rng, c.N*c.Groups*image), numbers(rng, c.Groups*c.YC*c.taps()), numbers(rng, c.Groups*c.YC)
		got := make([]float32, c.N*c.Groups*c.YC*c.positions())
		plain, want := make([]float32, len(got)), make([]float64, len(got))
		ConvForward(c, Volume[float32]{x, strides}, w, b, got)
		portably(func() { ConvForward(c, Volume[float32]{x, strides}, w, b, plain) })
		ConvForward(c, Volume[float64]{doubled(x), strides}, doubled(w), doubled(b), want)
		narrow := make([]float32, len(want))
		for i, v := range want {
			narrow[i] = float32(v)
		}
		agree(t, fmt.Sprintf("%+v", *c), got, narrow, 200)
		agree(t, fmt.Sprintf("portably %+v", *c), plain, narrow, 200)
	}
}

func doubled(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
