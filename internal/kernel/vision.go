package kernel

import "math"

// Edge is what grid sampling finds outside the image.
type Edge int

// The edges: zeros, the nearest position of the image, or its mirror image.
const (
	ZeroEdge Edge = iota
	BorderEdge
	ReflectEdge
)

// Curve is how grid sampling interpolates.
type Curve int

// The curves: the nearest position, two or four positions per dimension.
const (
	NearestCurve Curve = iota
	LinearCurve
	CubicCurve
)

// Grid is the geometry of sampling images of size X and C channels at P positions each; Dims is the number of coordinates, Order the derivative along each axis of X, in place of which zero stands for the value.
type Grid struct {
	N, C, P, Dims int
	X, Order      [3]int
	Align         bool
	Edge          Edge
	Curve         Curve
}

// reach is what one coordinate reads along its axis; an index of −1 lies outside.
type reach[T any] struct {
	n      int
	index  [4]int
	weight [4]T
}

// cubicTaps returns the weights of four neighbours at distance t past the second, or a derivative of them by t, with Keys' a.
func cubicTaps(t, a float64, order int) [4]float64 {
	return [4]float64{
		derivative([4]float64{-4 * a, 8 * a, -5 * a, a}, t+1, 1, order),
		derivative([4]float64{1, 0, -a - 3, a + 2}, t, 1, order),
		derivative([4]float64{1, 0, -a - 3, a + 2}, 1-t, -1, order),
		derivative([4]float64{-4 * a, 8 * a, -5 * a, a}, 2-t, -1, order),
	}
}

// derivative returns that of a cubic with coefficients c, lowest first, at x; sign is dx/dt.
func derivative(c [4]float64, x, sign float64, order int) float64 {
	scale := 1.0
	for range order {
		c = [4]float64{c[1], 2 * c[2], 3 * c[3], 0}
		scale *= sign
	}
	return scale * (c[0] + x*(c[1]+x*(c[2]+x*c[3])))
}

// CubicWeights returns the weights of four neighbours at distance t past the second, with Keys' a.
func CubicWeights(t, a float64) [4]float64 { return cubicTaps(t, a, 0) }

// place maps a coordinate to a position along an axis of the given size, and returns its derivative.
func place[T float32 | float64](x T, size int, align bool) (at, slope T) {
	n := T(size)
	if align {
		return (x + 1) / 2 * (n - 1), (n - 1) / 2
	}
	return ((x+1)*n - 1) / 2, n / 2
}

// keep brings a position inside as the edge says, and returns the factor on its derivative.
func (g *Grid) keep(x float64, size int) (at, slope float64) {
	slope = 1
	if g.Edge == ReflectEdge {
		x, slope = g.reflect(x, size)
	}
	if g.Edge == ZeroEdge {
		return x, 1
	}
	last := float64(size - 1)
	switch {
	case !(x > 0):
		return 0, 0
	case x >= last:
		return last, 0
	}
	return x, slope
}

// reflect mirrors a position at the centres of the outer elements, or at their outer borders without Align.
func (g *Grid) reflect(x float64, size int) (at, slope float64) {
	low, span := -0.5, float64(size)
	if g.Align {
		low, span = 0, float64(size-1)
	}
	if span <= 0 {
		return 0, 0
	}
	slope = 1
	x -= low
	if x < 0 {
		x, slope = -x, -1
	}
	extra, flips := math.Mod(x, span), math.Floor(x/span)
	if math.Mod(flips, 2) == 0 {
		return extra + low, slope
	}
	return span - extra + low, -slope
}

// reachOf returns what a coordinate reads along axis a.
func reachOf[T float32 | float64](g *Grid, a int, coordinate T) (r reach[T]) {
	size, order := g.X[a], g.Order[a]
	unbounded, slope := place(coordinate, size, g.Align)
	x := float64(unbounded)
	if !(math.Abs(x) < 1<<30) && (g.Edge == ZeroEdge || g.Curve == CubicCurve || x != x) {
		x = -100
	}
	if g.Curve == CubicCurve {
		return cubicReach[T](g, a, x, float64(slope))
	}
	x, factor := g.keep(x, size)
	if g.Curve == NearestCurve {
		r.add(g, int(math.RoundToEven(x)), size, indicator[T](order == 0))
		return r
	}
	low := math.Floor(x)
	up := T(x) - T(low)
	weights := [2]T{1 - up, up}
	switch d := slope * T(factor); {
	case order == 1:
		weights = [2]T{-d, d}
	case order > 1:
		weights = [2]T{}
	}
	r.add(g, int(low), size, weights[0])
	r.add(g, int(low)+1, size, weights[1])
	return r
}

func indicator[T float32 | float64](b bool) T {
	if b {
		return 1
	}
	return 0
}

func cubicReach[T float32 | float64](g *Grid, a int, x, slope float64) (r reach[T]) {
	low := math.Floor(x)
	for k, w := range cubicTaps(x-low, -0.75, g.Order[a]) {
		at, _ := g.keep(low-1+float64(k), g.X[a])
		r.add(g, int(math.Round(at)), g.X[a], T(w*math.Pow(slope, float64(g.Order[a]))))
	}
	return r
}

func (r *reach[T]) add(g *Grid, i, size int, w T) {
	if i >= 0 && i < size {
		r.index[r.n], r.weight[r.n] = i, w
		r.n++
	}
}

// taps appends the image elements that position p of image n reads, with their weights.
func taps[T float32 | float64](g *Grid, grid []T, n, p int, at []int, w []T) ([]int, []T) {
	var axes [3]reach[T]
	from := (n*g.P + p) * g.Dims
	for a := range axes {
		axes[a] = reach[T]{n: 1, weight: [4]T{1}}
		if d := 2 - a; d < g.Dims {
			axes[a] = reachOf(g, a, grid[from+d])
		}
	}
	for i := range axes[0].n {
		for j := range axes[1].n {
			row, scale := (axes[0].index[i]*g.X[1]+axes[1].index[j])*g.X[2], axes[0].weight[i]*axes[1].weight[j]
			for k := range axes[2].n {
				at, w = append(at, row+axes[2].index[k]), append(w, scale*axes[2].weight[k])
			}
		}
	}
	return at, w
}

// SampleGrid sets y, of shape [n, c, p], to the images x, of shape [n, c, d, h, w], at the coordinates grid, of shape [n, p, dims], x before y before z, in which −1 and 1 are the image's ends.
func SampleGrid[T float32 | float64](g *Grid, x, grid, y []T) {
	image := volume(g.X)
	Parallel(g.N*g.P, 64, func(lo, hi int) {
		at, w := make([]int, 0, 64), make([]T, 0, 64)
		for i := lo; i < hi; i++ {
			n, p := i/g.P, i%g.P
			at, w = taps(g, grid, n, p, at[:0], w[:0])
			for c := range g.C {
				var sum T
				plane := x[(n*g.C+c)*image:][:image]
				for k, j := range at {
					sum += w[k] * plane[j]
				}
				y[(n*g.C+c)*g.P+p] = sum
			}
		}
	})
}

// SpreadGrid sets x to the transposed map of y: what SampleGrid would read of an element of x receives that share of y.
func SpreadGrid[T float32 | float64](g *Grid, y, grid, x []T) {
	image := volume(g.X)
	clear(x)
	Parallel(g.N, 1, func(lo, hi int) {
		at, w := make([]int, 0, 64), make([]T, 0, 64)
		for i := lo * g.P; i < hi*g.P; i++ {
			n, p := i/g.P, i%g.P
			at, w = taps(g, grid, n, p, at[:0], w[:0])
			for c := range g.C {
				v := y[(n*g.C+c)*g.P+p]
				plane := x[(n*g.C+c)*image:][:image]
				for k, j := range at {
					plane[j] += w[k] * v
				}
			}
		}
	})
}
