package ops

import (
	"iter"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// What follows the literals of this package use, for those of other modules.

// WrapDim returns the dimension that a possibly negative dim names among n; a 0-d
// tensor has one dimension in this respect. The error is PyTorch's IndexError.
func WrapDim(dim, n int) (int, error) { return wrapDim(dim, n) }

// BroadcastShape returns the shape to which tensors broadcast. The error is
// PyTorch's RuntimeError.
func BroadcastShape(vs ...op.Value) ([]int, error) { return broadcastShape(vs...) }

// ResultStrides returns the strides that PyTorch gives the result of an elementwise
// function of vs, for the Meta of an Infer; nil for contiguous.
func ResultStrides(shape []int, vs ...op.Value) []int { return iteratorStrides(shape, vs...) }

// ShardEachAxis is the SBP of an elementwise operator: the broadcast shape of all
// tensors is split along each axis.
func ShardEachAxis(a op.Args) []op.Sharding { return pointwise(a) }

// ShardAxis is the signature that splits the named tensors along an axis each, and
// has the results as out says.
func ShardAxis(axes map[op.TensorArg]int, out ...op.SBP) op.Sharding { return splits(axes, out...) }

// Rows walks the rows of a tensor along a dimension, which share its storage, in
// row-major order of the other dimensions. The tensors have equally many of these.
func Rows(dim int, ts ...*tensor.Tensor) iter.Seq[[]*tensor.Tensor] {
	return func(yield func([]*tensor.Tensor) bool) {
		others := slices.Delete(slices.Clone(ts[0].Shape()), dim, dim+1)
		index := make([]int, len(others))
		for range tensor.NumElements(others) {
			rows := slices.Clone(ts)
			for i, t := range rows {
				for d := len(index) - 1; d >= 0; d-- {
					at := d
					if d >= dim {
						at++
					}
					t = t.Select(at, index[d])
				}
				rows[i] = t
			}
			if !yield(rows) {
				return
			}
			for d := len(index) - 1; d >= 0; d-- {
				if index[d]++; index[d] < others[d] {
					break
				}
				index[d] = 0
			}
		}
	}
}
