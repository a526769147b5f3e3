package optim

import (
	"fmt"
	"math"

	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// ClipGradNorm scales the gradients so that the norm of them all, of order
// normType, is at most maxNorm, and returns the norm before that, a 0-d tensor
// (torch.nn.utils.clip_grad_norm_). The factor is
// min(1, maxNorm/(norm + 1e-6)). With errorIfNonfinite a norm that is not
// finite is a RuntimeError; the norm is then read, which needs an eager Builder.
func ClipGradNorm(b op.Builder, params []*Param, maxNorm, normType float64, errorIfNonfinite bool) (total op.Value, err error) {
	defer func() { named(&err, "clip_grad_norm_") }()
	clipped := withGrad(params)
	if len(clipped) == 0 {
		return tensor.New(tensor.F32), nil
	}
	grads := make([]op.Value, len(clipped))
	err = op.Catch(func() {
		total = totalNorm(b, clipped, normType)
		t := tensorOf(total)
		switch {
		case !errorIfNonfinite:
		case t == nil:
			op.Fail(fmt.Errorf("error_if_nonfinite reads the norm, which a recording Builder does not have: %w", nn.ErrUnsupported))
		case t.HasNonFinite():
			op.Fail(op.RuntimeError("The total norm of order %v for gradients from `parameters` is non-finite, so it cannot be clipped", normType))
		}
		factor := b.Op("clamp", b.Op("div", maxNorm, b.Add(total, 1e-6)), op.Kw("max", 1.0))
		for i, p := range clipped {
			grads[i] = b.Cast(b.Mul(p.Grad, factor), p.Grad.DType())
		}
	})
	if err != nil {
		return nil, err
	}
	for i, p := range clipped {
		p.Grad = grads[i]
	}
	return total, nil
}

func withGrad(params []*Param) []*Param {
	var out []*Param
	for _, p := range params {
		if p.Grad != nil {
			out = append(out, p)
		}
	}
	return out
}

// totalNorm is the norm of the norms; of infinite order, the largest magnitude.
func totalNorm(b op.Builder, params []*Param, order float64) op.Value {
	norms := make([]op.Value, len(params))
	for i, p := range params {
		if math.IsInf(order, 1) {
			norms[i] = b.Op("max", b.Op("abs", p.Grad))
		} else {
			norms[i] = b.Op("vector_norm", p.Grad, order)
		}
	}
	switch {
	case !math.IsInf(order, 1):
		return b.Op("vector_norm", b.Op("stack", norms), order)
	case len(norms) == 1:
		return norms[0]
	}
	return b.Op("max", b.Op("stack", norms))
}

// ClipGradValue limits each element of the gradients to [-limit, limit]
// (torch.nn.utils.clip_grad_value_).
func ClipGradValue(b op.Builder, params []*Param, limit float64) (err error) {
	defer func() { named(&err, "clip_grad_value_") }()
	clipped := withGrad(params)
	grads := make([]op.Value, len(clipped))
	err = op.Catch(func() {
		for i, p := range clipped {
			grads[i] = b.Op("clamp", p.Grad, -limit, limit)
		}
	})
	if err != nil {
		return err
	}
	for i, p := range clipped {
		p.Grad = grads[i]
	}
	return nil
}
