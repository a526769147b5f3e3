// Package foreign is the operators of a table as those call them who do not write
// Go: calls come as text and as addresses of elements, errors and results go back so.
// It knows no C; package shared gives it to C.
package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"plumb/internal/autograd"
	"plumb/op"
	"plumb/tensor"
)

// Library is a table and the plans over it. It is for any number of goroutines.
type Library struct {
	table *op.Table
	mu    sync.RWMutex
	keys  op.Keys
	plans []*Plan
	free  []int
	vjps  map[string]*op.Def
}

// New returns a library over a table.
func New(table *op.Table) *Library { return &Library{table: table, vjps: map[string]*op.Def{}} }

// Seed sets what the draws of random operators follow from, from now on.
func (l *Library) Seed(seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys.Reseed(seed)
}

func (l *Library) key(c *op.Call) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, key := l.keys.Key(c)
	return key
}

// execute computes a call, each draw of its parts by a key of its own.
func (l *Library) execute(c *op.Call) ([]*tensor.Tensor, error) {
	if c.Def.Compose == nil {
		if c.Def.Traits.Has(op.Random) {
			c.Key = l.key(c)
		}
		return c.Execute()
	}
	out, err := c.Parts(op.Builder{Applier: parts{l}})
	ts := make([]*tensor.Tensor, len(out))
	for i, v := range out {
		ts[i] = v.(*tensor.Tensor)
	}
	return ts, err
}

// parts computes what an operator is made of.
type parts struct{ l *Library }

// Apply computes an operator by id.
func (p parts) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	c, err := p.l.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	ts, err := p.l.execute(c)
	out := make([]op.Value, len(ts))
	for i, t := range ts {
		out[i] = t
	}
	return out, err
}

// modules are where a function is looked for that is named without one.
var modules = []string{"torch.", "torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.fft."}

// resolve binds a call of an operator by id, by public name, or by the name of its
// function alone, such as relu or max.
func (l *Library) resolve(r *request, args []any, kwargs []op.Kwarg) (*op.Call, error) {
	switch {
	case autograd.IsVJP(r.name):
		d, err := l.vjp(r.name)
		if err != nil {
			return nil, err
		}
		return l.table.ResolveAmong(r.name, []*op.Def{d}, args, kwargs)
	case r.exact:
		return l.table.ResolveID(r.name, args, kwargs)
	}
	defs, public := l.named(r.name)
	return l.table.ResolveAmong(public, defs, args, kwargs)
}

// named returns the operators that a function's name stands for, and the name that
// their signatures have it by.
func (l *Library) named(name string) (defs []*op.Def, public string) {
	if strings.Contains(name, ".") {
		if d := l.table.Def(name); d != nil {
			return []*op.Def{d}, name
		}
		return l.table.Lookup(name), name
	}
	for _, m := range modules {
		if defs := l.table.Lookup(m + name); len(defs) > 0 {
			return defs, m + name
		}
	}
	return l.table.Family(name), name
}

// vjp returns the operator that computes the gradients of another.
func (l *Library) vjp(name string) (*op.Def, error) {
	l.mu.RLock()
	d := l.vjps[name]
	l.mu.RUnlock()
	if d != nil {
		return d, nil
	}
	of := autograd.OfVJP(name)
	base := l.table.Def(of)
	if autograd.IsVJP(of) {
		var err error
		if base, err = l.vjp(of); err != nil {
			return nil, err
		}
	}
	if base == nil {
		return nil, fmt.Errorf("%w %s", op.ErrUnknown, of)
	}
	literal, err := autograd.VJP(l.table, base)
	if err != nil {
		return nil, err
	}
	if d, err = l.table.Derive(literal); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vjps[name] = d
	return d, nil
}

// Description is what Prepare says of a call.
type Description struct {
	Plan    int    `json:"plan"`
	Op      string `json:"op,omitempty"`
	Results []Meta `json:"results"`
	// New says that the results are known once they are computed: see Plan.RunNew.
	New bool `json:"new,omitempty"`
	// Many says that the result is a list; Plain, that it is a Python number.
	Many    bool  `json:"many,omitempty"`
	Plain   bool  `json:"plain,omitempty"`
	Mutates []int `json:"mutates,omitempty"`
}

// Prepare reads a call, checks it and keeps its plan until Forget.
func (l *Library) Prepare(text []byte) (d *Description, err error) {
	name := "a call"
	defer caught(name, &err)
	r, err := readRequest(text, nil)
	if err != nil {
		return nil, err
	}
	p, err := l.prepare(r)
	if err != nil {
		return nil, l.blame(r, err)
	}
	return l.describe(p), nil
}

// Bind makes the plan of a call, which nobody has to forget, with the layouts of its
// tensors: the "tensor" of an argument is a place among them.
func (l *Library) Bind(text []byte, layouts []op.Meta) (p *Plan, err error) {
	defer caught("a call", &err)
	var given []*Operand
	for i, m := range layouts {
		o, err := newOperand(m.DType, m.Shape, m.Strides, i)
		if err != nil {
			return nil, err
		}
		given = append(given, o)
	}
	r, err := readRequest(text, given)
	if err != nil {
		return nil, err
	}
	if p, err = l.prepare(r); err != nil {
		return nil, l.blame(r, err)
	}
	return p, nil
}

func (l *Library) describe(p *Plan) *Description {
	d := &Description{Results: []Meta{}, New: p.plan == nil, Mutates: p.mutates}
	for _, t := range p.results {
		d.Results = append(d.Results, Meta{t.DType().String(), append([]int{}, t.Shape()...), append([]int{}, t.Strides()...)})
	}
	if defs, _ := l.named(p.request.name); len(defs) > 0 {
		d.Many, d.Plain = defs[0].Sigs()[0].Many, defs[0].Sigs()[0].Plain
	}
	if p.plan != nil {
		sig := p.plan.Call.Def.Sigs()[0]
		d.Op, d.Many, d.Plain = p.plan.Call.Def.ID(), sig.Many, sig.Plain
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		d.Plan, l.free = l.free[n-1], l.free[:n-1]
		l.plans[d.Plan] = p
	} else {
		d.Plan = len(l.plans)
		l.plans = append(l.plans, p)
	}
	return d
}

// Plan returns a plan that Prepare made; nil for none.
func (l *Library) Plan(i int) *Plan {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if i < 0 || i >= len(l.plans) {
		return nil
	}
	return l.plans[i]
}

// Forget forgets a plan.
func (l *Library) Forget(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i >= 0 && i < len(l.plans) && l.plans[i] != nil {
		l.plans[i] = nil
		l.free = append(l.free, i)
	}
}

// Fault is an error for those who do not write Go.
type Fault struct {
	Class    string `json:"class"` // of the Python exception
	Op       string `json:"op"`
	Argument string `json:"argument"` // the parameter to blame; "" where none alone is
	Message  string `json:"message"`
}

// named is an error of a call that the operator's name goes with.
type named struct {
	error
	name     string
	argument string
}

func (n *named) Unwrap() error { return n.error }

// mentioned finds the argument that a message is about.
var mentioned = regexp.MustCompile(`(unexpected keyword )?argument:? '?(\w+)'?`)

// blame finds the argument that an error is about: the one that it names, or that
// which keeps the call from every signature that there is.
func (l *Library) blame(r *request, err error) error {
	defs, public := l.named(r.name)
	n := &named{error: err, name: r.name, argument: argumentOf(err, defs)}
	if n.argument != "" || !strings.Contains(err.Error(), "no signature accepts") {
		return n
	}
	var blamed []string
	for _, d := range defs {
		if d.ID() == r.name || !r.exact {
			for _, s := range d.CalledAll(public) {
				if _, err := s.Bind(r.args, r.kwargs, false); err != nil {
					blamed = append(blamed, argumentOf(err, defs))
				}
			}
		}
	}
	if blamed = slices.Compact(blamed); len(blamed) == 1 {
		n.argument = blamed[0]
	}
	return n
}

// argumentOf returns the argument that a message names, if it is one.
func argumentOf(err error, defs []*op.Def) string {
	m := mentioned.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	isParameter := func(p op.Param) bool { return p.Name == m[2] }
	for _, d := range defs {
		for _, s := range d.Sigs() {
			if m[1] != "" || slices.ContainsFunc(s.Params, isParameter) {
				return m[2]
			}
		}
	}
	return ""
}

// FaultOf returns an error as others read it.
func (l *Library) FaultOf(name string, err error) *Fault {
	var n *named
	if !errors.As(err, &n) {
		errors.As(l.blame(&request{name: name}, err), &n)
	}
	f := &Fault{Class: "RuntimeError", Op: n.name, Argument: n.argument, Message: err.Error()}
	var e *op.Error
	switch {
	case errors.As(err, &e):
		f.Class = e.Class
		if e.Op != "" {
			f.Op = e.Op
		}
	case errors.Is(err, op.ErrUnknown):
		f.Class = "AttributeError"
	}
	return f
}

// JSON returns the fault as text.
func (f *Fault) JSON() []byte {
	text, err := json.Marshal(map[string]*Fault{"error": f})
	if err != nil {
		return []byte(`{"error":{"class":"RuntimeError","message":"an error that cannot be told"}}`)
	}
	return text
}
