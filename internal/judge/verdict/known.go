package verdict

import (
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
	// Signal, where set, is that by which the candidate ends, for a crash.
	Signal string
	// Ends, where set, is how the reference ends where one side alone raises.
	Ends backend.Status
	// Rule, where set, is the rule of comparison that is broken.
	Rule   compare.Rule
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
// candidate explains it.
func Excused(v *Verdict, p *program.Program, ref *backend.Outcome, candidate backend.Info, faults []CandidateFault) *Verdict {
	if len(faults) == 0 || v.Word != Crash && (v.Word != Misaligned || v.Where == nil) {
		return v
	}
	j := newJudge(p, ref, ref, Policy{})
	j.v, j.wholeProgram = v, true
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
		explains := f.explains
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
	if j.v.Candidate == nil || j.v.OfReference || !slices.Contains(f.Kinds, Crashes) {
		return false
	}
	line, _, _ := strings.Cut(j.v.Candidate.Message, "\n")
	_, target, named := strings.Cut(line, " in ")
	return named && (f.Signal == "" || f.Signal == j.v.Candidate.Class) && sameOperator(target, f.Target) && (f.When == nil || f.When(j.p))
}

// known returns the fault that explains the verdict; nil when none does. It
// must lie in the call that diverges first.
func (j *judge) known() *KnownFault {
	w := j.v.Where
	if j.v.Word != Misaligned || w == nil {
		return nil
	}
	for i := range j.policy.Faults {
		f := &j.policy.Faults[i]
		if f.explains(j, w) && f.concerns(j.policy.Reference) { // few are of the call, and versions are text
			return f
		}
	}
	return nil
}

func (f *KnownFault) explains(j *judge, w *Where) bool {
	kind := j.v.Kind
	if _, ok := j.gradientOf(w); ok && kind == Kind(backend.PartValue) {
		kind = Kind(backend.PartGrad)
	}
	if !slices.Contains(f.Kinds, kind) || !f.answers(j, w) || f.Shows != nil && !f.shows(j, w) ||
		f.Ends != "" && j.ref.Status != f.Ends || f.Rule != "" && j.v.Differences[0].Diff.Rule != f.Rule {
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

// shows reports whether the reference's first element that differs is one that
// the fault gives.
func (f *KnownFault) shows(j *judge, w *Where) bool {
	t, at := At(j.ref, *w), j.v.Differences[0].Diff.First
	if t == nil || len(at) != t.Dim() || t.Len() == 0 {
		return false
	}
	i := 0
	for d, n := range t.Shape() {
		i = i*n + at[d]
	}
	return f.Shows(t.At(i))
}

// answers reports whether the fault's operator is that of the place, called as
// the fault demands; a gradient, or an exception on its way, may come from any
// call of it that follows from what is differentiated.
func (f *KnownFault) answers(j *judge, w *Where) bool {
	if f.Target == "" {
		return f.When == nil || f.When(j.p)
	}
	name, gradient := j.gradientOf(w)
	if w.Target != "" && !gradient {
		return sameOperator(j.operator(w), f.Target) && (f.When == nil || f.When(j.singleCall(w.Call)))
	}
	behind := j.behind(name)
	for i, c := range j.p.Calls {
		if j.applies(&c, f.Target) && behind[c.Result] && (f.When == nil || f.When(j.singleCall(i))) {
			return true
		}
	}
	return false
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
