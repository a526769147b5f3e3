package kernel

// thinned returns the convolution with steps of 1 of every Stride-th element of the image, from the element first on, that c is where no tap reads another one.
func (c *Conv) thinned() (m *Conv, first [3]int, ok bool) {
	t := *c
	for a, s := range c.Stride {
		if s == 1 {
			continue
		}
		if c.Kernel[a] > 1 && c.Dilation[a]%s != 0 {
			return nil, first, false
		}
		ok = true
		t.Stride[a], t.Dilation[a] = 1, max(c.Dilation[a]/s, 1)
		t.Padding[a] = ceilDiv(c.Padding[a], s)
		first[a] = s*t.Padding[a] - c.Padding[a]
		t.X[a] = ceilDiv(max(c.X[a]-first[a], 0), s)
	}
	return &t, first, ok && volume(t.X) > 0
}

// thin is the view of the elements that thinned tells of.
func thin[T any](c *Conv, x Volume[T], first [3]int) Volume[T] {
	v := x
	at := 0
	for a, s := range c.Stride {
		at += first[a] * x.Strides[2+a]
		v.Strides[2+a] *= s
	}
	v.Data = x.Data[min(at, len(x.Data)):]
	return v
}

// convInputThinned is ConvInput by m, the thinned c.
func convInputThinned[T gemmElement](c, m *Conv, first [3]int, y Volume[T], w, bias, x []T) {
	image, some, channels := volume(c.X), volume(m.X), c.Groups*c.XC
	thinned := make([]T, c.N*channels*some)
	ConvInput(m, y, w, bias, thinned)
	spread(x, bias, c.N, channels, image)
	steps := thin(c, Volume[T]{x, [5]int{channels * image, image, c.X[1] * c.X[2], c.X[2], 1}}, first)
	Parallel(c.N*channels, ceilDiv(mapGrain, some), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to, from := steps.at(0, i), thinned[i*some:][:some]
			for o := range m.X[0] * m.X[1] {
				row := to[o/m.X[1]*steps.Strides[2]+o%m.X[1]*steps.Strides[3]:]
				for k, v := range from[o*m.X[2]:][:m.X[2]] {
					row[k*steps.Strides[4]] = v
				}
			}
		}
	})
}
