package variate

import (
	"math"
	"slices"
	"testing"

	"plumb/internal/draw/choice"
)

// words has the words of a stream, and among them tails of all octaves and the
// edges of what a float32 distinguishes.
func words(n int) []uint64 {
	out := make([]uint64, n)
	choice.NewPhilox(11).Words(out, 0)
	for i := range out {
		edge := uint64(1)<<(i/3%32) + uint64(i%3) - 1
		switch i % 64 {
		case 5:
			out[i] = out[i]&(1<<63|1<<31) | edge&^(1<<31) | (edge&^(1<<31))<<32
		case 6:
			out[i] = ^edge & (1<<32 - 1)
		case 7:
			out[i] = uint64(i/64) << 9 % (1 << 16)
		case 8:
			out[i] = ^uint64(i / 64 << 9 % (1 << 16))
		}
	}
	return out
}

// both returns what f gives with vector instructions and without.
func both[T any](n int, f func(dst []T)) (vector, portable []T) {
	avx2 := useAVX2
	defer func() { useAVX2 = avx2 }()
	vector, portable = make([]T, n), make([]T, n)
	f(vector)
	useAVX2 = false
	f(portable)
	return vector, portable
}

func same[T comparable](t *testing.T, what string, n int, bits func(T) uint64, f func(dst []T)) {
	t.Helper()
	a, b := both(n, f)
	for i := range a {
		if bits(a[i]) != bits(b[i]) {
			t.Errorf("%s, element %d of %d: %v with vector instructions, %v without", what, i, n, a[i], b[i])
			return
		}
	}
}

func integer[T int8 | int16 | int32 | int64](v T) uint64 {
	return uint64(int64(v))
}

func float32Bits(v float32) uint64 { return uint64(math.Float32bits(v)) }

// The bits are the same with vector instructions and without.
func TestSameBits(t *testing.T) {
	for _, n := range []int{0, 7, 8, 9, 23, 8 * 1021} {
		w := words(n + 1)
		for _, folded := range []bool{false, true} {
			same(t, "Normals", n, float32Bits, func(dst []float32) { Normals(dst, w, folded) })
			same(t, "Normals64", n, math.Float64bits, func(dst []float64) { Normals64(dst, w, folded) })
		}
		for _, r := range [][2]float64{{0, 1}, {-3, 5}, {2, 2}, {5, 1}, {1, 1 + 0x1p-52}, {-1e300, 1e300}, {0, 0x1p-900}, {0, 0x1p-1040}, {math.Copysign(0, -1), 0}} {
			same(t, "Uniforms", n, math.Float64bits, func(dst []float64) { Uniforms(dst, w, r[0], r[1]) })
		}
		for _, r := range [][2]float64{{0, 10}, {-7, 9}, {3, 4}, {-1 << 31, 1 << 31}} {
			same(t, "Integers", n, integer[int32], func(dst []int32) { Integers(dst, w, r[0], r[1]) })
		}
		z := make([]float32, n)
		for i := range z {
			z[i] = float32(w[i]) * float32(int(i%3)-1) * 0x1p-33
		}
		same(t, "Truncate", n, integer[int32], func(dst []int32) { Truncate(dst, z) })
		x, i32 := make([]float64, n), make([]int32, n)
		Uniforms(x, w, 1, 2)
		Integers(i32, w, -1<<31, 1<<31)
		same(t, "Round", n, float32Bits, func(dst []float32) { Round(dst, x, math.Nextafter32(2, 1)) })
		same(t, "Narrow8", n, integer[int8], func(dst []int8) { Narrow8(dst, i32) })
		same(t, "Narrow16", n, integer[int16], func(dst []int16) { Narrow16(dst, i32) })
		same(t, "Widen", n, integer[int64], func(dst []int64) { Widen(dst, i32) })
	}
}

// A deviate's magnitude is the quantile of its tail, over all of the tails'
// range, and falls where the tail grows.
func TestQuantile(t *testing.T) {
	table := quantile()
	last := math.Inf(1)
	for k := range 31 {
		for i := range 1000 {
			tail := uint32(1<<k + i<<k/1000)
			z := float64(deviate(table, tail, sign))
			want := math.Sqrt2 * math.Erfcinv(float64(tail)*0x1p-31)
			if math.Abs(z-want) > 6e-5 || z > last+1e-6 {
				t.Fatalf("quantile of %d·2⁻³¹: %v after %v, want %v", tail, z, last, want)
			}
			last = z
		}
	}
	if z := deviate(table, 1<<31-1, sign); z <= 0 || z > 1e-6 {
		t.Errorf("the smallest magnitude is %g", z)
	}
	if z := deviate(table, 1<<31, sign); z != -deviate(table, 1, sign) || math.Abs(float64(z)+6.2) > 0.1 {
		t.Errorf("the largest magnitude is %v", z)
	}
}

// The pieces of the quantile meet: at the upper end of an octave begins the next.
func TestPiecesMeet(t *testing.T) {
	table := quantile()
	for k := range 29 {
		below, at := deviate(table, 1<<(30-k)-1, 0), deviate(table, 1<<(30-k), 0)
		if gap := float64(below - at); k < 7 && math.Abs(gap) > 1e-6 {
			t.Errorf("octave %d ends %g away from the next", k, gap)
		}
	}
}

// A deviate of 64 bits is that of 32 but for its last digits, which all occur.
func TestDigits(t *testing.T) {
	w := words(4000)
	z, long := make([]float32, 2*len(w)), make([]float64, len(w))
	Normals(z, w, false)
	Normals64(long, w, false)
	var set, clear uint64
	for i, v := range long {
		if math.Abs(v/float64(z[2*i+1])-1) > 0x1p-23 || math.Signbit(v) != math.Signbit(float64(z[2*i+1])) {
			t.Fatalf("element %d: %v, want %v with more digits", i, v, z[2*i+1])
		}
		set, clear = set|math.Float64bits(v), clear|^math.Float64bits(v)
	}
	if set&clear&(1<<52-1) != 1<<52-1 {
		t.Errorf("digits %#x never change", ^(set&clear)&(1<<52-1))
	}
}

func TestBounds(t *testing.T) {
	w := []uint64{0, 1<<64 - 1}
	var x [2]float64
	var y [2]float32
	var i [2]int32
	Uniforms(x[:], w, -3, 5)
	Integers(i[:], w, -3, 5)
	Round(y[:], x[:], 4.5)
	if x[0] != -3 || x[1] >= 5 || x[1] < 4.999 || !slices.Equal(i[:], []int32{-3, 4}) || y != [2]float32{-3, 4.5} {
		t.Errorf("ends of [-3, 5): %v, %v, %v", x, i, y)
	}
}

func BenchmarkVariate(b *testing.B) {
	const n = 480
	w := make([]uint64, n)
	choice.NewPhilox(1).Words(w, 0)
	var f32 [n]float32
	var f64 [n]float64
	var i32 [n]int32
	var i8 [n]int8
	for name, f := range map[string]func(){
		"Normals":   func() { Normals(f32[:], w, false) },
		"Normals64": func() { Normals64(f64[:], w, false) },
		"Uniforms":  func() { Uniforms(f64[:], w, -1, 1) },
		"Integers":  func() { Integers(i32[:], w, -10, 10) },
		"Round":     func() { Round(f32[:], f64[:], 1) },
		"Truncate":  func() { Truncate(i32[:], f32[:]) },
		"Narrow8":   func() { Narrow8(i8[:], i32[:]) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
		})
	}
}
