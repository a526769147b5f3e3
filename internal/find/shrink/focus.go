package shrink

import (
	"slices"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

// focus keeps of the inputs what lies at the worst element of the difference:
// along all of its axes, then along each. An input has an axis where it has the
// size, counted from the end.
func (s *search) focus() bool {
	v := s.result.Record.Verdict
	if len(v.Differences) == 0 {
		return false
	}
	worst := v.Differences[0].Diff.Worst
	t := verdict.At(s.result.Record.Reference, v.Differences[0].Where)
	if t == nil || len(worst) == 0 || len(worst) != t.Dim() {
		return false
	}
	shape := t.Shape()
	whole := s.edit(func(p *program.Program) {
		for axis := range shape {
			keepEntry(p, axis-len(shape), shape[axis], worst[axis])
		}
	})
	if whole {
		return true
	}
	taken := false
	for axis := range shape {
		taken = s.edit(func(p *program.Program) { keepEntry(p, axis-len(shape), shape[axis], worst[axis]) }) || taken
	}
	return taken
}

// keepEntry keeps entry at of the inputs that have n of them along an axis,
// counted from the end.
func keepEntry(p *program.Program, axis, n, at int) {
	for i := range p.Inputs {
		in := &p.Inputs[i]
		a := len(in.Shape) + axis
		if n < 2 || a < 0 || in.Shape[a] != n {
			continue
		}
		shape := slices.Clone(in.Shape)
		shape[a] = 1
		data := in.Materialize().Narrow(a, at, 1, 1).Contiguous()
		if in.Strides != nil {
			in.Strides = likewise(in.Strides, shape)
		}
		in.Shape, in.Fill = shape, program.Fill{Dist: program.Literal, Data: data}
	}
}
