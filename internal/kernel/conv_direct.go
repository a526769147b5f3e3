package kernel

import "sync/atomic"

// rowsTile multiplies a packed panel by rows that lie anywhere.
type rowsTile[T any] func(k int, a, b *T, offsets *int, c *T, ldc int, add bool)

// rowsTiles are the tiles by element type; nil where the processor lacks them.
type rowsTiles struct {
	f32 rowsTile[float32]
	f64 rowsTile[float64]
}

var rowTiles = availableRows()

func rowsTileOf[T gemmElement]() rowsTile[T] {
	if f, ok := any(rowTiles.f32).(rowsTile[T]); ok {
		return f
	}
	f, _ := any(rowTiles.f64).(rowsTile[T])
	return f
}

const directColumns = 512 // columns that are computed before they move to the result

// direct is a convolution of several taps, with steps of 1, that multiplies images where they lie.
// Images are framed by zeros, so that a tap reads the same offset from every position.
// Positions are counted along the frames' rows, which are longer than the result's: columns in between are computed in vain.
type direct[T gemmElement] struct {
	*Conv
	tile    rowsTile[T]
	width   int // columns of a tile
	images  Volume[T]
	size    [3]int // of a framed image
	columns int    // positions from the first to the last of the result
	offsets []int  // of the rows of patches
	depth   int    // rows of patches whose products are summed from zero
	weights []T
}

// newDirect returns nil where it cannot be, or another way takes less time.
func newDirect[T gemmElement](c *Conv, x Volume[T], otherwise float64) *direct[T] {
	d := &direct[T]{Conv: c, tile: rowsTileOf[T](), width: engineOf[T]().width, images: x, size: c.X}
	framed := c.Padding != [3]int{} || !x.dense(c.X)
	var need [3]int
	for a := range need {
		need[a] = c.Y[a] + (c.Kernel[a]-1)*c.Dilation[a]
		framed = framed || need[a] > c.X[a]
	}
	if framed {
		d.size = need
	}
	d.columns = d.position(c.Y[0]-1, c.Y[1]-1, c.Y[2]-1) + 1
	if d.tile == nil || c.taps() == 1 || c.Stride != [3]int{1, 1, 1} || d.columns < d.width || d.cost() > otherwise || c.positions()*c.YC*c.patch() < 1<<16 {
		return nil
	}
	if framed {
		d.frame()
	}
	d.place()
	return d
}

// cost estimates the time of the convolution: of products of whole vectors, two at a time, and of moving the result.
func (d *direct[T]) cost() float64 {
	return float64(d.rows()) * float64(d.columns) * (float64(d.patch())/float64(2*d.width) + 1)
}

// packCost estimates the time of products of packed patches in the unit of direct.cost.
func packCost(c *Conv, width int) float64 {
	return float64(c.positions()) * float64(c.patch()) * (1 + float64(c.YC)/float64(2*width))
}

// scatterCost estimates the time of products that are added to an image in the unit of direct.cost.
func scatterCost(c *Conv, width int) float64 {
	return float64(c.positions()) * float64(c.patch()) * (2 + float64(c.YC)/float64(2*width))
}

// convolve is ConvForwardThen.
func (d *direct[T]) convolve(w, bias, y []T, done func(lo, hi int)) {
	d.pack(w)
	d.run(bias, y, done)
}

// convDirect is ConvForwardThen where that pays; it reports whether it does.
func convDirect[T gemmElement](c *Conv, x Volume[T], w, bias, y []T, done func(lo, hi int)) bool {
	d := newDirect(c, x, packCost(c, engineOf[T]().width))
	if d != nil {
		d.convolve(w, bias, y, done)
	}
	return d != nil
}

// convInputDirect is ConvInput where that pays; it reports whether it does.
func convInputDirect[T gemmElement](c *Conv, y Volume[T], w, bias, x []T) bool {
	m, ok := c.mirrored()
	if !ok {
		return false
	}
	d := newDirect(m, y, scatterCost(c, engineOf[T]().width))
	if d != nil {
		d.convolve(mirror(c, w), bias, x, func(int, int) {})
	}
	return d != nil
}

// mirrored returns the convolution that a transposed one with steps of 1 is.
func (c *Conv) mirrored() (m *Conv, ok bool) {
	m = &Conv{N: c.N, Groups: c.Groups, XC: c.YC, YC: c.XC, X: c.Y, Y: c.X, Window: c.Window}
	for a := range m.Padding {
		m.Padding[a] = c.Dilation[a]*(c.Kernel[a]-1) - c.Padding[a]
		if m.Padding[a] < 0 || c.Stride[a] != 1 {
			return nil, false
		}
	}
	return m, true
}

// mirror returns the weights of the mirrored convolution.
func mirror[T gemmElement](c *Conv, w []T) []T {
	taps := c.taps()
	m := make([]T, len(w))
	for i := range c.Groups * c.YC {
		g, out := i/c.YC, i%c.YC
		for in := range c.XC {
			from, to := w[(i*c.XC+in)*taps:][:taps], m[((g*c.XC+in)*c.YC+out)*taps:][:taps]
			for k, v := range from {
				to[taps-1-k] = v
			}
		}
	}
	return m
}

// dense reports whether the positions of a channel, of images of the given size, lie side by side.
func (v *Volume[T]) dense(size [3]int) bool { return v.Strides[4] == 1 && v.Planar(size) }

func (d *direct[T]) position(depth, height, width int) int {
	return (depth*d.size[1]+height)*d.size[2] + width
}

// frame copies the images into frames of zeros.
func (d *direct[T]) frame() {
	plane, channels := volume(d.size), d.Groups*d.XC
	data := make([]T, d.N*channels*plane)
	Parallel(d.N*channels, ceilDiv(mapGrain, plane), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			f := frame[T]{data: data[i*plane:][:plane], size: d.size}
			f.fill(d.Conv, d.images.at(i/channels, i%channels), d.images.Strides)
		}
	})
	d.images = Volume[T]{data, [5]int{channels * plane, plane, d.size[1] * d.size[2], d.size[2], 1}}
}

// place finds where the rows of patches begin.
func (d *direct[T]) place() {
	d.offsets = make([]int, d.patch())
	for i := range d.offsets {
		kd, ki, kj := d.tap(i % d.taps())
		d.offsets[i] = i/d.taps()*d.images.Strides[1] + d.position(kd*d.Dilation[0], ki*d.Dilation[1], kj*d.Dilation[2])
	}
}

// rows is the number of output channels of a group in whole tiles.
func (d *direct[T]) rows() int { return ceilDiv(d.YC, tileRows) * tileRows }

// pack lays the weights out as gemmRows32 reads them: by group, depth and tile.
func (d *direct[T]) pack(w []T) {
	k := d.patch()
	d.depth = ceilDiv(k, ceilDiv(k, maxKC))
	d.weights = make([]T, d.Groups*d.rows()*k)
	for g := range d.Groups {
		for from := 0; from < k; from += d.depth {
			n := min(d.depth, k-from)
			for i := 0; i < d.YC; i += tileRows {
				panel := d.weights[g*d.rows()*k+d.rows()*from+i*n:][:tileRows*n]
				packPanel(panel, tileRows, w[(g*d.YC+i)*k+from:], k, 1, min(tileRows, d.YC-i))
			}
		}
	}
}

func (d *direct[T]) run(bias, y []T, done func(lo, hi int)) {
	blocks := ceilDiv(d.columns, directColumns)
	left, size := make([]atomic.Int32, d.N*d.Groups), d.YC*d.positions()
	for i := range left {
		left[i].Store(int32(blocks))
	}
	work := min(d.columns, directColumns) * d.YC * d.patch()
	Parallel(d.N*d.Groups*blocks, ceilDiv(1<<18, work), func(lo, hi int) {
		sums := make([]T, d.rows()*directColumns)
		for i := lo; i < hi; i++ {
			image, first := i/blocks, i%blocks*directColumns
			g, n := image%d.Groups, min(directColumns, d.columns-first)
			for r := range d.YC {
				fillRun(sums[r*directColumns:][:n], startOf(bias, g*d.YC+r))
			}
			d.multiply(d.images.at(image/d.Groups, g*d.XC), d.weights[g*d.rows()*d.patch():], sums, first, n)
			d.move(y[image*size:], sums, first, n)
			if left[image].Add(-1) == 0 {
				done(image*size, (image+1)*size)
			}
		}
	})
}

// multiply adds the products for columns first to first+n to the sums.
func (d *direct[T]) multiply(x, weights, sums []T, first, n int) {
	edge := make([]T, tileRows*d.width)
	for from := 0; from < d.patch(); from += d.depth {
		k := min(d.depth, d.patch()-from)
		for j := 0; j < n; j += d.width {
			at := min(first+j, d.columns-d.width)
			for i := 0; i < d.rows(); i += tileRows {
				a, to := &weights[d.rows()*from+i*k], sums[i*directColumns+j:]
				if at == first+j {
					d.tile(k, a, &x[at], &d.offsets[from], &to[0], directColumns, true)
					continue
				}
				d.tile(k, a, &x[at], &d.offsets[from], &edge[0], d.width, false)
				skip := first + j - at
				for r := range tileRows {
					for c, v := range edge[r*d.width+skip : (r+1)*d.width] {
						to[r*directColumns+c] += v
					}
				}
			}
		}
	}
}

// move copies the columns first to first+n that are positions of the result there.
func (d *direct[T]) move(y, sums []T, first, n int) {
	row := first / d.size[2]
	for o := row/d.size[1]*d.Y[1] + min(row%d.size[1], d.Y[1]); o < d.Y[0]*d.Y[1]; o++ {
		start := d.position(o/d.Y[1], o%d.Y[1], 0)
		lo, hi := max(start, first), min(start+d.Y[2], first+n)
		if start >= first+n {
			return
		}
		if lo >= hi {
			continue
		}
		for r := range d.YC {
			copy(y[r*d.positions()+o*d.Y[2]+lo-start:], sums[r*directColumns+lo-first:r*directColumns+hi-first])
		}
	}
}
