package kernel

import "math"

// Pool is the geometry of a pooling over planes of X to planes of Y, both (height, width).
type Pool struct {
	X, Y [2]int
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

// MaxPool sets y to the maximum of each window of the planes of x, and index, unless nil, to its position h·width+w in the plane.
// The first of equal maxima counts, and the last NaN counts above all numbers, as in PyTorch.
// A window all of whose taps miss the image has the maximum −∞, at a position that may lie outside the plane.
func MaxPool[T float32 | float64](p *Pool, planes int, x, y []T, index []int64) {
	nx, ny := p.X[0]*p.X[1], p.Y[0]*p.Y[1]
	Parallel(planes, ceilDiv(1<<13, nx), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if index == nil {
				maxValues(p, x[i*nx:][:nx], y[i*ny:][:ny])
			} else {
				maxPlane(p, x[i*nx:][:nx], y[i*ny:][:ny], index[i*ny:][:ny])
			}
		}
	})
}

// maxValues computes a plane without positions: for each tap, a row at a time.
func maxValues[T float32 | float64](p *Pool, x, y []T) {
	fillRun(y, T(math.Inf(-1)))
	for j := range p.Kernel[1] {
		left, right := p.span(1, j, p.X[1], p.Y[1])
		if left == right {
			continue
		}
		from, step := p.start(1, left, j), p.Stride[1]
		for oh := range p.Y[0] {
			lo, hi := p.inside(0, oh)
			out := y[oh*p.Y[1]+left : oh*p.Y[1]+right]
			for i := lo; i < hi; i++ {
				row := x[p.start(0, oh, i)*p.X[1]+from : (p.start(0, oh, i)+1)*p.X[1]]
				for k, v := range out {
					out[k] = max(v, row[k*step])
				}
			}
		}
	}
}

// maxPlane computes a plane with positions.
func maxPlane[T float32 | float64](p *Pool, x, y []T, index []int64) {
	for oh := range p.Y[0] {
		lo, hi := p.inside(0, oh)
		for ow := range p.Y[1] {
			left, right := p.inside(1, ow)
			base := p.start(0, oh, lo)*p.X[1] + p.start(1, ow, left)
			best, top := base, T(math.Inf(-1))
			if lo < hi && left < right {
				best = maxWindow(x, base, p.Dilation[0]*p.X[1], hi-lo, p.Dilation[1], right-left)
				top = x[best]
			}
			y[oh*p.Y[1]+ow] = top
			index[oh*p.Y[1]+ow] = int64(best)
		}
	}
}

// maxWindow returns where the maximum is among rows×cols elements of x from base on.
func maxWindow[T float32 | float64](x []T, base, down, rows, across, cols int) int {
	best, top := base, x[base]
	for range rows {
		at := base
		for range cols {
			if v := x[at]; v > top || v != v {
				best, top = at, v
			}
			at += across
		}
		base += down
	}
	return best
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
