package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A layout places a matrix in memory; RS or CS may be 0 for operands that repeat.
type layout struct {
	name    string
	strides func(rows, cols int) (rs, cs int)
}

var layouts = []layout{
	{"rows", func(r, c int) (int, int) { return c, 1 }},
	{"columns", func(r, c int) (int, int) { return 1, r }},
	{"padded rows", func(r, c int) (int, int) { return c + 3, 1 }},
	{"padded columns", func(r, c int) (int, int) { return 1, r + 3 }},
	{"sparse", func(r, c int) (int, int) { return 2*c + 5, 2 }},
	{"same row", func(r, c int) (int, int) { return 0, 1 }},
	{"same column", func(r, c int) (int, int) { return 1, 0 }},
	{"scalar", func(r, c int) (int, int) { return 0, 0 }},
}

var distinct = layouts[:5]

func newMat[T any](l layout, rows, cols int, next func() T) Mat[T] {
	rs, cs := l.strides(rows, cols)
	data := make([]T, max(rows-1, 0)*rs+max(cols-1, 0)*cs+1)
	for i := range data {
		data[i] = next()
	}
	return Mat[T]{data, rs, cs}
}

func (m Mat[T]) at(i, j int) T { return m.Data[i*m.RS+j*m.CS] }

func (m Mat[T]) clone() Mat[T] { return Mat[T]{slices.Clone(m.Data), m.RS, m.CS} }

// segments is a Mat behind the BPacker interface.
type segments[T any] struct{ Mat[T] }

func (s segments[T]) Row(dst []T, p, j int) {
	for i := range dst {
		dst[i] = s.at(p, j+i)
	}
}

func naive[T gemmElement](m, n, k int, a, b, c Mat[T], accumulate bool) {
	for i := range m {
		for j := range n {
			var sum T
			for p := range k {
				sum += a.at(i, p) * b.at(p, j)
			}
			if accumulate {
				sum += c.at(i, j)
			}
			c.Data[i*c.RS+j*c.CS] = sum
		}
	}
}

// whole draws integers so small that no sum of products of this test rounds.
func whole[T gemmElement](r *rand.Rand) func() T {
	var one T = 1
	return func() T {
		var v T
		for range r.IntN(8) {
			v += one
		}
		if r.IntN(2) == 0 {
			return v
		}
		return -v
	}
}

type shape struct{ m, n, k int }

func edgeShapes() []shape {
	shapes := []shape{{100, 5, 100}, {6, 100, 257}, {257, 17, 16}, {200, 7, 300}, {7, 1040, 3}, {13, 33, 513}}
	for _, m := range []int{0, 1, 5, 6, 7, 17} {
		for _, n := range []int{0, 1, 7, 8, 15, 16, 17} {
			for _, k := range []int{0, 1, 2, 3, 4, 7, 16} {
				shapes = append(shapes, shape{m, n, k})
			}
		}
	}
	return shapes
}

// TestGemmExact wants the very values of the naive loop, and memory between the elements of C untouched.
func TestGemmExact(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testExact(t, engineOf[float32]()) })
	t.Run("float64", func(t *testing.T) { testExact(t, engineOf[float64]()) })
	t.Run("portable float32", func(t *testing.T) { testExact(t, newEngine(16, realMicro[float32])) })
	t.Run("portable float64", func(t *testing.T) { testExact(t, newEngine(8, realMicro[float64])) })
	t.Run("int8", func(t *testing.T) { testExact(t, engineOf[int8]()) })
	t.Run("uint8", func(t *testing.T) { testExact(t, engineOf[uint8]()) })
	t.Run("int16", func(t *testing.T) { testExact(t, engineOf[int16]()) })
	t.Run("int32", func(t *testing.T) { testExact(t, engineOf[int32]()) })
	t.Run("int64", func(t *testing.T) { testExact(t, engineOf[int64]()) })
	t.Run("complex64", func(t *testing.T) { testExact(t, engineOf[complex64]()) })
	t.Run("complex128", func(t *testing.T) { testExact(t, engineOf[complex128]()) })
}

func testExact[T gemmElement](t *testing.T, e *engine[T]) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range edgeShapes() {
		checkExact(t, e, s, layouts[r.IntN(len(layouts))], layouts[r.IntN(len(layouts))], distinct[r.IntN(len(distinct))], r)
	}
	for _, la := range layouts {
		for _, lb := range layouts {
			checkExact(t, e, shape{13, 18, 9}, la, lb, distinct[r.IntN(len(distinct))], r)
		}
	}
}

func checkExact[T gemmElement](t *testing.T, e *engine[T], s shape, la, lb, lc layout, r *rand.Rand) {
	t.Helper()
	next := whole[T](r)
	a, b, before := newMat(la, s.m, s.k, next), newMat(lb, s.k, s.n, next), newMat(lc, s.m, s.n, next)
	for _, accumulate := range []bool{false, true} {
		want, got, packed := before.clone(), before.clone(), before.clone()
		naive(s.m, s.n, s.k, a, b, want, accumulate)
		e.gemm(s.m, s.n, s.k, a, b, got, accumulate, nil)
		e.gemmPack(s.m, s.n, s.k, a, segments[T]{b}, packed, accumulate)
		if !slices.Equal(got.Data, want.Data) {
			t.Fatalf("gemm %v of %s and %s into %s, accumulate %v:\ngot  %v\nwant %v", s, la.name, lb.name, lc.name, accumulate, got.Data, want.Data)
		}
		if !slices.Equal(packed.Data, want.Data) {
			t.Fatalf("gemmPack %v of %s and %s into %s, accumulate %v:\ngot  %v\nwant %v", s, la.name, lb.name, lc.name, accumulate, packed.Data, want.Data)
		}
	}
}

// TestGemmComplexParts multiplies by i, which whole numbers alone would not notice.
func TestGemmComplexParts(t *testing.T) {
	a := Mat[complex128]{[]complex128{2 + 3i, -1i}, 2, 1}
	b := Mat[complex128]{[]complex128{5 - 7i, 4}, 1, 1}
	c := Mat[complex128]{make([]complex128, 1), 1, 1}
	GemmAny(1, 1, 2, a, b, c, false)
	if want := 31 - 3i; c.Data[0] != want {
		t.Errorf("got %v, want %v", c.Data[0], want)
	}
}

func TestGemmRounding(t *testing.T) {
	t.Run("float32", func(t *testing.T) {
		testRounding(t, 0x1p-24, engineOf[float32](), newEngine(16, realMicro[float32]))
	})
	t.Run("float64", func(t *testing.T) {
		testRounding(t, 0x1p-53, engineOf[float64](), newEngine(8, realMicro[float64]))
	})
}

// testRounding holds each engine to the bound γ = ku/(1-ku) on Σ|a·b|, with k two more than the terms for the sum with C and for the reference's own error.
func testRounding[T float32 | float64](t *testing.T, unit float64, engines ...*engine[T]) {
	r := rand.New(rand.NewPCG(3, 4))
	next := func() T { return T(r.NormFloat64()) }
	for _, s := range []shape{{1, 1, 1}, {7, 17, 5}, {33, 20, 100}, {100, 100, 257}, {6, 1100, 40}, {130, 70, 600}} {
		a, b := newMat(layouts[0], s.m, s.k, next), newMat(layouts[1], s.k, s.n, next)
		before := newMat(layouts[0], s.m, s.n, next)
		ku := 2 * float64(s.k+2) * unit
		for which, e := range engines {
			c := before.clone()
			e.gemm(s.m, s.n, s.k, a, b, c, true, nil)
			for i := range s.m {
				for j := range s.n {
					want, size := exactDot(s.k, a, b, before, i, j)
					if got := float64(c.at(i, j)); math.Abs(got-want) > ku/(1-ku)*size {
						t.Fatalf("engine %d, %v: C[%d,%d] = %v, want %v", which, s, i, j, got, want)
					}
				}
			}
		}
	}
}

func exactDot[T float32 | float64](k int, a, b, c Mat[T], i, j int) (sum, size float64) {
	sum = float64(c.at(i, j))
	size = math.Abs(sum)
	for p := range k {
		x := float64(a.at(i, p)) * float64(b.at(p, j))
		sum += x
		size += math.Abs(x)
	}
	return sum, size
}

// TestGemmPropagatesNaN multiplies zeros by one NaN or Inf, in A and then in B.
func TestGemmPropagatesNaN(t *testing.T) {
	const m, n, k = 13, 35, 300
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for which, e := range []*engine[float64]{engineOf[float64](), newEngine(8, realMicro[float64])} {
			zeros := Mat[float64]{make([]float64, k*(m+n)), k, 1}
			a, b, c := zeros.clone(), zeros.clone().transposed(), zeros.clone()
			a.Data[8*k+k-1] = bad
			b.Data[21*k] = bad
			e.gemm(m, n, k, a, b, c, false, nil)
			for i := range m {
				for j := range n {
					if (i == 8 || j == 21) != math.IsNaN(c.at(i, j)) {
						t.Fatalf("engine %d, %v in row 8 of A and column 21 of B: C[%d,%d] = %v", which, bad, i, j, c.at(i, j))
					}
				}
			}
		}
	}
}

// TestGemmBits wants the same bits from any number of threads, any layout, and any part of the product computed alone.
func TestGemmBits(t *testing.T) {
	t.Run("float32", testBits[float32])
	t.Run("float64", testBits[float64])
}

func testBits[T float32 | float64](t *testing.T) {
	defer SetThreads(0)
	r := rand.New(rand.NewPCG(5, 6))
	next := func() T { return T(r.NormFloat64()) }
	rows, columns := layouts[0], layouts[1]
	for _, s := range []shape{{250, 60, 300}, {20, 705, 300}, {130, 130, 270}, {6, 8, 85000}, {6000, 1, 700}} {
		SetThreads(1)
		a, b := newMat(rows, s.m, s.k, next), newMat(rows, s.k, s.n, next)
		want := newMat(rows, s.m, s.n, next)
		Gemm(s.m, s.n, s.k, a, b, want, false)
		same := func(what string, got Mat[T], i0, j0, m, n int) {
			for i := range m {
				for j := range n {
					if got.at(i, j) != want.at(i0+i, j0+j) {
						t.Fatalf("%v %s: C[%d,%d] = %v, want %v", s, what, i0+i, j0+j, got.at(i, j), want.at(i0+i, j0+j))
					}
				}
			}
		}
		for _, threads := range []int{1, 2, 5} {
			SetThreads(threads)
			for _, l := range []layout{rows, layouts[4]} {
				c := newMat(l, s.m, s.n, next)
				Gemm(s.m, s.n, s.k, a, b, c, false)
				same(fmt.Sprint(l.name, " on ", threads), c, 0, 0, s.m, s.n)
			}
			c := newMat(rows, s.m, s.n, next)
			GemmPack(s.m, s.n, s.k, a, segments[T]{b}, c, false)
			same(fmt.Sprint("packed on ", threads), c, 0, 0, s.m, s.n)
		}
		i, j := s.m/2, s.n/2
		c := newMat(columns, s.m-i, s.n-j, next)
		Gemm(s.m-i, s.n-j, s.k, Mat[T]{a.Data[i*a.RS:], a.RS, a.CS}, Mat[T]{b.Data[j*b.CS:], b.RS, b.CS}, c, false)
		same("part", c, i, j, s.m-i, s.n-j)
	}
}

func TestGemmRefusesShortData(t *testing.T) {
	full, short := Mat[float32]{make([]float32, 12), 4, 1}, Mat[float32]{make([]float32, 10), 4, 1}
	for i := range 3 {
		operands := []Mat[float32]{full, full, full}
		operands[i] = short
		t.Run(string("ABC"[i]), func(t *testing.T) {
			defer func() {
				want := fmt.Sprintf("kernel: %c is 3×3 with strides (4, 1) but holds 10 elements", "ABC"[i])
				if got := recover(); got != want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			Gemm(3, 3, 3, operands[0], operands[1], operands[2], false)
		})
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, threads := range []int{1, 0} {
		for _, n := range []int{4, 256, 1024} {
			name := fmt.Sprintf("%d/threads=%d", n, threads)
			b.Run("f32/"+name, func(b *testing.B) { benchmarkGemm[float32](b, n, threads) })
			b.Run("f64/"+name, func(b *testing.B) { benchmarkGemm[float64](b, n, threads) })
		}
	}
}

func benchmarkGemm[T float32 | float64](b *testing.B, n, threads int) {
	defer SetThreads(0)
	SetThreads(threads)
	r := rand.New(rand.NewPCG(7, 8))
	next := func() T { return T(r.NormFloat64()) }
	x, y, z := newMat(layouts[0], n, n, next), newMat(layouts[0], n, n, next), newMat(layouts[0], n, n, next)
	b.ReportAllocs()
	for b.Loop() {
		Gemm(n, n, n, x, y, z, false)
	}
	b.ReportMetric(2*math.Pow(float64(n), 3)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
