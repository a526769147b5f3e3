package verdict

import (
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// changes compares what a call left in the inputs and earlier results that it
// changed on either side. Where says which call.
func (j *judge) changes(w Where, basis compare.Basis, random bool) {
	if !j.ref.Watched || !j.cand.Watched {
		return
	}
	w.Part = backend.PartChange
	for _, at := range j.places {
		if at.Part == backend.PartChange && at.Call == w.Call {
			w.Name = at.Owner
			n, kept := len(j.v.Differences), j.ref.At(at) == nil
			j.change(w, j.now(j.ref, w.Call, w.Name), j.now(j.cand, w.Call, w.Name), kept, basis, random)
			if len(j.v.Differences) > n && kept != (j.cand.At(at) == nil) && j.mayCopy(&j.p.Calls[w.Call], w.Name) {
				j.v.Differences = j.v.Differences[:n]
				j.aliased = fmt.Sprintf("%s shares its memory with %v on one side alone: %s", w.Name, first(&j.p.Calls[w.Call]), j.line(w.Call))
			}
		}
	}
}

// mayCopy reports whether it is up to the candidate if a tensor has a part in a
// change in place of another: which results are views is its interface's own.
func (j *judge) mayCopy(c *program.Call, name string) bool {
	return j.cand.Permissive && inPlace(c) && first(c) != any(program.Ref(name))
}

// change compares one changed tensor; kept says that the reference left it
// alone.
func (j *judge) change(w Where, want, got *tensor.Tensor, kept bool, basis compare.Basis, random bool) {
	same := want != nil && got != nil && want.SameBits(got)
	switch {
	case kept && !same && !random && want != nil && j.same[w.Name]:
		j.v.Compared++
		j.differ(w, Kind(backend.PartChange), fmt.Sprintf("the candidate changed it, the reference did not: %s", j.line(w.Call)))
	case random && want != nil && got != nil && want.DType() == got.DType() && j.sizedByDraws(w, got):
		j.drawnTensor(w, got, got)
	case random:
		j.drawnTensor(w, want, got)
	case want != nil:
		basis.DType = want.DType()
		j.record(w, want, got, basis)
	}
	j.same[w.Name] = same
}

// now returns what a side has under a name right after a call.
func (j *judge) now(o *backend.Outcome, call int, name string) *tensor.Tensor {
	return Changed(j.p, o, call, name)
}

// Changed returns the tensor that a name of the program stood for right after a
// call; nil when it stood for none, or the run did not come so far.
func Changed(p *program.Program, o *backend.Outcome, call int, name string) *tensor.Tensor {
	for i := call; i >= 0 && p.Calls[i].Result != name; i-- {
		if t := o.At(backend.Place{Part: backend.PartChange, Call: i, Owner: name}); t != nil {
			return t
		}
	}
	if i := slices.IndexFunc(p.Calls, func(c program.Call) bool { return c.Result == name }); i >= 0 && i < len(o.Values) {
		return o.Values[i].Tensor
	}
	for i := range p.Inputs {
		if p.Inputs[i].Name == name {
			return p.Inputs[i].Materialize()
		}
	}
	return nil
}
