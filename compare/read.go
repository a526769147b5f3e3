package compare

import (
	"math"
	"sync"

	"plumb/tensor"
)

// blockLen is how many elements are measured at a time; the buffers of a block
// stay in the first-level cache.
const blockLen = 256

// block holds consecutive elements, in row-major order, of both tensors; a
// complex element fills two places.
type block struct {
	start, n  int // row-major position of the first element; elements
	want, got side
	// errs are got − want and ratios error ÷ limit, where fast measures.
	errs, ratios [blockLen]float64
}

var blocks = sync.Pool{New: func() any { return new(block) }}

// side is one tensor's part of a block. Vals are the elements as float64,
// exact for all but 64-bit integers. Ords are their places on the grid of the
// dtype: the integer itself, or the number of floats between zero and it.
type side struct {
	vals [2 * blockLen]float64
	ords [2 * blockLen]int64
}

// reader copies n elements, step apart from position at on, to place k of a side.
type reader func(s *side, k, at, step, n int)

// walk feeds both tensors to m, block by block in row-major order. The tensors
// have one shape with at least one element.
func walk(want, got *tensor.Tensor, m *meter) {
	wide := 1
	if want.DType().IsComplex() {
		wide = 2
	}
	readWant, readGot := newReader(want), newReader(got)
	shape, ws, gs := merge(want.Shape(), want.Strides(), got.Strides())
	last := len(shape) - 1
	index := make([]int, last)
	w, g := want.Offset(), got.Offset()
	b := blocks.Get().(*block)
	defer blocks.Put(b)
	b.start, b.n = 0, 0
	for {
		for done := 0; done < shape[last]; {
			n := min(shape[last]-done, blockLen-b.n)
			readWant(&b.want, b.n*wide, w+done*ws[last], ws[last], n)
			readGot(&b.got, b.n*wide, g+done*gs[last], gs[last], n)
			done += n
			if b.n += n; b.n == blockLen {
				m.block(b)
				b.start += b.n
				b.n = 0
			}
		}
		i := last - 1
		for ; i >= 0; i-- {
			index[i]++
			w += ws[i]
			g += gs[i]
			if index[i] < shape[i] {
				break
			}
			index[i] = 0
			w -= shape[i] * ws[i]
			g -= shape[i] * gs[i]
		}
		if i < 0 {
			break
		}
	}
	m.block(b)
}

// merge drops dimensions of size 1 and joins neighbours that both tensors
// step through evenly. The result has at least one dimension.
func merge(shape, a, b []int) (s, sa, sb []int) {
	for i, n := range shape {
		k := len(s) - 1
		switch {
		case n == 1:
		case k >= 0 && sa[k] == n*a[i] && sb[k] == n*b[i]:
			s[k], sa[k], sb[k] = s[k]*n, a[i], b[i]
		default:
			s, sa, sb = append(s, n), append(sa, a[i]), append(sb, b[i])
		}
	}
	if len(s) == 0 {
		return []int{1}, []int{1}, []int{1}
	}
	return s, sa, sb
}

func newReader(t *tensor.Tensor) reader {
	switch t.DType() {
	case tensor.Bool, tensor.U8:
		return read(t, func(x uint8) (float64, int64) { return float64(x), int64(x) })
	case tensor.I8:
		return read(t, func(x int8) (float64, int64) { return float64(x), int64(x) })
	case tensor.I16:
		return read(t, func(x int16) (float64, int64) { return float64(x), int64(x) })
	case tensor.I32:
		return read(t, func(x int32) (float64, int64) { return float64(x), int64(x) })
	case tensor.I64:
		return read(t, func(x int64) (float64, int64) { return float64(x), x })
	case tensor.F16:
		return read(t, func(x tensor.Float16) (float64, int64) { return float64(x.Float32()), ord16(uint16(x)) })
	case tensor.BF16:
		return read(t, func(x tensor.BFloat16) (float64, int64) { return float64(x.Float32()), ord16(uint16(x)) })
	case tensor.F32:
		return readF32(t)
	case tensor.F64:
		return readF64(t)
	case tensor.C64:
		return readComplex(t, func(x complex64) (re, im float64, reOrd, imOrd int64) {
			return float64(real(x)), float64(imag(x)), ord32(real(x)), ord32(imag(x))
		})
	default:
		return readComplex(t, func(x complex128) (re, im float64, reOrd, imOrd int64) {
			return real(x), imag(x), ord64(real(x)), ord64(imag(x))
		})
	}
}

// storage returns all elements of t's storage, so that strides may be negative.
func storage[T tensor.Elem](t *tensor.Tensor) []T {
	n := len(t.Storage()) / t.DType().Size()
	all, err := t.AsStrided([]int{n}, []int{1}, 0)
	if err != nil {
		panic(err)
	}
	return tensor.Data[T](all)
}

func read[T tensor.Elem](t *tensor.Tensor, f func(T) (float64, int64)) reader {
	data := storage[T](t)
	return func(s *side, k, at, step, n int) {
		vals, ords := s.vals[k:k+n], s.ords[k:k+n]
		for i := range vals {
			vals[i], ords[i] = f(data[at])
			at += step
		}
	}
}

func readF32(t *tensor.Tensor) reader {
	data := storage[float32](t)
	return func(s *side, k, at, step, n int) {
		vals, ords := s.vals[k:k+n], s.ords[k:k+n]
		if step == 1 {
			for i, x := range data[at : at+n] {
				vals[i], ords[i] = float64(x), ord32(x)
			}
			return
		}
		for i := range vals {
			vals[i], ords[i] = float64(data[at]), ord32(data[at])
			at += step
		}
	}
}

func readF64(t *tensor.Tensor) reader {
	data := storage[float64](t)
	return func(s *side, k, at, step, n int) {
		vals, ords := s.vals[k:k+n], s.ords[k:k+n]
		if step == 1 {
			for i, x := range data[at : at+n] {
				vals[i], ords[i] = x, ord64(x)
			}
			return
		}
		for i := range vals {
			vals[i], ords[i] = data[at], ord64(data[at])
			at += step
		}
	}
}

func readComplex[T tensor.Elem](t *tensor.Tensor, f func(T) (re, im float64, reOrd, imOrd int64)) reader {
	data := storage[T](t)
	return func(s *side, k, at, step, n int) {
		for i := k; i < k+2*n; i += 2 {
			s.vals[i], s.vals[i+1], s.ords[i], s.ords[i+1] = f(data[at])
			at += step
		}
	}
}

// ord16, ord32 and ord64 return the place of a float on its grid: they grow
// with its value by one from each number to the next, and are 0 for both zeros.

func ord16(bits uint16) int64 {
	sign := int64(int16(bits)) >> 63
	return (int64(bits&0x7fff) ^ sign) - sign
}

func ord32(x float32) int64 {
	bits := math.Float32bits(x)
	sign := int64(int32(bits)) >> 63
	return (int64(bits&(1<<31-1)) ^ sign) - sign
}

func ord64(x float64) int64 {
	bits := math.Float64bits(x)
	sign := int64(bits) >> 63
	return (int64(bits&(1<<63-1)) ^ sign) - sign
}
