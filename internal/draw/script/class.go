package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/program"
)

// class is a class that a file defines.
type class struct {
	name        string
	isTest      bool
	unittest    bool // it is a TestCase
	close       bool // assertEqual of its tests is that of PyTorch's, for tensors
	skip        string
	by          []*parametrize            // of the class, the innermost first
	methods     []marks                   // the functions of its body whose names begin with test
	attrs       map[string]starlark.Value // what its body defines
	order       []*class                  // itself and its bases, in the order in which attributes are looked up
	inherited   inherited                 // what its instances are beside Python's objects
	base        starlark.Value            // the base that inherited stands for; nil for none
	lacks       string                    // why it cannot be used
	outer       *class                    // around its body, while that runs
	names       []string                  // that its body assigns
	data        *dataclass                // how it was made one; nil for no dataclass
	own         []*dataField              // of its own body, where it has fields
	annotations []annotation              // of its body
	members     []starlark.Value          // of an enumeration
	keywords    []starlark.Tuple          // of its statement
	strict      bool                      // it is an abc.ABC
	frozen      bool                      // it was made outside of every test
	decorators  []starlark.Value          // functions, the innermost first
	marked      []*pytestMark             // the innermost first
	abstract    []string                  // what its body has for others to define
}

// inherited is what an instance inherits from a class that no file defines.
type inherited interface {
	// init is the constructor, for a class that calls it or has none.
	init(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) error
	// attr returns an attribute; nil where there is none.
	attr(o *object, name string) (starlark.Value, error)
	// call is the instance called, where its class has no __call__.
	call(t *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error)
}

func (c *class) String() string        { return c.name }
func (c *class) Type() string          { return "class" }
func (c *class) Freeze()               { c.frozen = true }
func (c *class) Truth() starlark.Bool  { return true }
func (c *class) Hash() (uint32, error) { return hashString(c.name) }
func (c *class) Name() string          { return c.name }
func (c *class) AttrNames() []string   { return nil }

// linear returns a class and its bases, a base behind all that derive from it.
func linear(c *class, bases []*class) []*class {
	var all []*class
	for _, b := range bases {
		all = append(all, b.order...)
	}
	out := []*class{c}
	for i, b := range all {
		if !slices.Contains(all[i+1:], b) {
			out = append(out, b)
		}
	}
	return out
}

// lookup returns what a class or its bases define under a name.
func (c *class) lookup(name string) starlark.Value { return found(c.order, name) }

func found(order []*class, name string) starlark.Value {
	for _, k := range order {
		if v, ok := k.attrs[name]; ok {
			return v
		}
	}
	return nil
}

// behind returns the bases that come after another one.
func (c *class) behind(after *class) []*class {
	return c.order[slices.Index(c.order, after)+1:]
}

// Attr returns what the class defines.
func (c *class) Attr(name string) (starlark.Value, error) {
	switch v := c.lookup(name).(type) {
	case nil:
	case *wrappedMethod:
		if v.binding == bindsSelf {
			return v.Callable, nil
		}
		return v.bind(c, c), nil
	default:
		return v, nil
	}
	switch name {
	case "__name__", "__qualname__":
		return starlark.String(c.name), nil
	}
	if f, ok := c.inherited.(functionClass); ok {
		return f.ofClass(c, name)
	}
	return nil, lack("class %s has no attribute %s", c.name, name)
}

// SetField is C.name = v.
func (c *class) SetField(name string, v starlark.Value) error {
	if c.frozen {
		return madeBefore(c.name)
	}
	c.define(name, v)
	return nil
}

// madeBefore refuses a change of what a test shares with others.
func madeBefore(name string) error {
	return fmt.Errorf("%s was made while the file was loaded and cannot be changed", name)
}

// CallInternal makes an instance.
func (c *class) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	switch {
	case c.lacks != "":
		return nil, lack("%s", c.lacks)
	case len(c.missing()) > 0:
		return nil, &refusedError{"TypeError", fmt.Sprintf("Can't instantiate abstract class %s with abstract methods %s", c.name, strings.Join(c.missing(), ", "))}
	case c.unittest:
		return nil, lack("making an instance of the test class %s is not supported in test files", c.name)
	}
	if c.members != nil && len(args) == 1 {
		return c.member(args[0])
	}
	o := &object{class: c, fields: map[string]starlark.Value{}, thread: t}
	if _, ok := c.inherited.(exceptionClass); ok {
		o.state = args
	}
	if init := c.lookup("__init__"); init != nil {
		if _, err := starlark.Call(t, init, append(starlark.Tuple{o}, args...), kwargs); err != nil {
			return nil, err
		}
	} else if c.dataOf() != nil {
		if err := o.fill(t, args, kwargs); err != nil {
			return nil, err
		}
	} else if err := c.inherited.init(t, o, args, kwargs); err != nil {
		return nil, err
	}
	if g, ok := o.state.(*generator); ok {
		return g, nil
	}
	return o, nil
}

// object is an instance of a class that a file defines.
type object struct {
	class  *class
	fields map[string]starlark.Value
	names  []string // of the fields, in the order of assignment
	frozen bool
	thread *starlark.Thread // that made it
	state  any              // of its inherited part
}

func (o *object) String() string {
	for _, name := range []string{"__str__", "__repr__"} {
		if s := o.text(name); s != "" {
			return s
		}
	}
	return o.plain(0)
}

// text is what a method without arguments says; empty where there is none.
func (o *object) text(method string) string {
	v, _, err := special(o.thread, o, method)
	s, _ := starlark.AsString(v)
	if err != nil {
		return ""
	}
	return s
}

func (o *object) Type() string         { return o.class.name }
func (o *object) Truth() starlark.Bool { return true }
func (o *object) Name() string         { return o.class.name }
func (o *object) AttrNames() []string  { return slices.Clone(o.names) }

// Hash is that of the fields of a frozen dataclass, what __hash__ says, or that of a place.
func (o *object) Hash() (uint32, error) {
	if d := o.class.dataOf(); d != nil && d.frozen && !d.unequal {
		return o.comparedFields().Hash()
	}
	if v, ok, err := special(o.thread, o, "__hash__"); ok {
		if err != nil {
			return 0, err
		}
		return v.Hash()
	}
	return hashString(fmt.Sprintf("%p", o))
}

// CompareSameType has keys of dicts and elements of sets equal as == has them.
func (o *object) CompareSameType(op syntax.Token, y starlark.Value, depth int) (bool, error) {
	same, err := equal(o, y, maxDepth-depth)
	if op != syntax.EQL && op != syntax.NEQ {
		return false, fmt.Errorf("instances of %s have no order", o.class.name)
	}
	return same == (op == syntax.EQL), err
}

// Freeze makes what was made outside of every test constant.
func (o *object) Freeze() {
	if o.frozen {
		return
	}
	o.frozen = true
	for v := range maps.Values(o.fields) {
		v.Freeze()
	}
}

// Attr returns a field, a method or what it inherits.
func (o *object) Attr(name string) (starlark.Value, error) {
	if v, ok := o.fields[name]; ok {
		return v, nil
	}
	if v := o.class.lookup(name); v != nil {
		if p, ok := v.(*property); ok && !o.frozen { // of a file that was read after the one that asks
			return starlark.Call(o.thread, p.get, starlark.Tuple{o}, nil)
		}
		return o.bound(v), nil
	}
	switch name {
	case "__class__":
		return o.class, nil
	case "__dict__":
		d := starlark.NewDict(len(o.names))
		for _, n := range o.names {
			if err := d.SetKey(starlark.String(n), o.fields[n]); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	v, err := o.class.inherited.attr(o, name)
	if v == nil && err == nil {
		if other, ok := o.class.lookup("__getattr__").(starlark.Callable); ok {
			return starlark.Call(o.thread, other, starlark.Tuple{o, starlark.String(name)}, nil)
		}
		err = starlark.NoSuchAttrError(fmt.Sprintf("%s has no attribute %s", article(o.class.name), name))
	}
	return v, err
}

// bound is an attribute of the class as the instance sees it.
func (o *object) bound(v starlark.Value) starlark.Value {
	switch v := v.(type) {
	case *starlark.Function:
		return bindTo(v, o)
	case *wrappedMethod:
		return v.bind(o, o.class)
	}
	return v
}

// bindTo returns a function whose first argument is given.
func bindTo(fn starlark.Callable, self starlark.Value) starlark.Value {
	return starlark.NewBuiltin(fn.Name(), func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return starlark.Call(t, fn, append(starlark.Tuple{self}, args...), kwargs)
	})
}

// SetField is o.name = v.
func (o *object) SetField(name string, v starlark.Value) error {
	if d := o.class.dataOf(); d != nil && d.frozen {
		return &refusedError{"FrozenInstanceError", "cannot assign to field " + repr(starlark.String(name), 0)}
	}
	return o.assign(name, v)
}

// assign is SetField where the class does not forbid it.
func (o *object) assign(name string, v starlark.Value) error {
	if o.frozen {
		return madeBefore(o.class.name)
	}
	if p, ok := o.class.lookup(name).(*property); ok {
		if p.set == nil {
			return fmt.Errorf("can't set attribute %s, a property without a setter", name)
		}
		_, err := starlark.Call(o.thread, p.set, starlark.Tuple{o, v}, nil)
		return err
	}
	if _, ok := o.fields[name]; !ok {
		o.names = append(o.names, name)
	}
	if a, ok := v.(*attr); ok { // of now
		s, err := a.resolve()
		if err != nil {
			return err
		}
		v = s
	}
	o.fields[name] = v
	return nil
}

// drop is "del o.name".
func (o *object) drop(name string) error {
	if o.frozen {
		return madeBefore(o.class.name)
	}
	if _, ok := o.fields[name]; !ok {
		return fmt.Errorf("%s has no attribute %s", o.class.name, name)
	}
	delete(o.fields, name)
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
	return nil
}

// CallInternal is o(…).
func (o *object) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if fn := o.class.lookup("__call__"); fn != nil {
		return starlark.Call(t, o.bound(fn), args, kwargs)
	}
	return o.class.inherited.call(t, o, args, kwargs)
}

// special calls a method of Python's data model; false where the class has none.
func special(t *starlark.Thread, v starlark.Value, name string, args ...starlark.Value) (starlark.Value, bool, error) {
	o, ok := v.(*object)
	if !ok {
		return nil, false, nil
	}
	fn := o.class.lookup(name)
	if fn == nil {
		return nil, false, nil
	}
	out, err := starlark.Call(t, o.bound(fn), args, nil)
	return out, out != starlark.Value(notImplemented), err
}

// notImplemented is what a method of an operator gives for what it does not know.
const notImplemented = foreign("NotImplemented")

// parent is super(): the attributes of the bases, bound to an instance.
type parent struct {
	of   *class
	self starlark.Value
}

func (parent) String() string        { return "super" }
func (parent) Type() string          { return "super" }
func (parent) Freeze()               {}
func (parent) Truth() starlark.Bool  { return true }
func (parent) Hash() (uint32, error) { return 0, nil }
func (parent) AttrNames() []string   { return nil }

// Attr returns a method of a base; one that no file defines does nothing for a
// test case.
func (p parent) Attr(name string) (starlark.Value, error) {
	switch self := p.self.(type) {
	case *object:
		if v := found(self.class.behind(p.of), name); v != nil {
			return self.bound(v), nil
		}
		if name == "__init__" {
			return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
				return starlark.None, self.class.inherited.init(t, self, args, kwargs)
			}), nil
		}
		if v, err := self.class.inherited.attr(self, name); v != nil || err != nil {
			return v, err
		}
		if name == "__getattr__" {
			return ofOne(name, func(_ *starlark.Thread, name starlark.Value) (starlark.Value, error) {
				return nil, &refusedError{"AttributeError", fmt.Sprintf("'%s' object has no attribute %s", self.class.name, repr(name, 0))}
			}), nil
		}
	case testCase:
		if fn, ok := found(self.class.behind(p.of), name).(starlark.Callable); ok {
			return bindTo(fn, self), nil
		}
	case *class:
		if fn, ok := found(self.behind(p.of), name).(*wrappedMethod); ok {
			return fn.bind(self, self), nil
		}
	}
	return ignoredCall(name), nil
}

// superCall is super(T, self), which the source pass makes of super().
func superCall(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("super() belongs into a method")
	}
	c, ok := a[0].(*class)
	if !ok {
		return nil, fmt.Errorf("super of %s", article(a[0].Type()))
	}
	return parent{c, a[1]}, nil
}

// bodies are the class and the decorators of what is being defined.
type bodies struct {
	class   *class
	pending []starlark.Value // decorators
}

// bodiesKey is the thread-local name of the bodies.
const bodiesKey = "plumb.bodies"

func bodiesOf(t *starlark.Thread) *bodies {
	b, ok := t.Local(bodiesKey).(*bodies)
	if !ok {
		b = &bodies{}
		t.SetLocal(bodiesKey, b)
	}
	return b
}

// beginClass is the condition of the if statement that a class became.
func beginClass(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	b := bodiesOf(t)
	name := string(args[0].(starlark.String))
	c := &class{name: name, attrs: map[string]starlark.Value{}, outer: b.class, inherited: plainClass{}, keywords: kwargs}
	c.isTest = strings.HasPrefix(name, "Test") // as pytest has it
	var bases []*class
	mixin := ""
	for _, v := range args[1:] {
		if t, ok := asPath(v).(*pyType); ok && slices.Contains([]string{"int", "str", "float"}, t.name) {
			mixin = t.name
			continue
		}
		switch v := ourClass(v).(type) {
		case *class:
			bases = append(bases, v)
			c.isTest, c.unittest, c.close = c.isTest || v.unittest, c.unittest || v.unittest, c.close || v.close
			c.by = append(c.by, v.by...)
			c.marked = append(c.marked, v.marked...)
			if v.base != nil {
				c.inherited, c.base = v.inherited, v.base
			}
			c.strict = c.strict || v.strict
			if v.lacks != "" {
				c.lacks = v.lacks
			}
		case foreign:
			v = foreign(strings.TrimSuffix(string(v), "[…]")) // such as Generic[T]
			c.strict = c.strict || v == "abc.ABC"
			if strings.HasSuffix(string(v), ".TestCase") || v == "TestCase" {
				c.isTest, c.unittest, c.close = true, true, strings.HasPrefix(string(v), torchTesting)
			} else if n := foreignBases[v]; n == (plainClass{}) && c.base != nil { // beside a base that is more
			} else if n != nil {
				c.inherited, c.base = n, v
			} else {
				c.lacks = fmt.Sprintf("class %s is not supported: its base %s is not in test files", name, v)
			}
		default:
			if n := inheritedFrom(v); n != nil {
				c.inherited, c.base = n, v
			} else {
				c.lacks = fmt.Sprintf("class %s is not supported: its base %s is not in test files", name, str(v))
			}
		}
	}
	if mixin != "" {
		c.mixIn(mixin)
	}
	c.strict = c.strict || slices.ContainsFunc(kwargs, func(kw starlark.Tuple) bool { return kw[1] == starlark.Value(foreign("abc.ABCMeta")) })
	c.order = linear(c, bases)
	if l, loads := t.Local(loadKey).(*loader); loads && b.class == nil {
		l.redefine(t, l.testName(name, nil), name)
	}
	if _, plain := c.inherited.(plainClass); !plain {
		c.isTest = c.unittest
	}
	for _, d := range slices.Backward(b.pending) {
		switch d := d.(type) {
		case *parametrize:
			c.by = append(c.by, d)
		case ignored:
			if d.mark != nil {
				c.marked = append(c.marked, d.mark)
			} else {
				c.skip = d.skip
			}
		case lacked:
			c.lacks = string(d)
		case mistaken:
			return nil, d.err
		case dataclass:
			c.data, c.isTest = &d, c.unittest
		case *autotest:
			return nil, fmt.Errorf("@autotest belongs to a test function, not to class %s", name)
		case *starlark.Function, *starlark.Builtin, *object, *wrappedMethod:
			c.decorators = append(c.decorators, d)
		}
	}
	b.pending, b.class = nil, c
	return starlark.True, nil
}

// endClass returns the class for its name to be bound to.
func endClass(t *starlark.Thread, _ starlark.Tuple) (starlark.Value, error) {
	b := bodiesOf(t)
	c := b.class
	b.class = c.outer
	l, loads := t.Local(loadKey).(*loader)
	if c.isTest && !c.unittest && c.lookup("__init__") != nil { // which pytest does not take for one
		if c.isTest = false; loads {
			l.forget(c)
		}
	}
	if loads && c.isTest && c.outer == nil {
		l.inherit(t, c)
	}
	if init, ok := found(c.order[1:], "__init_subclass__").(starlark.Callable); ok {
		keywords := slices.DeleteFunc(c.keywords, func(kw starlark.Tuple) bool { return kw[0] == starlark.Value(starlark.String("metaclass")) })
		if _, err := starlark.Call(t, init, starlark.Tuple{c}, keywords); err != nil {
			return nil, err
		}
	}
	v, err := c.finished()
	for _, d := range c.decorators {
		if err != nil {
			return nil, err
		}
		given, fails := starlark.Call(t, d, starlark.Tuple{v}, nil)
		if _, ours := d.(*starlark.Builtin); given != starlark.None || !ours { // of ours some have no result, and no effect
			v = given
		}
		err = fails
	}
	return v, err
}

// member makes what a class's body assigns an attribute of the class.
func member(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	c, name := bodiesOf(t).class, string(a[0].(starlark.String))
	c.define(name, a[1])
	c.assigns(name)
	return starlark.None, nil
}

// inheritedFrom returns what instances of a class inherit from a base that no file
// defines; nil for one that test files lack.
func inheritedFrom(base starlark.Value) inherited {
	switch base := asPath(base).(type) {
	case *pyType:
		switch base.name {
		case "object":
			return plainClass{}
		case "generator":
			return generatorClass{}
		}
	case path:
		if n := inheritedFromTorch(base); n != nil {
			return n
		}
	case *starlark.Builtin:
		if _, ok := exceptions[base.Name()]; ok {
			return exceptionClass{}
		}
	}
	return nil
}

func inheritedFromTorch(base path) inherited {
	last := base[strings.LastIndexByte(string(base), '.')+1:]
	switch {
	case base == "torch.nn.Module" || base == "torch.nn.modules.module.Module" || base == "torch.nn.modules.Module":
		return moduleClass{"torch.nn.Module"}
	case base == "torch.nn.Graph":
		return graphClass{}
	case strings.HasPrefix(string(base), "torch.nn.") && program.IsModule(string(base)):
		return moduleClass{"torch.nn." + last}
	case base == "torch.autograd.Function" || base == "torch.autograd.function.Function":
		return functionClass{}
	case base == "torch.utils.data.Dataset":
		return plainClass{}
	}
	return nil
}

// plainClass are objects without an inherited part.
type plainClass struct{}

func (plainClass) init(_ *starlark.Thread, o *object, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if len(args)+len(kwargs) > 0 {
		return fmt.Errorf("%s() takes no arguments", o.class.name)
	}
	return nil
}

func (plainClass) attr(*object, string) (starlark.Value, error) { return nil, nil }

func (plainClass) call(_ *starlark.Thread, o *object, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return nil, fmt.Errorf("'%s' object is not callable", o.class.name)
}

// Get is o[k]. Starlark asks for an item without a thread; that of the draw is
// the one that made the object.
func (o *object) Get(k starlark.Value) (starlark.Value, bool, error) {
	v, ok, err := special(o.thread, o, "__getitem__", k)
	if c, module := o.class.inherited.(moduleClass); !ok && module {
		v, err = c.item(o, k)
		return v, true, err
	}
	if !ok && err == nil {
		err = fmt.Errorf("'%s' object is not subscriptable", o.class.name)
	}
	return v, true, err
}

// SetKey is o[k] = v.
func (o *object) SetKey(k, v starlark.Value) error {
	_, ok, err := special(o.thread, o, "__setitem__", k, v)
	if !ok && isContainer(o) {
		return o.setPart(k, v)
	}
	if !ok && isModule(o) {
		return o.SetField(str(k), v)
	}
	if !ok && err == nil {
		err = fmt.Errorf("'%s' object does not support item assignment", o.class.name)
	}
	return err
}

// iterate returns the elements of an object with __iter__, or __len__ and __getitem__.
func (o *object) iterate(t *starlark.Thread) ([]starlark.Value, error) {
	if v, ok, err := special(t, o, "__iter__"); ok {
		if err != nil {
			return nil, err
		}
		return iterate(t, v)
	}
	if c, ok := o.class.inherited.(moduleClass); ok && c.of == "torch.nn.ModuleDict" {
		return iterate(t, listOf(o.children(), func(c named) starlark.Value { return starlark.String(c.name) }))
	} else if ok {
		return iterate(t, listOf(o.children(), func(c named) starlark.Value { return c.value }))
	}
	n, ok, err := special(t, o, "__len__")
	if err != nil || !ok {
		if err == nil {
			err = fmt.Errorf("'%s' object is not iterable", o.class.name)
		}
		return nil, err
	}
	size, err := starlark.AsInt32(n)
	if err != nil || size > maxElements {
		return nil, fmt.Errorf("__len__ of '%s' is out of range", o.class.name)
	}
	out := make([]starlark.Value, size)
	for i := range out {
		if out[i], ok, err = special(t, o, "__getitem__", starlark.MakeInt(i)); err != nil || !ok {
			return nil, fmt.Errorf("'%s' object is not iterable: %w", o.class.name, err)
		}
	}
	return out, nil
}
