package kernel

import (
	"slices"

	"plumb/tensor"
)

const (
	rowChunk    = 1 << 16 // reduced elements of one output that are summed in one go
	columnChunk = 1 << 10 // the same where outputs lie side by side in memory
	columnTile  = 512     // outputs that are accumulated side by side
)

// fold is a reduction: T are elements, A is what they accumulate in.
type fold[T Lane, A any] struct {
	zero A
	// row adds a run of elements, the first at reduced index first.
	row func(acc A, x []T, first int) A
	// each adds one element, at reduced index at, to each accumulator.
	each func(acc []A, x []T, at int)
	join func(a, b A) A
}

// reduction is how a tensor is walked: kept and reduced dimensions apart.
type reduction[T Lane] struct {
	kept, reduced *plan
	data          []T
	load          loadFunc[T]
}

func newReduction[T Lane](in *tensor.Tensor, dims []int) *reduction[T] {
	var keptShape, keptStrides, redShape, redStrides []int
	for d, n := range in.Shape() {
		if slices.Contains(dims, d) {
			redShape, redStrides = append(redShape, n), append(redStrides, in.Strides()[d])
		} else {
			keptShape, keptStrides = append(keptShape, n), append(keptStrides, in.Strides()[d])
		}
	}
	return &reduction[T]{
		kept:    mergedPlan(keptShape, keptStrides),
		reduced: orderedPlan(redShape, redStrides),
		data:    lanes[T](in),
		load:    loader[T](in),
	}
}

// get returns n elements from place at on, in buf unless they lie side by side.
func (r *reduction[T]) get(buf []T, at, step, n int) []T {
	if step == 1 && r.data != nil {
		return r.data[at : at+n]
	}
	r.load(buf[:n], at, step)
	return buf[:n]
}

// columns reports whether neighbouring outputs lie closer in memory than
// neighbouring elements of one output.
func (r *reduction[T]) columns() bool {
	return r.kept.run() >= 8 && r.kept.step(0) > 0 && r.kept.step(0) < r.reduced.step(0)
}

// run folds every output, in row-major order of the kept dimensions. Chunks
// are of a fixed size, so that the order of operations does not depend on threads.
func (f *fold[T, A]) run(in *tensor.Tensor, dims []int) []A {
	r := newReduction[T](in, dims)
	n := r.kept.total
	if n == 0 || r.reduced.total == 0 {
		return slices.Repeat([]A{f.zero}, n)
	}
	var parts []A
	if r.columns() {
		parts = f.byColumn(r)
	} else {
		parts = f.byRow(r)
	}
	out := parts[:n]
	for at := n; at < len(parts); at += n {
		for i := range out {
			out[i] = f.join(out[i], parts[at+i])
		}
	}
	return out
}

// byRow returns the parts [chunk][output], each folded along the reduced dimensions.
func (f *fold[T, A]) byRow(r *reduction[T]) []A {
	n, m := r.kept.total, r.reduced.total
	chunks := ceilDiv(m, rowChunk)
	parts := make([]A, chunks*n)
	Parallel(len(parts), max(1, mapGrain/min(m, rowChunk)), func(lo, hi int) {
		buf := make([]T, min(blockSize, m))
		for i := lo; i < hi; i++ {
			first := i / n * rowChunk
			parts[i] = f.foldRow(r, buf, r.kept.at(0, i%n), first, min(rowChunk, m-first))
		}
	})
	return parts
}

func (f *fold[T, A]) foldRow(r *reduction[T], buf []T, base, first, n int) A {
	acc := f.zero
	step := r.reduced.step(0)
	if len(r.reduced.shape) == 1 {
		return f.foldRun(r, buf, acc, base+first*step, step, first, n)
	}
	r.reduced.segments(0, first, n, func(from, n, at int) {
		acc = f.foldRun(r, buf, acc, base+at, step, first+from, n)
	})
	return acc
}

func (f *fold[T, A]) foldRun(r *reduction[T], buf []T, acc A, at, step, first, n int) A {
	if step == 1 && r.data != nil {
		return f.row(acc, r.data[at:at+n], first)
	}
	for n > 0 {
		m := min(n, len(buf))
		acc = f.row(acc, r.get(buf, at, step, m), first)
		at, first, n = at+m*step, first+m, n-m
	}
	return acc
}

// byColumn returns the parts [chunk][output], a tile of outputs at a time.
func (f *fold[T, A]) byColumn(r *reduction[T]) []A {
	n, m, run := r.kept.total, r.reduced.total, r.kept.run()
	tiles := ceilDiv(run, columnTile)
	chunks := ceilDiv(m, columnChunk)
	parts := make([]A, chunks*n)
	work := min(run, columnTile) * min(m, columnChunk)
	Parallel(n/run*tiles*chunks, max(1, mapGrain/work), func(lo, hi int) {
		buf := make([]T, min(run, columnTile))
		for i := lo; i < hi; i++ {
			chunk, tile, outer := i/(n/run*tiles), i%tiles, i/tiles%(n/run)
			at := outer*run + tile*columnTile
			acc := parts[chunk*n+at:][:min(columnTile, run-tile*columnTile)]
			for j := range acc {
				acc[j] = f.zero
			}
			f.foldColumns(r, buf, acc, r.kept.at(0, at), chunk*columnChunk, min(columnChunk, m-chunk*columnChunk))
		}
	})
	return parts
}

func (f *fold[T, A]) foldColumns(r *reduction[T], buf []T, acc []A, base, first, n int) {
	across, along := r.kept.step(0), r.reduced.step(0)
	r.reduced.segments(0, first, n, func(from, n, at int) {
		for j := range n {
			f.each(acc, r.get(buf, base+at+j*along, across, len(acc)), first+from+j)
		}
	})
}

// write stores the results of a fold in a contiguous out.
func write[D Lane, A any](out *tensor.Tensor, accs []A, finish func(A) D) {
	vals := make([]D, len(accs))
	for i, a := range accs {
		vals[i] = finish(a)
	}
	storer[D](out)(vals, 0, 1)
}

// Sum sets the contiguous out to the sums of in over dims, divided by divisor.
// T is the lane and A the accumulator; with float64 accumulators the sum of
// float32 lanes is rounded once.
func Sum[T realLane, A float64 | int64](out, in *tensor.Tensor, dims []int, divisor A) {
	f := fold[T, A]{row: sumRow[T, A], each: sumEach[T, A], join: func(a, b A) A { return a + b }}
	write(out, f.run(in, dims), func(a A) T { return T(a / divisor) })
}

func sumRow[T realLane, A float64 | int64](acc A, x []T, _ int) A {
	sum, x := vectorSum(x)
	acc += A(sum)
	for len(x) > 0 {
		block := x[:min(len(x), 256)]
		x = x[len(block):]
		var s0, s1, s2, s3 A
		for len(block) >= 4 {
			s0 += A(block[0])
			s1 += A(block[1])
			s2 += A(block[2])
			s3 += A(block[3])
			block = block[4:]
		}
		for _, v := range block {
			s0 += A(v)
		}
		acc += (s0 + s1) + (s2 + s3)
	}
	return acc
}

func sumEach[T realLane, A float64 | int64](acc []A, x []T, _ int) {
	x = x[:len(acc)]
	for i := range acc {
		acc[i] += A(x[i])
	}
}

// SumComplex is Sum for complex elements.
func SumComplex(out, in *tensor.Tensor, dims []int, divisor float64) {
	f := fold[complex128, complex128]{
		row: func(acc complex128, x []complex128, _ int) complex128 {
			for len(x) > 0 {
				block := x[:min(len(x), 256)]
				x = x[len(block):]
				var s complex128
				for _, v := range block {
					s += v
				}
				acc += s
			}
			return acc
		},
		each: func(acc, x []complex128, _ int) {
			x = x[:len(acc)]
			for i := range acc {
				acc[i] += x[i]
			}
		},
		join: func(a, b complex128) complex128 { return a + b },
	}
	write(out, f.run(in, dims), func(a complex128) complex128 {
		return complex(real(a)/divisor, imag(a)/divisor)
	})
}

// best is the largest element so far and its reduced index; index -1 means none.
type best[T realLane] struct {
	value T
	index int64
}

// Max sets the contiguous values to the largest elements of in over dims. A
// NaN is larger than everything. Indices, unless nil, receives the first index
// along the only reduced dimension at which the value occurs.
func Max[T realLane](values, indices, in *tensor.Tensor, dims []int) {
	f := fold[T, best[T]]{
		zero: best[T]{index: -1},
		row:  maxRow[T],
		each: func(acc []best[T], x []T, at int) {
			x = x[:len(acc)]
			for i := range acc {
				if acc[i].loses(x[i]) {
					acc[i] = best[T]{x[i], int64(at)}
				}
			}
		},
		join: func(a, b best[T]) best[T] {
			if b.index >= 0 && a.loses(b.value) {
				return b
			}
			return a
		},
	}
	accs := f.run(in, dims)
	write(values, accs, func(b best[T]) T { return b.value })
	if indices != nil {
		write(indices, accs, func(b best[T]) int64 { return b.index })
	}
}

func (b *best[T]) loses(v T) bool {
	return v > b.value || b.index < 0 || v != v && b.value == b.value
}

func maxRow[T realLane](acc best[T], x []T, first int) best[T] {
	for i, v := range x {
		if v > acc.value || v != v || acc.index < 0 {
			if acc.loses(v) {
				acc = best[T]{v, int64(first + i)}
			}
		}
	}
	return acc
}
