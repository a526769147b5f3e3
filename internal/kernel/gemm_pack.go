package kernel

// packA writes rows i to i+mc and columns k to k+depth of A into panels of tileRows rows.
func (s *scratch[T]) packA(p *product[T], i, mc, k, depth int) {
	s.a = grow(s.a, ceilDiv(mc, tileRows)*tileRows*depth)
	data := p.a.Data[i*p.a.RS+k*p.a.CS:]
	for i := 0; i < mc; i += tileRows {
		packPanel(s.a[i*depth:][:tileRows*depth], tileRows, data[i*p.a.RS:], p.a.RS, p.a.CS, min(tileRows, mc-i))
	}
}

// packB writes rows k to k+depth and columns j to j+nc of B into panels of e.width columns.
func (e *engine[T]) packB(s *scratch[T], p *product[T], k, depth, j, nc int) {
	w := e.width
	s.b = grow(s.b, ceilDiv(nc, w)*w*depth)
	if p.rows != nil {
		e.packRows(s, p.rows, k, depth, j, nc)
		return
	}
	data := p.b.Data[k*p.b.RS+j*p.b.CS:]
	for j := 0; j < nc; j += w {
		packPanel(s.b[j*depth:][:w*depth], w, data[j*p.b.CS:], p.b.CS, p.b.RS, min(w, nc-j))
	}
}

func (e *engine[T]) packRows(s *scratch[T], rows BPacker[T], k, depth, j, nc int) {
	w := e.width
	s.row = grow(s.row, ceilDiv(nc, w)*w)
	clear(s.row[nc:])
	for p := range depth {
		rows.Row(s.row[:nc:nc], k+p, j)
		for j := 0; j < nc; j += w {
			copyPanelRow(s.b[j*depth+p*w:][:w], s.row[j:])
		}
	}
}

// packPanel writes dst[p*w+i] = src[i*across+p*along] for i < n, and zero for n <= i < w.
func packPanel[T gemmElement](dst []T, w int, src []T, across, along, n int) {
	if n < w {
		clear(dst)
	}
	switch {
	case across == 1:
		copyRows(dst, w, src, along, n)
	case along == 1:
		transpose(dst, w, src, across, n)
	default:
		gather(dst, w, src, across, along, n)
	}
}

func copyRows[T gemmElement](dst []T, w int, src []T, along, n int) {
	for p := range len(dst) / w {
		copyPanelRow(dst[p*w:][:n], src[p*along:])
	}
}

// copyPanelRow is copy, without its call for whole rows of panels.
func copyPanelRow[T gemmElement](dst, src []T) {
	switch len(dst) {
	case 16:
		*(*[16]T)(dst) = *(*[16]T)(src)
	case 8:
		*(*[8]T)(dst) = *(*[8]T)(src)
	default:
		copy(dst, src)
	}
}

func transpose[T gemmElement](dst []T, w int, src []T, across, n int) {
	k := len(dst) / w
	i := 0
	for ; i+2 <= n; i += 2 {
		x, y := src[i*across:][:k], src[(i+1)*across:][:k]
		at := i
		for p := range x {
			d := dst[at:][:2]
			d[0], d[1] = x[p], y[p]
			at += w
		}
	}
	for ; i < n; i++ {
		gather(dst[i:], w, src[i*across:], across, 1, 1)
	}
}

func gather[T gemmElement](dst []T, w int, src []T, across, along, n int) {
	for p := range ceilDiv(len(dst), w) {
		d, x := dst[p*w:], src[p*along:]
		for i := range n {
			d[i] = x[i*across]
		}
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
