package opcheck

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/global"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/eager"
	"plumb/internal/gradcheck"
	"plumb/internal/judge/compare"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// exception is what Python's exceptions are called.
var exception = regexp.MustCompile(`^[A-Za-z_.]*(Error|Exception)$`)

// rejects makes illegal calls: they give values or an error of a Python class.
func (c *checker) rejects() {
	run := native.New(c.table, nn.Modules())
	one := func(p *program.Program, err error) {
		if err != nil || p == nil {
			return
		}
		out, err := run.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			c.find("Kernels", nil, "an illegal call ends the backend: %v", err)
			return
		}
		c.count()
		if out.Status != backend.OK && (out.Status != backend.Raised || !exception.MatchString(out.Class)) {
			c.findProgram(fieldIn(out.Message, "Reject"), p, "an illegal call is neither computed nor refused with an error of a Python exception's class (op.RuntimeError and its like), but %s: %s %s", out.Status, out.Class, out.Message)
		}
	}
	for i := range 5 * opcase.Rules() {
		c.try(nil, func() {
			one(c.drawer.Illegal(choice.New(choice.Derive(c.seed+1, uint64(i))), c.DTypes[i%len(c.DTypes)], i))
		})
	}
	for i := range 4 {
		c.try(nil, func() {
			for _, p := range c.drawer.Edges(choice.New(choice.Derive(c.seed+2, uint64(i))), c.DTypes[0], true) {
				one(p, nil)
			}
		})
	}
}

// fieldIn returns the field of which a message says that it panics.
func fieldIn(message, otherwise string) string {
	before, _, found := strings.Cut(message, " panics: ")
	if !found {
		return otherwise
	}
	return before[strings.LastIndexAny(before, " \n:")+1:]
}

func (c *checker) findProgram(field string, p *program.Program, format string, args ...any) {
	if c.found(field) {
		return
	}
	c.Findings = append(c.Findings, Finding{Aspect: c.aspect, Field: field, Text: fmt.Sprintf(format, args...), Input: "\n" + indent(p.String())})
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// inPlace compares what the in-place forms store with what the function returns.
func (c *checker) inPlace() {
	if !slices.ContainsFunc(c.def.Names, op.InPlace) && c.def.Sigs()[0].Index(op.BoolArg("inplace")) < 0 {
		return
	}
	drawer := c.drawer
	drawer.InPlace = true
	run := native.New(c.table, nn.Modules())
	for i := range 12 {
		c.try(nil, func() {
			p, err := drawer.Legal(choice.New(choice.Derive(c.seed+3, uint64(i))), c.DTypes[len(c.DTypes)-1])
			if err != nil {
				return
			}
			at := slices.IndexFunc(p.Calls, func(call program.Call) bool { return op.InPlace(call.Target) })
			if at < 0 {
				return
			}
			out, err := run.Run(context.Background(), backend.NewJob(p))
			if err != nil || out.Status != backend.OK {
				return
			}
			job := backend.NewJob(p)
			x := job.Inputs[0]
			args, kwargs, err := p.Calls[at].OpArgs(func(r program.Ref) (any, error) {
				for j := range p.Inputs {
					if program.Ref(p.Inputs[j].Name) == r {
						return job.Inputs[j], nil
					}
				}
				return x, nil
			})
			if err != nil {
				return
			}
			bound, err := program.Resolve(c.table, p.Calls[at].Target, args, kwargs)
			if err != nil {
				return
			}
			want, err := c.run(bound.Pure())
			if err != nil || out.Values[at].Tensor == nil || c.def.Traits.Has(op.Random) {
				return
			}
			c.count()
			if got := out.Values[at].Tensor; !alike(c.def, got, want[0].Convert(got.DType())) {
				c.findProgram("InPlace", p, "stores %s in place, and the function returns %s", text(got), text(want[0]))
			}
		})
	}
}

// gradient compares the gradients of sampled calls with difference quotients, to
// second order, as they are drawn and further from zero; with some of the
// gradients wanted, and in every dtype.
func (c *checker) gradient() {
	if c.def.Traits.Has(op.NoGrad) {
		c.constantResults()
		return
	}
	if gradcheck.None(c.def) != "" {
		return
	}
	field := "Grad"
	if c.def.Grad == nil {
		field = "Compose"
	}
	full := slices.DeleteFunc([]tensor.DType{tensor.F64, tensor.C128}, func(d tensor.DType) bool { return !slices.Contains(c.DTypes, d) })
	if len(full) == 0 {
		c.gap(field, "the operator takes neither float64 nor complex128, in which difference quotients are taken")
		return
	}
	r := gradcheck.Check(c.table, c.def, gradcheck.Options{Seed: c.seed + 1, DTypes: full})
	c.Checked["gradient"] += r.Orders[0].Checked + r.Orders[1].Checked
	if r.None != "" {
		c.find(field, nil, "cannot be checked: %s", r.None)
	}
	c.gradients(field, r, "")
	if len(c.def.Domains) == 0 && (c.def.Exact != nil || len(c.def.Names) > 0) {
		for _, times := range []float64{-1, 5} {
			d := *c.def
			d.Sample = func(s *op.Sampler) []any { return scaled(c.def.Sample(s), times) }
			c.gradients(field, gradcheck.Check(c.table, &d, gradcheck.Options{Seed: c.seed + 2, Calls: 6, DTypes: full[:1], Refusable: true}),
				fmt.Sprintf(", where Sample's tensors are multiplied by %v", times))
		}
	}
	for _, d := range c.calls {
		c.try(d.Call, func() { c.partial(d, field) })
		if d.key > 1 || !slices.Contains(full, d.dtype) || len(d.Args.AllValues()) == 0 {
			continue
		}
		for _, shape := range []func(*tensor.Tensor) *tensor.Tensor{
			func(x *tensor.Tensor) *tensor.Tensor { return refit(x, nil) },
			func(x *tensor.Tensor) *tensor.Tensor { return emptied(x, 0) },
		} {
			edge := with(d.Call, shape)
			c.try(edge, func() {
				if out, err := c.run(edge); err == nil && len(out) > 0 { // what is refused has no gradient
					c.partial(&drawn{edge, d.dtype, 1, out}, field)
				}
			})
		}
	}
}

func (c *checker) gradients(field string, r *gradcheck.Report, where string) {
	for i := range r.Findings {
		f := &r.Findings[i]
		at := field
		if f.Err != nil {
			at = fieldIn(f.Err.Error(), field)
		}
		if c.found(at) {
			continue
		}
		finding := Finding{Aspect: c.aspect, Field: at, Text: f.String() + where}
		if f.Program != nil {
			finding.Input = "\n" + indent(f.Program.String())
		}
		c.Findings = append(c.Findings, finding)
	}
}

// scaled multiplies the real floating-point tensors of arguments.
func scaled(args []any, times float64) []any {
	out := slices.Clone(args)
	for i, a := range out {
		switch a := a.(type) {
		case *tensor.Tensor:
			if a.DType().IsFloat() {
				u := a.Clone()
				for e := range u.Len() {
					u.Set(e, u.At(e)*complex(times, 0))
				}
				out[i] = u
			}
		case []any:
			out[i] = scaled(a, times)
		case op.Kwarg:
			out[i] = op.Kw(a.Name, scaled([]any{a.Value}, times)[0])
		}
	}
	return out
}

// partial differentiates a call by all tensors together and by each alone, and
// with a gradient of each result alone: what a tensor gets is the same.
func (c *checker) partial(d *drawn, field string) {
	names := d.Args.ArgNames()
	var wanted []int
	for i, x := range tensorsOf(d.Call) {
		base, _, _ := strings.Cut(names[i], "[")
		if x.DType().IsDifferentiable() && !c.def.IsFixed(base) && !slices.Contains(c.def.Mutates, op.TensorArg(base)) {
			wanted = append(wanted, i)
		}
	}
	if len(wanted) == 0 || !d.out[0].DType().IsDifferentiable() {
		return
	}
	all, err := c.differentiate(d, wanted, -1)
	if err != nil {
		if !rejection(err) || d.dtype.IsFloat() {
			c.find(fieldIn(err.Error(), field), d.Call, "a gradient in %s fails: %v", d.dtype, err)
		}
		return
	}
	c.count()
	if d.dtype == tensor.F64 && d.key%4 == 0 {
		c.twice(d, wanted, field)
	}
	for k, i := range wanted {
		g := all[k]
		if g != nil && (g.DType() != tensorsOf(d.Call)[i].DType() || !slices.Equal(g.Shape(), tensorsOf(d.Call)[i].Shape())) {
			c.find(field, d.Call, "the gradient of %s is %s, and it %s", names[i], g, tensorsOf(d.Call)[i])
		}
		if len(wanted) > 1 {
			one, err := c.differentiate(d, []int{i}, -1)
			if err != nil || !sameGradient(one[0], g) {
				c.find(field, d.Call, "where %s alone wants a gradient it is %v (%v), and %v where all do", names[i], textOf(one), err, text(orNone(g)))
			}
		}
	}
	if len(d.out) > 1 {
		for r, t := range d.out {
			if t.DType().IsDifferentiable() {
				if _, err := c.differentiate(d, wanted, r); err != nil {
					c.find(fieldIn(err.Error(), field), d.Call, "where result %d alone has a gradient it fails: %v", r, err)
				}
			}
		}
	}
}

// twice looks whether gradients that are not 0 can be differentiated again: they are
// linear in what arrives.
func (c *checker) twice(d *drawn, wanted []int, field string) {
	r, err := c.backward(d, wanted, -1, true)
	if err != nil {
		return // which is told of the first order
	}
	for k, g := range r {
		if g == nil || g.RequiresGrad() {
			continue
		}
		for e := range g.Len() {
			if g.At(e) != 0 {
				c.find(field, d.Call, "the gradient of %s has no gradient itself, though it depends on the one that arrives", d.Args.ArgNames()[wanted[k]])
				return
			}
		}
	}
}

func orNone(t *tensor.Tensor) any {
	if t == nil {
		return nil
	}
	return t
}

func textOf(ts []*tensor.Tensor) string {
	if len(ts) == 0 {
		return "none"
	}
	return text(orNone(ts[0]))
}

func sameGradient(a, b *tensor.Tensor) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.DType() != b.DType() || !slices.Equal(a.Shape(), b.Shape()) {
		return false
	}
	limit := compare.Default(a.DType())
	for i := range a.Len() {
		x, y := a.At(i), b.At(i)
		if !within(real(x), real(y), float64(limit.ATol)+float64(limit.RTol)*math.Abs(real(y))) || !within(imag(x), imag(y), float64(limit.ATol)+float64(limit.RTol)*math.Abs(imag(y))) {
			return false
		}
	}
	return true
}

// differentiate returns the gradients of some tensors of a call, of all results
// or of one.
func (c *checker) differentiate(d *drawn, wanted []int, result int) ([]*tensor.Tensor, error) {
	vars, err := c.backward(d, wanted, result, false)
	grads := make([]*tensor.Tensor, len(vars))
	for i, v := range vars {
		if v != nil {
			grads[i] = v.Tensor
		}
	}
	return grads, err
}

// backward is differentiate with gradients that are variables, and with create can
// be differentiated again.
func (c *checker) backward(d *drawn, wanted []int, result int, create bool) ([]*eager.Var, error) {
	s := eager.New(c.table)
	s.Seed(d.Key)
	var vars []*eager.Var
	args := d.Args.MapValues(func(v op.Value) op.Value {
		leaf := s.Leaf(sameLayout(v.(*tensor.Tensor)), slices.Contains(wanted, len(vars)))
		vars = append(vars, leaf)
		return leaf
	})
	out, err := s.Execute(&op.Call{Def: c.def, Args: args})
	if err != nil {
		return nil, err
	}
	var values, cotangents []op.Value
	for i, v := range out {
		if eager.RequiresGrad(v) && v.DType().IsDifferentiable() && (result < 0 || i == result) {
			ones := tensor.New(v.DType(), v.Shape()...)
			for e := range ones.Len() {
				ones.Set(e, complex(0.5+float64(e%3)/4, 0))
			}
			values, cotangents = append(values, v), append(cotangents, eager.Leaf(ones, create))
		}
	}
	grads := make([]*eager.Var, len(wanted))
	if len(values) == 0 {
		return grads, nil
	}
	cot, err := s.Backward(values, cotangents, create)
	if err != nil {
		return nil, err
	}
	for k, i := range wanted {
		if g, ok := cot[vars[i]].(*eager.Var); ok {
			grads[k] = g
		}
	}
	return grads, nil
}

// constantResults looks whether results that are said to be never differentiable
// depend smoothly on the arguments.
func (c *checker) constantResults() {
	if c.def.Traits.Has(op.Random) {
		return
	}
	smooth, steps := 0, 0
	var at *op.Call
	for _, d := range c.calls {
		if d.dtype != tensor.F64 || !d.out[0].DType().IsFloat() {
			continue
		}
		step := func(h float64) []*tensor.Tensor {
			out, err := c.run(mapElements(d.Call, func(v float64) float64 { return v + h }))
			if err != nil || len(out) == 0 || !slices.Equal(out[0].Shape(), d.out[0].Shape()) {
				return nil
			}
			return out
		}
		c.try(d.Call, func() {
			one, two := step(1e-4), step(2e-4)
			if one == nil || two == nil {
				return
			}
			for e := range d.out[0].Len() {
				a, b := one[0].Float(e)-d.out[0].Float(e), two[0].Float(e)-d.out[0].Float(e)
				if steps++; a != 0 && math.Abs(b-2*a) < 0.01*math.Abs(a) {
					smooth, at = smooth+1, d.Call
				}
			}
		})
	}
	if c.Checked["gradient"] += steps; smooth > 0 {
		c.gap("Traits", "NoGrad, though the results depend smoothly on the arguments, as with "+Describe(at)+": write a Grad if it has one")
	}
}

// sharding runs sampled calls by every signature of the literal's SBP, or of
// those that follow from its formula, on 2 and 3 ranks.
func (c *checker) sharding() {
	if c.def.NotSplittable != "" || c.def.Traits.Has(op.Random) || c.def.Traits.Has(op.Dynamic) {
		return
	}
	ran, over := 0, 0
	for _, d := range c.calls {
		if d.dtype != c.widest() {
			continue
		}
		if !c.found("SBP") {
			c.try(d.Call, func() { ran += c.shard(d) })
		}
		if c.def.NdSBP != nil && !c.found("NdSBP") {
			c.try(d.Call, func() { over += c.shardOver(d) })
		}
	}
	if c.def.NdSBP != nil && over == 0 && !c.found("NdSBP") {
		c.find("NdSBP", nil, "no signature fits hierarchies of %v ranks in %d samples: draw larger sizes in Sample", hierarchies, len(c.calls))
	}
	switch {
	case ran > 0 || over > 0 || c.found("SBP"):
	case c.def.SBP == nil:
		c.gap("SBP", "none is stated, and none follows from a formula: each rank computes the whole")
	default:
		c.find("SBP", nil, "no signature fits 2 or 3 ranks in %d samples: state one, draw larger sizes in Sample, or say in NotSplittable why there is none", len(c.calls))
	}
}

func (c *checker) widest() tensor.DType {
	if slices.Contains(c.DTypes, tensor.F64) {
		return tensor.F64
	}
	return c.DTypes[0]
}

func (c *checker) shard(d *drawn) (ran int) {
	if c.def.SBP != nil {
		for _, s := range c.def.SBP(d.Args) {
			if !c.axes("SBP", d.Call, s) {
				return 0
			}
		}
	}
	shardings, err := d.Shardings()
	if err != nil {
		c.find("SBP", d.Call, "fails: %v", err)
		return 0
	}
	for _, s := range shardings {
		for _, ranks := range []int{2, 3} {
			tried, err := global.Holds(context.Background(), d.Call, s, ranks)
			if err == nil && s.Own != nil && tried && global.Repeats(d.Call, s, ranks) {
				_, err = global.HoldsOver(context.Background(), d.Call, []op.Sharding{s, s}, []int{ranks, ranks})
			}
			if err != nil {
				c.find("SBP", d.Call, "by %s, %d ranks do not have the whole: %v", s, ranks, err)
				return ran
			}
			if tried {
				ran++
				c.count()
			}
		}
	}
	return ran
}

// hierarchies are those for which an operator is asked for signatures of its own.
var hierarchies = [][]int{{2}, {3}, {4}, {2, 2}, {2, 3}, {3, 2}}

// shardOver runs a call by each signature that NdSBP states.
func (c *checker) shardOver(d *drawn) (ran int) {
	for _, hierarchy := range hierarchies {
		for _, signature := range c.def.NdSBP(d.Args, hierarchy) {
			for _, s := range signature {
				if !c.axes("NdSBP", d.Call, s) {
					return ran
				}
			}
		}
		all, err := d.ShardingsOver(hierarchy)
		if err != nil {
			c.find("NdSBP", d.Call, "fails: %v", err)
			return ran
		}
		for _, signature := range all {
			tried, err := global.HoldsOver(context.Background(), d.Call, signature, hierarchy)
			if err != nil {
				c.find("NdSBP", d.Call, "by %v, a hierarchy of %v ranks does not have the whole: %v", signature, hierarchy, err)
				return ran
			}
			if tried {
				ran++
				c.count()
			}
		}
	}
	return ran
}

// axes reports a signature of the literal that splits an axis that is not there.
func (c *checker) axes(field string, call *op.Call, s op.Sharding) bool {
	names, values := call.Args.ArgNames(), call.Args.AllValues()
	if len(s.Results) == 0 {
		c.find(field, call, "the signature %s says of no result what the ranks have", s)
		return false
	}
	for name, sbp := range s.Args {
		i := slices.Index(names, name)
		axis, split := sbp.Axis()
		switch {
		case i < 0:
			c.find(field, call, "the signature %s names %s, which is no tensor argument of the call", s, name)
			return false
		case split && (axis < 0 || axis >= len(values[i].Shape())):
			c.find(field, call, "the signature %s splits axis %d of %s, which has %d dimensions", s, axis, name, len(values[i].Shape()))
			return false
		}
	}
	return true
}

// graphs runs programs of sampled calls as static graphs, with passes and
// without, and call by call.
func (c *checker) graphs() {
	if c.def.Traits.Has(op.Dynamic) {
		return
	}
	run := native.New(c.table, nn.Modules())
	for _, dt := range c.DTypes {
		if dt != tensor.F32 && dt != c.widest() {
			continue
		}
		for i := range 4 {
			c.try(nil, func() { c.graph(run, dt, i) })
		}
	}
}

func (c *checker) graph(run *native.Backend, dt tensor.DType, i int) {
	p, err := c.drawer.Legal(choice.New(choice.Derive(c.seed+4, uint64(i))), dt)
	if err != nil {
		return
	}
	want, err := run.Run(context.Background(), backend.NewJob(p))
	if err != nil || want.Status != backend.OK {
		if err == nil && want.Status == backend.Crashed {
			c.findProgram(fieldIn(want.Message, "Kernels"), p, "a program of one call crashes: %s", want.Message)
		}
		return
	}
	for _, mode := range []string{"graph", "graph-plain"} {
		b, err := run.In(mode)
		if err != nil {
			return
		}
		got, err := b.Run(context.Background(), backend.NewJob(p))
		switch {
		case err != nil:
			c.findProgram("Infer", p, "as a %s: %v", mode, err)
		case got.Status == backend.Unsupported:
		case got.Status != backend.OK:
			c.findProgram(fieldIn(got.Message, "Infer"), p, "call by call it is computed, as a %s it is %s: %s", mode, got.Status, got.Message)
		default:
			c.count()
			if how := c.differs(want, got); how != "" {
				c.findProgram("Traits", p, "as a %s %s: a pass believes a trait, or a function of the literal depends on more than its arguments", mode, how)
			}
		}
	}
}

// differs tells the first tensor of two outcomes that is not alike.
func (c *checker) differs(want, got *backend.Outcome) string {
	for i := range want.Values {
		w, g := want.Values[i].Tensor, got.Values[i].Tensor
		if w != nil && g != nil && !alike(c.def, g, w) && !c.near(&op.Call{Def: c.def}, []*tensor.Tensor{g}, []*tensor.Tensor{w}) {
			return fmt.Sprintf("call %d gives %s, not %s", i, text(g), text(w))
		}
	}
	return ""
}

// follows tests the draws of a Random operator against its Law.
func (c *checker) follows() {
	if c.def.Law == nil {
		return
	}
	lawful := 0
	for _, d := range c.calls {
		if !d.dtype.IsFloat() && d.dtype != c.DTypes[0] || d.key > 3 {
			continue
		}
		call := enlarged(d.Call)
		if call == nil {
			call = d.Call
		}
		c.try(call, func() {
			law := c.def.Law(call.Args)
			if law == nil {
				return
			}
			lawful++
			for key := range uint64(3) {
				call.Key = choice.Derive(c.seed, key)
				out, err := c.run(call)
				if err != nil {
					return
				}
				draws, err := law.Draws(out[0])
				if err != nil {
					c.find("Law", call, "a result is outside of the support %q: %v", law.Support, err)
					return
				}
				c.count()
				fit := (&compare.Drawn{Draws: draws, Law: law}).Follows(out[0].Shape(), out[0].DType())
				if fit.Ratio > 1 {
					c.find("Law", call, "the draws do not follow it (%s): %s", fit.Test, fit.Message)
				}
			}
		})
	}
	if lawful == 0 {
		c.gap("Law", "of no sampled call there is one")
	}
}
