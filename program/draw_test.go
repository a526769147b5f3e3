package program

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// The direct loops give the bits that element by element drawing gives.
func TestDrawIsTheStream(t *testing.T) {
	for _, d := range tensor.DTypes {
		for _, f := range []Fill{{Dist: Uniform, Lo: -3, Hi: 5}, {Dist: Uniform, Hi: 1}, {Dist: Integer, Lo: -7, Hi: 9}, {Dist: Integer, Lo: 1, Hi: 1}} {
			f.Key = choice.DeriveName(7, d.String())
			want, got := tensor.New(d, 3, 517), tensor.New(d, 3, 517)
			if f.Dist == Uniform {
				f.uniform(want)
			} else {
				f.integers(want)
			}
			f.Into(got)
			if !got.SameBits(want) {
				t.Errorf("%s of %s: not the bits of the stream", f.String(), d)
			}
		}
	}
}

// An element depends on the key and its place alone: a longer tensor begins
// with a shorter one, and strides change nothing.
func TestDrawDependsOnThePlaceAlone(t *testing.T) {
	for _, d := range tensor.DTypes {
		for _, f := range []Fill{{Dist: Normal, Hi: 1}, {Dist: Folded, Hi: 1}, {Dist: Folded, Lo: 1, Hi: 2}, {Dist: Normal, Hi: 1, Density: 0.25}, {Dist: Constant, Lo: 3}, {Dist: Uniform, Hi: 9, Real: true}} {
			f.Key = 99
			long, short := tensor.New(d, 2000), tensor.New(d, 1537)
			f.Into(long)
			f.Into(short)
			if !long.Narrow(0, 0, 1537, 1).SameBits(short) {
				t.Errorf("%s of %s: a shorter tensor has other elements", f.String(), d)
			}
			in := Input{DType: d, Shape: []int{2, 500}, Strides: []int{3, 7}, Fill: f}
			if !in.Materialize().SameBits(long.Narrow(0, 0, 1000, 1).Reshape(2, 500)) {
				t.Errorf("%s of %s: strides change the elements", f.String(), d)
			}
		}
	}
}

// The bits of the deviates, on every machine.
func TestNormalGolden(t *testing.T) {
	want := map[tensor.DType]string{}
	for _, line := range strings.Fields(golden) {
		name, sum, _ := strings.Cut(line, "=")
		d, err := tensor.ParseDType(name)
		if err != nil {
			t.Fatal(err)
		}
		want[d] = sum
	}
	for _, d := range tensor.DTypes {
		x := tensor.New(d, 10007)
		(&Fill{Dist: Normal, Hi: 1, Key: 20241122}).Into(x)
		h := fnv.New64a()
		h.Write(x.Bytes())
		if sum := fmt.Sprintf("%016x", h.Sum64()); sum != want[d] {
			t.Errorf("%s=%s", d, sum)
		}
	}
}

const golden = `bool=782fc5bd9dfa876e uint8=e43b6162f767c96a int8=e43b6162f767c96a int16=21f89f49a4acdf8d
int32=b4539b244a253787 int64=00f75c015c822eab float16=d96fbd6efc8d4d38 bfloat16=ee28a7c470044f1e
float32=8cf7e991b3eec323 float64=e60c6805faccda15 complex64=45af9e40fcc441cd complex128=ed024795293037c4`

// The quick ways give the bits of the plain one, block after block.
func TestQuickIsPlain(t *testing.T) {
	for _, d := range tensor.DTypes {
		for _, f := range []Fill{{Dist: Normal, Hi: 1}, {Dist: Folded, Hi: 1}, {Dist: Integer, Lo: -300, Hi: 70000}, {Dist: Uniform, Lo: -1, Hi: 1, Real: true}} {
			for _, n := range []int{1, 9, 959, 3001} {
				f.Key = uint64(n)
				quick, plain := tensor.New(d, n), tensor.New(d, n)
				f.draw(quick)
				f.throughFloat64(plain)
				if (f.Real || !d.IsComplex()) && !quick.SameBits(plain) {
					t.Errorf("%d elements of %s of %s: not the plain bits", n, f.String(), d)
				}
			}
		}
	}
}

// Moments and the Kolmogorov–Smirnov distance of a million deviates with a
// fixed key, in both sizes of a deviate's random word.
func TestNormalLaw(t *testing.T) {
	const n = 1 << 20
	for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
		x := tensor.New(d, n)
		(&Fill{Dist: Normal, Hi: 1, Key: 5}).Into(x)
		z := make([]float64, n)
		var m [5]float64
		for i := range z {
			z[i] = x.Float(i)
			p := 1.0
			for k := range m {
				m[k] += p / n
				p *= z[i]
			}
		}
		slices.Sort(z)
		far := 0.0
		for i, v := range z {
			cdf := 0.5 * math.Erfc(-v/math.Sqrt2)
			far = max(far, math.Abs(cdf-float64(i)/n), math.Abs(cdf-float64(i+1)/n))
		}
		if limit := math.Sqrt(math.Log(2/1e-6) / (2 * n)); far > limit {
			t.Errorf("%s: Kolmogorov–Smirnov distance %g > %g", d, far, limit)
		}
		for k, want := range []float64{1, 0, 1, 0, 3} {
			if sd := []float64{1e-12, 1, math.Sqrt2, math.Sqrt(15), math.Sqrt(96)}[k] / math.Sqrt(n); math.Abs(m[k]-want) > 5*sd {
				t.Errorf("%s: moment %d is %v, want %v ± %v", d, k, m[k], want, sd)
			}
		}
	}
}

func TestDrawnDTypes(t *testing.T) {
	count := func(f Fill, d tensor.DType, is func(v float64) bool) (share float64) {
		x := tensor.New(d, 20000)
		f.Into(x)
		for i := range x.Len() {
			if is(x.Float(i)) {
				share += 1.0 / 20000
			}
		}
		return share
	}
	normal := Fill{Dist: Normal, Hi: 1, Key: 3}
	for _, c := range []struct {
		what string
		f    Fill
		d    tensor.DType
		is   func(v float64) bool
		want float64
	}{
		{"integers truncate toward 0", normal, tensor.I32, func(v float64) bool { return v == 0 }, 0.6827},
		{"-1 is 255 in uint8", normal, tensor.U8, func(v float64) bool { return v == 255 }, 0.1359},
		{"all is True in bool", normal, tensor.Bool, func(v float64) bool { return v == 1 }, 1},
		{"folded is not negative", Fill{Dist: Folded, Hi: 1, Key: 3}, tensor.F16, func(v float64) bool { return v >= 0 }, 1},
		{"density keeps its share", Fill{Dist: Folded, Hi: 1, Key: 3, Density: 0.2}, tensor.F32, func(v float64) bool { return v > 0 }, 0.2},
		{"mean and deviation scale", Fill{Dist: Normal, Lo: 10, Hi: 2, Key: 3}, tensor.F32, func(v float64) bool { return v > 12 }, 0.1587},
	} {
		if got := count(c.f, c.d, c.is); math.Abs(got-c.want) > 0.012 {
			t.Errorf("%s: share %.4f, want %.4f", c.what, got, c.want)
		}
	}
	x := tensor.New(tensor.C64, 4)
	(&Fill{Dist: Normal, Hi: 1, Real: true}).Into(x)
	if imag(x.At(3)) != 0 || real(x.At(3)) == 0 {
		t.Errorf("a real complex element is %v", x.At(3))
	}
}

// An element is kept by the first word of its own block.
func TestThin(t *testing.T) {
	f := Fill{Dist: Constant, Lo: 1, Key: 6, Density: 0.3}
	x := tensor.New(tensor.I16, 1001)
	f.Into(x)
	rng := choice.NewPhilox(choice.Derive(f.Key, 1))
	for i := range x.Len() {
		if word, _ := rng.Pair(uint64(i)); (x.Float(i) == 1) != (float64(word)*0x1p-64 < f.Density) {
			t.Fatalf("element %d is %v", i, x.Float(i))
		}
	}
}

func TestGram(t *testing.T) {
	x := tensor.New(tensor.F64, 2, 5, 5)
	(&Fill{Dist: Gram, Lo: 0.001, Hi: 7, Key: 8}).Into(x)
	m := tensor.New(tensor.F64, 2, 5, 7)
	(&Fill{Dist: Normal, Hi: 1, Key: 8}).Into(m)
	for i := range x.Len() {
		b, r, c, want := i/25*35, i/5%5, i%5, 0.001
		for k := range 7 {
			want += m.Float(b+r*7+k) * m.Float(b+c*7+k)
		}
		if math.Abs(x.Float(i)-want) > 1e-12 {
			t.Fatalf("element %d is %v, want %v", i, x.Float(i), want)
		}
	}
}

func TestDistsHaveText(t *testing.T) {
	for _, f := range []Fill{
		{Dist: Normal, Hi: 1, Key: 1 << 63}, {Dist: Folded, Hi: 1, Key: 2, Real: true}, {Dist: Gram, Lo: 0.001, Hi: 1, Key: 3},
		{Dist: Constant, Lo: -3}, {Dist: Uniform, Hi: 1, Key: 4, Density: 0.2}, {Dist: Uniform, Lo: -2, Hi: 9, Key: 5, Scales: true},
	} {
		p := &Program{Name: "t", Inputs: []Input{{Name: "x", DType: tensor.F32, Shape: []int{2, 2}, Fill: f}}}
		back, err := Parse("", p.String())
		if err != nil || back.Inputs[0].Fill != f || p.Validate() != nil {
			t.Errorf("%s: %v, %+v", p.Inputs[0].String(), err, back)
		}
	}
	for _, line := range []string{
		"x = tensor((2, 3), torch.float32, gram(0.0, 1.0, key=1))", "x = tensor((2,), torch.float32, normal(0.0, key=1))", "x = tensor((2, 2), torch.float32, gram(0.0, 1.5, key=1))",
		"x = tensor((2,), torch.float32, normal(0.0, 1.0, key=1, kinks=True))", "x = tensor((2,), torch.float32, uniform(0.0, 1.0, key=1, density=2))",
		"x = tensor((2,), torch.float32, integer(0.0, 9.0, key=1, scales=True))", "x = tensor((2,), torch.float32, uniform(2.0, 1.0, key=1, scales=True))",
	} {
		if _, err := Parse("", line); err == nil {
			t.Errorf("%s: no error", line)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, f := range []Fill{{Dist: Normal, Hi: 1}, {Dist: Uniform, Hi: 1}, {Dist: Integer, Lo: -5, Hi: 5}, {Dist: Constant}} {
		for _, d := range tensor.DTypes {
			b.Run(fmt.Sprintf("%s/%s", f.Dist, d), func(b *testing.B) {
				x := tensor.New(d, 1<<20)
				b.SetBytes(int64(x.Len() * d.Size()))
				for b.Loop() {
					f.Into(x)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(x.Len()), "ns/element")
			})
		}
	}
}
