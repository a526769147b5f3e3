package ops

import (
	"cmp"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// rowsInOrder sorts the rows along dim of tensors of one shape by the first of
// them, then the second.
func rowsInOrder(dim int, out ...*tensor.Tensor) []*tensor.Tensor {
	last := out[0].Dim() - 1
	n := out[0].Shape()[dim]
	rows, sorted := make([]*tensor.Tensor, len(out)), make([]*tensor.Tensor, len(out))
	for k, t := range out {
		rows[k] = t.Transpose(dim, last)
		sorted[k] = tensor.New(t.DType(), rows[k].Shape()...)
	}
	for from := 0; from < out[0].Len(); from += n {
		for to, i := range ascending(n, func(i, j int) int {
			return cmp.Or(compareAt(rows[0], from+i, from+j), compareAt(rows[len(rows)-1], from+i, from+j))
		}) {
			for k := range rows {
				moveElement(sorted[k], from+to, rows[k], from+i)
			}
		}
	}
	for k := range sorted {
		sorted[k] = sorted[k].Transpose(dim, last)
	}
	return sorted
}

// uniqueInOrder sorts distinct elements that are in no order, with their counts,
// and numbers the places that elements went to by the new order.
func uniqueInOrder(a op.Args, out []*tensor.Tensor) []*tensor.Tensor {
	if !a.Sig.Takes(arg.Sorted) || a.Bool(arg.Sorted) || a.Has(arg.Dim) {
		return out
	}
	values := out[0]
	order := ascending(values.Len(), func(i, j int) int { return compareAt(values, i, j) })
	sorted := make([]*tensor.Tensor, len(out))
	for k, t := range out {
		sorted[k] = tensor.New(t.DType(), t.Shape()...)
		if k == 1 && a.Bool(arg.ReturnInverse) {
			for i := range t.Len() {
				sorted[k].SetInt(i, int64(slices.Index(order, int(t.Int(i)))))
			}
			continue
		}
		for to, i := range order {
			moveElement(sorted[k], to, t, i)
		}
	}
	return sorted
}

// firstPlaces names for each element that was found the first place at which it
// is, if the place that was told has it: of equal elements PyTorch may tell any.
func firstPlaces(a op.Args, out []*tensor.Tensor) []*tensor.Tensor {
	x := a.Tensor(arg.Input)
	if x.Dim() == 0 {
		return out
	}
	rows := x.Transpose(dimOf(a), x.Dim()-1)
	n := sizeOf(rows, 1)
	places := tensor.New(tensor.I64, out[1].Shape()...)
	for i := range places.Len() {
		at := int(out[1].Int(i))
		places.SetInt(i, int64(at))
		if at < 0 || at >= n || compareAt(rows, i*n+at, i*n+at) != 0 {
			continue
		}
		for k := range at {
			if compareAt(rows, i*n+k, i*n+at) == 0 {
				places.SetInt(i, int64(k))
				break
			}
		}
	}
	return []*tensor.Tensor{out[0], places}
}

// ascending returns the numbers below n in an order.
func ascending(n int, compare func(i, j int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	return order
}

func compareAt(t *tensor.Tensor, i, j int) int {
	if t.DType().IsInt() {
		return cmp.Compare(t.Int(i), t.Int(j))
	}
	return cmp.Compare(t.Float(i), t.Float(j))
}

func moveElement(dst *tensor.Tensor, to int, src *tensor.Tensor, from int) {
	if src.DType().IsInt() {
		dst.SetInt(to, src.Int(from))
		return
	}
	dst.Set(to, src.At(from))
}
