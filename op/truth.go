package op

import "plumb/tensor"

// Truth is the function of numbers that an elementwise call computes: of one
// element of each of its tensors, in their order. It is computed by
// other means than the call's kernels, which are judged by it.
type Truth interface {
	// Round returns the function of x rounded to dtype d.
	Round(d tensor.DType, x ...float64) float64
}

// InFloat64 is a Truth computed in float64, and rounded from there.
type InFloat64 func(x ...float64) float64

// Round returns f of x rounded to dtype d.
func (f InFloat64) Round(d tensor.DType, x ...float64) float64 {
	return tensor.Scalar(d, complex(f(x...), 0)).Float(0)
}

// ScalarFunction reports whether the operator is a function of numbers applied
// to each element: it has Exact, or says why it has none.
func (d *Def) ScalarFunction() bool { return d.Exact != nil || d.NoExact != "" }
