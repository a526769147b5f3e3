package program

import (
	"math"

	"plumb/internal/draw/choice"
	"plumb/internal/variate"
	"plumb/tensor"
)

// block is how many random words are drawn at a time: whole turns of the vector loops.
const block = 480

// draw sets the elements of a contiguous tensor, block by block.
func (f *Fill) draw(t *tensor.Tensor) {
	d := t.DType()
	switch {
	case d.IsComplex() && !f.Real && f.Dist != Integer:
		f.draw(realParts(t))
	case d.IsComplex():
		f.throughFloat64(t)
	case f.isNormal() && f.Lo == 0 && f.Hi == 1:
		f.normals(t)
	case f.Dist == Uniform && d.IsFloat():
		f.uniforms(t)
	case f.Dist == Integer && !d.IsFloat() && f.fits32():
		f.integral(t)
	default:
		f.throughFloat64(t)
	}
}

// realParts is a view of a contiguous complex tensor's real and imaginary parts.
func realParts(t *tensor.Tensor) *tensor.Tensor {
	parts, err := tensor.FromBytes(t.DType().Real(), []int{2 * t.Len()}, []int{1}, 2*t.Offset(), t.Storage())
	if err != nil {
		panic(err)
	}
	return parts
}

func (f *Fill) isNormal() bool { return f.Dist == Normal || f.Dist == Folded }

// fits32 reports whether an Integer is drawn between whole numbers of 32 bits.
func (f *Fill) fits32() bool {
	return f.Lo < f.Hi && f.Lo == math.Trunc(f.Lo) && f.Hi == math.Trunc(f.Hi) && f.Lo >= math.MinInt32 && f.Hi <= math.MaxInt32
}

// normals draws standard normal deviates, of which none is 0.
func (f *Fill) normals(t *tensor.Tensor) {
	switch t.DType() {
	case tensor.F64:
		f.normals64(tensor.Data[float64](t)[:t.Len()])
	case tensor.Bool:
		(&Fill{Lo: 1}).constant(t)
	default:
		f.normals32(t)
	}
}

func (f *Fill) normals64(out []float64) {
	var words [block]uint64
	rng := choice.NewPhilox(f.Key)
	for at := 0; at < len(out); at += block {
		some := out[at:min(at+block, len(out))]
		rng.Words(words[:len(some)], uint64(at/2))
		variate.Normals64(some, words[:], f.Dist == Folded)
	}
}

func (f *Fill) normals32(t *tensor.Tensor) {
	var words [block]uint64
	var into store
	rng := choice.NewPhilox(f.Key)
	for at := 0; at < t.Len(); at += 2 * block {
		some := into.singles(t, at, min(2*block, t.Len()-at))
		rng.Words(words[:(len(some)+1)/2], uint64(at/4))
		variate.Normals(some, words[:], f.Dist == Folded)
		into.putSingles(t, at, some)
	}
}

func (f *Fill) uniforms64(out []float64) { f.uniforms64From(out, 0) }

// uniforms64From draws the elements from an even one on.
func (f *Fill) uniforms64From(out []float64, first int) {
	var words [block]uint64
	rng := choice.NewPhilox(f.Key)
	for at := 0; at < len(out); at += block {
		some := out[at:min(at+block, len(out))]
		rng.Words(words[:len(some)], uint64((first+at)/2))
		variate.Uniforms(some, words[:], f.Lo, f.Hi)
	}
}

func (f *Fill) uniforms(t *tensor.Tensor) {
	if t.DType() == tensor.F64 {
		f.uniforms64(tensor.Data[float64](t)[:t.Len()])
		return
	}
	var words [block]uint64
	var reals [block]float64
	var into store
	top := f.top(t.DType())
	rng := choice.NewPhilox(f.Key)
	for at := 0; at < t.Len(); at += block {
		n := min(block, t.Len()-at)
		rng.Words(words[:n], uint64(at/2))
		some := into.singles(t, at, n)
		variate.Uniforms(reals[:n], words[:], f.Lo, f.Hi)
		variate.Round(some, reals[:], top)
		into.putSingles(t, at, some)
	}
}

// top is the greatest float32 in [Lo, Hi), to which a uniform float32 that
// rounding carried up to Hi moves back.
func (f *Fill) top(d tensor.DType) float32 {
	if d != tensor.F32 || !(f.Lo < f.Hi) {
		return float32(math.Inf(1))
	}
	return math.Nextafter32(float32(f.Hi), float32(f.Lo))
}

func (f *Fill) integral(t *tensor.Tensor) {
	var words [block]uint64
	var into store
	rng := choice.NewPhilox(f.Key)
	for at := 0; at < t.Len(); at += block {
		some := into.whole(t, at, min(block, t.Len()-at))
		rng.Words(words[:len(some)], uint64(at/2))
		variate.Integers(some, words[:], f.Lo, f.Hi)
		into.putWhole(t, at, some)
	}
}

// store has room for the elements of a block on their way to their dtype.
type store struct {
	float32s [2 * block]float32
	int32s   [2 * block]int32
}

// singles is where putSingles expects n elements from position at on: in a
// float32 tensor, where they stay.
func (s *store) singles(t *tensor.Tensor, at, n int) []float32 {
	if t.DType() == tensor.F32 {
		return tensor.Data[float32](t)[at:][:n]
	}
	return s.float32s[:n]
}

// putSingles rounds to floats, and truncates to integers.
func (s *store) putSingles(t *tensor.Tensor, at int, some []float32) {
	switch d := t.DType(); {
	case d == tensor.F16:
		tensor.ToFloat16s(tensor.Data[tensor.Float16](t)[at:][:len(some)], some)
	case d == tensor.BF16:
		tensor.ToBFloat16s(tensor.Data[tensor.BFloat16](t)[at:][:len(some)], some)
	case d.IsInt():
		whole := s.whole(t, at, len(some))
		variate.Truncate(whole, some)
		s.putWhole(t, at, whole)
	}
}

// whole is where putWhole expects n elements from position at on.
func (s *store) whole(t *tensor.Tensor, at, n int) []int32 {
	if t.DType() == tensor.I32 {
		return tensor.Data[int32](t)[at:][:n]
	}
	return s.int32s[:n]
}

// putWhole keeps the low bits of integers; of bool all but 0 is True.
func (s *store) putWhole(t *tensor.Tensor, at int, some []int32) {
	switch t.DType() {
	case tensor.Bool:
		out := tensor.Data[bool](t)[at:][:len(some)]
		for i, v := range some {
			out[i] = v != 0
		}
	case tensor.U8, tensor.I8:
		variate.Narrow8(tensor.Data[int8](t)[at:][:len(some)], some)
	case tensor.I16:
		variate.Narrow16(tensor.Data[int16](t)[at:][:len(some)], some)
	case tensor.I64:
		variate.Widen(tensor.Data[int64](t)[at:][:len(some)], some)
	}
}

// constant sets every element to Lo.
func (f *Fill) constant(t *tensor.Tensor) {
	one := tensor.New(t.DType(), 1)
	put(one, []float64{f.Lo}, 0)
	b, first := t.Storage(), one.Storage()
	size := len(first)
	b = b[t.Offset()*size:][:t.Len()*size]
	for done := copy(b, first); done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}

// thin replaces all but a share of the elements of a contiguous tensor by 0.
func (f *Fill) thin(t *tensor.Tensor) {
	var words [block]uint64
	size := t.DType().Size()
	b := t.Storage()[t.Offset()*size:][:t.Len()*size]
	rng := choice.NewPhilox(choice.Derive(f.Key, 1))
	for at := 0; at < t.Len(); at += block / 2 {
		n := min(block/2, t.Len()-at)
		rng.Words(words[:2*n], uint64(at))
		for i := range n {
			if float64(words[2*i]>>11)*0x1p-53 >= f.Density {
				clear(b[(at+i)*size:][:size])
			}
		}
	}
}

// gram sets the last two dimensions to Lo + M·Mᵀ, where M has Hi columns of
// standard normal deviates.
func (f *Fill) gram(t *tensor.Tensor) {
	n, columns := t.Shape()[t.Dim()-1], int(f.Hi)
	rows := Fill{Dist: Normal, Hi: 1, Key: f.Key}
	m := tensor.New(tensor.F64, t.Len()/max(n, 1), columns)
	rows.draw(m)
	row := func(i int) []float64 { return tensor.Data[float64](m)[i*columns:][:columns] }
	products := make([]float64, n)
	for i := range t.Len() / max(n, 1) {
		first := i / n * n
		for j := range products {
			products[j] = f.Lo + dot(row(i), row(first+j))
		}
		put(t, products, i*n)
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x * b[i])
	}
	return sum
}
