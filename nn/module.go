// Package nn holds modules: a constructor with PyTorch's parameters, the
// parameters and buffers that it makes, and a forward rule written on a
// Builder. It knows neither how operators run nor where tensors live.
package nn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// ErrUnsupported is wrapped by errors that say that an argument, legal in
// PyTorch, is not implemented.
var ErrUnsupported = errors.New("unsupported")

// Scoped is an op.Applier that is told of the calls of modules around what it
// applies.
type Scoped interface {
	// EnterModule begins a module's call, which leave ends with its results.
	EnterModule(m *Module, args op.Args) (leave func(out []op.Value))
}

// Kind tells parameters from buffers.
type Kind string

// The kinds of state. A Param is trained; a Buffer is part of the state only.
const (
	Param  Kind = "parameter"
	Buffer Kind = "buffer"
)

// Slot describes one entry of a module's state.
type Slot struct {
	Name  string // as in PyTorch's state_dict
	Kind  Kind
	DType tensor.DType
	Shape []int
	// Fill is the initial value of every element; nil for a random one, which
	// has to be loaded.
	Fill *float64
	// Initial draws the initial elements, where Fill is nil; without it a random entry
	// has to be loaded.
	Initial Initial
	// Given is the initial value where an argument of the constructor is it.
	Given op.Value
}

// Def is one kind of module.
type Def struct {
	// Names are the public names: "torch.nn.Conv2d".
	Names []string
	// Sig is the constructor in schema notation; More are further ones, as in op.Def.
	Sig  string
	More []string
	// Doc is one sentence.
	Doc string
	// Random says that the forward may apply random operators.
	Random bool
	// Mutates says that the forward may write into elements of the state.
	Mutates bool
	// Container modules are made from modules instead of Sig's arguments.
	Container bool
	// AnyArguments says that the constructor takes any arguments and ignores them.
	AnyArguments bool
	// Reject returns the constructor's rejections.
	Reject func(a op.Args) error
	// State lists the parameters and buffers in the order of PyTorch's state_dict.
	State func(a op.Args) []Slot
	// Parts makes the modules that the module consists of.
	Parts func(a op.Args) ([]Named, error)
	// ForwardSig is the signature of a call; nothing means "forward(Tensor input)".
	// ForwardMore are further ones with the same names.
	ForwardSig  string
	ForwardMore []string
	// Paired says that the results after the first are one tuple, as in
	// LSTM's (output, (h, c)).
	Paired bool
	// Forward computes the results of a call. Errors end it through op.Fail.
	Forward func(b op.Builder, m *Module, a op.Args) []op.Value

	sigs    []*op.Sig
	forward []*op.Sig
}

// Module is a constructed module with its state.
type Module struct {
	Def      *Def
	Args     op.Args // of the constructor
	Training bool
	Children []*Module

	names  []string // of Children where they are not their indices
	slots  []Slot
	values map[string]op.Value
}

// Name returns the first public name.
func (d *Def) Name() string { return d.Names[0] }

// Sigs returns the constructor's signatures in the order in which they are tried.
func (d *Def) Sigs() []*op.Sig { return d.sigs }

func (d *Def) init() error {
	if d.ForwardSig == "" {
		d.ForwardSig = "forward(Tensor input)"
	}
	var err error
	if d.forward, err = parsed(d.ForwardSig, d.ForwardMore); err != nil {
		return err
	}
	d.sigs, err = parsed(d.Sig, d.More)
	return err
}

func parsed(first string, more []string) ([]*op.Sig, error) {
	var sigs []*op.Sig
	for _, text := range append([]string{first}, more...) {
		s, err := op.ParseSig(text)
		if err != nil {
			return nil, err
		}
		sigs = append(sigs, s)
	}
	return sigs, nil
}

// New constructs a module in training mode. Values that have a constant
// initial value are set; others are to be loaded. The error is a rejection
// (*op.Error).
func (d *Def) New(args []any, kwargs []op.Kwarg) (m *Module, err error) {
	defer func() { named(&err, d.Name()) }()
	if d.sigs == nil {
		return nil, fmt.Errorf("the module %s is in no table: make its definition by nn.Must", d.Name())
	}
	if d.Container {
		return d.contain(args, kwargs)
	}
	a, err := d.bind(args, kwargs)
	if err != nil {
		return nil, err
	}
	if d.Reject != nil {
		if err := d.Reject(a); err != nil {
			return nil, err
		}
	}
	m = &Module{Def: d, Args: a, Training: true, values: map[string]op.Value{}}
	if d.State != nil {
		m.slots = d.State(a)
	}
	for _, s := range m.slots {
		if err := s.check(); err != nil {
			return nil, err
		}
		switch {
		case s.Given != nil:
			m.values[s.Name] = s.Given
		case s.Fill != nil:
			m.values[s.Name] = s.constant()
		}
	}
	if d.Parts != nil {
		parts, err := d.Parts(a)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			m.Children, m.names = append(m.Children, p.Module), append(m.names, p.Name)
		}
	}
	return m, nil
}

// Opaque lets a module be an argument of a constructor.
func (m *Module) Opaque() {}

// named puts a module's name into a rejection that lacks one.
func named(err *error, name string) {
	var e *op.Error
	if errors.As(*err, &e) && e.Op == "" {
		e.Op = name
	}
}

func (d *Def) bind(args []any, kwargs []op.Kwarg) (op.Args, error) {
	if d.AnyArguments {
		args, kwargs = nil, nil
	}
	a, err := bindAny(d.sigs, args, kwargs)
	if err != nil {
		return op.Args{}, err
	}
	return d.widen(a), nil
}

// bindAny binds arguments by the first signature that takes them.
func bindAny(sigs []*op.Sig, args []any, kwargs []op.Kwarg) (op.Args, error) {
	var first error
	for _, s := range sigs {
		a, err := s.Bind(args, kwargs, false)
		if err == nil {
			return a, nil
		}
		first = cmp.Or(first, err)
	}
	return op.Args{}, first
}

// widen brings arguments of any signature into the order of the main one.
func (d *Def) widen(a op.Args) op.Args {
	main := d.sigs[0]
	vals := make([]any, len(main.Params))
	for i, p := range main.Params {
		vals[i] = p.Default
		if j := a.Sig.Index(op.AnyArg(p.Name)); j >= 0 {
			vals[i] = a.Vals[j]
		}
	}
	return op.Args{Sig: main, Vals: vals}
}

// check rejects what no tensor can be.
func (s *Slot) check() error {
	if slices.ContainsFunc(s.Shape, func(n int) bool { return n < 0 }) {
		return op.RuntimeError("%s has a negative dimension: %s", s.Name, tensor.ShapeString(s.Shape))
	}
	if err := tensor.CheckShape(s.DType, s.Shape); err != nil {
		return op.RuntimeError("%s: %v", s.Name, err)
	}
	if s.Kind == Param && !s.DType.IsDifferentiable() {
		return op.RuntimeError("%s of dtype %s cannot require gradients", s.Name, s.DType)
	}
	return nil
}

func (s *Slot) constant() *tensor.Tensor {
	t := tensor.New(s.DType, s.Shape...)
	if *s.Fill != 0 {
		for i := range t.Len() {
			t.Set(i, complex(*s.Fill, 0))
		}
	}
	return t
}

// OwnState lists the entries of the module without those of its children.
func (m *Module) OwnState() []Slot { return slices.Clone(m.slots) }

// State lists the entries of the module and its children, those under "0.",
// "1." and so on, or the names that the children were given.
func (m *Module) State() []Slot {
	all := slices.Clone(m.slots)
	for i, c := range m.Children {
		for _, s := range c.State() {
			s.Name = m.childName(i) + "." + s.Name
			all = append(all, s)
		}
	}
	return all
}

// owner returns the module that has the named entry, and its name there.
func (m *Module) owner(name string) (*Module, *Slot) {
	for i := range m.slots {
		if m.slots[i].Name == name {
			return m, &m.slots[i]
		}
	}
	for i, c := range m.Children {
		prefix := m.childName(i) + "."
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			return c.owner(name[len(prefix):])
		}
	}
	return nil, nil
}

// Load sets the named parameter or buffer, which must have its dtype and shape.
func (m *Module) Load(name string, v op.Value) error {
	o, s := m.owner(name)
	if s == nil {
		return fmt.Errorf("%s has no state %q", m.Def.Name(), name)
	}
	if v.DType() != s.DType || !slices.Equal(v.Shape(), s.Shape) {
		return fmt.Errorf("state %q of %s is %s%s, not %s%s", name, m.Def.Name(), s.DType, tensor.ShapeString(s.Shape), v.DType(), tensor.ShapeString(v.Shape()))
	}
	o.values[s.Name] = v
	return nil
}

// Assign makes v the named parameter or buffer, as an assignment to m.weight does: the
// entry takes its dtype and shape.
func (m *Module) Assign(name string, v op.Value) error {
	o, s := m.owner(name)
	if s == nil {
		return fmt.Errorf("%s has no state %q", m.Def.Name(), name)
	}
	i := slices.IndexFunc(o.slots, func(one Slot) bool { return one.Name == s.Name })
	o.slots = slices.Clone(o.slots)
	o.slots[i].DType, o.slots[i].Shape = v.DType(), slices.Clone(v.Shape())
	o.values[s.Name] = v
	return nil
}

// Conversion returns the dtype to which a method that every module has converts it.
func Conversion(method string, args []any) (d tensor.DType, ok bool) {
	switch {
	case (method == "to" || method == "type") && len(args) == 1:
		d, ok = args[0].(tensor.DType)
	case len(args) == 0:
		d, ok = map[string]tensor.DType{"float": tensor.F32, "double": tensor.F64, "half": tensor.F16, "bfloat16": tensor.BF16}[method]
	}
	return d, ok
}

// Convert gives the floating-point parameters and buffers of the module and its
// children a dtype; f converts each.
func (m *Module) Convert(d tensor.DType, f func(v op.Value, kind Kind) op.Value) {
	m.slots = slices.Clone(m.slots)
	for i := range m.slots {
		if s := &m.slots[i]; s.DType.IsFloat() && s.DType != d {
			s.DType = d
			m.values[s.Name] = f(m.values[s.Name], s.Kind)
		}
	}
	for _, c := range m.Children {
		c.Convert(d, f)
	}
}

// Drop removes the module's own entry bias, as m.bias = None does, and reports
// whether it had one and can do without.
func (m *Module) Drop(name string) bool {
	i := slices.IndexFunc(m.slots, func(s Slot) bool { return s.Name == name })
	if i < 0 || name != "bias" {
		return false
	}
	m.slots = slices.Delete(slices.Clone(m.slots), i, i+1)
	delete(m.values, name)
	return true
}

// Value returns the named parameter or buffer; nil when it is not loaded.
func (m *Module) Value(name string) op.Value {
	o, s := m.owner(name)
	if s == nil {
		return nil
	}
	return o.values[s.Name]
}

// Given returns the argument of the constructor that the module has as an
// attribute of the same name: a number or a truth value.
func (m *Module) Given(name string) (any, bool) {
	i := m.Args.Sig.Index(op.AnyArg(name))
	if i < 0 {
		return nil, false
	}
	switch v := m.Args.Vals[i].(type) {
	case int:
		return int64(v), true
	case int64, float64, bool:
		return v, true
	case nil: // padding_idx, say; a device and a dtype are no attributes
		return nil, name != "device" && name != "dtype"
	}
	return nil, false
}

// Sizes returns the numbers, one for each dimension of its images, that a convolution
// has as an attribute: its stride, say; nil for others.
func (m *Module) Sizes(name string) []int {
	i := m.Args.Sig.Index(op.AnyArg(name))
	if i < 0 || !strings.HasPrefix(m.Def.Name(), "torch.nn.Conv") {
		return nil
	}
	n := m.Args.Sig.Params[i].Type.N
	sizes, ok := m.Args.Vals[i].([]int)
	switch {
	case !ok || n == 0:
		return nil
	case len(sizes) == 1:
		return slices.Repeat(sizes, n)
	}
	return sizes
}

// Train sets the training mode of the module and its children.
func (m *Module) Train(mode bool) {
	m.Training = mode
	for _, c := range m.Children {
		c.Train(mode)
	}
}

// Call computes the module's results. Buffers that training changes are
// replaced by new values. The error is a rejection (*op.Error), wraps
// ErrUnsupported, or says which entry of the state is not loaded.
func (m *Module) Call(b op.Builder, args []any, kwargs []op.Kwarg) (out []op.Value, err error) {
	defer func() { named(&err, m.Def.Name()) }()
	for _, s := range m.slots {
		if m.values[s.Name] == nil {
			return nil, fmt.Errorf("state %q of %s is not loaded", s.Name, m.Def.Name())
		}
	}
	a, err := bindAny(m.Def.forward, args, kwargs)
	if err != nil {
		return nil, err
	}
	if s, ok := b.Applier.(Scoped); ok {
		leave := s.EnterModule(m, a)
		defer func() { leave(out) }()
	}
	if failed := op.Catch(func() { out = m.Def.Forward(b, m, a) }); failed != nil {
		return nil, failed
	}
	return out, nil
}

// param returns an entry as an operator's optional argument: nil when the module lacks it.
func (m *Module) param(name string) any {
	if v := m.values[name]; v != nil {
		return v
	}
	return nil
}
