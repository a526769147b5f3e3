package op

import "plumb/tensor"

// Rounding is what a bound of rounding errors follows from: a call in float64,
// its results, and what is known of its arguments.
type Rounding struct {
	Args
	Out  []*tensor.Tensor
	Unit float64 // the roundoff of the dtype in which the call is judged
	// Error returns a bound of the error of an argument by element, in units of
	// the roundoff; nil where it is exact.
	Error func(p TensorArg) *tensor.Tensor
	// Integral reports that the elements of an argument are integers, and exact.
	Integral func(p TensorArg) bool
	// Sum returns how many roundings of Σ|terms| a sum of so many terms stands for.
	Sum func(terms int) float64
	// ULP returns how many roundings a function with this limit stands for.
	ULP func(limit float64) float64
}
