package interp

import (
	"context"
	"time"

	"plumb/backend"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
)

// measure makes the last call again, after once that does not count.
func (r *Run) measure(ctx context.Context, m *backend.Measure) error {
	c := &r.job.Program.Calls[len(r.job.Program.Calls)-1]
	if m.Backward {
		c.EachRef(r.freshLeaf)
	}
	v, err := r.scoped(c)
	if err != nil {
		return err
	}
	var cotangents []op.Value
	err = op.Catch(func() {
		for _, x := range v.differentiable() {
			cotangents = append(cotangents, tensorOf(r.session.Builder().OnesLike(x)))
		}
	})
	if m.Backward && len(cotangents) == 0 {
		r.out.Measured = -1
		return err
	}
	start := time.Now()
	for i := 0; i < m.Times && err == nil; i++ {
		if err = ctx.Err(); err != nil {
			break
		}
		if v, err = r.scoped(c); err == nil && m.Backward {
			_, err = r.session.Backward(v.differentiable(), cotangents, false)
		}
	}
	r.out.Measured = time.Since(start)
	return err
}

// freshLeaf has a name stand for a leaf of its elements that requires a gradient,
// where it can.
func (r *Run) freshLeaf(ref program.Ref) {
	v := r.env[ref]
	if v.tensor == nil || !v.tensor.DType().IsDifferentiable() {
		return
	}
	x := r.session.Leaf(v.tensor.Tensor, true)
	if r.space != nil {
		r.space.Leaf(x)
	}
	r.env[ref] = &value{tensor: x}
}

// differentiable lists the tensors of a value that require a gradient.
func (v *value) differentiable() []op.Value {
	if v.tensor != nil && eager.RequiresGrad(v.tensor) {
		return []op.Value{v.tensor}
	}
	var out []op.Value
	for _, e := range v.tuple {
		out = append(out, e.differentiable()...)
	}
	return out
}
