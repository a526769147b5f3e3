package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
)

// singlesOfAllKinds are float32 whose roundings to halves differ in kind: every half,
// the middle above it and what lies beside that, NaNs of many payloads, and others.
func singlesOfAllKinds() []float32 {
	var all []float32
	for h := range 1 << 16 {
		for _, f := range []float32{Float16(h).Float32(), BFloat16(h).Float32()} {
			bits := math.Float32bits(f)
			for _, more := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001} {
				all = append(all, math.Float32frombits(bits+more))
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1 << 16 {
		all = append(all, math.Float32frombits(rng.Uint32()))
	}
	return all
}

// sameBits tells the first element whose bits are not those of one by one.
func sameBits[D, S any](t *testing.T, what string, src []S, bits func(D) uint64, all func([]D, []S), one func(S) D) {
	t.Helper()
	dst := make([]D, len(src))
	all(dst, src)
	for i, x := range src {
		if got, want := dst[i], one(x); bits(got) != bits(want) {
			t.Errorf("%s: element %d of %d, %v, became %#x, by itself %#x", what, i, len(src), x, bits(got), bits(want))
			return
		}
	}
}

func word[H Float16 | BFloat16](h H) uint64 { return uint64(h) }

func floatBits(f float32) uint64 { return uint64(math.Float32bits(f)) }

// TestFloatsAtOnce: many at once become what each becomes by itself, to the bit.
func TestFloatsAtOnce(t *testing.T) {
	halves, brains := make([]Float16, 1<<16), make([]BFloat16, 1<<16)
	for i := range halves {
		halves[i], brains[i] = Float16(i), BFloat16(i)
	}
	f32 := singlesOfAllKinds()
	f64 := make([]float64, 0, 2*len(f32))
	for _, f := range f32 {
		f64 = append(f64, float64(f), math.Nextafter(float64(f), 1))
	}
	for _, end := range []int{0, 7, 8, 9, 531, math.MaxInt} {
		h, b, f, d := halves[:min(end, len(halves))], brains[:min(end, len(brains))], f32[:min(end, len(f32))], f64[:min(end, len(f64))]
		sameBits(t, "float16 → float32", h, floatBits, FromFloat16s, Float16.Float32)
		sameBits(t, "bfloat16 → float32", b, floatBits, FromBFloat16s, BFloat16.Float32)
		sameBits(t, "float16 → float64", h, math.Float64bits, fromHalves(FromFloat16s), func(x Float16) float64 { return float64(x.Float32()) })
		sameBits(t, "bfloat16 → float64", b, math.Float64bits, fromHalves(FromBFloat16s), func(x BFloat16) float64 { return float64(x.Float32()) })
		sameBits(t, "float32 → float16", f, word, ToFloat16s, ToFloat16)
		sameBits(t, "float32 → bfloat16", f, word, ToBFloat16s, ToBFloat16)
		sameBits(t, "float32 → float64", f, math.Float64bits, toDoubles, func(x float32) float64 { return float64(x) })
		sameBits(t, "float64 → float16", d, word, toHalves(ToFloat16s), Float64ToFloat16)
		sameBits(t, "float64 → bfloat16", d, word, toHalves(ToBFloat16s), Float64ToBFloat16)
		sameBits(t, "float64 → float32", d, floatBits, toSingles, func(x float64) float32 { return float32(x) })
	}
}

func BenchmarkFloats(b *testing.B) {
	n := 4096
	src, f32, f64 := New(F16, n), New(F32, n), New(F64, n)
	for name, pair := range map[string][2]*Tensor{"f16-f32": {f32, src}, "f32-f16": {src, f32}, "f64-f32": {f32, f64}, "f32-f64": {f64, f32}, "f64-f16": {src, f64}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				pair[0].CopyFrom(pair[1])
			}
		})
	}
}
