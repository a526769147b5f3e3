package kernel

import "math"

// Axis is what output positions along one dimension read: position o reads Count[o] image positions, Step apart, from First[o] on.
type Axis struct {
	First, Count []int
	Step         int
}

// Boxes is what each position of planes of Y reads of planes of X, both (depth, height, width).
type Boxes struct {
	X, Y [3]int
	Axes [3]Axis
}

// at returns the first element that output position o of row-major order reads, and its row of each axis.
func (b *Boxes) at(o int) (base int, of [3]int) {
	of = [3]int{o / (b.Y[1] * b.Y[2]), o / b.Y[2] % b.Y[1], o % b.Y[2]}
	for a, i := range of {
		base = base*b.X[a] + b.Axes[a].First[i]
	}
	return base, of
}

func (b *Boxes) count(of [3]int) (n [3]int) {
	for a, i := range of {
		n[a] = b.Axes[a].Count[i]
	}
	return n
}

// steps returns how far apart neighbours along each axis lie in a plane.
func (b *Boxes) steps() [3]int {
	return [3]int{b.Axes[0].Step * b.X[1] * b.X[2], b.Axes[1].Step * b.X[2], b.Axes[2].Step}
}

// Pool is the geometry of a pooling over planes of X to planes of Y, both (depth, height, width).
type Pool struct {
	X, Y [3]int
	Window
}

// inside returns the first tap along axis a of output position o that lies inside the image, and the end of those that do.
func (p *Pool) inside(a, o int) (lo, hi int) {
	first, d := p.start(a, o, 0), p.Dilation[a]
	if first < 0 {
		lo = ceilDiv(-first, d)
	}
	if first < p.X[a] {
		hi = min(ceilDiv(p.X[a]-first, d), p.Kernel[a])
	}
	return lo, hi
}

// Boxes returns what the windows read inside the image.
func (p *Pool) Boxes() *Boxes {
	b := &Boxes{X: p.X, Y: p.Y}
	for a := range b.Axes {
		axis := Axis{make([]int, p.Y[a]), make([]int, p.Y[a]), p.Dilation[a]}
		for o := range p.Y[a] {
			lo, hi := p.inside(a, o)
			axis.First[o], axis.Count[o] = p.start(a, o, lo), max(hi-lo, 0)
		}
		b.Axes[a] = axis
	}
	return b
}

// MaxPool sets y to the maximum of each window of the planes of x, and index, unless nil, to its position (d·height+h)·width+w in the plane.
// The first of equal maxima counts, and the last NaN counts above all numbers, as in PyTorch.
// A window all of whose taps miss the image has the maximum −∞, at a position that may lie outside the plane.
func MaxPool[T float32 | float64](p *Pool, planes int, x, y []T, index []int64) {
	if index != nil {
		MaxBoxes(p.Boxes(), planes, x, y, index)
		return
	}
	nx, ny := volume(p.X), volume(p.Y)
	Parallel(planes, ceilDiv(1<<13, max(nx, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			maxValues(p, x[i*nx:][:nx], y[i*ny:][:ny])
		}
	})
}

// maxValues computes a plane without positions: for each tap, a row at a time.
func maxValues[T float32 | float64](p *Pool, x, y []T) {
	fillRun(y, T(math.Inf(-1)))
	for j := range p.Kernel[2] {
		left, right := p.span(2, j, p.X[2], p.Y[2])
		if left == right {
			continue
		}
		for o := range p.Y[0] * p.Y[1] {
			maxRows(p, x, y[o*p.Y[2]+left:o*p.Y[2]+right], o, p.start(2, left, j))
		}
	}
}

// maxRows takes the maximum of a part of output row o and of one tap, at image column from, of every image row that it reads.
func maxRows[T float32 | float64](p *Pool, x, out []T, o, from int) {
	step := p.Stride[2]
	front, back := p.inside(0, o/p.Y[1])
	lo, hi := p.inside(1, o%p.Y[1])
	for d := front; d < back; d++ {
		for i := lo; i < hi; i++ {
			at := p.start(0, o/p.Y[1], d)*p.X[1] + p.start(1, o%p.Y[1], i)
			row := x[at*p.X[2]+from : (at+1)*p.X[2]]
			for k, v := range out {
				out[k] = max(v, row[k*step])
			}
		}
	}
}

// MaxBoxes is MaxPool, with positions, over any boxes.
func MaxBoxes[T float32 | float64](b *Boxes, planes int, x, y []T, index []int64) {
	nx, ny := volume(b.X), volume(b.Y)
	steps := b.steps()
	Parallel(planes, ceilDiv(1<<12, max(nx, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			plane := x[i*nx:][:nx]
			for o := range ny {
				base, of := b.at(o)
				best, top := base, T(math.Inf(-1))
				if n := b.count(of); volume(n) > 0 {
					best = maxBox(plane, base, n, steps)
					top = plane[best]
				}
				y[i*ny+o], index[i*ny+o] = top, int64(best)
			}
		}
	})
}

// maxBox returns where the maximum is among the elements of a box of x from base on.
func maxBox[T float32 | float64](x []T, base int, n, steps [3]int) int {
	best, top := base, x[base]
	for d := range n[0] {
		for h := range n[1] {
			at := base + d*steps[0] + h*steps[1]
			for range n[2] {
				if v := x[at]; v > top || v != v {
					best, top = at, v
				}
				at += steps[2]
			}
		}
	}
	return best
}

// Blend is a separable linear map: output position (d, h, w) is the sum of what its box reads, each element times its three weights, over Div[0][d]·Div[1][h]·Div[2][w].
// The weights of output position o along axis a are Weight[a][o]; a nil Weight[a] means ones, a nil Div[a] too.
type Blend[T any] struct {
	*Boxes
	Weight [3][][]T
	Div    [3][]T
}

type blended interface {
	float32 | float64 | int64 | uint8
}

func (m *Blend[T]) weights(of [3]int) (w [3][]T) {
	for a, o := range of {
		if m.Weight[a] != nil {
			w[a] = m.Weight[a][o]
		}
	}
	return w
}

func divisor[T blended](m *Blend[T], of [3]int) T {
	d := T(1)
	for a, o := range of {
		if m.Div[a] != nil {
			d *= m.Div[a][o]
		}
	}
	return d
}

func weightAt[T blended](w []T, i int) T {
	if w == nil {
		return 1
	}
	return w[i]
}

// cell is what one output position reads: n elements along each axis from base on, over div.
type cell[T blended] struct {
	base, o int
	n       [3]int
	div     T
}

// cellsOf returns what the output positions read, but for those that read nothing.
func cellsOf[T blended](m *Blend[T]) []cell[T] {
	out := make([]cell[T], 0, volume(m.Y))
	for o := range volume(m.Y) {
		base, of := m.at(o)
		if n := m.count(of); volume(n) > 0 {
			out = append(out, cell[T]{base, o, n, divisor(m, of)})
		}
	}
	return out
}

// plain reports whether all weights are ones.
func (m *Blend[T]) plain() bool {
	return m.Weight[0] == nil && m.Weight[1] == nil && m.Weight[2] == nil
}

// Apply sets planes of y to the map of planes of x.
func Apply[T blended](m *Blend[T], planes int, x, y []T) {
	nx, ny := volume(m.X), volume(m.Y)
	cells, steps, plain := cellsOf(m), m.steps(), m.plain()
	Parallel(planes, ceilDiv(1<<12, max(nx, ny, 1)), func(lo, hi int) {
		if len(cells) < ny {
			clear(y[lo*ny : hi*ny])
		}
		for i := lo; i < hi; i++ {
			from, to := x[i*nx:][:nx], y[i*ny:][:ny]
			for k := range cells {
				if c := &cells[k]; plain {
					to[c.o] = sumBox(from, c.base, c.n, steps) / c.div
				} else {
					_, of := m.at(c.o)
					to[c.o] = blendBox(from, c.base, c.n, steps, m.weights(of)) / c.div
				}
			}
		}
	})
}

// sumBox is blendBox with weights of one.
func sumBox[T blended](x []T, base int, n, steps [3]int) T {
	var sum T
	for d := range n[0] {
		for h := range n[1] {
			var row T
			at := base + d*steps[0] + h*steps[1]
			for range n[2] {
				row += x[at]
				at += steps[2]
			}
			sum += row
		}
	}
	return sum
}

func blendBox[T blended](x []T, base int, n, steps [3]int, w [3][]T) T {
	var sum T
	for d := range n[0] {
		for h := range n[1] {
			row := blendRow(x, base+d*steps[0]+h*steps[1], n[2], steps[2], w[2])
			sum += row * weightAt(w[0], d) * weightAt(w[1], h)
		}
	}
	return sum
}

func blendRow[T blended](x []T, at, n, step int, w []T) T {
	var sum T
	if w == nil {
		for range n {
			sum += x[at]
			at += step
		}
		return sum
	}
	for _, k := range w[:n] {
		sum += k * x[at]
		at += step
	}
	return sum
}

// ApplyTransposed sets planes of x to the transposed map of planes of y.
func ApplyTransposed[T blended](m *Blend[T], planes int, y, x []T) {
	nx, ny := volume(m.X), volume(m.Y)
	cells, steps, plain := cellsOf(m), m.steps(), m.plain()
	Parallel(planes, ceilDiv(1<<12, max(nx, ny, 1)), func(lo, hi int) {
		clear(x[lo*nx : hi*nx])
		for i := lo; i < hi; i++ {
			to, from := x[i*nx:][:nx], y[i*ny:][:ny]
			for k := range cells {
				if c := &cells[k]; plain {
					addBox(to, from[c.o]/c.div, c.base, c.n, steps)
				} else {
					_, of := m.at(c.o)
					spreadBox(to, from[c.o]/c.div, c.base, c.n, steps, m.weights(of))
				}
			}
		}
	})
}

// addBox is spreadBox with weights of one.
func addBox[T blended](x []T, g T, base int, n, steps [3]int) {
	for d := range n[0] {
		for h := range n[1] {
			at := base + d*steps[0] + h*steps[1]
			for range n[2] {
				x[at] += g
				at += steps[2]
			}
		}
	}
}

func spreadBox[T blended](x []T, g T, base int, n, steps [3]int, w [3][]T) {
	for d := range n[0] {
		for h := range n[1] {
			at := base + d*steps[0] + h*steps[1]
			v := g * weightAt(w[0], d) * weightAt(w[1], h)
			for k := range n[2] {
				x[at] += v * weightAt(w[2], k)
				at += steps[2]
			}
		}
	}
}

// ScatterPlanes adds each element of g to the element of its plane of x, set to zero before, that index names.
// Indices outside the plane are skipped.
func ScatterPlanes[T float32 | float64](planes int, g []T, index []int64, x []T) {
	ng, nx := len(g)/max(planes, 1), len(x)/max(planes, 1)
	Parallel(planes, ceilDiv(1<<13, max(nx, 1)), func(lo, hi int) {
		clear(x[lo*nx : hi*nx])
		for i := lo; i < hi; i++ {
			plane := x[i*nx:][:nx]
			from := index[i*ng:][:ng]
			for j, v := range g[i*ng:][:ng] {
				if k := from[j]; uint64(k) < uint64(len(plane)) {
					plane[k] += v
				}
			}
		}
	})
}

// GatherPlanes sets each element of y to the element of its plane of x that index names, to zero for an index outside the plane.
func GatherPlanes[T float32 | float64](planes int, x []T, index []int64, y []T) {
	ny, nx := len(y)/max(planes, 1), len(x)/max(planes, 1)
	Parallel(planes, ceilDiv(1<<13, max(ny, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			plane := x[i*nx:][:nx]
			out := y[i*ny:][:ny]
			for j, from := range index[i*ny:][:ny] {
				out[j] = 0
				if uint64(from) < uint64(len(plane)) {
					out[j] = plane[from]
				}
			}
		}
	})
}

// PlacePlanes sets each element of its plane of x, zero before, that index names to the element of v.
// It returns the first index outside the plane, if there is one.
func PlacePlanes[T any](planes int, v []T, index []int64, x []T) (bad int64, ok bool) {
	nv, nx := len(v)/max(planes, 1), len(x)/max(planes, 1)
	clear(x)
	if nx == 0 {
		return 0, true
	}
	for i := range planes {
		plane := x[i*nx:][:nx]
		for j, k := range index[i*nv:][:nv] {
			if uint64(k) >= uint64(nx) {
				return k, false
			}
			plane[k] = v[i*nv+j]
		}
	}
	return 0, true
}
