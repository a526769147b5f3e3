package compare

import (
	"math"
	"unsafe"

	"plumb/tensor"
)

const (
	// chunkLen is how many elements are gathered and judged at a time: both
	// sides with what is measured stay in the first-level cache. The sums of a
	// comparison are those of its chunks, in order.
	chunkLen = 2048
	// blockLen is how many of them are decoded at a time.
	blockLen = 256
)

// chunk holds consecutive elements, in row-major order, of both tensors.
type chunk struct {
	start, n  int    // row-major position of the first element; elements
	want, got []byte // contiguous
}

// block holds the elements of a part of a chunk; a complex element fills two places.
type block struct {
	start, n  int
	want, got side
	// errs are got − want and ratios error ÷ limit, where fast measures.
	errs, ratios [blockLen]float64
}

// side is one tensor's part of a block. Vals are the elements as float64,
// exact for all but 64-bit integers. Ords are their places on the grid of the
// dtype: the integer itself, or the number of floats between zero and it.
type side struct {
	vals [2 * blockLen]float64
	ords [2 * blockLen]int64
}

// buffers hold what a comparison needs beside its tensors.
type buffers struct {
	want, got [2 * chunkLen]uint64 // gathered elements
	simd      simdBuffers
	block     block
	dims      [4][8]int
}

// walk feeds both tensors to m, chunk by chunk in row-major order, until m has
// seen enough. The tensors have one shape with at least one element.
func walk(want, got *tensor.Tensor, m *meter) {
	d := &m.buf.dims
	shape, ws, gs := merge(d[0][:0], d[1][:0], d[2][:0], want.Shape(), want.Strides(), got.Strides())
	w, g := operand{want.Storage(), want.DType().Size(), want.Offset()}, operand{got.Storage(), got.DType().Size(), got.Offset()}
	if len(shape) == 1 && (shape[0] == 1 || ws[0] == 1 && gs[0] == 1) {
		direct(&w, &g, shape[0], m)
		return
	}
	last := len(shape) - 1
	index := append(d[3][:0], shape[:last]...)
	clear(index)
	c := chunk{want: bytesOf(m.buf.want[:])[:chunkLen*w.size], got: bytesOf(m.buf.got[:])[:chunkLen*g.size]}
	for {
		for done := 0; done < shape[last]; {
			n := min(shape[last]-done, chunkLen-c.n)
			w.gather(c.want[c.n*w.size:], done*ws[last], ws[last], n)
			g.gather(c.got[c.n*g.size:], done*gs[last], gs[last], n)
			done += n
			if c.n += n; c.n == chunkLen {
				if !m.chunk(c) {
					return
				}
				c.start, c.n = c.start+chunkLen, 0
			}
		}
		i := last - 1
		for ; i >= 0; i-- {
			index[i]++
			w.at += ws[i]
			g.at += gs[i]
			if index[i] < shape[i] {
				break
			}
			index[i] = 0
			w.at -= shape[i] * ws[i]
			g.at -= shape[i] * gs[i]
		}
		if i < 0 {
			break
		}
	}
	if c.n > 0 {
		m.chunk(chunk{c.start, c.n, c.want[:c.n*w.size], c.got[:c.n*g.size]})
	}
}

// direct feeds contiguous tensors to m.
func direct(w, g *operand, total int, m *meter) {
	for start := 0; start < total; start += chunkLen {
		n := min(chunkLen, total-start)
		if !m.chunk(chunk{start, n, w.bytes[(w.at+start)*w.size:][:n*w.size], g.bytes[(g.at+start)*g.size:][:n*g.size]}) {
			return
		}
	}
}

// merge appends to s, sa and sb a shape and strides without the dimensions of
// size 1, and with those neighbours joined that both tensors step through
// evenly. The result has at least one dimension.
func merge(s, sa, sb, shape, a, b []int) (_, _, _ []int) {
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
		return append(s, 1), append(sa, 1), append(sb, 1)
	}
	return s, sa, sb
}

// operand is a tensor that is being read.
type operand struct {
	bytes []byte // the storage
	size  int    // of an element
	at    int    // position of the first element of the current row
}

// gather copies n elements, step apart from position from of the row.
func (o *operand) gather(to []byte, from, step, n int) {
	from += o.at
	if step == 1 {
		copy(to, o.bytes[from*o.size:][:n*o.size])
		return
	}
	switch o.size {
	case 1:
		gather[uint8](to, o.bytes, from, step, n)
	case 2:
		gather[uint16](to, o.bytes, from, step, n)
	case 4:
		gather[int32](to, o.bytes, from, step, n)
	case 8:
		gather[int64](to, o.bytes, from, step, n)
	default:
		gather[complex128](to, o.bytes, from, step, n)
	}
}

func gather[T tensor.Elem](to, bytes []byte, from, step, n int) {
	dst, src := view[T](to), view[T](bytes)
	for i := range dst[:n] {
		dst[i] = src[from]
		from += step
	}
}

// view returns bytes, which are aligned for T, as elements.
func view[T tensor.Elem](bytes []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/int(unsafe.Sizeof(zero)))
}

// bytesOf returns the bytes of words.
func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

// decoders fill a side with the elements of a dtype.
var decoders = [...]func(s *side, bytes []byte){
	tensor.Bool: integers[uint8],
	tensor.U8:   integers[uint8],
	tensor.I8:   integers[int8],
	tensor.I16:  integers[int16],
	tensor.I32:  integers[int32],
	tensor.I64:  integers[int64],
	tensor.F16:  halves(tensor.FromFloat16s),
	tensor.BF16: halves(tensor.FromBFloat16s),
	tensor.F32:  float32s,
	tensor.F64:  float64s,
	tensor.C64:  float32s,
	tensor.C128: float64s,
}

func integers[T uint8 | int8 | int16 | int32 | int64](s *side, bytes []byte) {
	for i, x := range view[T](bytes) {
		s.vals[i], s.ords[i] = float64(x), int64(x)
	}
}

func halves[H tensor.Float16 | tensor.BFloat16](widen func([]float32, []H)) func(s *side, bytes []byte) {
	return func(s *side, bytes []byte) {
		var wide [blockLen]float32
		all := view[H](bytes)
		widen(wide[:len(all)], all)
		for i, x := range all {
			s.vals[i], s.ords[i] = float64(wide[i]), ord16(uint16(x))
		}
	}
}

func float32s(s *side, bytes []byte) {
	for i, x := range view[float32](bytes) {
		s.vals[i], s.ords[i] = float64(x), ord32(x)
	}
}

func float64s(s *side, bytes []byte) {
	for i, x := range view[float64](bytes) {
		s.vals[i], s.ords[i] = x, ord64(x)
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
