package rounding

import (
	"math"
	"slices"

	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/internal/interp"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/tensor"
)

// state is what is known of a value's rounding error.
type state struct {
	err      *tensor.Tensor // by element, in units of the roundoff; nil: the value is exact
	integral bool           // every element is an integer
	unknown  bool
	terms    *tensor.Tensor // Σ|terms| where the value is a sum of products
	count    float64        // roundings of one sum
	// functions says that functions were applied on the way.
	functions bool
	rivals    []*tensor.Tensor // of unknown places
}

// errorSession is a session whose values carry error bounds.
type errorSession struct {
	table  *op.Table
	tape   []autograd.Node
	states map[*tensor.Tensor]*state
	unit   float64
	silent bool                        // inside a Formula: nothing is recorded for differentiation
	made   []*tensor.Tensor            // those of states, in their order
	held   int                         // the elements of made
	most   int                         // how many may be held; 0: any number
	poles  map[*tensor.Tensor]bool     // results whose gradient is infinite or NaN
	own    map[op.Value]*tensor.Tensor // gradients that no other value shares
	choose func(*Choice)               // nil: nobody asks
	near   bool                        // a decision follows from roundings
	unsure bool                        // it was not asked about one, for want of bounds
}

var _ interp.Session = (*errorSession)(nil)

func newSession(table *op.Table, unit float64) *errorSession {
	return &errorSession{table: table, states: map[*tensor.Tensor]*state{}, poles: map[*tensor.Tensor]bool{}, own: map[op.Value]*tensor.Tensor{}, unit: unit}
}

// Leaf makes a variable of a tensor.
func (s *errorSession) Leaf(t *tensor.Tensor, requiresGrad bool) *eager.Var {
	return eager.Leaf(t, requiresGrad)
}

// Reseed changes nothing: what depends on draws has no bounds.
func (s *errorSession) Reseed(uint64) {}

// Builder returns a Builder on the session.
func (s *errorSession) Builder() op.Builder { return op.Builder{Applier: s} }

// Apply applies an operator of a module's forward or of a gradient rule.
func (s *errorSession) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := s.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return s.Execute(call)
}

// Execute computes the call and the errors of its results.
func (s *errorSession) Execute(call *op.Call) ([]op.Value, error) {
	if call.Def.Compose != nil {
		return call.Parts(s.Builder())
	}
	if s.narrows(call) {
		return []op.Value{call.Args.Vals[0].(*eager.Var)}, nil
	}
	session := eager.New(s.table)
	if err := s.restrict(session, call); err != nil {
		return nil, err
	}
	before := mutable(call)
	var out []op.Value
	err := session.Recording(!s.silent, func() (err error) {
		out, err = session.Execute(call)
		return err
	})
	if err != nil || out[0] == call.Args.Vals[0] {
		return out, err
	}
	states := s.chosen(call, out)
	if states == nil {
		states = s.propagate(call, out)
	}
	record := false
	for i, v := range out {
		x := v.(*eager.Var)
		s.set(x.Tensor, states[i])
		record = record || x.RequiresGrad()
	}
	for t, was := range before {
		st := state{unknown: true}
		if t.SameBits(was) { // as running statistics are in eval; an outline cannot tell
			st = *s.of(t)
			st.functions = st.functions || function(call.Def)
		}
		s.set(t, &st)
	}
	if record && !s.silent {
		s.tape = append(s.tape, autograd.Node{Call: call, Out: out})
	}
	return out, nil
}

// mutable returns the arguments that a call may change, each with its elements before.
func mutable(call *op.Call) map[*tensor.Tensor]*tensor.Tensor {
	var before map[*tensor.Tensor]*tensor.Tensor
	for _, name := range call.Def.Mutates {
		if v := call.Args.Value(name); v != nil {
			if before == nil {
				before = map[*tensor.Tensor]*tensor.Tensor{}
			}
			before[tensorOf(v)] = tensorOf(v).Clone()
		}
	}
	return before
}

// narrows reports a conversion to the dtype that the program computes in of what is computed in
// float64 in its place: a part of an operator says .float(), whatever it is given. Its rounding
// is one of those that are counted. In a half dtype, where float32 is finer than what is counted,
// that tells no more than what is near what.
func (s *errorSession) narrows(call *op.Call) bool {
	if !call.Def.Traits.Has(op.View) || s.half() && s.choose == nil || len(call.Args.Vals) == 0 {
		return false
	}
	x, ok := call.Args.Vals[0].(*eager.Var)
	if !ok || x.DType() != tensor.F64 {
		return false
	}
	inferred := op.Call{Def: call.Def, Args: call.Args.MapValues(func(v op.Value) op.Value { return tensorOf(v) })}
	metas, err := inferred.Infer()
	if err != nil || !metas[0].DType.IsFloat() || metas[0].DType == tensor.F64 || compare.Roundoff(metas[0].DType) > s.unit {
		return false
	}
	return s.of(x).err != nil || representable(tensorOf(x), metas[0].DType)
}

// representable reports whether each element is a number of a dtype.
func representable(t *tensor.Tensor, d tensor.DType) bool {
	given, narrow := reals(t), reals(t.Convert(d))
	for i, v := range given {
		if v != narrow[i] && !math.IsNaN(v) {
			return false
		}
	}
	return true
}

// Unit is the roundoff of the dtype in whose place the session computes in float64.
func (s *errorSession) Unit() float64 { return s.unit }

// Backward walks the tape; with create, what it computes is recorded on it.
func (s *errorSession) Backward(values, cotangents []op.Value, create bool, inputs ...op.Value) (autograd.Cotangents, error) {
	b := s.Builder()
	cot := autograd.Cotangents{}
	for i, v := range values {
		if err := cot.Seed(b, v, s.Leaf(tensorOf(cotangents[i]), false)); err != nil {
			return nil, err
		}
	}
	silent, since := s.silent, len(s.made)
	defer func() { s.silent = silent }()
	clear(s.own) // the gradients of another backward pass
	s.silent = silent || !create
	defer s.room(s.held)()
	tape := s.tape
	for i := range slices.Backward(tape) {
		s.notePoles(&tape[i], cot)
		if !s.intoView(&tape[i], cot) {
			if err := autograd.Walk(b, tape[i:i+1], cot, eager.RequiresGrad); err != nil {
				return cot, err
			}
		}
		eager.Passed(&tape[i], cot, inputs)
		if s.silent {
			s.forget(since, among(cot))
		}
	}
	return cot, nil
}

// among tells which tensors are gradients of cot.
func among(cot autograd.Cotangents) func(t *tensor.Tensor) bool {
	all := map[*tensor.Tensor]bool{}
	for _, g := range cot {
		all[tensorOf(g)] = true
	}
	return func(t *tensor.Tensor) bool { return all[t] }
}

// Release does nothing: what may be repeated is the subject's to know.
func (*errorSession) Release([]op.Value, ...op.Value) {}

// notePoles notes the results of a node whose gradient is not finite, or beyond
// the range of float32.
func (s *errorSession) notePoles(n *autograd.Node, cot autograd.Cotangents) {
	for _, out := range n.Out {
		if g := cot[out]; g != nil && !below([]*tensor.Tensor{absolute(tensorOf(g))}, math.MaxFloat32) {
			s.poles[tensorOf(out)] = true
		}
	}
}

func tensorOf(v op.Value) *tensor.Tensor {
	if x, ok := v.(*eager.Var); ok {
		return x.Tensor
	}
	return v.(*tensor.Tensor)
}

// of returns the state of an argument; what no call resulted in is exact.
func (s *errorSession) of(v op.Value) *state {
	t := tensorOf(v)
	st := s.states[t]
	if st == nil {
		st = &state{integral: integral(t)}
		s.set(t, st)
	}
	return st
}

func (s *errorSession) set(t *tensor.Tensor, st *state) {
	s.states[t] = st
	s.made = append(s.made, t)
	s.held += t.Len()
}

// forget lets go what is known of the tensors made since there were so many, but
// for those still needed.
func (s *errorSession) forget(since int, needed func(t *tensor.Tensor) bool) {
	kept := slices.DeleteFunc(s.made[since:], func(t *tensor.Tensor) bool {
		if needed(t) {
			return false
		}
		delete(s.states, t)
		s.held -= t.Len()
		return true
	})
	s.made = s.made[:since+len(kept)]
}

func integral(t *tensor.Tensor) bool {
	if t.DType() == tensor.F64 {
		return !slices.ContainsFunc(reals(t), func(v float64) bool { return v != math.Trunc(v) })
	}
	for i := range t.Len() {
		if v := t.At(i); real(v) != math.Trunc(real(v)) || imag(v) != math.Trunc(imag(v)) {
			return false
		}
	}
	return true
}

func (s *errorSession) bound(t *tensor.Tensor) *compare.Bound {
	st := s.states[t]
	if t == nil || st == nil || st.unknown {
		return nil
	}
	return &compare.Bound{Value: t, Error: st.err, Terms: st.terms, Count: st.count, Unit: s.unit, Functions: st.functions}
}

// Recording runs f; without recording, what its calls compute has no gradient.
func (s *errorSession) Recording(on bool, f func() error) error {
	defer func(was bool) { s.silent = was }(s.silent)
	s.silent = !on
	return f()
}

// Replace takes the error bounds along when the elements are the same ones in
// another layout; nothing is known of other elements.
func (s *errorSession) Replace(v *eager.Var, t *tensor.Tensor) {
	st := s.of(v)
	if other := s.states[t]; other != nil {
		st = other
	}
	v.Tensor = t
	s.states[t] = st
}

// Kept returns the tensor itself: its bound is looked up by it.
func (s *errorSession) Kept(t *tensor.Tensor) *tensor.Tensor { return t }
