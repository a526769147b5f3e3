package kernel

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// reports records what a kernel says is final: the elements of out at that
// moment, and how often each was reported.
type reports struct {
	mu    sync.Mutex
	out   []float32
	seen  []float32
	count []int
	calls int
}

func (r *reports) done(lo, hi int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	copy(r.seen[lo:hi], r.out[lo:hi])
	for i := lo; i < hi; i++ {
		r.count[i]++
	}
}

// TestReports: each element is reported once, when it is final.
func TestReports(t *testing.T) {
	defer SetThreads(0)
	rng := rand.New(rand.NewPCG(1, 2))
	conv := func(n, groups, xc, yc, size, kernel int) Conv {
		side, window := [3]int{1, size, size}, [3]int{1, kernel, kernel}
		return Conv{N: n, Groups: groups, XC: xc, YC: yc, X: side, Y: side, Window: Window{
			Kernel: window, Stride: [3]int{1, 1, 1}, Dilation: [3]int{1, 1, 1}, Padding: [3]int{0, kernel / 2, kernel / 2},
		}}
	}
	type test struct {
		name string
		size int
		run  func(out []float32, done func(lo, hi int))
	}
	var tests []test
	for _, s := range []shape{{1, 1, 1}, {7, 17, 5}, {6, 40, 0}, {500, 30, 300}, {300, 1100, 20}, {3, 600, 300}, {700, 1, 40}} {
		a, b := newMat(layouts[0], s.m, s.k, rng.Float32), newMat(layouts[1], s.k, s.n, rng.Float32)
		tests = append(tests, test{"gemm", s.m * s.n, func(out []float32, done func(lo, hi int)) {
			GemmThen(s.m, s.n, s.k, a, b, Mat[float32]{out, s.n, 1}, false, elementsOf(done, 0, s.n))
		}}, test{"matmul", 3 * s.m * s.n, func(out []float32, done func(lo, hi int)) {
			MatMulThen([]int{3}, s.m, s.n, s.k, Stack[float32]{a, []int{0}}, Stack[float32]{b, []int{0}}, out, done)
		}})
	}
	for _, c := range []Conv{conv(3, 1, 16, 7, 20, 3), conv(2, 4, 1, 2, 9, 3), conv(2, 2, 3, 5, 9, 1), conv(2, 2, 3, 5, 4, 3), conv(2, 1, 0, 5, 4, 3)} {
		x, w, bias := numbers(rng, c.N*c.Groups*c.XC*volume(c.X)), numbers(rng, c.Groups*c.YC*c.patch()), numbers(rng, c.Groups*c.YC)
		image := volume(c.X)
		tests = append(tests, test{"conv", c.N * c.Groups * c.YC * c.positions(), func(out []float32, done func(lo, hi int)) {
			ConvForwardThen(&c, Volume[float32]{x, [5]int{c.Groups * c.XC * image, image, image, c.X[2], 1}}, w, bias, out, done)
		}})
	}
	parts := 0
	for i, k := range tests {
		for _, threads := range []int{1, 4} {
			SetThreads(threads)
			r := &reports{out: make([]float32, k.size), seen: make([]float32, k.size), count: make([]int, k.size)}
			k.run(r.out, r.done)
			if !slices.Equal(r.seen, r.out) || slices.ContainsFunc(r.count, func(n int) bool { return n != 1 }) {
				t.Errorf("%s %d, threads %d: reports of what is not final, or not once", k.name, i, threads)
			}
			if r.calls > 1 {
				parts++
			}
		}
	}
	if parts < 20 {
		t.Errorf("%d results in several parts: the test tests little", parts)
	}
}
