package program

import (
	"math"

	"plumb/internal/draw/choice"
	"plumb/internal/variate"
	"plumb/tensor"
)

// throughFloat64 draws by way of float64, whatever the law and the dtype.
func (f *Fill) throughFloat64(t *tensor.Tensor) {
	var words [block]uint64
	var reals [2 * block]float64
	rng, each, wide := choice.NewPhilox(f.Key), 1, t.DType().Real() == tensor.F64
	if f.isNormal() && !wide {
		each = 2
	}
	for at := 0; at < t.Len(); at += block * each {
		some := reals[:min(block*each, t.Len()-at)]
		rng.Words(words[:(len(some)+each-1)/each], uint64(at/each/2))
		f.map64(some, words[:], wide)
		put(t, some, at)
	}
}

// map64 turns random words into elements.
func (f *Fill) map64(out []float64, words []uint64, wide bool) {
	switch {
	case f.isNormal():
		f.deviates(out, words, wide)
	case f.Dist == Integer && f.Hi <= f.Lo:
		for i := range out {
			out[i] = math.Trunc(f.Lo)
		}
	case f.Dist == Integer:
		width := f.Hi - f.Lo
		for i := range out {
			out[i] = f.Lo + math.Floor(float64(float64(words[i]>>11)*0x1p-53*width))
		}
	default:
		variate.Uniforms(out, words, f.Lo, f.Hi)
	}
}

// deviates are Lo + Hi·z; wide ones use a word each, others a half.
func (f *Fill) deviates(out []float64, words []uint64, wide bool) {
	if wide {
		variate.Normals64(out, words, false)
	} else {
		var singles [2 * block]float32
		variate.Normals(singles[:len(out)], words, false)
		for i := range out {
			out[i] = float64(singles[i])
		}
	}
	for i, z := range out {
		out[i] = f.Lo + float64(f.Hi*z)
		if f.Dist == Folded {
			out[i] = math.Abs(out[i])
		}
	}
}

// put stores reals from position at on in a contiguous tensor, converting as C
// does: integers truncate toward 0 and, where they are narrow, keep the low
// bits, so that -1 is 255 in uint8; of bool all but 0 is True. A complex element
// has no imaginary part.
func put(t *tensor.Tensor, reals []float64, at int) {
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
		complexes(tensor.Data[complex64](t)[at:], reals)
	case tensor.C128:
		complexes(tensor.Data[complex128](t)[at:], reals)
	}
}

func integral[T int8 | int16 | int32 | int64](out []T, reals []float64) {
	out = out[:len(reals)]
	for i, v := range reals {
		out[i] = T(int64(v))
	}
}

func complexes[T complex64 | complex128](out []T, reals []float64) {
	for i, v := range reals {
		out[i] = T(complex(v, 0))
	}
}
