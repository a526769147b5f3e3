// Package eager applies the operators of a table at once. Each result that
// needs a gradient remembers the application that made it, so that the
// applications are forgotten with their results.
package eager

import (
	"cmp"
	"fmt"
	"slices"

	"plumb/internal/autograd"
	"plumb/op"
	"plumb/tensor"
)

// Var is a tensor that takes part in differentiation.
type Var struct {
	*tensor.Tensor
	requiresGrad bool
	symbolic     bool // the elements are not known
	unrecorded   bool // a view that requires a gradient as what it views does, made while nothing was recorded
	retains      bool
	from         *application
	// Grad is for a caller that accumulates gradients; a session leaves it alone.
	Grad *Var
	rare *rare // nil for most
}

// rare is what few variables have: each call makes one, so that its size tells.
type rare struct {
	version *int // of the memory that the variable is part of; nil: nobody changes it
	at      int  // *version when the variable was what the memory holds
	arrives func(gradient op.Value) error
}

func (v *Var) more() *rare {
	if v.rare == nil {
		v.rare = &rare{}
	}
	return v.rare
}

// application is one recorded call, the at-th of its session.
type application struct {
	autograd.Node
	at    int
	reads bool // its gradient is computed from elements of its arguments or results
	freed bool // they are forgotten
}

// Track notes that v is what a memory holds as long as *version stays what it is.
func (v *Var) Track(version *int) { v.more().version, v.rare.at = version, *version }

func (v *Var) stale() bool {
	return v.rare != nil && v.rare.version != nil && *v.rare.version != v.rare.at
}

// RequiresGrad reports whether a gradient of the variable is wanted, because
// it is such a leaf or depends on one.
func (v *Var) RequiresGrad() bool { return v.requiresGrad }

// SetRequiresGrad says whether a gradient of a leaf is wanted from now on.
func (v *Var) SetRequiresGrad(on bool) { v.requiresGrad = on }

// Elements returns the variable's tensor on the host, or op.ErrNoElements where the
// session computes none.
func (v *Var) Elements() (*tensor.Tensor, error) {
	if v.symbolic {
		return nil, op.ErrNoElements
	}
	return v.To(nil)
}

// IsLeaf reports whether no recorded call made the variable.
func (v *Var) IsLeaf() bool { return v.from == nil }

// RetainGrad has gradients added up in the variable though it is no leaf.
func (v *Var) RetainGrad() { v.retains = true }

// OnGradient has f told of the gradient that arrives at the result of a call, before
// it is passed on to the call's arguments.
func (v *Var) OnGradient(f func(gradient op.Value) error) { v.more().arrives = f }

// Accumulates reports whether gradients are added up in the variable: it is a
// leaf that wants one, not an unrecorded view, or retains them.
func (v *Var) Accumulates() bool {
	return v.retains || v.from == nil && v.requiresGrad && !v.unrecorded
}

// Session applies operators of one table. It is for one goroutine.
type Session struct {
	table   *op.Table
	count   int // of recorded calls
	paused  bool
	walking *walk // nil while no Backward runs
	limit   int
	keys    op.Keys
	drew    func(call *op.Call, out []op.Value)
	compute func(call *op.Call) ([]*tensor.Tensor, error)
	// symbolic says that the tensors of variables are layouts.
	symbolic bool
	applied  func(n *autograd.Node)
	device   *op.Device // nil: each call is computed where its tensors are
	stream   int
	states   op.States
	computes bool // by another function than op.Call.Execute
	plans    map[string]*plans
}

// New returns a session over the table.
func New(table *op.Table) *Session { return &Session{table: table, compute: (*op.Call).Execute} }

// Compute has f take the place of op.Call.Execute: it returns the tensors that
// stand for a call's results.
func (s *Session) Compute(f func(call *op.Call) ([]*tensor.Tensor, error)) {
	s.compute, s.computes = f, true
}

// OnGrad has f told of every application whose gradient is recorded next, and
// of nil after the last.
func (s *Session) OnGrad(f func(n *autograd.Node)) { s.applied = f }

// Symbolic has the session compute with layouts: no element of a variable is known.
func (s *Session) Symbolic() { s.symbolic = true }

// On has what is made from now on be on a stream of a device, tensors of the host that
// calls take too; nil leaves calls where their tensors are.
func (s *Session) On(d *op.Device, stream int) { s.device, s.stream = d, stream }

// Limit bounds the bytes that the results of one call and its temporary memory
// may take; 0 leaves them to op.Call.
func (s *Session) Limit(bytes int) { s.limit = bytes }

// Pause stops recording while f runs: what it computes needs no gradient.
func (s *Session) Pause(f func() error) error {
	defer func(was bool) { s.paused = was }(s.paused)
	s.paused = true
	return f()
}

// Recording runs f with or without recording, whatever is the case around it.
func (s *Session) Recording(on bool, f func() error) error {
	defer func(was bool) { s.paused = was }(s.paused)
	s.paused = !on
	return f()
}

// Seed sets what the draws of random operators follow from.
func (s *Session) Seed(seed uint64) { s.keys.Seed = seed }

// Reseed begins the draws of a seed: see op.Keys.
func (s *Session) Reseed(seed uint64) { s.keys.Reseed(seed) }

// OnDraw has f told of every call of a random operator, those within modules
// and gradients too.
func (s *Session) OnDraw(f func(call *op.Call, out []op.Value)) { s.drew = f }

// Leaf returns a variable of the tensor; requiresGrad asks for its gradient.
func Leaf(t *tensor.Tensor, requiresGrad bool) *Var {
	return &Var{Tensor: t, requiresGrad: requiresGrad}
}

// Leaf returns a variable of the tensor, on the session's device; requiresGrad asks for
// its gradient. It panics when the device has no memory.
func (s *Session) Leaf(t *tensor.Tensor, requiresGrad bool) *Var {
	if s.device != nil {
		moved, err := (&tensor.Move{To: s.device, Stream: s.stream}).Tensor(t)
		if err != nil {
			panic(fmt.Sprintf("eager: %s on %s: %v", t, s.device, err))
		}
		t = moved
	}
	v := Leaf(t, requiresGrad)
	v.symbolic = s.symbolic
	return v
}

// Builder returns a Builder that computes at once.
func (s *Session) Builder() op.Builder { return op.Builder{Applier: s} }

// Apply computes an operator by id. Tensors among the arguments are *Var or
// *tensor.Tensor; the results are *Var.
func (s *Session) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := s.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return s.Execute(call)
}

// Call computes an operator by public name.
func (s *Session) Call(name string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := s.table.Resolve(name, args, kwargs)
	if err != nil {
		return nil, err
	}
	return s.Execute(call)
}

// Execute computes a bound call and records it when a gradient is wanted.
func (s *Session) Execute(call *op.Call) ([]op.Value, error) {
	if call.InPlace {
		return nil, fmt.Errorf("%w: %s in place outside of a program", op.ErrUnknown, call.Def.ID())
	}
	if call.Def.Compose != nil && !call.Def.Traits.Has(op.NoGrad) {
		defer s.beside(call.Args.AllValues())()
		return call.Parts(s.Builder())
	}
	if s.walking != nil {
		s.walking.note(call)
		if err := unchanged(call); err != nil {
			return nil, err
		}
	}
	record := false
	plain := op.Call{Def: call.Def, Limit: s.limit, Stores: call.Stores, Device: s.device, Stream: s.stream, States: &s.states, Args: call.Args.MapValues(func(v op.Value) op.Value {
		if x, ok := v.(*Var); ok {
			record = record || x.requiresGrad
			return x.Tensor
		}
		return v
	})}
	if call.Def.Traits.Has(op.Random) {
		numbered := *call
		numbered.Draw, numbered.Key = s.keys.Key(call)
		call, plain.Draw, plain.Key = &numbered, numbered.Draw, numbered.Key
	}
	if f := call.Def.Itself; f != nil && f(plain.Args) {
		if x, ok := call.Args.Vals[0].(*Var); ok {
			_, err := plain.Infer()
			return []op.Value{x}, err
		}
	}
	ts, err := s.compute(&plain)
	if err != nil {
		return nil, err
	}
	record = record && !call.Def.Traits.Has(op.NoGrad) && smooth(call)
	unrecorded := record && s.paused && s.walking == nil && call.Def.View != nil && shares(&plain, ts[0])
	record = record && !s.paused
	of := func(t *tensor.Tensor) Var {
		return Var{Tensor: t, requiresGrad: (record || unrecorded) && t.DType().IsDifferentiable(), symbolic: s.symbolic, unrecorded: unrecorded}
	}
	var out []op.Value
	if len(ts) == 1 { // in one piece of memory, as most operators have one result
		r := &struct {
			v   Var
			out [1]op.Value
		}{v: of(ts[0])}
		r.out[0] = &r.v
		out = r.out[:]
	} else {
		out = make([]op.Value, len(ts))
		for i, t := range ts {
			v := of(t)
			out[i] = &v
		}
	}
	if call.MakesLeaf() {
		if !ts[0].DType().IsDifferentiable() {
			return nil, op.RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
		}
		out[0].(*Var).requiresGrad = true
	}
	if record {
		s.record(call, out)
	}
	if s.drew != nil && call.Def.Traits.Has(op.Random) {
		s.drew(call, out)
	}
	return out, nil
}

func (s *Session) record(call *op.Call, out []op.Value) {
	from := &application{Node: autograd.Node{Call: call, Out: out}, at: s.count}
	s.count++
	for _, v := range out {
		v.(*Var).from = from
	}
}

// shares reports whether the result of a call has the memory of an argument.
func shares(call *op.Call, result *tensor.Tensor) bool {
	return slices.ContainsFunc(call.Args.AllValues(), func(v op.Value) bool {
		x, ok := v.(*tensor.Tensor)
		return ok && x.SharesStorage(result)
	})
}

// tape returns the applications that the values depend on, in their order; with
// inputs, those of them that depend on an input.
func tape(values, inputs []op.Value) []*application {
	seen := map[*application]bool{}
	var found []*application
	for left := slices.Clone(values); len(left) > 0; {
		v, ok := left[len(left)-1].(*Var)
		left = left[:len(left)-1]
		if !ok || v.from == nil || seen[v.from] {
			continue
		}
		seen[v.from] = true
		found = append(found, v.from)
		left = append(left, v.from.Call.Args.AllValues()...)
	}
	slices.SortFunc(found, func(a, b *application) int { return cmp.Compare(a.at, b.at) })
	if inputs == nil {
		return found
	}
	leads := map[*application]bool{}
	return slices.DeleteFunc(found, func(a *application) bool {
		leads[a] = slices.ContainsFunc(a.Call.Args.AllValues(), func(v op.Value) bool {
			x, ok := v.(*Var)
			return slices.Contains(inputs, v) || ok && leads[x.from]
		})
		return !leads[a]
	})
}

// unchanged rejects, within a gradient, arguments that were part of a memory
// when they were used and have been changed there since.
func unchanged(call *op.Call) error {
	if call.Def.Traits.Has(op.ShapeOnly) {
		return nil
	}
	for _, v := range call.Args.AllValues() {
		if x, ok := v.(*Var); ok && x.stale() {
			return op.RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: %s is at version %d; expected version %d instead", x, *x.rare.version, x.rare.at)
		}
	}
	return nil
}

// smooth reports whether an argument that wants a gradient is one on which the
// results depend smoothly.
func smooth(call *op.Call) bool {
	if call.Def.Constant == nil {
		return true
	}
	constant := call.Def.Constant(call.Args)
	for i, p := range call.Args.Sig.Params {
		v, ok := call.Args.Vals[i].(op.Value)
		if ok && !slices.Contains(constant, op.TensorArg(p.Name)) && RequiresGrad(v) {
			return true
		}
	}
	return false
}

// RequiresGrad reports whether v is a variable that wants a gradient.
func RequiresGrad(v op.Value) bool {
	x, ok := v.(*Var)
	return ok && x.requiresGrad
}

// Backward returns the gradients of the values, weighted by their cotangents,
// with respect to every variable that they depend on and that accumulates
// gradients; with inputs, of those that depend on one of them in turn, and of the
// inputs. With create, the gradients are recorded and can be differentiated again.
func (s *Session) Backward(values, cotangents []op.Value, create bool, inputs ...op.Value) (autograd.Cotangents, error) {
	paused := s.paused
	defer func() { s.paused, s.walking = paused, nil }()
	s.paused, s.walking = !create, &walk{}
	b := s.Builder()
	cot := autograd.Cotangents{}
	for i, v := range values {
		if !RequiresGrad(v) {
			return nil, op.RuntimeError("element %d of tensors does not require grad and does not have a grad_fn", i)
		}
		seed := cotangents[i]
		if d := v.(*Var).Device(); d != nil {
			var err error
			if seed, err = s.To(s.variable(seed), d); err != nil {
				return nil, err
			}
		}
		if err := cot.Seed(b, v, seed); err != nil {
			return nil, err
		}
	}
	if err := s.walk(b, tape(values, inputs), cot, inputs); err != nil {
		return nil, fmt.Errorf("backward: %w", err)
	}
	return cot, nil
}

// walk is autograd.Walk, told of.
func (s *Session) walk(b op.Builder, tape []*application, cot autograd.Cotangents, inputs []op.Value) error {
	if s.applied != nil {
		defer s.applied(nil)
	}
	for _, a := range slices.Backward(tape) {
		if a.freed {
			return op.RuntimeError("%s", freedGraph)
		}
		if s.applied != nil {
			s.applied(&a.Node)
		}
		s.walking.enter(a, cot)
		if err := arrived(a.Out, cot); err != nil {
			return err
		}
		restore := s.beside(a.Out)
		err := autograd.Walk(b, []autograd.Node{a.Node}, cot, RequiresGrad)
		if restore(); err != nil {
			return err
		}
		Passed(&a.Node, cot, inputs)
	}
	return nil
}

// arrived tells of the gradients of a call's results.
func arrived(out []op.Value, cot autograd.Cotangents) error {
	for _, v := range out {
		if x, ok := v.(*Var); ok && x.rare != nil && x.rare.arrives != nil && cot[v] != nil {
			if err := x.rare.arrives(cot[v]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Passed lets the gradients of a node's results go, which have been passed on to
// its arguments, but for those of inputs and those that accumulate.
func Passed(n *autograd.Node, cot autograd.Cotangents, inputs []op.Value) {
	for _, v := range n.Out {
		if x, ok := v.(*Var); !(ok && x.Accumulates()) && !slices.Contains(inputs, v) {
			delete(cot, v)
		}
	}
}

const freedGraph = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). " +
	"Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). " +
	"Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."

// Release ends what Backward of the same values and inputs may be repeated with:
// a call whose gradient reads elements is not differentiated again.
func (s *Session) Release(values []op.Value, inputs ...op.Value) {
	for _, a := range tape(values, inputs) {
		a.freed = a.reads
		if saves := a.Call.Def.Saves; saves != nil {
			a.freed = saves(a.Call.Args)
		}
	}
}

// walk is where Backward is.
type walk struct {
	of    *application
	saved map[op.Value]bool // arguments and results of the call whose gradient is computed, but for what arrives
}

func (w *walk) enter(a *application, cot autograd.Cotangents) {
	w.of, w.saved = a, map[op.Value]bool{}
	for _, v := range slices.Concat(a.Call.Args.AllValues(), a.Out) {
		w.saved[v] = true
	}
	for _, v := range a.Out {
		delete(w.saved, cot[v])
	}
}

// note notes that a gradient is computed by a call.
func (w *walk) note(call *op.Call) {
	if w.of == nil || w.of.reads || call.Def.Traits.Has(op.ShapeOnly) {
		return
	}
	w.of.reads = slices.ContainsFunc(call.Args.AllValues(), func(v op.Value) bool { return w.saved[v] })
}
