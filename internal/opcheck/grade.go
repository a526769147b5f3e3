package opcheck

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/op"
	"plumb/tensor"
)

// Fault is a mistake planted in a copy of a literal, and whether the checks find it.
type Fault struct {
	Field string // of op.Def, that has it
	What  string
	// By is the finding that names it; "" where there is none.
	By string
	// Why says what keeps it from being found, where that is known.
	Why string
}

// Grading is what came of the faults planted in one operator.
type Grading struct {
	ID     string
	Faults []Fault
	// Source says of faults in the source of the operator's functions what could not be
	// planted, or how many were; "" where all were.
	Source string
}

// Missed returns the faults that would not be found.
func (g *Grading) Missed() []Fault {
	return slices.DeleteFunc(slices.Clone(g.Faults), func(f Fault) bool { return f.By != "" })
}

// String says in a sentence how many would be found, and lists the others.
func (g *Grading) String() string {
	missed := g.Missed()
	text := fmt.Sprintf("%s: %d of %d planted faults would be found", g.ID, len(g.Faults)-len(missed), len(g.Faults))
	for _, f := range missed {
		text += fmt.Sprintf("\n  missed: %s: %s", f.Field, f.What)
		if f.Why != "" {
			text += ", because " + f.Why
		}
	}
	if g.Source != "" {
		text += "\n  in the source: " + g.Source
	}
	return text
}

// Reference is what judges operators with public names beside the literal.
type Reference struct {
	Open func() (backend.Backend, error)
	Is   string // its name and version
}

// Grade plants faults in copies of an operator's literal, one in each, and tells
// which the checks would find: in its attributes, arguments, results, dtypes,
// layouts, gradients, sharding, inference and numerics. With a reference, what the
// literal alone does not tell is asked of that. Faults are planted around the
// functions of the literal; in their source, the command line plants them.
func Grade(ctx context.Context, table *op.Table, id string, o Options, r *Reference) (*Grading, error) {
	d := table.Def(id)
	if d == nil {
		return nil, fmt.Errorf("the table has no operator %s", id)
	}
	sound := Run(table, id, o)
	if len(sound.DTypes) == 0 {
		return nil, fmt.Errorf("operator %s: no call of its Sample is legal: plant nothing before its checks pass", id)
	}
	g := &grader{table: table, def: d, options: o, sound: sound, reference: r}
	if g.calls = g.drawn(); len(g.calls) == 0 {
		return nil, fmt.Errorf("operator %s: no call could be drawn", id)
	}
	if r != nil && len(d.Names) > 0 {
		var err error
		if g.beside, err = Against(ctx, table, id, sound.DTypes, r.Open, r.Is, o.Seed, gradedCalls); err != nil {
			return nil, err
		}
	}
	out := &Grading{ID: id}
	for _, m := range g.mutants() {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		f := Fault{Field: m.field, What: m.what, Why: m.why}
		var err error
		if f.By, err = g.found(ctx, m); err != nil {
			return out, err
		}
		out.Faults = append(out.Faults, f)
	}
	return out, nil
}

// gradedCalls is how many calls of each kind a reference is asked for.
const gradedCalls = 16

type grader struct {
	table     *op.Table
	def       *op.Def
	options   Options
	sound     *Report
	beside    []Finding // of the reference, without a fault
	reference *Reference
	calls     []*drawn
}

// mutant is a fault to plant.
type mutant struct {
	field, what, why string
	plant            func(d *op.Def)
}

// drawn returns sampled calls, to see which attributes vary.
func (g *grader) drawn() []*drawn {
	c := &checker{Report: &Report{Checked: map[string]int{}}, table: g.table, def: g.def, seed: g.options.Seed}
	c.drawer.Table, c.drawer.Def = g.table, g.def
	for _, dt := range g.sound.DTypes {
		for i := range 16 {
			c.try(nil, func() { c.drawOne(dt, i) })
		}
	}
	return c.calls
}

// found returns the first finding of a mutant that the sound literal has not.
func (g *grader) found(ctx context.Context, m mutant) (string, error) {
	d := *g.def
	d.Kernels = slices.Clone(d.Kernels)
	m.plant(&d)
	defs := slices.Clone(g.table.Defs())
	defs[slices.Index(defs, g.def)] = &d
	table, err := op.NewTable(defs...)
	if err != nil {
		return "NewTable: " + err.Error(), nil
	}
	if f := Fresh(Run(table, g.def.ID(), g.options).Findings, g.sound.Findings); f != "" {
		return f, nil
	}
	if g.reference == nil || len(g.def.Names) == 0 {
		return "", nil
	}
	fs, err := Against(ctx, table, g.def.ID(), g.sound.DTypes, g.reference.Open, g.reference.Is, g.options.Seed, gradedCalls)
	return Fresh(fs, g.beside), err
}

// Fresh tells the first of the findings that is not among the others; "" for none.
func Fresh(found, known []Finding) string {
	for _, f := range found {
		if !slices.ContainsFunc(known, func(k Finding) bool { return k.Field == f.Field && k.Aspect == f.Aspect }) {
			first, _, _ := strings.Cut(f.Text, "\n")
			return f.Field + ": " + first
		}
	}
	return ""
}

func (g *grader) mutants() []mutant {
	var ms []mutant
	if len(g.def.Kernels) > 0 {
		ms = slices.Concat(ms, g.attributes(), g.arguments(), g.results(), g.memory())
	}
	return slices.Concat(ms, g.inferences(), g.gradients(), g.shardings(), g.numerics())
}

// around runs f in place of every kernel.
func around(f func(c *op.Run, run func(*op.Run) error) error) func(*op.Def) {
	return func(d *op.Def) {
		for i := range d.Kernels {
			run := d.Kernels[i].Run
			d.Kernels[i].Run = func(c *op.Run) error { return f(c, run) }
		}
	}
}

// seeing runs kernels with another value of a parameter.
func seeing(i int, other func(v any) any) func(*op.Def) {
	return around(func(c *op.Run, run func(*op.Run) error) error {
		own := *c
		own.Args = op.Args{Sig: c.Sig, Vals: slices.Clone(c.Vals)}
		own.Vals[i] = other(own.Vals[i])
		return run(&own)
	})
}

// attributes lets kernels not see what attributes are given.
func (g *grader) attributes() []mutant {
	var ms []mutant
	for i, p := range g.def.Sigs()[0].Params {
		if !covered(p) {
			continue
		}
		seen := map[string]bool{}
		for _, d := range g.calls {
			seen[fmt.Sprint(d.Args.Vals[i])] = true
		}
		why := ""
		if len(seen) == 1 {
			why = fmt.Sprintf("Sample never draws %s other than %v", p.Name, g.calls[0].Args.Vals[i])
		}
		first := g.calls[0].Args.Vals[i]
		if p.HasDefault {
			first = p.Default
		}
		ms = append(ms, mutant{"Kernels", fmt.Sprintf("%s is always %v", p.Name, first), why, seeing(i, func(any) any { return first })})
		ms = append(ms, mutant{"Kernels", p.Name + " is read as another", why, seeing(i, another)})
		if p.HasDefault && len(g.def.Names) > 0 && (p.Type.Kind == op.KFloat || p.Type.Kind == op.KInt) {
			v := another(p.Default)
			ms = append(ms, mutant{"Sig", fmt.Sprintf("the default of %s is %v", p.Name, v), "only a reference knows the default", func(d *op.Def) {
				d.Sig = strings.Replace(d.Sig, fmt.Sprintf("%s=%v", p.Name, p.Default), fmt.Sprintf("%s=%v", p.Name, v), 1)
			}})
		}
	}
	return ms
}

// another is a value beside the given one.
func another(v any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case int:
		return v + 1
	case float64:
		return v*1.25 + 0.125
	case string:
		return v + "?"
	case []int:
		return plusOne(v)
	case [][]int:
		all := slices.Clone(v)
		for i := range all {
			all[i] = plusOne(all[i])
		}
		return all
	case op.Scalar:
		if n, ok := v.Any().(int64); ok {
			return op.ScalarOf(n + 1)
		}
		return op.ScalarOf(v.Float()*1.25 + 0.125)
	}
	return v
}

func plusOne(v []int) []int {
	v = slices.Clone(v)
	for i := range v {
		v[i]++
	}
	return v
}

// arguments lets kernels see other elements of one tensor.
func (g *grader) arguments() []mutant {
	var ms []mutant
	for i, p := range g.def.Sigs()[0].Params {
		if p.Type.Kind != op.KTensor || p.Type.List || g.def.Traits.Has(op.ShapeOnly) || slices.Contains(g.def.Mutates, op.TensorArg(p.Name)) {
			continue
		}
		change := func(f func(x *tensor.Tensor) *tensor.Tensor) func(*op.Def) {
			return seeing(i, func(v any) any {
				if x, ok := v.(*tensor.Tensor); ok && x != nil {
					return f(x)
				}
				return v
			})
		}
		ms = append(ms,
			mutant{"Kernels", p.Name + " is read as if it were contiguous", "", change(func(x *tensor.Tensor) *tensor.Tensor {
				u, err := tensor.FromBytes(x.DType(), x.Shape(), tensor.ContiguousStrides(x.Shape()), x.Offset(), padded(x))
				if err != nil {
					return x
				}
				return u
			})},
			mutant{"Kernels", "the offset of " + p.Name + " is left out", "", change(func(x *tensor.Tensor) *tensor.Tensor {
				u, err := tensor.FromBytes(x.DType(), x.Shape(), x.Strides(), 0, x.Storage())
				if err != nil {
					return x
				}
				return u
			})},
			mutant{"Kernels", "the last element of " + p.Name + " is read as 0", "", change(func(x *tensor.Tensor) *tensor.Tensor {
				u := sameLayout(x)
				if n := u.Len(); n > 0 && u.DType() != tensor.Bool {
					u.Set(n-1, 0)
				}
				return u
			})},
			mutant{"Kernels", "negative elements of " + p.Name + " are read as positive", "Sample draws none that make a difference", change(func(x *tensor.Tensor) *tensor.Tensor {
				u := sameLayout(x)
				for e := range u.Len() {
					if u.DType().IsFloat() && u.Float(e) < 0 {
						u.Set(e, complex(-u.Float(e), 0))
					}
				}
				return u
			})})
		if p.Type.Optional {
			ms = append(ms, mutant{"Kernels", p.Name + ", which is optional, is read as zeros", "Sample never draws it", change(func(x *tensor.Tensor) *tensor.Tensor {
				return tensor.New(x.DType(), x.Shape()...)
			})})
		}
	}
	return ms
}

// padded is the storage of a tensor, with as much behind it again as its shape takes.
func padded(x *tensor.Tensor) []byte {
	return append(slices.Clone(x.Storage()), make([]byte, x.Len()*x.DType().Size())...)
}

// results changes what kernels have computed.
func (g *grader) results() []mutant {
	var ms []mutant
	after := func(what, why string, f func(c *op.Run)) {
		ms = append(ms, mutant{"Kernels", what, why, around(func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if err == nil {
				f(c)
			}
			return err
		})})
	}
	for i := range g.calls[0].out {
		after(fmt.Sprintf("result %d is a little too large", i), "", func(c *op.Run) { scaleBy(c.Out[i], 1.001) })
		after(fmt.Sprintf("the last element of result %d is not computed", i), "", func(c *op.Run) {
			if n := c.Out[i].Len(); n > 1 {
				c.Out[i].Set(n-1, 0)
			}
		})
	}
	if g.def.Traits.Has(op.Random) {
		return ms
	}
	after("in large calls what is behind the last block of 4096 elements is not computed", "no larger call than Sample's could be made", func(c *op.Run) {
		n := c.Out[0].Len()
		for e := n / 4096 * 4096; e > 0 && e < n; e++ {
			c.Out[0].Set(e, 0)
		}
	})
	if slices.ContainsFunc(g.sound.DTypes, tensor.DType.IsFloat) && g.calls[len(g.calls)-1].out[0].DType().IsDifferentiable() {
		after("NaN is lost", "nothing tells what NaN gives: neither an Exact nor a reference", func(c *op.Run) {
			for e := range c.Out[0].Len() {
				if v := c.Out[0].At(e); cmplx.IsNaN(v) {
					c.Out[0].Set(e, 0)
				}
			}
		})
		for _, dt := range g.sound.DTypes {
			if !dt.IsFloat() {
				continue
			}
			after(fmt.Sprintf("results of %s are rounded to half as many bits", dt), "nothing tells how precise this dtype is", func(c *op.Run) {
				if c.Out[0].DType() != dt {
					return
				}
				for e := range c.Out[0].Len() {
					v := c.Out[0].Float(e)
					frac, exp := math.Frexp(v)
					bits := 1 - math.Log2(roundoff(dt))
					keep := math.Ldexp(1, int(bits/2))
					if v != 0 && !math.IsInf(v, 0) && !math.IsNaN(v) {
						c.Out[0].Set(e, complex(math.Ldexp(math.Round(frac*keep)/keep, exp), 0))
					}
				}
			})
		}
	}
	if slices.ContainsFunc(g.calls, func(d *drawn) bool { return d.out[0].DType() == tensor.I64 }) {
		after("int64 are computed in float64", "nothing tells what large integers give", func(c *op.Run) {
			if c.Out[0].DType() == tensor.I64 {
				for e := range c.Out[0].Len() {
					c.Out[0].SetInt(e, int64(float64(c.Out[0].Int(e))))
				}
			}
		})
	}
	return ms
}

func scaleBy(t *tensor.Tensor, f float64) {
	for e := range t.Len() {
		switch {
		case t.DType().IsDifferentiable():
			t.Set(e, t.At(e)*complex(f, 0))
		case t.DType() == tensor.Bool:
			t.Set(e, 1-t.At(e))
		default:
			t.SetInt(e, t.Int(e)+1)
		}
	}
}

// memory lets kernels use memory that is not theirs.
func (g *grader) memory() []mutant {
	var ms []mutant
	last := 0.0
	ms = append(ms,
		mutant{"Kernels", "adds to what was in the results' memory", "", around(func(c *op.Run, run func(*op.Run) error) error {
			before := make([]complex128, c.Out[0].Len())
			for e := range before {
				before[e] = c.Out[0].At(e)
			}
			err := run(c)
			for e := range before {
				c.Out[0].Set(e, c.Out[0].At(e)+before[e])
			}
			return err
		})},
		mutant{"Kernels", "keeps something of the call before", "", around(func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if t := c.Out[0]; t.Len() > 0 && t.DType() != tensor.Bool {
				t.Set(0, t.At(0)+complex(last, 0))
				last++
			}
			return err
		})})
	if at := slices.IndexFunc(g.def.Sigs()[0].Params, func(p op.Param) bool {
		return p.Type.Kind == op.KTensor && !p.Type.List && !slices.Contains(g.def.Mutates, op.TensorArg(p.Name))
	}); at >= 0 {
		ms = append(ms, mutant{"Kernels", "changes an argument", "", around(func(c *op.Run, run func(*op.Run) error) error {
			err := run(c)
			if x, ok := c.Vals[at].(*tensor.Tensor); ok && x != nil && x.Len() > 0 {
				x.Set(0, 1-x.At(0))
			}
			return err
		})})
	}
	return ms
}

// inferences changes what Infer says.
func (g *grader) inferences() []mutant {
	if g.def.Infer == nil || g.def.View != nil {
		return nil
	}
	infer := g.def.Infer
	change := func(what, why string, f func(m *op.Meta)) mutant {
		return mutant{"Infer", what, why, func(d *op.Def) {
			d.Infer = func(a op.Args) ([]op.Meta, error) {
				ms, err := infer(a)
				if ms = slices.Clone(ms); err == nil && len(ms) > 0 {
					f(&ms[0])
				}
				return ms, err
			}
		}}
	}
	nobody := "nothing but a reference, or an Exact, tells the shape"
	return []mutant{
		change("a dimension too many", nobody, func(m *op.Meta) { m.Shape, m.Strides = append([]int{1}, m.Shape...), nil }),
		change("one element for all", "", func(m *op.Meta) { m.Strides = make([]int, len(m.Shape)) }),
		change("float32 for everything", "nothing but a reference tells the dtype", func(m *op.Meta) {
			if m.DType.IsFloat() {
				m.DType = tensor.F32
			}
		}),
	}
}

// gradients changes what Grad gives.
func (g *grader) gradients() []mutant {
	grad := g.def.Grad
	if grad == nil || g.def.Traits.Has(op.NoGrad) {
		return nil
	}
	// change applies f to the gradients of one argument.
	change := func(p string, f func(o *op.Grad, v op.Value) op.Value) func(*op.Def) {
		return func(d *op.Def) {
			d.Grad = func(o *op.Grad) { o.Changed(grad, op.TensorArg(p), func(v op.Value) op.Value { return f(o, v) }) }
		}
	}
	var ms []mutant
	for _, p := range g.def.Sigs()[0].Params {
		if p.Type.Kind != op.KTensor || p.Type.List || g.def.IsFixed(p.Name) || slices.Contains(g.def.Mutates, op.TensorArg(p.Name)) {
			continue
		}
		why := "Sample never draws it, or not so that a gradient depends on it"
		ms = append(ms,
			mutant{"Grad", "that of " + p.Name + " has the other sign", why, change(p.Name, func(o *op.Grad, v op.Value) op.Value { return o.Neg(v) })},
			mutant{"Grad", "that of " + p.Name + " is 1.001 times too large", why, change(p.Name, func(o *op.Grad, v op.Value) op.Value { return o.Mul(v, 1.001) })},
			mutant{"Grad", "there is none of " + p.Name, why, change(p.Name, func(*op.Grad, op.Value) op.Value { return nil })},
			mutant{"Grad", "that of " + p.Name + " has no gradient of its own", why, change(p.Name, func(o *op.Grad, v op.Value) op.Value { return o.Detach(v) })})
	}
	return ms
}

// shardings changes the signatures of SBP.
func (g *grader) shardings() []mutant {
	sbp, nd := g.def.SBP, g.def.NdSBP
	if sbp == nil && nd == nil {
		return nil
	}
	changed := func(all []op.Sharding, f func(s *op.Sharding)) []op.Sharding {
		all = slices.Clone(all)
		for i := range all {
			all[i].Results = slices.Clone(all[i].Results)
			f(&all[i])
		}
		return all
	}
	change := func(what string, f func(s *op.Sharding)) mutant {
		if sbp == nil {
			return mutant{"NdSBP", what, "", func(d *op.Def) {
				d.NdSBP = func(a op.Args, hierarchy []int) (out [][]op.Sharding) {
					for _, signature := range nd(a, hierarchy) {
						out = append(out, changed(signature, f))
					}
					return out
				}
			}}
		}
		return mutant{"SBP", what, "", func(d *op.Def) {
			d.SBP = func(a op.Args) []op.Sharding { return changed(sbp(a), f) }
		}}
	}
	return []mutant{
		change("results are said to be whole", func(s *op.Sharding) {
			for i := range s.Results {
				s.Results[i] = op.B
			}
		}),
		change("results are split along the next axis", func(s *op.Sharding) {
			for i, r := range s.Results {
				if axis, split := r.Axis(); split {
					s.Results[i] = op.S(axis + 1)
				}
			}
		}),
		change("results are said to be summands", func(s *op.Sharding) {
			for i := range s.Results {
				s.Results[i] = op.P
			}
		}),
	}
}

// numerics loosens the class, and moves the truth.
func (g *grader) numerics() []mutant {
	var ms []mutant
	if g.def.Tol.Class == op.Pointwise {
		ms = append(ms, mutant{"Tol", "a thousand times as many ULP", "", func(d *op.Def) { d.Tol.ULP *= 1000 }})
	}
	if terms := g.def.Tol.Terms; terms != nil {
		ms = append(ms, mutant{"Tol", "a million terms", "", func(d *op.Def) { d.Tol.Terms = func(op.Args) int { return 1e6 } }})
	}
	if exact := g.def.Exact; exact != nil {
		ms = append(ms, mutant{"Exact", "a truth that is a little too large", "", func(d *op.Def) {
			d.Exact = func(a op.Args) op.Truth {
				t := exact(a)
				if t == nil {
					return nil
				}
				return op.InFloat64(func(x ...float64) float64 { return t.Round(tensor.F64, x...)*1.01 + 0.01 })
			}
		}})
	}
	return ms
}
