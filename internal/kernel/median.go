package kernel

import (
	"math"
	"math/bits"
	"slices"

	"plumb/tensor"
)

// Medians sets the contiguous values to the lower median of each row of in
// along dims, and indices, unless nil, to the place from which a stable sort
// takes it. A NaN is the median of its row, the first one; without says to
// leave them out unless all are. Without elements it is NaN.
func Medians[T realLane](values, indices, in *tensor.Tensor, dims []int, without bool) {
	r := rowsOf[T](in, dims)
	vs, is := make([]T, r.kept.total), make([]int64, r.kept.total)
	r.run(func() func(i int) {
		buf, order := r.buffer(), make([]int64, r.reduced.total)
		return func(i int) { vs[i], is[i] = median(r.row(buf, i), order, without) }
	})
	storer[T](values)(vs, 0, 1)
	if indices != nil {
		storer[int64](indices)(is, 0, 1)
	}
}

func median[T realLane](row []T, order []int64, without bool) (T, int64) {
	if len(row) == 0 {
		return T(math.NaN()), 0
	}
	first, n := -1, len(row)
	for i, v := range row {
		order[i] = int64(i)
		if v != v {
			n--
			if first < 0 {
				first = i
			}
		}
	}
	if first >= 0 && !without {
		return row[first], int64(first)
	}
	s := selection[T]{row, order}
	k := max(n-1, 0) / 2
	s.nth(k)
	at := order[k]
	return row[at], at
}

// selection orders places by the elements there, NaN last, equal ones by
// place. NaN are not ordered among themselves, so that where they end up
// depends on the steps: those of libstdc++, with which PyTorch is built.
type selection[T realLane] struct {
	row   []T
	order []int64
}

func (s *selection[T]) below(i, j int64) bool {
	a, b := s.row[i], s.row[j]
	return a < b || a == a && b != b || a == b && i < j
}

func (s *selection[T]) less(i, j int) bool { return s.below(s.order[i], s.order[j]) }

func (s *selection[T]) swap(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] }

// nth brings to place k what a sort would.
func (s *selection[T]) nth(k int) {
	lo, hi := 0, len(s.order)
	for depth := 2 * (bits.Len(uint(hi)) - 1); hi-lo > 3; depth-- {
		if depth == 0 {
			slices.SortFunc(s.order[lo:hi], s.compare)
			return
		}
		if cut := s.partition(lo, hi); cut <= k {
			lo = cut
		} else {
			hi = cut
		}
	}
	slices.SortStableFunc(s.order[lo:hi], s.compare)
}

func (s *selection[T]) compare(i, j int64) int {
	switch {
	case s.below(i, j):
		return -1
	case s.below(j, i):
		return 1
	}
	return 0
}

// partition splits at the median of three elements, which it brings to lo.
func (s *selection[T]) partition(lo, hi int) int {
	s.pivot(lo, lo+1, lo+(hi-lo)/2, hi-1)
	i, j := lo+1, hi
	for {
		for s.less(i, lo) {
			i++
		}
		j--
		for s.less(lo, j) {
			j--
		}
		if i >= j {
			return i
		}
		s.swap(i, j)
		i++
	}
}

// pivot brings the median of three places to another.
func (s *selection[T]) pivot(to, a, b, c int) {
	switch {
	case s.less(a, b) && s.less(b, c):
		s.swap(to, b)
	case s.less(a, b) && s.less(a, c):
		s.swap(to, c)
	case s.less(a, b):
		s.swap(to, a)
	case s.less(a, c):
		s.swap(to, a)
	case s.less(b, c):
		s.swap(to, c)
	default:
		s.swap(to, b)
	}
}
