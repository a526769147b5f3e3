package script

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/internal/draw/gen"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

var hashSeed = maphash.MakeSeed()

func hashString(s string) (uint32, error) { return uint32(maphash.String(hashSeed, s)), nil }

// path is a dotted name below torch; calling it records a call.
type path string

func (p path) String() string        { return string(p) }
func (p path) Type() string          { return "function" }
func (p path) Freeze()               {}
func (p path) Truth() starlark.Bool  { return true }
func (p path) Hash() (uint32, error) { return hashString(string(p)) }
func (p path) Name() string          { return string(p) }
func (p path) AttrNames() []string   { return nil }
func (p path) Attr(name string) (starlark.Value, error) {
	if name == "pytorch" || name == "oneflow" {
		return p, nil
	}
	if name == loadName {
		name = "load"
	}
	if p == "torch" {
		if v, ok := torchConstants[name]; ok {
			return v, nil
		}
	}
	return p + path("."+name), nil
}

// SetField accepts what is set about torch's own backends, and lets it be.
func (p path) SetField(name string, _ starlark.Value) error {
	if strings.HasPrefix(string(p), "torch.backends.") {
		return nil
	}
	return lack("assigning to %s.%s is not supported in test files", p, name)
}

// torchConstants are the attributes of torch that are values.
var torchConstants = func() map[string]starlark.Value {
	m := map[string]starlark.Value{
		"inf": starlark.Float(math.Inf(1)), "nan": starlark.Float(math.NaN()), "pi": starlark.Float(math.Pi), "e": starlark.Float(math.E),
	}
	for _, d := range tensor.DTypes {
		m[d.String()] = dtype(d)
	}
	for _, alias := range []string{"short", "int", "long", "half", "float", "double", "cfloat", "cdouble"} {
		if d, err := tensor.ParseDType(alias); err == nil {
			m[alias] = dtype(d)
		}
	}
	for _, name := range []string{"contiguous_format", "channels_last"} {
		if f, err := tensor.ParseMemoryFormat(name); err == nil {
			m[name] = format(f)
		}
	}
	return m
}()

// dtype is an element type such as torch.float32.
type dtype tensor.DType

func (d dtype) String() string        { return "torch." + tensor.DType(d).String() }
func (d dtype) Type() string          { return "torch.dtype" }
func (d dtype) Freeze()               {}
func (d dtype) Truth() starlark.Bool  { return true }
func (d dtype) Hash() (uint32, error) { return uint32(d), nil }
func (d dtype) AttrNames() []string   { return nil }

// Attr returns what a dtype tells of itself; it is the same on both sides.
func (d dtype) Attr(name string) (starlark.Value, error) {
	switch name {
	case "pytorch", "oneflow":
		return d, nil
	case "is_floating_point":
		return starlark.Bool(tensor.DType(d).IsFloat()), nil
	case "is_complex":
		return starlark.Bool(tensor.DType(d).IsComplex()), nil
	case "itemsize":
		return starlark.MakeInt(tensor.DType(d).Size()), nil
	}
	return nil, nil
}

// format is a memory format such as torch.channels_last.
type format tensor.MemoryFormat

func (f format) String() string        { return "torch." + tensor.MemoryFormat(f).String() }
func (f format) Type() string          { return "torch.memory_format" }
func (f format) Freeze()               {}
func (f format) Truth() starlark.Bool  { return true }
func (f format) Hash() (uint32, error) { return uint32(f), nil }

// complexNumber is a Python complex.
type complexNumber complex128

func (c complexNumber) String() string        { return fmt.Sprint(complex128(c)) }
func (c complexNumber) Type() string          { return "complex" }
func (c complexNumber) Freeze()               {}
func (c complexNumber) Truth() starlark.Bool  { return c != 0 }
func (c complexNumber) Hash() (uint32, error) { return hashString(c.String()) }

// slice is a Python slice; missing parts are None.
type slice struct{ start, stop, step starlark.Value }

func (s *slice) String() string        { return fmt.Sprintf("slice(%v, %v, %v)", s.start, s.stop, s.step) }
func (s *slice) Type() string          { return "slice" }
func (s *slice) Freeze()               {}
func (s *slice) Truth() starlark.Bool  { return true }
func (s *slice) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: slice") }

type ellipsis struct{}

func (ellipsis) String() string        { return "Ellipsis" }
func (ellipsis) Type() string          { return "ellipsis" }
func (ellipsis) Freeze()               {}
func (ellipsis) Truth() starlark.Bool  { return true }
func (ellipsis) Hash() (uint32, error) { return 0, nil }

// missing is the value of a nothing().
type missing struct{}

func (missing) String() string        { return "nothing()" }
func (missing) Type() string          { return "nothing" }
func (missing) Freeze()               {}
func (missing) Truth() starlark.Bool  { return false }
func (missing) Hash() (uint32, error) { return 0, nil }

// pyType is a type that a generator can be drawn as; int, float, bool and
// complex also convert.
type pyType struct {
	name    string
	typ     gen.Type
	dtype   tensor.DType
	convert func(thread *starlark.Thread, args starlark.Tuple) (starlark.Value, error)
	call    func(thread *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)
	of      func([]gen.Type) (gen.Type, error) // of a generic such as Tuple
}

func (t *pyType) String() string        { return t.name }
func (t *pyType) Type() string          { return "type" }
func (t *pyType) Freeze()               {}
func (t *pyType) Truth() starlark.Bool  { return true }
func (t *pyType) Hash() (uint32, error) { return hashString(t.name) }
func (t *pyType) Name() string          { return t.name }

// AttrNames returns none.
func (t *pyType) AttrNames() []string { return nil }

// Attr returns a method, which takes the value first.
func (t *pyType) Attr(name string) (starlark.Value, error) { return t.method(name) }

// Get makes Union[int, float] and the like.
func (t *pyType) Get(k starlark.Value) (starlark.Value, bool, error) {
	if t.of == nil {
		return nil, false, fmt.Errorf("%s takes no type parameters", t.name)
	}
	items, ok := k.(starlark.Tuple)
	if !ok {
		items = starlark.Tuple{k}
	}
	if n := len(items); n == 2 && items[1] == (ellipsis{}) { // Tuple[int, ...]
		return pyTypes["List"].Get(items[0])
	}
	parts := make([]gen.Type, len(items))
	for i, v := range items {
		p, err := typeOf(v)
		if err != nil { // an annotation need not be one to draw
			return &pyType{name: t.name}, true, nil
		}
		parts[i] = p
	}
	typ, err := t.of(parts)
	return &pyType{name: typ.String(), typ: typ}, true, err
}

// CallInternal converts a value, as int(x) does.
func (t *pyType) CallInternal(thread *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if t.call != nil {
		return t.call(thread, args, kwargs)
	}
	if t.convert == nil || len(kwargs) > 0 {
		return nil, fmt.Errorf("%s cannot be called like this", t.name)
	}
	return t.convert(thread, args)
}

func typeOf(v starlark.Value) (gen.Type, error) {
	switch v := v.(type) {
	case *pyType:
		if v.typ.IsDrawable() {
			return v.typ, nil
		}
	case starlark.NoneType:
		return gen.None, nil
	}
	return gen.Type{}, fmt.Errorf("%s is not a type that random can be drawn as", v)
}

// generator is a gen.Node in a test.
type generator struct {
	node *gen.Node
	own  *object // of a class of the file; nil for the engine's own
}

func (g *generator) String() string        { return g.node.String() }
func (g *generator) Type() string          { return "generator" }
func (g *generator) Freeze()               {}
func (g *generator) Truth() starlark.Bool  { return true }
func (g *generator) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: generator") }
func (g *generator) Name() string          { return g.node.String() }
func (g *generator) AttrNames() []string   { return []string{"eval", "size", "to", "value"} }

func (g *generator) Attr(name string) (starlark.Value, error) {
	switch name {
	case "to":
		return starlark.NewBuiltin("to", g.to), nil
	case "value":
		return starlark.NewBuiltin("value", func(t *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return g.draw(t, (*gen.Node).Value)
		}), nil
	case "eval":
		return starlark.NewBuiltin("eval", func(t *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
			return g.draw(t, (*gen.Node).Eval)
		}), nil
	case "size":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return starlark.MakeInt(g.node.Size()), nil }), nil
	}
	if g.own != nil {
		return g.own.Attr(name)
	}
	return nil, starlark.NoSuchAttrError(fmt.Sprintf("a generator has no attribute %s; it has to, value, eval and size", name))
}

func (g *generator) to(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 || len(kwargs) > 0 {
		return nil, fmt.Errorf("to takes one type")
	}
	typ, err := typeOf(args[0])
	if err != nil {
		return nil, err
	}
	if d, ok := t.Local(drawKey).(*draw); ok {
		g.node.To(d.gen, typ)
	} else {
		g.node.To(nil, typ)
	}
	return g, nil
}

func (g *generator) draw(t *starlark.Thread, how func(*gen.Node, *gen.Case) (any, error)) (starlark.Value, error) {
	d, err := drawOf(t, "the value of a generator")
	if err != nil {
		return nil, err
	}
	v, err := how(g.node, d.gen)
	if err != nil {
		return nil, err
	}
	return d.traced(v)
}

// CallInternal draws anew and calls what was drawn.
func (g *generator) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := g.draw(t, (*gen.Node).Eval)
	if err != nil {
		return nil, err
	}
	return starlark.Call(t, v, args, kwargs)
}

// symbol is the result of a call, or an input.
type symbol struct {
	d     *draw
	ref   program.Ref
	at    int // of a result: its call among those of the program
	kind  symbolKind
	input *gen.Tensor
	// names are those of a tuple's results; elems its elements, once used.
	names  []string
	elems  []starlark.Value
	list   bool   // a list of tensors whose length is not known yet
	tupled bool   // of a module: a call may give a tuple; of what it gives: it may be one
	made   string // of a module: the class; of a parameter too
	// children are the modules that a container is made of; entries the
	// parameters and buffers of a module, once they were asked for.
	children []named
	entries  *[2][]named
	mode     starlark.Value // of a module: what it was trained with last; nil for its default
	// attribute says that it is an attribute of another value.
	attribute bool
	hooks     hooks                     // of a module
	hooked    program.Ref               // of a tensor with hooks: its name without them, which has the gradient
	settings  map[string]starlark.Value // of a module: attributes that are no tensors; nil for those that are
	hosted    *object                   // that a container has become, once the test has changed what it holds
	side      string                    // "pytorch" or "oneflow" where it is one side's alone
	spread    *spread                   // over ranks; nil: it is local
	own       bool                      // of a module: each rank's own, which no utility places
	shapes    map[string][]int          // of such a module over ranks: those of what it holds
	local     *symbol                   // what each rank has, where they are taken for pieces or summands of it
}

type symbolKind uint8

const (
	kindUnknown symbolKind = iota
	kindTensor
	kindTuple
	kindModule
	kindPlain
)

func (s *symbol) String() string { return string(s.ref) }
func (s *symbol) Type() string {
	return [...]string{"value", "Tensor", "tuple", "Module", "value"}[s.kind]
}
func (s *symbol) Freeze()               {}
func (s *symbol) Truth() starlark.Bool  { return true }
func (s *symbol) Hash() (uint32, error) { return hashString(string(s.ref)) }
func (s *symbol) Name() string          { return string(s.ref) }
func (s *symbol) AttrNames() []string   { return nil }

// CallInternal calls a module.
func (s *symbol) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if s.kind != kindModule {
		if c := s.d.callOf(s.ref); s.kind == kindUnknown && c != nil {
			return nil, lack("calling what %s gives is not supported in test files", c.Target)
		}
		return nil, fmt.Errorf("%s is a %s, which cannot be called", s.ref, s.Type())
	}
	if s.hookedInside() {
		if _, err := s.edited(); err != nil {
			return nil, err
		}
	}
	return s.hooks.around(t, s, args, func(args starlark.Tuple) (starlark.Value, error) {
		if s.hosted != nil {
			return starlark.Call(t, s.hosted, args, kwargs)
		}
		return s.d.call("Module.__call__", s, args, kwargs)
	})
}

// Attr returns what is known of a value, or a method or attribute that is
// recorded when it is used.
func (s *symbol) Attr(name string) (starlark.Value, error) {
	if s.kind == kindTuple {
		for i, n := range s.names {
			if n == name {
				return s.element(i)
			}
		}
	}
	switch {
	case name == "pytorch" || name == "oneflow":
		return s.on(name), nil
	case s.kind == kindTensor && (name == "value" || name == "eval"): // of the generator that older tests take it for
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return s, nil }), nil
	}
	if s.kind == kindModule && name == "config" {
		return blockConfig{}, nil
	}
	if s.children != nil && slices.Contains(edits, name) {
		if _, err := s.edited(); err != nil {
			return nil, err
		}
	}
	if s.hosted != nil {
		return s.hosted.Attr(name)
	}
	if s.kind != kindModule {
		if v, err := s.property(name); v != nil || err != nil {
			return v, err
		}
		if name == "grad" { // of now: a later call of backward may change it
			return s.d.getattr(s, name)
		}
	}
	return &attr{s, name}, nil
}

// Get is x[k].
func (s *symbol) Get(k starlark.Value) (starlark.Value, bool, error) {
	if s.hosted != nil {
		return s.hosted.Get(k)
	}
	if i, ok := k.(starlark.Int); ok && s.kind == kindTuple {
		n, err := starlark.AsInt32(i)
		if err == nil && n < 0 {
			n += len(s.names)
		}
		if err != nil || n < 0 || n >= len(s.names) {
			return nil, false, fmt.Errorf("index %s is outside a tuple of %d", i, len(s.names))
		}
		v, err := s.element(n)
		return v, true, err
	}
	if i, ok := k.(starlark.Int); ok && s.children != nil {
		n, err := starlark.AsInt32(i)
		if err == nil && n < 0 {
			n += len(s.children)
		}
		if err != nil || n < 0 || n >= len(s.children) {
			return nil, false, fmt.Errorf("index %s is out of range", i)
		}
		return s.children[n].value, true, nil
	}
	if part, ok := k.(*slice); ok && s.children != nil {
		values, err := getslice(starlark.Tuple(slices.Collect(starlark.Elements(listOf(s.children, func(c named) starlark.Value { return c.value })))), part.start, part.stop, part.step)
		if err != nil {
			return nil, false, err
		}
		args := values.(starlark.Tuple)
		if s.made != "torch.nn.Sequential" {
			args = starlark.Tuple{args}
		}
		v, err := path(s.made).hostedAnyway(s.d.thread, args)
		return v, true, err
	}
	if part, ok := k.(*slice); ok {
		if v, err := s.part(part); v != nil || err != nil {
			return v, true, err
		}
	}
	v, err := s.d.call("operator.getitem", nil, starlark.Tuple{s, s.d.index(k)}, nil)
	return v, true, err
}

// SetKey is x[k] = v.
func (s *symbol) SetKey(k, v starlark.Value) error {
	if s.children != nil {
		o, err := s.edited()
		if err != nil {
			return err
		}
		return o.SetKey(k, v)
	}
	_, err := s.d.call("operator.setitem", nil, starlark.Tuple{s, s.d.index(k), v}, nil)
	return err
}

// SetField is x.name = v.
func (s *symbol) SetField(name string, v starlark.Value) error {
	if of, ok := v.(*symbol); ok && (name == "pytorch" || name == "oneflow") { // both sides are one program
		same, err := of.standsFor(s)
		if err != nil {
			return err
		}
		if same {
			*s = *of
			s.side = ""
			return nil
		}
	}
	if s.children != nil && isModule(v) {
		o, err := s.edited()
		if err != nil {
			return err
		}
		return o.SetField(name, v)
	}
	s.entries, s.settings = nil, nil
	_, err := s.d.call("setattr", nil, starlark.Tuple{s, starlark.String(name), v}, nil)
	return err
}

// element returns an element of a tuple, recorded once. It is a tensor when a
// signature told of the tuple.
func (s *symbol) element(i int) (starlark.Value, error) {
	if s.elems == nil {
		s.elems = make([]starlark.Value, len(s.names))
	}
	if s.elems[i] == nil {
		v, err := s.d.call("operator.getitem", nil, starlark.Tuple{s, starlark.MakeInt(i)}, nil)
		if err != nil {
			return nil, err
		}
		if seen, ok := s.d.seen[s.ref]; !ok || i < len(seen.Tuple) && seen.Tuple[i].Tensor != nil {
			v.(*symbol).kind = kindTensor
		}
		s.elems[i] = v
	}
	return s.elems[i], nil
}

// Iterate unpacks a tuple, or a tensor along its first dimension.
func (s *symbol) Iterate() starlark.Iterator {
	elems, err := s.elements()
	if err != nil {
		s.d.fail(err)
	}
	return &elements{elems}
}

type elements struct{ rest []starlark.Value }

func (e *elements) Next(p *starlark.Value) bool {
	if len(e.rest) == 0 {
		return false
	}
	*p, e.rest = e.rest[0], e.rest[1:]
	return true
}

func (e *elements) Done() {}

// attr is x.name: a method when it is called, an attribute when it is used.
type attr struct {
	s    *symbol
	name string
}

func (a *attr) String() string        { return string(a.s.ref) + "." + a.name }
func (a *attr) Type() string          { return "attribute" }
func (a *attr) Freeze()               {}
func (a *attr) Truth() starlark.Bool  { return true }
func (a *attr) Hash() (uint32, error) { return hashString(a.String()) }
func (a *attr) Name() string          { return a.String() }
func (a *attr) AttrNames() []string   { return nil }

// SetField is x.name.other = v.
func (a *attr) SetField(name string, v starlark.Value) error {
	s, err := a.resolve()
	if err != nil {
		return err
	}
	return s.SetField(name, v)
}

// SetKey is x.name[k] = v.
func (a *attr) SetKey(k, v starlark.Value) error {
	s, err := a.resolve()
	if err != nil {
		return err
	}
	return s.SetKey(k, v)
}

// Attr is x.name.other.
func (a *attr) Attr(name string) (starlark.Value, error) {
	s, err := a.resolve()
	if err != nil {
		return nil, err
	}
	return s.Attr(name)
}

// Get is x.name[k].
func (a *attr) Get(k starlark.Value) (starlark.Value, bool, error) {
	if t, ok := settings(a).(starlark.Tuple); ok {
		v, err := itemOf(t, k)
		return v, true, err
	}
	s, err := a.resolve()
	if err != nil {
		return nil, false, err
	}
	return s.Get(k)
}

// CallInternal is x.name(…).
func (a *attr) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := a.missing(); err != nil {
		return nil, err
	}
	return a.s.d.method(a.s, a.name, args, kwargs)
}

// resolve records the use of the attribute as a value.
func (a *attr) resolve() (*symbol, error) {
	if err := a.missing(); err != nil {
		return nil, err
	}
	return a.s.d.getattr(a.s, a.name)
}

// missing is the exception for an attribute that the reference lacks, where the
// test would go on behind it; elsewhere the reference tells when it runs the call.
func (a *attr) missing() error {
	if a.s.d.expecting+a.s.d.trying == 0 || aboutRanks[a.name] {
		return nil
	}
	fault := a.s.d.fault
	has, err := a.s.has(a.name)
	a.s.d.fault = fault
	if err != nil || has {
		return nil
	}
	return &refusedError{"AttributeError", fmt.Sprintf("'%s' object has no attribute '%s'", a.s.Type(), a.name)}
}

// foreign is a module that test files cannot use, or a name in it.
type foreign string

func (f foreign) String() string        { return string(f) }
func (f foreign) Type() string          { return "module" }
func (f foreign) Freeze()               {}
func (f foreign) Truth() starlark.Bool  { return false }
func (f foreign) Hash() (uint32, error) { return hashString(string(f)) }
func (f foreign) Name() string          { return string(f) }
func (f foreign) AttrNames() []string   { return nil }

// Attr finds an operator that the program adds to Plumb's by its id, whatever
// the module is called: under its first public name, which a reference knows too.
func (f foreign) Attr(name string) (starlark.Value, error) {
	if d := ops.Added(name); d != nil && standard[string(f)] == nil {
		if len(d.Names) > 0 {
			return path(d.Names[0]), nil
		}
		return path(program.OwnPrefix + name), nil
	}
	return f + foreign("."+name), nil
}

func (f foreign) unavailable() error {
	f = foreign(strings.TrimSuffix(string(f), "()"))
	root, _, _ := strings.Cut(string(f), ".")
	switch root {
	case "oneflow", "flow":
		return lack("%s is not supported: a test names no framework but torch, whose calls run on all of them", f)
	}
	if standard[root] != nil || root == "torch" {
		return lack("%s is not supported in test files", f)
	}
	return lack("%s is not supported: %s is not available in test files, which are run without Python", f, root)
}

// CallInternal gives the decorators of unittest their meaning; anything else
// is an error.
func (f foreign) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if v, err := f.ofTestCase(t, args, kwargs); v != nil || err != nil {
		return v, err
	}
	v, err := callForeign(t, f, args, kwargs)
	var lacks *unsupportedInFiles
	if l, loads := t.Local(loadKey).(*loader); loads && errors.As(err, &lacks) {
		l.note(t, "%s has no effect", f)
		return f + "()", nil
	}
	return v, err
}

// Get is f[k]: unknown while a file is loaded, not supported afterwards.
func (f foreign) Get(starlark.Value) (starlark.Value, bool, error) { return f + "[…]", true, nil }

// SetKey has no effect.
func (f foreign) SetKey(_, _ starlark.Value) error { return nil }

// SetField has no effect.
func (f foreign) SetField(string, starlark.Value) error { return nil }

var (
	_ starlark.Callable    = path("")
	_ starlark.Callable    = (*pyType)(nil)
	_ starlark.Mapping     = (*pyType)(nil)
	_ starlark.Callable    = (*generator)(nil)
	_ starlark.HasSetKey   = (*symbol)(nil)
	_ starlark.HasSetField = (*symbol)(nil)
	_ starlark.Iterable    = (*symbol)(nil)
	_ starlark.Callable    = (*attr)(nil)
	_ starlark.Mapping     = (*attr)(nil)
	_ starlark.Callable    = foreign("")
	_ syntax.Position      = syntax.Position{}
)
