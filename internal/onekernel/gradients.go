package onekernel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/compare"
	"plumb/program"
)

// differentiate asks for gradients in two of three cases, where the values have some.
func (m *maker) differentiate(c *Case) {
	if c.parts = nil; m.parts != nil {
		c.parts = m.parts
	}
	if m.promises.Grad == nil || *m.promises.Grad {
		c.Grad = c.Regime != NonFinite && c.Regime != Extremes && c.Index%3 != 2
	}
	c.Cotangents = ""
	of, drawn := map[int]Layout{1: Expanded, 4: Transposed}[c.Index%6]
	if drawn && c.Grad && (m.promises.Layouts == nil || slices.Contains(m.promises.Layouts, of)) {
		c.Cotangents = of
	}
}

// turnsOfLeaves is how many cases lie between two in which one argument requires no gradient, as
// data does, and between two in which it is the only one that does, as beside frozen weights. Of a
// problem's model the inputs are such data, all of them.
const turnsOfLeaves, allButOne, onlyOne = 12, 3, 9

// leave takes the gradients of some arguments from a case, by turns.
func (m *maker) leave(c *Case, p *program.Program) {
	var all, data []int
	for i := range p.Inputs {
		if p.Inputs[i].RequiresGrad {
			if all = append(all, i); !c.sig.state(p.Inputs[i].Name) {
				data = append(data, i)
			}
		}
	}
	at := c.Index % turnsOfLeaves
	c.partial = len(all) > 1 && !m.promises.GradGrad && (at == allButOne || at == onlyOne && m.form == nil)
	if !c.partial {
		return
	}
	turn := all[c.Index/turnsOfLeaves%len(all)]
	for _, i := range all {
		leaf := (i != turn) == (at == allButOne)
		if m.form != nil {
			leaf = len(data) == len(all) || !slices.Contains(data, i)
		}
		p.Inputs[i].RequiresGrad = leaf
	}
}

// oneResult is which of turnsOfLeaves cases asks for the gradients of one of several results, as
// where a loss leaves the others out.
const oneResult = 6

// alone is the result whose gradients alone a case asks for, in turn; -1 for all.
func (c *Case) alone() int {
	if len(c.parts) < 2 || c.Index%turnsOfLeaves != oneResult {
		return -1
	}
	return c.Index / turnsOfLeaves % len(c.parts)
}

// backward asks for the gradients of a case's result, or of its parts, each with a
// cotangent of its own, and of the second order where they are promised.
func (m *maker) backward(c *Case, p *program.Program) {
	cotangent := func(k int) program.Fill {
		if c.Cotangents == Expanded {
			return program.Fill{} // ones
		}
		return program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: choice.Derive(c.Key, uint64(1<<32+k))}
	}
	if c.parts == nil {
		p.Backward = []program.Backward{{Value: resultName, Auto: true, Cotangent: cotangent(0)}}
	}
	alone := c.alone()
	for k, path := range c.parts {
		if alone >= 0 && k != alone && !m.promises.GradGrad {
			continue
		}
		of := program.Ref(resultName)
		for depth, i := range path {
			name := fmt.Sprintf("part%d_%d_", k, depth)
			p.Calls = append(p.Calls, program.Call{Result: name, Target: "operator.getitem", Args: []any{of, int64(i)}})
			of = program.Ref(name)
		}
		p.Backward = append(p.Backward, program.Backward{Value: of, Auto: true, Cotangent: cotangent(k)})
	}
	if m.promises.GradGrad {
		p.Second = program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: choice.Derive(c.Key, secondKey)}
	}
}

const secondKey = 1 << 36

// forward leaves the call of a case alone in its program.
func forward(p *program.Program) {
	p.Calls, p.Backward, p.Second = p.Calls[:1], nil, program.Fill{}
}

func (s *Session) withoutGradients(c *Case) {
	c.Grad, c.Cotangents = false, ""
	forward(c.program)
	for i := range c.program.Inputs {
		c.program.Inputs[i].RequiresGrad = false
	}
}

// gradless reports whether the reference takes a case without gradients that it has refused
// with them, as batch_norm does where its running mean requires one; it has none from then on.
func (s *Session) gradless(ctx context.Context, c *Case, ref *backend.Outcome) (bool, error) {
	if !c.Grad || s.cfg.Promises.Grad != nil || s.maker.form != nil || ref.Status != backend.Raised {
		return false, nil
	}
	plain := *c
	plain.program = c.program.Clone()
	s.withoutGradients(&plain)
	o, _, err := s.tryReference(ctx, backend.NewJob(plain.program))
	if err != nil || o.Status != backend.OK {
		return false, err
	}
	if !c.partial {
		s.note("some calls without gradients: the reference gives none there: " + firstLine(ref.Message))
	}
	*c = plain
	return true, nil
}

// parted finds the results that have gradients where the reference has several, and
// reports whether the case is to be run again for theirs. A kernel whose result is of
// another structure is compared without.
func (s *Session) parted(c *Case, r *result) bool {
	if !c.Grad || len(r.ref.Values) == 0 {
		return false
	}
	if n := r.kernel.Call; r.kernel.Status == backend.Raised && n > 0 && n < len(c.program.Calls) {
		s.withoutGradients(c)
		return true
	}
	if r.kernel.Status != backend.OK || c.parts != nil || r.ref.Values[0].Tensor != nil {
		return false
	}
	c.parts = paths(r.ref.Values[0])
	if len(c.parts) == 0 {
		return false
	}
	if s.maker.legal == nil && !c.partial { // its result is always of one structure
		s.maker.parts = c.parts
	}
	return s.maker.rewrite(c) == nil
}

// evenSeconds has gradients of the second order compared where the reference has them:
// one that is nowhere is as good as one of zeros, as a formula may have it.
func (r *result) evenSeconds() {
	for i := range r.kernel.Slots {
		own := &r.kernel.Slots[i]
		at := slices.IndexFunc(r.ref.Slots, func(s backend.Slot) bool { return s.Place == own.Place })
		if own.Part != backend.PartSecondGrad || at < 0 {
			continue
		}
		switch want := r.ref.Slots[at].Tensor; {
		case want == nil:
			own.Tensor = nil
		case own.Tensor == nil && !compare.Any(want, func(v complex128) bool { return v != 0 }):
			own.Tensor = want
		}
	}
}

// paths are the places in a result of the tensors that require a gradient.
func paths(v backend.Value) [][]int {
	found := [][]int{}
	if v.Tensor != nil && v.RequiresGrad {
		found = append(found, nil)
	}
	for i, e := range v.Tuple {
		for _, path := range paths(e) {
			found = append(found, append([]int{i}, path...))
		}
	}
	return found
}

// requiresGrad reports whether any result of a value does.
func requiresGrad(v backend.Value) bool {
	return v.Tensor != nil && v.RequiresGrad || slices.ContainsFunc(v.Tuple, requiresGrad)
}

// gradients looks whether the kernel's results are detached where the reference's
// are not, or some of its gradients end inside. A kernel that is none of PyTorch's own
// operators has no gradients unless they are asked for or it states them itself, nor has
// one in Triton that writes to a copy of an argument: its cases are run without, from
// then on. What results without any were computed by stands, and is not run again.
func (s *Session) gradients(ctx context.Context, c *Case, r *result) (again bool, err error) {
	if !c.Grad || r.kernel.Status != backend.OK || len(r.ref.Values) == 0 || !requiresGrad(r.ref.Values[0]) {
		return false, nil
	}
	if c.partial && !requiresGrad(r.kernel.Values[0]) && !slices.ContainsFunc(r.ref.Slots, tells) { // what it computed goes by none of the arguments left
		s.withoutGradients(c)
		return true, nil
	}
	demanded := s.cfg.Promises.Grad != nil && *s.cfg.Promises.Grad
	if demanded || s.detached {
		return false, nil
	}
	detached := !requiresGrad(r.kernel.Values[0])
	switch {
	case detached:
		if len(r.seen.Operators) > 0 && !r.seen.Foreign || !c.recorded() {
			return false, nil
		}
	case r.seen.Copied && r.seen.Launches > 0:
		if !c.recorded() {
			return false, nil
		}
	case !r.seen.Foreign || r.seen.Formulas || !r.lacksGradients():
		return false, nil
	}
	s.detached = true
	s.withoutGradients(c)
	if detached {
		r.kernel, r.ref = forwardOf(r.kernel), forwardOf(r.ref)
	}
	return !detached, nil
}

// forwardOf is what a run gave before its gradients were asked for.
func forwardOf(o *backend.Outcome) *backend.Outcome {
	own := *o
	own.Values = detach(own.Values[:1])
	own.Slots = slices.DeleteFunc(slices.Clone(own.Slots), func(s backend.Slot) bool {
		return s.Part != backend.PartValue && s.Part != backend.PartChange
	})
	return &own
}

func detach(values []backend.Value) []backend.Value {
	values = slices.Clone(values)
	for i := range values {
		values[i].RequiresGrad, values[i].Tuple = false, detach(values[i].Tuple)
	}
	return values
}

// tells reports whether a gradient is not 0 everywhere.
func tells(s backend.Slot) bool {
	return s.Part == backend.PartGrad && s.Tensor != nil && compare.Any(s.Tensor, func(v complex128) bool { return v != 0 })
}

// lacksGradients reports whether an argument has no gradient that has one of the
// reference's.
func (r *result) lacksGradients() bool {
	return slices.ContainsFunc(r.ref.Slots, func(want backend.Slot) bool {
		return tells(want) &&
			!slices.ContainsFunc(r.kernel.Slots, func(got backend.Slot) bool { return got.Place == want.Place && got.Tensor != nil })
	})
}

// changesLeaf reports whether a call was refused for changing an argument in place that
// requires a gradient.
func changesLeaf(o *backend.Outcome) bool {
	return o.Status == backend.Raised && strings.Contains(o.Message, "leaf Variable that requires grad is being used in an in-place operation")
}
