package compare

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// engines measures by SIMD, by plain Go and by the careful loop.
func engines(want, got *tensor.Tensor, l Limit, o Options) (simd, plain, care Diff) {
	run := func(fast bool) Diff {
		m := newMeter(want.DType(), l.rule(), o)
		defer m.free()
		m.quick = fast
		walk(want, got, m)
		return m.diff(want, got, want.Len())
	}
	if want.Len() == 0 {
		d := identical(0)
		return d, d, d
	}
	defer func(was bool) { useSIMD = was }(useSIMD)
	simd = run(true)
	useSIMD = false
	return simd, run(true), run(false)
}

// disagreement returns how the engines differ: the first two must agree bit by
// bit, the last one but for the rounding of its sums.
func disagreement(want, got *tensor.Tensor, l Limit, o Options) string {
	simd, plain, care := engines(want, got, l, o)
	if !equalNaN(simd, plain) {
		return "-simd +plain\n" + cmp.Diff(simd, plain)
	}
	for _, d := range []*Diff{&simd, &care} {
		d.MeanAbs, d.RMSE, d.Cosine = sumOf(d.MeanAbs), sumOf(d.RMSE), sumOf(d.Cosine)
	}
	if !equalNaN(simd, care) && !cmp.Equal(simd, care, nearSums(&simd)) {
		return "-simd +care\n" + cmp.Diff(simd, care)
	}
	was := useSIMD
	defer func() { useSIMD = was }()
	for _, useSIMD = range []bool{was, false} {
		if p := Passes(want, got, l, o); p != simd.OK {
			return fmt.Sprintf("Passes is %v with SIMD %v, Tensors %v", p, useSIMD, simd.OK)
		}
	}
	return ""
}

// sumOf leaves a number that is finite; where sums overflow depends on their order.
func sumOf(n Number) Number {
	if math.IsInf(float64(n), 0) || n != n {
		return 0
	}
	return n
}

// nearSums compares diffs; the figures that are sums may differ by 1e-12.
func nearSums(d *Diff) cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool {
		f, ok := p.Last().(cmp.StructField)
		return ok && (f.Name() == "MeanAbs" || f.Name() == "RMSE" || f.Name() == "Cosine")
	}, cmp.Comparer(func(p, q Number) bool {
		return math.Abs(float64(p-q)) <= 1e-12*max(1e-3, math.Abs(float64(p)))
	}))
}

var simdLimits = []Limit{
	Default(tensor.F32), Default(tensor.F64), Exactly(""), {RTol: 1e-6}, {ATol: 1e-6}, {ATol: 0x1p-20}, {RTol: 0.5, ATol: 1},
	{ULP: 1}, {ULP: 3}, {ULP: 10}, {ULP: 0.7}, {ULP: 1000}, {ULP: 1e6}, {ULP: 1e9}, {RTol: 1e-6, ULP: 4}, {RTol: 1e-7, ATol: 1e-8, ULP: 2}, {ATol: 1e-6, ULP: 5},
	{RTol: inf, ATol: inf}, {RTol: 1e-30}, {ATol: 1e-40}, {ATol: 3e-44}, {RTol: 1e-9, ATol: 1e-310}, {RTol: 1e12}, {ATol: 1e20}, {RTol: 0.3}, {RTol: 300}, {RTol: 300, ULP: 40}, {RTol: 1e-6, ATol: 1e30}, {RTol: 1e-3, ATol: 0x1p-99},
}

// patterns fill a pair of elements; every one aims at something that an
// estimate, a vector or a count can get wrong.
var patterns = []struct {
	name string
	draw func(r *rng, l rule, i int) (want, got float64)
}{
	{"noise", func(r *rng, l rule, i int) (float64, float64) {
		w := r.unit()
		return w, w * (1 + float64(r.below(5))*0x1p-24)
	}},
	{"edges", func(r *rng, l rule, i int) (float64, float64) {
		w := r.unit()
		d := Decades[r.below(len(Decades))] * (l.atol + l.rtol*math.Abs(w))
		d *= 1 + float64(r.below(33)-16)*0x1p-25
		return w, w + r.sign()*d
	}},
	{"edges of small numbers", func(r *rng, l rule, i int) (float64, float64) {
		w := math.Ldexp(r.unit(), -70-r.below(75))
		d := Decades[r.below(len(Decades))] * (l.atol + l.rtol*math.Abs(w))
		return w, w + r.sign()*d
	}},
	{"one at the limit", func(r *rng, l rule, i int) (float64, float64) {
		w := r.unit()
		if r.below(100) == 0 {
			return w, w + r.sign()*(l.atol+l.rtol*math.Abs(w))*(1+float64(r.below(5)-3)*0x1p-25)
		}
		return w, w
	}},
	{"near ties", func(r *rng, l rule, i int) (float64, float64) {
		k := float64(1 + r.below(40))
		w := k * (1 + float64(r.below(3))*0x1p-23)
		return w, w + k*0x1p-18
	}},
	{"edge of zero", func(r *rng, l rule, i int) (float64, float64) {
		d := Decades[r.below(len(Decades))] * l.atol
		return 0, r.sign() * d * (1 + math.Ldexp(float64(r.below(9)-4), -18-r.below(7)))
	}},
	{"steps", func(r *rng, l rule, i int) (float64, float64) {
		w := float32(r.unit())
		g := math.Float32frombits(math.Float32bits(w) + uint32(float64(r.below(13))*max(1, l.ulp/4)))
		return float64(w), float64(g)
	}},
	{"one off", func(r *rng, l rule, i int) (float64, float64) {
		w := r.unit()
		if r.below(500) == 0 {
			return w, w + 3
		}
		return w, w
	}},
	{"growing", func(r *rng, l rule, i int) (float64, float64) {
		return 1 + float64(i), (1 + float64(i)) * (1 + float64(i)*1e-7)
	}},
	{"constant", func(r *rng, l rule, i int) (float64, float64) { return 1, 1 + 0x1p-23 }},
	{"subnormal", func(r *rng, l rule, i int) (float64, float64) {
		return float64(r.below(9)) * 0x1p-149, r.sign() * float64(r.below(9)) * 0x1p-149
	}},
	{"subnormal among normal", func(r *rng, l rule, i int) (float64, float64) {
		if r.below(50) == 0 {
			return float64(r.below(9)) * 0x1p-149, float64(r.below(9)) * 0x1p-149
		}
		w := r.unit()
		return w, w * (1 + 0x1p-22)
	}},
	{"signs", func(r *rng, l rule, i int) (float64, float64) { w := 4 * r.unit(); return w, -w }},
	{"huge", func(r *rng, l rule, i int) (float64, float64) {
		w := r.unit() * math.MaxFloat32
		return w, []float64{w * (1 + 0x1p-22), -w, 0, 1}[r.below(4)]
	}},
	{"specials", func(r *rng, l rule, i int) (float64, float64) {
		list := []float64{0, math.Copysign(0, -1), 1, -1, nan, math.Inf(1), math.Inf(-1), math.MaxFloat32, 0x1p-149, math.MaxFloat64, -math.MaxFloat64}
		return list[r.below(len(list))], list[r.below(len(list))]
	}},
	{"few specials", func(r *rng, l rule, i int) (float64, float64) {
		list := []float64{nan, math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}
		w := list[r.below(5)]
		switch r.below(300) {
		case 0:
			return w, list[r.below(5)]
		case 1, 2, 3:
			return w, w
		}
		w = r.unit()
		return w, w * (1 + 0x1p-23)
	}},
	{"any bits", func(r *rng, l rule, i int) (float64, float64) {
		return math.Float64frombits(r.word()), math.Float64frombits(r.word())
	}},
	{"any float32 bits", func(r *rng, l rule, i int) (float64, float64) {
		return float64(math.Float32frombits(uint32(r.word()))), float64(math.Float32frombits(uint32(r.word())))
	}},
}

func (r *rng) unit() float64 { return float64(r.word()>>11)*0x1p-52 - 1 }
func (r *rng) sign() float64 { return float64(r.below(2)*2 - 1) }

// TestEnginesAgree runs the ways of measuring over the same tensors.
func TestEnginesAgree(t *testing.T) {
	options := []Options{{}, {}, {}, {NaNDiffers: true}, {SignedZero: true}}
	for _, d := range []tensor.DType{tensor.F32, tensor.F64, tensor.F16, tensor.BF16} {
		for p, pattern := range patterns {
			t.Run(d.String()+"/"+pattern.name, func(t *testing.T) {
				r := &rng{p: choice.NewPhilox(uint64(p)<<8 | uint64(d))}
				for k := range 3 * len(simdLimits) {
					l, o := simdLimits[k%len(simdLimits)], options[r.below(len(options))]
					n := []int{r.below(71), r.below(71), 2*chunkLen - 2 + r.below(5), chunkLen + r.below(500), 3*chunkLen + r.below(2000)}[r.below(5)]
					want, got := tensor.New(d, n+8), tensor.New(d, n+8)
					want, got = want.Narrow(0, r.below(9), n, 1), got.Narrow(0, r.below(9), n, 1)
					for i := range n {
						w, g := pattern.draw(r, l.rule(), i)
						want.Set(i, complex(w, 0))
						got.Set(i, complex(g, 0))
					}
					if diff := disagreement(want, got, l, o); diff != "" {
						t.Fatalf("%d elements, limit %v, options %+v: %s", n, l, o, diff)
					}
				}
			})
		}
	}
}

// TestPasses compares the verdict with that of Tensors, over every dtype.
func TestPasses(t *testing.T) {
	draws(t, func(t *testing.T, r *rng, a, b *tensor.Tensor) {
		for _, o := range []Options{{}, {NaNDiffers: true}, {SignedZero: true}, {Layout: true}} {
			l := r.limit(a.DType())
			if p, d := Passes(a, r.strided(b), l, o), Tensors(a, b, l, o); p != d.OK && !o.Layout {
				t.Errorf("limit %v, options %+v: Passes is %v, the diff %+v", l, o, p, d)
			}
		}
	})
	for _, tt := range []struct {
		name      string
		want, got *tensor.Tensor
		pass      bool
	}{
		{"none", nil, nil, true},
		{"want none", nil, f32(1), false},
		{"shape", f32(1), f32(1, 2), false},
		{"dtype", f32(1), tensor.New(tensor.F64, 1), false},
		{"empty", tensor.New(tensor.F32, 0, 3), tensor.New(tensor.F32, 0, 3), true},
	} {
		if p := Passes(tt.want, tt.got, Default(tensor.F32), Options{}); p != tt.pass {
			t.Errorf("%s: %v", tt.name, p)
		}
	}
}

// TestSmallAllocations: a run makes millions of small comparisons.
func TestSmallAllocations(t *testing.T) {
	want, got := pair(60)
	l := Default(tensor.F32)
	if n := testing.AllocsPerRun(100, func() { Tensors(want, got, l, Options{}) }); n > 2 {
		t.Errorf("a comparison of 60 elements allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { Passes(want, got, l, Options{}) }); n > 1 {
		t.Errorf("a verdict on 60 elements allocates %v times", n)
	}
}

// FuzzEngines looks for tensors that the engines measure differently. The bits
// are repeated beyond a chunk, so that vectors and what is left over see them.
func FuzzEngines(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 1, 0, 128, 63, 0, 0, 0, 128, 0, 0, 192, 127}, uint16(70), false, 1e-6, 1e-5, 0.0)
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, uint16(3000), true, 0.0, 0.0, 3.0)
	f.Add([]byte("000\xff0000"), uint16(2865), false, 351.0, 0.0, 40.0)
	f.Fuzz(func(t *testing.T, data []byte, n uint16, double bool, rtol, atol, ulp float64) {
		d, size := tensor.F32, 4
		if double {
			d, size = tensor.F64, 8
		}
		count := int(n) % 5000
		if len(data) < 2*size || count == 0 {
			return
		}
		half := len(data) / 2 / size * size
		want, got := repeated(d, count, data[:half]), repeated(d, count, data[half:2*half])
		l := Limit{RTol: Number(rtol), ATol: Number(atol), ULP: Number(ulp)}
		for _, o := range []Options{{}, {NaNDiffers: true}, {SignedZero: true}} {
			if diff := disagreement(want, got, l, o); diff != "" {
				t.Errorf("options %+v: %s", o, diff)
			}
		}
	})
}

// repeated returns n elements that repeat some, with a few bits changed so that
// no two chunks are alike.
func repeated(d tensor.DType, n int, data []byte) *tensor.Tensor {
	t := tensor.New(d, n)
	b := t.Bytes()
	for i := 0; i < len(b); i += copy(b[i:], data) {
	}
	for i := len(data); i+4 <= len(b); i += 1021 * 4 {
		binary.LittleEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:])^uint32(i>>12))
	}
	return t
}
