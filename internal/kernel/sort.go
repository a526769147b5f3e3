package kernel

import (
	"cmp"
	"slices"
	"sort"

	"plumb/tensor"
)

const sortGrain = 256 // lines per goroutine at least

// Sort orders each line of in along dim, stably and with NaN as the largest
// value, and writes the first entries, as many as the results have, to values
// and their places to indices, an int64 tensor; values may be nil.
func Sort[T float32 | float64 | int64](values, indices, in *tensor.Tensor, dim int, descending bool) {
	indices, in = unsqueezed(indices), unsqueezed(in)
	if values != nil {
		values = unsqueezed(values)
	}
	into := values
	if values == nil {
		into = indices
	}
	load, store, places := loader[T](in), storeFunc[T](nil), tensor.Data[int64](indices)
	if values != nil {
		store = storer[T](values)
	}
	n, k := in.Shape()[dim], indices.Shape()[dim]
	if k == 0 {
		return
	}
	p := linePlan(dim, in, indices, into)
	Parallel(p.total, max(1, sortGrain/max(n, 1)), func(lo, hi int) {
		keys, order, sorted := make([]T, n), make([]int, n), make([]T, k)
		for line := lo; line < hi; line++ {
			load(keys, p.at(0, line), in.Strides()[dim])
			rank(order, keys, descending)
			at := p.at(1, line)
			for i, j := range order[:k] {
				places[at+i*indices.Strides()[dim]] = int64(j)
				sorted[i] = keys[j]
			}
			if store != nil {
				store(sorted, p.at(2, line), into.Strides()[dim])
			}
		}
	})
}

// linePlan iterates over the lines of tensors along dim, which agree in the
// other dimensions.
func linePlan(dim int, ts ...*tensor.Tensor) *plan {
	shape := slices.Delete(slices.Clone(ts[0].Shape()), dim, dim+1)
	var strides [][]int
	for _, t := range ts {
		strides = append(strides, slices.Delete(slices.Clone(t.Strides()), dim, dim+1))
	}
	return mergedPlan(shape, strides...)
}

// rank sets order to the places of the keys in sorted order; equal keys keep theirs.
func rank[T cmp.Ordered](order []int, keys []T, descending bool) {
	for i := range order {
		order[i] = i
	}
	compare := func(i, j int) int { return Compare(keys[i], keys[j]) }
	if descending {
		compare = func(i, j int) int { return Compare(keys[j], keys[i]) }
	}
	slices.SortStableFunc(order, compare)
}

// Compare orders numbers with NaN as the largest; NaNs are equal.
func Compare[T cmp.Ordered](a, b T) int {
	switch {
	case a < b, b != b && a == a:
		return -1
	case a > b, a != a && b == b:
		return 1
	}
	return 0
}

// Search sets out to the place in each sorted line of seq, its last dimension,
// at which to insert the value of the same line: before equal entries, or with
// right after them; NaN goes to the end. A seq of one dimension serves all values. Sorter, nil or of
// seq's shape, gives the order that sorts seq. Out is a contiguous int64 tensor
// of the shape of values.
func Search[T float32 | float64 | int64](out, seq, values, sorter *tensor.Tensor, right bool) {
	n, per := seq.Shape()[seq.Dim()-1], out.Len()
	s, order := lanesOf[T](seq), []int64(nil)
	if sorter != nil {
		order = tensor.Data[int64](sorter.Contiguous())
	}
	if seq.Dim() > 1 {
		per = values.Shape()[values.Dim()-1]
	}
	dst := tensor.Data[int64](out)
	for i, v := range lanesOf[T](values) {
		base := 0
		if seq.Dim() > 1 {
			base = i / per * n
		}
		dst[i] = int64(sort.Search(n, func(j int) bool {
			at := base + j
			if order != nil {
				at = base + int(order[at])
			}
			return s[at] > v || s[at] == v && !right
		}))
	}
}

// lanesOf returns the elements in row-major order.
func lanesOf[T Lane](t *tensor.Tensor) []T {
	out := make([]T, t.Len())
	load := loader[T](t)
	p := mergedPlan(t.Shape(), t.Strides())
	p.segments(0, 0, p.total, func(from, n, at int) { load(out[from:from+n], at, p.step(0)) })
	return out
}

// RowGroups are groups of equal rows: First names the first row of each in the order of the
// groups, Inverse the group of every row, and Counts the size of every group.
type RowGroups struct {
	First, Inverse, Counts []int
}

// UniqueRows groups the equal rows of x, which has rows of the given width;
// with sorted, groups are in lexicographic order of their rows, else only
// neighbours are grouped, in place. A NaN equals nothing.
func UniqueRows[T float32 | float64 | int64](x *tensor.Tensor, rows int, sorted bool) RowGroups {
	data := lanesOf[T](x)
	width := 0
	if rows > 0 {
		width = len(data) / rows
	}
	row := func(i int) []T { return data[i*width : (i+1)*width] }
	order := make([]int, rows)
	for i := range order {
		order[i] = i
	}
	if sorted {
		slices.SortStableFunc(order, func(i, j int) int { return slices.CompareFunc(row(i), row(j), Compare[T]) })
	}
	g := RowGroups{Inverse: make([]int, rows)}
	for at, i := range order {
		if at == 0 || !slices.Equal(row(order[at-1]), row(i)) {
			g.First, g.Counts = append(g.First, i), append(g.Counts, 0)
		}
		g.Inverse[i] = len(g.First) - 1
		g.Counts[len(g.First)-1]++
	}
	return g
}

// IsIn sets out, a contiguous bool tensor, to whether each element of x is one
// of test, or with invert whether it is not. NaN is no element of anything.
func IsIn[T float32 | float64 | int64](out, x, test *tensor.Tensor, invert bool) {
	set := map[T]bool{}
	for _, v := range lanesOf[T](test) {
		set[v] = true
	}
	dst := tensor.Data[uint8](out)
	for i, v := range lanesOf[T](x) {
		dst[i] = truth(set[v] != invert)
	}
}
