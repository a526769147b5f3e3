package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// KnownFault is a fault of the reference that has been proved: where it shows,
// a misalignment is not held against the candidate.
type KnownFault struct {
	Reference string       // name and versions, such as "torch >=1.13 <2.9"
	Target    string       // of the call that goes wrong: a suffix of the public name, such as "conv_transpose2d"
	DType     tensor.DType // that takes part in the call; Invalid for any
	Kinds     []Kind       // of misalignment
	// When narrows the calls in which it shows; nil does not. It is asked of a
	// program of the call alone, on the reference's values, where one can be made,
	// else of the whole program.
	When func(*program.Program) bool
	// Shows narrows what the reference has at the first element that differs, for
	// a fault by which it has a NaN or an infinity; nil does not.
	Shows func(reference complex128) bool
	// Gives narrows what the candidate has at the elements that differ, where its outcome
	// is at hand; nil does not.
	Gives func(candidate complex128) bool
	// Signal, where set, is that by which the candidate ends, for a crash.
	Signal string
	// Ends, where set, is how the side that has the fault ends where one alone raises.
	Ends backend.Status
	// Rule, where set, is the rule of comparison that is broken.
	Rule compare.Rule
	// Says, where set, is what the candidate's message has in it, of one that raises.
	Says string
	// Within, where above 0, is the largest error of the tensor that differs, by
	// the reference's elements: beyond it is another fault.
	Within float64
	// By gives the argument of a call by which the gradient is wrong, or that is
	// changed to what is wrong; nil stands for any.
	By func(*program.Call) (program.Ref, bool)
	// Places narrows which elements differ, of a tensor of a shape: of a program
	// of the call, as When is asked. Where it returns nil, each of them may.
	Places func(p *program.Program, shape []int) func(i int) bool
	Reason string
	// Proof is Python that imports nothing: its last line is True where the fault
	// is there, and False where it is not. What it may use is written in package
	// proof.
	Proof string
}

// CandidateFault is a fault of a candidate that has been proved, and that is
// not the subject of a run: of PyTorch's own graphs. Reference, of the fault,
// is the candidate's name and versions; Modes are its modes, empty for all; an
// empty Target stands for every operator.
type CandidateFault struct {
	Modes []string
	KnownFault
}

// Excused returns the verdict, or Known in its place where a fault of the
// candidate explains it. Where the candidate's outcome is given, Shows and Places
// are of each element that differs, else of the first.
func Excused(v *Verdict, p *program.Program, ref, cand *backend.Outcome, candidate backend.Info, faults []CandidateFault) *Verdict {
	if len(faults) == 0 || v.Word != Crash && (v.Word != Misaligned || v.Where == nil) {
		return v
	}
	j := newJudge(p, ref, ref, Policy{})
	j.v = v
	if ref != nil {
		for i, c := range p.Calls[:min(len(p.Calls), len(ref.Values))] { // nothing was compared here
			if t := ref.Values[i].Tensor; t != nil {
				j.dtypes[c.Result] = t.DType()
			}
		}
	}
	is := candidate.Name + " " + candidate.Version
	for i := range faults {
		f := &faults[i]
		j.wholeProgram = len(f.Modes) > 0
		explains := func(j *judge, w *Where) bool { return f.explains(j, w, cand) }
		if v.Word == Crash {
			explains = f.crashes
		}
		if (len(f.Modes) == 0 || slices.Contains(f.Modes, candidate.Own())) && explains(j, v.Where) && f.concerns(is) {
			known := *v
			known.Word, known.Reason = Known, fmt.Sprintf("%s (%s %s); %s", f.Reason, f.Reference, candidate.Own(), v.Reason)
			return &known
		}
	}
	return v
}

// crashes reports whether the fault is a crash of the call in which the candidate
// ended, whose name its message has: a place of it there is none.
func (f *KnownFault) crashes(j *judge, _ *Where) bool {
	return !j.v.OfReference && f.ends(j, j.v.Candidate)
}

// ends reports whether the fault is the crash by which a side ended: in a call, which the
// message names, or in the backward pass of a program that has one, of a fault of gradients too.
func (f *KnownFault) ends(j *judge, side *Side) bool {
	if side == nil || !slices.Contains(f.Kinds, Crashes) {
		return false
	}
	line, _, _ := strings.Cut(side.Message, "\n")
	_, target, named := strings.Cut(line, " in ")
	is := sameOperator(target, f.Target)
	if target == "the backward pass" && slices.Contains(f.Kinds, Kind(backend.PartGrad)) {
		is = slices.ContainsFunc(j.p.Calls, func(c program.Call) bool { return sameOperator(c.Target, f.Target) })
	}
	return named && is && (f.Signal == "" || f.Signal == side.Class) && (f.When == nil || f.When(j.p))
}

// known returns the fault that explains the verdict; nil when none does. It
// must lie in the call that diverges first, or in which the reference died.
func (j *judge) known() *KnownFault {
	w, died := j.v.Where, j.v.Word == Crash && j.v.OfReference
	if !died && (j.v.Word != Misaligned || w == nil) {
		return nil
	}
	for i := range j.policy.Faults {
		f := &j.policy.Faults[i]
		if (died && f.ends(j, j.v.Reference) || !died && f.explains(j, w, nil)) && f.concerns(j.policy.Reference) { // few are of the call, and versions are text
			return f
		}
	}
	return nil
}

// explains is told the candidate's outcome where all that differs is to be looked at.
func (f *KnownFault) explains(j *judge, w *Where, cand *backend.Outcome) bool {
	kind, owner := j.v.Kind, cmp.Or(cand, j.ref)
	if _, ok := j.gradientOf(w); ok && kind == Kind(backend.PartValue) {
		kind = Kind(backend.PartGrad)
	}
	if !slices.Contains(f.Kinds, kind) || !f.answers(j, w, cand) || f.Shows != nil && !f.shows(j, w, cand) || f.Gives != nil && !f.gives(j, w, cand) ||
		f.Ends != "" && owner.Status != f.Ends || f.Rule != "" && j.v.Differences[0].Diff.Rule != f.Rule ||
		f.Says != "" && (j.v.Candidate == nil || !strings.Contains(j.v.Candidate.Message, f.Says)) || f.Within > 0 && !f.isWithin(j.v) {
		return false
	}
	if f.DType == tensor.Invalid || j.p.DType == f.DType {
		return true
	}
	if w.Call >= len(j.p.Calls) { // of a gradient, what it belongs to
		return j.dtypes[w.Name] == f.DType
	}
	takesPart := false
	j.p.Calls[w.Call].EachRef(func(r program.Ref) { takesPart = takesPart || j.dtypes[string(r)] == f.DType })
	return takesPart
}

// isWithin reports whether numbers alone differ, by no more than the fault makes them.
func (f *KnownFault) isWithin(v *Verdict) bool {
	return len(v.Differences) > 0 && v.Differences[0].Diff.Rule == compare.Distance && float64(v.Differences[0].Diff.MaxRel) <= f.Within
}

// shows reports whether the reference's elements that differ are such as the fault
// gives.
func (f *KnownFault) shows(j *judge, w *Where, cand *backend.Outcome) bool {
	t, all := j.differing(w, cand)
	return len(all) > 0 && !slices.ContainsFunc(all, func(i int) bool { return !f.Shows(t.At(i)) })
}

// gives reports whether the candidate's elements that differ are such as the fault gives.
func (f *KnownFault) gives(j *judge, w *Where, cand *backend.Outcome) bool {
	if cand == nil {
		return true
	}
	got := At(cand, *w)
	_, all := j.differing(w, cand)
	return got != nil && !slices.ContainsFunc(all, func(i int) bool { return i < got.Len() && !f.Gives(got.At(i)) })
}

// differing returns the reference's tensor and the elements that differ: of a
// candidate's outcome all, without it the first.
func (j *judge) differing(w *Where, cand *backend.Outcome) (t *tensor.Tensor, all []int) {
	if len(j.v.Differences) == 0 {
		return nil, nil
	}
	d := &j.v.Differences[0]
	t = At(j.ref, *w)
	if got := At(cand, *w); t != nil && got != nil && t.DType() == got.DType() && slices.Equal(t.Shape(), got.Shape()) {
		over := compare.Over(t, got, d.Limit)
		for i := range t.Len() {
			if over(i) {
				all = append(all, i)
			}
		}
	}
	at := d.Diff.First
	if len(all) > 0 || t == nil || len(at) != t.Dim() || t.Len() == 0 {
		return t, all
	}
	i := 0
	for d, n := range t.Shape() {
		i = i*n + at[d]
	}
	return t, []int{i}
}

// answers reports whether the fault's operator is that of the place, called as
// the fault demands; a gradient, or an exception on its way, may come from any
// call of it that follows from what is differentiated.
func (f *KnownFault) answers(j *judge, w *Where, cand *backend.Outcome) bool {
	if f.Target == "" {
		return f.When == nil || f.When(j.p)
	}
	name, gradient := j.gradientOf(w)
	if w.Target != "" && !gradient {
		changed := map[string]bool{w.Name: true}
		return sameOperator(j.operator(w), f.Target) && (f.By == nil || f.by(&j.p.Calls[w.Call], changed)) && f.shownBy(j, w, w.Call, cand)
	}
	behind := j.behind(name)
	for i, c := range j.p.Calls {
		if j.applies(&c, f.Target) && behind[c.Result] && f.by(&c, behind) && f.shownBy(j, w, i, cand) {
			return true
		}
	}
	return false
}

// by reports whether an argument by which the gradient is wrong is one of those that
// follow from what is differentiated, or are changed.
func (f *KnownFault) by(c *program.Call, behind map[string]bool) bool {
	if f.By == nil {
		return true
	}
	r, ok := f.By(c)
	return ok && behind[string(r)]
}

// shownBy reports whether a call, and the elements that differ, are such as the fault
// demands.
func (f *KnownFault) shownBy(j *judge, w *Where, call int, cand *backend.Outcome) bool {
	if f.When == nil && f.Places == nil {
		return true
	}
	p := j.singleCall(call)
	if f.When != nil && !f.When(p) {
		return false
	}
	if f.Places == nil {
		return true
	}
	t, all := j.differing(w, cand)
	if t == nil {
		return true
	}
	fits := f.Places(p, t.Shape())
	return fits == nil || !slices.ContainsFunc(all, func(i int) bool { return !fits(i) })
}

// operator returns what a place's call computes: of x.imag, imag.
func (j *judge) operator(w *Where) string {
	if w.Target == "getattr" && w.Call < len(j.p.Calls) && len(j.p.Calls[w.Call].Args) > 1 {
		if name, ok := j.p.Calls[w.Call].Args[1].(string); ok {
			return name
		}
	}
	return w.Target
}

// gradientOf returns whose gradient is at a place, "" for any; false where it is
// a value that no pass backward gave.
func (j *judge) gradientOf(w *Where) (name string, ok bool) {
	if w.Part != backend.PartValue || w.Call >= len(j.p.Calls) {
		return w.Name, w.Target == ""
	}
	c := &j.p.Calls[w.Call]
	if readsGradient(c) {
		r, _ := first(c).(program.Ref)
		return string(r), true
	}
	return "", c.Target == "torch.autograd.grad"
}

// applies reports whether a call is one of an operator, or of a module that is
// made of it.
func (j *judge) applies(c *program.Call, name string) bool {
	if sameOperator(c.Target, name) {
		return true
	}
	module, ok := first(c).(program.Ref)
	return ok && strings.HasPrefix(c.Target, "Module.") && j.holds(module, name)
}

// holds reports whether a module is one of an operator, or has one in it.
func (j *judge) holds(module program.Ref, name string) (found bool) {
	for i := range j.p.Calls {
		if c := &j.p.Calls[i]; c.Result == string(module) && program.IsModule(c.Target) {
			found = sameOperator(c.Target, name)
			c.EachRef(func(r program.Ref) { found = found || j.holds(r, name) })
		}
	}
	return found
}

// OperatorName is the name by which the forms of an operator are equal, as a
// function, a method or a module: "convtranspose2d" for torch.nn.ConvTranspose2d
// and torch.conv_transpose2d.
func OperatorName(target string) string {
	last := target[strings.LastIndexByte(target, '.')+1:]
	return strings.ToLower(strings.ReplaceAll(last, "_", ""))
}

func sameOperator(target, name string) bool { return OperatorName(target) == OperatorName(name) }
