package interp

import (
	"fmt"

	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/tensor"
)

// Session is how a run applies operators: eager.Session, or one that computes
// something else along the same calls.
type Session interface {
	Leaf(t *tensor.Tensor, requiresGrad bool) *eager.Var
	Execute(call *op.Call) ([]op.Value, error)
	Builder() op.Builder
	// Recording runs f with or without recording what its calls compute.
	Recording(on bool, f func() error) error
	Backward(values, cotangents []op.Value, create bool, inputs ...op.Value) (autograd.Cotangents, error)
	// Release ends what Backward of the same values and inputs may be repeated with.
	Release(values []op.Value, inputs ...op.Value)
	// Reseed begins the draws of a seed.
	Reseed(seed uint64)
	// Replace gives a variable other elements.
	Replace(v *eager.Var, t *tensor.Tensor)
	// Kept returns what a tensor is now, whatever is written into it later.
	Kept(t *tensor.Tensor) *tensor.Tensor
}

// EagerSession is the session that computes results.
type EagerSession struct{ *eager.Session }

// Replace gives a variable another tensor.
func (EagerSession) Replace(v *eager.Var, t *tensor.Tensor) { v.Tensor = t }

// Kept returns a copy.
func (EagerSession) Kept(t *tensor.Tensor) *tensor.Tensor { return copyOf(t) }

// copyOf returns a copy with the same strides.
func copyOf(t *tensor.Tensor) *tensor.Tensor {
	return t.CloneStrided(t.Strides())
}

// here returns a tensor on the host.
func here(t *tensor.Tensor) *tensor.Tensor {
	h, err := t.To(nil)
	if err != nil {
		panic(fmt.Sprintf("interp: %s from %s: %v", t, t.Device(), err))
	}
	return h
}

func tensorOf(v op.Value) *tensor.Tensor {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v.(*tensor.Tensor)
}
