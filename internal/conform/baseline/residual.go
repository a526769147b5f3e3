package baseline

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
	"slices"
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

// bothNaN returns the pattern of the first element that is NaN on both sides; 0
// for none.
func (f format[T]) bothNaN(want, pred []T) T {
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

// A delta is what turns a prediction into what was recorded.
type delta struct {
	packed  []byte
	differs bool
	nan     uint64   // the pattern of NaN
	check   checksum // of what was recorded
}

// atOnce is how many elements are gone through, and summed, while they are in a
// processor's cache.
const atOnce = 16 * blockLen

// difference returns what turns pred into want, bytes of elements of T, in memory
// that is appended to.
func difference[T word](want, pred, memory []byte, f format[T]) *delta {
	d := &delta{nan: uint64(f.nan), packed: memory[:0]}
	blocks := (len(words[T](want)) + blockLen - 1) / blockLen
	for w, p := want, pred; len(w) > 0; {
		n := min(len(w), atOnce*int(unsafe.Sizeof(f.inf)))
		packed, nan := f.append(d.packed, w[:n], p[:n])
		if nan != 0 {
			f.nan = nan
			return difference(want, pred, memory, f)
		}
		d.check.add(w[:n])
		if len(w) == len(want) { // the first part tells how much room all take
			packed = slices.Grow(packed, len(packed)*((len(want)-n)/n))
		}
		d.packed, w, p = packed, w[n:], p[n:]
	}
	d.differs = len(d.packed) > blocks || f.nan != 0
	return d
}

// append appends what turns pred into want, unless it meets the first NaN that
// all NaNs of the prediction are to be taken for, which it returns then.
func (f format[T]) append(out, want, pred []byte) ([]byte, T) {
	w, p := words[T](want), words[T](pred)
	if f.nan == 0 && bytes.Equal(want, pred) {
		return append(out, make([]byte, (len(w)+blockLen-1)/blockLen)...), 0
	}
	var block [blockLen]T
	for len(w) > 0 {
		n := min(len(w), blockLen)
		width := f.differences(block[:n], w[:n], p[:n])
		if width > 0 && f.float && f.nan == 0 {
			if nan := f.bothNaN(w[:n], p[:n]); nan != 0 {
				return nil, nan
			}
		}
		out = appendBits(out, block[:n], width)
		w, p = w[n:], p[n:]
	}
	return out, 0
}

// differences sets block to what turns b into a, in zigzag, and returns how many
// bits the largest takes.
func (f format[T]) differences(block, a, b []T) int {
	sign := ^T(0)>>1 + 1
	b, block = b[:len(a)], block[:len(a)]
	var all T
	switch {
	case f.nan != 0:
		for i, x := range a {
			d := zigzag(f.order(x, sign) - f.order(f.one(b[i]), sign))
			block[i] = d
			all |= d
		}
	case f.float:
		for i, x := range a {
			d := zigzag(ordered(x) - ordered(b[i]))
			block[i] = d
			all |= d
		}
	default:
		for i, x := range a {
			d := zigzag(x - b[i])
			block[i] = d
			all |= d
		}
	}
	return bits.Len64(uint64(all))
}

// zigzag maps differences to numbers that are small where they are.
func zigzag[T word](d T) T { return d<<1 ^ negative(d) }

// negative is all ones for a number with the highest bit, else 0.
func negative[T word](x T) T { return -(x / (^T(0)>>1 + 1)) }

// ordered is format.order of a float.
func ordered[T word](x T) T { return x ^ negative(x)>>1 }

// appendBits appends a width and the lowest bits of each element.
func appendBits[T word](out []byte, block []T, width int) []byte {
	out = append(out, byte(width))
	if width == 0 {
		return out
	}
	at := len(out)
	size := (len(block)*width + 7) / 8
	out = slices.Grow(out, size+8)[:at+size+8]
	var acc uint64
	have := 0
	for _, x := range block {
		v := uint64(x)
		acc |= v << (have & 63)
		if have += width; have >= 64 {
			binary.LittleEndian.PutUint64(out[at:], acc)
			at += 8
			have -= 64
			acc = v >> (width - have)
		}
	}
	binary.LittleEndian.PutUint64(out[at:], acc)
	return out[:at+(have+7)/8]
}

var errResidual = errors.New("the difference from the prediction is cut short or damaged")

// restorer turns a prediction into what was recorded, part by part.
type restorer struct {
	pred  []byte // what is left of it
	in    *bufio.Reader
	check *checksum
	apply func(out, pred, in []byte) (rest []byte, err error)
}

// newRestorer returns the restorer of a tensor from its prediction and the
// residual, which adds what it restores to a checksum.
func newRestorer(d tensor.DType, pred []byte, in io.Reader, nan uint64, check *checksum) *restorer {
	r := &restorer{pred: pred, in: bufio.NewReaderSize(in, residualBytes(atOnce, 8)), check: check}
	switch part(d) {
	case 1:
		r.apply = applier[uint8](d, nan)
	case 2:
		r.apply = applier[uint16](d, nan)
	case 4:
		r.apply = applier[uint32](d, nan)
	default:
		r.apply = applier[uint64](d, nan)
	}
	return r
}

// residualBytes is the most that the residual of n elements of a size takes.
func residualBytes(n, size int) int { return (n+blockLen-1)/blockLen + n*size }

func applier[T word](d tensor.DType, nan uint64) func(out, pred, in []byte) ([]byte, error) {
	f := formatOf[T](d)
	f.nan = T(nan)
	return func(out, pred, in []byte) ([]byte, error) { return f.apply(words[T](out), words[T](pred), in) }
}

// Read sets out to the next elements: whole blocks, or all that are left, and no
// more than atOnce.
func (r *restorer) Read(out []byte) (int, error) {
	in, err := r.in.Peek(min(residualBytes(len(out), 1), r.in.Size()))
	if err != nil && err != io.EOF {
		return 0, err
	}
	rest, err := r.apply(out, r.pred[:len(out)], in)
	if err != nil {
		return 0, err
	}
	r.check.add(out)
	r.pred = r.pred[len(out):]
	_, err = r.in.Discard(len(in) - len(rest))
	return len(out), err
}

// ended reports whether the residual was as long as the prediction.
func (r *restorer) ended() error {
	if _, err := r.in.Peek(1); err != io.EOF || len(r.pred) > 0 {
		return errResidual
	}
	return nil
}

// restore is the inverse of residual: it writes to out, and adds that to a
// checksum.
func restore(d tensor.DType, out, pred, in []byte, nan uint64, check *checksum) error {
	r := newRestorer(d, pred, bytes.NewReader(in), nan, check)
	for some := range slices.Chunk(out, atOnce*part(d)) {
		if _, err := r.Read(some); err != nil {
			return err
		}
	}
	return r.ended()
}

// apply does some blocks, and returns what of in it does not need.
func (f format[T]) apply(out, pred []T, in []byte) ([]byte, error) {
	size := bits.Len64(uint64(^T(0)))
	var block [blockLen]T
	for len(out) > 0 {
		n := min(len(out), blockLen)
		if len(in) < 1 {
			return nil, errResidual
		}
		width := int(in[0])
		used := 1 + (n*width+7)/8
		if width > size || len(in) < used {
			return nil, errResidual
		}
		switch {
		case width > 0:
			readBits(block[:n], in[1:used], width)
			f.advance(out[:n], pred[:n], block[:n])
		case f.nan != 0:
			for i, x := range pred[:n] {
				out[i] = f.one(x)
			}
		default:
			copy(out, pred[:n])
		}
		in, out, pred = in[used:], out[n:], pred[n:]
	}
	return in, nil
}

// advance is the inverse of differences.
func (f format[T]) advance(out, pred, block []T) {
	sign := ^T(0)>>1 + 1
	pred, out = pred[:len(block)], out[:len(block)]
	switch {
	case f.nan != 0:
		for i, d := range block {
			out[i] = f.order(f.order(f.one(pred[i]), sign)+unzigzag(d), sign)
		}
	case f.float:
		for i, d := range block {
			out[i] = ordered(ordered(pred[i]) + unzigzag(d))
		}
	default:
		for i, d := range block {
			out[i] = pred[i] + unzigzag(d)
		}
	}
}

func unzigzag[T word](d T) T { return d>>1 ^ -(d & 1) }

// readBits is the inverse of appendBits.
func readBits[T word](block []T, in []byte, width int) {
	mask := ^uint64(0) >> (64 - width)
	at, i := 0, 0
	if width <= 57 { // eight bytes hold all bits of an element, wherever they begin
		for whole := 8*len(in) - 64; i < len(block) && at <= whole; i++ {
			block[i] = T(binary.LittleEndian.Uint64(in[at>>3:]) >> (at & 7) & mask)
			at += width
		}
	}
	for ; i < len(block); i++ {
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

// Elements are transposed part by part: all first bytes, all second ones, … of
// up to shuffledLen of them, so that a part can be read alone; its planes are
// frames.
const shuffledLen = frameBytes

// plane sets out to the bytes at k of elements.
func plane(out, in []byte, size, k int) {
	switch size {
	case 1:
		copy(out, in)
	case 2:
		gather(out, words[uint16](in), k)
	case 4:
		gather(out, words[uint32](in), k)
	default:
		gather(out, words[uint64](in), k)
	}
}

func gather[T word](out []byte, in []T, k int) {
	for shift := 8 * k; len(out) >= 8; out, in = out[8:], in[8:] {
		x := in[:8]
		v := uint64(byte(x[0]>>shift)) | uint64(byte(x[1]>>shift))<<8 | uint64(byte(x[2]>>shift))<<16 | uint64(byte(x[3]>>shift))<<24
		v |= uint64(byte(x[4]>>shift))<<32 | uint64(byte(x[5]>>shift))<<40 | uint64(byte(x[6]>>shift))<<48 | uint64(byte(x[7]>>shift))<<56
		binary.LittleEndian.PutUint64(out, v)
	}
	for i := range out {
		out[i] = byte(in[i] >> (8 * k))
	}
}

// unshuffleAll is the inverse of coder.shuffled.
func unshuffleAll(out, in []byte, size int) {
	for len(out) > 0 {
		n := min(len(out), size*shuffledLen)
		unshuffle(out[:n], in[:n], size)
		out, in = out[n:], in[n:]
	}
}

// unshuffle is the inverse of shuffle.
func unshuffle(out, in []byte, size int) {
	switch size {
	case 1:
		copy(out, in)
	case 2:
		scatter2(words[uint16](out), in)
	case 4:
		scatter4(words[uint32](out), in)
	default:
		scatter8(words[uint64](out), in)
	}
}

func scatter2(out []uint16, in []byte) {
	n := len(out)
	a, b := in[:n], in[n:2*n]
	for i := range out {
		out[i] = uint16(a[i]) | uint16(b[i])<<8
	}
}

func scatter4(out []uint32, in []byte) {
	n := len(out)
	a, b, c, d := in[:n], in[n:2*n], in[2*n:3*n], in[3*n:4*n]
	for i := range out {
		out[i] = uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
	}
}

func scatter8(out []uint64, in []byte) {
	n := len(out)
	a, b, c, d := in[:n], in[n:2*n], in[2*n:3*n], in[3*n:4*n]
	e, f, g, h := in[4*n:5*n], in[5*n:6*n], in[6*n:7*n], in[7*n:8*n]
	for i := range out {
		lo := uint64(a[i]) | uint64(b[i])<<8 | uint64(c[i])<<16 | uint64(d[i])<<24
		hi := uint64(e[i]) | uint64(f[i])<<8 | uint64(g[i])<<16 | uint64(h[i])<<24
		out[i] = lo | hi<<32
	}
}
