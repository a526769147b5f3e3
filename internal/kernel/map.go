package kernel

import (
	"slices"

	"plumb/tensor"
)

const (
	blockSize = 1024  // elements that are converted at once
	longRun   = 64    // shorter innermost runs are gathered into blocks
	mapGrain  = 16384 // elements below which a goroutine does not pay
)

// Map1 sets out = f(a) element by element; a is broadcast to out's shape. F
// computes a block: its slices have equal lengths and do not overlap. Elements
// are converted to and from the lane types D and T as loaders and storers do.
func Map1[D, T Lane](out, a *tensor.Tensor, f func(dst []D, a []T)) {
	if dst, xs := few[D](out, out), few[T](a, out); dst != nil && xs != nil {
		f(dst, xs)
		return
	}
	p, ts := mapPlan(out, a)
	w, ra := newWriter[D](p, out), newReader[T](p, 1, ts[0])
	Parallel(p.total, mapGrain, func(lo, hi int) {
		w, ra := w, ra
		for lo < hi {
			n := p.block(lo, hi)
			f(w.block(lo, n), ra.block(lo, n))
			w.flush(lo, n)
			lo += n
		}
	})
}

// Map2 is Map1 for two operands.
func Map2[D, T Lane](out, a, b *tensor.Tensor, f func(dst []D, a, b []T)) {
	if dst, xs, ys := few[D](out, out), few[T](a, out), few[T](b, out); dst != nil && xs != nil && ys != nil {
		f(dst, xs, ys)
		return
	}
	p, ts := mapPlan(out, a, b)
	w, ra, rb := newWriter[D](p, out), newReader[T](p, 1, ts[0]), newReader[T](p, 2, ts[1])
	Parallel(p.total, mapGrain, func(lo, hi int) {
		w, ra, rb := w, ra, rb
		for lo < hi {
			n := p.block(lo, hi)
			f(w.block(lo, n), ra.block(lo, n), rb.block(lo, n))
			w.flush(lo, n)
			lo += n
		}
	})
}

// Map3 is Map1 for a truth value and two operands.
func Map3[D, T Lane](out, c, a, b *tensor.Tensor, f func(dst []D, c []uint8, a, b []T)) {
	p, ts := mapPlan(out, c, a, b)
	w, rc := newWriter[D](p, out), newReader[uint8](p, 1, ts[0])
	ra, rb := newReader[T](p, 2, ts[1]), newReader[T](p, 3, ts[2])
	Parallel(p.total, mapGrain, func(lo, hi int) {
		w, rc, ra, rb := w, rc, ra, rb
		for lo < hi {
			n := p.block(lo, hi)
			f(w.block(lo, n), rc.block(lo, n), ra.block(lo, n), rb.block(lo, n))
			w.flush(lo, n)
			lo += n
		}
	})
}

// few returns the elements of a tensor of out's shape where they make up one block as
// they are; else nil. It spares small calls the making of a plan.
func few[T Lane](t, out *tensor.Tensor) []T {
	n := t.Len()
	if n == 0 || n > blockSize || !t.IsContiguous() || !slices.Equal(t.Shape(), out.Shape()) {
		return nil
	}
	xs := lanes[T](t)
	if xs == nil {
		return nil
	}
	return xs[:n:n]
}

// mapPlan broadcasts the operands to out's shape and plans the iteration in
// the order of out's memory.
func mapPlan(out *tensor.Tensor, operands ...*tensor.Tensor) (*plan, []*tensor.Tensor) {
	strides := [][]int{out.Strides()}
	for i, t := range operands {
		x, err := t.Expand(out.Shape()...)
		if err != nil {
			panic("kernel: " + err.Error())
		}
		operands[i] = x
		strides = append(strides, x.Strides())
	}
	return orderedPlan(out.Shape(), strides...), operands
}

// block returns how many elements from lo on to process at once: a part of an
// innermost run when runs are long, else a fixed number.
func (p *plan) block(lo, hi int) int {
	n := min(blockSize, hi-lo)
	if run := p.run(); run >= longRun {
		n = min(n, run-lo%run)
	}
	return n
}

// access is how one operand of a plan is reached.
type access struct {
	p        *plan
	k        int
	linear   bool // element i is at place i
	unit     bool // blocks lie within runs, and those are contiguous
	constant bool
}

func (p *plan) access(k int) access {
	return access{p: p, k: k, linear: p.linear(k), unit: p.step(k) == 1 && p.run() >= longRun, constant: p.constant(k)}
}

// place returns where a block that needs no copy begins.
func (a *access) place(lo int) (at int, ok bool) {
	switch {
	case a.linear:
		return lo, true
	case a.unit:
		return a.p.at(a.k, lo), true
	}
	return 0, false
}

// reader yields an operand's blocks: slices of its storage where that is
// possible, copies in buf otherwise.
type reader[T Lane] struct {
	access
	data []T
	load loadFunc[T]
	buf  []T
	full bool // buf holds the constant
}

func newReader[T Lane](p *plan, k int, t *tensor.Tensor) reader[T] {
	r := reader[T]{access: p.access(k), data: lanes[T](t)}
	if _, ok := r.place(0); !ok || r.data == nil {
		r.load = loader[T](t)
	}
	return r
}

func (r *reader[T]) block(lo, n int) []T {
	if r.full {
		return r.buf[:n]
	}
	at, whole := r.place(lo)
	if whole && r.data != nil {
		return r.data[at : at+n]
	}
	if r.buf == nil {
		r.buf = make([]T, min(blockSize, r.p.total))
	}
	switch {
	case r.constant:
		r.load(r.buf, 0, 0)
		r.full = true
	case whole:
		r.load(r.buf[:n], at, 1)
	default:
		step := r.p.step(r.k)
		r.p.segments(r.k, lo, n, func(from, n, at int) { r.load(r.buf[from:from+n], at, step) })
	}
	return r.buf[:n]
}

// writer takes a result's blocks, like reader.
type writer[T Lane] struct {
	access
	data  []T
	store storeFunc[T]
	buf   []T
}

func newWriter[T Lane](p *plan, t *tensor.Tensor) writer[T] {
	w := writer[T]{access: p.access(0), data: lanes[T](t)}
	if _, ok := w.place(0); !ok || w.data == nil {
		w.store = storer[T](t)
	}
	return w
}

// block returns the slice into which to write the elements from lo on.
func (w *writer[T]) block(lo, n int) []T {
	if at, ok := w.place(lo); ok && w.data != nil {
		return w.data[at : at+n]
	}
	if w.buf == nil {
		w.buf = make([]T, min(blockSize, w.p.total))
	}
	return w.buf[:n]
}

// flush carries the block that was written last to the result.
func (w *writer[T]) flush(lo, n int) {
	at, whole := w.place(lo)
	switch {
	case whole && w.data != nil:
	case whole:
		w.store(w.buf[:n], at, 1)
	default:
		step := w.p.step(0)
		w.p.segments(0, lo, n, func(from, n, at int) { w.store(w.buf[from:from+n], at, step) })
	}
}
