package interp

import (
	"plumb/backend"
	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/optim"
	"plumb/program"
)

// step reports the modules' parameters after the program's step of SGD. What
// has no gradient stays as it is.
func (r *Run) step(grads autograd.Cotangents) error {
	s := r.job.Program.Step
	if s == (program.Step{}) {
		return nil
	}
	return r.session.Recording(false, func() error {
		for _, m := range r.built {
			st, err := r.stepModule(m.module, grads, s)
			if err != nil {
				return err
			}
			r.report(backend.PartStep, m.name, st)
		}
		return nil
	})
}

// stepModule updates the parameters of a module, each once.
func (r *Run) stepModule(m *nn.Module, grads autograd.Cotangents, s program.Step) (backend.State, error) {
	st := backend.State{}
	seen := map[op.Value]bool{}
	for _, slot := range m.State() {
		v, ok := m.Value(slot.Name).(*eager.Var)
		if slot.Kind != nn.Param || !ok || seen[v] {
			continue
		}
		seen[v] = true
		stepped, err := r.stepParam(v, grads, s)
		if err != nil {
			return nil, err
		}
		st = append(st, backend.Named{Name: slot.Name, Tensor: stepped.Tensor})
	}
	return st, nil
}

func (r *Run) stepParam(v *eager.Var, grads autograd.Cotangents, s program.Step) (*eager.Var, error) {
	g, err := r.leafGrad(v, grads)
	if err != nil || g == nil || !v.RequiresGrad() {
		return v, err
	}
	var stepped op.Value
	err = op.Catch(func() {
		stepped = optim.StepSGD(r.session.Builder(), v, r.session.Leaf(g, false), s.LR, s.Momentum)
	})
	if err != nil {
		return nil, err
	}
	return stepped.(*eager.Var), nil
}
