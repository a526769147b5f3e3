package tensor

import (
	"slices"
	"unsafe"
)

// copyConvert sets dst from src, both of one shape. Runs along the innermost
// dimension are moved by one typed loop each.
func copyConvert(dst, src *Tensor) {
	n := dst.Len()
	if n == 0 {
		return
	}
	if dst.dtype == src.dtype && dst.IsContiguous() && src.IsContiguous() {
		size := dst.dtype.Size()
		copy(dst.storage[dst.offset*size:(dst.offset+n)*size], src.storage[src.offset*size:])
		return
	}
	move := mover(dst.dtype, src.dtype)
	shape, sd, ss := squeezeLast(dst.shape, dst.strides, src.strides)
	last := len(shape) - 1
	run, dstep, sstep := shape[last], sd[last], ss[last]
	index := make([]int, last)
	d, s := dst.offset, src.offset
	for {
		move(dst.storage, src.storage, d, s, dstep, sstep, run)
		i := last - 1
		for ; i >= 0; i-- {
			index[i]++
			d += sd[i]
			s += ss[i]
			if index[i] < shape[i] {
				break
			}
			index[i] = 0
			d -= shape[i] * sd[i]
			s -= shape[i] * ss[i]
		}
		if i < 0 {
			return
		}
	}
}

// squeezeLast merges trailing dimensions that both operands lay out as one run.
func squeezeLast(shape, a, b []int) (s, sa, sb []int) {
	if len(shape) == 0 {
		return []int{1}, []int{1}, []int{1}
	}
	s, sa, sb = slices.Clone(shape), slices.Clone(a), slices.Clone(b)
	for len(s) > 1 {
		i := len(s) - 2
		if s[i] != 1 && (sa[i] != s[i+1]*sa[i+1] || sb[i] != s[i+1]*sb[i+1]) {
			break
		}
		s[i+1] *= s[i]
		s, sa, sb = slices.Delete(s, i, i+1), slices.Delete(sa, i, i+1), slices.Delete(sb, i, i+1)
	}
	return s, sa, sb
}

type moveFunc func(dst, src []byte, d, s, dstep, sstep, n int)

func mover(d, s DType) moveFunc {
	if d == s {
		switch d.Size() {
		case 1:
			return moveAs(func(x uint8) uint8 { return x })
		case 2:
			return moveAs(func(x uint16) uint16 { return x })
		case 4:
			return moveAs(func(x float32) float32 { return x })
		}
	}
	switch {
	case d == F32 && s == F64:
		return moveAs(func(x float64) float32 { return float32(x) })
	case d == F64 && s == F32:
		return moveAs(func(x float32) float64 { return float64(x) })
	case d == F32 && s == F16:
		return moveAs(Float16.Float32)
	case d == F32 && s == BF16:
		return moveAs(BFloat16.Float32)
	case d == F16 && s == F32:
		return moveAs(ToFloat16)
	case d == BF16 && s == F32:
		return moveAs(ToBFloat16)
	case d == I64 && (s.IsInt() || s == Bool) || s == I64 && d.IsInt():
		return moveInt(d, s)
	case d == F32 && s == I64:
		return moveAs(func(x int64) float32 { return float32(x) })
	}
	return func(dst, src []byte, di, si, dstep, sstep, n int) {
		for range n {
			store(d, dst, di, load(s, src, si))
			di += dstep
			si += sstep
		}
	}
}

func moveAs[D, S Elem](f func(S) D) moveFunc {
	return func(dst, src []byte, d, s, dstep, sstep, n int) {
		to, from := cast[D](dst), cast[S](src)
		for range n {
			to[d] = f(from[s])
			d += dstep
			s += sstep
		}
	}
}

func moveInt(d, s DType) moveFunc {
	switch {
	case d == I64 && s == I64:
		return moveAs(func(x int64) int64 { return x })
	case d == I64 && (s == Bool || s == U8):
		return moveAs(func(x uint8) int64 { return int64(x) })
	case d == I64 && s == I8:
		return moveAs(func(x int8) int64 { return int64(x) })
	case d == I64 && s == I16:
		return moveAs(func(x int16) int64 { return int64(x) })
	case d == I64 && s == I32:
		return moveAs(func(x int32) int64 { return int64(x) })
	case d == U8:
		return moveAs(func(x int64) uint8 { return uint8(x) })
	case d == I8:
		return moveAs(func(x int64) int8 { return int8(x) })
	case d == I16:
		return moveAs(func(x int64) int16 { return int16(x) })
	}
	return moveAs(func(x int64) int32 { return int32(x) })
}

func cast[T Elem](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}
