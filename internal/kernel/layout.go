package kernel

import "plumb/tensor"

// AddStrided adds in's elements to a contiguous out where a view of it with
// in's shape and the given strides and offset has them, in row-major order.
// The dtype is float32, float64 or complex.
func AddStrided(out, in *tensor.Tensor, strides []int, offset int) {
	n := in.Len()
	from, to := make([]int, n), make([]int, n)
	p := mergedPlan(in.Shape(), in.Strides(), strides)
	p.segments(0, 0, n, func(at, m, place int) { progress(from[at:at+m], place, p.step(0)) })
	p.segments(1, 0, n, func(at, m, place int) { progress(to[at:at+m], place+offset, p.step(1)) })
	switch out.DType() {
	case tensor.F32:
		addAt(out, in, to, from, plus[float32])
	case tensor.F64:
		addAt(out, in, to, from, plus[float64])
	case tensor.C64:
		addAt(out, in, to, from, plus[complex64])
	case tensor.C128:
		addAt(out, in, to, from, plus[complex128])
	default:
		panic("kernel.AddStrided of " + out.DType().String())
	}
}

// Remap sets out[i, j, …] = in[maps[0][i], maps[1][j], …]. The tensors have
// one dtype and at least one dimension; every map has out's size there.
func Remap(out, in *tensor.Tensor, maps [][]int) {
	r := newRemap(out, in, maps)
	switch out.DType().Size() {
	case 1:
		remapRows(r, out, in, moveRow[uint8])
	case 2:
		remapRows(r, out, in, moveRow[uint16])
	case 4:
		remapRows(r, out, in, moveRow[int32])
	case 8:
		remapRows(r, out, in, moveRow[int64])
	case 16:
		remapRows(r, out, in, moveRow[complex128])
	}
}

// RemapAdd is Remap's adjoint: it adds in[i, j, …] to out[maps[0][i],
// maps[1][j], …], in row-major order of in, whose sizes the maps have. The
// dtype is float32, float64 or complex.
func RemapAdd(out, in *tensor.Tensor, maps [][]int) {
	r := newRemap(in, out, maps)
	switch out.DType() {
	case tensor.F32:
		remapRows(r, in, out, addRow[float32])
	case tensor.F64:
		remapRows(r, in, out, addRow[float64])
	case tensor.C64:
		remapRows(r, in, out, addRow[complex64])
	case tensor.C128:
		remapRows(r, in, out, addRow[complex128])
	default:
		panic("kernel.RemapAdd of " + out.DType().String())
	}
}

// remap is a walk over rows of a plain tensor beside the mapped one, whose
// places are tables of offsets in the dimensions.
type remap struct {
	shape, strides []int
	tables         [][]int
}

func newRemap(plain, mapped *tensor.Tensor, maps [][]int) *remap {
	r := &remap{shape: plain.Shape(), strides: plain.Strides(), tables: make([][]int, len(maps))}
	for d, m := range maps {
		table := make([]int, len(m))
		for i, k := range m {
			table[i] = k * mapped.Strides()[d]
		}
		r.tables[d] = table
	}
	return r
}

// rows calls f for every row with its start in the plain and the mapped tensor.
func (r *remap) rows(dim, at, place int, f func(at, place int)) {
	if dim == len(r.shape)-1 {
		f(at, place)
		return
	}
	for i := range r.shape[dim] {
		r.rows(dim+1, at+i*r.strides[dim], place+r.tables[dim][i], f)
	}
}

func remapRows[T tensor.Elem](r *remap, plain, mapped *tensor.Tensor, row func(plain, mapped []T, step int, table []int)) {
	if plain.Len() == 0 {
		return
	}
	p, m := tensor.Data[T](plain), tensor.Data[T](mapped)
	last := len(r.shape) - 1
	r.rows(0, 0, 0, func(at, place int) { row(p[at:], m[place:], r.strides[last], r.tables[last]) })
}

func moveRow[T tensor.Elem](plain, mapped []T, step int, table []int) {
	for i, k := range table {
		plain[i*step] = mapped[k]
	}
}

func addRow[T addable](plain, mapped []T, step int, table []int) {
	for i, k := range table {
		mapped[k] += plain[i*step]
	}
}
