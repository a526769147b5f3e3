package op

import (
	"math"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// Sampler draws legal arguments for a Def's Sample. DType is the floating
// dtype in which differentiable tensors are wanted. Fresh says that a case is drawn;
// without it a draw is one of those that the recorded conformance suite is made of.
type Sampler struct {
	*choice.Source
	DType tensor.DType
	Fresh bool
}

// Dims draws a shape of n dimensions of sizes 1 to 5.
func (s *Sampler) Dims(n int) []int {
	shape := make([]int, n)
	for i := range shape {
		shape[i] = int(s.Int(1, 6))
	}
	return shape
}

// Shape draws a shape of lo to hi dimensions of sizes 1 to 5.
func (s *Sampler) Shape(lo, hi int) []int { return s.Dims(int(s.Int(int64(lo), int64(hi)+1))) }

// Tensor draws a tensor of s.DType with elements in [lo, hi).
func (s *Sampler) Tensor(lo, hi float64, shape ...int) *tensor.Tensor {
	t := tensor.New(s.DType, shape...)
	rng := choice.NewPhilox(s.Key())
	for i := range t.Len() {
		u, v := rng.Pair(uint64(i))
		re := lo + float64(u>>11)*0x1p-53*(hi-lo)
		im := 0.0
		if s.DType.IsComplex() {
			im = lo + float64(v>>11)*0x1p-53*(hi-lo)
		}
		t.Set(i, complex(re, im))
	}
	return t
}

// Distinct draws a tensor whose elements are far from each other and from
// zero, so that maxima and kinks stay where they are under small steps.
func (s *Sampler) Distinct(shape ...int) *tensor.Tensor {
	t := tensor.New(s.DType, shape...)
	rng := choice.NewPhilox(s.Key())
	order := make([]int, t.Len())
	for i := range order {
		order[i] = i
	}
	for i := len(order) - 1; i > 0; i-- {
		u, _ := rng.Pair(uint64(i))
		j := int(u>>1) % (i + 1)
		order[i], order[j] = order[j], order[i]
	}
	for i, k := range order {
		t.Set(i, complex(math.Copysign(0.1+0.05*float64(k/2), float64(k%2)-0.5), 0))
	}
	return t
}
