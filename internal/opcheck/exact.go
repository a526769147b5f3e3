package opcheck

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/tensor"
)

// exact compares results with the literal's Exact, on sampled elements, on others
// beyond them, and on NaN; and the numerics class with what was seen.
func (c *checker) exact() {
	if c.def.Formula != nil {
		c.formula()
	}
	if c.def.Magnitude != "" && c.table.Def(c.def.Magnitude) != nil {
		c.magnitude()
	}
	if c.def.Tol.Terms != nil {
		c.terms()
	}
	if c.def.Exact == nil {
		if c.def.NoExact == "" {
			c.precision()
		}
		return
	}
	m := &measured{}
	for _, d := range c.calls {
		c.try(d.Call, func() { c.against(d.Call, d.out, false, m) })
	}
	c.beyond()
	c.spread()
	if c.Checked["exact"] == 0 {
		c.find("Exact", nil, "no sampled call has one: it returns nil for all of them")
		return
	}
	c.loose(m)
}

// measured is how far results were from the truth, in ULP, in the dtypes in which
// these are fine.
type measured struct {
	worst    float64
	single   float64 // of float32 alone, where truths in float64 round nothing
	elements int
	rounded  int // elements of float64 that are not what Exact says, to the bit
	wide     int // elements of float64
}

// loose reports a numerics class that allows far more than was seen.
func (c *checker) loose(m *measured) {
	const enough, slack = 64, mostULP
	if m.elements < enough {
		return
	}
	switch t := c.def.Tol; {
	case t.Class == op.Pointwise && t.ULP > slack*max(m.worst, 0.5):
		c.find("Tol", nil, "too loose: ULP %v, and the worst of %d elements is %.2g from the Exact", t.ULP, m.elements, m.worst)
	case t.Class == op.Accumulating && !t.OwnMagnitude && c.def.Magnitude == "" && m.single <= 1 && m.worst <= 4:
		c.find("Tol", nil, "too loose: %s, and the worst of %d elements is %.2g ULP from the Exact, which %s allows with a ULP of its own", t.Class, m.elements, m.worst, op.Pointwise)
	}
	if m.wide >= enough && m.rounded == 0 && c.def.Tol.Class == op.Pointwise && c.def.Tol.ULP > 2 {
		c.gap("Exact", "it equals the kernel's float64 in every bit: whether it shares arithmetic with Kernels cannot be told")
	}
}

// elements compares results with Exact, where there is one; beyond says that the arguments are not
// what Sample draws.
func (c *checker) elements(call *op.Call, out []*tensor.Tensor, beyond bool) {
	if c.def.Exact != nil && len(out) == 1 {
		c.against(call, out, beyond, nil)
	}
}

// against compares one call with its Exact.
func (c *checker) against(call *op.Call, results []*tensor.Tensor, beyond bool, m *measured) {
	if len(results) == 0 {
		return
	}
	out := results[0]
	if out.DType().IsComplex() {
		return
	}
	truth := call.Def.Exact(call.Args)
	if truth == nil {
		return
	}
	var ins []*tensor.Tensor
	for _, x := range tensorsOf(call) {
		if x.DType().IsComplex() {
			return
		}
		in, err := x.Expand(out.Shape()...)
		if err != nil {
			c.find("Exact", call, "is of elements, and %v has no element for each of %v", x.Shape(), out.Shape())
			return
		}
		ins = append(ins, in)
	}
	c.count()
	_, inFloat64 := truth.(op.InFloat64)
	x := make([]float64, len(ins))
	for e := range out.Len() {
		lossy := false
		for k, in := range ins {
			x[k] = in.Float(e)
			lossy = lossy || math.Abs(x[k]) > 100 && !in.DType().IsFloat()
		}
		var want float64
		got := out.Float(e)
		if out.DType().IsFloat() {
			want = c.truth(truth, out.DType(), x)
		} else if want = c.truth(truth, tensor.F64, x); want != math.Trunc(want) || math.Abs(want) > largest(out.DType()) || want < 0 && largest(out.DType()) < math.MaxInt8 {
			continue
		}
		if lossy {
			continue
		}
		off := 0.0
		if out.DType().IsFloat() {
			off = allowed(call.Def.Tol, out.DType(), want)
			if beyond && inFloat64 && out.DType() == tensor.F64 {
				limit := compare.Default(tensor.F64)
				off = max(off, float64(limit.ATol)+float64(limit.RTol)*math.Abs(want))
			}
		}
		if !within(got, want, off) {
			infinite := slices.ContainsFunc(x, func(v float64) bool { return math.IsInf(v, 0) })
			if beyond && infinite && (math.IsNaN(got) || math.IsNaN(want) || len(x) > 1) {
				c.gap("Kernels", fmt.Sprintf("of %v, an infinite argument among them, the result is %v, and by Exact %v", x, got, want))
				continue
			}
			if math.IsInf(want, 0) && !infinite || slices.ContainsFunc(x, func(v float64) bool { return math.Abs(v) > 1e4 && !math.IsInf(v, 0) }) {
				continue // on the way to overflow
			}
			place := ""
			if beyond {
				place = ", where Sample does not draw,"
			}
			c.find("Kernels", call, "of %v%s compute %v in %s; exactly it is %v, and %.3g apart is allowed (Exact, Tol)", x, place, got, out.DType(), want, off)
			return
		}
		m.note(out.DType(), got, want)
	}
}

func (c *checker) truth(t op.Truth, dt tensor.DType, x []float64) (v float64) {
	defer in("Exact")
	return t.Round(dt, x...)
}

// largest is the largest number that a dtype holds, for results that wrap around beyond.
func largest(d tensor.DType) float64 {
	switch d {
	case tensor.Bool:
		return 1
	case tensor.U8:
		return math.MaxInt8 - 1 // told from int8: no sign
	case tensor.I8:
		return math.MaxInt8
	case tensor.I16:
		return math.MaxInt16
	case tensor.I32:
		return math.MaxInt32
	}
	return 1 << 53
}

func (m *measured) note(d tensor.DType, got, want float64) {
	if m == nil || d != tensor.F32 && d != tensor.F64 || math.IsNaN(want) || math.IsInf(want, 0) {
		return
	}
	m.elements++
	off := math.Abs(got-want) / compare.Spacing(math.Abs(want), d)
	m.worst = max(m.worst, off)
	if d == tensor.F32 {
		m.single = max(m.single, off)
	}
	if d == tensor.F64 {
		m.wide++
		if got != want {
			m.rounded++
		}
	}
}

// allowed is how far a result may be from the truth by a numerics class: terms
// that cancel get PyTorch's default tolerance.
func allowed(tol op.Tol, d tensor.DType, want float64) float64 {
	switch tol.Class {
	case op.Accumulating:
		limit := compare.Default(d)
		return float64(limit.ATol) + float64(limit.RTol)*math.Abs(want)
	case op.Exact:
		return 0
	}
	return max(tol.ULP, 1) * compare.Spacing(math.Abs(want), d)
}

func within(got, want, limit float64) bool {
	return got == want || math.IsNaN(got) && math.IsNaN(want) || math.Abs(got-want) <= limit
}

// beyondSample are numbers that an elementwise function is asked for beside those
// that Sample draws.
var beyondSample = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, math.NaN(), math.Inf(1), math.Inf(-1), 0.01, -0.01, 2, -2, 3, -3, 4.5, -4.5, 6, -6, 7, -7, 12, -12, 0.25, -0.25, 1e-40, 65504, 3e38, -3e38,
}

// beyond compares an elementwise operator with its Exact on elements that Sample
// does not draw.
func (c *checker) beyond() {
	if len(c.def.Domains) > 0 {
		c.gap("Kernels", "beyond what Sample draws nothing is compared with Exact: Domains keep it out")
		return
	}
	for _, d := range c.calls {
		if !elementwise(d.Call) || len(d.Args.AllValues()) == 0 {
			continue
		}
		turn := 0
		call := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
			n := len(beyondSample)
			u := tensor.New(x.DType(), n)
			if len(d.Args.AllValues()) > 1 {
				u = tensor.New(x.DType(), n, n)
			}
			turn++
			for i := range u.Len() {
				v := beyondSample[i%n]
				if turn%2 == 0 {
					v = beyondSample[i/n%n]
				}
				if x.DType().IsInt() || x.DType() == tensor.Bool {
					if v = math.Trunc(v); math.IsNaN(v) || math.Abs(v) > 100 {
						v = 5
					}
					if v < 0 && x.DType() == tensor.U8 {
						v = -v
					}
				}
				u.Set(i, complex(v, 0))
			}
			return u
		})
		c.try(call, func() {
			if out, err := c.run(call); err == nil {
				c.elements(call, out, true)
			}
		})
	}
}

// spreads are shapes that broadcast with each other.
var spreads = [][]int{{2, 3, 4}, {3, 1}, {1, 4}, {4}, {2, 1, 1}, {}, {1}}

// spread calls a function of elements of several tensors with shapes that broadcast
// otherwise than those that Sample draws, and with tensors of several dtypes. What the
// operator refuses it need not take.
func (c *checker) spread() {
	calls := slices.Clone(c.calls) // those of many elements first
	slices.SortStableFunc(calls, func(a, b *drawn) int { return elementsOf(b.Call) - elementsOf(a.Call) })
	for _, d := range calls[:min(len(calls), 12)] {
		if !elementwise(d.Call) || len(tensorsOf(d.Call)) < 2 {
			continue
		}
		for turn := range spreads {
			at := turn - 1
			call := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor { at++; return refit(x, spreads[at%len(spreads)]) })
			c.try(call, func() {
				out, err := c.run(call)
				switch {
				case err == nil:
					c.infer(call, out)
					c.elements(call, out, false)
				case !rejection(err):
					c.find("Kernels", call, "fails where the tensors broadcast: %v", err)
				}
			})
		}
		c.try(d.Call, func() { c.mixed(d) })
	}
}

// mixed calls a function of elements with one tensor of another floating dtype.
func (c *checker) mixed(d *drawn) {
	if !d.dtype.IsFloat() || c.def.Sigs()[0].Index(op.AnyArg("dtype")) >= 0 {
		return
	}
	for _, other := range c.DTypes {
		if !other.IsFloat() || other == d.dtype {
			continue
		}
		for k, changed := range tensorsOf(d.Call) {
			at := -1
			call := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
				if at++; at == k && x.DType() == d.dtype {
					return x.Convert(other)
				}
				return sameLayout(x)
			})
			if slices.ContainsFunc(tensorsOf(call), func(x *tensor.Tensor) bool { return x.Dim() == 0 || !x.DType().IsFloat() }) {
				continue // one of no dimension does not widen the others
			}
			out, err := c.run(call)
			if err != nil {
				continue
			}
			c.count()
			if widest := tensor.Promote(d.dtype, other); changed.DType() == d.dtype && out[0].DType().IsFloat() && out[0].DType() != widest && out[0].DType().Size() < widest.Size() {
				c.find("Infer", call, "says %s of a function of elements (Exact) of %s and %s, which promote to %s", out[0].DType(), d.dtype, other, widest)
			}
		}
	}
}

// precision compares the results of float32 with those of the same numbers in
// float64, where nothing tells the truth.
func (c *checker) precision() {
	if c.def.Traits.Has(op.Random) || c.def.Traits.Has(op.View) || !slices.Contains(c.DTypes, tensor.F64) {
		return
	}
	for _, d := range c.calls {
		if d.dtype != tensor.F32 && d.dtype != tensor.BF16 && d.dtype != tensor.F16 {
			continue
		}
		wide := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
			if x.DType().IsFloat() {
				return x.Convert(tensor.F64)
			}
			return sameLayout(x)
		})
		c.try(d.Call, func() {
			want, err := c.run(wide)
			if err != nil || len(want) != len(d.out) {
				return
			}
			c.count()
			for i := range want {
				if !slices.Equal(want[i].Shape(), d.out[i].Shape()) || !d.out[i].DType().IsFloat() {
					continue
				}
				scale := 1.0
				for e := range want[i].Len() {
					if v := math.Abs(want[i].Float(e)); !math.IsInf(v, 0) && !math.IsNaN(v) {
						scale = max(scale, v)
					}
				}
				limit := 64 * roundoff(d.out[i].DType()) * scale
				for e := range want[i].Len() {
					if g, w := d.out[i].Float(e), want[i].Float(e); math.IsInf(g, 0) || within(g, w, limit) {
						continue
					} else if w != math.Trunc(w) || g != math.Trunc(g) || math.Abs(g-w) > 1 {
						c.find("Kernels", d.Call, "compute %v in %s and %v of the same numbers in float64", g, d.out[i].DType(), w)
						return
					}
				}
			}
		})
	}
}

// applied notes whether an operator is applied.
type applied struct {
	op.Applier
	id  string
	own bool
}

// Apply applies an operator.
func (a *applied) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	a.own = a.own || id == a.id
	return a.Applier.Apply(id, args, kwargs)
}

// formula compares Formula with the kernels in the widest dtypes, of what Sample draws
// and of NaN and ties.
func (c *checker) formula() {
	defer c.largeFormula()
	for _, d := range c.calls {
		if d.dtype != tensor.F64 && d.dtype != tensor.C128 && d.dtype != tensor.I64 {
			continue
		}
		c.try(d.Call, func() { c.written(d.Call, d.out, "", nil) })
		if len(c.def.Domains) > 0 || d.dtype != tensor.F64 {
			continue
		}
		turn := 0
		call := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
			u := sameLayout(x)
			turn++
			for i := range u.Len() {
				if u.DType().IsFloat() && (i+turn+d.key)%3 == 0 {
					u.Set(i, complex([]float64{math.NaN(), -0.5, 0.25}[(i+turn+d.key)/3%3], 0))
				}
			}
			return u
		})
		c.try(call, func() {
			if out, err := c.run(call); err == nil {
				c.written(call, out, ", where Sample does not draw,", func(i, e int) bool { return c.depends(call, out, i, e) })
			}
		})
	}
}

// largeFormula compares Formula with the kernels in calls that are larger than Sample
// draws: there kernels work in blocks and in parallel, and indices need more digits.
func (c *checker) largeFormula() {
	calls := slices.DeleteFunc(slices.Clone(c.calls), func(d *drawn) bool { return d.dtype != c.widest() || len(d.Args.AllValues()) == 0 })
	slices.SortStableFunc(calls, func(a, b *drawn) int { return elementsOf(b.Call) - elementsOf(a.Call) })
	tried, why := 0, "no call of many elements could be made of sampled ones"
	for _, d := range calls {
		call := enlarged(d.Call)
		if call == nil || tried == largeFormulas || c.found("Formula") {
			continue
		}
		call.Limit = largeBytes
		c.try(call, func() {
			out, err := c.run(call)
			if err != nil {
				return // not every operator takes another shape
			}
			applied := &applied{Applier: c.table.ExecutorWithin(largeBytes), id: c.def.ID()}
			var got []op.Value
			if err := op.Catch(func() { got = c.def.Formula(op.Builder{Applier: applied}, call.Args) }); err != nil {
				why = err.Error()
				return
			}
			tried++
			c.count()
			c.compared(call, got, out, " of a large call", nil)
		})
	}
	if tried == 0 && len(calls) > 0 {
		c.gap("Formula", "not compared in large calls: "+why)
	}
}

// largeFormulas is how many large calls are compared with a Formula.
const largeFormulas = 2

// depends reports whether a kernel's element is another when numbers stand for the NaN
// of the arguments: a formula may multiply by zero what the element does not depend on.
func (c *checker) depends(call *op.Call, out []*tensor.Tensor, i, e int) bool {
	for _, number := range []float64{1e3, -1e3} {
		other, err := c.run(mapElements(call, func(v float64) float64 {
			if math.IsNaN(v) {
				return number
			}
			return v
		}))
		if err == nil && len(other) == len(out) && e < other[i].Len() && !sameNaN(other[i].At(e), out[i].At(e)) {
			return true
		}
	}
	return false
}

// written compares one call with its Formula; where that gives NaN, what depends on the
// NaN of the arguments.
func (c *checker) written(call *op.Call, out []*tensor.Tensor, place string, depends func(i, e int) bool) {
	var got []op.Value
	applied := &applied{Applier: c.table.Executor(), id: c.def.ID()}
	if err := op.Catch(func() { got = c.def.Formula(op.Builder{Applier: applied}, call.Args) }); err != nil {
		if slices.ContainsFunc(tensorsOf(call), func(x *tensor.Tensor) bool { return x.DType() == tensor.F64 }) {
			c.find("Formula", call, "fails: %v", err)
		} else {
			c.gap("Formula", fmt.Sprintf("there is none of other than real numbers: %v", err))
		}
		return
	}
	c.count()
	if applied.own {
		c.find("Formula", call, "applies the operator itself, by which nothing is judged")
	}
	c.compared(call, got, out, place, depends)
}

// compared compares what Formula gives of a call with what the kernels gave.
func (c *checker) compared(call *op.Call, got []op.Value, out []*tensor.Tensor, place string, depends func(i, e int) bool) {
	if len(got) != len(out) {
		c.find("Formula", call, "has %d results, the operator %d", len(got), len(out))
		return
	}
	for i, w := range out {
		g := got[i].(*tensor.Tensor)
		if !slices.Equal(g.Shape(), w.Shape()) {
			c.find("Formula", call, "gives result %d the shape %v, the operator %v", i, g.Shape(), w.Shape())
			return
		}
		if g.DType() != w.DType() && g.DType().IsFloat() || w.DType() == tensor.F32 {
			continue // of integers, in another precision
		}
		for e := range w.Len() {
			a, b := g.At(e), w.At(e)
			if limit := 1e-9 * (1 + cmplx.Abs(b)); within(real(a), real(b), limit) && within(imag(a), imag(b), limit) {
				continue
			}
			if depends != nil && cmplx.IsNaN(a) && !depends(i, e) {
				continue
			}
			c.find("Formula", call, "gives%s element %d of result %d as %v, and Kernels %v: one of them is wrong", place, e, i, g.Number(e), w.Number(e))
			return
		}
	}
}

// magnitude checks that the operator that Magnitude names bounds the results.
func (c *checker) magnitude() {
	before := c.Checked[c.aspect]
	defer func() {
		if c.Checked[c.aspect] == before && !c.found("Magnitude") {
			c.gap("Magnitude", "of no sampled call in float64 HasMagnitude says that it holds: it is not compared")
		}
	}()
	for _, d := range c.calls {
		if d.dtype != tensor.F64 || c.def.HasMagnitude != nil && !c.def.HasMagnitude(d.Args) {
			continue
		}
		abs := with(d.Call, func(x *tensor.Tensor) *tensor.Tensor {
			u := sameLayout(x)
			for i := range u.Len() {
				if u.DType().IsFloat() {
					u.Set(i, complex(math.Abs(u.Float(i)), 0))
				}
			}
			return u
		})
		c.try(d.Call, func() {
			bound, err := c.bound(abs)
			if err != nil || len(bound) == 0 || !slices.Equal(bound[0].Shape(), d.out[0].Shape()) {
				c.find("Magnitude", d.Call, "%s does not take the operator's arguments, or has other results (%v)", c.def.Magnitude, err)
				return
			}
			c.count()
			for i := range d.out[0].Len() {
				if v, most := math.Abs(d.out[0].Float(i)), bound[0].Float(i); v > most*(1+1e-9)+1e-300 {
					c.find(map[bool]string{true: "Tol", false: "Magnitude"}[c.def.Tol.OwnMagnitude], d.Call, "of absolute values %s is %v, less than the result %v that it has to bound", c.def.Magnitude, most, v)
					return
				}
			}
		})
	}
}

// bound calls the operator of Magnitude with the arguments of a call, numbers
// among them without their signs.
func (c *checker) bound(call *op.Call) ([]*tensor.Tensor, error) {
	d := c.table.Def(c.def.Magnitude)
	var kws []op.Kwarg
	own := op.Args{Sig: call.Args.Sig, Vals: slices.Clone(call.Args.Vals)}
	for i, p := range call.Args.Sig.Params {
		v := call.Args.Vals[i]
		switch n := v.(type) {
		case op.Scalar:
			v = math.Abs(n.Float())
		case float64:
			v = math.Abs(n)
		}
		if own.Vals[i] = v; d.Sigs()[0].Index(op.AnyArg(p.Name)) >= 0 {
			kws = append(kws, op.Kw(p.Name, v))
		}
	}
	if d == c.def {
		for i, v := range own.Vals {
			if n, ok := v.(float64); ok && call.Args.Sig.Params[i].Type.Kind == op.KScalar {
				own.Vals[i] = op.ScalarOf(n)
			}
		}
		return (&op.Call{Def: d, Args: own}).Execute()
	}
	bound, err := c.table.ResolveID(d.ID(), nil, kws)
	if err != nil {
		return nil, err
	}
	return bound.Execute()
}

// terms checks that no result sums more terms than there are elements.
func (c *checker) terms() {
	for _, d := range c.calls {
		c.try(d.Call, func() {
			n, most := c.def.Tol.Terms(d.Args), 1
			for _, x := range tensorsOf(d.Call) {
				most *= max(x.Len(), 1)
			}
			c.count()
			if n < 0 || n > 16*most+64 {
				c.find("Tol", d.Call, "Terms says %d terms of one result, where the arguments have %d elements in all combinations", n, most)
			}
		})
	}
}
