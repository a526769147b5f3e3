package kernel

// inside reports whether every tap of every output position lies inside the image.
func (c *Conv) inside() bool {
	for a := range 3 {
		if c.start(a, 0, 0) < 0 || c.start(a, c.Y[a]-1, c.Kernel[a]-1) >= c.X[a] {
			return false
		}
	}
	return true
}

// steps returns how far channels, depths, heights and widths lie apart in what read returns of a volume with the given strides.
func (c *Conv) steps(strides [5]int) [4]int {
	if c.inside() {
		return [4]int(strides[1:])
	}
	return (&frame[struct{}]{size: c.frameSize()}).steps()
}

// offsets returns where the weights of a filter lie from the first one that an output position reads.
func (c *Conv) offsets(steps [4]int) []int {
	out := make([]int, c.patch())
	for i := range out {
		kd, ki, kj := c.tap(i % c.taps())
		out[i] = i/c.taps()*steps[0] + kd*c.Dilation[0]*steps[1] + ki*c.Dilation[1]*steps[2] + kj*c.Dilation[2]*steps[3]
	}
	return out
}

// origin returns where the first weight of an output position lies.
func (c *Conv) origin(steps [4]int, position int) int {
	d, h, w := position/(c.Y[1]*c.Y[2]), position/c.Y[2]%c.Y[1], position%c.Y[2]
	return d*c.Stride[0]*steps[1] + h*c.Stride[1]*steps[2] + w*c.Stride[2]*steps[3]
}

func (c *Conv) origins(steps [4]int) []int {
	out := make([]int, c.positions())
	for i := range out {
		out[i] = c.origin(steps, i)
	}
	return out
}

// read returns the channels of a group of an image as the windows read them: where they lie, or framed by zeros.
func read[T gemmElement](c *Conv, x Volume[T], n, g int) []T {
	if c.inside() {
		return x.at(n, g*c.XC)
	}
	f := frame[T]{size: c.frameSize()}
	plane := volume(f.size)
	all := make([]T, c.XC*plane)
	for i := range c.XC {
		f.data = all[i*plane:][:plane]
		f.fill(c, x.at(n, g*c.XC+i), x.Strides)
	}
	return all
}

// frame is an image of one channel with zeros around it: what the windows read.
type frame[T any] struct {
	data []T
	size [3]int
}

func newFrame[T any](c *Conv) *frame[T] {
	size := c.frameSize()
	return &frame[T]{make([]T, volume(size)), size}
}

// frameSize is the size of an image with as many zeros around it as the windows reach.
func (c *Conv) frameSize() (size [3]int) {
	for a := range size {
		size[a] = (c.Y[a]-1)*c.Stride[a] + (c.Kernel[a]-1)*c.Dilation[a] + 1
	}
	return size
}

// steps returns how far frames, depths, heights and widths lie apart.
func (f *frame[T]) steps() [4]int {
	return [4]int{volume(f.size), f.size[1] * f.size[2], f.size[2], 1}
}

// fill copies an image.
func (f *frame[T]) fill(c *Conv, plane []T, strides [5]int) {
	left := c.Padding[2]
	n := min(c.X[2], f.size[2]-left)
	if n <= 0 {
		return
	}
	for i := range f.size[0] * f.size[1] {
		d, h := i/f.size[1]-c.Padding[0], i%f.size[1]-c.Padding[1]
		if c.outside(d, h) {
			continue
		}
		to, from := f.data[i*f.size[2]+left:][:n], plane[d*strides[2]+h*strides[3]:]
		if strides[4] == 1 {
			copy(to, from)
			continue
		}
		for j := range to {
			to[j] = from[j*strides[4]]
		}
	}
}

// narrowRows is patchRows of a map whose rows are short: by the place of each element.
type narrowRows[T gemmElement] struct {
	data             []T
	offsets, origins []int // of weights and positions
}

// Row implements BPacker.
func (b *narrowRows[T]) Row(dst []T, p, j int) {
	data := b.data[b.offsets[p]:]
	for i, at := range b.origins[j:][:len(dst)] {
		dst[i] = data[at]
	}
}

// patchColumns is the transpose of patchRows: a row per output position, a column per weight of a filter.
type patchColumns[T gemmElement] struct {
	*Conv
	data    []T // see read
	steps   [4]int
	offsets []int // of the weights
}

// Row implements BPacker.
func (b *patchColumns[T]) Row(dst []T, p, j int) {
	data := b.data[b.origin(b.steps, p):]
	for i, at := range b.offsets[j:][:len(dst)] {
		dst[i] = data[at]
	}
}
