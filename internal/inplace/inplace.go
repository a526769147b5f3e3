// Package inplace gives a program's in-place calls their meaning while every
// operator stays a pure function. A variable is what a name stands for. Some
// variables share a memory: one is the whole of it, the others are views, each
// remembered as the calls that made it. An in-place call computes its result
// as a new value, puts that into the memory's whole, and leaves the memory's
// other variables to be viewed again when they are next read. Gradients
// follow, because the puts and views are operators like any other.
package inplace

import (
	"errors"
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

// ErrUnsupported says that an in-place call is beyond this package.
var ErrUnsupported = errors.New("in-place call is not supported")

// Host applies pure operators and knows what only their values' maker can tell.
type Host interface {
	// Execute applies an operator that is not a composition.
	Execute(call *op.Call) ([]op.Value, error)
	// RequiresGrad reports whether a gradient of the value is wanted.
	RequiresGrad(v op.Value) bool
	// Same reports whether two values are one tensor.
	Same(a, b op.Value) bool
	// Shares reports whether the result of a call shares the memory of an argument.
	Shares(c *op.Call, result, argument op.Value) bool
	// Overlaps reports whether two values that share memory lie over another
	// there without being the same part of it.
	Overlaps(a, b op.Value) bool
	// Arrange lays a value that nobody else has out with the strides.
	Arrange(v op.Value, strides []int)
	// Adopt gives a value that nobody else has the elements of another: its
	// gradient stays. It returns false where that cannot be.
	Adopt(v, elements op.Value) bool
	// Track notes that v is what its memory holds as long as *version stays what it is.
	Track(v op.Value, version *int)
}

// Space holds the variables of one program. It is an op.Applier.
type Space struct {
	host      Host
	table     *op.Table
	variables map[op.Value]*variable
	quiet     bool // changes are not differentiated
}

// variable is what a name stands for.
type variable struct {
	memory *memory
	steps  []step   // that make it from the whole
	value  op.Value // as of version
	at     int
	frozen string // why PyTorch refuses to change the view where that is differentiated; "": it does not
}

// step is a view: the call, and which of its arguments is viewed.
type step struct {
	call *op.Call
	of   op.Value
}

// memory is what variables share.
type memory struct {
	whole   op.Value
	version int // how often it was changed
	leaf    bool
	lent    bool // tensors of another memory share it, which would change with it
}

// New returns a space without variables.
func New(table *op.Table, host Host) *Space {
	return &Space{host: host, table: table, variables: map[op.Value]*variable{}}
}

// Recording says whether changes from now on are differentiated. Where they
// are not, what requires a gradient keeps its history and takes other elements.
func (s *Space) Recording(on bool) { s.quiet = !on }

// Leaf notes an input of the program.
func (s *Space) Leaf(v op.Value) {
	s.of(v).memory.leaf = s.host.RequiresGrad(v)
}

// Underlie makes a leaf the whole of the memory of v, which shares its elements
// but requires no gradient: view is the call that makes v of the leaf. Where v is
// a part of its memory, or that has a gradient of its own, neither can be changed
// from then on.
func (s *Space) Underlie(v, leaf op.Value, view *op.Call) {
	x := s.of(v)
	m := x.memory
	s.of(leaf).memory.lent = true // which views that are older have
	if s.host.RequiresGrad(m.whole) || len(x.steps) > 0 {
		m.lent = true
		return
	}
	seen := map[*variable]bool{}
	for _, x := range s.variables {
		if x.memory == m && !seen[x] {
			seen[x] = true
			x.steps = append([]step{{view, leaf}}, x.steps...)
		}
	}
	m.whole, m.leaf = leaf, true
	s.hold(&variable{memory: m}, leaf)
}

// Renew gives v, which has taken the elements of y, a memory of its own; older views of v keep
// theirs. Where y, by a name or by a view, is still there, neither can be changed from then on.
func (s *Space) Renew(v, y op.Value, named bool) {
	s.of(v).memory.lent = true
	from := s.of(y)
	named = named || from.memory.lent
	for _, x := range s.variables {
		named = named || x != from && x.memory == from.memory
	}
	from.memory.lent = named
	s.hold(&variable{memory: &memory{whole: v, leaf: s.host.RequiresGrad(v), lent: named}}, v)
}

// of returns the variable that v is a value of.
func (s *Space) of(v op.Value) *variable {
	x := s.variables[v]
	if x == nil {
		x = &variable{memory: &memory{whole: v}}
		s.hold(x, v)
	}
	return x
}

// hold notes that a variable's value is v now.
func (s *Space) hold(x *variable, v op.Value) {
	x.value, x.at = v, x.memory.version
	s.variables[v] = x
	s.host.Track(v, &x.memory.version)
}

// Current returns what the variable holds now that once held v.
func (s *Space) Current(v op.Value) (op.Value, error) {
	x := s.variables[v]
	if x == nil {
		return v, nil
	}
	return s.read(x)
}

func (s *Space) read(x *variable) (op.Value, error) {
	if x.at == x.memory.version {
		return x.value, nil
	}
	v, err := s.view(x.memory.whole, x.steps)
	if err == nil {
		s.hold(x, v)
	}
	return v, err
}

// view applies steps to a whole.
func (s *Space) view(whole op.Value, steps []step) (op.Value, error) {
	for _, st := range steps {
		c := *st.call
		c.Args = c.Args.MapValues(func(v op.Value) op.Value {
			if v == st.of {
				return whole
			}
			return v
		})
		out, err := s.host.Execute(&c)
		if err != nil {
			return nil, err
		}
		whole = out[0]
	}
	return whole, nil
}

// Builder returns a Builder on the space.
func (s *Space) Builder() op.Builder { return op.Builder{Applier: s} }

// Apply applies an operator by id.
func (s *Space) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := s.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return s.Execute(call)
}

// Execute applies a bound call, in place where it says so. An in-place call
// returns what its first tensor argument holds after it.
func (s *Space) Execute(c *op.Call) ([]op.Value, error) {
	switch {
	case c.InPlace:
		v, err := s.change(c)
		var e *op.Error
		if errors.As(err, &e) && e.Op == "" {
			e.Op = c.Def.ID()
		}
		return []op.Value{v}, err
	case c.Def.Compose != nil:
		out, err := c.Parts(s.Builder())
		if c.Def.InPlace.FrozenViews {
			s.freeze(out)
		}
		return out, err
	}
	out, err := s.host.Execute(c)
	if err == nil && c.Def.View != nil {
		s.note(c, out[0])
	}
	return out, err
}

// Why PyTorch does not let a view be changed where that is differentiated.
const (
	severalViews   = "the output of a function that returns multiple views is a view and is being modified inplace. Such functions do not allow the output views to be modified inplace."
	unrecordedView = "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
)

func (s *Space) freeze(out []op.Value) {
	for _, v := range out {
		if x := s.variables[v]; x != nil && len(x.steps) > 0 && !s.quiet {
			x.frozen = severalViews
		}
	}
}

// note remembers how a view was made. What returns its argument itself, as
// contiguous may, makes no new variable.
func (s *Space) note(c *op.Call, view op.Value) {
	for _, v := range c.Args.AllValues() {
		shares := s.host.Shares(c, view, v)
		if s.host.Same(view, v) || shares && c.Def.Traits.Has(op.ItselfOrCopy) {
			x := s.of(v) // whose value stays the one that has a leaf's gradient
			s.variables[view] = x
			s.host.Track(view, &x.memory.version)
			return
		}
		if shares {
			of := s.of(v)
			x := &variable{memory: of.memory, steps: append(slices.Clip(of.steps), step{c, v}), frozen: of.frozen}
			if s.quiet && x.frozen == "" {
				x.frozen = unrecordedView
			}
			s.hold(x, view)
			return
		}
	}
}

// change applies an in-place call.
func (s *Space) change(c *op.Call) (op.Value, error) {
	v := c.Args.Vals[0].(op.Value)
	if c.Def.InPlace.Through != nil {
		if done, err := s.through(c); done || err != nil {
			return v, err
		}
	}
	x := s.of(v)
	if err := s.writable(x, c); err != nil {
		return nil, err
	}
	if c.Def.View != nil && !converts(c) {
		return s.reshape(x, c)
	}
	if refusal := c.Def.InPlace.NoGrad; refusal != "" && slices.ContainsFunc(c.Args.AllValues(), s.host.RequiresGrad) {
		return nil, op.RuntimeError("%s", refusal)
	}
	if err := s.apart(v, c); err != nil {
		return nil, err
	}
	result, err := s.result(v, c)
	if err != nil {
		return nil, err
	}
	if err := s.store(x, result); err != nil {
		return nil, err
	}
	return s.read(x)
}

// converts reports whether a view operator makes another dtype: it is no view then.
func converts(c *op.Call) bool { return c.Def.Sigs()[0].Takes(arg.DType) }

// through applies a call that is an in-place call on a view of its tensor;
// false where it is none.
func (s *Space) through(c *op.Call) (done bool, err error) {
	err = op.Catch(func() {
		id, args := c.Def.InPlace.Through(s.Builder(), c.Args)
		if id == "" {
			return
		}
		done = true
		call, err := s.table.ResolveID(id, args, nil)
		if err == nil {
			call.InPlace = true
			_, err = s.Execute(call)
		}
		if err != nil {
			op.Fail(err)
		}
	})
	return done, err
}

// writable rejects what PyTorch does not let an in-place call change.
func (s *Space) writable(x *variable, c *op.Call) error {
	switch {
	case s.quiet && !c.Def.InPlace.Detaches:
	case x.memory.leaf && len(x.steps) == 0 && !c.Def.InPlace.Detaches:
		return op.RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
	case x.memory.leaf && s.host.RequiresGrad(x.value):
		return op.RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
	case x.frozen != "" && slices.ContainsFunc(c.Args.AllValues(), s.host.RequiresGrad):
		return op.RuntimeError("%s", x.frozen)
	case c.Def.InPlace.Detaches && len(x.steps) > 0:
		return op.RuntimeError("Can't detach views in-place. Use detach() instead.")
	}
	return nil
}

// apart rejects an overlap in memory of what is written with itself or what is read.
func (s *Space) apart(v op.Value, c *op.Call) error {
	for i, n := range v.Shape() {
		if n > 1 && v.Strides()[i] == 0 && tensor.NumElements(v.Shape()) > 0 {
			if c.Def.InPlace.Expanded {
				return fmt.Errorf("%w: %s_ on an expanded tensor", ErrUnsupported, c.Def.ID())
			}
			return op.RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.")
		}
	}
	for _, other := range c.Args.AllValues() {
		if s.variables[other] != nil && s.variables[other].memory == s.of(v).memory && s.host.Overlaps(v, other) {
			return op.RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.")
		}
	}
	return nil
}

// reshape makes a variable another view of its memory, as t_ does.
func (s *Space) reshape(x *variable, c *op.Call) (op.Value, error) {
	if c.Def.InPlace.NoGradView && s.host.RequiresGrad(x.value) {
		return nil, fmt.Errorf("%w: %s_ that is differentiated", ErrUnsupported, c.Def.ID())
	}
	out, err := s.host.Execute(c.Pure())
	if err != nil {
		return nil, err
	}
	x.memory.version++
	x.steps = append(slices.Clip(x.steps), step{c.Pure(), c.Args.Vals[0].(op.Value)})
	s.hold(x, out[0])
	return out[0], nil
}

// result computes what an in-place call stores into v: a value of v's dtype,
// shape and strides that no variable has.
func (s *Space) result(v op.Value, c *op.Call) (out op.Value, err error) {
	err = op.Catch(func() {
		b := op.Builder{Applier: pure{s}}
		out = s.pureResult(b, v, c)
		if err := fits(v, out, c); err != nil {
			op.Fail(err)
		}
		if s.taken(c, v, out) {
			out = b.Clone(out)
		}
		out = b.Cast(out, v.DType())
		if reason := c.Def.InPlace.Refusal(c.Args); reason != "" && s.host.RequiresGrad(out) {
			out = b.NoGradient(out, reason)
		}
		if s.host.RequiresGrad(v) && !s.host.RequiresGrad(out) && !s.quiet {
			out = s.connected(b, v, out, c)
		}
		if !slices.Equal(out.Strides(), v.Strides()) {
			s.host.Arrange(out, v.Strides())
		}
	})
	return out, err
}

// pureResult applies the operator. Where it is differentiated it works on a
// copy of what it changes: PyTorch saves one too.
func (s *Space) pureResult(b op.Builder, v op.Value, c *op.Call) op.Value {
	call := c.Pure()
	call.Stores = true
	if slices.ContainsFunc(c.Args.AllValues(), s.host.RequiresGrad) {
		call.Args.Vals = slices.Clone(call.Args.Vals)
		call.Args.Vals[0] = b.Clone(v)
	}
	out, err := b.Applier.(pure).execute(call)
	if err != nil {
		op.Fail(err)
	}
	return out[0]
}

// taken reports whether a pure result may be something that a variable has.
func (s *Space) taken(c *op.Call, v, out op.Value) bool {
	return out == v || s.variables[out] != nil || s.host.Shares(c, out, v)
}

// connected makes the result of an operator without gradient depend on what it
// replaces: a gradient of zeros arrives there.
func (s *Space) connected(b op.Builder, v, out op.Value, c *op.Call) op.Value {
	if c.Def.InPlace.Untracked {
		return s.adopted(b, v, out)
	}
	return b.Replace(v, out)
}

// adopted returns the elements of out with the gradient of v.
func (s *Space) adopted(b op.Builder, v, out op.Value) op.Value {
	kept := b.Clone(v)
	if !s.host.Adopt(kept, out) {
		op.Fail(fmt.Errorf("%w: it hides a change from differentiation", ErrUnsupported))
	}
	return kept
}

// store makes a new value part of the variable's memory.
func (s *Space) store(x *variable, result op.Value) error {
	m := x.memory
	if m.lent {
		return fmt.Errorf("%w: it changes what x.data = y, or a parameter, shares", ErrUnsupported)
	}
	whole := result
	if len(x.steps) > 0 {
		err := op.Catch(func() { whole = s.put(op.Builder{Applier: pure{s}}, x, result) })
		if err != nil {
			return err
		}
	}
	if s.host.RequiresGrad(m.whole) && (s.quiet || m.leaf && !s.host.RequiresGrad(x.value)) {
		switch kept := s.host.Adopt(m.whole, whole); {
		case kept:
			whole = m.whole
		case s.quiet:
			return fmt.Errorf("%w: it changes what requires a gradient without one", ErrUnsupported)
		}
	}
	m.whole = whole
	m.version++
	s.host.Track(whole, &m.version)
	s.host.Track(result, &m.version)
	return nil
}

// Assign makes a value what the variable holds from now on that once held v.
func (s *Space) Assign(v, value op.Value) error {
	return s.store(s.of(v), value)
}

// put returns the variable's memory with a new value at its place there: the
// view's steps, taken from the positions of the whole, tell where that is.
func (s *Space) put(b op.Builder, x *variable, result op.Value) op.Value {
	m := x.memory
	at := b.Reshape(b.Arange(tensor.NumElements(m.whole.Shape())), m.whole.Shape())
	if !slices.Equal(at.Strides(), m.whole.Strides()) {
		at = b.Clone(at)
		s.host.Arrange(at, m.whole.Strides())
	}
	at, err := s.view(at, x.steps)
	if err == nil && at.DType() != tensor.I64 {
		err = fmt.Errorf("%w: a view in another dtype", ErrUnsupported)
	}
	if err != nil {
		op.Fail(fmt.Errorf("%w: %v", ErrUnsupported, err))
	}
	whole := b.Put(m.whole, at, result)
	if !slices.Equal(whole.Strides(), m.whole.Strides()) {
		s.host.Arrange(whole, m.whole.Strides())
	}
	if s.host.RequiresGrad(m.whole) && !s.host.RequiresGrad(x.value) {
		return s.adopted(b, m.whole, whole)
	}
	return whole
}

// pure applies operators to the host without noting views.
type pure struct{ *Space }

// Apply applies an operator by id.
func (p pure) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := p.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	return p.execute(call)
}

func (p pure) execute(c *op.Call) ([]op.Value, error) {
	if c.Def.Compose != nil {
		return c.Parts(op.Builder{Applier: p})
	}
	return p.host.Execute(c)
}
