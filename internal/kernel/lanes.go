package kernel

import "math"

// The steps of pointwise_lanes.go, each with the bits of an instruction.

// lesser returns a where a < b, and b elsewhere; a NaN makes it b.
func lesser(a, b float64) float64 { return choose(a < b, a, b) }

// greater returns a where a > b, and b elsewhere; a NaN makes it b.
func greater(a, b float64) float64 { return choose(a > b, a, b) }

// choose returns a where c holds and b elsewhere. It moves bits, which takes no
// branch: those that depend on elements are mispredicted.
func choose(c bool, a, b float64) float64 {
	x, y := math.Float64bits(a), math.Float64bits(b)
	if c {
		y = x
	}
	return math.Float64frombits(y)
}

// pick is choose of floats; the compiler needs no such help with integers.
func pick[T float](c bool, a, b T) T { return T(choose(c, float64(a), float64(b))) }

func addBits(a, b float64) float64 {
	return math.Float64frombits(math.Float64bits(a) + math.Float64bits(b))
}

func subBits(a, b float64) float64 {
	return math.Float64frombits(math.Float64bits(a) - math.Float64bits(b))
}

func andBits(a, b float64) float64 {
	return math.Float64frombits(math.Float64bits(a) & math.Float64bits(b))
}

func orBits(a, b float64) float64 {
	return math.Float64frombits(math.Float64bits(a) | math.Float64bits(b))
}

func xorBits(a, b float64) float64 {
	return math.Float64frombits(math.Float64bits(a) ^ math.Float64bits(b))
}

func shiftLeft(a float64, n uint) float64 { return math.Float64frombits(math.Float64bits(a) << n) }

func shiftRight(a float64, n uint) float64 { return math.Float64frombits(math.Float64bits(a) >> n) }
