package kernel

import (
	"fmt"
	"sync"
)

//go:generate go run -C ../asmgen ./gemm -out ../kernel/gemm_amd64.s -stubs ../kernel/gemm_stub_amd64.go -pkg kernel

// The blocking of the matrix product: a packed block of A stays in the second cache level, one of B in the third, a panel of each in the first.
// An element of C is the sum of its k blocks in ascending order, each summed in ascending order from zero: maxKC is part of the result, the other constants are not.
const (
	tileRows = 6
	maxKC    = 256
	maxMC    = 192
	maxNC    = 1024

	parallelFlop = 8e6
)

type gemmReal interface {
	float32 | float64 | int8 | uint8 | int16 | int32 | int64
}

type gemmElement interface {
	gemmReal | complex64 | complex128
}

// Mat is a strided view of a matrix: element (i, j) is Data[i*RS+j*CS]. Strides are not negative.
type Mat[T any] struct {
	Data   []T
	RS, CS int
}

// BPacker is a k×n matrix that GemmPack reads by segments of rows, so that a convolution need not store the patches it multiplies.
type BPacker[T any] interface {
	// Row writes elements (p, j) to (p, j+len(dst)-1) into dst.
	// Calls may be concurrent, and may ask for the same segment more than once.
	Row(dst []T, p, j int)
}

// Gemm computes C = A·B, or C += A·B when accumulate is set, where A is m×k, B is k×n and C is m×n.
// A and B may overlap and have zero strides; the elements of C are distinct and in neither.
//
// NaN and Inf propagate. The bits of an element depend on its row of A, its column of B, k and the processor, and on nothing else: neither m, n, the strides nor the number of threads.
// Gemm panics if a matrix does not lie within its Data.
func Gemm[T float32 | float64](m, n, k int, a, b, c Mat[T], accumulate bool) {
	GemmAny(m, n, k, a, b, c, accumulate)
}

// GemmAny is Gemm for every element type. Integers wrap around.
// Complex products are computed in float64 and rounded once to the element type.
func GemmAny[T gemmElement](m, n, k int, a, b, c Mat[T], accumulate bool) {
	engineOf[T]().gemm(m, n, k, a, b, c, accumulate, nil)
}

// GemmThen is GemmAny that calls done, where it is not nil, with each range of rows of C once they are final, together all of them.
// Calls may be concurrent.
func GemmThen[T gemmElement](m, n, k int, a, b, c Mat[T], accumulate bool, done func(lo, hi int)) {
	engineOf[T]().gemm(m, n, k, a, b, c, accumulate, done)
}

// GemmPack is GemmAny with a B that is produced on demand, about once per element of B and thread.
func GemmPack[T gemmElement](m, n, k int, a Mat[T], b BPacker[T], c Mat[T], accumulate bool) {
	engineOf[T]().gemmPack(m, n, k, a, b, c, accumulate)
}

func (m Mat[T]) transposed() Mat[T] {
	return Mat[T]{m.Data, m.CS, m.RS}
}

func (m Mat[T]) check(name string, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if m.RS < 0 || m.CS < 0 || (rows-1)*m.RS+(cols-1)*m.CS >= len(m.Data) {
		panic(fmt.Sprintf("kernel: %s is %d×%d with strides (%d, %d) but holds %d elements", name, rows, cols, m.RS, m.CS, len(m.Data)))
	}
}

type product[T gemmElement] struct {
	m, n, k    int
	a, b       Mat[T]
	rows       BPacker[T] // instead of b when not nil
	c          Mat[T]
	accumulate bool
	done       func(lo, hi int) // told of rows that are final; may be nil
}

// An engine multiplies one element type by tiles of tileRows rows and width columns.
type engine[T gemmElement] struct {
	width int
	micro func(*tile[T])
	pool  sync.Pool
}

// A tile is rows×cols elements of C at c, to be set or increased by the product of two packed panels: a holds k columns of tileRows elements, b holds k rows of width elements.
type tile[T gemmElement] struct {
	k, width           int
	a, b, c            []T
	rs, cs, rows, cols int
	add                bool
}

type scratch[T gemmElement] struct {
	a, b, row []T
	tile      tile[T]
}

var engines = []any{
	newEngine(16, micro32()),
	newEngine(8, micro64()),
	newEngine(8, realMicro[int8]),
	newEngine(8, realMicro[uint8]),
	newEngine(8, realMicro[int16]),
	newEngine(8, realMicro[int32]),
	newEngine(8, realMicro[int64]),
	newEngine(4, complexMicro[complex64]),
	newEngine(4, complexMicro[complex128]),
}

func newEngine[T gemmElement](width int, micro func(*tile[T])) *engine[T] {
	return &engine[T]{width: width, micro: micro, pool: sync.Pool{New: func() any { return new(scratch[T]) }}}
}

func engineOf[T gemmElement]() *engine[T] {
	for _, e := range engines {
		if e, ok := e.(*engine[T]); ok {
			return e
		}
	}
	panic("kernel: no matrix product for this type")
}

func (e *engine[T]) gemm(m, n, k int, a, b, c Mat[T], accumulate bool, done func(lo, hi int)) {
	a.check("A", m, k)
	b.check("B", k, n)
	c.check("C", m, n)
	if c.RS == 1 && (c.CS != 1 || n == 1) {
		if done != nil {
			defer done(0, m)
			done = nil
		}
		m, n, a, b, c = n, m, b.transposed(), a.transposed(), c.transposed()
	}
	e.multiply(&product[T]{m: m, n: n, k: k, a: a, b: b, c: c, accumulate: accumulate, done: done})
}

func (e *engine[T]) gemmPack(m, n, k int, a Mat[T], b BPacker[T], c Mat[T], accumulate bool) {
	a.check("A", m, k)
	c.check("C", m, n)
	e.multiply(&product[T]{m: m, n: n, k: k, a: a, rows: b, c: c, accumulate: accumulate})
}

func (e *engine[T]) multiply(p *product[T]) {
	switch {
	case p.m <= 0 || p.n <= 0:
	case p.k <= 0:
		p.clear()
		p.rest(false)
	case 2*float64(p.m)*float64(p.n)*float64(p.k) < parallelFlop || Threads() == 1:
		e.block(p, 0, p.m, 0, p.n)
		p.rest(true)
	default:
		e.parallel(*p)
	}
}

// rest tells that all rows are final, unless block did because it computed whole rows.
func (p *product[T]) rest(rows bool) {
	if p.done != nil && !(rows && p.n <= maxNC) {
		p.done(0, p.m)
	}
}

func (p *product[T]) clear() {
	if p.accumulate {
		return
	}
	for i := range p.m {
		for j := range p.n {
			p.c.Data[i*p.c.RS+j*p.c.CS] = 0
		}
	}
}

func (e *engine[T]) parallel(p product[T]) {
	down, across := ceilDiv(p.m, tileRows), ceilDiv(p.n, e.width)
	byRows := down > across && (p.rows == nil || across < Threads())
	if byRows {
		Parallel(down, ceilDiv(down, Threads()), func(lo, hi int) {
			e.block(&p, lo*tileRows, min(hi*tileRows, p.m), 0, p.n)
		})
		p.rest(true)
		return
	}
	Parallel(across, ceilDiv(across, Threads()), func(lo, hi int) {
		e.columns(&p, lo*e.width, min(hi*e.width, p.n))
	})
	p.rest(false)
}

// columns computes columns of C, of which not all may be there.
func (e *engine[T]) columns(p *product[T], j0, j1 int) {
	q := *p
	q.done = nil
	e.block(&q, 0, p.m, j0, j1)
}

// block computes rows i0 to i1 and columns j0 to j1 of C.
func (e *engine[T]) block(p *product[T], i0, i1, j0, j1 int) {
	s := e.pool.Get().(*scratch[T])
	defer e.release(s)
	kc := ceilDiv(p.k, ceilDiv(p.k, maxKC))
	for j := j0; j < j1; j += maxNC {
		nc := min(maxNC, j1-j)
		for k := 0; k < p.k; k += kc {
			depth := min(kc, p.k-k)
			e.packB(s, p, k, depth, j, nc)
			for i := i0; i < i1; i += maxMC {
				mc := min(maxMC, i1-i)
				s.packA(p, i, mc, k, depth)
				s.tile = tile[T]{k: depth, width: e.width, rs: p.c.RS, cs: p.c.CS, add: p.accumulate || k > 0}
				e.tiles(s, p.c.Data[i*p.c.RS+j*p.c.CS:], mc, nc)
				if p.done != nil && nc == p.n && k+depth == p.k {
					p.done(i, i+mc)
				}
			}
		}
	}
}

func (e *engine[T]) release(s *scratch[T]) {
	s.tile = tile[T]{}
	e.pool.Put(s)
}

func (e *engine[T]) tiles(s *scratch[T], c []T, mc, nc int) {
	t := &s.tile
	for j := 0; j < nc; j += e.width {
		t.b, t.cols = s.b[j*t.k:], min(e.width, nc-j)
		for i := 0; i < mc; i += tileRows {
			t.a, t.rows = s.a[i*t.k:], min(tileRows, mc-i)
			t.c = c[i*t.rs+j*t.cs:]
			e.micro(t)
		}
	}
}
