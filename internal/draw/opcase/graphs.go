package opcase

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Grapher draws whole programs of calls of many operators, which read each
// other's results: legal by construction, since every argument has the shape
// that the literal's sample asks for.
type Grapher struct {
	table    *op.Table
	defs     []*op.Def
	missing  map[string]bool  // names that a backend lacks
	constant map[*op.Def]bool // operators that the reference cannot differentiate
}

// NewGrapher returns a grapher over the operators of the table that have
// results of a known shape, no draws, and a sample in float32.
func NewGrapher(table *op.Table) *Grapher {
	g := &Grapher{table: table, missing: map[string]bool{}, constant: map[*op.Def]bool{}}
	for _, d := range table.Defs() {
		drawer := Drawer{Table: table, Def: d}
		plain := d.Sigs()[0].Plain || len(d.Mutates) > 0 || d.Traits.Has(op.Dynamic) || d.Traits.Has(op.Random)
		if len(d.Names) > 0 && !plain && !op.InPlace(firstName(nil, d.Names)) && len(drawer.DTypes(tensor.F32)) > 0 {
			g.defs = append(g.defs, d)
		}
	}
	return g
}

// Probe is a call by itself, of an operator under one of its names.
type Probe struct {
	Program *program.Program
	def     *op.Def
	name    string
}

// leastProbes is how many calls of an operator are tried at least: not all of
// its arguments may be differentiable.
const leastProbes = 4

// Probes returns calls of every operator that programs are drawn from, by each
// of its names, with gradients. Which of them a backend does not know, and which
// it cannot differentiate, is to be told by Leave and Hold before the first Draw.
func (g *Grapher) Probes() []Probe {
	var probes []Probe
	for _, def := range g.defs {
		names := pureOnes(def.Names)
		for i := range max(leastProbes, len(names)) {
			name := names[i%len(names)]
			d := Drawer{Table: g.table, Def: def}
			c, err := d.sample(choice.New(choice.Derive(1, uint64(i))), tensor.F32, func(_ *choice.Source, usable []string) string {
				if slices.Contains(usable, name) {
					return name
				}
				return pureOnes(usable)[0]
			})
			if err == nil && d.record(c) == nil && c.Validate() == nil {
				probes = append(probes, Probe{c.Program, def, c.target})
			}
		}
	}
	return probes
}

// Leave keeps the name of a probe out of programs.
func (g *Grapher) Leave(p Probe) {
	g.missing[p.name] = true
	g.defs = slices.DeleteFunc(g.defs, func(d *op.Def) bool {
		return !slices.ContainsFunc(pureOnes(d.Names), func(n string) bool { return !g.missing[n] })
	})
}

// Hold makes the operator of a probe one that is never differentiated.
func (g *Grapher) Hold(p Probe) { g.constant[p.def] = true }

// drawName draws a name that no backend lacks.
func (g *Grapher) drawName(src *choice.Source, names []string) string {
	known := slices.DeleteFunc(slices.Clone(pureOnes(names)), func(n string) bool { return g.missing[n] })
	if len(known) == 0 {
		return pureName(src, names)
	}
	return known[src.Index(len(known))]
}

// The numbers of drawn calls; those that fit a result to an argument come on top.
const leastCalls, mostCalls = 3, 40

// graphLimit bounds the elements of a value that later calls may read.
const graphLimit = 4096

// Draw draws a program of 3 to 40 calls and asks for gradients of some of its results.
func (g *Grapher) Draw(src *choice.Source) (*program.Program, error) {
	p := &program.Program{Seed: src.Key()}
	d := &drawing{Grapher: g, src: src, p: p, symbols: map[program.Ref]*program.Symbol{}, recorder: program.NewRecorder(p, g.table, "")}
	n := int(src.Int(leastCalls, mostCalls+1))
	for try := 0; d.made < n && try < 4*n; try++ {
		d.step()
	}
	if d.made == 0 {
		return nil, errors.New("no call could be drawn")
	}
	d.backward()
	return p, p.Validate()
}

// drawing is a program that is being drawn.
type drawing struct {
	*Grapher
	src      *choice.Source
	p        *program.Program
	recorder *program.Recorder
	symbols  map[program.Ref]*program.Symbol
	pool     []*program.Symbol // what later calls may read
	results  []*program.Symbol // of calls, of float32
	made     int
}

// step draws one call; it leaves nothing behind where the call is not legal.
func (d *drawing) step() {
	def := d.defs[d.src.Index(len(d.defs))]
	c, err := Drawer{Table: d.table, Def: def}.sample(d.src, tensor.F32, d.drawName)
	if err != nil || d.missing[c.target] {
		return
	}
	calls, inputs := len(d.p.Calls), len(d.p.Inputs)
	out, err := d.add(c)
	if err != nil {
		d.p.Calls, d.p.Inputs = d.p.Calls[:calls], d.p.Inputs[:inputs]
		return
	}
	d.made++
	for i := range d.p.Inputs[inputs:] {
		d.keep(d.symbols[program.Ref(d.p.Inputs[inputs+i].Name)])
	}
	for _, s := range out {
		if d.keep(s) {
			d.results = append(d.results, s)
		}
	}
}

// keep lets later calls read a value of float32.
func (d *drawing) keep(s *program.Symbol) bool {
	n := tensor.NumElements(s.Shape())
	ok := s.DType() == tensor.F32 && n > 0 && n <= graphLimit
	if ok {
		d.pool = append(d.pool, s)
	}
	return ok
}

// step is a call with constants that brings a value into a domain.
type step struct {
	target string
	args   []any
}

var noNaN = step{"torch.nan_to_num", nil}

// into brings a value into a domain.
var into = map[op.Domain][]step{
	op.UnitRange: {{"torch.sigmoid", nil}},
	op.NoNaN:     {noNaN},
	op.IntRange:  {noNaN, {"torch.nn.functional.hardtanh", []any{-100.0, 100.0}}},
}

// domains returns the domains of the inputs of a drawn call.
func (c *call) domains() map[string]op.Domain {
	of := map[string]op.Domain{}
	own, main := c.def.Called(c.target), c.def.Sigs()[0]
	for i, v := range c.arguments() {
		if at := own.Index(op.AnyArg(c.params[i])); at >= 0 {
			program.Refs(v, func(r program.Ref) { of[string(r)] = c.def.Domains[op.TensorArg(main.Params[at].Name)] })
		}
	}
	return of
}

// add records a drawn call, its inputs replaced by earlier values.
func (d *drawing) add(c *call) ([]*program.Symbol, error) {
	refs := map[program.Ref]any{}
	domains := c.domains()
	for i := range c.Inputs {
		in := &c.Inputs[i]
		in.RequiresGrad = in.RequiresGrad && !d.constant[c.def] && domains[in.Name] != op.Constant
		s, err := d.argumentFor(in, domains[in.Name])
		if err != nil {
			return nil, err
		}
		refs[program.Ref(c.Inputs[i].Name)] = s.Ref
	}
	named := func(r program.Ref) any { return refs[r] }
	written := c.written()
	for i, a := range written.Args {
		written.Args[i] = program.MapRefs(a, named)
	}
	for i, kw := range written.Kwargs {
		written.Kwargs[i].Value = program.MapRefs(kw.Value, named)
	}
	return d.record(written)
}

// record appends a call under a new name.
func (d *drawing) record(c program.Call) ([]*program.Symbol, error) {
	c.Result = fmt.Sprintf("v%d", len(d.p.Calls))
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) { return d.symbols[r], nil })
	if err != nil {
		return nil, err
	}
	bound, err := program.Resolve(d.table, c.Target, args, kwargs)
	if err != nil {
		return nil, err
	}
	if bound.InPlace {
		return nil, errors.New("in place")
	}
	out, err := d.recorder.Record(c, bound)
	if err != nil {
		return nil, err
	}
	var symbols []*program.Symbol
	for _, v := range out {
		s := v.(*program.Symbol)
		d.symbols[s.Ref] = s
		symbols = append(symbols, s)
	}
	return symbols, nil
}

// argumentFor returns an earlier value in the shape of a sampled tensor, or the
// tensor as a new input. What is not differentiable there is detached, and
// brought into the domain.
func (d *drawing) argumentFor(in *program.Input, domain op.Domain) (*program.Symbol, error) {
	if in.DType == tensor.F32 && !domain.FromSample() && len(d.pool) > 0 && d.src.Int(0, 5) != 0 {
		s, err := d.fitted(d.earlier(), in.Shape)
		for _, st := range into[domain] {
			var out []*program.Symbol
			if err != nil || s == nil {
				break
			}
			if out, err = d.record(program.Call{Target: st.target, Args: append([]any{s.Ref}, st.args...)}); err == nil {
				s = out[0]
			}
		}
		if err == nil && s != nil && !in.RequiresGrad {
			var out []*program.Symbol
			if out, err = d.record(program.Call{Target: "Tensor.detach", Args: []any{s.Ref}}); err == nil {
				s = out[0]
			}
		}
		if s != nil || err != nil {
			return s, err
		}
	}
	own := *in
	own.Name = fmt.Sprintf("x%d", len(d.p.Inputs))
	d.p.Inputs = append(d.p.Inputs, own)
	s := own.Symbol()
	d.symbols[s.Ref] = s
	return s, nil
}

// earlier picks one of the last values, or any.
func (d *drawing) earlier() *program.Symbol {
	n := len(d.pool)
	if d.src.Bool() {
		return d.pool[n-1-d.src.Index(min(3, n))]
	}
	return d.pool[d.src.Index(n)]
}

// repeats bounds how often a value is repeated to fill a shape.
const repeats = 6

// fitted returns a value's elements in another shape, some left out or
// repeated, and sometimes brought between -1 and 1; nil where it has too few.
func (d *drawing) fitted(s *program.Symbol, shape []int) (*program.Symbol, error) {
	want, have := tensor.NumElements(shape), tensor.NumElements(s.Shape())
	if want == 0 || want > have*repeats {
		return nil, nil
	}
	var err error
	apply := func(target string, args ...any) {
		if err != nil {
			return
		}
		var out []*program.Symbol
		if out, err = d.record(program.Call{Target: target, Args: args}); err == nil {
			s = out[0]
		}
	}
	if d.src.Int(0, 3) == 0 {
		apply("torch.tanh", s.Ref)
	}
	if slices.Equal(shape, s.Shape()) {
		return s, err
	}
	if len(s.Shape()) != 1 {
		apply("torch.flatten", s.Ref)
	}
	if want > have {
		apply("torch.cat", program.List(slices.Repeat([]any{s.Ref}, (want+have-1)/have)))
	}
	if err == nil && tensor.NumElements(s.Shape()) != want {
		apply("torch.narrow", s.Ref, int64(0), int64(0), int64(want))
	}
	if len(shape) != 1 {
		apply("torch.reshape", s.Ref, program.FromOp(shape))
	}
	return s, err
}

// backward asks for gradients of one to three results.
func (d *drawing) backward() {
	for range d.src.Int(1, 4) {
		if len(d.results) == 0 {
			return
		}
		i := len(d.results) - 1 - d.src.Index(min(4, len(d.results)))
		ref := d.results[i].Ref
		if strings.HasPrefix(string(ref), "x") || slices.ContainsFunc(d.p.Backward, func(b program.Backward) bool { return b.Value == ref }) {
			continue
		}
		d.p.Backward = append(d.p.Backward, program.Backward{
			Value: ref, Cotangent: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: d.src.Key()}, Auto: true,
		})
	}
}
