package baseline

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"unsafe"

	"plumb/tensor"
)

// A residual is what turns a prediction into the elements that were recorded:
// by element, the distance on the number line of the dtype's values, so that
// one unit in the last place is a distance of 1. It is kept in blocks of
// blockLen elements: a byte with the number of bits w, and w bits each, zigzag.
// A NaN has many bit patterns, which machines choose differently: every NaN of
// the prediction is taken for one pattern, that of what was recorded.

const blockLen = 512

// word is the unsigned integer that holds one element, or one part of a
// complex one.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// words views bytes as elements; b is aligned, as tensors' storage is.
func words[T word](b []byte) []T {
	var zero T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// format is how the words of a dtype are read.
type format[T word] struct {
	float bool
	inf   T // the bits of infinity; above it, without the sign, are the NaNs
	nan   T // what a predicted NaN stands for; 0 for itself
}

// formatOf returns the format of a dtype whose parts are of T.
func formatOf[T word](d tensor.DType) format[T] {
	inf := uint64(0)
	switch d.Real() {
	case tensor.F16:
		inf = 0x7c00
	case tensor.BF16:
		inf = 0x7f80
	case tensor.F32:
		inf = 0x7f800000
	case tensor.F64:
		inf = 0x7ff0000000000000
	}
	return format[T]{float: inf != 0, inf: T(inf)}
}

func (f format[T]) isNaN(x T) bool { return f.float && x&(^T(0)>>1) > f.inf }

// one returns what a predicted element stands for.
func (f format[T]) one(p T) T {
	if f.nan != 0 && f.isNaN(p) {
		return f.nan
	}
	return p
}

// firstNaN returns the pattern of the first element that is NaN on both sides; 0
// for none.
func (f format[T]) firstNaN(want, pred []T) T {
	if !f.float {
		return 0
	}
	for i, x := range want {
		if f.isNaN(x) && f.isNaN(pred[i]) {
			return x
		}
	}
	return 0
}

// order maps the bits of a float to an integer that grows with the float; it is
// its own inverse. Integers stay as they are.
func (f format[T]) order(x, sign T) T {
	if f.float && x&sign != 0 {
		return ^x ^ sign
	}
	return x
}

// difference returns what turns pred into want, and the pattern of NaN.
func difference[T word](want, pred []byte, f format[T]) ([]byte, uint64) {
	f.nan = f.firstNaN(words[T](want), words[T](pred))
	return appendResidual(nil, want, pred, f), uint64(f.nan)
}

// appendResidual appends what turns pred into want, bytes of elements of T.
func appendResidual[T word](out, want, pred []byte, f format[T]) []byte {
	w, p := words[T](want), words[T](pred)
	sign := ^T(0)>>1 + 1
	var block [blockLen]T
	for len(w) > 0 {
		n := min(len(w), blockLen)
		var all T
		for i := range n {
			d := f.order(w[i], sign) - f.order(f.one(p[i]), sign)
			d = d<<1 ^ -(d / sign)
			block[i] = d
			all |= d
		}
		out = appendBits(out, block[:n], bits.Len64(uint64(all)))
		w, p = w[n:], p[n:]
	}
	return out
}

// appendBits appends a width and the lowest bits of each element.
func appendBits[T word](out []byte, block []T, width int) []byte {
	out = append(out, byte(width))
	if width == 0 {
		return out
	}
	var acc uint64
	have := 0
	for _, x := range block {
		v := uint64(x)
		acc |= v << have
		if have+width < 64 {
			have += width
			continue
		}
		out = binary.LittleEndian.AppendUint64(out, acc)
		acc = 0
		if have > 0 {
			acc = v >> (64 - have)
		}
		have += width - 64
	}
	for ; have > 0; have -= 8 {
		out = append(out, byte(acc))
		acc >>= 8
	}
	return out
}

var errResidual = errors.New("the difference from the prediction is cut short or damaged")

// applyResidual turns the prediction in b into what was recorded.
func applyResidual[T word](b, in []byte, f format[T], nan uint64) error {
	p := words[T](b)
	f.nan = T(nan)
	sign := ^T(0)>>1 + 1
	size := bits.Len64(uint64(^T(0)))
	var block [blockLen]T
	for len(p) > 0 {
		n := min(len(p), blockLen)
		if len(in) < 1 {
			return errResidual
		}
		width := int(in[0])
		bytes := (n*width + 7) / 8
		if width > size || len(in) < 1+bytes {
			return errResidual
		}
		clear(block[:n])
		if width > 0 {
			readBits(block[:n], in[1:1+bytes], width)
		}
		if width > 0 || f.nan != 0 {
			for i, d := range block[:n] {
				d = d>>1 ^ -(d & 1)
				p[i] = f.order(f.order(f.one(p[i]), sign)+d, sign)
			}
		}
		in = in[1+bytes:]
		p = p[n:]
	}
	if len(in) > 0 {
		return errResidual
	}
	return nil
}

// readBits is the inverse of appendBits.
func readBits[T word](block []T, in []byte, width int) {
	mask := ^uint64(0) >> (64 - width)
	at := 0
	for i := range block {
		block[i] = T(load64(in, at>>3)>>(at&7)&mask | high(in, at, width)&mask)
		at += width
	}
}

// load64 reads up to eight bytes from i on.
func load64(in []byte, i int) uint64 {
	if i+8 <= len(in) {
		return binary.LittleEndian.Uint64(in[i:])
	}
	var v uint64
	for k, c := range in[min(i, len(in)):] {
		v |= uint64(c) << (8 * k)
	}
	return v
}

// high returns the bits of an element that eight bytes do not reach.
func high(in []byte, at, width int) uint64 {
	shift := at & 7
	if shift+width <= 64 || at>>3+8 >= len(in) {
		return 0
	}
	return uint64(in[at>>3+8]) << (64 - shift)
}

// shuffle transposes the bytes of elements: all first bytes, all second ones, …
func shuffle(out, in []byte, size int) {
	n := len(in) / size
	for k := range size {
		plane := out[k*n : (k+1)*n]
		for i := range plane {
			plane[i] = in[i*size+k]
		}
	}
}

// unshuffle is the inverse of shuffle.
func unshuffle(out, in []byte, size int) {
	n := len(in) / size
	for k := range size {
		for i, c := range in[k*n : (k+1)*n] {
			out[i*size+k] = c
		}
	}
}
