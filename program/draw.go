package program

import (
	"math"

	"plumb/choice"
	"plumb/tensor"
)

// block is how many random words are drawn at a time: whole turns of the vector loop.
const block = 480

// draw sets the elements of a contiguous tensor, block by block.
func (f *Fill) draw(t *tensor.Tensor) {
	n, parts := t.Len(), 1
	if t.DType().IsComplex() && !f.Real && f.Dist != Integer {
		parts = 2
	}
	var words [block]uint64
	var reals [2 * block]float64
	rng, each := choice.NewPhilox(f.Key), f.perWord(t.DType())
	for at, word := 0, 0; at < n*parts; word += block {
		some := reals[:min(block*each, n*parts-at)]
		rng.Words(words[:(len(some)+each-1)/each], uint64(word/2))
		f.map64(some, words[:], each)
		put(t, some, at, parts)
		at += len(some)
	}
	if f.Dist == Uniform && f.Lo < f.Hi && t.DType() == tensor.F32 {
		f.keepInside(t)
	}
}

// perWord is how many elements one random word serves: a normal deviate of a
// small dtype takes half of one.
func (f *Fill) perWord(d tensor.DType) int {
	if (f.Dist == Normal || f.Dist == Folded) && d.Real() != tensor.F64 {
		return 2
	}
	return 1
}

// map64 turns random words into elements.
func (f *Fill) map64(out []float64, words []uint64, each int) {
	switch {
	case f.Dist == Normal || f.Dist == Folded:
		f.deviates(out, words, each)
	case f.Dist == Integer && f.Hi <= f.Lo:
		for i := range out {
			out[i] = math.Trunc(f.Lo)
		}
	case f.Dist == Integer:
		width := f.Hi - f.Lo
		for i := range out {
			out[i] = f.Lo + math.Floor(float64(words[i]>>11)*0x1p-53*width)
		}
	default:
		for i := range out {
			out[i] = f.value(words[i])
		}
	}
}

func (f *Fill) deviates(out []float64, words []uint64, each int) {
	q := quantile()
	if each == 1 {
		for i := range out {
			out[i] = deviate(q, words[i])
		}
	} else {
		for i := 0; i+1 < len(out); i += 2 {
			out[i], out[i+1] = deviate(q, words[i/2]<<32), deviate(q, words[i/2]>>32<<32)
		}
		if i := len(out) - 1; i%2 == 0 {
			out[i] = deviate(q, words[i/2]<<32)
		}
	}
	if f.Lo != 0 || f.Hi != 1 {
		for i, z := range out {
			out[i] = f.Lo + float64(f.Hi*z)
		}
	}
	if f.Dist == Folded {
		for i, z := range out {
			out[i] = math.Abs(z)
		}
	}
}

// put stores reals from position at on in a contiguous tensor, converting as C
// does: integers truncate toward 0 and, where they are narrow, keep the low
// bits, so that -1 is 255 in uint8; of bool all but 0 is True. Two parts are a
// complex element's.
func put(t *tensor.Tensor, reals []float64, at, parts int) {
	switch d := t.DType(); d {
	case tensor.Bool:
		out := tensor.Data[bool](t)[at:][:len(reals)]
		for i, v := range reals {
			out[i] = v != 0
		}
	case tensor.U8, tensor.I8:
		integral(tensor.Data[int8](t)[at:], reals)
	case tensor.I16:
		integral(tensor.Data[int16](t)[at:], reals)
	case tensor.I32:
		integral(tensor.Data[int32](t)[at:], reals)
	case tensor.I64:
		integral(tensor.Data[int64](t)[at:], reals)
	case tensor.F16:
		out := tensor.Data[tensor.Float16](t)[at:][:len(reals)]
		for i, v := range reals {
			out[i] = tensor.ToFloat16(float32(v))
		}
	case tensor.BF16:
		out := tensor.Data[tensor.BFloat16](t)[at:][:len(reals)]
		for i, v := range reals {
			out[i] = tensor.ToBFloat16(float32(v))
		}
	case tensor.F32:
		out := tensor.Data[float32](t)[at:][:len(reals)]
		for i, v := range reals {
			out[i] = float32(v)
		}
	case tensor.F64:
		copy(tensor.Data[float64](t)[at:], reals)
	case tensor.C64:
		complexes(tensor.Data[complex64](t)[at/parts:], reals, parts)
	case tensor.C128:
		complexes(tensor.Data[complex128](t)[at/parts:], reals, parts)
	}
}

func integral[T int8 | int16 | int32 | int64](out []T, reals []float64) {
	out = out[:len(reals)]
	for i, v := range reals {
		out[i] = T(int64(v))
	}
}

func complexes[T complex64 | complex128](out []T, reals []float64, parts int) {
	for i := 0; i < len(reals); i += parts {
		im := 0.0
		if parts == 2 {
			im = reals[i+1]
		}
		out[i/parts] = T(complex(reals[i], im))
	}
}

// keepInside moves the elements of a contiguous float32 tensor that rounding
// carried up to Hi back inside [Lo, Hi).
func (f *Fill) keepInside(t *tensor.Tensor) {
	hi := float32(f.Hi)
	below := math.Nextafter32(hi, float32(f.Lo))
	for i, v := range tensor.Data[float32](t)[:t.Len()] {
		if v == hi {
			tensor.Data[float32](t)[i] = below
		}
	}
}

// constant sets every element to Lo.
func (f *Fill) constant(t *tensor.Tensor) {
	one := tensor.New(t.DType(), 1)
	put(one, []float64{f.Lo}, 0, 1)
	b, first := t.Storage(), one.Storage()
	size := len(first)
	b = b[t.Offset()*size:][:t.Len()*size]
	for done := copy(b, first); done < len(b); done *= 2 {
		copy(b[done:], b[:done])
	}
}

// thin replaces all but a share of the elements of a contiguous tensor by 0.
func (f *Fill) thin(t *tensor.Tensor) {
	size := t.DType().Size()
	b := t.Storage()[t.Offset()*size:]
	rng := choice.NewPhilox(choice.Derive(f.Key, 1))
	for i := range t.Len() {
		if word, _ := rng.Pair(uint64(i)); float64(word>>11)*0x1p-53 >= f.Density {
			clear(b[i*size:][:size])
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
		put(t, products, i*n, 1)
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x * b[i])
	}
	return sum
}
