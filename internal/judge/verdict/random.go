package verdict

import (
	"fmt"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// drawn keeps track of what depends on random draws.
type drawn struct {
	draws   [][]backend.Draw // by call
	names   map[string]bool  // values and modules that depend on draws
	changed bool             // an in-place call was met: arguments may have changed since
	grads   bool             // a call of backward was met whose gradients depend on draws
}

// of returns the draws of a call.
func (d *drawn) of(call int) []backend.Draw {
	if call >= len(d.draws) {
		return nil
	}
	return d.draws[call]
}

// meet notes a call and reports whether its result depends on draws. A module
// that has read such a value may keep it in its state, and so may the modules
// that it was made of; an in-place call may reach what its argument is a view of.
func (j *judge) meet(i int) bool {
	d, c := &j.random, &j.p.Calls[i]
	reads, replaced := j.readsDraws(i)
	d.grads = d.grads || reads && c.IsBackward()
	random := reads || len(d.of(i)) > 0 || d.grads && readsGradient(c)
	if random {
		d.names[c.Result] = true
		if c.Target == "Module.__call__" || c.Target == "Module.forward" {
			j.keeps(first(c))
		}
		if c.Target == "setattr" {
			j.given(first(c))
		}
	}
	if !inPlace(c) {
		return random
	}
	d.changed = true
	switch {
	case random:
		j.spread(i)
	case replaced:
		if r, ok := first(c).(program.Ref); ok {
			delete(d.names, string(r))
			delete(d.names, j.dataOf(r))
		}
	}
	return random
}

// spread notes that what call i changed in place depends on draws: the names
// that a side tells, or any where one tells nothing, and all modules.
func (j *judge) spread(i int) {
	alters := j.alters(i)
	note := func(name string) {
		if alters(name) {
			j.random.names[name] = true
		}
	}
	for k := range j.p.Inputs {
		note(j.p.Inputs[k].Name)
	}
	for k := range i {
		note(j.p.Calls[k].Result)
	}
}

// alters returns what says whether call i, in place, may have changed what a name means.
func (j *judge) alters(i int) func(name string) bool {
	told := j.ref.Watched && j.cand.Watched
	changed := map[string]bool{}
	for _, o := range []*backend.Outcome{j.ref, j.cand} {
		for k := range o.Slots {
			if s := &o.Slots[k]; s.Part == backend.PartChange && s.Call == i && s.Tensor != nil {
				changed[s.Owner] = true
			}
		}
	}
	return func(name string) bool { return !told || j.modules[name] != "" || changed[name] }
}

// readsAsMade reports whether what a draw of call i reads is still what its inputs and
// calls gave: no call before, in place, may have changed it.
func (j *judge) readsAsMade(i int, draw *backend.Draw) bool {
	var unread []program.Ref
	for k := range j.p.Calls[:i] {
		if !inPlace(&j.p.Calls[k]) {
			continue
		}
		alters := j.alters(k)
		for _, r := range draw.Refs {
			if r == "" || !alters(string(r)) {
				continue
			}
			if unread == nil {
				unread = append(j.unread(i), "")
			}
			if !slices.Contains(unread, r) {
				return false
			}
		}
	}
	return true
}

// readsDraws reports whether call i reads elements that depend on draws, and
// whether it reads none of its first argument.
func (j *judge) readsDraws(i int) (reads, replaced bool) {
	c := &j.p.Calls[i]
	var refs []program.Ref
	c.EachRef(func(r program.Ref) {
		if j.random.names[string(r)] {
			refs = append(refs, r)
		}
	})
	if len(refs) == 0 {
		return false, false
	}
	unread := j.unread(i)
	reads = slices.ContainsFunc(refs, func(r program.Ref) bool { return !slices.Contains(unread, r) })
	own, _ := first(c).(program.Ref)
	return reads, slices.Contains(unread, own)
}

// unread names the tensors of which call i reads no element.
func (j *judge) unread(i int) []program.Ref {
	if j.policy.Table == nil {
		return nil
	}
	names, times := map[op.Value]program.Ref{}, map[program.Ref]int{}
	value := values(j.p, j.ref)
	call, err := j.bind(i, func(r program.Ref) *tensor.Tensor {
		t := value(r)
		names[t] = r
		times[r]++
		return t
	})
	if err != nil {
		return nil
	}
	var refs []program.Ref
	add := func(v op.Value) {
		if r := names[v]; times[r] == 1 {
			refs = append(refs, r)
		}
	}
	if call.Def.Traits.Has(op.ShapeOnly) {
		for _, v := range call.Args.AllValues() {
			add(v)
		}
	}
	if call.Def.Unread != nil {
		for _, p := range call.Def.Unread(call.Args) {
			add(call.Args.Value(p))
		}
	}
	return refs
}

// keeps notes that a module may keep draws: it, what it was made of, and the buffers that
// were read of these, which are the tensors that a call changes.
func (j *judge) keeps(module any) {
	r, _ := module.(program.Ref)
	of := made(j.p, string(r))
	for name := range of {
		j.random.names[name] = true
	}
	for i := range min(len(j.p.Calls), len(j.ref.Values)) {
		c, v := &j.p.Calls[i], &j.ref.Values[i]
		if from, _ := first(c).(program.Ref); c.Target == "getattr" && of[string(from)] && v.Tensor != nil && !v.RequiresGrad {
			j.random.names[c.Result] = true
		}
	}
}

// given notes that an attribute of a tensor or a module, x.data or m.weight, has draws now:
// all names of the tensor do, where it is a module's, and the module.
func (j *judge) given(of any) {
	r, _ := of.(program.Ref)
	j.random.names[string(r)] = true
	i := slices.IndexFunc(j.p.Calls, func(c program.Call) bool { return c.Result == string(r) && c.Target == "getattr" })
	if i < 0 {
		return
	}
	got := j.p.Calls[i].Args
	for k := range j.p.Calls {
		if c := &j.p.Calls[k]; c.Target == "getattr" && slices.Equal(c.Args, got) {
			j.random.names[c.Result] = true
		}
	}
	owner, _ := got[0].(program.Ref)
	j.random.names[string(owner)] = true
}

// dataOf is the x of which x.data gave a value; empty for others.
func (j *judge) dataOf(r program.Ref) string {
	i := slices.IndexFunc(j.p.Calls, func(c program.Call) bool { return c.Result == string(r) })
	if i < 0 || j.p.Calls[i].Target != "getattr" || j.p.Calls[i].Args[1] != "data" {
		return ""
	}
	of, _ := j.p.Calls[i].Args[0].(program.Ref)
	return string(of)
}

// made returns a name, and, of a module, the modules that it was made of.
func made(p *program.Program, name string) map[string]bool {
	of, asked := map[string]bool{name: true}, map[string]bool{name: true}
	for _, c := range slices.Backward(p.Calls) {
		if asked[c.Result] && program.IsModule(c.Target) {
			of[c.Result] = true
			c.EachRef(func(r program.Ref) { asked[string(r)] = true })
		}
	}
	return of
}

// holds reports whether a value, or a module or what it was made of, depends on draws.
func (d *drawn) holds(p *program.Program, name string) bool {
	if len(d.names) == 0 {
		return false
	}
	for of := range made(p, name) {
		if d.names[of] {
			return true
		}
	}
	return false
}

// gradient reports whether the gradient of an input or of a module's parameter
// passes a call that depends on draws.
func (d *drawn) gradient(p *program.Program, name string) bool {
	if len(d.names) == 0 {
		return false
	}
	wanted := map[string]bool{}
	for _, b := range p.Backward {
		wanted[string(b.Value)] = true
	}
	for i := len(p.Calls) - 1; i >= 0; i-- {
		if c := &p.Calls[i]; wanted[c.Result] || c.IsBackward() {
			c.EachRef(func(r program.Ref) { wanted[string(r)] = true })
		}
	}
	reached := made(p, name)
	for i := range p.Calls {
		c := &p.Calls[i]
		reads := false
		c.EachRef(func(r program.Ref) { reads = reads || reached[string(r)] })
		if !reads {
			continue
		}
		reached[c.Result] = true
		if d.names[c.Result] && wanted[c.Result] {
			return true
		}
	}
	return false
}

// drawnValue compares two values that depend on draws: structure, then the
// tensors without their elements, unless the call itself drew them.
func (j *judge) drawnValue(w Where, want, got *backend.Value, draws []backend.Draw) {
	if a, b := typeName(want), typeName(got); a != b {
		j.differ(w, Kind(compare.Structure), fmt.Sprintf("got %s, want %s", b, a))
		return
	}
	switch {
	case want.Tensor != nil:
		fit, expected := compare.Fit{}, want.Tensor
		if expected.DType() == got.Tensor.DType() && !slices.Equal(expected.Shape(), got.Tensor.Shape()) && j.sizedByDraws(w, got.Tensor) {
			expected = got.Tensor
		}
		if d := j.drawnTensor(w, expected, got.Tensor); d.OK && len(draws) == 1 && draws[0].Whole && !j.shapesOfDraws() && j.readsAsMade(w.Call, &draws[0]) {
			fit = j.distribution(w, &draws[0], want.Tensor, got.Tensor)
		}
		j.margin(w, want.Tensor, op.Statistical, fit.Ratio)
		j.requiresGrad(w, want, got)
	case want.IsTuple:
		for i := range want.Tuple {
			part := w
			part.Path = append(slices.Clone(w.Path), i)
			j.drawnValue(part, &want.Tuple[i], &got.Tuple[i], nil)
		}
	case !want.Module:
		j.v.Compared++
		j.v.Drawn++
	}
}

// shapesOfDraws reports whether random results are compared by dtype and shape only.
func (j *judge) shapesOfDraws() bool { return j.p.Shapes || j.p.Draws }

// sizedByDraws reports whether a call may result in a tensor of the candidate's
// shape, by the elements that the candidate drew before: those that are nonzero
// are as many as they happen to be. Where a call in place may have changed the
// arguments since, any shape may be right if elements decide it.
func (j *judge) sizedByDraws(w Where, got *tensor.Tensor) bool {
	if j.policy.Table == nil || w.Call >= len(j.p.Calls) {
		return false
	}
	if parts := j.tupleRead(w.Call); parts != nil {
		return slices.ContainsFunc(parts, func(v backend.Value) bool {
			return v.Tensor != nil && slices.Equal(v.Tensor.Shape(), got.Shape())
		})
	}
	call, err := j.bound(w.Call, j.cand)
	if err != nil { // of a module
		return j.readsOtherShapes(w.Call)
	}
	if j.random.changed {
		return call.DataDependentShape() || j.readsOtherShapes(w.Call)
	}
	metas, err := call.Infer()
	at := 0
	if len(w.Path) > 0 {
		at = w.Path[0]
	}
	return err == nil && len(w.Path) <= 1 && at < len(metas) && slices.Equal(metas[at].Shape, got.Shape())
}

// readsOtherShapes reports whether an argument of a call has another shape on
// either side.
func (j *judge) readsOtherShapes(call int) bool {
	want, got, differs := values(j.p, j.ref), values(j.p, j.cand), false
	j.p.Calls[call].EachRef(func(r program.Ref) {
		a, b := want(r), got(r)
		differs = differs || a != nil && b != nil && !slices.Equal(a.Shape(), b.Shape())
	})
	return differs
}

// tupleRead returns the tuple on the candidate's side that a call's first
// argument is; nil for any other.
func (j *judge) tupleRead(call int) []backend.Value {
	r, _ := first(&j.p.Calls[call]).(program.Ref)
	i := slices.IndexFunc(j.p.Calls[:call], func(c program.Call) bool { return c.Result == string(r) })
	if i < 0 || i >= len(j.cand.Values) {
		return nil
	}
	return j.cand.Values[i].Tuple
}

// drawnTensor compares what two tensors are, not what is in them.
func (j *judge) drawnTensor(w Where, want, got *tensor.Tensor) compare.Diff {
	j.v.Drawn++
	return j.shapes(w, want, got)
}

// distribution judges the candidate's draws: their support, then their law,
// then both sides as two samples. The reference's draws are held to the law
// too: where they break it, the literal states a wrong one.
func (j *judge) distribution(w Where, draw *backend.Draw, want, got *tensor.Tensor) compare.Fit {
	refLaw, law := draw.Law(values(j.p, j.ref)), draw.Law(values(j.p, j.cand))
	if refLaw == nil || law == nil {
		return compare.Fit{}
	}
	refDraws, err := refLaw.Draws(want)
	if err != nil {
		j.unlike(w, compare.Support, "the reference itself: "+err.Error())
		return compare.Fit{Ratio: compare.Number(math.Inf(1))}
	}
	ref := &compare.Drawn{Draws: refDraws, Law: refLaw}
	if own := ref.Follows(want.Shape(), want.DType()); own.Ratio > 1 {
		j.unlike(w, compare.Distribution, fmt.Sprintf("the reference itself breaks the law of the operator's literal: %s (%s)", own.Message, own.Test))
		return own
	}
	draws, err := law.Draws(got)
	if err != nil {
		j.unlike(w, compare.Support, err.Error())
		return compare.Fit{Ratio: compare.Number(math.Inf(1))}
	}
	cand := &compare.Drawn{Draws: draws, Law: law}
	fit := ref.Alike(cand, got.DType())
	if f := cand.Follows(got.Shape(), got.DType()); f.Ratio > fit.Ratio {
		fit = f
	}
	if fit.Ratio > 1 {
		j.unlike(w, compare.Distribution, fmt.Sprintf("%s; a sample of it would do that less than once in %.0g comparisons (%s)", fit.Message, 1/compare.FalseAlarms, fit.Test))
	}
	return fit
}

func (j *judge) unlike(w Where, rule compare.Rule, message string) {
	d := compare.Diff{Rule: rule, Message: message}
	j.v.Differences = append(j.v.Differences, Difference{Where: w, Kind: Kind(w.Part), Diff: d})
}

// values tells the tensors that a side has for the program's names.
func values(p *program.Program, o *backend.Outcome) func(program.Ref) *tensor.Tensor {
	return func(r program.Ref) *tensor.Tensor {
		for i := range p.Inputs {
			if p.Inputs[i].Name == string(r) {
				return p.Inputs[i].Materialize()
			}
		}
		for i := range p.Calls {
			if p.Calls[i].Result == string(r) && i < len(o.Values) {
				return o.Values[i].Tensor
			}
		}
		return nil
	}
}

// drawnGrad compares two gradients that depend on draws. Where a call draws
// straight from the input to what is differentiated, each side's gradient is
// its own slopes times the cotangent.
func (j *judge) drawnGrad(w Where, want, got *tensor.Tensor) {
	d := j.drawnTensor(w, want, got)
	fit := compare.Fit{}
	if d.OK && want != nil && w.Part == backend.PartGrad && !j.shapesOfDraws() {
		fit = j.relation(w, want, got)
	}
	j.margin(w, want, op.Statistical, fit.Ratio)
}

func (j *judge) relation(w Where, want, got *tensor.Tensor) compare.Fit {
	call, cot := j.straight(w.Name)
	if cot == nil || j.random.changed {
		return compare.Fit{}
	}
	draw := &j.random.of(call)[0]
	if _, ref, ok := slopeError(draw, values(j.p, j.ref), j.ref.Values[call].Tensor, cot, want); !ok || ref > 1 {
		return compare.Fit{}
	}
	at, ratio, ok := slopeError(draw, values(j.p, j.cand), j.cand.Values[call].Tensor, cot, got)
	if !ok {
		return compare.Fit{}
	}
	if ratio > 1 {
		j.unlike(w, compare.Relation, fmt.Sprintf("element %d is %s: not the cotangent times what the candidate itself drew", at, compare.Element(got, at)))
	}
	return compare.Fit{Ratio: compare.Number(ratio), Test: "relation"}
}

// straight returns the call that alone reads an input, draws from it, and whose
// result is differentiated and read by no other call, with the cotangent; nil
// where there is none.
func (j *judge) straight(name string) (call int, cot *tensor.Tensor) {
	if len(j.users(name)) != 1 {
		return 0, nil
	}
	for i := range j.p.Calls {
		draws := j.random.of(i)
		if len(draws) != 1 || !draws[0].Whole || len(draws[0].Refs) == 0 || string(draws[0].Refs[0]) != name {
			continue
		}
		var found []*program.Fill
		for b := range j.p.Backward {
			if back := &j.p.Backward[b]; string(back.Value) == j.p.Calls[i].Result {
				found = append(found, &back.Cotangent)
			}
		}
		out := j.ref.Values[i].Tensor
		if len(found) != 1 || len(j.users(j.p.Calls[i].Result)) > 0 || out == nil || !out.DType().IsFloat() {
			return 0, nil
		}
		cot := tensor.New(out.DType(), out.Shape()...)
		for k, v := range found[0].Cotangent(out.Len()) {
			cot.Set(k, complex(v, 0))
		}
		return i, cot
	}
	return 0, nil
}

// slopeRoundings is how many units in the last place two ways to multiply by a
// slope may differ.
const slopeRoundings = 8

// slopeError compares a gradient with the slopes of a side's own draws times
// the cotangent. It returns the worst element and its error ÷ limit.
func slopeError(draw *backend.Draw, value func(program.Ref) *tensor.Tensor, out, cot, grad *tensor.Tensor) (at int, ratio float64, ok bool) {
	law := draw.Law(value)
	if law == nil || law.Slopes == nil || grad.Len() != out.Len() {
		return 0, 0, false
	}
	for i, s := range law.Slopes(out) {
		expected := s * cot.Float(i)
		if math.IsNaN(expected) || math.IsInf(expected, 0) {
			continue
		}
		limit := slopeRoundings * compare.Spacing(math.Abs(expected), grad.DType())
		if r := math.Abs(grad.Float(i)-expected) / limit; !(r <= ratio) {
			at, ratio = i, r
		}
	}
	return at, ratio, true
}
