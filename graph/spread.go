package graph

import (
	"slices"

	"plumb/tensor"
)

// spread says how an argument of an elementwise call lies under the result: by
// dimension of the result, in the order of its memory, the outermost first,
// the size and the argument's stride; 0 where it is repeated.
type spread struct {
	sizes, strides []int
}

// spreadUnder returns how v lies under a dense result; nil where their shapes
// do not broadcast.
func spreadUnder(v, result *Value) *spread {
	shape, under := result.Shape(), v.Shape()
	lead := len(shape) - len(under)
	if lead < 0 {
		return nil
	}
	var dims []int
	for i, n := range shape {
		if n != 1 {
			dims = append(dims, i)
		}
		if i >= lead && under[i-lead] != n && under[i-lead] != 1 {
			return nil
		}
	}
	slices.SortStableFunc(dims, func(a, b int) int { return result.Strides()[b] - result.Strides()[a] })
	s := &spread{}
	for _, d := range dims {
		stride := 0
		if d >= lead && under[d-lead] != 1 {
			stride = v.Strides()[d-lead]
		}
		if stride < 0 {
			return nil
		}
		s.add(shape[d], stride)
	}
	return s
}

// add appends a dimension, to the last one where both are one run.
func (s *spread) add(size, stride int) {
	if i := len(s.sizes) - 1; i >= 0 && s.strides[i] == size*stride {
		s.sizes[i], s.strides[i] = s.sizes[i]*size, stride
		return
	}
	s.sizes, s.strides = append(s.sizes, size), append(s.strides, stride)
}

// flat reports whether the argument lies as the result does.
func (s *spread) flat() bool { return len(s.sizes) == 1 && s.strides[0] == 1 }

// words are the dtypes that stand for all of one size.
var words = map[int]tensor.DType{1: tensor.U8, 2: tensor.I16, 4: tensor.I32, 8: tensor.I64, 16: tensor.C128}

// write sets a block, elements from position at of the result on, to those of
// the argument.
func (s *spread) write(to, from *tensor.Tensor, at int) {
	x, y := asWords(to), asWords(from)
	switch to.DType().Size() {
	case 1:
		spreadWords(s, tensor.Data[uint8](x), tensor.Data[uint8](y), at)
	case 2:
		spreadWords(s, tensor.Data[int16](x), tensor.Data[int16](y), at)
	case 4:
		spreadWords(s, tensor.Data[int32](x), tensor.Data[int32](y), at)
	case 8:
		spreadWords(s, tensor.Data[int64](x), tensor.Data[int64](y), at)
	default:
		spreadWords(s, tensor.Data[complex128](x), tensor.Data[complex128](y), at)
	}
}

func asWords(t *tensor.Tensor) *tensor.Tensor {
	u, err := tensor.FromBytes(words[t.DType().Size()], t.Shape(), t.Strides(), t.Offset(), t.Storage())
	if err != nil {
		panic("graph: a block: " + err.Error())
	}
	return u
}

func spreadWords[T any](s *spread, to, from []T, at int) {
	last := len(s.sizes) - 1
	size, stride := s.sizes[last], s.strides[last]
	index, base := s.locate(at / size)
	for j := at % size; len(to) > 0; j = 0 {
		n := min(size-j, len(to))
		run := from[base+j*stride:]
		switch stride {
		case 0:
			x := run[0]
			for i := range to[:n] {
				to[i] = x
			}
		case 1:
			copy(to[:n], run)
		default:
			for i := range to[:n] {
				to[i] = run[i*stride]
			}
		}
		to = to[n:]
		base = s.step(index, base)
	}
}

// locate returns the index of a run and its place in the argument.
func (s *spread) locate(run int) (index []int, base int) {
	index = make([]int, len(s.sizes)-1)
	for i := len(index) - 1; i >= 0; i-- {
		index[i] = run % s.sizes[i]
		run /= s.sizes[i]
		base += index[i] * s.strides[i]
	}
	return index, base
}

// step goes on to the next run.
func (s *spread) step(index []int, base int) int {
	for i := len(index) - 1; i >= 0; i-- {
		index[i]++
		base += s.strides[i]
		if index[i] < s.sizes[i] {
			return base
		}
		base -= index[i] * s.strides[i]
		index[i] = 0
	}
	return base
}
