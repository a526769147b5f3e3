package shrink

import (
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// forwardOnly removes what comes after a difference in a value: later calls,
// and gradients.
func (s *search) forwardOnly() bool {
	w := s.result.Record.Verdict.Where
	if w == nil || w.Part != backend.PartValue && w.Part != backend.PartChange {
		return false
	}
	whole := s.edit(func(p *program.Program) {
		p.Calls = p.Calls[:min(w.Call+1, len(p.Calls))]
		p.Backward, p.Second, p.Step = nil, program.Fill{}, program.Step{}
		for i := range p.Inputs {
			p.Inputs[i].RequiresGrad = false
		}
	})
	return whole || s.edit(func(p *program.Program) { p.Backward, p.Second, p.Step = nil, program.Fill{}, program.Step{} })
}

// dropBackward removes each request for gradients.
func (s *search) dropBackward() bool {
	taken := s.edit(func(p *program.Program) { p.Second = program.Fill{} })
	taken = s.edit(func(p *program.Program) { p.Step = program.Step{} }) || taken
	for i := len(s.best().Backward) - 1; i >= 0; i-- {
		taken = s.edit(func(p *program.Program) { p.Backward = slices.Delete(p.Backward, i, i+1) }) || taken
	}
	return taken
}

// dropDead removes, together and then one by one, the calls and inputs on which
// neither the difference nor a gradient depends.
func (s *search) dropDead() bool {
	taken := s.edit(func(p *program.Program) { dropDead(p, s.result.Record.Verdict.Where) })
	for i := len(s.best().Calls) - 1; i >= 0; i-- {
		if i < len(s.best().Calls) && !used(s.best(), s.best().Calls[i].Result) {
			taken = s.edit(func(p *program.Program) { p.Calls = slices.Delete(p.Calls, i, i+1) }) || taken
		}
	}
	for i := len(s.best().Inputs) - 1; i >= 0; i-- {
		if !used(s.best(), s.best().Inputs[i].Name) {
			taken = s.edit(func(p *program.Program) { p.Inputs = slices.Delete(p.Inputs, i, i+1) }) || taken
		}
	}
	return taken
}

// dropDead keeps what the values of backward, and the place of the difference,
// need; what changes a kept value in place is kept too.
func dropDead(p *program.Program, at *verdict.Where) {
	live := map[program.Ref]bool{}
	keep := func(r program.Ref) { live[r] = true }
	for _, b := range p.Backward {
		keep(b.Value)
	}
	if at != nil {
		if at.Call < len(p.Calls) {
			keep(program.Ref(p.Calls[at.Call].Result))
		}
		name, _, _ := strings.Cut(at.Name, ".")
		keep(program.Ref(name))
	}
	for i := len(p.Calls) - 1; i >= 0; i-- {
		c := &p.Calls[i]
		touches := live[program.Ref(c.Result)]
		if r, ok := receiver(c).(program.Ref); ok && op.InPlace(c.Target) {
			touches = touches || live[r]
		}
		if touches {
			keep(program.Ref(c.Result))
			c.EachRef(keep)
		}
	}
	p.Calls = slices.DeleteFunc(p.Calls, func(c program.Call) bool { return !live[program.Ref(c.Result)] })
	p.Inputs = slices.DeleteFunc(p.Inputs, func(in program.Input) bool { return !live[program.Ref(in.Name)] })
}

func receiver(c *program.Call) any {
	if len(c.Args) == 0 {
		return nil
	}
	return c.Args[0]
}

func used(p *program.Program, name string) bool {
	found := slices.ContainsFunc(p.Backward, func(b program.Backward) bool { return string(b.Value) == name })
	for i := range p.Calls {
		p.Calls[i].EachRef(func(r program.Ref) { found = found || string(r) == name })
	}
	return found
}

// maxCut bounds the elements of a value that becomes an input.
const maxCut = 4096

// cutCalls removes calls that others use: their result becomes an input with
// the reference's value, or is replaced by what it was computed from.
func (s *search) cutCalls() bool {
	taken := false
	for i := len(s.best().Calls) - 1; i >= 0; i-- {
		if i < len(s.best().Calls) && (s.cutToInput(i) || s.bypass(i)) {
			taken = true
		}
	}
	return taken
}

func (s *search) cutToInput(i int) bool {
	r := s.result.Record
	if i >= len(r.Reference.Values) || r.Reference.Values[i].Tensor == nil || r.Reference.Values[i].Tensor.Len() > maxCut {
		return false
	}
	v := r.Reference.Values[i]
	cut := func(grad bool) bool {
		return s.edit(func(p *program.Program) {
			in := program.Input{Name: p.Calls[i].Result, DType: v.Tensor.DType(), Shape: slices.Clone(v.Tensor.Shape()), RequiresGrad: grad}
			in.Fill = program.Fill{Dist: program.Literal, Data: v.Tensor.Contiguous()}
			if !v.Tensor.IsContiguous() && v.Tensor.Len() > 0 {
				in.Strides = slices.Clone(v.Tensor.Strides())
			}
			p.Inputs = append(p.Inputs, in)
			p.Calls = slices.Delete(p.Calls, i, i+1)
			dropDead(p, movedUp(r.Verdict.Where, i))
		})
	}
	return cut(false) || v.RequiresGrad && v.Tensor.DType().IsDifferentiable() && cut(true)
}

// movedUp returns the place of the difference once call i is gone.
func movedUp(w *verdict.Where, i int) *verdict.Where {
	if w == nil || w.Call < i {
		return w
	}
	moved := *w
	moved.Call--
	if w.Call == i {
		moved.Call = 1 << 30
	}
	return &moved
}

// bypass uses an argument of call i in the place of its result.
func (s *search) bypass(i int) bool {
	c := &s.best().Calls[i]
	if !used(s.best(), c.Result) {
		return false
	}
	var args []program.Ref
	c.EachRef(func(r program.Ref) { args = append(args, r) })
	for _, r := range args {
		taken := s.edit(func(p *program.Program) {
			result := program.Ref(p.Calls[i].Result)
			p.Calls = slices.Delete(p.Calls, i, i+1)
			rename(p, result, r)
			dropDead(p, movedUp(s.result.Record.Verdict.Where, i))
		})
		if taken {
			return true
		}
	}
	return false
}

func rename(p *program.Program, from, to program.Ref) {
	swap := func(r program.Ref) any {
		if r == from {
			return to
		}
		return r
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		for k := range c.Args {
			c.Args[k] = program.MapRefs(c.Args[k], swap)
		}
		for k := range c.Kwargs {
			c.Kwargs[k].Value = program.MapRefs(c.Kwargs[k].Value, swap)
		}
	}
	for i := range p.Backward {
		if p.Backward[i].Value == from {
			p.Backward[i].Value = to
		}
	}
}

// plainInputs gives inputs the usual layout and dtype and takes their
// gradients away, all at once and then each.
func (s *search) plainInputs() bool {
	taken := s.edit(func(p *program.Program) {
		for i := range p.Inputs {
			p.Inputs[i].Strides = nil
		}
	})
	taken = s.edit(usualDTypes) || taken
	for i := range s.best().Inputs {
		taken = s.edit(func(p *program.Program) { p.Inputs[i].Strides = nil }) || taken
		taken = s.edit(func(p *program.Program) { p.Inputs[i].RequiresGrad = false }) || taken
	}
	return taken
}

// usualDTypes computes in float32, complex64 and int64.
func usualDTypes(p *program.Program) {
	usual := func(d tensor.DType) tensor.DType {
		switch {
		case d == tensor.F64:
			return tensor.F32
		case d == tensor.C128:
			return tensor.C64
		case d.IsInt():
			return tensor.I64
		}
		return d
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		in.DType = usual(in.DType)
		if in.Fill.Dist == program.Literal {
			in.Fill.Data = in.Fill.Data.Convert(in.DType)
		}
	}
	if p.DType == tensor.F64 {
		p.DType = tensor.Invalid
	}
}
