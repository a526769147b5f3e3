package interp

import (
	"plumb/backend"
	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// backward differentiates the program's Backward entries together.
func (r *Run) backward() error {
	p := r.job.Program
	var values, cotangents []op.Value
	for _, w := range p.Backward {
		if err := r.refresh(r.env[w.Value]); err != nil {
			return err
		}
		for _, v := range r.env[w.Value].tensors() {
			if w.Auto && !v.RequiresGrad() {
				continue
			}
			values, cotangents = append(values, v), append(cotangents, cotangent(&w.Cotangent, v.Tensor))
		}
	}
	if len(values) == 0 && !p.Differentiates() {
		return nil
	}
	var grads autograd.Cotangents
	if len(values) > 0 {
		var err error
		if grads, err = r.session.Backward(values, cotangents, p.Second.Dist != ""); err != nil {
			return err
		}
	}
	if err := r.gradients(grads); err != nil {
		return err
	}
	if p.Second.Dist != "" {
		return r.second(grads)
	}
	return r.step(grads)
}

// gradients reports the gradients of the inputs, of the leaves that calls made
// and of the parameters.
func (r *Run) gradients(end autograd.Cotangents) error {
	for i, leaf := range r.leaves.inputs {
		if in := &r.job.Program.Inputs[i]; in.RequiresGrad {
			g, err := r.leafGrad(leaf, end)
			if err != nil {
				return err
			}
			r.out.Add(backend.Place{Part: backend.PartGrad, Owner: in.Name}, g)
		}
	}
	params := map[op.Value]bool{}
	for _, m := range r.built {
		for _, s := range m.module.State() {
			params[m.module.Value(s.Name)] = true
		}
	}
	for _, m := range r.leaves.made {
		g, err := r.leafGrad(m.leaf, end)
		if err != nil {
			return err
		}
		if g != nil && m.leaf.RequiresGrad() && !params[m.leaf] {
			r.out.Add(backend.Place{Part: backend.PartGrad, Owner: m.name}, g)
		}
	}
	return r.paramGrads(backend.PartParamGrad, end)
}

// second differentiates the gradients of the inputs together.
func (r *Run) second(grads autograd.Cotangents) (err error) {
	var values, cotangents []op.Value
	for i, leaf := range r.leaves.inputs {
		if g, ok := grads[leaf].(*eager.Var); ok && leaf.RequiresGrad() && g.RequiresGrad() {
			values, cotangents = append(values, g), append(cotangents, shaped(r.job.Program.SecondCotangent(i), g.Tensor))
		}
	}
	seconds := autograd.Cotangents{}
	if len(values) > 0 {
		if seconds, err = r.session.Backward(values, cotangents, false); err != nil {
			return err
		}
	}
	for i, leaf := range r.leaves.inputs {
		if leaf.RequiresGrad() {
			r.out.Add(backend.Place{Part: backend.PartSecondGrad, Owner: r.job.Program.Inputs[i].Name}, gradOf(seconds[leaf]))
		}
	}
	return r.paramGrads(backend.PartSecondParamGrad, seconds)
}

func gradOf(v op.Value) *tensor.Tensor {
	switch v := v.(type) {
	case *eager.Var:
		return v.Tensor
	case *tensor.Tensor:
		return v
	}
	return nil
}

// cotangent returns the start of the fill's stream in the shape and dtype of v;
// without one, a single 1 that stands for every element.
func cotangent(f *program.Fill, v *tensor.Tensor) *tensor.Tensor {
	if f.Dist == "" {
		t, err := tensor.Scalar(v.DType(), 1).Expand(v.Shape()...)
		if err != nil {
			panic(err)
		}
		return t
	}
	if v.DType().IsComplex() {
		return shaped(f.Cotangent(2*v.Len()), v)
	}
	t := tensor.Unset(v.DType(), v.Shape(), nil)
	if v.DType() == tensor.F64 {
		f.CotangentInto(tensor.Data[float64](t)[:v.Len()])
	} else {
		f.CotangentOf(t)
	}
	return t
}

// shaped gives a stream the shape and dtype of v; two numbers make a complex one.
func shaped(s []float64, v *tensor.Tensor) *tensor.Tensor {
	t := tensor.Unset(v.DType(), v.Shape(), nil)
	if !v.DType().IsComplex() {
		t.CopyFrom(tensor.OverFloat64s(s).Reshape(v.Shape()...))
		return t
	}
	for i := range t.Len() {
		t.Set(i, complex(s[2*i], s[2*i+1]))
	}
	return t
}
