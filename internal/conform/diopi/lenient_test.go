package diopi

import (
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"

	"plumb/internal/conform/config"
	"plumb/tensor"
)

func TestLenient(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	f32 := func(shape []int, v ...float64) *tensor.Tensor { return tensor.Float64s(tensor.F32, shape, v...) }
	i64 := func(v ...float64) *tensor.Tensor { return tensor.Float64s(tensor.I64, []int{len(v)}, v...) }
	wild := f32([]int{2000}, make([]float64, 2000)...)
	wild.Set(7, 1e30)
	std := Lenient{ATol: 1e-5, RTol: 1e-5, MismatchRatio: 1e-3}
	for _, c := range []struct {
		name      string
		rule      Lenient
		want, got *tensor.Tensor
		ok        bool
	}{
		{"one of three", std, f32([]int{3}, 1, 1, 1), f32([]int{1}, 1), true},
		{"a row", std, f32([]int{2, 3}, 1, 2, 3, 1, 2, 3), f32([]int{3}, 1, 2, 3), true},
		{"nothing beside one", std, f32([]int{0}), f32([]int{1}, 5), true},
		{"shapes that do not broadcast", std, f32([]int{2}, 1, 1), f32([]int{3}, 1, 1, 1), false},
		{"dtypes", std, i64(1, 2), f32([]int{2}, 1, 2), true},
		{"2^53 and one more", std, i64(1 << 53), i64(1<<53 + 1), true},
		{"one wild element of 2000", std, f32([]int{2000}, make([]float64, 2000)...), wild, true},
		{"one wild element of 3", std, f32([]int{3}, 0, 0, 0), f32([]int{3}, 0, 1e30, 0), false},
		{"NaN for NaN", std, f32([]int{1}, nan), f32([]int{1}, nan), true},
		{"NaN for 0", std, f32([]int{1}, 0), f32([]int{1}, nan), false},
		{"infinities", std, f32([]int{2}, inf, -inf), f32([]int{2}, inf, -inf), true},
		{"the other infinity", std, f32([]int{1}, inf), f32([]int{1}, -inf), false},
		{"permuted", std, f32([]int{2}, 1, 2), f32([]int{2}, 2, 1), false},
		{"permuted, sums alone", Lenient{ATol: 1e-5, RTol: 1e-5, Sums: true}, f32([]int{2}, 1, 2), f32([]int{2}, 2, 1), true},
	} {
		if ok, why := c.rule.Accepts(c.want, c.got); ok != c.ok {
			t.Errorf("%s: %v (%s), want %v", c.name, ok, why, c.ok)
		}
	}
}

func TestLenientOfCase(t *testing.T) {
	src := "d = {'a': dict(name=['f'], atol=0.5, mismatch_ratio_threshold=0.25, para=dict(sorted=[False]), tensor_para=dict(args=[dict(shape=[(1,)], dtype=[np.float32])]))}"
	c, err := config.Load("d.py", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	for one := range c.Cases() {
		if got, want := LenientRule(one), (Lenient{0.5, 1e-5, 0.25, true}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestLenientIsNumpys compares with numpy.isclose on elements near the limit,
// in every pair of dtypes.
func TestLenientIsNumpys(t *testing.T) {
	python := "/usr/bin/python3"
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("no numpy: numpy.isclose is not asked")
	}
	const script = `
import numpy as np, warnings
warnings.simplefilter("ignore")
dtypes = "float16 float32 float64 int8 uint8 int16 int32 int64 bool complex64".split()
rng = np.random.RandomState(0)
def draw(d):
    v = rng.randint(-3, 4, 64).astype(np.float64) + rng.choice([0, 1e-3, 1e-4, 3e-5, np.inf, np.nan], 64, p=[.5, .1, .1, .2, .05, .05]) * ("float" in d or "complex" in d)
    return (np.nan_to_num(v) if "int" in d or d == "bool" else v).astype(d)
for w in dtypes:
    for g in dtypes:
        want, got = draw(w), draw(g)
        got[:40] = want[:40].astype(g) if g != "bool" else got[:40]
        ok = np.isclose(got, want, rtol=1e-3, atol=1e-3, equal_nan=True)
        print(w, g, *(repr(complex(x)) for x in want), *(repr(complex(x)) for x in got), *ok.astype(int))
`
	out, err := exec.Command(python, "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	l := Lenient{ATol: 1e-3, RTol: 1e-3}
	compared, near := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		f := strings.Fields(line)
		w, g := numpyDType(t, f[0]), numpyDType(t, f[1])
		n := (len(f) - 2) / 3
		closeness := l.closeness(w, g)
		for i := range n {
			want, got := parseComplex(t, f[2+i]), parseComplex(t, f[2+n+i])
			ok := f[2+2*n+i] == "1"
			if closeness(want, got) != ok {
				t.Errorf("%s %v, %s %v: numpy says %v", f[0], want, f[1], got, ok)
			}
			if compared++; ok && want != got {
				near++
			}
		}
	}
	if compared < 5000 || near < 100 {
		t.Errorf("%d elements compared, %d of them close and not equal: too few to tell", compared, near)
	}
}

func numpyDType(t *testing.T, name string) tensor.DType {
	t.Helper()
	d, err := tensor.ParseDType(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// parseComplex reads Python's repr of a complex number.
func parseComplex(t *testing.T, s string) complex128 {
	t.Helper()
	var re, im float64
	s = strings.Trim(s, "()")
	if _, err := fmt.Sscanf(s, "%gj", &im); err == nil && strings.HasSuffix(s, "j") && !strings.ContainsAny(strings.TrimLeft(s, "+-"), "+-") {
		return complex(0, im)
	}
	if _, err := fmt.Sscanf(s, "%g%gj", &re, &im); err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return complex(re, im)
}
