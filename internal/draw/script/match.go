package script

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/draw/gen"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// mode says how exactly an argument must fit its parameter: strict as the
// signature is written, lenient as far as PyTorch converts.
type mode bool

const (
	strict  mode = true
	lenient mode = false
)

// aliases are the keywords that PyTorch takes beside a parameter's own name.
var aliases = map[string]string{"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other", "self": "input"}

// paramIndex returns the parameter of a keyword, or -1.
func paramIndex(s *op.Sig, name string) int {
	if i := s.Index(op.AnyArg(name)); i >= 0 {
		return i
	}
	if alias, ok := aliases[name]; ok {
		return s.Index(op.AnyArg(alias))
	}
	return -1
}

// match returns the first signature to which the arguments fit; nil when none.
func (c *pending) match(m mode) *op.Sig {
	i := slices.IndexFunc(c.sigs, func(s *op.Sig) bool { return c.matches(s, m) })
	if i < 0 {
		return nil
	}
	return c.sigs[i]
}

func (c *pending) matches(s *op.Sig, m mode) bool {
	places := make([]int, len(c.args))
	return place(s, len(c.args), c.method, places) && c.fits(s, places, m)
}

// place finds the parameter of each positional argument. An only list
// parameter takes all the arguments: x.permute(0, 2, 1).
func place(s *op.Sig, n int, method bool, places []int) bool {
	positional := slices.IndexFunc(s.Params, func(p op.Param) bool { return p.KwOnly })
	if positional < 0 {
		positional = len(s.Params)
	}
	if at := s.Spread(method); spreads(at, n) {
		for i := range places {
			places[i] = min(i, at)
		}
		return true
	}
	for i := range places {
		places[i] = i
	}
	return n <= positional
}

func spreads(at, n int) bool { return at >= 0 && n > at+1 }

func (c *pending) fits(s *op.Sig, places []int, m mode) bool {
	var given uint64
	at := s.Spread(c.method)
	spread := spreads(at, len(places))
	for i, p := range places {
		given |= 1 << p
		t := s.Params[p].Type
		if spread && p == at {
			t = op.Type{Kind: t.Kind}
		}
		if !c.accepts(t, c.args[i], m) {
			return false
		}
	}
	for _, kw := range c.kwargs {
		p := paramIndex(s, kw.Name)
		if p < 0 || given&(1<<p) != 0 || !c.accepts(s.Params[p].Type, kw.Value, m) {
			return false
		}
		given |= 1 << p
	}
	for i, p := range s.Params {
		if !p.HasDefault && given&(1<<i) == 0 {
			return false
		}
	}
	return true
}

// accepts reports whether an argument fits a parameter's type.
func (c *pending) accepts(t op.Type, v any, m mode) bool {
	if t.Kind == op.KGenerator || t.Kind == op.KIndex || t.Kind == op.KData {
		return true
	}
	switch v := v.(type) {
	case nil:
		return t.Optional || m == lenient
	case *gen.Node:
		if v.Untyped(c.d.gen) == nil {
			return true
		}
		_, ok := gen.TypeOf(t)
		return ok
	case program.Ref:
		return c.acceptsRef(t, v, m)
	case program.List:
		return c.acceptsList(t, v, m)
	case program.Tuple:
		return c.acceptsList(t, v, m)
	case program.Slice, program.Ellipsis:
		return false
	}
	return acceptsPlain(t.Kind, v, m)
}

func (c *pending) acceptsRef(t op.Type, r program.Ref, m mode) bool {
	switch c.d.kindOf(r) {
	case kindTensor:
		if m == strict {
			return t.Kind == op.KTensor && !t.List
		}
		return t.Kind <= op.KBool
	case kindTuple:
		return t.List
	case kindModule:
		return false
	}
	return true
}

func (c *pending) acceptsList(t op.Type, list []any, m mode) bool {
	if !t.List {
		return false
	}
	elem := t.Element()
	for _, e := range list {
		if !c.accepts(elem, e, m) {
			return false
		}
	}
	return true
}

func acceptsPlain(k op.Kind, v any, m mode) bool {
	switch v.(type) {
	case bool:
		return k == op.KBool || k == op.KScalar || m == lenient && (k == op.KInt || k == op.KFloat)
	case int64:
		return k == op.KInt || k == op.KScalar || k == op.KFloat || m == lenient && k == op.KBool
	case float64:
		return k == op.KFloat || k == op.KScalar
	case complex128:
		return k == op.KScalar
	case string:
		return k == op.KStr || k == op.KDevice
	case tensor.DType:
		return k == op.KDType
	case tensor.MemoryFormat:
		return k == op.KFormat
	}
	return true
}

// kindOf returns the kind of a name of the program.
func (d *draw) kindOf(r program.Ref) symbolKind { return d.symbols[r].kind }

// misuse returns an error for a keyword that no known signature has, or an
// argument whose type none accepts: mistakes in the test file, whatever is
// drawn. Whether what is drawn and whether values are legal is the reference's
// to say.
func (c *pending) misuse() error {
	if len(c.sigs) == 0 || strings.HasPrefix(c.target, "operator.") {
		return nil
	}
	err := c.mistake()
	if err == nil || c.d.env.Reference == nil {
		return err
	}
	more, fault := lookup(c.d.env.Reference, c.target)
	if fault != nil {
		c.d.fault = fault
		return fault
	}
	if len(more) == 0 {
		return err
	}
	wider := *c
	wider.sigs = slices.Concat(c.sigs, more)
	return wider.mistake()
}

func (c *pending) mistake() error {
	receiver := 0
	if c.method {
		receiver = 1
	}
	for i := receiver; i < len(c.args); i++ {
		if holdsNode(c.args[i]) {
			continue
		}
		if p := c.refused(c.args[i], func(s *op.Sig) *op.Param { return positionalParam(s, i, len(c.args), c.method) }); p != nil {
			return &argumentError{i - receiver, "", fmt.Sprintf("%s: argument '%s' must be %s, not %s", c.target, p.Name, p.Type, typeName(c.args[i]))}
		}
	}
	for _, kw := range c.kwargs {
		if kw.Name == "out" || holdsNode(kw.Value) {
			continue
		}
		if c.keyword(nil, kw.Name) == nil {
			return &argumentError{-1, kw.Name, fmt.Sprintf("%s: unknown keyword argument '%s'; it takes %s", c.target, kw.Name, c.parameters())}
		}
		if p := c.refused(kw.Value, func(s *op.Sig) *op.Param { return keywordParam(s, kw.Name) }); p != nil {
			return &argumentError{-1, kw.Name, fmt.Sprintf("%s: argument '%s' must be %s, not %s", c.target, kw.Name, p.Type, typeName(kw.Value))}
		}
	}
	return nil
}

// holdsNode reports whether an argument is still to be drawn.
func holdsNode(v any) bool {
	switch v := v.(type) {
	case *gen.Node:
		return true
	case program.List:
		return slices.ContainsFunc(v, holdsNode)
	case program.Tuple:
		return slices.ContainsFunc(v, holdsNode)
	}
	return false
}

// refused returns the parameter of the first signature when all signatures
// that have it refuse the value; nil when one accepts it or none has it.
func (c *pending) refused(v any, param func(*op.Sig) *op.Param) *op.Param {
	var first *op.Param
	for _, s := range c.sigs {
		p := param(s)
		switch {
		case p == nil:
		case c.accepts(p.Type, v, lenient):
			return nil
		case first == nil:
			first = p
		}
	}
	return first
}

func positionalParam(s *op.Sig, i, n int, method bool) *op.Param {
	places := make([]int, n)
	if !place(s, n, method, places) {
		return nil
	}
	p := s.Params[places[i]]
	if at := s.Spread(method); spreads(at, n) && places[i] == at {
		p.Type = op.Type{Kind: p.Type.Kind}
	}
	return &p
}

func keywordParam(s *op.Sig, name string) *op.Param {
	if i := paramIndex(s, name); i >= 0 {
		return &s.Params[i]
	}
	return nil
}

// parameters lists the names of all parameters of all signatures.
func (c *pending) parameters() string {
	var names []string
	for _, s := range c.sigs {
		for i, p := range s.Params {
			if !slices.Contains(names, p.Name) && !(c.method && i == 0) {
				names = append(names, p.Name)
			}
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// typeName returns the Python name of an argument's type.
func typeName(v any) string {
	switch v := v.(type) {
	case program.Ref:
		return "Tensor"
	case program.List:
		if len(v) > 0 {
			return "list of " + typeName(v[0])
		}
		return "list"
	case program.Tuple:
		if len(v) > 0 {
			return "tuple of " + typeName(v[0])
		}
		return "tuple"
	case program.Slice:
		return "slice"
	case program.Ellipsis:
		return "ellipsis"
	}
	return op.TypeName(v)
}
