package native

import (
	"context"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/autograd"
	"plumb/internal/eager"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Bounds runs the program, backward where gradients are asked for, in float64 and carries along with every value a
// bound of the rounding error that an implementation may have made on the way
// to it, whatever the order of its sums: a running error analysis (J. H.
// Wilkinson; N. Higham, Accuracy and Stability of Numerical Algorithms, §3.3),
// through gradients too. Values whose error cannot be told, and what depends
// on them, have no bound. State holds the initial state of modules.
func (b *Backend) Bounds(job *backend.Job, gradients bool) *compare.Bounds {
	s := &errorSession{table: b.table, states: map[*tensor.Tensor]*state{}, poles: map[*tensor.Tensor]bool{}, unit: roundoff(job)}
	wide := &backend.Job{Program: program.Widen(reached(job.Program, gradients)), State: map[string]backend.State{}}
	for _, t := range job.Inputs {
		wide.Inputs = append(wide.Inputs, t.Convert(program.Wide(t.DType())))
	}
	for name, st := range job.State {
		for _, n := range st {
			n.Tensor = n.Tensor.Convert(program.Wide(n.Tensor.DType()))
			wide.State[name] = append(wide.State[name], n)
		}
	}
	return s.collect(job.Program, b.run(context.Background(), wide, s, nil))
}

// reached returns the program without its backward pass where gradients are
// not asked for.
func reached(p *program.Program, gradients bool) *program.Program {
	if gradients {
		return p
	}
	forward := *p
	forward.Backward, forward.Second, forward.Step = nil, program.Fill{}, program.Step{}
	return &forward
}

// roundoff returns the unit roundoff of the coarsest dtype that the job computes in.
func roundoff(job *backend.Job) float64 {
	u := 0.0
	for _, t := range job.Inputs {
		if t.DType().IsDifferentiable() {
			u = max(u, compare.Roundoff(t.DType()))
		}
	}
	for _, st := range job.State {
		for _, n := range st {
			if n.Tensor.DType().IsDifferentiable() {
				u = max(u, compare.Roundoff(n.Tensor.DType()))
			}
		}
	}
	return u
}

// state is what is known of a value's rounding error.
type state struct {
	err      *tensor.Tensor // by element, in units of the roundoff; nil: the value is exact
	integral bool           // every element is an integer
	unknown  bool
	terms    *tensor.Tensor // Σ|terms| where the value is a sum of products
	count    float64        // roundings of one sum
	// functions says that functions were applied on the way.
	functions bool
}

// errorSession is a session whose values carry error bounds.
type errorSession struct {
	table  *op.Table
	tape   []autograd.Node
	states map[*tensor.Tensor]*state
	unit   float64
	silent bool                    // inside a Formula: nothing is recorded for differentiation
	poles  map[*tensor.Tensor]bool // results whose gradient is infinite or NaN
}

func (s *errorSession) Leaf(t *tensor.Tensor, requiresGrad bool) *eager.Var {
	return eager.New(s.table).Leaf(t, requiresGrad)
}

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
	out, err := eager.New(s.table).Execute(call)
	if err != nil {
		return nil, err
	}
	states := s.propagate(call, out)
	record := false
	for i, v := range out {
		x := v.(*eager.Var)
		s.states[x.Tensor] = states[i]
		record = record || x.RequiresGrad()
	}
	for _, name := range call.Def.Mutates {
		if v := call.Args.Value(name); v != nil {
			s.states[tensorOf(v)] = &state{unknown: true}
		}
	}
	if record && !s.silent {
		s.tape = append(s.tape, autograd.Node{Call: call, Out: out})
	}
	return out, nil
}

// Backward walks the tape; with create, what it computes is recorded on it.
func (s *errorSession) Backward(values, cotangents []op.Value, create bool) (autograd.Cotangents, error) {
	b := s.Builder()
	cot := autograd.Cotangents{}
	for i, v := range values {
		if err := cot.Seed(b, v, s.Leaf(tensorOf(cotangents[i]), false)); err != nil {
			return nil, err
		}
	}
	silent := s.silent
	defer func() { s.silent = silent }()
	s.silent = silent || !create
	defer s.notePoles(cot)
	return cot, autograd.Walk(b, s.tape, cot, eager.RequiresGrad)
}

// notePoles notes the recorded results whose gradient is not finite, or beyond
// the range of float32.
func (s *errorSession) notePoles(cot autograd.Cotangents) {
	for _, n := range s.tape {
		for _, out := range n.Out {
			if g := cot[out]; g != nil && !below([]*tensor.Tensor{absolute(tensorOf(g))}, math.MaxFloat32) {
				s.poles[tensorOf(out)] = true
			}
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
		s.states[t] = st
	}
	return st
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

// boundsBy puts what it returns for the tensors of an outcome in their places.
type boundsBy func(t *tensor.Tensor) *compare.Bound

func (bound boundsBy) value(v backend.Value) compare.ValueBound {
	if v.Tensor != nil {
		return compare.ValueBound{Bound: bound(v.Tensor)}
	}
	var b compare.ValueBound
	for _, item := range v.Tuple {
		b.Tuple = append(b.Tuple, bound.value(item))
	}
	return b
}

func (bound boundsBy) of(p *program.Program, out *backend.Outcome) *compare.Bounds {
	b := &compare.Bounds{Values: make([]compare.ValueBound, len(p.Calls))}
	for i, v := range out.Values {
		b.Values[i] = bound.value(v)
	}
	if out.Status == backend.OK {
		b.Grads, b.SecondGrads = bound.named(out.Grads), bound.named(out.SecondGrads)
		b.ParamGrads, b.SecondParamGrads = bound.states(out.ParamGrads), bound.states(out.SecondParamGrads)
	}
	return b
}

func (bound boundsBy) named(ts map[string]*tensor.Tensor) map[string]*compare.Bound {
	out := map[string]*compare.Bound{}
	for name, t := range ts {
		out[name] = bound(t)
	}
	return out
}

func (bound boundsBy) states(states map[string]backend.State) map[string]map[string]*compare.Bound {
	out := map[string]map[string]*compare.Bound{}
	for name, st := range states {
		out[name] = map[string]*compare.Bound{}
		for _, n := range st {
			out[name][n.Name] = bound(n.Tensor)
		}
	}
	return out
}

func (s *errorSession) collect(p *program.Program, out *backend.Outcome) *compare.Bounds {
	b := boundsBy(s.bound).of(p, out)
	for _, v := range out.Values {
		b.Poles = b.Poles || out.Status == backend.OK && s.poles[v.Tensor]
	}
	return b
}

var _ session = (*errorSession)(nil)

// Recording runs f; without recording, what its calls compute has no gradient.
func (s *errorSession) Recording(on bool, f func() error) error {
	defer func(was bool) { s.silent = was }(s.silent)
	s.silent = !on
	return f()
}
