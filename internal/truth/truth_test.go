package truth

import (
	"bufio"
	"maps"
	"math"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

var floats = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64}

func lookup(t *testing.T, name string) Func {
	t.Helper()
	f, ok := functions[name]
	if !ok {
		t.Fatalf("no function %s", name)
	}
	return f
}

func names() []string { return slices.Sorted(maps.Keys(functions)) }

// draws returns n argument lists whose elements are of the dtype: half of them
// near 1 in size, the others of any exponent.
func draws(d tensor.DType, arity, n int) [][]float64 {
	f, rng := formatOf(d), choice.NewPhilox(7)
	var lists [][]float64
	for i := range n {
		var args []float64
		for k := range arity {
			u, v := rng.Pair(uint64(i*4 + k))
			e := int(v>>8) % 9
			if v&1 == 0 {
				e = int(v>>8)%(f.maxExp-f.minExp+f.digits) + f.maxExp
			}
			x := math.Ldexp(1+float64(u>>12)*0x1p-52, 4-e)
			if v&1 == 0 {
				x = math.Ldexp(1+float64(u>>12)*0x1p-52, 2*f.maxExp-e)
			}
			if v&2 == 0 {
				x = -x
			}
			args = append(args, f.round64(x))
		}
		lists = append(lists, args)
	}
	return lists
}

// TestHardCases compares with MPFR where results lie next to the middle
// between two numbers, at the ends of the range, and where they are exact.
func TestHardCases(t *testing.T) {
	file, err := os.Open("testdata/hard.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, cases := bufio.NewScanner(file), 0
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		d, err := tensor.ParseDType(words[1])
		if err != nil {
			t.Fatal(err)
		}
		var x []float64
		for _, w := range words[2:] {
			v, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatal(err)
			}
			x = append(x, v)
		}
		args, want := x[:len(x)-1], x[len(x)-1]
		if got := lookup(t, words[0]).Round(d, args...); !same(got, want) {
			t.Errorf("%s(%s %x) = %x, want %x", words[0], d, args, got, want)
		}
		cases++
	}
	if cases < 300 {
		t.Errorf("testdata/hard.txt has %d cases", cases)
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan, zero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		id   string
		args []float64
		want float64
	}{
		{"exp", []float64{zero}, 1}, {"exp", []float64{inf}, inf}, {"exp", []float64{-inf}, 0}, {"exp", []float64{nan}, nan},
		{"exp", []float64{1e300}, inf}, {"exp", []float64{-1e300}, 0},
		{"expm1", []float64{zero}, zero}, {"expm1", []float64{-inf}, -1}, {"expm1", []float64{-1e300}, -1},
		{"exp2", []float64{-inf}, 0}, {"exp2", []float64{0}, 1},
		{"log", []float64{zero}, -inf}, {"log", []float64{1}, 0}, {"log", []float64{-1}, nan}, {"log", []float64{inf}, inf},
		{"log1p", []float64{zero}, zero}, {"log1p", []float64{-1}, -inf}, {"log1p", []float64{-2}, nan},
		{"log2", []float64{0}, -inf}, {"log10", []float64{1}, 0},
		{"sqrt", []float64{zero}, zero}, {"sqrt", []float64{-1}, nan}, {"sqrt", []float64{inf}, inf},
		{"rsqrt", []float64{0}, inf}, {"rsqrt", []float64{inf}, 0},
		{"reciprocal", []float64{zero}, -inf}, {"reciprocal", []float64{-inf}, zero},
		{"sin", []float64{zero}, zero}, {"sin", []float64{inf}, nan}, {"cos", []float64{0}, 1}, {"cos", []float64{-inf}, nan},
		{"tan", []float64{zero}, zero}, {"tan", []float64{inf}, nan},
		{"asin", []float64{zero}, zero}, {"asin", []float64{1.5}, nan}, {"asin", []float64{-1}, -math.Pi / 2},
		{"acos", []float64{1}, 0}, {"acos", []float64{-1}, math.Pi}, {"acos", []float64{0}, math.Pi / 2}, {"acos", []float64{2}, nan},
		{"atan", []float64{zero}, zero}, {"atan", []float64{-inf}, -math.Pi / 2},
		{"sinh", []float64{zero}, zero}, {"sinh", []float64{-inf}, -inf}, {"cosh", []float64{-inf}, inf}, {"cosh", []float64{0}, 1},
		{"tanh", []float64{zero}, zero}, {"tanh", []float64{-inf}, -1}, {"tanh", []float64{1e300}, 1},
		{"asinh", []float64{zero}, zero}, {"asinh", []float64{-inf}, -inf},
		{"acosh", []float64{1}, 0}, {"acosh", []float64{0.5}, nan}, {"acosh", []float64{inf}, inf},
		{"atanh", []float64{zero}, zero}, {"atanh", []float64{1}, inf}, {"atanh", []float64{-1}, -inf}, {"atanh", []float64{2}, nan},
		{"erf", []float64{zero}, zero}, {"erf", []float64{-inf}, -1}, {"erf", []float64{-1e300}, -1}, {"erf", []float64{nan}, nan},
		{"erfc", []float64{inf}, 0}, {"erfc", []float64{-inf}, 2}, {"erfc", []float64{0}, 1}, {"erfc", []float64{-1e300}, 2}, {"erfc", []float64{1e300}, 0},
		{"sigmoid", []float64{0}, 0.5}, {"sigmoid", []float64{-inf}, 0}, {"sigmoid", []float64{inf}, 1}, {"sigmoid", []float64{1e300}, 1},
		{"softplus", []float64{0, 1, 20}, math.Ln2}, {"softplus", []float64{-inf, 1, 20}, 0}, {"softplus", []float64{1e300, 1, 20}, 1e300},
		{"softplus", []float64{10, 2.5, 20}, 10}, {"softplus", []float64{8, 2.5, 20}, 0x1.0000000071503p3}, {"softplus", []float64{0, 2, 20}, math.Ln2 / 2},
		{"logsigmoid", []float64{0}, -math.Ln2}, {"logsigmoid", []float64{-1e300}, -1e300},
		{"silu", []float64{-inf}, nan}, {"silu", []float64{inf}, inf}, {"silu", []float64{-1e300}, zero},
		{"gelu", []float64{-inf}, nan}, {"gelu", []float64{inf}, inf}, {"gelu", []float64{zero}, zero}, {"gelu", []float64{-1e300}, zero},
		{"gelu:tanh", []float64{-1e300}, zero}, {"gelu:tanh", []float64{1e300}, 1e300},
		{"neg", []float64{0}, zero}, {"abs", []float64{zero}, 0}, {"sign", []float64{nan}, 0}, {"relu", []float64{nan}, nan},
		{"round", []float64{2.5}, 2}, {"floor", []float64{-0.5}, -1},
		{"add", []float64{inf, -inf}, nan}, {"add", []float64{1.5, -1.5}, 0}, {"add", []float64{zero, zero}, zero},
		{"sub", []float64{1, 1}, 0}, {"mul", []float64{0, inf}, nan}, {"mul", []float64{zero, 3}, zero},
		{"div", []float64{0, 0}, nan}, {"div", []float64{1, zero}, -inf}, {"div", []float64{-1, inf}, zero},
		{"pow", []float64{0, 0}, 1}, {"pow", []float64{nan, 0}, 1}, {"pow", []float64{1, nan}, 1}, {"pow", []float64{-1, inf}, 1},
		{"pow", []float64{0, -1}, inf}, {"pow", []float64{zero, -3}, -inf}, {"pow", []float64{-2, 0.5}, nan}, {"pow", []float64{-2, 3}, -8},
		{"pow", []float64{-inf, -3}, zero}, {"pow", []float64{-1e300, 3}, -inf}, {"pow", []float64{-1e-300, 3}, zero}, {"pow", []float64{0.5, inf}, 0},
		{"atan2", []float64{zero, -1}, -math.Pi}, {"atan2", []float64{inf, -inf}, 3 * math.Pi / 4}, {"atan2", []float64{0, 1}, 0},
		{"hypot", []float64{inf, nan}, inf}, {"hypot", []float64{3, -4}, 5},
		{"fmod", []float64{-1, 3}, -1}, {"remainder", []float64{-1, 3}, 2}, {"maximum", []float64{nan, 1}, nan},
		{"leaky_relu", []float64{-2, 0.5}, -1}, {"leaky_relu", []float64{nan, 0.5}, nan}, {"elu", []float64{-inf, 2}, -2},
		{"sinc", []float64{zero}, 1}, {"sinc", []float64{-3}, 0}, {"sinc", []float64{inf}, nan}, {"logit", []float64{0.5}, 0}, {"logit", []float64{1}, inf}, {"logit", []float64{0}, -inf},
		{"logit", []float64{2}, nan}, {"logaddexp", []float64{0, 0}, math.Ln2}, {"logaddexp", []float64{inf, -inf}, inf}, {"logaddexp", []float64{3, -1e300}, 3},
		{"logaddexp", []float64{-inf, -inf}, -inf}, {"xlogy", []float64{0, 0}, 0}, {"xlogy", []float64{2, 1}, 0}, {"xlogy", []float64{1, -1}, nan}, {"xlogy", []float64{2, 0}, -inf},
		{"fmax", []float64{nan, 1}, 1}, {"fmin", []float64{-2, nan}, -2}, {"rad2deg", []float64{1}, 57.29577951308232}, {"deg2rad", []float64{180}, math.Pi},
		{"elu", []float64{0, -0.5}, 0}, {"elu", []float64{zero, -0.5}, zero}, {"celu", []float64{0, -0.5}, 0}, {"elu", []float64{0, inf}, 0},
		{"elu", []float64{-1e300, 0.3}, -0.3}, {"celu", []float64{-inf, 0.3}, -0.3}, {"selu", []float64{-inf}, -1.7580993408473768}, {"selu", []float64{1}, 1.0507009873554805},
		{"hardshrink", []float64{0.5, 0.5}, 0}, {"hardshrink", []float64{-0.75, 0.5}, -0.75}, {"softshrink", []float64{0.75, 0.5}, 0.25},
		{"softshrink", []float64{-0.75, 0.5}, -0.25}, {"softshrink", []float64{0.25, 0.5}, 0}, {"hardtanh", []float64{3, -1, 1}, 1}, {"threshold", []float64{1, 1, 7}, 7},
		{"add:alpha", []float64{1, 2, inf}, inf}, {"add:alpha", []float64{1, 2, 3}, 7},
	} {
		f := lookup(t, c.id)
		if got := f.Round(tensor.F64, c.args...); !same(got, c.want) {
			t.Errorf("%s%v = %v, want %v", c.id, c.args, got, c.want)
		}
		if u := f.ULP(tensor.F64, c.want, c.args...); u > 0.5 {
			t.Errorf("%s%v: ULP of %v is %v", c.id, c.args, c.want, u)
		}
	}
}

// TestRoundsOnce holds results that rounding by way of float64 gets wrong, and
// ties and limits of every dtype.
func TestRoundsOnce(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		id   string
		d    tensor.DType
		args []float64
		want float64
	}{
		{"gelu", tensor.F32, []float64{0x1p-149}, 0x1p-149}, // 2^-150·(1 + 2^-149): above a tie
		{"gelu", tensor.F32, []float64{-0x1p-149}, math.Copysign(0, -1)},
		{"gelu", tensor.F64, []float64{0x1p-1074}, 0x1p-1074},
		{"sigmoid", tensor.F32, []float64{3 * 0x1p-23}, 0.5 + 0x1p-24}, // below a tie by 2^-73
		{"add", tensor.F16, []float64{2048, 1}, 2048},
		{"add", tensor.F16, []float64{2048, 3}, 2052},
		{"add", tensor.F16, []float64{65504, 16}, inf},
		{"add", tensor.F16, []float64{65504, 15.9921875}, 65504},
		{"add", tensor.BF16, []float64{256, 1}, 256},
		{"add", tensor.BF16, []float64{256, 3}, 260},
		{"mul", tensor.F16, []float64{0x1p-20, 0x1p-5}, 0},           // half the least number
		{"mul", tensor.F16, []float64{0x1.004p-20, 0x1p-5}, 0x1p-24}, // above the half
		{"mul", tensor.F16, []float64{0x3p-20, 0x1p-5}, 0x1p-23},     // 1.5 of the least number
		{"mul", tensor.BF16, []float64{0x1p-100, 0x1p-34}, 0},
		{"mul", tensor.BF16, []float64{0x1p-100, 0x1p-33}, 0x1p-133},
		{"mul", tensor.F32, []float64{0x1.fffffep127, 1}, 0x1.fffffep127},
		{"mul", tensor.F32, []float64{0x1p64, 0x1p64}, inf},
		{"exp2", tensor.F64, []float64{-1075}, 0},
		{"exp2", tensor.F64, []float64{-1074.9999999999998}, 0x1p-1074},
		{"exp2", tensor.F64, []float64{-1074}, 0x1p-1074},
		{"exp2", tensor.F64, []float64{1024}, inf},
		{"exp2", tensor.F16, []float64{16}, inf},
		{"exp2", tensor.F16, []float64{15.9921875}, 65184},
		{"pow", tensor.F64, []float64{3, 33}, 5559060566555523},
		{"pow", tensor.F64, []float64{0.25, -1.5}, 8},
		{"pow", tensor.F64, []float64{2, -1074}, 0x1p-1074},
		{"pow", tensor.F64, []float64{8, 341.25}, 0x1.ae89f995ad3adp+1023},
		{"pow", tensor.F16, []float64{49, 2}, 2400},  // 2401 is a tie
		{"pow", tensor.F16, []float64{-47, 2}, 2208}, // 2209 is a tie
		{"sqrt", tensor.F64, []float64{0x1p-1074}, 0x1p-537},
		{"log2", tensor.BF16, []float64{0x1p-133}, -133},
		{"log10", tensor.F64, []float64{1e22}, 22},
		{"div", tensor.F64, []float64{0x1.8p-1073, 2}, 0x1p-1073}, // a subnormal tie
		{"add", tensor.F64, []float64{0x1p53, 1 + 0x1p-52}, 0x1p53 + 2},
		{"add:alpha", tensor.F64, []float64{0x1p53, 1, 1}, 0x1p53},
		{"add:alpha", tensor.F64, []float64{0x1p53, 1 + 0x1p-52, 1 - 0x1p-53}, 0x1p53 + 2},
	} {
		if got := lookup(t, c.id).Round(c.d, c.args...); !same(got, c.want) {
			t.Errorf("%s %s%x = %x, want %x", c.id, c.d, c.args, got, c.want)
		}
	}
}

func TestULP(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	const largest = 0x1.fffffep127
	for _, c := range []struct {
		id   string
		args []float64
		got  float64
		want float64
	}{
		{"mul", []float64{1.5, 1}, 1.5, 0},
		{"mul", []float64{1.5, 1}, 1.5 + 0x1p-23, 1},
		{"mul", []float64{1, 1}, 1 - 0x1p-24, 1}, // at a power of two the nearer neighbour counts
		{"mul", []float64{1, 1}, 1 + 0x1p-23, 2},
		{"div", []float64{1, 3}, 0x1.555556p-2, 1.0 / 3},
		{"div", []float64{1, 3}, 0x1.555554p-2, 2.0 / 3},
		{"mul", []float64{0x1p-100, 0x1p-50}, 0, 0.5},
		{"mul", []float64{0x1p-100, 0x1p-49}, 0, 1},
		{"mul", []float64{0x1p-100, 0x1p-49}, 0x1p-147, 3},
		{"mul", []float64{0x1p-126, 1}, 0x1p-126 - 0x1p-149, 1},
		{"mul", []float64{0x1p-126, 1}, 0x1p-126 + 0x1p-149, 1},
		{"mul", []float64{largest, 1}, inf, 1}, // infinity stands for 2^128
		{"mul", []float64{largest, 1}, -inf, inf},
		{"mul", []float64{0x1p126, 1}, inf, inf},
		{"mul", []float64{0x1p64, 0x1p64}, inf, 0},
		{"mul", []float64{0x1p64, 0x1p64}, largest, 1},
		{"mul", []float64{0x1p100, 0x1p100}, largest, inf},
		{"mul", []float64{0, 1}, math.Copysign(0, -1), 0},
		{"mul", []float64{0, 1}, 0x1p-149, 1},
		{"mul", []float64{2, 3}, nan, inf},
		{"log", []float64{-1}, nan, 0},
		{"log", []float64{-1}, 0, inf},
		{"log", []float64{0}, -inf, 0},
		{"log", []float64{0}, -largest, inf},
		{"exp", []float64{1e30}, inf, 0},
		{"exp", []float64{1e30}, 1, inf},
		{"exp", []float64{-1e30}, 0, 0},
		{"exp", []float64{0x1p-60}, 1 + 0x1p-23, 1}, // above 1 the spacing is that above 1
		{"exp", []float64{-0x1p-60}, 1 + 0x1p-23, 2},
	} {
		got := lookup(t, c.id).ULP(tensor.F32, c.got, c.args...)
		if math.Abs(got-c.want) > 1e-6 || math.IsInf(got, 0) != math.IsInf(c.want, 0) {
			t.Errorf("%s%v: ULP of %v is %v, want %v", c.id, c.args, c.got, got, c.want)
		}
	}
}

// TestNoNumberIsNearer takes every function by both of its doors: what Round
// returns is at most half a unit off, and its neighbours at least that.
func TestNoNumberIsNearer(t *testing.T) {
	for _, id := range names() {
		for _, d := range floats {
			f, form := lookup(t, id), formatOf(d)
			for _, args := range draws(d, f.arity, 150) {
				y := f.Round(d, args...)
				if u := f.ULP(d, y, args...); u > 0.5 {
					t.Errorf("%s %s%x = %x, %v ULP off", id, d, args, y, u)
				}
				if math.IsNaN(y) || math.IsInf(y, 0) {
					continue
				}
				for _, n := range form.neighbours(y) {
					if u := f.ULP(d, n, args...); u < 0.5 {
						t.Errorf("%s %s%x = %x, but %x is %v ULP off", id, d, args, y, n, u)
					}
				}
			}
		}
	}
}

// neighbours returns the numbers of the format next to x.
func (f format) neighbours(x float64) []float64 {
	_, n := math.Frexp(math.Abs(x))
	if x == 0 {
		n = f.minExp
	}
	up := math.Ldexp(1, f.quantum(n))
	down := up
	if m, _ := math.Frexp(math.Abs(x)); m == 0.5 {
		down = math.Ldexp(1, f.quantum(n-1))
	}
	away, toward := math.Abs(x)+up, math.Abs(x)-down
	return []float64{math.Copysign(away, x), math.Copysign(1, x) * toward}
}

// TestBallsHoldTheTruth compares an evaluation of few bits with one of many:
// they differ by no more than they say.
func TestBallsHoldTheTruth(t *testing.T) {
	for _, id := range names() {
		f := lookup(t, id)
		checked, settled := 0, 0
		for _, d := range []tensor.DType{tensor.F16, tensor.F64} {
			for i, args := range draws(d, f.arity, 400) {
				if _, known := f.known(args); known || f.eval == nil {
					continue
				}
				var x []ball
				for _, a := range args {
					x = append(x, number(a))
				}
				rough, fine := f.eval(bits(32+i%97), x), f.eval(700, x)
				checked++
				if rough.lost() {
					continue
				}
				settled++
				gap := plus(exactly(rough.mid), exactly(fine.mid).neg()).abs()
				if allowed := plus(radius(rough), radius(fine)); gap.mid.Cmp(allowed.mid) > 0 {
					t.Errorf("%s%x at %d bits: off by 2^%d, bound 2^%d", id, args, 32+i%97, gap.size(), rough.err)
				}
			}
		}
		if settled < checked*9/10 {
			t.Errorf("%s: %d of %d evaluations know nothing", id, checked-settled, checked)
		}
	}
}

// TestSeriesHoldTheTruth is TestBallsHoldTheTruth for the series alone, whose
// errors the callers' guard bits hide.
func TestSeriesHoldTheTruth(t *testing.T) {
	arg := func(i int) *big.Float { return big.NewFloat(float64(i%97+1) / 200) }
	series := map[string]func(i, w int) ball{
		"exp": func(i, w int) ball { y, units := expSeries(fix(arg(i), w), w); return unfix(y, w, units) },
		"sin": func(i, w int) ball { y, _, units := sinCosSeries(fix(arg(i), w), w); return unfix(y, w, units) },
		"cos": func(i, w int) ball { _, y, units := sinCosSeries(fix(arg(i), w), w); return unfix(y, w, units) },
		"erf": func(i, w int) ball {
			y, relative := erfSeries(fix(big.NewFloat(float64(i)/4), w), w)
			z := unfix(y, w, 0)
			z.err = z.size() + relative
			return z
		},
		"erfc": func(i, w int) ball {
			y, err := erfcSeries(fix(big.NewFloat(1/float64(50+i)), w), w)
			return ball{unfix(y, w, 0).mid, err}
		},
		"artanh": func(i, w int) ball { return bits(w).artanhSeries(exactly(arg(i))) },
		"arctan": func(i, w int) ball { return bits(w).arctanSeries(exactly(arg(i))) },
	}
	for name, f := range series {
		worst := 0.0
		for i := range 300 {
			w := 12 + i%31
			rough, fine := f(i, w), f(i, 400)
			if name == "erfc" {
				fine = f(i, 50+w) // the asymptotic series ends sooner
			}
			gap := plus(exactly(rough.mid), exactly(fine.mid).neg()).abs()
			used := gap.scale(-rough.err).float()
			worst = max(worst, used)
			if used > 1 {
				t.Errorf("%s of point %d with %d bits is off by %v times its bound", name, i, w, used)
			}
		}
		if worst < 1.0/1024 {
			t.Errorf("%s uses %v of its bound", name, worst)
		}
	}
}

func radius(b ball) ball {
	if b.exact() {
		return integer(0)
	}
	return power2(b.err)
}

func TestMonotone(t *testing.T) {
	for _, id := range []string{"exp", "expm1", "log", "log1p", "sqrt", "tanh", "sigmoid", "erf", "atan", "sinh", "asinh", "selu"} {
		f := lookup(t, id)
		last := math.Inf(-1)
		for _, x := range every(tensor.F16, 5) {
			y := f.Round(tensor.F16, x)
			if y < last {
				t.Errorf("%s falls from %v to %v at %v", id, last, y, x)
			}
			if !math.IsNaN(y) {
				last = y
			}
		}
	}
}

// every returns every step-th number of a 16-bit dtype in ascending order, NaN excluded.
func every(d tensor.DType, step int) []float64 {
	var xs []float64
	for i := 0; i < 1<<16; i += step {
		x := float64(tensor.Float16(i).Float32())
		if d == tensor.BF16 {
			x = float64(tensor.BFloat16(i).Float32())
		}
		if !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	slices.Sort(xs)
	return xs
}

func TestSymmetry(t *testing.T) {
	odd := []string{"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "softsign", "tanhshrink", "neg"}
	even := []string{"cos", "cosh", "abs", "square"}
	for _, d := range floats {
		for _, args := range draws(d, 1, 200) {
			for _, id := range odd {
				if a, b := lookup(t, id).Round(d, args[0]), lookup(t, id).Round(d, -args[0]); !same(a, -b) {
					t.Errorf("%s(±%x) = %x, %x", id, args[0], a, b)
				}
			}
			for _, id := range even {
				if a, b := lookup(t, id).Round(d, args[0]), lookup(t, id).Round(d, -args[0]); !same(a, b) {
					t.Errorf("%s(±%x) = %x, %x", id, args[0], a, b)
				}
			}
		}
	}
}

// TestMathIsNear holds Go's own functions against ours where they are good:
// for normal arguments of moderate size.
func TestMathIsNear(t *testing.T) {
	for id, f := range map[string]func(float64) float64{
		"exp": math.Exp, "exp2": math.Exp2, "expm1": math.Expm1, "log": math.Log, "log1p": math.Log1p, "sqrt": math.Sqrt,
		"sin": math.Sin, "cos": math.Cos, "atan": math.Atan, "asinh": math.Asinh, "tanh": math.Tanh, "erf": math.Erf, "erfc": math.Erfc,
	} {
		worst := 0.0
		for _, args := range draws(tensor.F64, 1, 1000) {
			if _, e := math.Frexp(args[0]); -20 < e && e < 20 {
				worst = max(worst, lookup(t, id).ULP(tensor.F64, f(args[0]), args...))
			}
		}
		if worst > 3 || worst < 0.4 {
			t.Errorf("%s: math is %v ULP off", id, worst)
		}
	}
}

func TestConstants(t *testing.T) {
	for _, c := range []struct {
		c    *constant
		want string
	}{
		{ln2, "0.69314718055994530941723212145817656807550013436025525412068000949339362196969471560586332699641868754200148"},
		{pi, "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808"},
	} {
		want, _, err := big.ParseFloat(c.want, 10, 400, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []int{64, 300, 128} {
			d := new(big.Int).Sub(c.c.fixed(w), fix(want, w))
			if d.CmpAbs(big.NewInt(2)) > 0 {
				t.Errorf("%s at %d bits is off by %v units", c.want[:6], w, d)
			}
		}
	}
}
