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
	if dst.on != nil || src.on != nil {
		copyAcross(dst, src)
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

// moveFunc converts n elements, from the given places on, that lie so many apart.
type moveFunc func(dst, src []byte, d, s, dstep, sstep, n int)

func mover(d, s DType) moveFunc {
	switch {
	case d == s:
		return sameMover(d)
	case d == F16 && s == F32:
		return moveAll(ToFloat16s, ToFloat16)
	case d == BF16 && s == F32:
		return moveAll(ToBFloat16s, ToBFloat16)
	case d == F32 && s == F16:
		return moveAll(FromFloat16s, Float16.Float32)
	case d == F32 && s == BF16:
		return moveAll(FromBFloat16s, BFloat16.Float32)
	case d == F64 && s == F16:
		return moveAll(fromHalves(FromFloat16s), func(x Float16) float64 { return float64(x.Float32()) })
	case d == F64 && s == BF16:
		return moveAll(fromHalves(FromBFloat16s), func(x BFloat16) float64 { return float64(x.Float32()) })
	case d == F16 && s == F64:
		return moveAll(toHalves(ToFloat16s), Float64ToFloat16)
	case d == BF16 && s == F64:
		return moveAll(toHalves(ToBFloat16s), Float64ToBFloat16)
	case d == F64 && s == F32:
		return moveAll(toDoubles, func(x float32) float64 { return float64(x) })
	case d == F32 && s == F64:
		return moveAll(toSingles, func(x float64) float32 { return float32(x) })
	case d == C128 && s == C64:
		return moveAs(func(x complex64) complex128 { return complex128(x) })
	case d == C64 && s == C128:
		return moveAs(func(x complex128) complex64 { return complex64(x) })
	}
	switch s {
	case Bool, U8:
		return moverFrom[uint8](d)
	case I8:
		return moverFrom[int8](d)
	case I16:
		return moverFrom[int16](d)
	case I32:
		return moverFrom[int32](d)
	case I64:
		return moverFrom[int64](d)
	case F32:
		return moverFrom[float32](d)
	case F64:
		return moverFrom[float64](d)
	}
	return moverOf(d, s)
}

func sameMover(d DType) moveFunc {
	switch d.Size() {
	case 1:
		return moveSame[uint8]
	case 2:
		return moveSame[uint16]
	case 4:
		return moveSame[int32]
	case 8:
		return moveSame[int64]
	}
	return moveSame[complex128]
}

// moverOf is the mover of any two dtypes.
func moverOf(d, s DType) moveFunc {
	return func(dst, src []byte, di, si, dstep, sstep, n int) {
		for range n {
			store(d, dst, di, load(s, src, si))
			di += dstep
			si += sstep
		}
	}
}

type real64 interface {
	uint8 | int8 | int16 | int32 | int64 | float32 | float64
}

func moverFrom[S real64](d DType) moveFunc {
	switch d {
	case Bool:
		return moveAs(func(x S) bool { return x != 0 })
	case U8:
		return moveToInt[uint8, S]
	case I8:
		return moveToInt[int8, S]
	case I16:
		return moveToInt[int16, S]
	case I32:
		return moveToInt[int32, S]
	case I64:
		return moveToInt[int64, S]
	case F32:
		return moveToFloat[float32, S]
	case F64:
		return moveToFloat[float64, S]
	case F16:
		return moveAs(func(x S) Float16 { return Float64ToFloat16(float64(x)) })
	case BF16:
		return moveAs(func(x S) BFloat16 { return Float64ToBFloat16(float64(x)) })
	case C64:
		return moveAs(func(x S) complex64 { return complex(float32(float64(x)), 0) })
	}
	return moveAs(func(x S) complex128 { return complex(float64(x), 0) })
}

func moveSame[T Elem](dst, src []byte, d, s, dstep, sstep, n int) {
	to, from := cast[T](dst), cast[T](src)
	if dstep == 1 && sstep == 1 {
		copy(to[d:d+n], from[s:])
		return
	}
	for range n {
		to[d] = from[s]
		d += dstep
		s += sstep
	}
}

func moveToFloat[D float32 | float64, S real64](dst, src []byte, d, s, dstep, sstep, n int) {
	to, from := cast[D](dst), cast[S](src)
	for range n {
		to[d] = D(from[s])
		d += dstep
		s += sstep
	}
}

// moveToInt goes by int64, so that floats beyond a narrow type wrap around.
func moveToInt[D uint8 | int8 | int16 | int32 | int64, S real64](dst, src []byte, d, s, dstep, sstep, n int) {
	to, from := cast[D](dst), cast[S](src)
	for range n {
		to[d] = D(int64(from[s]))
		d += dstep
		s += sstep
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

// moveAll converts elements that lie side by side by all, others one by one.
func moveAll[D, S Elem](all func(dst []D, src []S), one func(S) D) moveFunc {
	apart := moveAs(one)
	return func(dst, src []byte, d, s, dstep, sstep, n int) {
		if dstep != 1 || sstep != 1 {
			apart(dst, src, d, s, dstep, sstep, n)
			return
		}
		all(cast[D](dst)[d:][:n], cast[S](src)[s:][:n])
	}
}

func cast[T Elem](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}
