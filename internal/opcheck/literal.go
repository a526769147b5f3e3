package opcheck

import (
	"fmt"
	"math"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// mostULP is the most units in the last place that a pointwise operator may err
// by, as the numerics of Plumb have it: see package gradcheck.
const mostULP = 16

// literal checks what is seen without a call.
func (c *checker) literal() {
	d := c.def
	if d.Doc == "" {
		c.find("Doc", nil, "there is none: one sentence and the formula")
	}
	random := d.Traits.Has(op.Random)
	switch t := d.Tol; {
	case t.Class == op.Statistical && !random:
		c.find("Tol", nil, "the class is %s, though the results are not Random", t.Class)
	case random && t.Class != op.Statistical:
		c.find("Tol", nil, "the class of a Random operator is %s, not %s", op.Statistical, t.Class)
	case t.Class == op.Pointwise && !(t.ULP > 0):
		c.find("Tol", nil, "a pointwise operator has a limit in ULP; this has %v", t.ULP)
	case t.Class == op.Pointwise && t.ULP > mostULP:
		c.find("Tol", nil, "too loose: ULP %v is more than the %d that a pointwise operator may err by; one that sums terms that cancel is %s", t.ULP, mostULP, op.Accumulating)
	case t.Class == op.Exact && t.ULP > 0:
		c.find("Tol", nil, "an exact operator has no ULP; this has %v", t.ULP)
	case !slices.Contains([]op.Class{op.Exact, op.Pointwise, op.Accumulating, op.Statistical}, t.Class):
		c.find("Tol", nil, "there is no class %q", t.Class)
	}
	if d.Traits.Has(op.Contraction) && d.Tol.Class != op.Accumulating {
		c.find("Traits", nil, "Contraction is of sums of many terms, which are %s; the class is %s", op.Accumulating, d.Tol.Class)
	}
	if d.Traits.Has(op.Random) && d.Exact != nil {
		c.find("Exact", nil, "the results of a Random operator are no function of its arguments")
	}
	if d.Magnitude != "" && c.table.Def(d.Magnitude) == nil {
		c.find("Magnitude", nil, "names %s, which the table lacks", d.Magnitude)
	}
	if d.Traits.Has(op.NoGrad) && d.Grad != nil {
		c.find("Traits", nil, "NoGrad, though there is a Grad")
	}
	if len(d.Mutates) > 0 && len(d.Names) == 0 {
		c.gap("Mutates", fmt.Sprintf("what kernels leave in %v is compared with nothing but what they leave there in other layouts: a test of your own tells", d.Mutates))
	}
	if (d.SBP != nil || d.NdSBP != nil) && d.NotSplittable != "" {
		c.find("NotSplittable", nil, "says %q, though SBP has signatures", d.NotSplittable)
	}
	if len(d.Names) == 0 && d.Exact == nil && d.Formula == nil && d.Compose == nil && !random && !d.Traits.Has(op.View) {
		c.gap("Kernels", "the results are compared with nothing: state a public name, an Exact or a Formula")
	}
	for _, name := range d.Names {
		if params := d.Called(name).Params; len(params) > 0 && d.Called(name).Name == "" {
			c.find("Names", nil, "%s has no parameters", name)
		}
	}
	if d.Reject == nil && len(d.Names) > 0 && slices.ContainsFunc(d.Sigs()[0].Params, func(p op.Param) bool { return p.Type.Kind == op.KFloat || p.Type.Kind == op.KScalar }) {
		c.gap("Reject", "there is none: which numbers PyTorch refuses is not compared")
	}
	if d.Saves != nil {
		c.gap("Saves", "what PyTorch keeps for a gradient is compared with PyTorch alone")
	}
	if len(d.Fixed) > 0 {
		c.gap("Fixed", "that an argument has no gradient by definition is compared with PyTorch alone")
	}
	if d.Errors != nil {
		c.gap("Errors", "the bounds are used, not proved")
	}
}

// sample checks that what Sample draws reaches what the signature offers.
func (c *checker) sample() {
	for i, p := range c.def.Sigs()[0].Params {
		if !covered(p) || p.OnlyInOverloads {
			continue
		}
		seen := map[string]int{}
		for _, d := range c.calls {
			seen[fmt.Sprint(d.Args.Vals[i])]++
		}
		c.count()
		if len(seen) == 1 {
			c.find("Sample", nil, "never draws %s other than %v: what depends on it is reached by no check", p.Name, c.calls[0].Args.Vals[i])
		}
	}
	c.effects()
	for i, p := range c.def.Sigs()[0].Params {
		if p.Type.Kind == op.KTensor && !p.Type.List && p.Type.Optional {
			given, left := 0, 0
			for _, d := range c.calls {
				if d.Args.Vals[i] == nil {
					left++
				} else {
					given++
				}
			}
			if given == 0 || left == 0 {
				c.find("Sample", nil, "of %s, which is optional, draws %s", p.Name, map[bool]string{true: "none ever", false: "one always"}[given == 0])
			}
		}
	}
	c.overloads()
	c.choices()
	c.domains()
	c.signs()
}

// enough is in how many further draws what Sample draws at times is seen.
const enough = 256

// draws reports whether Sample draws arguments of which a property holds.
func (c *checker) draws(holds func(a op.Args) bool) bool {
	c.count()
	if slices.ContainsFunc(c.calls, func(d *drawn) bool { return holds(d.Args) }) {
		return true
	}
	for key := range enough {
		if call, err := c.bind(c.widest(), 1000+key); err == nil && holds(call.Args) {
			return true
		}
	}
	return false
}

// choices checks that Sample draws each text that an enumeration has.
func (c *checker) choices() {
	for i, p := range c.def.Sigs()[0].Params {
		for _, text := range p.OneOf {
			if !c.draws(func(a op.Args) bool {
				list, _ := a.Vals[i].([]string)
				return a.Vals[i] == any(text) || slices.Contains(list, text)
			}) {
				c.find("Sample", nil, "never draws %s='%s', which OneOf has: what depends on it is reached by no check", p.Name, text)
			}
		}
	}
}

// overloads checks that Sample draws calls of every signature that takes another type
// than the first.
func (c *checker) overloads() {
	main := c.def.Sigs()[0]
	for _, s := range c.def.Sigs()[1:] {
		var own []op.Param
		for _, p := range s.Params {
			first := main.Params[main.Index(op.AnyArg(p.Name))]
			number := p.Type.Kind == op.KScalar && (first.Type.Kind == op.KFloat || first.Type.Kind == op.KInt) // which is a Scalar too
			if first.OnlyInOverloads || first.Type.List != p.Type.List || first.Type.Kind != p.Type.Kind && !number {
				own = append(own, p)
			}
		}
		if len(own) == 0 {
			continue
		}
		if !c.draws(func(a op.Args) bool {
			return !slices.ContainsFunc(own, func(p op.Param) bool { return !isOf(a.Any(op.AnyArg(p.Name)), p.Type) })
		}) {
			c.find("Sample", nil, "never draws a call of the signature %q: %s is always of the first one's type", s, own[0].Name)
		}
	}
}

// isOf reports whether an argument in its normal form is of a type.
func isOf(v any, t op.Type) bool {
	switch v.(type) {
	case op.Value:
		return t.Kind == op.KTensor && !t.List
	case []op.Value:
		return t.Kind == op.KTensor && t.List
	case op.Scalar:
		return t.Kind == op.KScalar && !t.List
	case int:
		return t.Kind == op.KInt && !t.List
	case []int:
		return t.Kind == op.KInt && t.List
	case float64:
		return t.Kind == op.KFloat && !t.List
	case bool:
		return t.Kind == op.KBool && !t.List
	case string:
		return t.Kind == op.KStr && !t.List
	case nil:
		return t.Optional
	}
	return true
}

// effects tells of attributes on which no result depends. It is no finding: a gradient
// may depend on one, and some are hints.
func (c *checker) effects() {
	if c.def.Traits.Has(op.Random) {
		return
	}
	for i, p := range c.def.Sigs()[0].Params {
		if !covered(p) {
			continue
		}
		tried, moved := 0, false
		for k, d := range c.calls {
			for _, other := range slices.Concat(c.calls[k+1:], c.calls[:k]) { // the next of another value
				v := other.Args.Vals[i]
				if moved || fmt.Sprint(v) == fmt.Sprint(d.Args.Vals[i]) {
					continue
				}
				call := replaced(d.Call, i, v)
				c.try(call, func() {
					out, err := c.run(call)
					moved = err != nil || len(out) != len(d.out) || !slices.EqualFunc(out, d.out, (*tensor.Tensor).SameBits)
				})
				tried++
				break
			}
		}
		if tried > 4 && !moved && len(c.def.Mutates) == 0 {
			c.gap("Sig", fmt.Sprintf("%s: no result of %d calls depends on it", p.Name, tried))
		}
	}
}

// covered reports whether a sample has to draw more than one value of a parameter.
func covered(p op.Param) bool {
	if p.Name == "inplace" {
		return false
	}
	switch p.Type.Kind {
	case op.KScalar, op.KInt, op.KFloat, op.KBool, op.KStr, op.KShape:
		return true
	}
	return false
}

// domains checks that Sample draws within the Domains that the literal states.
func (c *checker) domains() {
	for p, domain := range c.def.Domains {
		for _, d := range c.calls {
			x := d.Args.Tensor(p)
			if x == nil {
				continue
			}
			for i := range x.Len() {
				v := x.Float(i)
				if domain == op.UnitRange && !(v >= 0 && v <= 1) || domain == op.NoNaN && math.IsNaN(v) {
					c.find("Sample", d.Call, "draws %v of %s, which the Domains keep out", v, p)
				}
			}
		}
	}
}

// signs checks that Sample draws elements of either sign where the kernel has
// finite results for them.
func (c *checker) signs() {
	if len(c.def.Domains) > 0 || c.def.Traits.Has(op.ShapeOnly) || c.def.Exact != nil {
		return // Exact is asked beyond what Sample draws
	}
	for i, name := range c.def.Sigs()[0].Params {
		var signs [2]bool
		var one *drawn
		for _, d := range c.calls {
			x, ok := d.Args.Vals[i].(*tensor.Tensor)
			if !ok || !x.DType().IsFloat() || x.Len() == 0 {
				continue
			}
			one = d
			for e := range x.Len() {
				signs[0] = signs[0] || x.Float(e) < 0
				signs[1] = signs[1] || x.Float(e) > 0
			}
		}
		if one == nil || signs[0] && signs[1] || c.def.IsFixed(name.Name) {
			continue
		}
		sign := map[bool]string{true: "> 0", false: "< 0"}[signs[0]]
		other := replaced(one.Call, i, negated(one.Args.Vals[i].(*tensor.Tensor)))
		c.try(other, func() {
			c.count()
			if out, err := c.run(other); err == nil && finite(out) && !allAlike(c.def, out, one.out) {
				c.find("Sample", other, "never draws elements %s of %s, for which the results are finite: what depends on them is reached by no check, unless Domains keep them out", sign, name.Name)
			}
		})
	}
}

func negated(x *tensor.Tensor) *tensor.Tensor {
	u := x.Clone()
	for i := range u.Len() {
		u.Set(i, -u.At(i))
	}
	return u
}

func finite(out []*tensor.Tensor) bool {
	for _, t := range out {
		if t.HasNonFinite() {
			return false
		}
	}
	return true
}
