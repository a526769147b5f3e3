package compare

import (
	"math"
	"slices"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/tensor"
)

// reals is the law of numbers in [0, 1) with 53 digits.
var (
	reals = &op.Law{}
	coins = &op.Law{Atoms: true, Two: true}
)

// uniforms returns n numbers in [0, 1) of a seed.
func uniforms(n int, seed uint64) []float64 {
	rng := choice.NewPhilox(seed)
	us := make([]float64, n)
	for i := range us {
		u, _ := rng.Pair(uint64(i))
		us[i] = float64(u>>11) * 0x1p-53
	}
	return us
}

func real01(us []float64, f func(i int, u float64) float64) []op.Draw {
	ds := make([]op.Draw, len(us))
	for i, u := range us {
		v := f(i, u)
		ds[i] = op.Draw{At: i, Below: v * (1 - 0x1p-53), Upto: min(v*(1+0x1p-53), 1)}
	}
	return ds
}

func flips(us []float64, claimed, p float64) []op.Draw {
	ds := make([]op.Draw, len(us))
	for i, u := range us {
		ds[i] = op.Draw{At: i, Below: 0, Upto: 1 - claimed}
		if u < p {
			ds[i].Below, ds[i].Upto = 1-claimed, 1
		}
	}
	return ds
}

func same(_ int, u float64) float64 { return u }

// TestNoFalseAlarms draws from the laws themselves: 400 times 10 to 3,200
// draws, where one in 10⁹ may fail.
func TestNoFalseAlarms(t *testing.T) {
	worst := map[string]Number{}
	for seed := range uint64(400) {
		n := 10 + int(seed)*8
		us := uniforms(n, seed)
		fits := []Fit{
			follows(real01(us, same), reals, []int{n}, tensor.F64),
			follows(flips(us, 0.3, 0.3), coins, []int{n}, tensor.F32),
			follows(flips(us, 0.01, 0.01), coins, []int{n}, tensor.F32),
			alike(real01(us, same), real01(uniforms(n/2+5, seed+7000), same), reals, tensor.F32),
		}
		for _, f := range fits {
			worst[f.Test] = max(worst[f.Test], f.Ratio)
			if f.Ratio > 1 {
				t.Fatalf("seed %d: %s", seed, f.Message)
			}
		}
	}
	for test, r := range worst {
		if r > 0.95 {
			t.Errorf("%s comes within %v of its limit", test, r)
		}
	}
}

func TestStatisticsFindFaults(t *testing.T) {
	const n = 10000
	shape := []int{100, 100}
	us := uniforms(n, 3)
	gauss := func(variance float64) func(int, float64) float64 {
		return func(_ int, u float64) float64 {
			z := -math.Sqrt2 * math.Erfcinv(2*u) * math.Sqrt(variance)
			return math.Erfc(-z/math.Sqrt2) / 2
		}
	}
	tests := map[string]struct {
		draws []op.Draw
		law   *op.Law
		test  string
	}{
		"uniform with a bias of 2 %":  {real01(us, func(_ int, u float64) float64 { return 0.02 + 0.98*u }), reals, ""},
		"uniform to the power 1.08":   {real01(us, func(_ int, u float64) float64 { return math.Pow(u, 1.08) }), reals, "mean"},
		"normal with variance 1.1":    {real01(us, gauss(1.1)), reals, "spread"},
		"normal with variance 0.9":    {real01(us, gauss(0.9)), reals, "spread"},
		"two humps":                   {real01(us, func(_ int, u float64) float64 { return u + 0.04*math.Sin(4*math.Pi*u) }), reals, ""},
		"a constant":                  {real01(us, func(int, float64) float64 { return 0.4 }), reals, ""},
		"the same row again":          {real01(us, func(i int, _ float64) float64 { return us[i%100] }), reals, "repetition"},
		"the same column again":       {real01(us, func(i int, _ float64) float64 { return us[i/100] }), reals, "repetition"},
		"dropout of p 0.55 for 0.5":   {flips(us, 0.5, 0.55), coins, "share"},
		"dropout of p 0.13 for 0.1":   {flips(us, 0.1, 0.13), coins, "share"},
		"dropout of 0":                {flips(us, 0.01, 0), coins, "share"},
		"masks repeated row for row":  {flips(repeat(us), 0.5, 0.5), coins, "repetition"},
		"rare masks repeated by rows": {flips(repeat(us), 0.1, 0.1), coins, "repetition"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := follows(tt.draws, tt.law, shape, tensor.F32)
			if f.Ratio <= 1 {
				t.Errorf("not found: %v of the limit by %s", f.Ratio, f.Test)
			}
			if tt.test != "" && f.Test != tt.test {
				t.Errorf("found by %s, not by %s: %s", f.Test, tt.test, f.Message)
			}
		})
	}
}

func repeat(us []float64) []float64 {
	out := make([]float64, len(us))
	for i := range out {
		out[i] = us[i%100]
	}
	return out
}

func TestTwoSamplesThatDiffer(t *testing.T) {
	a := real01(uniforms(10000, 1), same)
	b := real01(uniforms(10000, 2), func(_ int, u float64) float64 { return u * u })
	if f := alike(a, b, reals, tensor.F32); f.Ratio <= 1 {
		t.Errorf("u and u² pass as one distribution: %v", f.Ratio)
	}
	if f := alike(flips(uniforms(10000, 1), 0.5, 0.5), flips(uniforms(10000, 2), 0.5, 0.6), coins, tensor.F32); f.Ratio <= 1 {
		t.Errorf("coins of 0.5 and 0.6 pass as one distribution: %v", f.Ratio)
	}
}

// TestPower states how often faults are found, as docs/numerics.md does.
func TestPower(t *testing.T) {
	gauss := func(_ int, u float64) float64 {
		return math.Erfc(math.Erfcinv(2*u)*math.Sqrt(1.1)) / 2
	}
	for _, c := range []struct{ n, least, most int }{{8000, 20, 65}, {10000, 30, 90}, {15000, 95, 100}} {
		found := 0
		for seed := range uint64(100) {
			if follows(real01(uniforms(c.n, seed), gauss), reals, []int{c.n}, tensor.F64).Ratio > 1 {
				found++
			}
		}
		if found < c.least || found > c.most {
			t.Errorf("variance 1.1 is found in %d of 100 samples of %d", found, c.n)
		}
		t.Logf("n = %d: %d of 100", c.n, found)
	}
}

func TestChiSquareTail(t *testing.T) {
	// P(χ² > 150) and P(χ² < 60) of 100 degrees of freedom, by integration of the density
	for _, c := range []struct{ x, n, tail float64 }{{1.5, 100, 0.000904}, {0.6, 100, 0.000519}} {
		z := chiSquare(c.x, c.n)
		if got := math.Erfc(math.Abs(z)/math.Sqrt2) / 2; math.Abs(got/c.tail-1) > 0.05 {
			t.Errorf("the tail beyond %v of %v degrees is %.3g, want %.3g", c.x, c.n, got, c.tail)
		}
	}
}

func follows(draws []op.Draw, law *op.Law, shape []int, d tensor.DType) Fit {
	return (&Drawn{Draws: draws, Law: law}).Follows(shape, d)
}

func alike(want, got []op.Draw, law *op.Law, d tensor.DType) Fit {
	return (&Drawn{Draws: want, Law: law}).Alike(&Drawn{Draws: got, Law: law}, d)
}

// TestSorts: both ways to sort numbers give what slices.Sort does, whatever the
// numbers are.
func TestSorts(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	even := uniforms(1000, 3)
	lists := [][]float64{{}, {0.5}, {1, nan, 0}, {1, 0, 1, 0, 0.25}, even, append([]float64{-0.1, 1.5, inf, nan, -inf, 0, 1, nan}, even...), slices.Repeat([]float64{3, -2}, 50)}
	for _, list := range lists {
		want := slices.Sorted(slices.Values(list))
		got, few := slices.Clone(list), slices.Clone(list)
		if sortEven(got); !equalLists(got, want) {
			t.Errorf("sortEven leaves %v", got)
		}
		if done := sortFew(few); done && !equalLists(few, want) || !done && !equalLists(few, list) || done != (len(list) < 1000 && !slices.ContainsFunc(list, math.IsNaN)) {
			t.Errorf("sortFew says %t and leaves %v", done, few)
		}
	}
}

func equalLists(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}
