package shrink

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumb/global"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// lying is how a call of to_global brings a tensor to ranks.
type lying struct {
	of        string // the input; "" for what a call made
	placement global.Placement
	sbp       global.SBP
}

// lyingOf reads a call of to_global, as far as it can be read.
func lyingOf(p *program.Program, c *program.Call) lying {
	var l lying
	if ref, ok := c.Args[0].(program.Ref); ok && inputNamed(p, string(ref)) != nil {
		l.of = string(ref)
	}
	for _, kw := range c.Kwargs {
		text, _ := kw.Value.(string)
		switch kw.Name {
		case "placement":
			l.placement, _ = global.ParsePlacement(text)
		case "sbp":
			l.sbp, _ = global.ParseSBP(text)
		}
	}
	return l
}

// call writes it as a call.
func (l lying) call() program.Call {
	return program.Call{Result: l.of + placedSuffix, Target: program.ToGlobal, Args: []any{program.Ref(l.of)}, Kwargs: []program.Kwarg{{Name: "placement", Value: l.placement.String()}, {Name: "sbp", Value: l.sbp.String()}}}
}

// placedSuffix ends the name of an input that lies on ranks.
const placedSuffix = "_g"

// weights order them: fewer ranks are simpler, the whole before pieces before
// summands, early axes before late ones; uneven counts the splits whose pieces differ.
func (l lying) weights(p *program.Program) (shared, uneven int) {
	shared = 1 + 16*len(l.placement.Ranks) + 8*len(l.placement.Hierarchy)
	for k, e := range l.sbp {
		axis, split := e.Axis()
		switch {
		case split:
			shared += 1 + axis
		case e == op.P:
			shared += 8
		}
		in := inputNamed(p, l.of)
		if split && in != nil && axis < len(in.Shape) && k < len(l.placement.Hierarchy) && in.Shape[axis]%l.placement.Hierarchy[k] != 0 {
			uneven++
		}
	}
	return shared, uneven
}

// sizeOf is the size of a program; over ranks, what says how its inputs lie is
// simpler than what leaves it to the seed.
func (s *search) sizeOf(p *program.Program) size {
	size := sizeOf(p)
	if s.subject.OverRanks {
		size.loose = len(p.Inputs) - len(placedInputs(p))
	}
	return size
}

// placedInputs are how the inputs lie of which the program says it.
func placedInputs(p *program.Program) []lying {
	var all []lying
	for i := range p.Calls {
		if p.Calls[i].Target == program.ToGlobal {
			if l := lyingOf(p, &p.Calls[i]); l.of != "" && len(l.sbp) > 0 && len(l.sbp) == len(l.placement.Hierarchy) && !slices.ContainsFunc(all, func(o lying) bool { return o.of == l.of }) {
				all = append(all, l)
			}
		}
	}
	return all
}

// hierarchies are those that are tried, the simplest first.
var hierarchies = [][]int{{2}, {3}, {4}, {2, 2}}

// spreads bounds what is tried of each hierarchy.
const spreads = 40

// spread says in the program how ranks share its inputs, so that what its seed
// draws decides no longer, the simplest first.
func (s *search) spread() bool {
	if !s.subject.OverRanks || s.size.loose == 0 || len(s.best().Inputs) == 0 {
		return false
	}
	for _, h := range hierarchies {
		p, err := global.NewPlacement("cpu", h)
		if err != nil {
			continue
		}
		for _, all := range waysToLie(s.best(), p) {
			if s.over() {
				return false
			}
			if s.edit(func(p *program.Program) { lay(p, all) }) {
				return true
			}
		}
	}
	return false
}

// waysToLie lists how the inputs may lie, the simplest first.
func waysToLie(prog *program.Program, p global.Placement) [][]lying {
	ways := [][]lying{nil}
	for i := range prog.Inputs {
		in := &prog.Inputs[i]
		var next [][]lying
		for _, way := range ways {
			for _, s := range sbpsOf(in, p) {
				next = append(next, append(slices.Clone(way), lying{in.Name, p, s}))
			}
		}
		weight := func(way []lying) (n int) {
			for _, l := range way {
				shared, _ := l.weights(prog)
				n += shared
			}
			return n
		}
		slices.SortStableFunc(next, func(a, b []lying) int { return cmp.Compare(weight(a), weight(b)) })
		ways = next[:min(len(next), spreads)]
	}
	return ways
}

// sbpsOf lists the sbps that an input may have.
func sbpsOf(in *program.Input, p global.Placement) []global.SBP {
	entries := []op.SBP{op.B}
	for axis := range in.Shape {
		entries = append(entries, op.S(axis))
	}
	if d := in.DType; d != tensor.F16 && d != tensor.BF16 && d != tensor.Bool {
		entries = append(entries, op.P)
	}
	all := []global.SBP{nil}
	for range p.Hierarchy {
		var next []global.SBP
		for _, head := range all {
			for _, e := range entries {
				next = append(next, append(slices.Clone(head), e))
			}
		}
		all = next
	}
	return all
}

// lay puts calls of to_global for inputs before all others, in the place of those
// that the program has for them.
func lay(p *program.Program, all []lying) {
	var calls []program.Call
	for _, l := range all {
		calls = append(calls, l.call())
		at := slices.IndexFunc(p.Calls, func(c program.Call) bool { return c.Target == program.ToGlobal && lyingOf(p, &c).of == l.of })
		if at >= 0 {
			rename(p, program.Ref(p.Calls[at].Result), program.Ref(l.of+placedSuffix))
			p.Calls = slices.Delete(p.Calls, at, at+1)
			continue
		}
		backward := slices.Clone(p.Backward)
		rename(p, program.Ref(l.of), program.Ref(l.of+placedSuffix))
		p.Backward = backward
	}
	p.Calls = append(calls, p.Calls...)
}

// simplifyRanks takes fewer ranks, a simpler sbp of each input, and sizes that
// the ranks divide.
func (s *search) simplifyRanks() bool {
	if !s.subject.OverRanks || s.size.loose > 0 {
		return false
	}
	taken := false
	for _, h := range hierarchies {
		p, err := global.NewPlacement("cpu", h)
		if err != nil || s.edit(func(prog *program.Program) { lay(prog, onto(placedInputs(prog), p)) }) {
			taken = err == nil
			break
		}
	}
	for i := range placedInputs(s.best()) {
		l := placedInputs(s.best())[i]
		for _, sbp := range sbpsOf(inputNamed(s.best(), l.of), l.placement) {
			taken = s.edit(func(p *program.Program) { lay(p, with(placedInputs(p), i, sbp)) }) || taken
		}
	}
	for _, e := range s.splits() {
		taken = s.edit(func(p *program.Program) { grow(p, e.size, e.even) }) || taken
	}
	return taken
}

// onto brings inputs to a placement; what no longer fits its hierarchy is cut.
func onto(all []lying, p global.Placement) []lying {
	for i := range all {
		all[i].placement = p
		for len(all[i].sbp) < len(p.Hierarchy) {
			all[i].sbp = append(all[i].sbp, op.B)
		}
		all[i].sbp = all[i].sbp[:len(p.Hierarchy)]
	}
	return all
}

func with(all []lying, i int, s global.SBP) []lying {
	if i < len(all) {
		all[i].sbp = s
	}
	return all
}

// split is a size that ranks share unevenly, and the next that they share evenly.
type split struct {
	axis, size, even int
}

// splits lists the uneven ones of the best program.
func (s *search) splits() []split {
	var all []split
	for _, l := range placedInputs(s.best()) {
		in := inputNamed(s.best(), l.of)
		for k, e := range l.sbp {
			axis, is := e.Axis()
			if !is || axis >= len(in.Shape) || k >= len(l.placement.Hierarchy) {
				continue
			}
			n, ranks := in.Shape[axis], l.placement.Hierarchy[k]
			if even := (n + ranks - 1) / ranks * ranks; even != n {
				all = append(all, split{axis, n, even})
			}
		}
	}
	return all
}

// grow makes a dimension of all inputs that have it larger, with the integer
// arguments that equal it; literal elements are repeated.
func grow(p *program.Program, from, to int) {
	for i := range p.Inputs {
		in := &p.Inputs[i]
		for axis, d := range in.Shape {
			if d != from {
				continue
			}
			shape := slices.Clone(in.Shape)
			shape[axis] = to
			reshape(in, shape, func(t *tensor.Tensor) *tensor.Tensor {
				out := tensor.New(t.DType(), shape...)
				for at := range to {
					if from > 0 {
						out.Narrow(axis, at, 1, 1).CopyFrom(t.Narrow(axis, at%from, 1, 1))
					}
				}
				return out
			})
		}
	}
	resizeAll(p, from, to, true)
}

// contrast says how the inputs lie of the best program, and which change of it
// makes it right.
func (s *search) contrast() {
	if !s.subject.OverRanks || s.size.loose > 0 || s.result.Record.Program == nil {
		return
	}
	all := placedInputs(s.best())
	if len(all) == 0 {
		return
	}
	s.result.Ranks = "wrong with " + described(s.best(), all)
	right := func(change func(p *program.Program)) bool {
		if s.over() {
			return false
		}
		p := s.best().Clone()
		change(p)
		r, err := s.subject.Judge(s.ctx, p)
		s.result.Runs++
		return err == nil && r.Verdict.Word == verdict.Aligned
	}
	for _, e := range s.splits() {
		if right(func(p *program.Program) { grow(p, e.size, e.even) }) {
			s.result.Ranks += "; right with " + along(e.even, e.axis)
			return
		}
	}
	for i, l := range all {
		whole := global.Broadcast(len(l.sbp))
		if !slices.Equal(whole, l.sbp) && right(func(p *program.Program) { lay(p, with(placedInputs(p), i, whole)) }) {
			s.result.Ranks += fmt.Sprintf("; right with %s %s", l.of, whole)
			return
		}
	}
	one, err := global.NewPlacement("cpu", []int{1})
	if err == nil && right(func(p *program.Program) { lay(p, onto(placedInputs(p), one)) }) {
		s.result.Ranks += "; right with 1 rank"
	}
}

func described(p *program.Program, all []lying) string {
	sizes := make([]string, len(all[0].placement.Hierarchy))
	for k, n := range all[0].placement.Hierarchy {
		sizes[k] = fmt.Sprint(n)
	}
	parts := []string{strings.Join(sizes, "x") + " ranks"}
	for _, l := range all {
		text := fmt.Sprintf("%s %s", l.of, l.sbp)
		for _, e := range l.sbp {
			if axis, split := e.Axis(); split && axis < len(inputNamed(p, l.of).Shape) {
				text += ", " + along(inputNamed(p, l.of).Shape[axis], axis)
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// along names a size by its axis.
func along(n, axis int) string {
	if axis == 0 {
		return fmt.Sprintf("%d rows", n)
	}
	return fmt.Sprintf("%d along axis %d", n, axis)
}

func inputNamed(p *program.Program, name string) *program.Input {
	if i := slices.IndexFunc(p.Inputs, func(in program.Input) bool { return in.Name == name }); i >= 0 {
		return &p.Inputs[i]
	}
	return nil
}
