package rounding

import (
	"math"
	"slices"

	"plumb/op"
)

// rule bounds the errors of one kind of calls.
type rule struct {
	name string
	fits func(c *applied) bool
	// errors returns what is known of the results; nil where that is nothing.
	errors func(c *applied) []*state
}

// rules go by the first that fits a call.
var rules []rule

func init() { // some rules apply rules again, to formulas
	rules = []rule{
		{"places with rivals", (*applied).rivalled, (*applied).anywhere},
		{"unknown operands", func(c *applied) bool { return c.unknown }, func(*applied) []*state { return nil }},
		{"uncertain operands", (*applied).uncertain, (*applied).either},
		{"near decision", (*applied).decides, (*applied).jumps},
		{"exact", (*applied).staysExact, (*applied).exactResults},
		{"decision", func(c *applied) bool { return !anyDifferentiable(c.out) }, (*applied).decision},
		{"stated by the operator", func(c *applied) bool { return c.call.Def.Errors != nil }, (*applied).stated},
		{"formula", func(c *applied) bool { return c.call.Def.Formula != nil }, (*applied).formula},
		{"monotone selection", func(c *applied) bool { return c.exact && c.call.Def.Traits.Has(op.Monotone) }, (*applied).monotone},
		{"moved elements", func(c *applied) bool { return c.exact && sumsProducts(c.call) }, (*applied).moved},
		{"sum of products", func(c *applied) bool { return sumsProducts(c.call) }, (*applied).sums},
		{"function of elements", (*applied).isElementwise, (*applied).elementwise},
	}
}

// applied is a call that was computed, with what is known of its operands.
type applied struct {
	*errorSession
	call      *op.Call
	out       []op.Value
	exact     bool // the operator rounds nothing
	inexact   bool // an operand has errors
	integral  bool // all operands are integers
	unknown   bool // of an operand nothing is known
	functions bool // an operand has been through functions
}

func (s *errorSession) applied(call *op.Call, out []op.Value) *applied {
	c := &applied{errorSession: s, call: call, out: out, exact: call.Def.Tol.Class == op.Exact, integral: integralScalars(call.Args)}
	operands := call.Args.AllValues()
	if len(operands) == 0 { // torch.tensor([0.5]) has its numbers in a list
		c.integral = c.integral && whole(out)
	}
	for _, v := range operands {
		st := s.of(v)
		c.inexact = c.inexact || st.err != nil
		c.unknown = c.unknown || st.unknown
		c.functions = c.functions || st.functions
		c.integral = c.integral && (st.integral || !v.DType().IsDifferentiable())
	}
	return c
}

// propagate returns the states of a call's results.
func (s *errorSession) propagate(call *op.Call, out []op.Value) []*state {
	if cancels(call) {
		return []*state{{integral: true}}
	}
	c := s.applied(call, out)
	var states []*state
	if i := slices.IndexFunc(rules, func(r rule) bool { return r.fits(c) }); i >= 0 {
		states = rules[i].errors(c)
	}
	if states == nil {
		states = each(len(out), func(int) *state { return &state{unknown: true} })
	}
	for _, st := range states {
		st.functions = st.functions || c.functions || function(call.Def)
	}
	return states
}

// staysExact reports exact operands of an operator that rounds nothing.
func (c *applied) staysExact() bool {
	return !c.inexact && (c.exact || !anyDifferentiable(c.out))
}

func (c *applied) exactResults() []*state {
	return slices.Repeat([]*state{{integral: c.integral && whole(c.out)}}, len(c.out))
}

// isElementwise reports a function of elements whose roundings are limited.
func (c *applied) isElementwise() bool {
	d := c.call.Def
	return d.Tol.Class == op.Pointwise || d.ScalarFunction() && (c.exact || d.Tol.ULP > 0)
}

// function reports whether an operator is a function that another
// implementation may write otherwise.
func function(d *op.Def) bool { return d.Magnitude == "" && d.Tol.Class != op.Exact }

func each(n int, f func(i int) *state) []*state {
	states := make([]*state, n)
	for i := range states {
		states[i] = f(i)
	}
	return states
}

func anyDifferentiable(vs []op.Value) bool {
	return slices.ContainsFunc(vs, func(v op.Value) bool { return v.DType().IsDifferentiable() })
}

func integralScalars(a op.Args) bool {
	for _, v := range a.Vals {
		if sc, ok := v.(op.Scalar); ok && sc.Float() != math.Trunc(sc.Float()) {
			return false
		}
		if f, ok := v.(float64); ok && f != math.Trunc(f) {
			return false
		}
	}
	return true
}

// whole reports results that are integers, which those of integers need not be:
// quotients and roots are none.
func whole(out []op.Value) bool {
	return !slices.ContainsFunc(out, func(v op.Value) bool { return !integral(tensorOf(v)) })
}
