package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// floatsFor returns n reproducible numbers in [-1, 1).
func floatsFor(n int) []float64 {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([]float64, n)
	for i := range out {
		out[i] = 2*rng.Float64() - 1
	}
	return out
}

func narrowed[T float32 | float64](x []float64) []T {
	out := make([]T, len(x))
	for i, v := range x {
		out[i] = T(v)
	}
	return out
}

// near fails when an element is farther from what it should be than rounding
// of the given number of terms of size 1 explains.
func near[T float32 | float64](t *testing.T, what string, got []T, want []float64, terms int) {
	t.Helper()
	var x T
	eps := 0x1p-52
	if _, ok := any(x).(float32); ok {
		eps = 0x1p-23
	}
	limit := 4 * eps * float64(terms+1)
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= limit) {
			t.Fatalf("%s: element %d of %d is %v, want %v (limit %g)", what, i, len(want), got[i], w, limit)
		}
	}
}

var convCases = []Conv{
	{N: 1, Groups: 1, XC: 1, YC: 1, X: [3]int{1, 1, 1}, Window: Window{[3]int{1, 1, 1}, [3]int{1, 1, 1}, [3]int{0, 0, 0}, [3]int{1, 1, 1}}},
	{N: 2, Groups: 1, XC: 3, YC: 4, X: [3]int{1, 5, 6}, Window: Window{[3]int{1, 3, 2}, [3]int{1, 1, 1}, [3]int{0, 1, 0}, [3]int{1, 1, 1}}},
	{N: 2, Groups: 1, XC: 5, YC: 7, X: [3]int{1, 4, 9}, Window: Window{[3]int{1, 1, 1}, [3]int{1, 1, 1}, [3]int{0, 0, 0}, [3]int{1, 1, 1}}},
	{N: 1, Groups: 2, XC: 2, YC: 3, X: [3]int{1, 7, 8}, Window: Window{[3]int{1, 3, 3}, [3]int{1, 2, 3}, [3]int{0, 2, 1}, [3]int{1, 1, 2}}},
	{N: 3, Groups: 4, XC: 1, YC: 1, X: [3]int{1, 6, 6}, Window: Window{[3]int{1, 2, 4}, [3]int{1, 3, 1}, [3]int{0, 0, 3}, [3]int{1, 2, 1}}},
	{N: 2, Groups: 1, XC: 2, YC: 2, X: [3]int{1, 2, 3}, Window: Window{[3]int{1, 2, 2}, [3]int{1, 1, 2}, [3]int{0, 4, 5}, [3]int{1, 3, 1}}},
	{N: 1, Groups: 3, XC: 9, YC: 5, X: [3]int{1, 20, 17}, Window: Window{[3]int{1, 5, 3}, [3]int{1, 1, 1}, [3]int{0, 2, 2}, [3]int{1, 1, 3}}},
	{N: 1, Groups: 1, XC: 40, YC: 3, X: [3]int{1, 40, 40}, Window: Window{[3]int{1, 3, 3}, [3]int{1, 1, 2}, [3]int{0, 1, 1}, [3]int{1, 1, 1}}},
	{N: 1, Groups: 1, XC: 2, YC: 3, X: [3]int{1, 4, 5}, Window: Window{[3]int{1, 1, 1}, [3]int{1, 2, 1}, [3]int{0, 0, 1}, [3]int{1, 1, 1}}},
	{N: 1, Groups: 1, XC: 3, YC: 2, X: [3]int{1, 160, 160}, Window: Window{[3]int{1, 2, 2}, [3]int{1, 1, 1}, [3]int{0, 1, 0}, [3]int{1, 1, 1}}}, // several blocks of channels
	{N: 2, Groups: 2, XC: 2, YC: 3, X: [3]int{1, 40, 41}, Window: Window{[3]int{1, 3, 2}, [3]int{1, 1, 1}, [3]int{0, 1, 0}, [3]int{1, 1, 1}}},   // images too large to be gathered
	{N: 2, Groups: 2, XC: 2, YC: 3, X: [3]int{4, 5, 6}, Window: Window{[3]int{2, 3, 2}, [3]int{2, 1, 2}, [3]int{1, 0, 1}, [3]int{1, 2, 1}}},
	{N: 2, Groups: 1, XC: 3, YC: 2, X: [3]int{3, 4, 5}, Window: Window{[3]int{1, 1, 1}, [3]int{1, 1, 1}, [3]int{}, [3]int{1, 1, 1}}},
	{N: 0, Groups: 1, XC: 2, YC: 2, X: [3]int{1, 3, 3}, Window: Window{[3]int{1, 2, 2}, [3]int{1, 1, 1}, [3]int{0, 0, 0}, [3]int{1, 1, 1}}},
}

func (c *Conv) fitted() *Conv {
	fit := *c
	for i := range 3 {
		fit.Y[i] = (c.X[i]+2*c.Padding[i]-c.Dilation[i]*(c.Kernel[i]-1)-1)/c.Stride[i] + 1
	}
	return &fit
}

func (c *Conv) name() string {
	return fmt.Sprintf("n%d g%d %d→%d %v k%v s%v p%v d%v", c.N, c.Groups, c.XC, c.YC, c.X, c.Kernel, c.Stride, c.Padding, c.Dilation)
}

// each calls f with the contiguous indices of every product of a convolution.
func (c *Conv) each(f func(x, y, w int)) {
	for n := range c.N {
		for o := range c.Groups * c.YC {
			for i := range c.positions() {
				for p := range c.patch() {
					kd, kh, kw := c.tap(p % c.taps())
					d, h, w := c.start(0, i/(c.Y[1]*c.Y[2]), kd), c.start(1, i/c.Y[2]%c.Y[1], kh), c.start(2, i%c.Y[2], kw)
					if c.outside(d, h) || w < 0 || w >= c.X[2] {
						continue
					}
					channel := n*c.Groups*c.XC + o/c.YC*c.XC + p/c.taps()
					f(((channel*c.X[0]+d)*c.X[1]+h)*c.X[2]+w, (n*c.Groups*c.YC+o)*c.positions()+i, o*c.patch()+p)
				}
			}
		}
	}
}

func TestConvolutionsSumTheirProducts(t *testing.T) {
	for i := range convCases {
		c := convCases[i].fitted()
		t.Run(c.name(), func(t *testing.T) {
			testConv[float32](t, c)
			testConv[float64](t, c)
		})
	}
}

// TestRandomConvolutions draws geometries that take each of the ways to compute products.
func TestRandomConvolutions(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	n := 150
	if testing.Short() {
		n = 20
	}
	for range n {
		c := someConv(rng)
		t.Run(c.name(), func(t *testing.T) {
			testConv[float32](t, c)
			testConv[float64](t, c)
		})
	}
}

func someConv(rng *rand.Rand) *Conv {
	c := &Conv{N: 1 + rng.IntN(2), Groups: 1 + rng.IntN(3), XC: 1 + rng.IntN(9), YC: 1 + rng.IntN(14)}
	if rng.IntN(3) == 0 {
		c.XC, c.YC = 1, 1
	}
	for a := range 3 {
		c.Kernel[a], c.Stride[a], c.Dilation[a], c.Padding[a] = 1+rng.IntN(3), 1+rng.IntN(3), 1+rng.IntN(4), rng.IntN(4)
		reached := rng.IntN(4+a*a*6)*c.Stride[a] + (c.Kernel[a]-1)*c.Dilation[a] + 1
		c.X[a] = max(reached-2*c.Padding[a], 1) + rng.IntN(3)
	}
	return c.fitted()
}

func testConv[T float32 | float64](t *testing.T, c *Conv) {
	xs, ys, ws := c.N*c.Groups*c.XC*volume(c.X), c.N*c.Groups*c.YC*c.positions(), c.Groups*c.YC*c.patch()
	x, y, w := narrowed[T](floatsFor(xs)), narrowed[T](floatsFor(ys)), narrowed[T](floatsFor(ws))
	bias, biasX := narrowed[T](floatsFor(c.Groups*c.YC)), narrowed[T](floatsFor(c.Groups*c.XC))
	wantX, wantY, wantW := make([]float64, xs), make([]float64, ys), make([]float64, ws)
	for i := range wantY {
		wantY[i] = float64(bias[i/c.positions()%len(bias)])
	}
	for i := range wantX {
		wantX[i] = float64(biasX[i/volume(c.X)%len(biasX)])
	}
	c.each(func(i, j, k int) {
		wantY[j] += float64(x[i]) * float64(w[k])
		wantX[i] += float64(y[j]) * float64(w[k])
		wantW[k] += float64(x[i]) * float64(y[j])
	})
	terms := c.patch() + c.YC*c.taps() + c.N*c.positions()
	gotX, gotY, gotW := make([]T, xs), make([]T, ys), make([]T, ws)
	for _, last := range []bool{false, true} {
		vx, vy := volumeView(x, c.Groups*c.XC, c.X, last), volumeView(y, c.Groups*c.YC, c.Y, last)
		ConvForward(c, vx, w, bias, gotY)
		near(t, "map", gotY, wantY, terms)
		ConvInput(c, vy, w, biasX, gotX)
		near(t, "image", gotX, wantX, terms)
		ConvWeight(c, vx, y, gotW)
		near(t, "weight", gotW, wantW, terms)
	}
}

// volumeView views contiguous images, or a copy of them with the channels last.
func volumeView[T any](data []T, channels int, size [3]int, last bool) Volume[T] {
	plane := volume(size)
	if !last {
		return Volume[T]{data, [5]int{channels * plane, plane, size[1] * size[2], size[2], 1}}
	}
	moved := make([]T, len(data))
	for i, v := range data {
		image, channel, at := i/plane/channels, i/plane%channels, i%plane
		moved[(image*plane+at)*channels+channel] = v
	}
	return Volume[T]{moved, [5]int{channels * plane, 1, size[1] * size[2] * channels, size[2] * channels, channels}}
}

func TestConvolutionBitsDoNotDependOnThreads(t *testing.T) {
	defer SetThreads(0)
	c := convCases[6].fitted()
	c.N = 4
	x := narrowed[float32](floatsFor(c.N * c.Groups * c.XC * volume(c.X)))
	y := narrowed[float32](floatsFor(c.N * c.Groups * c.YC * c.positions()))
	w := narrowed[float32](floatsFor(c.Groups * c.YC * c.patch()))
	var first [3][]float32
	for _, threads := range []int{1, 2, 5} {
		SetThreads(threads)
		got := [3][]float32{make([]float32, len(x)), make([]float32, len(y)), make([]float32, len(w))}
		ConvInput(c, volumeView(y, c.Groups*c.YC, c.Y, false), w, nil, got[0])
		ConvForward(c, volumeView(x, c.Groups*c.XC, c.X, false), w, nil, got[1])
		ConvWeight(c, volumeView(x, c.Groups*c.XC, c.X, false), y, got[2])
		if threads == 1 {
			first = got
		}
		for i := range got {
			if !slices.Equal(got[i], first[i]) {
				t.Errorf("result %d differs between 1 and %d threads", i, threads)
			}
		}
	}
}

var poolCases = []Pool{
	{X: [3]int{1, 4, 6}, Y: [3]int{1, 2, 3}, Window: Window{[3]int{1, 2, 2}, [3]int{1, 2, 2}, [3]int{0, 0, 0}, [3]int{1, 1, 1}}},
	{X: [3]int{1, 5, 5}, Y: [3]int{1, 3, 3}, Window: Window{[3]int{1, 3, 3}, [3]int{1, 2, 2}, [3]int{0, 1, 1}, [3]int{1, 1, 1}}},
	{X: [3]int{1, 7, 9}, Y: [3]int{1, 3, 7}, Window: Window{[3]int{1, 3, 2}, [3]int{1, 1, 1}, [3]int{0, 0, 0}, [3]int{1, 2, 2}}},
	{X: [3]int{1, 5, 4}, Y: [3]int{1, 3, 2}, Window: Window{[3]int{1, 2, 3}, [3]int{1, 2, 3}, [3]int{0, 0, 1}, [3]int{1, 1, 1}}}, // a last, partial window
	{X: [3]int{5, 4, 6}, Y: [3]int{3, 2, 5}, Window: Window{[3]int{3, 2, 3}, [3]int{2, 2, 1}, [3]int{1, 0, 1}, [3]int{1, 2, 1}}},
	{X: [3]int{1, 4, 1}, Y: [3]int{1, 1, 1}, Window: Window{[3]int{1, 2, 1}, [3]int{1, 1, 1}, [3]int{0, 1, 0}, [3]int{1, 5, 1}}}, // a window outside
}

func TestMaxPoolTakesTheFirstMaximum(t *testing.T) {
	for i := range poolCases {
		p := &poolCases[i]
		const planes = 3
		x := floatsFor(planes * volume(p.X))
		for j := range x {
			x[j] = math.Round(2 * x[j]) // ties
		}
		x[1] = math.NaN()
		want, at := naivePool(p, planes, x)
		y, index := make([]float64, len(want)), make([]int64, len(want))
		plain := make([]float64, len(want))
		MaxPool(p, planes, x, y, index)
		MaxPool(p, planes, x, plain, nil)
		for j := range want {
			if !same(y[j], want[j]) || !same(plain[j], want[j]) || index[j] != at[j] && !math.IsInf(want[j], -1) {
				t.Errorf("case %d, element %d: %v at %d, and %v, want %v at %d", i, j, y[j], index[j], plain[j], want[j], at[j])
			}
		}
	}
}

func same(a, b float64) bool { return a == b || a != a && b != b }

func naivePool(p *Pool, planes int, x []float64) (want []float64, at []int64) {
	nx, ny := volume(p.X), volume(p.Y)
	for i := range planes * ny {
		best, top := int64(0), math.Inf(-1)
		for k := range volume(p.Kernel) {
			kd, kh, kw := p.tap(k)
			o := i % ny
			d, h, w := p.start(0, o/(p.Y[1]*p.Y[2]), kd), p.start(1, o/p.Y[2]%p.Y[1], kh), p.start(2, o%p.Y[2], kw)
			if d < 0 || d >= p.X[0] || h < 0 || h >= p.X[1] || w < 0 || w >= p.X[2] {
				continue
			}
			at := (d*p.X[1]+h)*p.X[2] + w
			if v := x[i/ny*nx+at]; v > top || v != v {
				best, top = int64(at), v
			}
		}
		want, at = append(want, top), append(at, best)
	}
	return want, at
}

func TestScatterAndGatherArePlanewise(t *testing.T) {
	index := []int64{3, 3, 0, 1, 9, 2} // 9 lies outside
	x := make([]float64, 8)
	ScatterPlanes(2, []float64{1, 2, 4, 8, 16, 32}, index, x)
	if want := []float64{4, 0, 0, 3, 0, 8, 32, 0}; !slices.Equal(x, want) {
		t.Errorf("scatter: %v, want %v", x, want)
	}
	y := make([]float64, 6)
	GatherPlanes(2, []float64{1, 2, 3, 4, 5, 6, 7, 8}, index, y)
	if want := []float64{4, 4, 1, 6, 0, 7}; !slices.Equal(y, want) {
		t.Errorf("gather: %v, want %v", y, want)
	}
}
