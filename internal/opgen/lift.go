package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/conform/telling"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/draw/script"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/suites"
	"plumb/tensor"
)

// liftedCall is a call of a function or of a module in the words of a config.
type liftedCall struct {
	id     string // of the operator, or the module's name
	target string
	names  []string
	args   map[string]any // program.Input, []program.Input, or an argument of a program
	call   []string       // of a module: the arguments of its call
	eval   bool           // a module that evaluates
	plain  bool           // without gradients

	outputs []string       // that are differentiated, of several
	tells   map[string]int // by what it is: how much it counts
}

// lifter collects calls that tell faults apart, from the suites and from the
// literals' samples.
type lifter struct {
	table   *op.Table
	modules *nn.Table
	native  *native.Backend
	teller  telling.Teller
	order   []string // of the operators
	pool    map[string][]*liftedCall
	seen    map[string]bool
	named   map[string]bool // the entries, less their numbers
	ranges  map[string]span // of the elements, by operator and argument
}

// The numbers of drawn cases, of each test and each operator.
const (
	fromTest   = 20
	fromSample = 60
)

// The most rows of a target, and the elements that a case may have.
const (
	mostRows     = 7
	mostElements = 170
	longestEntry = 800 // in bytes, of one row
)

// lift returns entries of calls that tell attributes, edge values and layouts.
func lift(table *op.Table, modules *nn.Table) []byte {
	l := &lifter{table: recordable(table), modules: modules, pool: map[string][]*liftedCall{}, seen: map[string]bool{}, ranges: map[string]span{}, named: map[string]bool{}}
	l.native = native.New(l.table, modules)
	l.teller = telling.Teller{Backend: l.native, Defaults: telling.Defaults(l.table, func(target string) []*op.Sig {
		if d := modules.Lookup(target); d != nil {
			return d.Sigs()
		}
		return nil
	})}
	l.fromSamples()
	l.fromSuites()
	var b strings.Builder
	for _, id := range l.order {
		b.WriteString(l.entries(id, l.choose(l.pool[id])))
	}
	return []byte(b.String())
}

func (l *lifter) fromSuites() {
	for _, f := range suites.Files() {
		file, err := script.Load(f.Name, f.Source)
		if err != nil {
			panic(err) // a shipped one
		}
		for _, t := range file.Tests() {
			for i := range fromTest {
				src := choice.New(choice.Derive(choice.DeriveName(4, t.Name), uint64(i)))
				if p, err := t.Draw(src, script.Env{Index: i, Signatures: l, Reference: l, Observer: l}); err == nil {
					l.calls(p)
				}
			}
		}
	}
}

// Signatures tells the parameters of operators and modules by their public names.
func (l *lifter) Signatures(name string) ([]*op.Sig, error) {
	var out []*op.Sig
	if d := l.modules.Lookup(name); d != nil {
		out = append(out, d.Sigs()...)
	}
	for _, d := range l.table.Lookup(name) {
		out = append(out, d.Called(name))
	}
	return out, nil
}

// Observe runs the program so far.
func (l *lifter) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	return backend.Observe(p, refs, func(job *backend.Job) (*backend.Outcome, error) {
		return l.native.Run(context.Background(), job)
	})
}

// calls adds each call of a program by itself.
func (l *lifter) calls(p *program.Program) {
	if p.Raises || p.RTol != nil || p.Second.Dist != "" {
		return
	}
	o, err := l.teller.Run(context.Background(), p)
	if err != nil || o.Status != backend.OK {
		return
	}
	env := environment{p: p, values: map[program.Ref]backend.Value{}}
	for i := range p.Calls {
		switch c := &p.Calls[i]; {
		case len(c.Scopes) > 0:
		case c.Target == "Module.__call__":
			l.add(l.liftedModule(&env, i))
		case program.IsModule(c.Target), strings.HasPrefix(c.Target, "Module."):
		default:
			l.add(l.liftedFunction(&env, i))
		}
		env.values[program.Ref(p.Calls[i].Result)] = o.Values[i]
	}
}

// environment is what a call of a program may refer to.
type environment struct {
	p      *program.Program
	values map[program.Ref]backend.Value // of earlier calls
}

// literalElements is how many elements a value of an earlier call may have.
const literalElements = 24

// input is what a name refers to as an input.
func (e *environment) input(r program.Ref) (program.Input, bool) {
	if at := slices.IndexFunc(e.p.Inputs, func(in program.Input) bool { return in.Name == string(r) }); at >= 0 {
		return e.p.Inputs[at], true
	}
	v := e.values[r]
	if v.Tensor == nil || v.Tensor.Len() > literalElements {
		return program.Input{}, false
	}
	t := v.Tensor.Contiguous()
	return program.Input{Name: string(r), DType: t.DType(), Shape: t.Shape(), RequiresGrad: v.RequiresGrad, Fill: program.Fill{Dist: program.Literal, Data: t}}, true
}

func (l *lifter) fromSamples() {
	for _, def := range l.table.Defs() {
		if _, ok := spoken(def); !ok || def.Sample == nil || def.Traits.Has(op.Undefined) {
			continue
		}
		d := opcase.Drawer{Table: l.table, Def: def}
		for _, k := range kinds {
			var drawn []*program.Program
			if k.name == "" {
				l.scalarEdges(def)
			}
			dts := d.DTypes(k.dtypes...)
			for i := range uint64(fromSample) {
				if len(dts) == 0 {
					break
				}
				src := choice.New(choice.Derive(choice.DeriveName(5, def.ID()+k.name), i))
				if p, err := d.Arranged(src, dts[0], opcase.Layouts[i%uint64(len(opcase.Layouts))]); err == nil {
					drawn = append(drawn, p)
				}
			}
			structured := slices.ContainsFunc(slices.Collect(maps.Values(def.Domains)), func(d op.Domain) bool { return d == op.Structured || d == op.Hermitian })
			for i, p := range drawn {
				if structured {
					l.calls(p)
					continue
				}
				l.calls(ranged(p, ranges(drawn), edges[i%len(edges)]))
			}
		}
	}
}

// scalars are the edge values of functions of numbers.
var scalars = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -1.5, -2.5, math.Inf(1), math.Inf(-1), math.NaN(), 1e-3, -20, 30, 80, -80, 100, 1e-30, 1e30,
}

// scalarEdges adds a call of a function of one or two numbers on their edge
// values, of two on all pairs of a part of them.
func (l *lifter) scalarEdges(def *op.Def) {
	if !def.ScalarFunction() {
		return
	}
	params := slices.DeleteFunc(slices.Clone(def.Sigs()[0].Params), func(p op.Param) bool { return p.HasDefault })
	var shapes [][]int
	of := scalars
	switch len(params) {
	case 1:
		shapes = [][]int{{len(of)}}
	case 2:
		of = of[:13]
		shapes = [][]int{{len(of), 1}, {len(of)}}
	default:
		return
	}
	c := program.Call{Result: "y", Target: program.OwnPrefix + def.ID()}
	p := &program.Program{}
	for i, shape := range shapes {
		t := tensor.New(tensor.F32, shape...)
		for k, v := range of {
			t.Set(k, complex(v, 0))
		}
		name := fmt.Sprint("x", i)
		p.Inputs = append(p.Inputs, program.Input{Name: name, DType: tensor.F32, Shape: shape, Fill: program.Fill{Dist: program.Literal, Data: t}})
		c.Args = append(c.Args, program.Ref(name))
	}
	p.Calls = []program.Call{c}
	l.calls(p)
}

// span is the range of elements.
type span struct{ lo, hi float64 }

// ranges are those of the literal elements of each input, by its number.
func ranges(drawn []*program.Program) map[int]span {
	all := map[int]span{}
	for _, p := range drawn {
		for i := range p.Inputs {
			in := &p.Inputs[i]
			if in.Fill.Dist != program.Literal || !in.DType.IsFloat() {
				continue
			}
			for k := range in.Fill.Data.Len() {
				v := in.Fill.Data.Float(k)
				s, ok := all[i]
				if !ok {
					s = span{v, v}
				}
				all[i] = span{min(s.lo, v), max(s.hi, v)}
			}
		}
	}
	return all
}

// edge is what is mixed among drawn elements.
type edge struct {
	kinks   bool
	special program.Special
}

// edges are what one sample after the other gets. Next to NaN and infinities
// every gradient is a convention: these are not differentiated.
var edges = []edge{
	{}, {special: program.NaNs}, {kinks: true}, {special: program.Infs}, {kinks: true}, {special: program.Zeros}, {kinks: true},
	{special: program.Ties}, {kinks: true}, {special: program.NaNs | program.Infs}, {kinks: true},
}

// ranged describes literal elements by a generator of their range.
func ranged(p *program.Program, all map[int]span, mix edge) *program.Program {
	p = p.Clone()
	for i := range p.Inputs {
		in := &p.Inputs[i]
		s, ok := all[i]
		if ok && in.Fill.Dist == program.Literal && in.DType.IsFloat() && s.lo >= -1e4 && s.hi <= 1e4 {
			in.Fill = program.Fill{Dist: program.Uniform, Lo: roundTo(s.lo), Hi: roundTo(max(s.hi, s.lo+0.01)), Kinks: mix.kinks, Special: mix.special}
		}
	}
	if mix.special != 0 && mix.special != program.Ties {
		p.Backward = nil
	}
	return p
}

// liftedFunction is a call of a function, by keywords; nil where a config cannot
// say it.
func (l *lifter) liftedFunction(e *environment, at int) *liftedCall {
	c := &e.p.Calls[at]
	if op.InPlace(c.Target) {
		return nil
	}
	args, kwargs, err := c.OpArgs(func(r program.Ref) (any, error) {
		in, ok := e.input(r)
		if !ok {
			return nil, errUnsaid
		}
		in.Name = string(r)
		return in.Symbol(), nil
	})
	if err != nil {
		return nil
	}
	bound, err := program.Resolve(l.table, c.Target, args, kwargs)
	if err != nil || bound.InPlace {
		return nil
	}
	target, ok := spoken(bound.Def)
	if !ok || bound.Def.Traits.Has(op.Undefined) {
		return nil
	}
	own := bound.Def.Called(target)
	if bound.Args.Sig != bound.Def.Sigs()[0] || len(own.Params) < len(bound.Args.Vals) {
		return nil
	}
	out := &liftedCall{id: bound.Def.ID(), target: target, args: map[string]any{}, plain: len(e.p.Backward) == 0}
	for i, v := range bound.Args.Vals {
		param := &own.Params[i]
		if param.HasDefault && program.FormatArg(program.FromOp(param.Default)) == program.FormatArg(program.FromOp(v)) {
			continue
		}
		if !out.put(param.Name, program.FromOp(v), e) {
			return nil
		}
	}
	return out
}

// errUnsaid says that a config cannot say an argument.
var errUnsaid = errors.New("no config can say it")

// liftedModule is a call of a module that the program has made.
func (l *lifter) liftedModule(e *environment, at int) *liftedCall {
	p, last := e.p, &e.p.Calls[at]
	made, _ := last.Args[0].(program.Ref)
	out := &liftedCall{args: map[string]any{}, plain: len(p.Backward) == 0}
	from := at
	for from--; from >= 0; from-- {
		c := &p.Calls[from]
		ref, _ := firstOf(c.Args).(program.Ref)
		switch {
		case c.Result == string(made) && !strings.HasPrefix(c.Target, "Module."):
			out.target = c.Target
		case c.Result == string(made):
			out.eval = out.eval || c.Target == "Module.eval" || c.Target == "Module.train" && len(c.Args) == 2 && c.Args[1] == false
			made = ref
		case c.Target == "Module.eval" && ref == made:
			out.eval = true
		case strings.HasPrefix(c.Target, "Module.") && c.Target != "Module.__call__" && ref == made && c.Target != "Module.train" && c.Target != "Module.to":
			return nil
		}
		if out.target != "" {
			break
		}
	}
	d := l.modules.Lookup(out.target)
	if d == nil || d.Container {
		return nil
	}
	out.id = out.target
	sig := d.Sigs()[0]
	for i, v := range p.Calls[from].Args {
		if i >= len(sig.Params) || !out.put(sig.Params[i].Name, v, e) {
			return nil
		}
	}
	for _, kw := range p.Calls[from].Kwargs {
		if !out.put(kw.Name, kw.Value, e) {
			return nil
		}
	}
	forward, err := op.ParseSig(cmp.Or(d.ForwardSig, "forward(Tensor input)"))
	if err != nil {
		return nil
	}
	for i, v := range last.Args[1:] {
		if i >= len(forward.Params) || out.args[forward.Params[i].Name] != nil || !out.put(forward.Params[i].Name, v, e) {
			return nil
		}
		out.call = append(out.call, forward.Params[i].Name)
	}
	for _, kw := range last.Kwargs {
		if out.args[kw.Name] != nil || !out.put(kw.Name, kw.Value, e) {
			return nil
		}
		out.call = append(out.call, kw.Name)
	}
	return out
}

func firstOf(args []any) any {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

// put gives an argument its value.
func (c *liftedCall) put(name string, v any, e *environment) bool {
	if _, twice := c.args[name]; twice {
		return false
	}
	input := func(v any) (program.Input, bool) {
		r, ok := v.(program.Ref)
		if !ok {
			return program.Input{}, false
		}
		return e.input(r)
	}
	var list []any
	switch v := v.(type) {
	case program.Ref:
		in, ok := input(v)
		if !ok {
			return false
		}
		c.names, c.args[name] = append(c.names, name), in
		return true
	case program.List:
		list = v
	case program.Tuple:
		list = v
	case tensor.DType:
		if _, ok := numpyName(v); !ok {
			return false
		}
	}
	var ins []program.Input
	for _, e := range list {
		if in, ok := input(e); ok {
			ins = append(ins, in)
		}
	}
	switch {
	case len(ins) > 0 && len(ins) < len(list):
		return false
	case len(ins) > 0:
		c.names, c.args[name] = append(c.names, name), ins
		return true
	}
	if _, ok := literal(v); !ok {
		return false
	}
	c.names, c.args[name] = append(c.names, name), v
	return true
}

// add keeps a call that native computes, with what it tells.
func (l *lifter) add(c *liftedCall) {
	if c == nil {
		return
	}
	l.canonical(c)
	text, ok := c.entry("probe", []*liftedCall{c})
	if !ok || l.seen[text] || len(text) > longestEntry {
		return
	}
	l.seen[text] = true
	p, o := l.run(text)
	if p == nil {
		return
	}
	c.settle(p, o)
	for _, plain := range []bool{c.plain, true} {
		c.plain = plain
		text, _ = c.entry("probe", []*liftedCall{c})
		if p, o = l.run(text); p != nil && o.Status == backend.OK {
			break
		}
	}
	if p == nil || o.Status != backend.OK || unsettled(c) || elementsOf(p, o) > mostElements || !l.steady(p, o) {
		return
	}
	c.tells = l.telling(c, p, o)
	if l.pool[c.id] == nil {
		l.order = append(l.order, c.id)
	}
	l.pool[c.id] = append(l.pool[c.id], c)
}

// canonical gives all calls of an operator the same generators, so that they
// share entries: the range of the first, and kinks where there are no other
// edge values.
func (l *lifter) canonical(c *liftedCall) {
	for name, v := range c.args {
		switch v := v.(type) {
		case program.Input:
			c.args[name] = l.canonicalInput(c.id+" "+name, v)
		case []program.Input:
			for i := range v {
				v[i] = l.canonicalInput(c.id+" "+name, v[i])
			}
		}
	}
}

func (l *lifter) canonicalInput(at string, in program.Input) program.Input {
	if in.Fill.Dist != program.Uniform || !in.DType.IsFloat() {
		return in
	}
	first, ok := l.ranges[at]
	if !ok {
		first = span{in.Fill.Lo, in.Fill.Hi}
		l.ranges[at] = first
	}
	in.Fill.Lo, in.Fill.Hi, in.Fill.Kinks = first.lo, first.hi, in.Fill.Special == 0 && !isUnsettled(strings.Fields(at)[0], "kinks") && !isUnsettled(strings.Fields(at)[0], "special")
	if in.Fill.Special == program.AllSpecials {
		in.Fill.Special = program.Zeros | program.NaNs | program.Infs
	}
	return in
}

// run runs the only case of an entry; nil where the language cannot say it.
func (l *lifter) run(entry string) (*program.Program, *backend.Outcome) {
	c, err := config.Load("plumb.py", []byte(opening+entry+"}\n"))
	if err != nil {
		return nil, nil // such as strides that the language has not
	}
	for one := range c.Cases() {
		p, err := diopi.Program(one, 1)
		if err != nil {
			return nil, nil
		}
		o, err := l.teller.Run(context.Background(), p)
		if err != nil {
			return nil, nil
		}
		return p, o
	}
	return nil, nil
}

// unsettledEdges says what of which operators is not settled: PyTorch's versions
// differ, or nothing tells who is right. "ID WHAT: why", a line each; WHAT is
// all, special (edge values), kinks (gradients at them), void (no elements).
//
//go:embed unsettled.txt
var unsettledEdges string

func isUnsettled(id, what string) bool {
	return strings.Contains("\n"+unsettledEdges, "\n"+id+" "+what+": ")
}

// unsettled reports whether nothing is settled of a call.
func unsettled(c *liftedCall) bool {
	if isUnsettled(c.id, "all") {
		return true
	}
	for _, v := range c.args {
		in, ok := v.(program.Input)
		if !ok {
			continue
		}
		literal := in.Fill.Dist == program.Literal && in.DType.IsFloat() && specialOf(in.Fill.Data) != 0
		if isUnsettled(c.id, "special") && (in.Fill.Special != 0 || literal) ||
			isUnsettled(c.id, "kinks") && in.RequiresGrad && !c.plain && (in.Fill.Kinks || in.Fill.Special != 0 || literal) ||
			isUnsettled(c.id, "void") && slices.Contains(in.Shape, 0) {
			return true
		}
	}
	return false
}

// steady reports whether a case draws nothing.
func (l *lifter) steady(p *program.Program, o *backend.Outcome) bool {
	again := p.Clone()
	again.Seed++
	job := backend.NewJob(again)
	job.State = o.Initial
	other, err := l.native.Run(context.Background(), job)
	return err == nil && !telling.Tells(o, other)
}

func elementsOf(p *program.Program, o *backend.Outcome) int {
	n := 0
	for i := range p.Inputs {
		n = max(n, tensor.NumElements(p.Inputs[i].Shape))
	}
	for _, v := range o.Values {
		if v.Tensor != nil {
			n = max(n, v.Tensor.Len())
		}
	}
	return n
}

// settle says which results are differentiated.
func (c *liftedCall) settle(p *program.Program, o *backend.Outcome) {
	at := slices.IndexFunc(p.Calls, func(c program.Call) bool { return c.Result == diopi.Result })
	if at < 0 || at >= len(o.Values) {
		c.plain = true
		return
	}
	v := o.Values[at]
	if !v.IsTuple {
		c.plain = c.plain || !v.RequiresGrad
		return
	}
	for i, one := range v.Tuple {
		if one.Tensor != nil && one.RequiresGrad {
			c.outputs = append(c.outputs, fmt.Sprint(i))
		}
	}
	c.plain = c.plain || len(c.outputs) == 0
}
