package op

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Table is a set of operators, found by id or by public name.
type Table struct {
	defs   []*Def
	byID   map[string]*Def
	byName map[string][]*Def
}

// NewTable returns a table of the operators, checked for consistency. It has
// copies of the literals: those that it is given may be of other tables too.
func NewTable(defs ...*Def) (*Table, error) {
	t := &Table{byID: map[string]*Def{}, byName: map[string][]*Def{}}
	for _, literal := range defs {
		own := *literal
		d := &own
		if err := d.init(); err != nil {
			return nil, err
		}
		d.table, d.aliases, d.called = t, maps.Clone(d.aliases), maps.Clone(d.called)
		if t.byID[d.ID()] != nil {
			return nil, fmt.Errorf("operator %s is defined twice", d.ID())
		}
		t.defs = append(t.defs, d)
		t.byID[d.ID()] = d
		d.Names = slices.Clone(d.Names) // a copied operator shares them
		for i, n := range d.Names {
			if err := d.alias(i, n); err != nil {
				return nil, err
			}
			t.byName[d.Names[i]] = append(t.byName[d.Names[i]], d)
		}
	}
	return t, nil
}

// init parses the signatures and checks that the literal is complete.
func (d *Def) init() error {
	d.sigs = nil
	for _, text := range append([]string{d.Sig}, d.More...) {
		s, err := ParseSig(text)
		if err != nil {
			return err
		}
		d.sigs = append(d.sigs, s)
	}
	for _, s := range d.sigs {
		for _, n := range d.Choices {
			if i := s.index(n); i >= 0 {
				s.Params[i].Choice = true
			}
		}
	}
	if err := d.enumerate(); err != nil {
		return err
	}
	main := d.sigs[0]
	for _, n := range d.OnlyInOverloads {
		i := main.index(n)
		if i < 0 {
			return fmt.Errorf("operator %s: OnlyInOverloads names %s, which %q lacks", d.ID(), n, main)
		}
		main.Params[i].OnlyInOverloads = true
	}
	for _, s := range d.sigs[1:] {
		for _, p := range s.Params {
			if main.index(p.Name) < 0 {
				return fmt.Errorf("operator %s: signature %q has a parameter %s that %q lacks", d.ID(), s, p.Name, main)
			}
		}
	}
	if d.Tol.OwnMagnitude {
		if d.Magnitude != "" && d.Magnitude != d.ID() {
			return fmt.Errorf("operator %s is its own magnitude and has %s for one", d.ID(), d.Magnitude)
		}
		d.Magnitude = d.ID()
	}
	switch {
	case d.Compose != nil:
	case d.Traits.Has(View) && d.View == nil && !main.Many:
		return fmt.Errorf("operator %s has the trait View and no View, the function that makes it", d.ID())
	case d.Infer == nil && d.View == nil:
		return fmt.Errorf("operator %s has no Infer", d.ID())
	case d.View == nil && len(d.Kernels) == 0:
		return fmt.Errorf("operator %s has no kernel", d.ID())
	}
	switch {
	case d.Grad == nil && d.Compose == nil && !d.Traits.Has(NoGrad):
		return fmt.Errorf("operator %s has no gradient and is not NoGrad", d.ID())
	case d.Traits.Has(Random) && len(d.Kernels) > 0 && d.Law == nil:
		return fmt.Errorf("operator %s is Random and has no Law", d.ID())
	case d.Tol.Class == "" || d.Tol.Reason == "":
		return fmt.Errorf("operator %s has no numerics class with a reason", d.ID())
	}
	return d.named()
}

// enumerate notes with the parameters what text they take.
func (d *Def) enumerate() error {
	for name, all := range d.OneOf {
		for _, s := range d.sigs {
			i := s.index(string(name))
			if i < 0 {
				continue
			}
			p := &s.Params[i]
			if p.Type.Kind != KStr {
				return fmt.Errorf("operator %s: OneOf names %s, which is %s, not str", d.ID(), name, p.Type)
			}
			p.OneOf = all
			if err := s.oneOf(p, p.Default); err != nil {
				return fmt.Errorf("operator %s: the default: %w", d.ID(), err)
			}
		}
	}
	return nil
}

// named checks that the fields that name parameters name those of the signature.
func (d *Def) named() error {
	var names []string
	fields := map[string][]string{}
	note := func(field string, p string) {
		if fields[p] == nil {
			names = append(names, p)
		}
		fields[p] = append(fields[p], field)
	}
	for _, p := range d.Mutates {
		note("Mutates", p.Name())
	}
	for _, p := range d.Fixed {
		note("Fixed", p.Name())
	}
	for _, p := range d.Long {
		note("Long", p.Name())
	}
	for _, p := range slices.Sorted(maps.Keys(d.Domains)) {
		note("Domains", p.Name())
	}
	for _, p := range d.Choices {
		note("Choices", p)
	}
	for _, p := range slices.Sorted(maps.Keys(d.OneOf)) {
		note("OneOf", p.Name())
	}
	for _, name := range names {
		if d.sigs[0].index(name) < 0 {
			return fmt.Errorf("operator %s: %s names %s, which %q lacks", d.ID(), strings.Join(fields[name], " and "), name, d.sigs[0])
		}
	}
	return nil
}

// alias takes the parameter names of a public name that has its own, as in
// "torch.swapaxes(input, axis0, axis1)", out of it. The last parameters may be
// left out, if they have defaults.
func (d *Def) alias(i int, name string) error {
	name, list, own := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	if !own {
		if list, own = d.called[name]; !own { // of another table's copy, whose signature may have changed since
			return nil
		}
	}
	params := strings.Split(list, ", ")
	main := d.sigs[0].Params
	unnamed := list == "*"
	if unnamed {
		params = nil
		for _, p := range main {
			params = append(params, p.Name)
		}
	}
	if len(params) > len(main) || len(params) < len(main) && !main[len(params)].HasDefault {
		return fmt.Errorf("operator %s: %s names %d parameters, the signature has %d", d.ID(), name, len(params), len(main))
	}
	if d.aliases == nil {
		d.aliases = map[string][]*Sig{}
	}
	if d.called == nil {
		d.called = map[string]string{}
	}
	d.Names[i], d.aliases[name], d.called[name] = name, nil, list
	for _, s := range d.sigs {
		own := renamed(s, main, params)
		own.Unnamed = unnamed
		d.aliases[name] = append(d.aliases[name], own)
	}
	return nil
}

// renamed returns a signature of which the parameters of main have other
// names, up to the first that has none.
func renamed(s *Sig, main []Param, names []string) *Sig {
	r := *s
	r.Params = nil
	for _, p := range s.Params {
		j := slices.IndexFunc(main, func(m Param) bool { return m.Name == p.Name })
		if j >= len(names) {
			break
		}
		p.Name = names[j]
		r.Params = append(r.Params, p)
	}
	return &r
}

// Called returns the signature under a public name: Sig, its parameters named
// as they are there.
func (d *Def) Called(name string) *Sig { return d.CalledAll(name)[0] }

// CalledAll returns all signatures as they are under a public name.
func (d *Def) CalledAll(name string) []*Sig {
	if own := d.aliases[name]; own != nil {
		return own
	}
	return d.Sigs()
}

// Defs returns the operators in the order of the table.
func (t *Table) Defs() []*Def { return t.defs }

// Def returns the operator of an id, or nil.
func (t *Table) Def(id string) *Def { return t.byID[id] }

// Lookup returns the operators that answer to a public name.
func (t *Table) Lookup(name string) []*Def { return t.byName[name] }

// Names returns every public name, sorted.
func (t *Table) Names() []string {
	names := make([]string, 0, len(t.byName))
	for n := range t.byName {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// ErrUnknown says that a table does not know a name.
var ErrUnknown = errors.New("unknown operator")

// Call is an operator with bound arguments.
type Call struct {
	Def  *Def
	Args Args
	// Limit bounds the bytes of the results and of temporary memory; 0 stands for 2^40.
	Limit int
	Draw  int    // the number of a Random operator's call in its session
	Key   uint64 // of its random stream
	// InPlace says that the result is stored into the first tensor argument.
	InPlace bool
	// Stores says that the call computes what an in-place call stores.
	Stores  bool
	settled bool // where it runs: Place has spoken
	// Done, where it is not nil, is called as that of Run is, whatever the
	// kernel: at the end for all of the result where it does not report.
	Done func(lo, hi int)
	// Device has the results of a call without a tensor, and tensors of the host are
	// moved there; nil leaves calls where their tensors are. Stream is the device's.
	Device *Device
	Stream int
	// States has what kernels keep from earlier calls; nil keeps nothing.
	States *States
}

const requiresGrad = BoolArg("requires_grad")

// MakesLeaf reports whether the call makes a tensor that is to require a
// gradient: it has an argument requires_grad that is True.
func (c *Call) MakesLeaf() bool {
	return c.Args.Sig.Takes(requiresGrad) && c.Args.Bool(requiresGrad)
}

// Resolve binds a call of a public name ("Tensor.x" binds args[0] as the
// receiver). Signatures are tried in order; when none accepts the arguments,
// the error is that of the only one, that of a Choice, or lists them all.
func (t *Table) Resolve(name string, args []any, kwargs []Kwarg) (*Call, error) {
	defs := t.byName[name]
	if len(defs) == 0 {
		return nil, fmt.Errorf("%w %s", ErrUnknown, name)
	}
	return resolve(name, defs, args, kwargs)
}

// ResolveID binds a call of an operator by id.
func (t *Table) ResolveID(id string, args []any, kwargs []Kwarg) (*Call, error) {
	d := t.byID[id]
	if d == nil {
		return nil, fmt.Errorf("%w %s", ErrUnknown, id)
	}
	return resolve(id, []*Def{d}, args, kwargs)
}

// Family returns the operators whose ids have the name before their first dot,
// such as max, max.dim and max.other of "max".
func (t *Table) Family(name string) []*Def {
	var family []*Def
	for _, d := range t.defs {
		if base, _, _ := strings.Cut(d.ID(), "."); base == name {
			family = append(family, d)
		}
	}
	return family
}

// ResolveAmong is Resolve of a name that stands for the given operators, in their order.
func (t *Table) ResolveAmong(name string, defs []*Def, args []any, kwargs []Kwarg) (*Call, error) {
	if len(defs) == 0 {
		return nil, fmt.Errorf("%w %s", ErrUnknown, name)
	}
	return resolve(name, defs, args, kwargs)
}

// Derive returns an operator that the table's can be parts of, but that the table
// does not list.
func (t *Table) Derive(literal *Def) (*Def, error) {
	own := *literal
	if err := own.init(); err != nil {
		return nil, err
	}
	own.table = t
	return &own, nil
}

// resolve prefers a signature that takes tensors as such to one that reads them.
func resolve(name string, defs []*Def, args []any, kwargs []Kwarg) (*Call, error) {
	c, err := overload(name, defs, args, kwargs, false)
	if err != nil {
		return overload(name, defs, args, kwargs, true)
	}
	return c, nil
}

// overload binds a call to the first signature that accepts it.
func overload(name string, defs []*Def, args []any, kwargs []Kwarg, read bool) (*Call, error) {
	method := strings.HasPrefix(name, "Tensor.")
	var errs []error
	var tried []string
	for _, d := range defs {
		for i, called := range d.CalledAll(name) {
			a, err := called.bind(args, kwargs, method, read)
			if err == nil {
				for _, p := range d.sigs[i].Params[len(a.Vals):] {
					a.Vals = append(a.Vals, p.Default)
				}
				a.Sig = d.sigs[i]
				c := &Call{Def: d, Args: d.widen(a)}
				if d.SelectOverload == nil || d.SelectOverload(c.Args) {
					c.inPlace(name)
					return c, nil
				}
				err = TypeError("%s: these flags ask for other results", called.Name)
			}
			errs, tried = append(errs, err), append(tried, "  "+called.String())
		}
	}
	for _, err := range errs {
		if e, ok := err.(*Error); len(errs) == 1 || !ok || e.Class == "ValueError" {
			return nil, err
		}
	}
	return nil, TypeError("%s: no signature accepts the arguments (%s); it has\n%s", name, argTypes(args, kwargs), strings.Join(tried, "\n"))
}

func argTypes(args []any, kwargs []Kwarg) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, TypeName(a))
	}
	for _, kw := range kwargs {
		parts = append(parts, kw.Name+"="+TypeName(kw.Value))
	}
	return strings.Join(parts, ", ")
}

// widen brings arguments of any signature into the order of the main one.
func (d *Def) widen(a Args) Args {
	main := d.sigs[0]
	if a.Sig == main {
		return a
	}
	vals := make([]any, len(main.Params))
	for i, p := range main.Params {
		if j := a.Sig.index(p.Name); j >= 0 {
			vals[i] = a.Vals[j]
		} else {
			vals[i] = p.Default
		}
	}
	return Args{main, vals}
}

// Infer checks the call and returns what its results will be.
func (c *Call) Infer() (metas []Meta, err error) {
	defer c.named(&err)
	if c.Def.Compose != nil {
		return c.inferParts()
	}
	if c.Def.Reject != nil {
		if err := c.Def.Reject(c.Args); err != nil {
			return nil, err
		}
	}
	return c.Def.Infer(c.Args)
}

// named puts the operator's id into a rejection that lacks one.
func (c *Call) named(err *error) {
	if *err == nil {
		return
	}
	var e *Error
	if errors.As(*err, &e) && e.Op == "" {
		e.Op = c.Def.ID()
	}
}
