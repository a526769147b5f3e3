package verdict

import (
	"slices"
	"strings"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// Path is a case in which the reference follows a candidate: each call reads
// what the candidate's earlier calls gave, to the bit. Both sides then go the
// same way at every jump, tie and kink, and each call answers for itself.
//
// Later calls read c − (v.detach() − v) for the result v of a call that is c on
// the candidate: the elements of c, exactly, with the gradient of v. Where v is
// infinite or NaN, they read v if c is the same, else c.
type Path struct {
	Job *backend.Job

	calls []program.Call // of the case
	steps []step         // by call of the path
}

// step says what a call of a path is: call at of the case, or one that follows
// it and has the candidate's result, or the reference's where it has none.
type step struct {
	at    int
	own   bool
	value *backend.Value
}

// Along returns the path of a candidate that a verdict blames, or that passes by a wide bound
// alone: see Verdict.Wide. There is none,
// and it is nil, where the program has modules, changes in place, gradients of
// the second order, reads of gradients, or draws; nor where the sides agree in
// every bit before what is blamed. A tolerance that the test gives is then one of
// each call.
func Along(job *backend.Job, ref, cand *backend.Outcome, v *Verdict) *Path {
	at := v.Where
	if v.Word == Aligned {
		at = v.Wide
	} else if v.Word != Misaligned {
		return nil
	}
	if at == nil || v.Drawn > 0 || !followable(job.Program) || !differsBefore(at.Call, ref, cand) {
		return nil
	}
	p := *job.Program
	p.Inputs, p.Calls = slices.Clone(p.Inputs), nil
	f := &follower{
		Path: &Path{Job: &backend.Job{Program: &p, Inputs: slices.Clone(job.Inputs)}, calls: job.Program.Calls},
		read: map[program.Ref]program.Ref{},
	}
	for i, c := range job.Program.Calls {
		f.call(i, c)
		if i < len(cand.Values) {
			var want *tensor.Tensor
			if i < len(ref.Values) {
				want = ref.Values[i].Tensor
			}
			f.follow(i, program.Ref(c.Result), &cand.Values[i], want)
		}
	}
	return f.Path
}

// followable reports whether every call is a function of its arguments alone.
func followable(p *program.Program) bool {
	if p.Second.Dist != "" || p.Shapes {
		return false
	}
	return !slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return program.IsModule(c.Target) || strings.HasPrefix(c.Target, "Module.") || inPlace(&c) || readsGradient(&c) || len(c.Scopes) > 0
	})
}

// differsBefore reports whether a result of a call before the given one has
// other bits on the two sides.
func differsBefore(call int, ref, cand *backend.Outcome) bool {
	for i := range min(call, len(ref.Values), len(cand.Values)) {
		if !sameBits(&ref.Values[i], &cand.Values[i]) {
			return true
		}
	}
	return false
}

// follower writes a path.
type follower struct {
	*Path
	read map[program.Ref]program.Ref // what later calls read for a name
}

// call adds call i of the case, its arguments what the candidate had.
func (f *follower) call(i int, c program.Call) {
	on := func(r program.Ref) any {
		if other, ok := f.read[r]; ok {
			return other
		}
		return r
	}
	args, kwargs := slices.Clone(c.Args), slices.Clone(c.Kwargs)
	for k, a := range args {
		args[k] = program.MapRefs(a, on)
	}
	for k, kw := range kwargs {
		kwargs[k].Value = program.MapRefs(kw.Value, on)
	}
	c.Args, c.Kwargs = args, kwargs
	f.add(c, step{at: i, own: true})
}

func (f *follower) add(c program.Call, s step) program.Ref {
	f.Job.Program.Calls = append(f.Job.Program.Calls, c)
	f.steps = append(f.steps, s)
	return program.Ref(c.Result)
}

func (f *follower) input(name program.Ref, t *tensor.Tensor) program.Ref {
	f.Job.Program.Inputs = append(f.Job.Program.Inputs, literal(string(name), t))
	f.Job.Inputs = append(f.Job.Inputs, t)
	return name
}

// literal describes an input that is a tensor.
func literal(name string, t *tensor.Tensor) program.Input {
	in := program.Input{Name: name, DType: t.DType(), Shape: t.Shape(), Fill: program.Fill{Dist: program.Literal, Data: t.Contiguous()}}
	if !t.IsContiguous() {
		in.Strides = t.Strides()
	}
	return in
}

// follow lets later calls read the candidate's result of call i, where the
// reference has want, if it came so far.
func (f *follower) follow(i int, name program.Ref, got *backend.Value, want *tensor.Tensor) {
	if got.Tensor == nil {
		return
	}
	own := f.input(name+"_own", got.Tensor)
	if !got.Tensor.DType().IsDifferentiable() {
		f.read[name] = own
		return
	}
	add := func(suffix program.Ref, v *backend.Value, target string, args ...any) program.Ref {
		return f.add(program.Call{Result: string(name + suffix), Target: target, Args: args}, step{at: i, value: v})
	}
	detached := add("_detached", nil, "Tensor.detach", name)
	zero := add("_zero", nil, "torch.sub", detached, name)
	moved, kept := masks(got.Tensor, want)
	if moved == nil {
		f.read[name] = add("_on", got, "torch.sub", own, zero)
		return
	}
	on := add("_on", nil, "torch.sub", own, zero)
	rest := add("_rest", nil, "torch.where", f.input(name+"_kept", kept), name, own)
	f.read[name] = add("_path", got, "torch.where", f.input(name+"_moved", moved), on, rest)
}

// masks tell the elements that both sides have finite, from which what is read
// may be moved to the candidate's, and those of which the candidate has an
// infinity or NaN that the reference has too, or may have on the path, where it
// was finite off it; nil where all are of the first kind.
func masks(got, want *tensor.Tensor) (moved, kept *tensor.Tensor) {
	if want == nil || want.Len() != got.Len() {
		want = got
	}
	moved, kept = tensor.New(tensor.Bool, got.Shape()...), tensor.New(tensor.Bool, got.Shape()...)
	all := true
	for k := range got.Len() {
		g, w := got.At(k), want.At(k)
		switch {
		case !nonFinite(w) && !nonFinite(g):
			moved.Set(k, 1)
			continue
		case !nonFinite(w):
			kept.Set(k, 1)
		case kindOf(real(g)) == kindOf(real(w)) && kindOf(imag(g)) == kindOf(imag(w)):
			kept.Set(k, 1)
		}
		all = false
	}
	if all {
		return nil, nil
	}
	return moved, kept
}

// Lift returns the candidate's outcome as one of the path, of which ref is the
// reference's.
func (p *Path) Lift(ref, cand *backend.Outcome) *backend.Outcome {
	out := cand.Without(func(part backend.Part) bool { return part == backend.PartChange })
	out.Values, out.Watched = nil, false
	if cand.Status == backend.Raised {
		out.Call = p.callOf(cand.Call)
	}
	for k, s := range p.steps {
		switch {
		case s.at >= len(cand.Values):
			return out
		case s.own:
			out.Values = append(out.Values, cand.Values[s.at])
		case s.value != nil:
			out.Values = append(out.Values, *s.value)
		case k < len(ref.Values):
			out.Values = append(out.Values, ref.Values[k])
		default:
			out.Values = append(out.Values, cand.Values[s.at])
		}
	}
	return out
}

// callOf returns the call of the path that is call i of the case.
func (p *Path) callOf(i int) int {
	for k, s := range p.steps {
		if s.own && s.at == i {
			return k
		}
	}
	return len(p.steps)
}

// Settle returns the verdict on the case: what v blames, unless the verdict on
// the path finds nothing, a known fault, or another call to blame; where v blames
// nothing, a value that is wrong on the path.
func (p *Path) Settle(v, on *Verdict) *Verdict {
	w := *v
	if v.Word == Aligned {
		if on.Word != Misaligned || on.Where == nil || on.Where.Part != backend.PartValue || on.Kind != Kind(backend.PartValue) || p.where(*on.Where) == nil {
			return v
		}
		w.Word, w.Kind, w.Where, w.Differences = Misaligned, on.Kind, p.where(*on.Where), p.differences(on.Differences)
		w.Reason = w.Differences[0].reason() + " (both sides given what the candidate computed before)"
		w.Worst, w.WorstAt, w.Margins = on.Worst, p.margin(on.WorstAt), p.margins(on.Margins)
		return &w
	}
	switch on.Word {
	case Aligned, Rejected, Known:
		w.Word, w.Reason, w.Inherited = on.Word, on.Reason, v.Where
		if on.Word != Known {
			w.Kind, w.Where, w.Differences = "", nil, nil
		}
		w.Worst, w.WorstAt, w.Margins, w.Settled = on.Worst, p.margin(on.WorstAt), p.margins(on.Margins), on.Settled
		return &w
	case Misaligned:
		if at := p.where(*on.Where); at != nil && (at.Name != v.Where.Name || on.Kind != v.Kind) {
			w.Kind, w.Where, w.Differences = on.Kind, at, p.differences(on.Differences)
			w.Reason = w.Differences[0].reason() + " (both sides given what the candidate computed before)"
			return &w
		}
	}
	return v
}

// where returns the place in the case; nil for a call that follows one.
func (p *Path) where(w Where) *Where {
	switch {
	case w.Call >= len(p.steps):
		w.Call = len(p.calls)
	case !p.steps[w.Call].own:
		return nil
	default:
		w.Call = p.steps[w.Call].at
		w.Line = p.calls[w.Call].String()
	}
	return &w
}

func (p *Path) differences(on []Difference) []Difference {
	var list []Difference
	for _, d := range on {
		if at := p.where(d.Where); at != nil {
			d.Where = *at
			list = append(list, d)
		}
	}
	return list
}

func (p *Path) margin(m *Margin) *Margin {
	if m == nil {
		return nil
	}
	at := p.where(Where{Call: m.Call})
	if at == nil {
		return nil
	}
	own := *m
	own.Call = at.Call
	return &own
}

func (p *Path) margins(on []Margin) []Margin {
	var list []Margin
	for i := range on {
		if m := p.margin(&on[i]); m != nil {
			list = append(list, *m)
		}
	}
	return list
}
