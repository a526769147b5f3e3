package kernel

import (
	"fmt"
	"math"
	"sync/atomic"

	"plumb/tensor"
)

// BadIndex is an element of an index tensor that lies outside its dimension.
type BadIndex struct {
	Index, Dim, Size int
}

// Error names the index, the dimension and its size.
func (e *BadIndex) Error() string {
	return fmt.Sprintf("index %d is out of bounds for dimension %d with size %d", e.Index, e.Dim, e.Size)
}

// Gather sets out[i,j,k] = in[i,index[i,j,k],k], here for dim 1 of three
// dimensions. Index is int64 and has out's shape, which may be smaller than
// in's in the other dimensions. The error is a *BadIndex.
func Gather(out, in, index *tensor.Tensor, dim int) error {
	if index.Len() == 0 { // then the ranks may differ
		return nil
	}
	index, out, in = unsqueezed(index), unsqueezed(out), unsqueezed(in)
	size := in.Shape()[dim]
	bad := -1
	switch out.DType().Size() {
	case 1:
		bad = gatherAs[uint8](out, in, index, dim)
	case 2:
		bad = gatherAs[uint16](out, in, index, dim)
	case 4:
		bad = gatherAs[int32](out, in, index, dim)
	case 8:
		bad = gatherAs[int64](out, in, index, dim)
	case 16:
		bad = gatherAs[complex128](out, in, index, dim)
	}
	if bad >= 0 {
		return &BadIndex{int(index.Int(bad)), dim, size}
	}
	return nil
}

// gatherAs returns where in row-major order the first bad index is, or -1.
func gatherAs[T tensor.Elem](out, in, index *tensor.Tensor, dim int) int {
	p := mergedPlan(index.Shape(), index.Strides(), out.Strides(), withoutDim(in.Strides(), dim))
	w := &gathering[T]{tensor.Data[T](out), tensor.Data[T](in), tensor.Data[int64](index), in.Shape()[dim], in.Strides()[dim]}
	var first atomic.Int64
	first.Store(math.MaxInt64)
	Parallel(p.total, mapGrain, func(lo, hi int) {
		for lo < hi {
			n := min(hi-lo, p.run()-lo%p.run())
			places, steps := [3]int{p.at(0, lo), p.at(1, lo), p.at(2, lo)}, [3]int{p.step(0), p.step(1), p.step(2)}
			if i := w.run(places, steps, n); i >= 0 {
				lower(&first, int64(lo+i))
			}
			lo += n
		}
	})
	if at := first.Load(); at < math.MaxInt64 {
		return int(at)
	}
	return -1
}

func lower(v *atomic.Int64, to int64) {
	for old := v.Load(); to < old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

type gathering[T any] struct {
	dst, src    []T
	index       []int64
	size, along int
}

// run gathers n elements; places and steps are of the index, of the result and
// of the source. It returns the first whose index is bad, or -1.
func (w *gathering[T]) run(places, steps [3]int, n int) int {
	i, at, from := places[0], places[1], places[2]
	bad := -1
	for k := range n {
		v := w.index[i]
		if uint64(v) < uint64(w.size) {
			w.dst[at] = w.src[from+int(v)*w.along]
		} else if bad < 0 {
			bad = k
		}
		i, at, from = i+steps[0], at+steps[1], from+steps[2]
	}
	return bad
}

// Scatter sets out[i,index[i,j,k],k] = src[i,j,k], here for dim 1 of three
// dimensions; of several writes to one place the last in row-major order
// stays. Src has out's dtype and is at least as large as index. The error is a *BadIndex.
func Scatter(out, src, index *tensor.Tensor, dim int) error {
	from, to, err := places(index, src, out, dim)
	if err != nil {
		return err
	}
	move(out, src, to, from)
	return nil
}

// ScatterAdd is Scatter with sums instead of writes, in row-major order; the
// dtype is not a half type. The error is a *BadIndex.
func ScatterAdd(out, src, index *tensor.Tensor, dim int) error {
	from, to, err := places(index, src, out, dim)
	if err != nil {
		return err
	}
	switch out.DType() {
	case tensor.Bool:
		addAt[uint8](out, src, to, from, func(a, b uint8) uint8 { return a | b })
	case tensor.U8:
		addAt(out, src, to, from, plus[uint8])
	case tensor.I8:
		addAt(out, src, to, from, plus[int8])
	case tensor.I16:
		addAt(out, src, to, from, plus[int16])
	case tensor.I32:
		addAt(out, src, to, from, plus[int32])
	case tensor.I64:
		addAt(out, src, to, from, plus[int64])
	case tensor.F32:
		addAt(out, src, to, from, plus[float32])
	case tensor.F64:
		addAt(out, src, to, from, plus[float64])
	case tensor.C64:
		addAt(out, src, to, from, plus[complex64])
	case tensor.C128:
		addAt(out, src, to, from, plus[complex128])
	default:
		panic("kernel.ScatterAdd of " + out.DType().String())
	}
	return nil
}

// places returns, for every element of index in row-major order, where that
// element is in plain and where the element that it names is in indexed.
func places(index, plain, indexed *tensor.Tensor, dim int) (at, named []int, err error) {
	if index.Len() == 0 { // then the ranks may differ
		return nil, nil, nil
	}
	index, plain, indexed = unsqueezed(index), unsqueezed(plain), unsqueezed(indexed)
	n := index.Len()
	at, named = make([]int, n), make([]int, n)
	shape, data := index.Shape(), tensor.Data[int64](index)
	size, along := indexed.Shape()[dim], indexed.Strides()[dim]
	p := &plan{shape: shape, steps: [][]int{index.Strides(), plain.Strides(), withoutDim(indexed.Strides(), dim)}, total: n}
	p.segments(1, 0, n, func(from, m, place int) { progress(at[from:from+m], place, p.step(1)) })
	p.segments(2, 0, n, func(from, m, place int) { progress(named[from:from+m], place, p.step(2)) })
	p.segments(0, 0, n, func(from, m, place int) {
		for i := range m {
			v := int(data[place+i*p.step(0)])
			if v < 0 || v >= size {
				err = &BadIndex{v, dim, size}
				continue
			}
			named[from+i] += v * along
		}
	})
	return at, named, err
}

// unsqueezed gives a 0-d tensor one dimension.
func unsqueezed(t *tensor.Tensor) *tensor.Tensor {
	if t.Dim() > 0 {
		return t
	}
	v, _ := t.View(1)
	return v
}

func withoutDim(strides []int, dim int) []int {
	out := append([]int{}, strides...)
	out[dim] = 0
	return out
}

func progress(dst []int, start, step int) {
	for i := range dst {
		dst[i] = start + i*step
	}
}

// move copies elements between storages as bits.
func move(dst, src *tensor.Tensor, to, from []int) {
	switch dst.DType().Size() {
	case 1:
		moveAt[uint8](dst, src, to, from)
	case 2:
		moveAt[uint16](dst, src, to, from)
	case 4:
		moveAt[int32](dst, src, to, from)
	case 8:
		moveAt[int64](dst, src, to, from)
	case 16:
		moveAt[complex128](dst, src, to, from)
	}
}

func moveAt[T tensor.Elem](dst, src *tensor.Tensor, to, from []int) {
	d, s := tensor.Data[T](dst), tensor.Data[T](src)
	from = from[:len(to)]
	for i, at := range to {
		d[at] = s[from[i]]
	}
}

type addable interface {
	uint8 | int8 | int16 | int32 | int64 | float32 | float64 | complex64 | complex128
}

func plus[T addable](a, b T) T { return a + b }

func addAt[T addable](dst, src *tensor.Tensor, to, from []int, add func(a, b T) T) {
	d, s := tensor.Data[T](dst), tensor.Data[T](src)
	from = from[:len(to)]
	for i, at := range to {
		d[at] = add(d[at], s[from[i]])
	}
}

// Cat sets out to the tensors one after the other along dim, converted to
// out's dtype.
func Cat(out *tensor.Tensor, tensors []*tensor.Tensor, dim int) {
	at := 0
	for _, t := range tensors {
		n := t.Shape()[dim]
		out.Narrow(dim, at, n, 1).CopyFrom(t)
		at += n
	}
}

// AnyZero reports whether an integer or bool element is zero.
func AnyZero(t *tensor.Tensor) bool {
	p := orderedPlan(t.Shape(), t.Strides())
	load := loader[int64](t)
	buf := make([]int64, min(blockSize, p.total))
	found := false
	p.segments(0, 0, p.total, func(_, n, at int) {
		for n > 0 && !found {
			m := min(n, len(buf))
			load(buf[:m], at, p.step(0))
			for _, v := range buf[:m] {
				found = found || v == 0
			}
			at, n = at+m*p.step(0), n-m
		}
	})
	return found
}
