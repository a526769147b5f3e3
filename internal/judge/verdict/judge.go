package verdict

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/refusal"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

type judge struct {
	p         *program.Program
	ref, cand *backend.Outcome
	policy    Policy
	rtol      *float64
	atol      *float64
	v         *Verdict

	same         map[string]bool         // names whose value has the same bits on both sides
	dtypes       map[string]tensor.DType // of inputs and tensor results, as the reference has them
	from         map[string]tensor.DType // the least precise dtype that a name was computed from
	coarsest     tensor.DType            // of from
	modules      map[string]string       // constructor's target by module name
	places       []backend.Place         // of the slots of both sides
	current      comparison              // which is being settled; one place of memory for all
	random       drawn
	wholeProgram bool   // faults look at the whole program, not at one call
	aliased      string // why what follows a change in place is not compared
}

func newJudge(p *program.Program, ref, cand *backend.Outcome, policy Policy) *judge {
	j := &judge{
		p: p, ref: ref, cand: cand, policy: policy, rtol: p.RTol, atol: p.ATol, v: &Verdict{},
		same: map[string]bool{}, dtypes: map[string]tensor.DType{}, from: map[string]tensor.DType{}, modules: map[string]string{},
	}
	if policy.RTol != nil {
		j.rtol = policy.RTol
	}
	if policy.ATol != nil {
		j.atol = policy.ATol
	}
	if policy.Default {
		j.rtol, j.atol = nil, nil
	}
	if ref != nil && ref.NoElements || cand != nil && cand.NoElements {
		shapes := *p
		shapes.Shapes = true
		j.p = &shapes
	}
	j.random.names = map[string]bool{}
	if policy.Rounding != nil {
		j.random.draws = policy.Rounding.Draws()
	}
	for _, in := range p.Inputs {
		j.same[in.Name] = true
		j.dtypes[in.Name] = in.DType
		j.comesFrom(in.Name, in.DType)
	}
	return j
}

func (j *judge) comesFrom(name string, d tensor.DType) {
	j.from[name] = d
	j.coarsest = compare.Coarser(j.coarsest, d)
}

// status applies rule 1, and finds outcomes that do not fit the program.
func (j *judge) status() {
	sides := []struct {
		name string
		o    *backend.Outcome
		side **Side
	}{{"reference", j.ref, &j.v.Reference}, {"candidate", j.cand, &j.v.Candidate}}
	for _, s := range sides {
		if problem := j.malformed(s.o); problem != "" {
			j.v.Word, j.v.Reason, j.v.OfReference = Fault, fmt.Sprintf("the %s's outcome %s", s.name, problem), s.o == j.ref
			return
		}
		if s.o.Status != backend.OK {
			*s.side = j.side(s.o)
		}
	}
	if j.ref.NoKernel {
		j.v.Word, j.v.Reason, j.v.OfReference = Unsupported, "the reference has no kernel for this: "+j.ref.Message, true
		return
	}
	if j.refusedToo() {
		return
	}
	if j.ref.Status == backend.OK && (j.cand.NoKernel || refusal.Gap(j.cand)) {
		j.v.Word, j.v.Reason = Unsupported, "the candidate has no kernel or signature for this: "+exception(j.cand)
		return
	}
	for _, s := range sides {
		if e, ok := endings[s.o.Status]; ok {
			j.v.Word, j.v.Reason, j.v.OfReference = e.word, fmt.Sprintf("the %s %s", s.name, e.verb), s.o == j.ref
			if text, _, _ := strings.Cut(exception(s.o), "\n"); text != "" {
				j.v.Reason += ": " + text
			}
			return
		}
	}
}

// refusedToo reports whether a call that the candidate does not take is refused by
// both sides, which is then no gap but an exception like any other.
func (j *judge) refusedToo() bool {
	if j.cand.Status != backend.Unsupported || !j.cand.Refused || j.ref.Status != backend.Raised || j.ref.Call != j.cand.Call {
		return false
	}
	raised := *j.cand
	raised.Status = backend.Raised
	j.cand, j.v.Candidate = &raised, j.side(&raised)
	return true
}

func (j *judge) side(o *backend.Outcome) *Side {
	s := &Side{Status: o.Status, Class: o.Class, Message: o.Message, Call: o.Call}
	if o.Status == backend.Raised {
		s.Line = j.line(o.Call)
	}
	return s
}

var endings = map[backend.Status]struct {
	word Word
	verb string
}{
	backend.Unsupported: {Unsupported, "does not support this program"},
	backend.Crashed:     {Crash, "crashed"},
	backend.TimedOut:    {Timeout, "timed out"},
	backend.OutOfMemory: {OOM, "ran out of memory"},
}

// malformed says what is wrong with an outcome itself; "" for nothing.
func (j *judge) malformed(o *backend.Outcome) string {
	n := len(j.p.Calls)
	switch {
	case o == nil:
		return "is missing"
	case o.Status == backend.OK && len(o.Values) != n:
		return fmt.Sprintf("has %d values for %d calls", len(o.Values), n)
	case o.Status == backend.Raised && (o.Call < 0 || o.Call > n):
		return fmt.Sprintf("blames call %d of %d", o.Call, n)
	case len(o.Values) > n:
		return fmt.Sprintf("has %d values for %d calls", len(o.Values), n)
	}
	if _, ok := endings[o.Status]; !ok && o.Status != backend.OK && o.Status != backend.Raised {
		return fmt.Sprintf("has the unknown status %q", o.Status)
	}
	return ""
}

func exception(o *backend.Outcome) string {
	if o.Class == "" {
		return o.Message
	}
	return o.Class + ": " + o.Message
}

// line returns the text of call i; "" for the backward pass.
func (j *judge) line(i int) string {
	if i < 0 || i >= len(j.p.Calls) {
		return ""
	}
	return j.p.Calls[i].String()
}

// forward leaves gradients out where one side has none: what the other raised in
// its backward pass is no difference, where what it computed before is known.
func (j *judge) forward() {
	if !j.forwardOnly() {
		return
	}
	j.v.ForwardOnly, j.v.NoGradients = j.p.Differentiates(), cmp.Or(j.cand.NoGradients, j.ref.NoGradients)
	for _, side := range []**backend.Outcome{&j.ref, &j.cand} {
		if o := *side; !o.ForwardOnly && o.Status == backend.Raised && o.Call == len(j.p.Calls) && len(o.Values) == o.Call {
			calls := *o
			calls.Status, calls.Class, calls.Message = backend.OK, "", ""
			*side = &calls
		}
	}
}

func (j *judge) forwardOnly() bool {
	return j.cand != nil && j.ref != nil && (j.cand.ForwardOnly || j.ref.ForwardOnly)
}

// calls applies rule 2.
func (j *judge) calls() {
	for i := range min(len(j.ref.Values), len(j.cand.Values)) {
		if j.aliased != "" {
			return
		}
		j.call(i, &j.p.Calls[i], &j.ref.Values[i], &j.cand.Values[i])
	}
}

func (j *judge) call(i int, c *program.Call, want, got *backend.Value) {
	target := j.target(c)
	tols := j.tols(target)
	sameInputs, wide, from := !readsGradient(c), tensor.Invalid, tensor.Invalid
	c.EachRef(func(r program.Ref) {
		same := j.same[string(r)]
		sameInputs = sameInputs && same
		wide = tensor.Promote(wide, j.dtypes[string(r)])
		if !same || len(tols) == 0 { // a gradient goes through what came before
			from = compare.Coarser(from, j.from[string(r)])
		}
	})
	if readsGradient(c) {
		from = j.coarsest
	}
	if program.IsModule(c.Target) {
		j.modules[c.Result] = target
	}
	w := Where{Part: backend.PartValue, Call: i, Line: j.line(i), Target: target, Name: c.Result}
	basis := compare.Basis{Tols: tols, From: from, Same: sameInputs, RTol: j.rtol, ATol: j.atol, Given: j.policy.Given, Default: j.byDefault()}
	random := j.meet(i)
	switch {
	case random:
		j.drawnValue(w, want, got, j.random.of(i))
	case c.Target == "operator.getitem" && want.IsTuple && got.IsTuple: // a tuple in a tuple was compared there
	default:
		a, b := j.inOrder(i, want), j.inOrder(i, got)
		j.value(w, a, b, basis, wide)
		if (a != want || b != got) && !sameBits(want, got) {
			j.random.names[c.Result] = true
		}
	}

	if j.last(i) {
		return
	}
	same := sameBits(want, got) && (j.cand.Computed == nil || slices.Contains(j.cand.Computed, i))
	if want.Module {
		same = sameInputs && j.sameModule(c.Result)
	}
	j.same[c.Result] = same
	if want.Tensor != nil {
		j.dtypes[c.Result] = want.Tensor.DType()
		from = compare.Coarser(from, want.Tensor.DType())
	}
	j.comesFrom(c.Result, from)
	told := want.Tensor != nil || sameInputs // by the result, which setitem has none of
	if inPlace(c) && !(same && told) {
		clear(j.same)
	}
	j.changes(w, basis, random)
}

// last reports whether nothing that depends on the bits of call i's result is
// compared after it.
func (j *judge) last(i int) bool {
	return i == len(j.p.Calls)-1 && !j.changed(j.ref, i) && !j.changed(j.cand, i)
}

func (j *judge) changed(o *backend.Outcome, i int) bool {
	return slices.ContainsFunc(o.Slots, func(s backend.Slot) bool { return s.Part == backend.PartChange && s.Call == i })
}

// readsGradient reports whether a call gives what an earlier call of backward
// computed: its inputs are not all that the result follows from.
func readsGradient(c *program.Call) bool {
	return c.Target == "getattr" && len(c.Args) == 2 && c.Args[1] == "grad"
}

// byDefault reports whether PyTorch's default tolerances are asked for.
func (j *judge) byDefault() bool { return j.policy.Default || j.p.Tolerance == program.Default }

// target returns the public name of what a call computes: for a module's call
// that of its constructor.
func (j *judge) target(c *program.Call) string {
	if r, ok := first(c).(program.Ref); ok && strings.HasPrefix(c.Target, "Module.") && j.modules[string(r)] != "" {
		return j.modules[string(r)]
	}
	return c.Target
}

func first(c *program.Call) any {
	if len(c.Args) == 0 {
		return nil
	}
	return c.Args[0]
}

// inPlace reports whether a call may change one of its arguments.
func inPlace(c *program.Call) bool {
	if op.InPlace(c.Target) {
		return true
	}
	return slices.ContainsFunc(c.Kwargs, func(kw program.Kwarg) bool {
		return kw.Name == "out" || kw.Name == "inplace" && kw.Value == true
	})
}

// selection is the numerics of Python's own ways to take a part of a value.
var selection = []op.Tol{{Class: op.Exact, Reason: "takes elements as they are"}}

func (j *judge) tols(target string) []op.Tol {
	if j.policy.Tols != nil {
		if tols := j.policy.Tols(target); len(tols) > 0 {
			return tols
		}
	}
	if target == "operator.getitem" || target == "getattr" {
		return selection
	}
	return nil
}

// value compares two values: structure, then tensors and numbers. Wide is the
// dtype that the call's tensors promote to; a Python number was computed in it.
func (j *judge) value(w Where, want, got *backend.Value, basis compare.Basis, wide tensor.DType) {
	if a, b := typeName(want), typeName(got); a != b {
		j.differ(w, Kind(compare.Structure), fmt.Sprintf("got %s, want %s", b, a))
		return
	}
	switch {
	case want.Tensor != nil:
		basis.DType = want.Tensor.DType()
		j.record(w, want.Tensor, got.Tensor, basis)
		j.requiresGrad(w, want, got)
	case want.IsTuple:
		for i := range want.Tuple {
			part := w
			part.Path = append(slices.Clone(w.Path), i)
			j.value(part, &want.Tuple[i], &got.Tuple[i], basis, wide)
		}
	case !want.Module:
		j.plain(w, want.Plain, got.Plain, basis, wide)
	}
}

// typeName returns the Python type of a value, as far as structure goes.
func typeName(v *backend.Value) string {
	switch {
	case v.Tensor != nil:
		return "a tensor"
	case v.IsTuple:
		return fmt.Sprintf("a tuple of %d", len(v.Tuple))
	case v.Module:
		return "a module"
	}
	switch x := v.Plain.(type) {
	case nil:
		return "None"
	case int64:
		return "an int"
	case float64:
		return "a float"
	case complex128:
		return "a complex"
	case string:
		if what, foreign := strings.CutPrefix(x, "unsupported "); foreign { // a tensor of a dtype that Plumb has not
			return "a " + what
		}
		return "a str"
	}
	return fmt.Sprintf("a %T", v.Plain)
}

func (j *judge) requiresGrad(w Where, want, got *backend.Value) {
	if j.policy.IgnoreRequiresGrad || j.forwardOnly() || j.cand.Derived || j.cand.Permissive || want.RequiresGrad == got.RequiresGrad {
		return
	}
	if c := &j.p.Calls[w.Call]; want.RequiresGrad && !c.Grad() && !c.MakesLeaf() {
		return // PyTorch says that nothing computed there requires a gradient, but its views do
	}
	j.differ(w, RequiresGrad, fmt.Sprintf("got requires_grad=%s, want %s", python(got.RequiresGrad), python(want.RequiresGrad)))
}

func python(v bool) string {
	if v {
		return "True"
	}
	return "False"
}

// plain compares Python values of one type; numbers as 0-d tensors.
func (j *judge) plain(w Where, want, got any, basis compare.Basis, wide tensor.DType) {
	switch want := want.(type) {
	case float64:
		basis.DType = tensor.F64
		if wide.IsFloat() {
			basis.DType = wide
		}
		j.record(w, tensor.Scalar(tensor.F64, complex(want, 0)), tensor.Scalar(tensor.F64, complex(got.(float64), 0)), basis)
	case complex128:
		basis.DType = tensor.C128
		if wide.IsComplex() {
			basis.DType = wide
		}
		j.record(w, tensor.Scalar(tensor.C128, want), tensor.Scalar(tensor.C128, got.(complex128)), basis)
	case int64:
		j.record(w, integer(want), integer(got.(int64)), compare.Basis{DType: tensor.I64})
	default:
		j.v.Compared++
		if !j.p.Shapes && !reflect.DeepEqual(want, got) {
			j.differ(w, Kind(backend.PartValue), fmt.Sprintf("got %v, want %v", got, want))
		}
	}
}

func integer(v int64) *tensor.Tensor { return tensor.Of(tensor.I64, nil, []int64{v}) }

func sameBits(a, b *backend.Value) bool {
	if typeName(a) != typeName(b) {
		return false
	}
	switch {
	case a.Tensor != nil:
		return a.Tensor.SameBits(b.Tensor)
	case a.IsTuple:
		for i := range a.Tuple {
			if !sameBits(&a.Tuple[i], &b.Tuple[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a.Plain, b.Plain)
}

// sameModule reports whether a module's state agrees in every bit, before the
// first call and after the last.
func (j *judge) sameModule(name string) bool {
	return sameState(j.ref.Initial[name], j.cand.Initial[name]) &&
		sameState(j.ref.Of(backend.PartState, name), j.cand.Of(backend.PartState, name))
}

func sameState(a, b backend.State) bool {
	return slices.EqualFunc(a, b, func(x, y backend.Named) bool {
		if x.Name != y.Name || x.Tensor == nil || y.Tensor == nil {
			return x == y
		}
		return x.Tensor.SameBits(y.Tensor)
	})
}

// exceptions applies rule 3.
func (j *judge) exceptions() {
	refRaised, candRaised := j.ref.Status == backend.Raised, j.cand.Status == backend.Raised
	switch {
	case refRaised != candRaised && j.policy.NoExceptions:
	case refRaised && !candRaised && (j.mayTake() || j.lacksElements()):
	case refRaised && !candRaised:
		j.raised(j.ref, "reference", "candidate")
	case candRaised && !refRaised:
		j.raised(j.cand, "candidate", "reference")
	case refRaised && j.otherClass():
		j.raised(j.cand, "candidate", "reference")
		d := &j.v.Differences[len(j.v.Differences)-1]
		d.Diff.Message = fmt.Sprintf("the candidate raised %s, the reference %s", exception(j.cand), exception(j.ref))
	}
}

// otherClass reports whether what both sides raised has to have the same class,
// and has not.
func (j *judge) otherClass() bool {
	if j.policy.ReferencesException {
		return j.ref.Class != j.cand.Class
	}
	return j.policy.SameException && !refusal.Alike(j.ref, j.cand)
}

// mayTake reports whether the candidate's interface may take what the reference
// refused: anything, or the form of an argument.
func (j *judge) mayTake() bool {
	return j.cand.Permissive || j.cand.OwnForms && refusal.Caught(j.ref) == "TypeError"
}

// lacksElements reports whether the reference refused a call with a tensor of integers or
// bools, whose elements may be why, and the candidate's tensors have none.
func (j *judge) lacksElements() (reads bool) {
	if j.cand.NoElements && j.ref.Call < len(j.p.Calls) {
		j.p.Calls[j.ref.Call].EachRef(func(r program.Ref) {
			d, ok := j.dtypes[string(r)]
			reads = reads || ok && (d.IsInt() || d == tensor.Bool)
		})
	}
	return reads
}

func (j *judge) raised(o *backend.Outcome, who, other string) {
	w := Where{Part: backend.PartValue, Call: o.Call, Line: j.line(o.Call)}
	if o.Call < len(j.p.Calls) {
		c := &j.p.Calls[o.Call]
		w.Target, w.Name = j.target(c), c.Result
	}
	j.differ(w, Exception, fmt.Sprintf("the %s raised %s, the %s did not", who, exception(o), other))
}

// slots compares what follows the last call: state, gradients, and parameters
// after a step. A missing slot is one without a tensor.
func (j *judge) slots() {
	for _, at := range j.places {
		if !j.compares(at) {
			continue
		}
		w := Where{Part: at.Part, Call: len(j.p.Calls), Name: at.String(), Target: j.modules[at.Owner], Users: j.users(at.Owner)}
		want, got := j.ref.At(at), j.cand.At(at)
		random := j.random.holds(j.p, at.Owner)
		switch {
		case at.Part != backend.PartState:
			random = j.random.gradient(j.p, at.Owner)
		case slices.ContainsFunc(j.ref.Of(backend.PartParamGrad, at.Owner), func(n backend.Named) bool { return n.Name == at.Name }):
			w.Part = backend.PartParam
		}
		if at.Part.IsSecond() || at.Part.IsGradient() && j.cand.Permissive {
			want, got = orZeros(want, got), orZeros(got, want)
		}
		j.optional(w, want, got, random)
	}
}

// compares reports whether a slot of either side is compared after the calls.
func (j *judge) compares(at backend.Place) bool {
	if j.forwardOnly() && (at.Part.IsGradient() || at.Part == backend.PartStep) {
		return false
	}
	switch at.Part {
	case backend.PartChange:
		return false
	case backend.PartSecondGrad, backend.PartSecondParamGrad:
		return j.p.Second.Dist != "" && j.ref.Has(backend.PartSecondGrad)
	case backend.PartStep:
		return j.p.Step != (program.Step{}) && j.ref.Has(at.Part) && j.cand.Has(at.Part)
	case backend.PartGrad:
		if i := slices.IndexFunc(j.p.Inputs, func(in program.Input) bool { return in.Name == at.Owner }); i >= 0 {
			return j.p.Inputs[i].RequiresGrad || j.ref.At(at) != nil
		}
		return j.p.MakesLeaves()
	}
	return true
}

// Sides are the tensors of a place on both sides as they are compared: a gradient of the
// second order that is missing on one of them is zeros there. Nil where there is none.
func Sides(reference, candidate *backend.Outcome, w Where) (want, got *tensor.Tensor) {
	want, got = At(reference, w), At(candidate, w)
	if w.Part.IsSecond() {
		want, got = orZeros(want, got), orZeros(got, want)
	}
	return want, got
}

// orZeros returns t, or zeros like other where there is none: a gradient of the
// second order that does not exist is one that vanishes.
func orZeros(t, other *tensor.Tensor) *tensor.Tensor {
	if t != nil || other == nil {
		return t
	}
	return tensor.New(other.DType(), other.Shape()...)
}

// optional compares two tensors of which either may be missing; random ones
// depend on draws.
func (j *judge) optional(w Where, want, got *tensor.Tensor, random bool) {
	if want == nil && got == nil {
		return
	}
	if random {
		j.drawnGrad(w, want, got)
		return
	}
	basis := compare.Basis{From: j.coarsest, RTol: j.rtol, ATol: j.atol, Given: j.policy.Given, Default: j.byDefault()}
	if want != nil {
		basis.DType = want.DType()
	}
	j.record(w, want, got, basis)
}

// users returns the lines of the calls that read a name.
func (j *judge) users(name string) []string {
	var lines []string
	for i := range j.p.Calls {
		reads := false
		j.p.Calls[i].EachRef(func(r program.Ref) { reads = reads || string(r) == name })
		if reads {
			lines = append(lines, j.line(i))
		}
	}
	return lines
}

// conclude draws the word from the differences.
func (j *judge) conclude() *Verdict {
	v := j.v
	switch {
	case len(v.Differences) > 0:
		d := &v.Differences[0]
		v.Word, v.Kind, v.Where = Misaligned, d.Kind, &d.Where
		v.Reason = d.reason()
	case j.aliased != "":
		v.Word, v.Reason = Unsupported, j.aliased
	case v.Reference == nil && v.Candidate != nil:
		v.Word, v.Reason = Rejected, "only the candidate raised, which does not count here: "+exception(j.cand)
	case v.Reference != nil && v.Candidate == nil && j.lacksElements():
		v.Word, v.Reason = Unsupported, "the reference may have refused elements, which the candidate's tensors have not: "+exception(j.ref)
	case v.Reference != nil && v.Candidate == nil && j.mayTake():
		v.Word, v.Reason = Unsupported, "the reference refuses what the candidate's own interface takes: "+exception(j.ref)
	case v.Reference != nil && v.Candidate == nil:
		v.Word, v.Reason = Rejected, "only the reference raised, which does not count here: "+exception(j.ref)
	case v.Reference != nil && j.p.Raises:
		v.Word, v.Compared = Aligned, v.Compared+1
	case v.Reference != nil:
		v.Word, v.Reason = Rejected, "both sides raised"
		if v.Reference.Call != v.Candidate.Call {
			v.Reason = "both sides raised, in different calls"
		}
	default:
		v.Word = Aligned
	}
	return j.excused()
}

// excused returns the verdict, which is Known where a fault of the reference explains it.
func (j *judge) excused() *Verdict {
	v := j.v
	if f := j.known(); f != nil {
		v.Word, v.Reason = Known, fmt.Sprintf("%s (%s); %s", f.Reason, f.Reference, v.Reason)
	}
	return v
}
