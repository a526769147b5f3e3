package baseline

import (
	"math"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// condenser sums up what the reference said, by place.
type condenser struct {
	ref, wide, truth map[string]*tensor.Tensor
	pairs            [][2]map[string]*tensor.Tensor // nearby: the reference and the truth
}

func newCondenser(ref map[string]*tensor.Tensor, outcomes []*backend.Outcome) *condenser {
	k := &condenser{ref: ref, wide: map[string]*tensor.Tensor{}, truth: map[string]*tensor.Tensor{}}
	truth := tensorsOf(outcomes[0])
	for place, t := range k.ref {
		if e := truth[place]; e != nil && e.Len() == t.Len() && e.DType() == program.Wide(t.DType()) && e.DType() != t.DType() {
			k.truth[place], k.wide[place] = e, t.Convert(e.DType()).Contiguous()
		}
	}
	for i := 1; i+1 < len(outcomes); i += 2 {
		k.pairs = append(k.pairs, [2]map[string]*tensor.Tensor{k.of(outcomes[i]), k.of(outcomes[i+1])})
	}
	return k
}

// of returns the tensors of an outcome at places that have a truth.
func (k *condenser) of(o *backend.Outcome) map[string]*tensor.Tensor {
	out := tensorsOf(o)
	for place, t := range out {
		if e := k.truth[place]; e == nil || e.Len() != t.Len() {
			delete(out, place)
		}
	}
	return out
}

// errors returns the largest error of the reference on the nearby inputs, by
// element, rounded towards 0. It wavers where the reference somewhere has a NaN or
// an infinity that it does not have in float64, or the reverse: what it may come to
// is then told by all its runs.
func (k *condenser) errors() (all map[string]*tensor.Tensor, wavers bool) {
	all = map[string]*tensor.Tensor{}
	for place, e := range k.truth {
		worst := make([]float64, e.Len())
		wavers = raise(make([]float64, e.Len()), k.ref[place], e) || wavers
		for _, p := range k.pairs {
			if a, b := p[0][place], p[1][place]; a != nil && b != nil {
				wavers = raise(worst, a, b) || wavers
			}
		}
		own := tensor.New(tensor.BF16, e.Shape()...)
		for i, v := range worst {
			tensor.Data[tensor.BFloat16](own)[i] = tensor.Float64ToBFloat16(down(v))
		}
		all[place] = own
	}
	return all, wavers
}

// raise raises the largest errors to those between a and b, which is wide, and
// reports whether only one of two real elements is finite, or both are so in other
// ways.
func raise(worst []float64, a, b *tensor.Tensor) (disagree bool) {
	if a.DType().IsComplex() {
		for i, v := range worst {
			worst[i] = max(v, verdict.Distance(a.At(i), b.At(i)))
		}
		return false
	}
	wide := reals(b)
	switch a = a.Contiguous(); a.DType() {
	case tensor.F32:
		return raiseOf(worst, tensor.Data[float32](a), wide, func(v float32) float64 { return float64(v) })
	case tensor.F16:
		return raiseOf(worst, tensor.Data[tensor.Float16](a), wide, func(v tensor.Float16) float64 { return float64(v.Float32()) })
	case tensor.BF16:
		return raiseOf(worst, tensor.Data[tensor.BFloat16](a), wide, func(v tensor.BFloat16) float64 { return float64(v.Float32()) })
	}
	return raiseOf(worst, reals(a), wide, func(v float64) float64 { return v })
}

func raiseOf[N any](worst []float64, a []N, b []float64, wide func(N) float64) (disagree bool) {
	for i, v := range worst {
		x, y := wide(a[i]), b[i]
		d := math.Abs(x - y)
		if !(d <= math.MaxFloat64) {
			d = verdict.Distance(complex(x, 0), complex(y, 0))
			disagree = disagree || math.IsNaN(x) != math.IsNaN(y) || math.IsInf(x, 1) != math.IsInf(y, 1) || math.IsInf(x, -1) != math.IsInf(y, -1)
		}
		worst[i] = max(v, d)
	}
	return disagree
}

// reals returns the real parts of the elements.
func reals(t *tensor.Tensor) []float64 {
	if t.DType() != tensor.F64 {
		t = t.Convert(tensor.F64)
	}
	return tensor.Data[float64](t.Contiguous())[:t.Len()]
}

// down rounds a number that is not negative to one of bfloat16 that is not larger.
func down(v float64) float64 {
	if v > math.MaxFloat32 {
		return v
	}
	f := float32(v)
	if float64(f) > v {
		f = math.Nextafter32(f, 0)
	}
	return float64(math.Float32frombits(math.Float32bits(f) &^ 0xffff))
}
