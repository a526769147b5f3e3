package kernel

import "plumb/tensor"

// Window is how a window slides over an image; each triple is (depth, height, width), with unit windows along dimensions that an image lacks.
// Padding is the number of positions before the image; after it there are as many as the output needs.
type Window struct {
	Kernel, Stride, Padding, Dilation [3]int
}

// start returns the image coordinate at which tap k of output position o lies along axis a.
func (w *Window) start(a, o, k int) int {
	return o*w.Stride[a] - w.Padding[a] + k*w.Dilation[a]
}

// span returns the output positions [lo, hi) out of n whose tap k lies inside an image of the given size along axis a.
func (w *Window) span(a, k, size, n int) (lo, hi int) {
	first := w.start(a, 0, k)
	if first < 0 {
		lo = ceilDiv(-first, w.Stride[a])
	}
	if first < size {
		hi = ceilDiv(size-first, w.Stride[a])
	}
	hi = min(hi, n)
	return min(lo, hi), hi
}

// Conv is the geometry of a convolution between an image X of Groups·XC channels and a map Y of Groups·YC channels.
// Weights have the shape [Groups·YC, XC, kernel depth, kernel height, kernel width].
type Conv struct {
	N, Groups, XC, YC int
	X, Y              [3]int // depths, heights and widths
	Window
}

// patch returns the weights of one output channel.
func (c *Conv) patch() int { return c.XC * c.taps() }

func (c *Conv) taps() int { return volume(c.Kernel) }

func (c *Conv) positions() int { return volume(c.Y) }

func volume(size [3]int) int { return size[0] * size[1] * size[2] }

// pointwise reports whether every output position reads one image position, in order.
func (c *Conv) pointwise() bool {
	return c.taps() == 1 && c.Stride == [3]int{1, 1, 1} && c.Padding == [3]int{} && c.X == c.Y
}

// Volume is a strided view of a batch of images: element (n, c, d, h, w) is Data[n·Strides[0]+c·Strides[1]+d·Strides[2]+h·Strides[3]+w·Strides[4]].
type Volume[T any] struct {
	Data    []T
	Strides [5]int
}

// VolumeOf returns the view of a tensor of shape [n, c, d, h, w], of which d and h may be absent.
func VolumeOf[T tensor.Elem](t *tensor.Tensor) Volume[T] {
	v := Volume[T]{Data: tensor.Data[T](t)}
	from := t.Strides()
	copy(v.Strides[:2], from)
	copy(v.Strides[7-len(from):], from[2:])
	return v
}

// Planar reports whether the positions of a channel, of images of the given size, lie at equal steps.
func (v *Volume[T]) Planar(size [3]int) bool {
	s := v.Strides
	return (size[1] == 1 || s[3] == size[2]*s[4]) && (size[0] == 1 || s[2] == size[1]*size[2]*s[4])
}

func (v *Volume[T]) at(n, c int) []T { return v.Data[n*v.Strides[0]+c*v.Strides[1]:] }

// ConvForward sets y, contiguous, to the convolution of x with w plus bias, which may be nil.
func ConvForward[T gemmElement](c *Conv, x Volume[T], w, bias, y []T) {
	ConvForwardThen(c, x, w, bias, y, nil)
}

// ConvForwardThen is ConvForward that calls done, where it is not nil, with each range of y once it is final, together all of it.
// Calls may be concurrent.
func ConvForwardThen[T gemmElement](c *Conv, x Volume[T], w, bias, y []T, done func(lo, hi int)) {
	if done == nil {
		done = func(int, int) {}
	}
	p := c.positions()
	if c.N*c.Groups*c.YC*p == 0 {
		return
	}
	if m, first, ok := c.thinned(); ok {
		ConvForwardThen(m, thin(c, x, first), w, bias, y, done)
		return
	}
	if v, ok := any(x).(Volume[float32]); ok && c.XC == 1 && c.YC < tileRows && c.taps() > 0 {
		depthwise(c, v, any(w).([]float32), any(bias).([]float32), any(y).([]float32))
		done(0, len(y))
		return
	}
	if convDirect(c, x, w, bias, y, done) {
		return
	}
	if bias != nil || c.patch() == 0 {
		spread(y, bias, c.N, c.Groups*c.YC, p)
	}
	if c.patch() == 0 {
		done(0, len(y))
		return
	}
	packer := rowPacker(c, x)
	Parallel(c.N*c.Groups, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			n, g := i/c.Groups, i%c.Groups
			a := Mat[T]{w[g*c.YC*c.patch():], c.patch(), 1}
			out := Mat[T]{y[i*c.YC*p:], p, 1}
			if c.pointwise() && x.Planar(c.X) {
				GemmAny(c.YC, p, c.XC, a, Mat[T]{x.at(n, g*c.XC), x.Strides[1], x.Strides[4]}, out, bias != nil)
			} else {
				GemmPack(c.YC, p, c.patch(), a, packer(n, g), out, bias != nil)
			}
			done(i*c.YC*p, (i+1)*c.YC*p)
		}
	})
}

// narrow is up to how many columns a map is too narrow to copy its patches row by row.
const narrow = 24

// rowPacker returns what packs the patches of a group's channels of an image.
func rowPacker[T gemmElement](c *Conv, x Volume[T]) func(n, g int) BPacker[T] {
	if c.Y[2] > narrow {
		spans := c.spans()
		return func(n, g int) BPacker[T] { return &patchRows[T]{c, x.at(n, g*c.XC), x.Strides, spans} }
	}
	steps := c.steps(x.Strides)
	offsets, positions := c.offsets(steps), c.origins(steps)
	return func(n, g int) BPacker[T] { return &narrowRows[T]{read(c, x, n, g), offsets, positions} }
}

// depthwise is ConvForward of single channels: per tap, a row at a time.
func depthwise(c *Conv, x Volume[float32], w, bias, y []float32) {
	spans, channels, p := c.spans(), c.Groups*c.YC, c.positions()
	Parallel(c.N*channels, ceilDiv(1<<14, p*c.taps()), func(lo, hi int) {
		if vectors.tapRow != nil && c.Stride[2] == 1 && x.Strides[4] == 1 {
			f := newFrame[float32](c)
			offsets := c.offsets(f.steps())
			for i := lo; i < hi; i++ {
				ch := i % channels
				f.fill(c, x.at(i/channels, ch/c.YC), x.Strides)
				convolveFrame(c, f, offsets, w[ch*c.taps():][:c.taps()], startOf(bias, ch), y[i*p:][:p])
			}
			return
		}
		for i := lo; i < hi; i++ {
			ch := i % channels
			plane, out, taps := x.at(i/channels, ch/c.YC), y[i*p:][:p], w[ch*c.taps():][:c.taps()]
			fillRun(out, startOf(bias, ch))
			for o := range c.Y[0] * c.Y[1] {
				c.depthwiseRow(out[o*c.Y[2]:][:c.Y[2]], plane, taps, x.Strides, spans, o)
			}
		}
	})
}

// startOf is what the sums of a channel start from.
func startOf[T any](bias []T, channel int) (zero T) {
	if bias == nil {
		return zero
	}
	return bias[channel]
}

// convolveFrame sets y to start plus the convolution of a framed image.
func convolveFrame(c *Conv, f *frame[float32], offsets []int, taps []float32, start float32, y []float32) {
	for o := range c.Y[0] * c.Y[1] {
		at := (o/c.Y[1]*c.Stride[0]*f.size[1] + o%c.Y[1]*c.Stride[1]) * f.size[2]
		vectors.tapRow(&y[o*c.Y[2]], &f.data[at], c.Y[2], start, &taps[0], &offsets[0], len(taps))
	}
}

func (c *Conv) depthwiseRow(out, plane, taps []float32, strides [5]int, spans [][2]int, o int) {
	step := c.Stride[2] * strides[4]
	for i, k := range taps {
		kd, ki, kj := c.tap(i)
		d, h := c.start(0, o/c.Y[1], kd), c.start(1, o%c.Y[1], ki)
		lo, hi := spans[kj][0], spans[kj][1]
		if lo < hi && !c.outside(d, h) {
			addScaledRun(out[lo:hi], plane[d*strides[2]+h*strides[3]+c.start(2, lo, kj)*strides[4]:], step, k)
		}
	}
}

// addScaledRun adds factor times every step-th element of x to y.
func addScaledRun(y, x []float32, step int, factor float32) {
	at := 0
	for i := range y {
		y[i] = float32(float64(x[at])*float64(factor) + float64(y[i]))
		at += step
	}
}

// spread sets every position of channel c to bias[c], or to zero.
func spread[T gemmElement](y, bias []T, n, channels, positions int) {
	if bias == nil {
		clear(y)
		return
	}
	for i := range n * channels {
		fillRun(y[i*positions:][:positions], bias[i%channels])
	}
}

func fillRun[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}

// spans returns, for each kernel column, the output columns that read inside the image.
func (c *Conv) spans() [][2]int {
	spans := make([][2]int, c.Kernel[2])
	for k := range spans {
		lo, hi := c.span(2, k, c.X[2], c.Y[2])
		spans[k] = [2]int{lo, hi}
	}
	return spans
}

// patchRows is the matrix of patches of one image and group: a row per weight of a filter, a column per output position.
type patchRows[T gemmElement] struct {
	*Conv
	data    []T // of the group's first channel
	strides [5]int
	spans   [][2]int
}

// Row implements BPacker.
func (b *patchRows[T]) Row(dst []T, p, j int) {
	channel := b.data[p/b.taps()*b.strides[1]:]
	kd, ki, kj := b.tap(p % b.taps())
	width := b.Y[2]
	for o, from := j/width, j%width; len(dst) > 0; o, from = o+1, 0 {
		n := min(width-from, len(dst))
		d, h := b.start(0, o/b.Y[1], kd), b.start(1, o%b.Y[1], ki)
		if b.outside(d, h) {
			clear(dst[:n])
		} else {
			b.line(dst[:n], channel[d*b.strides[2]+h*b.strides[3]:], kj, from)
		}
		dst = dst[n:]
	}
}

// tap returns the depth, height and width of a tap counted in row-major order.
func (w *Window) tap(i int) (d, h, x int) {
	return i / (w.Kernel[1] * w.Kernel[2]), i / w.Kernel[2] % w.Kernel[1], i % w.Kernel[2]
}

// outside reports whether no row of the image lies at depth d and height h.
func (c *Conv) outside(d, h int) bool { return d < 0 || d >= c.X[0] || h < 0 || h >= c.X[1] }

// line writes what output columns from, from+1, … of one output row read of an image row.
func (b *patchRows[T]) line(dst, row []T, kj, from int) {
	lo := min(max(b.spans[kj][0]-from, 0), len(dst))
	hi := max(min(b.spans[kj][1]-from, len(dst)), lo)
	clear(dst[:lo])
	clear(dst[hi:])
	if lo == hi {
		return
	}
	at, step := b.start(2, from+lo, kj)*b.strides[4], b.Stride[2]*b.strides[4]
	if step == 1 {
		copy(dst[lo:hi], row[at:])
		return
	}
	for i := lo; i < hi; i++ {
		dst[i] = row[at]
		at += step
	}
}

// ConvInput computes the products of about scatterRows weights with about scatterColumns positions before it adds them to the image.
const (
	scatterRows    = 512
	scatterColumns = 256
)

// ConvInput sets x, contiguous, to the transposed convolution of y with w plus bias, which may be nil.
// It is the gradient of ConvForward with respect to the image, given that of its result in y.
// The positions of a channel of y lie at equal steps, as Volume.Planar reports.
func ConvInput[T gemmElement](c *Conv, y Volume[T], w, bias, x []T) {
	image, p := volume(c.X), c.positions()
	if c.N*c.Groups*c.XC*image == 0 {
		return
	}
	if m, first, ok := c.thinned(); ok {
		convInputThinned(c, m, first, y, w, bias, x)
		return
	}
	if p > 0 && convInputDirect(c, y, w, bias, x) {
		return
	}
	if m, ok := c.mirrored(); ok && c.XC == 1 && c.YC == 1 {
		ConvForward(m, y, mirror(c, w), bias, x)
		return
	}
	spread(x, bias, c.N, c.Groups*c.XC, image)
	if c.YC*p*c.taps() == 0 {
		return
	}
	channels := min(ceilDiv(scatterRows, c.taps()), c.XC)
	parts := ceilDiv(c.XC, channels)
	spans := c.spans()
	Parallel(c.N*c.Groups*parts, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			n, g, first := i/parts/c.Groups, i/parts%c.Groups, i%parts*channels
			some := min(channels, c.XC-first)
			a := Mat[T]{w[g*c.YC*c.patch()+first*c.taps():], 1, c.patch()}
			b := Mat[T]{y.at(n, g*c.YC), y.Strides[1], y.Strides[4]}
			out := x[((n*c.Groups+g)*c.XC+first)*image:][:some*image]
			if c.pointwise() {
				GemmAny(some, p, c.YC, a, b, Mat[T]{out, p, 1}, true)
			} else {
				scatterProducts(c, some, a, b, out, spans)
			}
		}
	})
}

// scatterProducts adds the products of the weights of some channels with a map to their images, some rows of the map at a time.
func scatterProducts[T gemmElement](c *Conv, channels int, a, b Mat[T], out []T, spans [][2]int) {
	m, all, image := channels*c.taps(), c.Y[0]*c.Y[1], volume(c.X)
	rows := min(ceilDiv(scatterColumns, c.Y[2]), all)
	cols := make([]T, m*rows*c.Y[2])
	for o := 0; o < all; o += rows {
		n := min(rows, all-o)
		p := n * c.Y[2]
		from := Mat[T]{b.Data[o*c.Y[2]*b.CS:], b.RS, b.CS}
		GemmAny(m, p, c.YC, a, from, Mat[T]{cols, p, 1}, false)
		for r := range m {
			scatter(c, out[r/c.taps()*image:][:image], cols[r*p:][:p], r%c.taps(), spans, o)
		}
	}
}

// scatter adds what the output positions of some rows, from row first on, received through one tap to the image positions that they read.
func scatter[T gemmElement](c *Conv, image, cols []T, tap int, spans [][2]int, first int) {
	kd, ki, kj := c.tap(tap)
	lo, hi := spans[kj][0], spans[kj][1]
	if lo == hi {
		return
	}
	at, step := c.start(2, lo, kj), c.Stride[2]
	for o := first; len(cols) > 0; o, cols = o+1, cols[c.Y[2]:] {
		d, h := c.start(0, o/c.Y[1], kd), c.start(1, o%c.Y[1], ki)
		if c.outside(d, h) {
			continue
		}
		row := image[(d*c.X[1]+h)*c.X[2]+at : (d*c.X[1]+h+1)*c.X[2]]
		for i, v := range cols[lo:hi] {
			row[i*step] += v
		}
	}
}

// ConvWeight sets w to the gradient of ConvForward with respect to its weights, given that of its result in y, which is contiguous.
func ConvWeight[T gemmElement](c *Conv, x Volume[T], y, w []T) {
	p := c.positions()
	if c.Groups*c.YC*c.patch() == 0 {
		return
	}
	if c.N*p == 0 {
		clear(w)
		return
	}
	if c.XC == 1 && c.YC == 1 && x.Strides[4] == 1 && c.Stride[2] == 1 {
		depthwiseWeight(c, x, y, w)
		return
	}
	steps := c.steps(x.Strides)
	offsets := c.offsets(steps)
	Parallel(c.Groups, 1, func(lo, hi int) {
		for g := lo; g < hi; g++ {
			out := Mat[T]{w[g*c.YC*c.patch():], c.patch(), 1}
			for n := range c.N {
				a := Mat[T]{y[(n*c.Groups+g)*c.YC*p:], p, 1}
				GemmPack(c.YC, c.patch(), p, a, &patchColumns[T]{c, read(c, x, n, g), steps, offsets}, out, n > 0)
			}
		}
	})
}

// depthwiseWeight is ConvWeight of single channels whose rows are dense: per tap, a row at a time.
func depthwiseWeight[T gemmElement](c *Conv, x Volume[T], y, w []T) {
	p, spans := c.positions(), c.spans()
	Parallel(c.Groups, 1, func(first, last int) {
		for i := first * c.taps(); i < last*c.taps(); i++ {
			kd, ki, kj := c.tap(i % c.taps())
			lo, hi := spans[kj][0], spans[kj][1]
			var sum T
			for o := range c.N * c.Y[0] * c.Y[1] {
				n, row := o/(c.Y[0]*c.Y[1]), o%(c.Y[0]*c.Y[1])
				d, h := c.start(0, row/c.Y[1], kd), c.start(1, row%c.Y[1], ki)
				if lo < hi && !c.outside(d, h) {
					plane := x.at(n, i/c.taps())
					from := plane[d*x.Strides[2]+h*x.Strides[3]+c.start(2, lo, kj):]
					sum += products(y[(n*c.Groups+i/c.taps())*p+row*c.Y[2]:][lo:hi], from)
				}
			}
			w[i] = sum
		}
	})
}

// products returns the sum of the products of a and the elements of b beside them.
func products[T gemmElement](a, b []T) T {
	var s0, s1, s2, s3 T
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + (s2 + s3)
}

// Unfold sets y, of shape [n, groups·channels·taps, positions], to the image elements that every tap of every window reads, zero outside the image.
func Unfold[T gemmElement](c *Conv, x Volume[T], y []T) {
	p, rows, spans := c.positions(), c.Groups*c.patch(), c.spans()
	Parallel(c.N*rows, ceilDiv(1<<13, max(p, 1)), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			b := patchRows[T]{c, x.Data[i/rows*x.Strides[0]:], x.Strides, spans}
			b.Row(y[i*p:][:p], i%rows, 0)
		}
	})
}

// Fold sets x, contiguous, to the sums of what Unfold would read of it: the elements of y, contiguous.
func Fold[T gemmElement](c *Conv, y, x []T) {
	p, image, taps, spans := c.positions(), volume(c.X), c.taps(), c.spans()
	Parallel(c.N*c.Groups*c.XC, ceilDiv(1<<13, max(p*taps, 1)), func(lo, hi int) {
		clear(x[lo*image : hi*image])
		for i := lo; i < hi; i++ {
			for tap := range taps {
				scatter(c, x[i*image:][:image], y[(i*taps+tap)*p:][:p], tap, spans, 0)
			}
		}
	})
}
