package kernel

// Stack is a strided view of a batch of matrices; Batch holds one stride per batch dimension.
type Stack[T any] struct {
	Mat[T]
	Batch []int
}

// MatMul sets c, contiguous matrices of m×n in a batch of the given shape, to the products of a, m×k, and b, k×n.
func MatMul[T gemmElement](batch []int, m, n, k int, a, b Stack[T], c []T) {
	MatMulThen(batch, m, n, k, a, b, c, nil)
}

// MatMulThen is MatMul that calls done, where it is not nil, with each range of c once it is final, together all of it.
// Calls may be concurrent.
func MatMulThen[T gemmElement](batch []int, m, n, k int, a, b Stack[T], c []T, done func(lo, hi int)) {
	count := 1
	for _, d := range batch {
		count *= d
	}
	if count*m*n == 0 {
		return
	}
	grain := int(ceilDiv(1<<18, max(2*m*n*k, 1)))
	Parallel(count, grain, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			GemmThen(m, n, k, a.matrix(batch, i), b.matrix(batch, i), Mat[T]{c[i*m*n:], n, 1}, false, elementsOf(done, i*m, n))
		}
	})
}

// elementsOf returns what tells done of elements, told of rows of n elements that follow the first rows.
func elementsOf(done func(lo, hi int), first, n int) func(lo, hi int) {
	if done == nil {
		return nil
	}
	return func(lo, hi int) { done((first+lo)*n, (first+hi)*n) }
}

// matrix returns matrix i of a batch of the given shape, counted in row-major order.
func (s *Stack[T]) matrix(batch []int, i int) Mat[T] {
	at := 0
	for d := len(batch) - 1; d >= 0; d-- {
		at += i % batch[d] * s.Batch[d]
		i /= batch[d]
	}
	return Mat[T]{s.Data[at:], s.RS, s.CS}
}
