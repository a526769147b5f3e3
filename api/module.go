package api

import (
	"fmt"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// Module is one of PyTorch's modules in a session, with its parameters and
// buffers:
//
//	m, err := s.Module("torch.nn.Linear", 3, 2)
//	err = m.Load("weight", w) // and "bias"
//	out, err := m.Call(x)
//	err = out[0].Backward(g) // m.Get("weight").Grad() has the gradient
type Module struct {
	m *nn.Module
	s *Session
}

// DefaultDType sets the dtype in which modules that are made from now on have
// their parameters, as torch.set_default_dtype does; float32 at first.
func (s *Session) DefaultDType(d DType) { s.dtype = d }

// Module constructs a module by its public name. Arguments are those of
// PyTorch's constructor, positional ones first; op.Kw makes one by keyword, and
// containers take modules. Parameters that PyTorch draws are to be loaded
// before the module is called. The error is an *op.Error of the class that
// PyTorch raises, or says that the name is unknown.
func (s *Session) Module(name string, args ...any) (*Module, error) {
	def := nn.Modules().Lookup(name)
	if def == nil {
		return nil, fmt.Errorf("%w %s", op.ErrUnknown, name)
	}
	return s.ModuleOf(def, args...)
}

// ModuleOf is Module of a definition of one's own, made by nn.Must, whose forward may
// use operators of the session's table. Parameters that have an Initial are drawn: two
// sessions of one seed that make the same modules draw the same.
func (s *Session) ModuleOf(def *nn.Def, args ...any) (*Module, error) {
	name := def.Name()
	if s.rec != nil {
		return nil, fmt.Errorf("%s: a session that records its calls makes no modules", name)
	}
	c := call{name: name, s: s}
	positional, kws := c.split(args)
	if s.dtype != tensor.Invalid && len(def.Sigs()) > 0 && def.Sigs()[0].Takes(arg.DType) && !slices.ContainsFunc(kws, func(k op.Kwarg) bool { return k.Name == "dtype" }) {
		kws = append(kws, op.Kw("dtype", s.dtype))
	}
	if c.err != nil {
		return nil, c.err
	}
	m, err := def.New(positional, kws)
	if err != nil {
		return nil, err
	}
	made := &Module{m, s}
	m.Draw(choice.Derive(s.seed, uint64(s.made)))
	s.made++
	if def.Container { // of modules that have their values
		return made, nil
	}
	for _, slot := range m.State() {
		if v, ok := m.Value(slot.Name).(*tensor.Tensor); ok {
			if err := made.Load(slot.Name, v); err != nil {
				return nil, err
			}
		}
	}
	return made, nil
}

// Load sets a parameter or buffer, under its name in PyTorch's state_dict, to a
// copy of t. The error says that the module has no such entry, or one of
// another dtype or shape.
func (m *Module) Load(name string, t *tensor.Tensor) error {
	kind := nn.Buffer
	for _, slot := range m.m.State() {
		if slot.Name == name {
			kind = slot.Kind
		}
	}
	return m.m.Load(name, m.s.eager.Leaf(t.Clone(), kind == nn.Param))
}

// Get returns a parameter or buffer; nil when there is none, or it is not loaded.
func (m *Module) Get(name string) *Tensor {
	switch v := m.m.Value(name).(type) {
	case *eager.Var:
		return &Tensor{v: v, s: m.s}
	case *tensor.Tensor:
		return m.s.Wrap(v)
	}
	return nil
}

// Train sets the training mode of the module and its children; a new module is
// in training mode.
func (m *Module) Train(mode bool) { m.m.Train(mode) }

// Call computes the module's results; nil stands for None among them. The
// error is an *op.Error of the class that PyTorch raises, or says which
// parameter is not loaded.
func (m *Module) Call(args ...any) ([]*Tensor, error) {
	c := call{name: m.m.Def.Name(), s: m.s}
	positional, kws := c.split(args)
	if c.err != nil {
		return nil, c.err
	}
	out, err := m.m.Call(m.s.eager.Builder(), positional, kws)
	if err != nil {
		return nil, err
	}
	ts := make([]*Tensor, len(out))
	for i, v := range out {
		if v != nil {
			ts[i] = &Tensor{v: v.(*eager.Var), s: m.s}
		}
	}
	return ts, nil
}

// split returns positional arguments and those by keyword.
func (c *call) split(args []any) (positional []any, kws []op.Kwarg) {
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, op.Kw(kw.Name, c.argument(kw.Value)))
		} else {
			positional = append(positional, c.argument(a))
		}
	}
	return positional, kws
}
