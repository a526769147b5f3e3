package program

import (
	"math"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// Materialize returns the tensor that the input describes.
func (in *Input) Materialize() *tensor.Tensor {
	t := tensor.Unset(in.DType, in.Shape, in.Strides)
	in.Fill.Into(t)
	return t
}

// Layout returns a tensor of undefined elements that lies as the input does.
func (in *Input) Layout() *tensor.Tensor {
	return tensor.Unset(in.DType, in.Shape, in.Strides)
}

// Into sets the elements of t, in row-major order of its shape.
func (f *Fill) Into(t *tensor.Tensor) {
	if f.Dist == Literal {
		t.CopyFrom(f.Data)
		return
	}
	into := t
	if !t.IsContiguous() && !f.edged() {
		into = tensor.Unset(t.DType(), t.Shape(), nil)
	}
	f.elements(into)
	if into != t {
		t.CopyFrom(into)
	}
}

// edged reports whether edge values or kinks are among the elements, or these are of many sizes.
func (f *Fill) edged() bool { return f.Kinks || f.Scales || f.Special != 0 }

func (f *Fill) elements(t *tensor.Tensor) {
	switch {
	case f.Dist == Constant:
		f.constant(t)
	case f.Dist == Gram:
		f.gram(t)
	case f.Dist == Integer && f.edged():
		f.integers(t)
	case f.Dist == Uniform && f.edged():
		f.uniform(t)
	default:
		f.draw(t)
	}
	if f.Density > 0 {
		f.thin(t)
	}
}

// Cotangent returns the first n elements of f's stream in float64; ones for a
// zero Dist. A cotangent of another dtype holds them rounded.
func (f *Fill) Cotangent(n int) []float64 {
	out := make([]float64, n)
	f.CotangentInto(out)
	return out
}

// CotangentInto sets out to what Cotangent returns.
func (f *Fill) CotangentInto(out []float64) {
	switch {
	case f.Dist == "":
		for i := range out {
			out[i] = 1
		}
		return
	case f.Dist == Integer:
		f.eachInteger(len(out), nil, func(i int, v int64) { out[i] = float64(v) })
		return
	case f.edged():
		f.stream(len(out), nil, func(i int, v float64) { out[i] = v })
	default:
		f.uniforms64(out)
	}
	if f.Round != tensor.Invalid {
		t := tensor.OverFloat64s(out)
		t.CopyFrom(t.Convert(f.Round.Real()))
	}
}

// CotangentOf sets a contiguous tensor of a real dtype to the elements of f's stream
// that Cotangent returns, rounded, without the float64 of all of them.
func (f *Fill) CotangentOf(t *tensor.Tensor) {
	if f.Dist == "" || f.Dist == Integer || f.edged() || t.DType() == tensor.F64 || !t.DType().IsFloat() {
		t.CopyFrom(tensor.OverFloat64s(f.Cotangent(t.Len())).Reshape(t.Shape()...))
		return
	}
	flat, reals := t.Reshape(t.Len()), make([]float64, min(cotangentBlock, t.Len()))
	for at := 0; at < t.Len(); at += cotangentBlock {
		now := tensor.OverFloat64s(reals[:min(cotangentBlock, t.Len()-at)])
		f.uniforms64From(tensor.Data[float64](now), at)
		if f.Round != tensor.Invalid {
			now = now.Convert(f.Round.Real())
		}
		flat.Narrow(0, at, now.Len(), 1).CopyFrom(now)
	}
}

// cotangentBlock is how many elements of a cotangent are in float64 at a time.
const cotangentBlock = 16 * block

// stream calls emit with the real elements 0 to n-1. A Philox block serves two
// elements; the low bits of an element's word decide about edge values and kinks.
func (f *Fill) stream(n int, edges []float64, emit func(i int, v float64)) {
	rng := choice.NewPhilox(f.Key)
	again := f.again(rng)
	for i := 0; i < n; i += 2 {
		a, b := rng.Pair(uint64(i / 2))
		emit(i, f.element(a, again, edges))
		if i+1 < n {
			emit(i+1, f.element(b, again, edges))
		}
	}
}

// again returns the value that recurs.
func (f *Fill) again(rng choice.Philox) float64 {
	w, _ := rng.Pair(1 << 62)
	return f.value(w)
}

func (f *Fill) value(word uint64) float64 {
	if f.Scales {
		return f.scaled(word)
	}
	v := f.Lo + float64(float64(word>>11)*0x1p-53*(f.Hi-f.Lo))
	if v >= f.Hi && f.Hi > f.Lo {
		v = f.Lo
	}
	return v
}

func (f *Fill) element(word uint64, again float64, edges []float64) float64 {
	if k, ok := strikes(word, len(edges)); ok {
		return edges[k]
	}
	if f.Kinks && word&0x7 == 0 {
		v := [4]float64{0, 1, -1, again}[word>>3&3]
		if v >= f.Lo && v <= f.Hi {
			return v
		}
	}
	return f.value(word)
}

func (f *Fill) uniform(t *tensor.Tensor) {
	n := t.Len()
	var edges []float64
	if f.Special != 0 && t.DType().IsDifferentiable() {
		edges = f.Special.reals(t.DType(), f.again(choice.NewPhilox(f.Key)))
	}
	switch {
	case t.DType().IsComplex():
		f.stream(2*n, edges, pairs(t))
	default:
		f.stream(n, edges, func(i int, v float64) { t.Set(i, complex(v, 0)) })
	}
}

// pairs sets complex element i from the reals 2i and 2i+1.
func pairs(t *tensor.Tensor) func(int, float64) {
	var re float64
	return func(i int, v float64) {
		if i%2 == 0 {
			re = v
			return
		}
		t.Set(i/2, complex(re, v))
	}
}

func (f *Fill) integers(t *tensor.Tensor) {
	var edges []int64
	if f.Special != 0 {
		w, _ := choice.NewPhilox(f.Key).Pair(1 << 62)
		edges = f.Special.integers(t.DType(), f.integer(w))
	}
	f.eachInteger(t.Len(), edges, t.SetInt)
}

// eachInteger calls emit with the integer elements 0 to n-1.
func (f *Fill) eachInteger(n int, edges []int64, emit func(i int, v int64)) {
	rng := choice.NewPhilox(f.Key)
	for i := 0; i < n; i += 2 {
		a, b := rng.Pair(uint64(i / 2))
		emit(i, f.edgeOrInteger(a, edges))
		if i+1 < n {
			emit(i+1, f.edgeOrInteger(b, edges))
		}
	}
}

func (f *Fill) edgeOrInteger(word uint64, edges []int64) int64 {
	if k, ok := strikes(word, len(edges)); ok {
		return edges[k]
	}
	return f.integer(word)
}

func (f *Fill) integer(word uint64) int64 {
	if f.Hi <= f.Lo {
		return int64(f.Lo)
	}
	return int64(f.Lo + math.Floor(float64(float64(word>>11)*0x1p-53*(f.Hi-f.Lo))))
}
