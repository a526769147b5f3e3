package kernel

import (
	"math"
	"sync/atomic"

	"plumb/tensor"
)

// Selection names elements of a tensor: the element at a position of View's
// shape is that of View plus an offset in the storage. Offsets is an int64
// tensor of View's shape, usually an expanded one.
type Selection struct {
	View, Offsets *tensor.Tensor
}

// Offsets sets each element of sum, or adds to it, the offset in t's storage of
// what the index at its place names along dimension dim; a negative index
// counts from the end. The error is a *BadIndex.
func Offsets(sum, index []int64, t *tensor.Tensor, dim int, add bool) error {
	size, step := int64(t.Shape()[dim]), int64(t.Strides()[dim])
	var bad atomic.Int64
	bad.Store(int64(len(sum)))
	Parallel(len(sum), mapGrain, func(lo, hi int) {
		to := sum[lo:hi]
		if !add {
			clear(to)
		}
		for i, v := range index[lo:hi] {
			if v < 0 {
				v += size
			}
			if uint64(v) >= uint64(size) {
				lower(&bad, int64(lo+i))
				return
			}
			to[i] += v * step
		}
	})
	if at := int(bad.Load()); at < len(sum) {
		return &BadIndex{int(index[at]), dim, int(size)}
	}
	return nil
}

// Take sets out, of View's shape and dtype, to the selected elements.
func (s Selection) Take(out *tensor.Tensor) {
	switch out.DType().Size() {
	case 1:
		take[uint8](s, out)
	case 2:
		take[uint16](s, out)
	case 4:
		take[int32](s, out)
	case 8:
		take[int64](s, out)
	case 16:
		take[complex128](s, out)
	}
}

// Put sets the selected elements from src, of View's shape and dtype; of
// several writes to one element the last in row-major order stays.
func (s Selection) Put(src *tensor.Tensor) {
	switch src.DType().Size() {
	case 1:
		put[uint8](s, src)
	case 2:
		put[uint16](s, src)
	case 4:
		put[int32](s, src)
	case 8:
		put[int64](s, src)
	case 16:
		put[complex128](s, src)
	}
}

// Reduction names how several values become one.
type Reduction string

// The reductions. Bool is added by or and multiplied by and.
const (
	ReduceSum  Reduction = "sum"
	ReduceProd Reduction = "prod"
	ReduceMax  Reduction = "amax" // NaN is larger than everything
	ReduceMin  Reduction = "amin" // NaN is smaller than everything
)

// Combine reduces src, of View's shape and dtype, into the selected elements in
// row-major order. The dtype is float32, float64, int64 or complex128; complex
// numbers have no order.
func (s Selection) Combine(src *tensor.Tensor, r Reduction) {
	switch src.DType() {
	case tensor.F32:
		combine(s, src, realReduction[float32](r))
	case tensor.F64:
		combine(s, src, realReduction[float64](r))
	case tensor.I64:
		combine(s, src, realReduction[int64](r))
	case tensor.C128:
		combine(s, src, complexReduction(r))
	default:
		panic("kernel.Combine of " + src.DType().String())
	}
}

// Identity returns the value that a reduction in dtype d starts from.
func (r Reduction) Identity(d tensor.DType) *tensor.Tensor {
	t := tensor.New(d)
	switch {
	case r == ReduceProd:
		t.Set(0, 1)
	case r == ReduceMax && d.IsFloat():
		t.Set(0, complex(math.Inf(-1), 0))
	case r == ReduceMin && d.IsFloat():
		t.Set(0, complex(math.Inf(1), 0))
	case r == ReduceMax && d.IsInt():
		t.SetInt(0, math.MinInt64)
	case r == ReduceMin && d.IsInt():
		t.SetInt(0, math.MaxInt64)
	}
	return t
}

func realReduction[T realLane](r Reduction) func(a, b T) T {
	switch r {
	case ReduceProd:
		return func(a, b T) T { return a * b }
	case ReduceMax:
		return func(a, b T) T { return max(a, b) }
	case ReduceMin:
		return func(a, b T) T { return min(a, b) }
	}
	return func(a, b T) T { return a + b }
}

func complexReduction(r Reduction) func(a, b complex128) complex128 {
	if r == ReduceProd {
		return func(a, b complex128) complex128 { return a * b }
	}
	return func(a, b complex128) complex128 { return a + b }
}

func take[T tensor.Elem](s Selection, out *tensor.Tensor) {
	dst, src, off := tensor.Data[T](out), tensor.Data[T](s.View), tensor.Data[int64](s.Offsets)
	s.runs(out, func(p *plan, plain, selected, o int) {
		if p.step(2) != 0 {
			Parallel(p.run(), mapGrain, func(lo, hi int) {
				takeRun(dst, src, off, [3]int{plain + lo*p.step(0), selected + lo*p.step(1), o + lo*p.step(2)}, [3]int{p.step(0), p.step(1), p.step(2)}, hi-lo)
			})
			return
		}
		at, from := plain, selected+int(off[o])
		if p.step(0) == 1 && p.step(1) == 1 {
			copy(dst[at:at+p.run()], src[from:])
			return
		}
		for range p.run() {
			dst[at] = src[from]
			at, from = at+p.step(0), from+p.step(1)
		}
	})
}

// takeRun copies n elements; places and steps are of the result, of the
// element with offset 0, and of the offset.
func takeRun[T tensor.Elem](dst, src []T, off []int64, places, steps [3]int, n int) {
	at, from, o := places[0], places[1], places[2]
	if steps == [3]int{1, 0, 1} {
		to := dst[at:][:n]
		for i, v := range off[o:][:n] {
			to[i] = src[from+int(v)]
		}
		return
	}
	for range n {
		dst[at] = src[from+int(off[o])]
		at, from, o = at+steps[0], from+steps[1], o+steps[2]
	}
}

func put[T tensor.Elem](s Selection, t *tensor.Tensor) {
	dst, src := tensor.Data[T](s.View), tensor.Data[T](t)
	s.pairs(t, func(from, at, n, fromStep, step int) {
		for range n {
			dst[at] = src[from]
			at, from = at+step, from+fromStep
		}
	})
}

func combine[T tensor.Elem](s Selection, t *tensor.Tensor, f func(a, b T) T) {
	dst, src := tensor.Data[T](s.View), tensor.Data[T](t)
	s.pairs(t, func(from, at, n, fromStep, step int) {
		for range n {
			dst[at] = f(dst[at], src[from])
			at, from = at+step, from+fromStep
		}
	})
}

// pairs calls f, in row-major order, for the places in t and of the selected
// elements, for runs of n elements at once where one offset serves them.
func (s Selection) pairs(t *tensor.Tensor, f func(plain, selected, n, plainStep, selectedStep int)) {
	off := tensor.Data[int64](s.Offsets)
	s.runs(t, func(p *plan, plain, selected, o int) {
		if p.step(2) == 0 {
			f(plain, selected+int(off[o]), p.run(), p.step(0), p.step(1))
			return
		}
		for i := range p.run() {
			f(plain+i*p.step(0), selected+i*p.step(1)+int(off[o+i*p.step(2)]), 1, 1, 1)
		}
	})
}

// runs calls f, in row-major order, for each innermost run of t, with the
// places of its first element in t, in the view and in the offsets.
func (s Selection) runs(t *tensor.Tensor, f func(p *plan, plain, selected, o int)) {
	p := mergedPlan(t.Shape(), t.Strides(), s.View.Strides(), s.Offsets.Strides())
	if p.total == 0 {
		return
	}
	index := make([]int, len(p.shape)-1)
	for range p.total / p.run() {
		plain, selected, o := 0, 0, 0
		for d, i := range index {
			plain, selected, o = plain+i*p.steps[0][d], selected+i*p.steps[1][d], o+i*p.steps[2][d]
		}
		f(p, plain, selected, o)
		advance(index, p.shape)
	}
}

// advance steps an index over the shape in row-major order.
func advance(index, shape []int) {
	for d := len(index) - 1; d >= 0; d-- {
		if index[d]++; index[d] < shape[d] {
			return
		}
		index[d] = 0
	}
}

// TruePlaces returns the row-major positions of the elements of a bool tensor
// that hold.
func TruePlaces(mask *tensor.Tensor) []int {
	m := mask.Contiguous()
	var places []int
	for i, v := range tensor.Data[uint8](m)[:m.Len()] {
		if v != 0 {
			places = append(places, i)
		}
	}
	return places
}

// CountTrue returns how many elements of a bool tensor hold.
func CountTrue(mask *tensor.Tensor) int {
	m, n := mask.Contiguous(), 0
	for _, v := range tensor.Data[uint8](m)[:m.Len()] {
		n += int(v)
	}
	return n
}

// Coordinates sets column d of out, an int64 matrix, to the index in dimension
// d of each row-major place of the shape.
func Coordinates(out *tensor.Tensor, places, shape []int) {
	data, row, column := tensor.Data[int64](out), out.Strides()[0], out.Strides()[1]
	for i, at := range places {
		for d := len(shape) - 1; d >= 0; d-- {
			data[i*row+d*column] = int64(at % shape[d])
			at /= shape[d]
		}
	}
}

// Triangle clears the elements of every matrix, the last two dimensions of
// out, above the given diagonal, or with upper those below it. Out is contiguous.
func Triangle(out *tensor.Tensor, diagonal int, upper bool) {
	rows, cols := out.Shape()[out.Dim()-2], out.Shape()[out.Dim()-1]
	data, size := out.Storage(), out.DType().Size()
	for i := range out.Len() / max(cols, 1) {
		edge := min(max(i%rows+diagonal, -1), cols)
		from, to := i*cols+min(edge+1, cols), (i+1)*cols
		if upper {
			from, to = i*cols, i*cols+max(edge, 0)
		}
		clear(data[(out.Offset()+from)*size : (out.Offset()+to)*size])
	}
}

// BagWinners sets out, of one row for each bag, to the number of the row of
// rows, width columns each, that has the largest element of its bag in the
// column; -1 for none. Row i belongs to the bag of[i] and takes part unless
// padded. The first of equals wins, and so does a leading NaN.
func BagWinners[T float32 | float64](out []int64, rows []T, of []int64, padded []bool, width int) {
	for i := range out {
		out[i] = -1
	}
	for i, bag := range of {
		if padded[i] {
			continue
		}
		best := out[int(bag)*width : (int(bag)+1)*width]
		for j := range best {
			if best[j] < 0 || rows[i*width+j] > rows[int(best[j])*width+j] {
				best[j] = int64(i)
			}
		}
	}
}
